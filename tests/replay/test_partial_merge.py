"""Check that partial states join: a log split anywhere and merged in any grouping is the log replayed at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offsets_log.log_format.primitives import ZERO_UUID
from offsets_log.messages.registry import CoordinatorRecord
from offsets_log.pipeline import iter_events, replay
from offsets_log.replay.coordinator_state import CoordinatorState, finish
from offsets_log.replay.partial import EndTransactionMarker, PartialState, offset_and_metadata
from offsets_log.replay.problem import Problem
from offsets_log.replay.profile import CLASSIC, PROFILES, Profile
from tests.conftest import RECORDINGS, read_partitions
from tests.sizes import examples

Step = Callable[[PartialState], None]


def commit(group: str, partition: int, offset: int, producer_id: int) -> Step:
    record = CoordinatorRecord(
        record_type=1,
        key={"group": group, "topic": "t", "partition": partition},
        value_version=4,
        value={
            "offset": offset * 10,
            "leader_epoch": -1,
            "metadata": "",
            "commit_timestamp": offset,
            "topic_id": ZERO_UUID,
        },
    )
    value = offset_and_metadata(record, offset, producer_id, 0)
    return lambda state: state.add_offset(value, producer_id != -1)


def tombstone(group: str, partition: int, offset: int, producer_id: int) -> Step:
    return lambda state: state.add_tombstone((group, "t", partition), offset, producer_id, producer_id != -1)


def marker(offset: int, producer_id: int, is_commit: bool) -> Step:
    return lambda state: state.add_marker(producer_id, EndTransactionMarker(is_commit, offset))


def beside_records(offset: int, what: str) -> Step:
    """Return what is noted that neither an offset nor a group is: where the log ends, a problem, a topic's name."""
    problem = Problem(offset, "J-3", "it cannot be decoded")

    def step(state: PartialState) -> None:
        match what:
            case "end":
                state.end_offset = max(state.end_offset, offset)
            case "problem":
                state.problems.append(problem)
            case name:
                state.add_topic_name(ZERO_UUID, name, offset)

    return step


MEMBER_ROW = {"member_id": "m", "group_instance_id": None, "subscription": b"", "assignment": b""}
TOPIC = ZERO_UUID
VALUES: dict[int, tuple[dict[str, object], ...]] = {
    2: tuple(
        {"protocol_type": kind, "generation": 1, "protocol": None, "leader": None, "members": members}
        for kind, members in (("", []), ("consumer", []), ("consumer", [MEMBER_ROW]))
    ),
    3: ({"epoch": 2},),
    5: ({"instance_id": None},),
    6: ({"assignment_epoch": 2},),
    7: ({"topic_partitions": []},),
    8: tuple(
        {
            "member_epoch": epoch,
            "previous_member_epoch": 0,
            "state": 0,
            "assigned_partitions": [{"topic_id": TOPIC, "partitions": [0]}],
            "partitions_pending_revocation": [],
        }
        for epoch in (1, 2)
    ),
    11: ({"epoch": 1},),
    14: ({"member_epoch": 1, "previous_member_epoch": 0, "state": 0, "assigned_partitions": []},),
    17: ({"epoch": 1, "validated_topology_epoch": 0},),
    22: ({"member_epoch": 1, "previous_member_epoch": 0, "state": 1},),
    23: ({"epoch": 0, "subtopologies": []},),
}


def group_record(group: str, offset: int, record_type: int, member_id: str, choice: int) -> Step:
    """Return a group record; a tombstone for choice 0."""
    values = VALUES[record_type]
    key = {"group": group} if record_type == 2 else {"group_id": group, "member_id": member_id}
    value = None if choice == 0 else values[choice % len(values)]
    record = CoordinatorRecord(
        record_type=record_type, key=key, value=value, value_version=None if value is None else 0
    )
    return lambda state: state.add_group_record(record, offset)


GROUPS = st.sampled_from(("g", "h"))
PARTITIONS = st.integers(0, 1)
PRODUCERS = st.sampled_from((-1, 0, 7, 8))
SHAPES = st.one_of(
    st.tuples(st.just(commit), GROUPS, PARTITIONS, PRODUCERS),
    st.tuples(st.just(tombstone), GROUPS, PARTITIONS, PRODUCERS),
    st.tuples(st.just(marker), st.sampled_from((7, 8)), st.booleans()),
    st.tuples(st.just(beside_records), st.sampled_from(("end", "problem", "t", "u"))),
    st.tuples(st.just(group_record), GROUPS, st.sampled_from(sorted(VALUES)), st.sampled_from("mn"), st.integers(0, 3)),
)


def steps_of(shapes: Sequence[tuple[object, ...]]) -> list[Step]:
    """Give shapes ascending record offsets."""
    steps: list[Step] = []
    for offset, (make, *facts) in enumerate(shapes):
        if make in (commit, tombstone):
            group, partition, producer_id = facts
            steps.append(make(group, partition, offset, producer_id))
        elif make is beside_records:
            steps.append(beside_records(offset, *facts))
        elif make is marker:
            producer_id, is_commit = facts
            steps.append(marker(offset, producer_id, is_commit))
        else:
            group, record_type, member_id, choice = facts
            steps.append(group_record(group, offset, record_type, member_id, choice))
    return steps


def run(profile: Profile, steps: Sequence[Step]) -> PartialState:
    state = PartialState(profile)
    for step in steps:
        step(state)
    return state


