"""Time whole commands, from shell to exit, warm: ``python -m benchmarks``."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
SAMPLES = ROOT / "samples"
RUNS = 9

COMMANDS: dict[str, list[str]] = {
    "python, nothing": [sys.executable, "-c", "pass"],
    "offsets-log --help": ["offsets-log", "--help"],
    "decode, 599 records": ["offsets-log", "decode", str(SAMPLES / "kafka-4.3-mixed" / "log")],
    "decode --expand": ["offsets-log", "decode", str(SAMPLES / "kafka-4.3-mixed" / "log"), "--expand"],
    "compact, 599 records": ["offsets-log", "compact", str(SAMPLES / "kafka-4.3-mixed" / "log")],
    "compact, 819 records, magic 0-2": ["offsets-log", "compact", str(SAMPLES / "kafka-lifetime" / "log")],
    "info": ["offsets-log", "info", str(SAMPLES / "kafka-4.3-mixed" / "log")],
}
"""What is timed → the command."""


def time_command(command: list[str]) -> list[float]:
    """Seconds of each run, after one that is not counted."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    seconds = []
    for _ in range(RUNS + 1):
        started = time.perf_counter()
        subprocess.run(command, env={**os.environ, "PATH": path}, capture_output=True, check=True)
        seconds.append(time.perf_counter() - started)
    return seconds[1:]


def main() -> None:
    """Print the table."""
    write = sys.stdout.write
    write(f"| whole process, median of {RUNS} | s | min | max | of python's start |\n|---|--:|--:|--:|--:|\n")
    base = None
    for name, command in COMMANDS.items():
        seconds = time_command(command)
        median = statistics.median(seconds)
        base = base or median
        write(f"| {name} | {median:.3f} | {min(seconds):.3f} | {max(seconds):.3f} | {median / base:.1f} x |\n")


if __name__ == "__main__":
    main()
