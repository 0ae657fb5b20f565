"""The level offsets and the program clean on Spark over a generated log, in a session that is warm.

``python -m benchmarks --only spark --bytes 2GB``. Beside them the same commands on this machine, whole processes, and a
straightforward PySpark job: one task a segment, aiokafka's parser and struct for each record, the newest of each key.
"""

from __future__ import annotations

import os
import re
import shutil
import statistics
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from benchmarks.commands import offsets_in
from benchmarks.inputs import Log, generated_log
from benchmarks.timing import run_process, seconds_of

NAIVE_BYTES = 50 * 10**6
WRONG = " (WRONG)"
CLEANED_AT = "2100-01-01T00:00:00Z"
NAMES = ("spark offsets", "spark offsets, a quarter", "spark, straightforward job", "spark clean")
HEAD = (
    "| on Spark, warm, local[2] | bytes | keys | s | s per GB | of local |",
    "|---|--:|--:|--:|--:|--:|",
)


def iter_lines(only: re.Pattern[str], work: Path, size_bytes: int, repeat: int) -> Iterator[str]:
    """The table; nothing if none of the names is asked for, or without Java."""
    chosen = [name for name in NAMES if only.search(name)]
    if not chosen:
        return
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from spark_jobs.session import Opening, session

    logs = {
        NAMES[0]: generated_log(work, "none", size_bytes),
        NAMES[1]: generated_log(work, "none", size_bytes // 4),
        NAMES[2]: generated_log(work, "none", min(size_bytes, NAIVE_BYTES)),
        NAMES[3]: generated_log(work, "none", size_bytes),
    }
    yield from HEAD
    with session(Opening("local[2]")) as spark:
        for name in chosen:
            log = logs[name]
            if name == NAMES[3]:
                yield _clean_line(name, log, repeat, work)
            else:
                job = _straightforward if name == NAMES[2] else _offsets
                yield _job_line(name, log, spark(), job, repeat, work)


def _job_line(
    name: str, log: Log, spark: Any, job: Callable[[Any, Log], dict[str, int]], repeat: int, work: Path
) -> str:
    answers: list[dict[str, int]] = []

    def run() -> float:
        return seconds_of(lambda: answers.append(job(spark, log)))

    run()
    seconds = [run() for _ in range(repeat)]
    expected = log.truth["in_record_order" if job is _straightforward else "served"]
    local = _local_seconds(log, repeat, work)
    name += "" if answers[-1] == expected else WRONG
    return _line(name, log, statistics.median(seconds), local, expected["keys"])


def _clean_line(name: str, log: Log, repeat: int, work: Path) -> str:
    """Both in turn, on the log as a broker finds it that has not stopped cleanly."""
    from spark_jobs.__main__ import main as command

    there, here = work / "cleaned-on-spark", work / "cleaned-here"
    words = ["clean", str(log.folder), "--now", CLEANED_AT, "-o", "jsonl", "--quiet", "--to"]

    def on_spark() -> None:
        result = CliRunner().invoke(command, [*words, str(there)])
        assert result.exit_code == 0, result.output

    times = []
    for _ in range(repeat + 1):
        for folder in (there, here):
            shutil.rmtree(folder, ignore_errors=True)
        times.append((seconds_of(on_spark), seconds_of(lambda: run_process(["offsets-log", *words, str(here)]))))
    same = [_files_in(folder) for folder in (there, here)]
    for folder in (there, here):
        shutil.rmtree(folder)
    seconds, local = (statistics.median(each) for each in zip(*times[1:], strict=True))
    name += "" if same[0] == same[1] else WRONG
    return _line(name, log, seconds, local, log.truth["served"]["keys"])


def _files_in(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _line(name: str, log: Log, seconds: float, local: float, keys: int) -> str:
    size = log.truth["uncompressed_bytes"]
    return f"| {name} | {size:,} | {keys:,} | {seconds:.2f} | {seconds / size * 1e9:.2f} | {seconds / local:.1f} x |"


def _local_seconds(log: Log, repeat: int, work: Path) -> float:
    """The command ``compact -o parquet``, the whole process."""
    out = work / "of-the-local-engine.parquet"
    command = ["offsets-log", "compact", str(log.folder), "-o", "parquet", "--quiet", "--to", str(out)]
    times = [seconds_of(lambda: run_process(command)) for _ in range(repeat + 1)]
    assert offsets_in(out) == log.truth["served"]
    out.unlink()
    return statistics.median(times[1:])


def _offsets(spark: Any, log: Log) -> dict[str, int]:
    found = spark.read.format("offsets_log").load(str(log.folder))
    return _answer(found.select("committed_offset").toArrow()["committed_offset"].to_pylist())


def _answer(offsets: list[int]) -> dict[str, int]:
    return {"keys": len(offsets), "sum": sum(offsets)}


def _straightforward(spark: Any, log: Log) -> dict[str, int]:
    segments = [str(path) for path in log.segments]
    pairs = spark.sparkContext.parallelize(segments, len(segments)).flatMap(_commits)
    return _answer([found[1] for found in pairs.reduceByKey(max).values().collect() if found[1] is not None])


def _commits(path: str) -> Iterator[tuple[Any, tuple[int, int | None]]]:
    """Key, (record offset, committed offset) of every offset commit; None is a tombstone."""
    from aiokafka.record.memory_records import MemoryRecords

    from benchmarks.aiokafka_peer import INT16, OFFSET_COMMIT, commit_key, commit_value

    batches = MemoryRecords(Path(path).read_bytes())
    while batches.has_next():
        batch = batches.next_batch()
        for record in () if batch.is_control_batch else batch:
            if INT16.unpack_from(record.key)[0] == OFFSET_COMMIT:
                value = None if record.value is None else commit_value(record.value)[0]
                yield commit_key(record.key), (record.offset, value)
