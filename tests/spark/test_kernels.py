"""Kernels travel with tasks; executors compile none, and nobody does for small logs."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

from spark_jobs.kernels import compile_first, kernels_for
from spark_jobs.options import LEVELS
from tests.waiting import PATIENCE_S

ROOT = Path(__file__).parent.parent.parent
LARGE = 1 << 40

SMALL = """
import sys
from spark_jobs.driver import parts_to_read, plan_reading
from spark_jobs.options import SourceOptions
from spark_jobs.answers import rows
for level in sys.argv[1:]:
    reading = SourceOptions(paths=("samples/kafka-4.3-mixed/log",), level=level)
    found = plan_reading(reading)
    parts = parts_to_read(found.logs, reading)
    print(level, sum(len(table) for files in parts for table in rows(files, reading, found.told)))
"""
SENT = """
import pickle, sys
pickle.load(sys.stdin.buffer)
from offsets_log.columnar.needs import lacking
print(len(lacking("folds.offsets.scan", "scan.gather.gather")), len(lacking("events.kernels.fill")))
"""


def run(program: str, cache: Path, *words: str, told: bytes = b"") -> str:
    """What a process prints that finds nothing kept."""
    environment = {**os.environ, "OFFSETS_LOG_CACHE": str(cache), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", program, *words]
    done = subprocess.run(command, cwd=ROOT, env=environment, input=told, capture_output=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def kept(cache: Path) -> list[str]:
    return [path.name for path in (cache / "offsets-log" / "kernels").glob("[!.]*")]


def test_a_small_log_compiles_nothing(tmp_path: Path) -> None:
    assert run(SMALL, tmp_path, *LEVELS).split() == [
        "offsets", "129", "pending", "3", "groups", "34", "members", "11", "transactions", "3", "history", "520",
        "problems", "0", "records", "599", "raw_records", "599",
    ]  # fmt: skip
    assert kept(tmp_path) == []


def test_kernels_are_kept_where_they_are_unpickled(tmp_path: Path) -> None:
    """All that a large log needs for the levels that were asked for, and of others none."""
    compile_first(LARGE, "offsets", "transactions")
    sent = pickle.dumps(kernels_for("offsets", "transactions"))
    lacking, others = run(SENT, tmp_path, told=sent).split()
    assert (lacking, others != "0") == ("0", True)
    assert kept(tmp_path)
