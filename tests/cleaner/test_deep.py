"""The smallest log with the same answers: over all recordings, and over random logs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offsets_log.cleaner.opening import as_opened
from offsets_log.errors import OffsetsLogError
from offsets_log.events import Event
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.log_format.segment import iter_batches
from offsets_log.pipeline import iter_events
from offsets_log.replay.profile import CLASSIC, MODERN, MODERN_3_7
from tests.builders import LogBuilder, member
from tests.cleaner.deep import SETTINGS, answers, contents, deep, in_segments, load, opened, random_log
from tests.conftest import RECORDINGS, log_directories, read_partitions


def check_same(log: PartitionLog) -> PartitionLog:
    """Clean a log; what is left answers as it does, is no larger, and cannot be cleaned further."""
    before = opened(log)
    log = as_opened(log, before)
    made = deep(log)
    for profile in (MODERN, CLASSIC):
        assert answers(load(made.log, profile)) == answers(load(log, profile)), profile.name
    offsets = [answers(load(one, MODERN_3_7)) for one in (made.log, log)]
    assert [offsets[0][name] for name in ("committed", "pending")] == [
        offsets[1][name] for name in ("committed", "pending")
    ]
    sizes = [sum(file.size_bytes for file in one.files.values()) for one in (before, made.opened)]
    assert sizes[1] <= sizes[0]
    assert made.opened.end_offset == before.end_offset
    # Of transactions that are open; one may have no record left.
    assert set(made.opened.producers.ongoing.values()) <= set(before.producers.ongoing.values())
    assert contents(deep(made.log).log) == contents(made.log)
    return made.log


@pytest.mark.parametrize("name", sorted({*RECORDINGS} - {"random-scala"}))  # the bytes of random-java
def test_a_recording_is_answered_from_as_before(name: str, recording: Callable[[str], Path]) -> None:
    """``CL-35``."""
    checked = 0
    for directory in log_directories(recording(name)):
        for log in list(read_partitions(directory).values())[: 12 if name == "random-java" else None]:
            check_same(log)
            checked += 1
    assert checked


@given(st.integers(0, 1 << 30), st.integers(1, 9))
@settings(max_examples=12, deadline=None)
def test_a_random_log_is_answered_from_as_before(seed: int, batches_in_a_segment: int) -> None:
    check_same(in_segments(random_log(seed), batches_in_a_segment))


def kept(log: LogBuilder) -> list[int]:
    """Offsets of records that stay."""
    made = check_same(log.log)
    return [event.record.offset for event in iter_events(made) if isinstance(event, Event)]


@pytest.mark.parametrize(
    ("log", "offsets"),
    [
        (LogBuilder().commit(1).commit(2).commit(3), [2]),
        (LogBuilder().commit(1, type_=0).commit(2, type_=1), [1]),
        (LogBuilder().commit(1, type_=1).commit(2, type_=0), [1]),
        (LogBuilder().commit(1).commit(2, producer=5).end(5), [1, 2]),
        (LogBuilder().commit(1).commit(2, producer=5).end(5, commit=False), [0]),
        (LogBuilder().commit(1, producer=5).commit(2, producer=5).end(5).commit(3), [3]),
        (LogBuilder().commit(1, producer=5).commit(2, producer=5), [0, 1]),
        # The preview of 3.7 takes what was applied last (`J-11`).
        (LogBuilder().commit(1, producer=5).commit(2).end(5), [0, 1, 2]),
        (LogBuilder().group(member("m")).group(member("n")).commit(1), [1, 2]),
        (LogBuilder().group(member("m")).group(gone=True), []),
        # The group exists for the Java coordinator, without offsets (`B-3`).
        (LogBuilder().commit(1).commit(None), [0, 1]),
        # Offsets of a group that does not exist (`J-15`).
        (LogBuilder().commit(1).group(gone=True), [0, 1]),
        # A tombstone that for the Scala coordinator does not end what is pending (`L-19`).
        (LogBuilder().commit(0).commit(1, producer=5).commit(None).end(5), [0, 1, 2, 3]),
    ],
)  # fmt: skip
def test_what_stays(log: LogBuilder, offsets: list[int]) -> None:
    assert kept(log) == offsets


def test_a_log_of_which_nothing_is_left_goes_on_where_it_did() -> None:
    """An empty batch says so, of no producer (``CL-21``, ``CL-32``)."""
    made = deep(LogBuilder().group(member("m")).group(gone=True).log)
    (segment,) = made.log.segments
    (batch,) = iter_batches(segment.buffer, is_last=True)
    assert isinstance(batch, RecordBatch)
    assert (batch.last_offset, batch.records_count, batch.producer_id, batch.size_bytes) == (1, 0, -1, 61)


def test_segments_are_as_large_as_they_may_be() -> None:
    log = LogBuilder()
    for partition in range(50):
        log.commit(1, partition=partition)
    made = deep(log.log, replace(SETTINGS, segment_bytes=1000))
    sizes = [len(segment.buffer) for segment in made.log.segments]
    assert all(900 < size <= 1000 for size in sizes[:-1])
    assert sum(sizes) == len(log.log.segments[0].buffer)


def test_what_cannot_be_read_is_not_cleaned() -> None:
    raw = bytearray(LogBuilder().commit(1).commit(2).log.segments[0].buffer)
    raw[90] ^= 1
    segment = replace(LogBuilder().log.segments[0], buffer=bytes(raw))
    with pytest.raises(OffsetsLogError, match="checksum"):
        deep(PartitionLog(0, (segment,), beside={f"{0:020}.index": lambda: b""}))
