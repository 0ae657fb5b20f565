"""Apply the records of a group to it: the fold of a group's timeline, with one branch for each record type.

The classic group:

* An offset value of a group that does not exist creates a *simple* group, whatever becomes of the value (``J-6``,
  ``B-3``, ``B-17``); the Scala coordinator does so once the whole log is read (``L-36``, see `coordinator_state`).
* A type 2 value replaces whatever group has that id (``J-14``, ``L-20``); a tombstone removes it (``J-15``, ``L-20``).
  Two rows with one instance id end the load (``L-31``), even rows of one member, as does a consumer's subscription with
  a length that cannot be (``B-18``); of rows with the same member id the last is kept (``B-6``). Once the tombstone is
  cleaned away, the offsets before it create a simple group (``C-22``).

The newer kinds are unknown to the Scala coordinator (``L-21``). Their records are applied in the order of the
log (``J-4``), which cleaning preserves (``C-23``) and no other program may change (``J-22``):

* Any value creates its group, and replaces a simple one where the release does that (``J-19``, ``B-1``). A tombstone
  for a group or member that does not exist is ignored; before 4.0 it ends the load (``J-18``).
* Tombstones have an order (``J-17``): the current assignment's before the member's, the targets' before their epoch's,
  and all of these before the group's. Any other order ends the load.
* A partition has one owner (``J-20``).
* At the end a member of a streams group that has yet to give tasks back needs its own record (``J-25``).

A record that ends a load raises a `ReplayError` with its rule; `GroupFold.go_on` notes it, skips the record and goes
on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any

from offsets_log.errors import ReplayError
from offsets_log.messages.consumer_protocol import refusal_of_subscription
from offsets_log.messages.registry import CoordinatorRecord
from offsets_log.replay.group import (
    CLASSIC,
    CONSUMER,
    NO_EPOCH,
    SHARE,
    STREAMS,
    TOPOLOGY_EPOCHS,
    UNREVOKED_TASKS,
    Group,
    Member,
    TopicPartition,
    simple_group,
)
from offsets_log.replay.partial import NO_OFFSET
from offsets_log.replay.problem import Problem
from offsets_log.replay.profile import Profile
from offsets_log.replay.timeline import Timeline
from offsets_log.words import counted

GROUP_METADATA = 2
CONSUMERS = "consumer"
"""The protocol type of groups whose subscriptions coordinators read."""


def replay_timeline(group_id: str, timeline: Timeline, profile: Profile) -> tuple[Group | None, list[Problem]]:
    """Return the group once all its records are replayed, and the problems a load would have met."""
    fold = GroupFold(group_id, profile)
    problems = fold.go_on(timeline)
    return fold.group, [*problems, *fold.problems_at_end()]


def add_simple_groups(groups: dict[str, Group], profile: Profile, with_offsets: Iterable[str]) -> None:
    """Add the groups that offsets make once the whole log is read, where the release does that (``L-36``).

    Args:
        with_offsets: names of groups that have committed offsets, or offsets in open transactions.
    """
    if profile.offsets_make_groups:
        for group_id in with_offsets:
            groups.setdefault(group_id, simple_group(group_id))


class GroupFold:
    """The state of one group while its records are replayed one by one.

    Attributes:
        group: the group so far; None while it does not exist.
        record_offset: of the record that `go_on` replays.
        current_at: member id → where its current assignment stands, as far as `go_on` has read it.
    """

    def __init__(self, group_id: str, profile: Profile) -> None:
        self.group_id = group_id
        self.profile = profile
        self.group: Group | None = None
        self.current_at: dict[str, int] = {}
        self.record_offset = NO_OFFSET

    @property
    def is_answered(self) -> bool:
        """Whether committed offsets are answered: the group exists (``J-15``), or they make it exist (``L-36``)."""
        return self.group is not None or self.profile.offsets_make_groups

    def saw_offset(self) -> None:
        """Replay an offset value, which creates the group if it does not exist (``J-6``)."""
        if not self.is_answered:
            self.group = simple_group(self.group_id)

    def go_on(self, timeline: Timeline) -> list[Problem]:
        """Replay the records that follow, and return the problems a load would have met."""
        problems: list[Problem] = []
        for event in timeline.events:
            if event.record is None:
                self.saw_offset()
                continue
            try:
                self.record_offset = event.record_offset
                self.replay(event.record)
            except ReplayError as error:
                problems.append(Problem(event.record_offset, error.rule, error.problem, self.group_id))
        return problems

    def problems_at_end(self) -> list[Problem]:
        """Return what ends a load unless more records come: members without the time to give tasks back (``J-25``)."""
        if self.group is None or self.group.kind != STREAMS:
            return []
        return [
            Problem(
                self.current_at.get(member_id, NO_OFFSET), "J-25",
                f"the member {member_id!r} has no rebalance timeout: it has no record of its own", self.group_id,
            )
            for member_id, member in self.group.members.items()
            if not member.metadata and member.current.get("state") == UNREVOKED_TASKS
        ]  # fmt: skip

    def replay(self, record: CoordinatorRecord) -> None:
        """Replay one record, unless the release skips its type. Raises `ReplayError` where a load would end."""
        if self.profile.skips(record.record_type):
            return
        if record.record_type == GROUP_METADATA:
            value, before = record.value, self.group
            self.group = None if value is None else classic_group(self.group_id, value, self.profile, before)
        else:
            branch = BRANCHES[record.record_type]
            group = self._existing(branch.kind, record)
            if group is not None:
                branch.replay(self, group, record)

    # ------------------------------------------------------------------------------ what exists

    def _existing(self, kind: str, record: CoordinatorRecord) -> Group | None:
        """Return the existing group of that kind, created by a value; None where a tombstone finds none.

        Raises:
            ReplayError: the group is of another kind (``J-19``), or the release does not accept the tombstone
                (``J-18``).
        """
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
        first, validated = self.profile.first_epoch, self.profile.first_validated_topology_epoch
        return Group(self.group_id, kind, group_epoch=first, assignment_epoch=first, validated_topology_epoch=validated)

    def existing_member(self, group: Group, record: CoordinatorRecord) -> Member | None:
        """Return the member of the record's key, or None if it does not exist. Raises `ReplayError` (``J-18``)."""
        member_id = record.key["member_id"]
        if member_id not in group.members and self.profile.tombstones_need_their_target:
            raise ReplayError(f"the member {member_id!r} of this tombstone does not exist", rule="J-18")
        return group.members.get(member_id)