def facts_of(state: CoordinatorState) -> tuple[object, ...]:
    return (
        sorted(state.groups.items()),
        (state.problems, state.topic_names, state.end_offset),
        sorted((value.key, value.record_offset, value.applied_offset) for value in state.committed),
        sorted((value.key, value.record_offset, value.producer_id) for value in state.pending),
    )


def test_what_is_noted_beside_offsets_and_groups_merges_to_the_whole() -> None:
    """Of two names of a topic the later one counts; a piece may end where the one before did."""
    whats = ("end", "t", "problem", "u", "problem", "end", "t")
    steps = [beside_records(offset, what) for offset, what in enumerate(whats)]
    whole = finish(run(CLASSIC, steps))
    assert [problem.record_offset for problem in whole.problems] == [2, 4]
    assert (whole.topic_names, whole.end_offset) == ({ZERO_UUID: "t"}, 5)
    for at in range(len(steps) + 1):
        assert facts_of(finish(run(CLASSIC, steps[:at]).merge(run(CLASSIC, steps[at:])))) == facts_of(whole)


def test_what_a_producer_cancels_behind_its_first_marker_is_of_no_earlier_run() -> None:
    """The marker has applied the value of the run before; the tombstone comes after it (``L-18``)."""
    first = run(CLASSIC, [commit("g", 0, 0, 7)])
    second = run(CLASSIC, [marker(1, 7, True), tombstone("g", 0, 2, 7)])
    assert [value.record_offset for value in finish(first.merge(second)).committed] == [0]


def test_what_a_producer_cancels_without_a_marker_is_told_on_to_the_run_before() -> None:
    """A cancellation without a marker reaches the run before, whichever runs are joined first (``L-18``)."""
    pieces = ([commit("g", 0, 0, 7)], [commit("g", 1, 1, 7)], [tombstone("g", 0, 2, 7), marker(3, 7, True)])
    first, second, third = (run(CLASSIC, piece) for piece in pieces)
    assert [value.key for value in finish(first.merge(second.merge(third))).committed] == [("g", "t", 1)]


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_a_tombstone_with_an_offset_of_batches_before_it_ends_what_the_run_before_has(profile: Profile) -> None:
    """``records:M5``: an old message in a wrapper may have any offset, 0 too."""
    for offset, value_producer, tombstone_producer in product((0, 1, 5, 9), (-1, 7), (-1, 7)):
        steps = [
            commit("g", 0, 5, value_producer),
            tombstone("g", 0, offset, tombstone_producer),
            marker(10, 7, True),
        ]
        whole = facts_of(finish(run(profile, steps)))
        for at in (1, 2):
            assert facts_of(finish(run(profile, steps[:at]).merge(run(profile, steps[at:])))) == whole


OF_ONE_KEY: tuple[Callable[[int], Step], ...] = (
    lambda at: commit("g", 0, at, -1),
    lambda at: commit("g", 0, at, 7),
    lambda at: tombstone("g", 0, at, -1),
    lambda at: tombstone("g", 0, at, 7),
    lambda at: marker(at, 7, True),
    lambda at: marker(at, 7, False),
)


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_every_short_run_of_one_key_and_producer_merges_to_the_whole(profile: Profile) -> None:
    """All runs of four steps, cut into three pieces: cancelled, ended and superseded values of all kinds."""
    for shapes in product(OF_ONE_KEY, repeat=4):
        steps = [shape(offset) for offset, shape in enumerate(shapes)]
        whole = facts_of(finish(run(profile, steps)))
        for first, second in combinations((1, 2, 3), 2):
            a, b, c = (run(profile, piece) for piece in (steps[:first], steps[first:second], steps[second:]))
            assert facts_of(finish(a.merge(b.merge(c)))) == whole


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
@examples(120)
@given(shapes=st.lists(SHAPES, max_size=30), cuts=st.tuples(st.integers(0, 30), st.integers(0, 30)))
def test_merge_of_any_three_pieces_equals_the_whole_in_both_groupings(
    profile: Profile, shapes: list[tuple[object, ...]], cuts: tuple[int, int]
) -> None:
    steps = steps_of(shapes)
    first, second = sorted(cuts)
    pieces = (steps[:first], steps[first:second], steps[second:])
    whole = facts_of(finish(run(profile, steps)))
    a, b, c = (run(profile, piece) for piece in pieces)
    assert facts_of(finish(a.merge(b).merge(c))) == whole
    a, b, c = (run(profile, piece) for piece in pieces)
    assert facts_of(finish(a.merge(b.merge(c)))) == whole


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
@examples(100)
@given(shapes=st.lists(SHAPES, max_size=24))
def test_merge_of_single_records_equals_the_whole(profile: Profile, shapes: list[tuple[object, ...]]) -> None:
    steps = steps_of(shapes)
    merged = PartialState(profile)
    for step in steps:
        merged.merge(run(profile, [step]))
    assert facts_of(finish(merged)) == facts_of(finish(run(profile, steps)))


@pytest.mark.parametrize("name", [name for name in RECORDINGS if name not in ("load-fails", "random-scala")])
def test_recorded_logs_split_at_every_seventh_record_merge_to_the_whole(
    name: str, recording: Callable[[str], Path]
) -> None:
    for log in read_partitions(recording(name) / "log").values():
        events = list(iter_events(log))
        for profile in PROFILES.values():
            whole = finish(replay(events, profile, on_damage=lambda damage: None))
            merged = PartialState(profile)
            for at in range(0, len(events), 7):
                # A piece may begin inside a control batch, which classic reads the first record of only; broker-made
                # ones have one record.
                merged.merge(replay(events[at : at + 7], profile, on_damage=lambda damage: None))
            assert facts_of(finish(merged)) == facts_of(whole)
