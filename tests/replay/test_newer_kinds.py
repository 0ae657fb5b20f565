"""Each record type of the newer kinds acts on groups of its kind, and its tombstone takes back what it did."""

from __future__ import annotations

from typing import Any

import pytest

from offsets_log.messages.registry import RECORD_TYPES
from offsets_log.replay.coordinator_state import CoordinatorState
from offsets_log.replay.profile import MODERN, PROFILES, RELEASES
from tests.builders import LogBuilder, record_bytes

KINDS = {
    **dict.fromkeys((3, 5, 6, 7, 16), "consumer"),
    **dict.fromkeys((10, 11, 12, 13), "share"),
    **dict.fromkeys((17, 19, 20, 21, 23), "streams"),
}
"""Types whose value alone makes a group; one of 8, 14 or 22 takes a member more."""
MEMBERS = {5: 8, 10: 14, 19: 22}
"""Type of a member → type of its current assignment."""


def key_of(record_type: int) -> dict[str, Any]:
    more = {16: {"regular_expression": "t.*"}} | {of: {"member_id": "m"} for of in (5, 7, 8, 10, 13, 14, 19, 21, 22)}
    return {"group_id": "g", **more.get(record_type, {})}


def value_of(record_type: int, facts: dict[str, Any] | None) -> dict[str, Any] | None:
    """A value with these facts, otherwise the smallest."""
    if facts is None:
        return None
    layout = next(RECORD_TYPES[record_type].layouts(0))
    return layout.zeros(0) | {row.name: None for row in layout.fields if row.nullable and row.tag is None} | facts


def load(*records: tuple[int, dict[str, Any] | None]) -> CoordinatorState:
    built = LogBuilder()
    for record_type, value in records:
        built.add(record_bytes(record_type, key_of(record_type), value_of(record_type, value), 0))
    return built.load(MODERN)


@pytest.mark.parametrize(("release", "epoch"), [("4.2", 0), ("4.3", 1)])
@pytest.mark.parametrize("record_type", [5, 7, 10, 13, 19, 21])
def test_a_group_has_epochs_from_its_first_record_on(record_type: int, release: str, epoch: int) -> None:
    built = LogBuilder().add(record_bytes(record_type, key_of(record_type), value_of(record_type, {}), 0))
    group = built.load(RELEASES[release]).groups["g"]
    assert (group.group_epoch, group.assignment_epoch) == (epoch, epoch)


@pytest.mark.parametrize("record_type", KINDS)
def test_a_value_makes_a_group_of_its_kind(record_type: int) -> None:
    assert load((record_type, {})).groups["g"].kind == KINDS[record_type]


@pytest.mark.parametrize("record_type", MEMBERS)
def test_a_member_comes_with_its_own_type_and_goes_after_its_current_assignment(record_type: int) -> None:
    """Members are added by types 5, 10 and 19 (``J-4``), and go behind tombstones of 8, 14 and 22 (``J-17``)."""
    current = MEMBERS[record_type]
    came = [(record_type, {"client_id": "c"}), (current, {"member_epoch": 3})]
    member = load(*came).groups["g"].members["m"]
    assert (member.metadata["client_id"], member.member_epoch, member.current["member_epoch"]) == ("c", 3, 3)
    assert load(*came, (current, None), (record_type, None)).groups["g"].members == {}
    failure = load(*came, (record_type, None)).failure
    assert failure is not None
    assert failure.rule == "J-17"


@pytest.mark.parametrize(("metadata", "target", "target_member"), [(3, 6, 7), (11, 12, 13), (17, 20, 21)])
def test_epochs_and_targets_of_each_kind(metadata: int, target: int, target_member: int) -> None:
    """The group's epoch, that of its target assignment, and the targets each have their type (``J-4``)."""
    came = [(metadata, {"epoch": 5}), (target, {"assignment_epoch": 4}), (target_member, {})]
    group = load(*came).groups["g"]
    assert (group.group_epoch, group.assignment_epoch, list(group.targets)) == (5, 4, ["m"])
    gone = [(target_member, None), (target, None), (metadata, None)]
    assert load(*came, *gone[:1]).groups["g"].targets == {}
    assert load(*came, *gone).groups == {}


@pytest.mark.parametrize("record_type", [4, 9, 15])
def test_types_that_answer_nothing_need_a_group_to_end(record_type: int) -> None:
    """Their tombstones are ignored where the group does not exist, or where it does (``J-18``)."""
    assert load((record_type, None)).problems == ()


def test_the_first_preview_alone_writes_states_in_lower_case() -> None:
    """``B-15``."""
    assert [name for name, profile in PROFILES.items() if profile.lower_case_states] == ["modern-3.7"]


def rule_of_failure(*records: tuple[int, dict[str, Any] | None]) -> str | None:
    failure = load(*records).failure
    return None if failure is None else failure.rule


@pytest.mark.parametrize("epoch", [-3, -2, -1, 0, 1])
def test_minus_one_alone_is_no_epoch(epoch: int) -> None:
    """``J-17``: a static member that is away has −2, and is a member all the same."""
    rule = None if epoch == -1 else "J-17"
    for metadata, target in ((3, 6), (11, 12), (17, 20)):
        of_targets = (target, {"assignment_epoch": epoch})
        assert rule_of_failure((metadata, {"epoch": 5}), of_targets, (metadata, None)) == rule
    for member, current in MEMBERS.items():
        assert rule_of_failure((member, {}), (current, {"member_epoch": epoch}), (member, None)) == rule


def test_a_log_of_nothing_has_nothing_and_begins_at_0() -> None:
    for profile in PROFILES.values():
        state = LogBuilder().load(profile)
        assert (state.end_offset, state.groups, state.committed, state.problems) == (0, {}, (), ())


def test_a_classic_group_has_nothing_of_the_newer_kinds() -> None:
    """Whether it has a record or exists by its offsets alone."""
    for built in (LogBuilder().group(), LogBuilder().commit(5)):
        group = built.load(MODERN).groups["g"]
        assert (group.group_epoch, group.assignment_epoch, group.validated_topology_epoch) == (0, 0, -1)
        assert not any((group.targets, group.regular_expressions, group.topology, group.partition_epochs))