# ------------------------------------------------------------------------------------------------ type 2


def classic_group(group_id: str, value: dict[str, Any], profile: Profile, before: Group | None = None) -> Group:
    """Build the group that a type 2 value describes (``L-24``–``L-32``, ``J-14``). Raises `ReplayError`.

    Args:
        before: the group so far; if its record has the very same rows, it is not asked again who its members are.
    """
    rows = value["members"]
    same = before if before is not None and before.rows is rows else None
    members = _classic_members(group_id, rows, profile) if same is None else same.members
    is_known = same is not None and _has_topics(same.protocol_type, same.protocol)
    if profile.refuses_subscriptions and _has_topics(value["protocol_type"], value["protocol"]) and not is_known:
        _find_topics(group_id, members)
    timestamp = value.get("current_state_timestamp", -1)
    leader = value["leader"]
    if leader is None and rows:
        leader = rows[0]["member_id"]  # L-26
    return Group(
        group_id,
        CLASSIC,
        members=members,
        rows=rows,
        protocol_type=value["protocol_type"] or None,  # L-25
        protocol=value["protocol"],
        leader=leader,
        generation=value["generation"],
        current_state_timestamp_ms=None if timestamp == -1 else timestamp,
    )


def _classic_members(group_id: str, rows: list[dict[str, Any]], profile: Profile) -> dict[str, Member]:
    members: dict[str, Member] = {}
    instance_ids: set[str] = set()
    for row in rows:
        instance_id = row.get("group_instance_id")
        if instance_id is not None and profile.refuses_duplicate_instance_ids:
            if instance_id in instance_ids:
                raise ReplayError(f"two members of {group_id!r} have the instance id {instance_id!r}", rule="L-31")
            instance_ids.add(instance_id)
        members[row["member_id"]] = Member(row["member_id"], metadata=row)
    return members


def _has_topics(protocol_type: str | None, protocol: str | None) -> bool:
    return protocol_type == CONSUMERS and protocol is not None


def _find_topics(group_id: str, members: dict[str, Member]) -> None:
    """Raise `ReplayError` where a coordinator fails that looks for the topics of consumers (``B-18``)."""
    for member_id, member in members.items():
        problem = refusal_of_subscription(member.metadata["subscription"])
        if problem is not None:
            raise ReplayError(f"the subscription of {member_id!r} of {group_id!r}: {problem}", rule="B-18")


# ------------------------------------------------------------------------------------- the newer kinds


