"""A classic group while it lives: its members, which of them wait for an answer, and the vote.

It is plain data with the rules that need nothing but the group; `membership` moves it from state to state.

Reference: ``group-coordinator/.../classic/ClassicGroup.java``, ``ClassicGroupMember.java``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Generic, TypeVar

from offsets_log.coordinator.errors import Errors
from offsets_log.coordinator.validation import MemberIdentity
from offsets_log.rebalance.vote import HashOrders, candidate_protocols, select_protocol
from offsets_log.replay.group import Group

Answer = TypeVar("Answer")


class State(StrEnum):
    """The state of a group between two assignments."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


@dataclass(slots=True)
class Pending(Generic[Answer]):
    """An answer that may come later; None until it does."""

    answer: Answer | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """The answer to a join.

    Attributes:
        members: only for the leader: member id → instance id and metadata, in the coordinator's order.
        skip_assignment: whether the leader only learns the members and must not assign (``G-8``).
    """

    error: Errors = Errors.NONE
    member_id: str = ""
    generation: int = -1
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = ""
    members: dict[str, tuple[str | None, bytes]] = field(default_factory=dict)
    skip_assignment: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Synced:
    """The answer to a sync: the member's assignment as the leader made it."""

    error: Errors = Errors.NONE
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Joining:
    """The request with which a member joins.

    Attributes:
        protocols: pairs of a protocol's name and the member's metadata for it, in order of preference.
    """

    protocols: tuple[tuple[str, bytes], ...]
    protocol_type: str = "consumer"
    client_id: str = ""
    client_host: str = "/127.0.0.1"
    group_instance_id: str | None = None
    session_timeout_ms: int = 45_000
    rebalance_timeout_ms: int = 300_000


@dataclass(slots=True)
class LiveMember:
    """A member of a live group.

    Attributes:
        joining: its last join request, with the client id and host of its first one.
        is_new: whether it has not been in a generation yet.
        session_due_ms: when its session expires.
    """

    member_id: str
    joining: Joining
    assignment: bytes = b""
    is_new: bool = False
    session_due_ms: int = 0
    awaiting_join: Pending[Joined] | None = None
    awaiting_sync: Pending[Synced] | None = None

    @property
    def is_static(self) -> bool:
        """Whether it has an instance id."""
        return self.joining.group_instance_id is not None

    @property
    def is_waiting(self) -> bool:
        """Whether the coordinator owes it an answer; until then its session does not expire."""
        return self.awaiting_join is not None or self.awaiting_sync is not None

    @property
    def protocols(self) -> list[str]:
        """The names of its protocols."""
        return [name for name, _ in self.joining.protocols]

    def metadata(self, protocol: str | None) -> bytes:
        """Return its metadata for one protocol."""
        return dict(self.joining.protocols).get(protocol or "", b"")

    def answer_join(self, answer: Joined) -> None:
        """Answer its join, if it waits for that."""
        if self.awaiting_join is not None:
            self.awaiting_join.answer, self.awaiting_join = answer, None

    def answer_sync(self, answer: Synced) -> None:
        """Answer its sync, if it waits for that."""
        if self.awaiting_sync is not None:
            self.awaiting_sync.answer, self.awaiting_sync = answer, None


