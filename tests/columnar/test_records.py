"""Raw records in bulk as by the construct path."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given

from offsets_log.columnar.scan.reading import ScanOrder
from offsets_log.columnar.shuffle import records as rc
from offsets_log.events import EVERYTHING, Event, Until
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.pipeline import iter_events
from tests.columnar.test_equal_engines import STEPS, build
from tests.conftest import DISTINCT, PACKED, log_directories, read_partitions
from tests.fuzz.mutation import hostile_segments, recorded_segments, seeds_of
from tests.sizes import examples, so_many


def check(log: PartitionLog, until: Until = EVERYTHING, room: rc.Room = rc.ROOM) -> None:
    events = [event for event in iter_events(log, until=until) if isinstance(event, Event)]
    expected = pa.Table.from_pylist([rc.record_row(event) for event in events], rc.SCHEMA).to_pylist()
    assert_equal(rc.iter_tables_of_log(ScanOrder(log, until, None), ignore, ignore, room=room), expected)


def ignore(_: object) -> None:
    """Nothing is told."""


def assert_equal(tables: Iterable[pa.Table], expected: list[dict[str, Any]]) -> None:
    got = [row for table in tables for row in table.to_pylist()]
    assert [{k: (a[k], b[k]) for k in a if a[k] != b[k]} for a, b in zip(got, expected, strict=True) if a != b] == []


@pytest.mark.parametrize("name", DISTINCT)
def test_recordings(name: str, recording: Callable[[str], Path]) -> None:
    room = rc.Room(rows=50, size_bytes=500)
    for log in read_partitions(log_directories(recording(name))[0]).values():
        check(log, room=room)
    check(log, Until(record_offset=7), room)
    check(log, Until(time_ms=1_795_239_300_000), room)


@examples(60)
@given(steps=STEPS)
def test_generated_logs(steps) -> None:  # type: ignore[no-untyped-def]
    check(build(steps).log)


def test_hostile_segments() -> None:
    seeds = seeds_of(recorded_segments([PACKED / "kafka-4.3-mixed.tar.xz", PACKED / "kafka-lifetime.tar.xz"]))
    for data in islice(hostile_segments(seeds, 5), so_many(200)):
        log = PartitionLog(0, (Segment("fuzz.log", 0, data),))
        events = [event for event in iter_events(log) if isinstance(event, Event)]
        expected = pa.Table.from_pylist([rc.record_row(event) for event in events], rc.SCHEMA).to_pylist()
        assert_equal(rc.iter_tables_of_log(ScanOrder(log, EVERYTHING, None), ignore, ignore), expected)