def replay_metadata(fold: GroupFold, group: Group, record: CoordinatorRecord) -> None:
    """Replay types 3, 11, 17: the group's epoch; their tombstone removes the group."""
    if record.value is not None:
        group.group_epoch = record.value["epoch"]
        for name in TOPOLOGY_EPOCHS:
            setattr(group, name, record.value.get(name, NO_EPOCH))
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
    """Replay types 5, 10, 19: a member; the tombstone comes after that of its current assignment."""
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
    """Replay types 6, 12, 20: the epoch of the target assignment."""
    if record.value is not None:
        group.assignment_epoch = record.value["assignment_epoch"]
    elif group.targets:
        raise ReplayError("the target assignment is removed but has members left", rule="J-17")
    else:
        group.assignment_epoch = NO_EPOCH


def replay_target_member(fold: GroupFold, group: Group, record: CoordinatorRecord) -> None:
    """Replay types 7, 13, 21: a member's target assignment."""
    if record.value is not None:
        group.targets[record.key["member_id"]] = record.value
    else:
        group.targets.pop(record.key["member_id"], None)


def replay_current(fold: GroupFold, group: Group, record: CoordinatorRecord) -> None:
    """Replay types 8, 14, 22: a member's current assignment."""
    member_id = record.key["member_id"]
    if record.value is None:
        fold.current_at.pop(member_id, None)
        member = fold.existing_member(group, record)
        if member is not None:
            _release_partitions(fold.profile, group, member)
            member.member_epoch = NO_EPOCH
            member.current, member.owned = {}, []
        return
    if member_id not in group.members and fold.profile.tombstones_need_their_target:
        raise ReplayError(f"the member {member_id!r} of this assignment does not exist", rule="J-18")
    member = group.members.get(member_id) or Member(member_id)
    epoch = record.value["member_epoch"]
    owned = _owned_by(record.value) if group.kind == CONSUMER else []
    if not _keeps_partitions(group, member, epoch, owned):
        _release_partitions(fold.profile, group, member)
        _take_partitions(fold.profile, group, epoch, owned)
    group.members[member_id] = member
    fold.current_at[member_id] = fold.record_offset
    member.current, member.owned, member.member_epoch = record.value, owned, epoch


def _owned_by(value: dict[str, Any]) -> list[TopicPartition]:
    """Return the partitions of a type 8 value, with those to give back."""
    rows = (*value.get("assigned_partitions", ()), *value.get("partitions_pending_revocation", ()))
    return list(chain.from_iterable(zip(repeat(row["topic_id"]), row["partitions"], strict=False) for row in rows))


def _keeps_partitions(group: Group, member: Member, epoch: int, owned: list[TopicPartition]) -> bool:
    """Take the partitions that a member gives back for it again, all at once, if nothing refuses them (``J-20``)."""
    if owned != member.owned:
        return False
    held = dict.fromkeys(owned, member.member_epoch)
    if not held.items() <= group.partition_epochs.items():
        return False
    group.partition_epochs.update(dict.fromkeys(owned, epoch))
    return True


def _release_partitions(profile: Profile, group: Group, member: Member) -> None:
    """Release a member's partitions (``J-20``): up to 4.1 each must be given back at the epoch it was taken."""
    for partition in member.owned:
        epoch = group.partition_epochs.get(partition)
        if epoch == member.member_epoch:
            del group.partition_epochs[partition]
        elif profile.partitions_have_one_owner:
            raise ReplayError(f"a partition is given back at epoch {member.member_epoch}, held at {epoch}", rule="J-20")


def _take_partitions(profile: Profile, group: Group, epoch: int, owned: list[TopicPartition]) -> None:
    """Take partitions for a member (``J-20``): nobody may hold them, or from 4.2 on only a member at a lower epoch."""
    for partition in owned:
        held = group.partition_epochs.get(partition)
        if held is not None and (profile.partitions_have_one_owner or held >= epoch):
            raise ReplayError(f"a partition is taken at epoch {epoch} but held at epoch {held}", rule="J-20")
        group.partition_epochs[partition] = epoch


def replay_regular_expression(fold: GroupFold, group: Group, record: CoordinatorRecord) -> None:
    """Replay type 16: what a regular expression resolved to."""
    if record.value is not None:
        group.regular_expressions[record.key["regular_expression"]] = record.value
    else:
        group.regular_expressions.pop(record.key["regular_expression"], None)


def replay_topology(fold: GroupFold, group: Group, record: CoordinatorRecord) -> None:
    """Replay type 23: the topology of a streams group."""
    group.topology = record.value


def replay_existence(fold: GroupFold, group: Group, record: CoordinatorRecord) -> None:
    """Do nothing: types 4, 9, 15 need their group to exist, but no answer about a group depends on them."""


@dataclass(frozen=True, slots=True)
class Branch:
    """What a record type does to an existing group of its kind."""

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
