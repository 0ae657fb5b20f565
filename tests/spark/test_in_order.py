"""What tasks hand over in log order: commands say what this machine's engine says, of many logs in 1, 3 or 7 pieces.

Tasks run in this process here, pickled as Spark pickles them; `test_engine` asks Spark itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import cloudpickle

from benchmarks.generate import Options, generate
from cli.spark import SparkEngine
from offsets_log.replay.releases import known_releases
from spark_jobs import tasks
from spark_jobs.options import SourceOptions
from spark_jobs.source import plan_reading
from tests.spark.conftest import words_of
from tests.spark.test_engine import Recording, of_generator, of_recording, reported, run

PIECES = (1, 3, 7)
QUESTIONS: dict[str, tuple[str, ...]] = {
    "check": ("check",),
    "check-until": ("check", "--until-offset", "70", "-o", "json"),
    "decode": ("decode",),
    "decode-some": ("decode", "-o", "csv", "-g", "*a*", "-t", "*e*"),
    "decode-until": ("decode", "-o", "json", "--until-offset", "70"),
    "decode-table": ("decode", "-o", "table"),
    "decode-expand": ("decode", "--expand", "-g", "*e*"),
    "dump-log": ("decode", "--as", "dump-log"),
    "dump-log-some": ("decode", "--as", "dump-log", "-g", "*[aeiou]"),
    "history": ("history", "-g", "*"),
    "history-some": ("history", "-g", "*[ae]*", "-t", "*s*", "--profile", "classic"),
    "rebalances": ("rebalances",),
    "rebalances-verify": ("rebalances", "--verify", "-g", "*a*"),
    "top-client": ("top", "--per", "client"),
}
RECORDED = ("kafka-lifetime", "kafka-4.3-modern-groups", "kafka-0.8.2", "load-fails")
LOGS: dict[str, Callable[[Recording, Path], Path]] = {
    "generated": of_generator(harm=False, size_bytes=200_000, segment_bytes=20_000),
    "generated-damaged": of_generator(harm=True, size_bytes=200_000, segment_bytes=20_000),
    "damaged": of_recording("kafka-4.3-mixed", harm=True),
    **{name: of_recording(name) for name in RECORDED},
}


class Rows:
    """As an RDD, in this process."""

    def __init__(self, items: list[Any]) -> None:
        self.items = items

    def flatMap(self, function: Callable[[Any], Iterator[Any]]) -> Rows:
        sent = cloudpickle.loads(cloudpickle.dumps((function, self.items)))
        return Rows(list(chain.from_iterable(map(sent[0], sent[1]))))

    def persist(self, level: Any) -> Rows:
        return self

    def count(self) -> int:
        return len(self.items)

    def toLocalIterator(self, *, prefetchPartitions: bool) -> Iterator[Any]:
        return iter(self.items)

    def unpersist(self) -> None:
        self.items = []


@pytest.fixture
def in_pieces(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Have logs read in about so many pieces, by tasks in this process."""

    def have(pieces: int) -> None:
        context = SimpleNamespace(parallelize=lambda items, count: Rows(items), defaultParallelism=2)
        monkeypatch.setattr(SparkEngine, "_begun", lambda self: SimpleNamespace(sparkContext=context))
        monkeypatch.setattr(tasks, "evenly", lambda spark, reading: replace(reading, pieces=pieces))

    return have


@pytest.fixture(scope="module", params=LOGS)
def log(request: pytest.FixtureRequest, recording: Recording, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return LOGS[request.param](recording, tmp_path_factory.mktemp(request.param))


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_answer_of_this_machine(name: str, log: Path, in_pieces: Callable[[int], None]) -> None:
    """Logs and questions in turn: each meets every number of pieces."""
    here = run(QUESTIONS[name], log)
    in_pieces(PIECES[([*LOGS].index(log.parent.name[:-1]) + [*QUESTIONS].index(name)) % len(PIECES)])
    there = run(QUESTIONS[name], log, "--engine", "spark")
    assert there.stdout == here.stdout
    assert words_of(there.stderr) == words_of(here.stderr)
    assert there.exit_code == here.exit_code


def cuts(log: Path) -> list[int]:
    """Numbers of pieces of which each cuts a log otherwise than those before: many small partitions are never cut."""
    plans: dict[str, int] = {}
    for pieces in PIECES:
        planned = plan_reading(SourceOptions(paths=(str(log),), pieces=pieces), most_bytes=tasks.MOST_PIECE_BYTES)
        plans.setdefault(str([(piece.log, piece.index, piece.position) for piece in planned]), pieces)
    return [*plans.values()]


def test_some_logs_are_cut_in_every_way(log: Path) -> None:
    """So that the tests of all cuts compare something."""
    assert cuts(log) == [*PIECES] or not log.parent.name.startswith("generated")


def records(log: Path, to: Path, *more: str) -> tuple[int, list[str], list[Any]]:
    """What `decode` writes as Parquet."""
    result = run(("decode",), log, "-o", "parquet", "--to", str(to), *more)
    tables = [pq.read_table(path) for path in sorted(to.iterdir())]
    return result.exit_code, words_of(result.stderr), pa.concat_tables(tables).to_pylist()


def test_the_same_records_in_parquet(log: Path, in_pieces: Callable[[int], None], tmp_path: Path) -> None:
    here = records(log, tmp_path / "here")
    for pieces in cuts(log):
        in_pieces(pieces)
        assert records(log, tmp_path / str(pieces), "--engine", "spark") == here


@pytest.mark.parametrize("some", [(), ("-g", "*a*", "-t", "*e*", "--until-offset", "70")])
def test_the_same_page(some: tuple[str, ...], log: Path, in_pieces: Callable[[int], None], tmp_path: Path) -> None:
    here = reported(log, tmp_path / "page", *some)
    for pieces in cuts(log):
        in_pieces(pieces)
        assert reported(log, tmp_path / "page", *some, "--engine", "spark") == here


def handed_over(log: Path, work: tasks.Work) -> int:
    """Bytes that tasks make of a log in four pieces."""
    reading = SourceOptions(paths=(str(log),), pieces=4)
    run = tasks._task(reading, work)
    return sum(len(data) for item in enumerate(plan_reading(reading)) for _, data in run(item))


def test_states_of_a_check_grow_with_keys_and_not_with_records(tmp_path: Path) -> None:
    sizes = []
    for size_bytes in (1 << 19, 1 << 21):
        generate(tmp_path / str(size_bytes), Options(bytes=size_bytes, groups=20, partitions=4, transactions=0.1))
        begins = [[0]] * 50  # of one segment each
        sizes.append(handed_over(tmp_path / str(size_bytes), tasks.check(known_releases(), begins)))
    assert sizes[1] < 1.2 * sizes[0]
