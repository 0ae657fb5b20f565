"""Batches as rows: the same from a kernel and batch by batch, whatever the files hold."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import pytest

from offsets_log.columnar.jit.records import Table
from offsets_log.columnar.scan import batch_rows as br
from offsets_log.errors import Damage
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.partition_log import PartitionLog, Segment, iter_log
from offsets_log.log_format.segment import Tail
from tests.builders import LogBuilder
from tests.columnar.test_cuts import BEHIND, logs_of_segments
from tests.columnar.test_equal_engines import CRASHERS
from tests.conftest import DISTINCT, PACKED, log_directories, read_partitions
from tests.fuzz.mutation import hostile_segments, recorded_segments, seeds_of
from tests.sizes import so_many


def told(log: PartitionLog, *, in_bulk: bool) -> list[Any]:
    """Rows, damaged pieces and tails, one by one."""
    items: list[Any] = []
    for found in br.batch_rows(log, in_bulk=in_bulk):
        match found:
            case Damage():
                items.append(str(found.error))
            case Tail():
                items.append(found)
            case _:
                items += [tuple(row) for row in found.numbers.tolist()]
    return items


def expected(log: PartitionLog) -> list[Any]:
    items: list[Any] = []
    segments = [id(segment) for segment in log.segments]
    for segment, item in iter_log(log):
        if isinstance(item, Damage):
            items.append(str(item.error))
        elif isinstance(item, RecordBatch):
            epoch = item.partition_leader_epoch if item.magic == 2 else -1
            count = -1 if item.magic < 2 and item.attributes & 7 else item.records_count
            horizon = item.attributes & 0x40 if item.magic == 2 else 0
            place = item.base_offset, len(item.raw), item.crc, item.last_offset
            found = segments.index(id(segment)), item.position
            items.append((*place, epoch, count, horizon, item.max_timestamp_ms, *found))
        else:
            items.append(item)
    return items


def assert_equal(log: PartitionLog) -> None:
    assert told(log, in_bulk=True) == told(log, in_bulk=False) == expected(log)


@pytest.mark.parametrize("name", DISTINCT)
def test_recordings(name: str, recording: Callable[[str], Path]) -> None:
    for directory in log_directories(recording(name)):
        for log in read_partitions(directory).values():
            assert_equal(log)


@pytest.mark.parametrize("behind", BEHIND)
def test_logs_in_segments(behind: str) -> None:
    for log in logs_of_segments(BEHIND[behind]):
        assert_equal(log)


def test_hostile_segments() -> None:
    names = ("kafka-0.8.2", "kafka-0.10.2", "kafka-lifetime", "kafka-4.3-mixed")
    seeds = seeds_of(recorded_segments([PACKED / f"{name}.tar.xz" for name in names]))
    segments = [*islice(hostile_segments(seeds, 7), so_many(400)), *(path.read_bytes() for path in CRASHERS)]
    for one, two in pairwise(segments):
        assert_equal(PartitionLog(0, (Segment("fuzz.log", 0, one),)))
        assert_equal(PartitionLog(0, (Segment("0.log", 0, one), Segment("1.log", None, two))))


def test_a_table_that_is_full_is_followed_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(br, "ROWS", 2)
    log = LogBuilder().commit(1).commit(2).commit(3).commit(4).commit(5).log
    tables = [len(found.numbers) for found in br.batch_rows(log, in_bulk=True) if isinstance(found, Table)]
    assert tables == [2, 2, 1]
    assert_equal(log)


@pytest.mark.parametrize(("behind", "zeros_behind", "kind"), [(b"", 9, "zeros"), (bytes(9), 0, "zeros"), (b"", 0, "")])
def test_what_follows_the_last_batch(behind: bytes, zeros_behind: int, kind: str) -> None:
    """Zeros that were never written are in no buffer."""
    whole = LogBuilder().commit(1).log.segments[0].buffer
    log = PartitionLog(0, (Segment("0.log", 0, bytes(whole) + behind, zeros_behind=zeros_behind),))
    assert_equal(log)
    assert [item.kind for item in told(log, in_bulk=True) if isinstance(item, Tail)] == [kind][: len(kind)]
