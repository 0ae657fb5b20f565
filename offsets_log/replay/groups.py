"""What the records of a group do to it: the fold of a group's timeline, one branch a record type.

The classic group (``replay.md`` §J.3, §L.5):

* An offset value of a group that does not exist makes a *simple* group, whatever becomes of the value (``J-6``,
  ``B-3``, ``B-17``); the Scala coordinator does so once all is read (``L-36``, see `coordinator_state`).
* A type 2 value replaces whatever has that id (``J-14``, ``L-20``); a tombstone removes it (``J-15``, ``L-20``).
  Two rows with one instance id end the load (``L-31``), of one member too; else of members with the same id the last is
  kept (``B-6``). Once the tombstone is cleaned away, the offsets before it make a simple group (``C-22``).

The newer kinds (§J.4), of which the Scala coordinator knows nothing (``L-21``), record by record in the log's order
(``J-4``), which cleaning keeps (``C-23``) and no other program may change (``J-22``):

* Any value creates its group, also in the place of a simple one where the release does that (``J-19``, ``B-1``). A
  tombstone for a group or member that is not there is ignored, before 4.0 it ends the load (``J-18``).
* Tombstones have an order (``J-17``): of the current assignment before the member, of targets before their epoch, of
  all these before the group. Another order ends the load.
* A partition has one owner (``J-20``).

What ends a load is a `ReplayError` with its rule; `replay_timeline` notes it, leaves that record out and goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from offsets_log.errors import ReplayError
from offsets_log.messages.registry import CoordinatorRecord
from offsets_log.replay.group import CLASSIC, CONSUMER, NO_EPOCH, SHARE, STREAMS, Group, Member
from offsets_log.replay.problem import Problem
from offsets_log.replay.profile import Profile
from offsets_log.replay.timeline import Timeline
from offsets_log.words import counted

GROUP_METADATA = 2


def replay_timeline(group_id: str, timeline: Timeline, profile: Profile) -> tuple[Group | None, list[Problem]]:
    """What the group is once its records are replayed, and what a load would have stumbled over."""
    fold = GroupFold(group_id, profile)
    problems: list[Problem] = []
    for event in timeline.events:
        if event.record is None:
            fold.saw_offset()
            continue
        try:
            fold.replay(event.record)
        except ReplayError as error:
            problems.append(Problem(event.record_offset, error.rule, error.problem, group_id))
    return fold.group, problems


class GroupFold:
    """One group on its way through its records, one by one.

    Attributes:
        group: what it is now; None while it does not exist.
    """

    def __init__(self, group_id: str, profile: Profile) -> None:
        self.group_id = group_id
        self.profile = profile
        self.group: Group | None = None

    def saw_offset(self) -> None:
        """``J-6``."""
        if self.group is None and not self.profile.offsets_make_groups:
            self.group = Group(self.group_id, CLASSIC, has_record=False)

    def replay(self, record: CoordinatorRecord) -> None:
        """One record; raises `ReplayError` where a load would end."""
        if record.record_type == GROUP_METADATA:
            self.group = None if record.value is None else classic_group(self.group_id, record.value, self.profile)
        else:
            branch = BRANCHES[record.record_type]
            group = self._existing(branch.kind, record)
            if group is not None:
                branch.replay(self, group, record)

    # ------------------------------------------------------------------------------ what stands there

    def _existing(self, kind: str, record: CoordinatorRecord) -> Group | None:
        """The group of that kind, made by a value; None where a tombstone meets nothing."""
        group = self.group
        if group is None:
            if not record.is_tombstone:
                self.group = self._new_group(kind)
            elif self.profile.tombstones_need_their_target:
                raise ReplayError(f"the group {self.group_id!r} of this tombstone does not exist", rule="J-18")
            return self.group
        if group.kind == kind:
            return group
        if group.is_simple and kind in self.profile.replaces_simple_group:
            self.group = self._new_group(kind)
            return self.group
        raise ReplayError(f"the group {self.group_id!r} is not a {kind} group but a {group.kind} one", rule="J-19")

    def _new_group(self, kind: str) -> Group:
        first = self.profile.first_epoch
        return Group(self.group_id, kind, group_epoch=first, assignment_epoch=first)

    def existing_member(self, group: Group, record: CoordinatorRecord) -> Member | None:
        """The member of the key; None where a tombstone meets nothing."""
        member_id = record.key["member_id"]
        if member_id not in group.members and self.profile.tombstones_need_their_target:
            raise ReplayError(f"the member {member_id!r} of this tombstone does not exist", rule="J-18")
        return group.members.get(member_id)


# ------------------------------------------------------------------------------------------------ type 2


def classic_group(group_id: str, value: dict[str, Any], profile: Profile) -> Group:
    """The group a type 2 value says (``L-24``–``L-32``, ``J-14``)."""
    members: dict[str, Member] = {}
    instance_ids: set[str] = set()
    for row in value["members"]:
        instance_id = row.get("group_instance_id")
        if instance_id is not None and profile.refuses_duplicate_instance_ids:
            if instance_id in instance_ids:
                raise ReplayError(f"two members of {group_id!r} have the instance id {instance_id!r}", rule="L-31")
            instance_ids.add(instance_id)
        members[row["member_id"]] = Member(row["member_id"], metadata=row)
    timestamp = value.get("current_state_timestamp", -1)
    leader = value["leader"]
    if leader is None and value["members"]:
        leader = value["members"][0]["member_id"]  # L-26
    return Group(
        group_id,
        CLASSIC,
        members=members,
        protocol_type=value["protocol_type"] or None,
        protocol=value["protocol"],
        leader=leader,
        generation=value["generation"],
        current_state_timestamp_ms=None if timestamp == -1 else timestamp,
    )


# ------------------------------------------------------------------------------------- the newer kinds


def replay_metadata(fold: GroupFold, group: Group, record: CoordinatorRecord) -> None:
    """Types 3, 11, 17: the group's epoch; their tombstone removes the group."""
    if record.value is not None:
        group.group_epoch = record.value["epoch"]
        group.validated_topology_epoch = record.value.get("validated_topology_epoch", NO_EPOCH)
        return
    if group.members:
        raise ReplayError(
            f"the group {fold.group_id!r} is removed but has {counted(len(group.members), 'member')}", rule="J-17"
        )
    if group.targets:
        raise ReplayError(f"the group {fold.group_id!r} is removed but has target assignments", rule="J-17")
    if group.assignment_epoch != NO_EPOCH:
        raise ReplayError(f"the group {fold.group_id!r} is removed but has an assignment epoch", rule="J-17")
    fold.group = None


