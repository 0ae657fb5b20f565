"""A cluster streamed: markers and producers are there, and a log that is another one is an error."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from offsets_log.errors import InputError
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.partition_log import iter_log
from offsets_log.log_format.primitives import Uuid
from tests.conftest import read_partition
from tests.pulling.brokers import OFFSETS, Brokers, Log
from tests.spark.streams import Stream, answer, table


@pytest.fixture
def log(recording: Callable[[str], Path]) -> Path:
    return recording("kafka-4.3-mixed") / "log"


@pytest.fixture
def brokers(log: Path) -> Iterator[Brokers]:
    """Two nodes, with the partitions of a recording, of which nothing was written yet."""
    logs = {(OFFSETS, int(path.name.rpartition("-")[2])): Log() for path in log.glob(f"{OFFSETS}-*")}
    for number, one in enumerate(logs.values()):
        one.leader = number % 2
    with Brokers(logs, nodes=2, topic_ids={OFFSETS: Uuid(bytes(15) + b"1")}, most_bytes=2000).running() as made:
        yield made


def written(log: Path, brokers: Brokers, rng: random.Random) -> Iterator[None]:
    """Write all partitions, some batches at a time."""
    left = {}
    for topic, number in brokers.logs:
        items = iter_log(read_partition(log / f"{topic}-{number}"))
        left[topic, number] = [item for _, item in items if isinstance(item, RecordBatch)]
    while any(left.values()):
        for key, batches in left.items():
            for batch in batches[: (count := rng.randrange(6))]:
                brokers.logs[key].batches.append((batch.last_offset, batch.raw))
                brokers.logs[key].end = batch.last_offset + 1
            del batches[:count]
        yield


@pytest.fixture
def stream(brokers: Brokers, tmp_path: Path) -> Iterator[Stream]:
    client = {"bootstrap.servers": brokers.address, "default.api.timeout.ms": "2000"}
    options = {f"kafka.{name}": value for name, value in client.items()}
    made = Stream(str(tmp_path), random.Random(7), **options)
    yield made
    made.reader.stop()


def test_tables_are_those_of_the_same_bytes(log: Path, brokers: Brokers, stream: Stream, tmp_path: Path) -> None:
    """Also while leaders change, and in batches of few bytes."""
    rng = stream.rng
    for _ in written(log, brokers, rng):
        stream.step(rng.choice((None, 1)))
        moved = rng.choice(list(brokers.logs.values()))
        moved.lead(1 - moved.leader, moved.epoch + 1)
    while stream.step():
        pass
    for kind, command in (("offsets", "compact"), ("groups", "groups")):
        assert table(tmp_path, kind) == answer(command, log, "modern")


@pytest.mark.parametrize("how", ["truncated", "made anew", "begins at"])
def test_another_log_is_told(log: Path, brokers: Brokers, stream: Stream, how: str) -> None:
    for _ in written(log, brokers, stream.rng):
        pass
    stream.step()
    one = brokers.logs[OFFSETS, 0]
    if how == "truncated":
        one.lead(0, 1)
        one.truncate(50)
        one.fill(30)
    elif how == "made anew":
        brokers.topic_ids[OFFSETS] = Uuid(bytes(15) + b"2")
    else:
        one.start = one.end + 10
        one.end = one.start + 5
    with pytest.raises(InputError, match=how):
        stream.step()


def test_a_cluster_without_the_topic(brokers: Brokers, stream: Stream) -> None:
    brokers.logs.clear()
    with pytest.raises(InputError, match="has no topic __consumer_offsets"):
        stream.step()
