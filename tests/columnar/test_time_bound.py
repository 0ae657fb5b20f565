"""Where a bound by time ends a log: the same from a kernel, batch by batch and in pieces, whatever the files hold."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice, pairwise
from pathlib import Path

import pytest

from offsets_log.columnar.scan.time_bound import Stop, find_stop
from offsets_log.log_format.batch import NO_TIMESTAMP
from offsets_log.log_format.partition_log import PartitionLog, Segment, batches_of
from tests.builders import TIME, LogBuilder
from tests.columnar.test_cuts import BEHIND, logs_of_segments
from tests.conftest import DISTINCT, PACKED, log_directories, read_partitions
from tests.fuzz.mutation import hostile_segments, recorded_segments, seeds_of
from tests.sizes import so_many


def expected(log: PartitionLog, time_ms: int, until_offset: int | None) -> Stop | None:
    batches = [batch for batch in batches_of(log) if until_offset is None or batch.last_offset < until_offset]
    first = next((i for i, batch in enumerate(batches) if batch.max_timestamp_ms > time_ms), len(batches))
    within = [batch for batch in batches[first:] if NO_TIMESTAMP != batch.max_timestamp_ms <= time_ms]
    if first == len(batches):
        return None
    stop = batches[first]
    end = within[-1].last_offset + 1 if within else stop.base_offset
    return Stop(stop.base_offset, stop.max_timestamp_ms, len(within), end)


def assert_equal(log: PartitionLog, *, until_offsets: tuple[int | None, ...] = (None,)) -> None:
    times = sorted({batch.max_timestamp_ms for batch in batches_of(log)})
    for time_ms in {*times[:1], *times[len(times) // 2 :][:1], *times[-2:]}:
        for offset in until_offsets:
            found = [find_stop(log, time_ms, offset, in_bulk=in_bulk) for in_bulk in (True, False)]
            assert found == [expected(log, time_ms, offset)] * 2


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
    for one, two in pairwise(islice(hostile_segments(seeds, 11), so_many(200))):
        assert_equal(PartitionLog(0, (Segment("0.log", 0, one), Segment("1.log", None, two))))


def log_of(*seconds: int) -> PartitionLog:
    """Batches of one record, written so many seconds after `TIME`."""
    builder = LogBuilder()
    for second in seconds:
        builder.add((b"\x00\x00", b""), times=(TIME + second * 1000,))
    return builder.log


SAMPLES = (
    log_of(1, 2, 9, 3, 4, 9, 5, 12, 3),
    log_of(9, 1, 1),
    log_of(1, 2, 3, 9, 10),
    log_of(1, 9),
    log_of(-5_000_000_000, 9, -5_000_000_000),
)


@pytest.mark.parametrize("log", SAMPLES)
def test_what_is_counted_and_below_what_offset(log: PartitionLog) -> None:
    assert_equal(log, until_offsets=(None, 0, 2, 3, 4, 100))


def test_the_first_later_batch_and_those_within_behind_it() -> None:
    log = SAMPLES[0]
    assert find_stop(log, TIME + 4000, in_bulk=True) == Stop(2, TIME + 9000, 3, 9)
    assert find_stop(log, TIME + 4000, 4, in_bulk=True) == Stop(2, TIME + 9000, 1, 4)
    assert find_stop(log, TIME + 20_000, in_bulk=True) is None
    assert find_stop(log, -(1 << 80), in_bulk=True) == Stop(0, TIME + 1000, 0, 0)


def test_a_batch_without_a_time_is_not_within() -> None:
    builder = LogBuilder().add((b"\x00\x00", b""), times=(TIME + 9000,))
    log = builder.add((b"\x00\x00", b""), times=(NO_TIMESTAMP,)).log
    for in_bulk in (True, False):
        assert find_stop(log, TIME, in_bulk=in_bulk) == Stop(0, TIME + 9000, 0, 0)