def replay_member(fold: GroupFold, group: Group, record: CoordinatorRecord) -> None:
    """Types 5, 10, 19: a member; the tombstone comes after that of its current assignment."""
    member_id = record.key["member_id"]
    if record.value is not None:
        group.members.setdefault(member_id, Member(member_id)).metadata = record.value
        return
    member = fold.existing_member(group, record)
    if member is None:
        return
    if member.member_epoch != NO_EPOCH:
        raise ReplayError(f"the member {member_id!r} is removed but has an epoch", rule="J-17")
    if member_id in group.targets:
        raise ReplayError(f"the member {member_id!r} is removed but has a target assignment", rule="J-17")
    del group.members[member_id]


def replay_target_metadata(fold: GroupFold, group: Group, record: CoordinatorRecord) -> None:
    """Types 6, 12, 20: the epoch of the target assignment."""
    if record.value is not None:
        group.assignment_epoch = record.value["assignment_epoch"]
    elif group.targets:
        raise ReplayError("the target assignment is removed but has members left", rule="J-17")
    else:
        group.assignment_epoch = NO_EPOCH


def replay_target_member(fold: GroupFold, group: Group, record: CoordinatorRecord) -> None:
    """Types 7, 13, 21: what a member shall get."""
    if record.value is not None:
        group.targets[record.key["member_id"]] = record.value
    else:
        group.targets.pop(record.key["member_id"], None)


