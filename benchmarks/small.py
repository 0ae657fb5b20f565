"""Whole commands over the small samples: what a user waits for who asks a short question."""

from __future__ import annotations

import re
import statistics
import sys
from collections.abc import Iterator

from benchmarks.timing import ROOT, run_process, seconds_of

RUNS = 9
NOTHING = "python, nothing"
MIXED, LIFETIME = (str(ROOT / "samples" / name / "log") for name in ("kafka-4.3-mixed", "kafka-lifetime"))

COMMANDS: dict[str, list[str]] = {
    NOTHING: [sys.executable, "-c", "pass"],
    "offsets-log --help": ["offsets-log", "--help"],
    "decode, 599 records": ["offsets-log", "decode", MIXED],
    "decode --expand": ["offsets-log", "decode", MIXED, "--expand"],
    "compact, 599 records": ["offsets-log", "compact", MIXED],
    "compact, 819 records, magic 0-2": ["offsets-log", "compact", LIFETIME],
    "info": ["offsets-log", "info", MIXED],
}
"""What is timed → the command."""

HEAD = (
    f"| whole process over a sample, median of {RUNS} | s | min | max | of python's start |",
    "|---|--:|--:|--:|--:|",
)


def iter_lines(only: re.Pattern[str]) -> Iterator[str]:
    """The table; nothing if none of the names is asked for."""
    chosen = [name for name in COMMANDS if only.search(name)]
    if not chosen:
        return
    yield from HEAD
    base = statistics.median(_seconds(NOTHING))
    for name in chosen:
        seconds = _seconds(name)
        median = statistics.median(seconds)
        yield f"| {name} | {median:.3f} | {min(seconds):.3f} | {max(seconds):.3f} | {median / base:.1f} x |"


def _seconds(name: str) -> list[float]:
    """Of each run, after one that is not counted."""
    return [seconds_of(lambda: run_process(COMMANDS[name])) for _ in range(RUNS + 1)][1:]