class ClassicGroup:
    """A classic group.

    Attributes:
        members: members in the order in which they were added, which decides the order of the hash tables.
        pending_joins: member ids that were handed out and have not joined yet → when they expire.
        pending_syncs: members whose join was answered and that have not synced.
        join_due_ms, sync_due_ms: when the phase ends even if members are missing; None outside the phase.
        initial_delay_left_ms: how long the first rebalance may still wait for more members; None in later ones.
        member_came: whether a member came during that delay.
    """

    def __init__(self, group_id: str, orders: HashOrders, now_ms: int) -> None:
        self.group_id = group_id
        self.state = State.EMPTY
        self.state_timestamp_ms = now_ms
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader: str | None = None
        self.members: dict[str, LiveMember] = {}
        self.pending_joins: dict[str, int] = {}
        self.pending_syncs: set[str] = set()
        self.join_due_ms: int | None = None
        self.sync_due_ms: int | None = None
        self.initial_delay_left_ms: int | None = None
        self.member_came = False
        self._orders = orders

    @classmethod
    def loaded(cls, group: Group, orders: HashOrders, now_ms: int) -> ClassicGroup:
        """Return a group as a load leaves it: Stable or Empty (``L-24``), each member with one protocol (``L-28``)."""
        found = cls(group.group_id, orders, now_ms)
        found.state = State.STABLE if group.members else State.EMPTY
        found.state_timestamp_ms = group.current_state_timestamp_ms or now_ms
        found.generation, found.leader = group.generation, group.leader
        found.protocol_type, found.protocol = group.protocol_type, group.protocol
        for member_id, member in group.members.items():
            row = member.metadata
            joining = Joining(
                protocols=((group.protocol or "", row["subscription"]),),
                protocol_type=group.protocol_type or "",
                client_id=row["client_id"],
                client_host=row["client_host"],
                group_instance_id=row.get("group_instance_id"),
                session_timeout_ms=row["session_timeout"],
                rebalance_timeout_ms=row.get("rebalance_timeout", row["session_timeout"]),
            )
            found.members[member_id] = LiveMember(
                member_id, joining, row["assignment"], session_due_ms=now_ms + row["session_timeout"]
            )
        return found

    def move_to(self, state: State, now_ms: int) -> None:
        """Change the state."""
        self.state, self.state_timestamp_ms = state, now_ms

    # ------------------------------------------------------------------------------------------ members

    def static_member(self, group_instance_id: str | None) -> LiveMember | None:
        """Return the member with this instance id; None if there is none."""
        if group_instance_id is None:
            return None
        return next(
            (each for each in self.members.values() if each.joining.group_instance_id == group_instance_id), None
        )

    def add(self, member: LiveMember) -> None:
        """Add a member; the first one becomes the leader and decides the protocol type (``G-6``)."""
        if not self.members:
            self.protocol_type = member.joining.protocol_type
        if self.leader is None:
            self.leader = member.member_id
        self.members[member.member_id] = member
        self.pending_joins.pop(member.member_id, None)

    def remove(self, member_id: str) -> None:
        """Remove a member; if it was the leader, the first one of the hash table follows it (``G-6``)."""
        self.members.pop(member_id, None)
        self.pending_joins.pop(member_id, None)
        self.pending_syncs.discard(member_id)
        if self.leader == member_id:
            self.leader = next(iter(self.in_order()), None)

    def in_order(self) -> list[str]:
        """Return the member ids in the order of the coordinator's hash table."""
        return self._orders.member_order(self.members)

    def elect_joined_leader(self) -> bool:
        """Replace a leader that did not rejoin by a member that did; return whether the leader has joined (``G-6``)."""
        if self.leader is None:
            return False
        if self.members[self.leader].awaiting_join is None:
            came = (each for each in self.in_order() if self.members[each].awaiting_join is not None)
            self.leader = next(came, self.leader)
        return self.members[self.leader].awaiting_join is not None

    def all_have_joined(self) -> bool:
        """Return whether all expected members have joined."""
        return not self.pending_joins and all(each.awaiting_join is not None for each in self.members.values())

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest timeout of its members."""
        return max((each.joining.rebalance_timeout_ms for each in self.members.values()), default=0)

    # ------------------------------------------------------------------------------------------ protocols

    def supports(self, joining: Joining) -> bool:
        """Return whether a member may join: it shares a candidate protocol, or the group is Empty (``G-4``)."""
        names = [name for name, _ in joining.protocols]
        if self.state is State.EMPTY:
            return bool(joining.protocol_type and names)
        candidates = candidate_protocols(each.protocols for each in self.members.values())
        return joining.protocol_type == self.protocol_type and not set(names).isdisjoint(candidates)

    def select_protocol(self) -> str | None:
        """Return the protocol that the members vote for (``G-3``)."""
        votes = {member_id: member.protocols for member_id, member in self.members.items()}
        return select_protocol(votes, self._orders).selected

    def begin_generation(self, now_ms: int) -> None:
        """Begin the next generation (``G-5``); an empty group has one too, without a protocol (``G-11``)."""
        self.generation += 1
        self.pending_syncs.clear()
        self.protocol = self.select_protocol() if self.members else None
        self.move_to(State.COMPLETING_REBALANCE if self.members else State.EMPTY, now_ms)

    # -------------------------------------------------------------------------------------------- answers

    def joined(self, member_id: str, *, with_members: bool = True, skip_assignment: bool = False) -> Joined:
        """Return the answer to a member that joined this generation; the leader's holds all members."""
        members = {}
        if with_members and member_id == self.leader:
            members = {
                each: (self.members[each].joining.group_instance_id, self.members[each].metadata(self.protocol))
                for each in self.in_order()
            }
        return Joined(
            member_id=member_id,
            generation=self.generation,
            protocol_type=self.protocol_type,
            protocol=self.protocol,
            leader=self.leader or "",
            members=members,
            skip_assignment=skip_assignment,
        )

    def value(self, assignments: dict[str, bytes]) -> dict[str, Any]:
        """Return the fields of its type 2 value; a member without an assignment gets zero bytes (``W-13``)."""
        return {
            "protocol_type": self.protocol_type or "",
            "generation": self.generation,
            "protocol": self.protocol,
            "leader": self.leader,
            "current_state_timestamp": self.state_timestamp_ms,
            "members": [self._row(self.members[each], assignments.get(each, b"")) for each in self.in_order()],
        }

    def _row(self, member: LiveMember, assignment: bytes) -> dict[str, Any]:
        joining = member.joining
        return {
            "member_id": member.member_id,
            "group_instance_id": joining.group_instance_id,
            "client_id": joining.client_id,
            "client_host": joining.client_host,
            "rebalance_timeout": joining.rebalance_timeout_ms,
            "session_timeout": joining.session_timeout_ms,
            "subscription": member.metadata(self.protocol),
            "assignment": assignment,
        }


def replace_client(joining: Joining, before: Joining) -> Joining:
    """Return a join request with the client id and host of the first one, which a group keeps."""
    return replace(joining, client_id=before.client_id, client_host=before.client_host)


def synced(group: ClassicGroup, member: LiveMember) -> Synced:
    """Return the answer to a member's sync."""
    return Synced(protocol_type=group.protocol_type, protocol=group.protocol, assignment=member.assignment)


def error_of_member(group: ClassicGroup, who: MemberIdentity) -> Errors:
    """Return the error for a member that is not in the group, or whose instance id another one has; else NONE."""
    if who.group_instance_id is not None:
        member = group.static_member(who.group_instance_id)
        if member is None:
            return Errors.UNKNOWN_MEMBER_ID
        if member.member_id != who.member_id:
            return Errors.FENCED_INSTANCE_ID
    return Errors.NONE if who.member_id in group.members else Errors.UNKNOWN_MEMBER_ID


def error_of_generation(group: ClassicGroup | None, who: MemberIdentity) -> Errors:
    """Return the error as `error_of_member` does, and also for a member of another generation."""
    if group is None:
        return Errors.UNKNOWN_MEMBER_ID
    error = error_of_member(group, who)
    if error is Errors.NONE and who.generation != group.generation:
        return Errors.ILLEGAL_GENERATION
    return error