def replay_current(fold: GroupFold, group: Group, record: CoordinatorRecord) -> None:
    """Types 8, 14, 22: what a member has."""
    member_id = record.key["member_id"]
    if record.value is None:
        member = fold.existing_member(group, record)
        if member is not None:
            _release_partitions(fold.profile, group, member)
            member.member_epoch = NO_EPOCH
            member.current = {}
        return
    if member_id not in group.members and fold.profile.tombstones_need_their_target:
        raise ReplayError(f"the member {member_id!r} of this assignment does not exist", rule="J-18")
    member = group.members.get(member_id) or Member(member_id)
    _release_partitions(fold.profile, group, member)
    _take_partitions(fold.profile, group, record.value)
    group.members[member_id] = member
    member.current = record.value
    member.member_epoch = record.value["member_epoch"]


def _release_partitions(profile: Profile, group: Group, member: Member) -> None:
    """``J-20``: up to 4.1 a partition must be given back at the epoch it was taken."""
    if group.kind != CONSUMER:
        return
    for partition in member.owned_partitions():
        epoch = group.partition_epochs.get(partition)
        if epoch == member.member_epoch:
            del group.partition_epochs[partition]
        elif profile.partitions_have_one_owner:
            raise ReplayError(f"a partition is given back at epoch {member.member_epoch}, held at {epoch}", rule="J-20")


def _take_partitions(profile: Profile, group: Group, value: dict[str, Any]) -> None:
    """``J-20``: held by nobody else, or from 4.2 on by somebody at a lower epoch."""
    if group.kind != CONSUMER:
        return
    epoch = value["member_epoch"]
    for partition in Member("", current=value).owned_partitions():
        held = group.partition_epochs.get(partition)
        if held is not None and (profile.partitions_have_one_owner or held >= epoch):
            raise ReplayError(f"a partition is taken at epoch {epoch} but held at epoch {held}", rule="J-20")
        group.partition_epochs[partition] = epoch


def replay_regular_expression(fold: GroupFold, group: Group, record: CoordinatorRecord) -> None:
    """Type 16: what a regular expression resolved to."""
    if record.value is not None:
        group.regular_expressions[record.key["regular_expression"]] = record.value
    else:
        group.regular_expressions.pop(record.key["regular_expression"], None)


def replay_topology(fold: GroupFold, group: Group, record: CoordinatorRecord) -> None:
    """Type 23: the topology of a streams group."""
    group.topology = record.value


def replay_existence(fold: GroupFold, group: Group, record: CoordinatorRecord) -> None:
    """Types 4, 9, 15: nothing of them is part of a group's answers, but they need their group."""


@dataclass(frozen=True, slots=True)
class Branch:
    """What a record type does to a group of its kind that stands there."""

    kind: str
    replay: Callable[[GroupFold, Group, CoordinatorRecord], None]


BRANCHES: dict[int, Branch] = {
    3: Branch(CONSUMER, replay_metadata),
    4: Branch(CONSUMER, replay_existence),
    5: Branch(CONSUMER, replay_member),
    6: Branch(CONSUMER, replay_target_metadata),
    7: Branch(CONSUMER, replay_target_member),
    8: Branch(CONSUMER, replay_current),
    9: Branch(SHARE, replay_existence),
    10: Branch(SHARE, replay_member),
    11: Branch(SHARE, replay_metadata),
    12: Branch(SHARE, replay_target_metadata),
    13: Branch(SHARE, replay_target_member),
    14: Branch(SHARE, replay_current),
    15: Branch(SHARE, replay_existence),
    16: Branch(CONSUMER, replay_regular_expression),
    17: Branch(STREAMS, replay_metadata),
    19: Branch(STREAMS, replay_member),
    20: Branch(STREAMS, replay_target_metadata),
    21: Branch(STREAMS, replay_target_member),
    22: Branch(STREAMS, replay_current),
    23: Branch(STREAMS, replay_topology),
}
