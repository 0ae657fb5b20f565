"""Raw records in bulk as by the construct path, in any pieces."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given

from offsets_log.columnar.scan.reading import Cursor, ScanOrder, ScanPlace
from offsets_log.columnar.shuffle import records as rc
from offsets_log.events import EVERYTHING, Event, Until
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.pipeline import iter_events
from tests.columnar.test_equal_engines import STEPS, build
from tests.columnar.test_partials import places
from tests.conftest import DISTINCT, PACKED, log_directories, read_partitions
from tests.fuzz.mutation import hostile_segments, recorded_segments, seeds_of
from tests.sizes import examples, so_many


def check(log: PartitionLog, until: Until = EVERYTHING, room: rc.Room = rc.ROOM) -> None:
    events = [event for event in iter_events(log, until=until) if isinstance(event, Event)]
    expected = pa.Table.from_pylist([rc.record_row(event) for event in events], rc.SCHEMA).to_pylist()
    cuts = places(log)
    middle, last = cuts[len(cuts) // 2] if cuts else (ScanPlace(0, 0), -1)
    end, begin = ScanPlace(len(log.segments), 0), (ScanPlace(0, 0), -1)
    for pieces in ([(begin, end)], [(begin, middle), ((middle, last), end)])[: 2 if until is EVERYTHING else 1]:
        tables = [
            table
            for (place, before), stop in pieces
            for table in rc.iter_record_tables(
                ScanOrder(log, until, None), Cursor(place, before, before + 1), stop, lambda _: None, room=room
            )
        ]
        got = [row for table in tables for row in table.to_pylist()]
        assert [
            {k: (a[k], b[k]) for k in a if a[k] != b[k]} for a, b in zip(got, expected, strict=True) if a != b
        ] == []


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
        order = ScanOrder(log, EVERYTHING, None)
        tables = rc.iter_record_tables(order, Cursor(ScanPlace(0, 0), -1, 0), order.end, lambda _: None)
        got = [row for table in tables for row in table.to_pylist()]
        assert [
            {k: (a[k], b[k]) for k in a if a[k] != b[k]} for a, b in zip(got, expected, strict=True) if a != b
        ] == []
