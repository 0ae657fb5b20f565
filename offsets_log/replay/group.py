"""Hold a group and its members as a coordinator does: plain data, changed only by `replay.groups`.

One class serves all kinds of groups; fields that a kind does not have stay empty. Values of the newer kinds are kept as
they are in their records (see `messages`), so that nothing in them is lost.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from offsets_log.replay.profile import Profile

CLASSIC, CONSUMER, SHARE, STREAMS = "classic", "consumer", "share", "streams"

NO_EPOCH = -1
"""Assignment epoch of a group, or epoch of a member's current assignment, after its tombstone."""

STABLE_MEMBER = {CONSUMER: 0, STREAMS: 1}
"""Kind → the number in the ``state`` of types 8 and 22 that means a stable member (``MemberState``)."""

UNREVOKED_TASKS = 2
"""The ``state`` of type 22 of a member that has yet to give tasks back."""

TOPOLOGY_EPOCHS = (
    "validated_topology_epoch", "stored_description_topology_epoch", "failed_description_topology_epoch",
)  # fmt: skip
"""Fields of type 17 that a streams group keeps."""

TopicPartition = tuple[bytes, int]
"""Topic id and partition number."""


@dataclass(slots=True)
class Member:
    """A member of a group.

    Attributes:
        metadata: the fields of its row in type 2, or of its type 5, 10 or 19 value; empty before one was read.
        current: the fields of its type 8, 14 or 22 value; empty without one.
        owned: the partitions that a consumer group's member holds by ``current``, also those it has to give back.
    """

    member_id: str
    metadata: dict[str, Any] = field(default_factory=dict)
    current: dict[str, Any] = field(default_factory=dict)
    member_epoch: int = 0
    owned: list[TopicPartition] = field(default_factory=list)

    @property
    def group_instance_id(self) -> str | None:
        """The instance id of a static member, by either of its names; None for others (``K44-7``)."""
        found: str | None = self.metadata.get("group_instance_id", self.metadata.get("instance_id"))
        return found


@dataclass(slots=True)
class Group:
    """A group of any kind.

    Attributes:
        kind: ``classic``, ``consumer``, ``share`` or ``streams``.
        has_record: False for a group that exists only because of its offsets (``J-6``, ``L-36``).
        protocol_type, protocol, leader, generation, current_state_timestamp_ms: fields of a classic group.
        rows: of a classic group the rows of its record that ``members`` were made of.
        group_epoch, assignment_epoch, targets, regular_expressions: fields of the newer kinds; targets by member id.
        topology, validated_topology_epoch: fields of a streams group.
        stored_description_topology_epoch: of a streams group the epoch whose topology's description the brokers' plugin
            has; −1 for none, −2 where that is not sure (``K44-2``).
        failed_description_topology_epoch: the epoch whose description the plugin refused for good.
        partition_epochs: a consumer group's partition → epoch at which it is held (``J-20``).
    """

    group_id: str
    kind: str
    has_record: bool = True
    members: dict[str, Member] = field(default_factory=dict)
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str | None = None
    rows: list[dict[str, Any]] = field(default_factory=list, repr=False)
    generation: int = 0
    current_state_timestamp_ms: int | None = None
    group_epoch: int = 0
    assignment_epoch: int = 0
    targets: dict[str, dict[str, Any]] = field(default_factory=dict)
    regular_expressions: dict[str, dict[str, Any]] = field(default_factory=dict)
    topology: dict[str, Any] | None = None
    validated_topology_epoch: int = NO_EPOCH
    stored_description_topology_epoch: int = NO_EPOCH
    failed_description_topology_epoch: int = NO_EPOCH
    partition_epochs: dict[TopicPartition, int] = field(default_factory=dict)

    @property
    def has_description(self) -> bool:
        """Whether the brokers' plugin has the description of a streams group's topology (``K44-51``)."""
        stored = self.stored_description_topology_epoch
        return self.topology is not None and stored >= 0 and stored == self.topology["epoch"]

    @property
    def may_have_description(self) -> bool:
        """Whether that plugin has any description of the group's, or may have one (``K44-2``)."""
        return self.kind == STREAMS and self.stored_description_topology_epoch != NO_EPOCH

    @property
    def is_simple(self) -> bool:
        """Whether it is a classic group of offsets only; 4.x writes the same record for a new group (``J-16``)."""
        return self.kind == CLASSIC and not self.protocol_type and not self.members

    def state(self, profile: Profile) -> str:
        """Return the coordinator's name for its state after a load (``L-24``, ``B-15``)."""
        if self.kind == CLASSIC:
            return "Stable" if self.members else "Empty"
        state = self._newer_state()
        return state.lower() if profile.lower_case_states else state

    def _newer_state(self) -> str:
        if not self.members:
            return "Empty"
        if self.kind == SHARE:
            return "Stable"
        if self.kind == STREAMS and (self.topology is None or self.topology["epoch"] != self.validated_topology_epoch):
            return "NotReady"
        if self.group_epoch > self.assignment_epoch:
            return "Assigning"
        return "Stable" if all(map(self._is_reconciled, self.members.values())) else "Reconciling"

    def _is_reconciled(self, member: Member) -> bool:
        if "target_member_epoch" in member.current:  # 3.7 records no state: it follows from what is left to do
            waiting = ("partitions_pending_revocation", "partitions_pending_assignment")
            is_stable = not any(member.current[name] for name in waiting)
            return is_stable and member.current["target_member_epoch"] == self.assignment_epoch
        state = member.current.get("state", STABLE_MEMBER[self.kind])
        return bool(state == STABLE_MEMBER[self.kind]) and member.member_epoch == self.assignment_epoch


def simple_group(group_id: str) -> Group:
    """Return a group that exists only because of its offsets (``J-6``, ``L-36``)."""
    return Group(group_id, CLASSIC, has_record=False)
