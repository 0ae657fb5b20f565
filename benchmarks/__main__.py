"""Measure this project, its bounds and other readers in one run on the same log: ``python -m benchmarks``."""

from __future__ import annotations

import json
import os
import platform
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import click

from benchmarks import assignors, small, spark
from benchmarks.generate import Size
from benchmarks.subjects import KINDS, SUBJECTS, iter_lines, measure
from benchmarks.timing import PATIENCE_SECONDS

NOTE = (
    "s is the whole process (Kafka's coordinator: its own account of the load; memcpy, read, CRC-32C and the construct "
    "path: the call), the median of the runs after one that does not count; rates leave kafka-dump-log's start "
    "out, and of Kafka's cleaner the JVM's start and the opening of the log. "
    f"What takes over {PATIENCE_SECONDS:.0f} s runs once. compact, rebuild, the construct path and the coordinator "
    "resolve transactions, the other readers take records in their order."
)


def facts() -> dict[str, Any]:
    """The machine, and how busy it was before."""
    try:
        names = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    except OSError:
        names = None
    return {
        "processor": names[1] if names else platform.processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load_before": round(os.getloadavg()[0], 2),
        "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


@click.command()
@click.option("--bytes", "size_bytes", type=Size(), default="1GB", show_default=True, help="Of the log, uncompressed.")
@click.option("--repeat", type=click.IntRange(min=1), default=5, show_default=True, help="Runs of each row.")
@click.option("--peers", type=click.Choice(list(KINDS)), default="all", show_default=True, help="Other readers too.")
@click.option("--only", metavar="REGEX", default="", help="Rows of both tables whose name matches.")
@click.option("--json", "to", type=click.Path(path_type=Path), help="Keep all times there.")
@click.option(
    "--work",
    type=click.Path(path_type=Path),
    default=Path(tempfile.gettempdir()) / "offsets-log-bench",
    show_default=True,
    help="Where generated logs are kept; needs 4 times --bytes, and room for decode's output.",
)
def main(size_bytes: int, repeat: int, peers: str, only: str, to: Path | None, work: Path) -> None:
    """Print the tables."""
    write, pattern, known = sys.stdout.write, re.compile(only), facts()
    subjects = [subject for subject in SUBJECTS if subject.kind in KINDS[peers] and pattern.search(subject.what)]
    rows = list(measure(subjects, work, size_bytes, repeat))
    if rows:
        write("\n".join([", ".join(f"{name} {value}" for name, value in known.items()), "", *iter_lines(rows), ""]))
        write(f"\n{NOTE}\n\n")
    if to is not None:
        to.write_text(
            json.dumps({"facts": known, "bytes": size_bytes, "repeat": repeat, "rows": rows}, indent=1) + "\n"
        )
    for line in (*small.iter_lines(pattern), *assignors.iter_lines(pattern)):
        write(f"{line}\n")
    for line in spark.iter_lines(pattern, work, size_bytes, repeat):
        write(f"{line}\n")


if __name__ == "__main__":
    main()
