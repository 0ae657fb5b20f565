"""Timelines of what kernels chose of a log: records of other groups are passed by, and only holes in them matter."""

from __future__ import annotations

import pytest

from offsets_log.events import BareBatches, BareRecord, LogEvent, Passed
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.partition_log import Segment
from offsets_log.messages.registry import CoordinatorRecord, encode_coordinator_record
from offsets_log.messages.repeated import RepeatedRecords
from offsets_log.rebalance.rows import remarks
from offsets_log.rebalance.timeline import Timelines
from tests.rebalance.test_timeline import commit_of, generation

SEGMENT = Segment("made.log", 0, b"")


def chosen(offset: int, record: CoordinatorRecord) -> BareRecord:
    key, value = encode_coordinator_record(record)
    return bare_record(offset, key, value)


def bare_record(offset: int, key: bytes, value: bytes | None) -> BareRecord:
    return BareRecord(offset, 10 * offset, key, value, since=offset, has_holes=False, batch_begin=0, batch_end=1)


def bare(*records: Passed | BareRecord) -> BareBatches:
    """A batch of offsets partition 3 that nobody needs whole."""

    def whole(record: BareRecord) -> RecordBatch:
        raise AssertionError("it is asked for nothing more")

    return BareBatches(3, SEGMENT, iter(records), RepeatedRecords(), whole)


@pytest.mark.parametrize(
    ("passed", "offset", "is_certain"),
    [
        ([Passed(1, 4, False)], 4, True),
        ([Passed(1, 4, False), Passed(4, 9, False)], 9, True),
        ([], 1, True),
        ([Passed(1, 4, True)], 4, False),
        ([Passed(2, 4, False)], 4, False),
        ([Passed(1, 4, False)], 5, False),
        ([Passed(1, 4, False), Passed(5, 9, False)], 9, False),
        ([], 2, False),
    ],
)
@pytest.mark.parametrize("is_inside", [True, False])
def test_only_a_hole_may_have_been_a_generation_that_was_cleaned_away(
    passed: list[Passed], offset: int, is_certain: bool, is_inside: bool
) -> None:
    """Before, in or behind what was passed by, as a batch of its own or in the one that is read (``W-14``)."""
    first, later = chosen(0, generation(1, "a")), chosen(offset, generation(3, "a"))
    events: list[LogEvent] = [bare(first), bare(*passed, later)] if is_inside else [bare(first), *passed, bare(later)]
    timelines = Timelines()
    timelines.read(events, lambda damage: None)
    one, three = timelines
    assert (one.offsets_partition, one.record_offset, three.timestamp_ms) == (3, 0, 10 * offset)
    assert (three.skipped, three.skipped_certainly) == ((2,), is_certain)
    assert remarks(three) == ["2 never synced" if is_certain else "2 never synced, or cleaned away"]


def test_what_a_batch_comes_to_is_known_at_its_end() -> None:
    """A group that is removed and made again in one batch has not been away."""
    gone = CoordinatorRecord(record_type=2, key={"group": "g"})
    timelines = Timelines()
    first, again = chosen(0, generation(1, "a")), chosen(2, generation(1, "b"))
    timelines.read([bare(first), bare(chosen(1, gone), again), bare(chosen(3, gone))], lambda damage: None)
    assert [(entry.number, entry.state) for entry in timelines] == [(1, "Stable"), (1, "Stable"), (None, "Dead")]


def test_records_that_are_not_wanted_leave_no_hole() -> None:
    commit = bare_record(1, b"\0\1", b"")
    timelines = Timelines()
    events = [bare(chosen(0, generation(1, "a")), commit, chosen(2, generation(3, "a")))]
    timelines.read(events, lambda damage: None)
    assert [entry.skipped_certainly for entry in timelines] == [True, True]


def test_groups_that_are_not_shown_have_no_entries_and_name_topics_all_the_same() -> None:
    """Names of topics are of the whole log."""
    timelines = Timelines(shows_group=lambda group: group == "other")
    topic_id = bytes(range(16))
    timelines.read([bare(chosen(0, generation(1, "a")), chosen(1, commit_of("t", topic_id)))], lambda damage: None)
    assert ([*timelines], timelines.topic_names) == ([], {topic_id: "t"})
