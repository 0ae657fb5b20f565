"""The smallest log with the same answers: over all recordings, and over random logs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offsets_log.cleaner.bounds import OPEN_TRANSACTION
from offsets_log.cleaner.checkpoints import checkpoints_after
from offsets_log.cleaner.deep import Deep, round_of
from offsets_log.cleaner.opening import as_opened
from offsets_log.cleaner.round import CLEANED
from offsets_log.errors import OffsetsLogError
from offsets_log.events import Event
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.partition_log import Checkpoints, PartitionLog, Segment
from offsets_log.log_format.segment import iter_batches
from offsets_log.pipeline import iter_events
from offsets_log.replay.profile import CLASSIC, MODERN, MODERN_3_7, Profile
from tests.builders import LogBuilder, member
from tests.cleaner.cases import run
from tests.cleaner.deep import SETTINGS, answers, contents, deep, in_segments, load, opened, random_log
from tests.conftest import DISTINCT, log_directories, read_partitions
from tests.sizes import examples

YEAR_MS = 365 * 24 * 3600 * 1000


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


@pytest.mark.parametrize("name", DISTINCT)
def test_a_recording_is_answered_from_as_before(name: str, recording: Callable[[str], Path]) -> None:
    """``CL-35``."""
    checked = 0
    for directory in log_directories(recording(name)):
        for log in list(read_partitions(directory).values())[: 12 if name == "random-java" else None]:
            check_same(log)
            checked += 1
    assert checked


@given(st.integers(0, 1 << 30), st.integers(1, 9))
@examples(12)
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


@pytest.mark.parametrize(
    ("log", "offset"),
    [
        (LogBuilder().commit(1).commit(2), 2),
        (LogBuilder().commit(1).commit(2, partition=1).commit(None, partition=1).commit(None), 2),
        (LogBuilder().commit(1).commit(2, producer=5).commit(3, partition=1), 1),
        (LogBuilder().commit(1).group(gone=True), 1),
    ],
)
def test_the_next_round_begins_with_tombstones_that_stay_and_open_transactions(log: LogBuilder, offset: int) -> None:
    """What they cover stays too, and must not outlast them (``CL-2``)."""
    assert checkpoint(deep(log.log)) == offset


def checkpoint(made: Deep) -> int:
    """That its folder gets."""
    told = checkpoints_after(made.log.checkpoints, round_of(made, SETTINGS))
    assert told.cleaned_until is not None
    return told.cleaned_until


def after_rounds(log: PartitionLog, cleaned_until: int, profile: Profile) -> set[tuple[Any, ...]]:
    """What a log answers after rounds of a broker that set the horizon of its tombstones, and drop them."""
    for years in range(3):
        more = LogBuilder()
        more.offset = opened(log).end_offset or 0
        segments = []
        for _ in range(2):  # the second is the active one
            start = more.offset
            segments.append(Segment(f"{start:020}.log", start, more.commit(1, group="later").batches[-1]))
        log = replace(
            log, segments=(*log.segments, *segments), beside={}, checkpoints=Checkpoints(cleaned_until=cleaned_until)
        )
        done, files, _ = run(log, replace(SETTINGS, now_ms=SETTINGS.now_ms + years * YEAR_MS))
        assert done.outcome == CLEANED or done.bounds.held_by == OPEN_TRANSACTION
        cleaned_until = done.end_offset
        made = (Segment(name, int(name[:20]), files[name]) for name in sorted(files) if name.endswith(".log"))
        log = replace(log, segments=tuple(made))
    return {
        (*value.key, value.committed_offset) for value in load(log, profile).iter_served() if value.group != "later"
    }


@pytest.mark.parametrize("profile", [MODERN, CLASSIC], ids=lambda profile: profile.name)
def test_a_brokers_rounds_over_what_is_left_bring_nothing_deleted_back(profile: Profile) -> None:
    log = LogBuilder().commit(1).commit(2, partition=1).commit(None, partition=1).commit(None).log
    made = deep(log)
    assert after_rounds(made.log, checkpoint(made), profile) == set()


@given(st.integers(0, 1 << 30))
@examples(12)
def test_a_brokers_rounds_over_what_is_left_answer_nothing_else_than_over_the_log(seed: int) -> None:
    """Or than the log itself: what is left may outlast a round that loses some of the log's answers (``L-19``)."""
    log = random_log(seed)
    made = deep(log)
    for profile in (MODERN, CLASSIC):
        before = {(*value.key, value.committed_offset) for value in load(log, profile).iter_served()}
        after = after_rounds(made.log, checkpoint(made), profile)
        assert after <= before | after_rounds(log, 0, profile), profile.name


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
    segment = replace(LogBuilder().log.segments[0], contents=bytes(raw))
    with pytest.raises(OffsetsLogError, match="checksum"):
        deep(PartitionLog(0, (segment,), beside={f"{0:020}.index": lambda: b""}))
