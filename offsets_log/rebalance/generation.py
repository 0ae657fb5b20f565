"""A generation of a group as the log has it: members, assignments, and what changed since the previous one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from offsets_log.replay.group import CLASSIC

Unit = tuple[Any, int]
"""What is assigned: topic name and partition, topic id and partition, or a task's subtopology and partition."""
Owners = dict[Unit, frozenset[str]]
NOBODY: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class GenerationMember:
    """A member in one generation.

    Attributes:
        row: its fields in the record, which is of type 2, 5, 10 or 19.
    """

    member_id: str
    row: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def client_id(self) -> str:
        """The client's name for itself."""
        return str(self.row.get("client_id", ""))

    @property
    def host(self) -> str:
        """The host as the record has it, such as ``/127.0.0.1``."""
        return str(self.row.get("client_host", ""))

    @property
    def group_instance_id(self) -> str | None:
        """The instance id of a static member; None for others."""
        found: str | None = self.row.get("group_instance_id", self.row.get("instance_id"))
        return found

    @property
    def identity(self) -> str:
        """An id that stays the same when a static member comes back with another member id (``G-8``)."""
        return self.member_id if self.group_instance_id is None else f"instance {self.group_instance_id}"


@dataclass(frozen=True, slots=True)
class Move:
    """A partition that moved from one member to another."""

    unit: Unit
    source: GenerationMember
    target: GenerationMember


@dataclass(slots=True, eq=False)
class Held:
    """Who is a member, and what each is assigned; the entries of a group in which that is the same share one object.

    Attributes:
        members, assignment: by member id; for the newer kinds the target assignment. Not to be changed.
    """

    members: dict[str, GenerationMember]
    assignment: dict[str, list[Unit]]
    _owners: Owners | None = field(default=None, init=False, repr=False)
    _unchanged: Change | None = field(default=None, init=False, repr=False)

    @property
    def owners(self) -> Owners:
        """Return partition → identities of its members; a share group's partition may have several."""
        if self._owners is None:
            self._owners = {}
            for member_id, units in self.assignment.items():
                member = self.members.get(member_id)
                owner = frozenset((member.identity if member else member_id,))
                if self._owners.keys().isdisjoint(units):
                    self._owners.update(dict.fromkeys(units, owner))
                else:
                    self._owners.update((unit, self._owners.get(unit, owner) | owner) for unit in units)
        return self._owners

    @property
    def unchanged(self) -> Change:
        """Return the change from it to itself."""
        if self._unchanged is None:
            self._unchanged = Change(self, self)
        return self._unchanged


NOTHING_HELD = Held({}, {})


class Change:
    """What changed from one entry to the next.

    Attributes:
        joined: members that are new, by id; also static members with a new id.
        left: members that are gone, by id.
    """

    __slots__ = ("_after", "_before", "_kept", "_moved", "joined", "left")

    def __init__(self, before: Held, after: Held) -> None:
        self._before, self._after = before, after
        self._kept: int | None = None
        self._moved: list[Move] | None = None
        self.joined = _members_of(after, but=before)
        self.left = _members_of(before, but=after)

    @property
    def kept(self) -> int:
        """Return how many partitions stay with their previous owners."""
        if self._kept is None:
            before = self._before.owners
            self._kept = sum(
                not before.get(unit, NOBODY).isdisjoint(owners) for unit, owners in self._after.owners.items()
            )
        return self._kept

    @property
    def moved(self) -> list[Move]:
        """Return partitions that a new member has and that another member had before."""
        if self._moved is None:
            self._moved = list(self._moves()) if self._before is not self._after else []
        return self._moved

    def _moves(self) -> Iterator[Move]:
        before, after = self._before.owners, self._after.owners
        changed = [unit for unit, owners in after.items() if before.get(unit, owners) != owners]
        sources = {member.identity: member for member in self._before.members.values()}
        targets = {member.identity: member for member in self._after.members.values()}
        for unit in sorted(changed):
            gone, new = sorted(before[unit] - after[unit]), sorted(after[unit] - before[unit])
            for source, target in zip(gone, new, strict=False):
                yield Move(
                    unit, sources.get(source, GenerationMember(source)), targets.get(target, GenerationMember(target))
                )


def _members_of(held: Held, *, but: Held) -> list[GenerationMember]:
    if held.members is but.members:
        return []
    return [held.members[member_id] for member_id in sorted(held.members.keys() - but.members.keys())]


@dataclass(kw_only=True, slots=True)
class Generation:
    """One entry of a group's timeline.

    Attributes:
        kind: ``classic``, ``consumer``, ``share`` or ``streams``.
        number: generation of a classic group, group epoch of the others; None if the group was deleted.
        timestamp_ms: when the record was written; None if it has no time.
        state: the group's state by the coordinator's name; ``Dead`` if it was deleted.
        held: its members and what they are assigned.
        previous: the previous entry, unless the group was deleted in between.
        skipped: numbers between the previous entry's and this one's: generations that joined and never synced
            (``W-14``), or epochs of the newer kinds that rose twice in one batch.
        skipped_certainly: whether the log has no holes in between, in which the cleaner may have removed a record.
        duration_ms: time until the next entry; None for the last one.
    """

    group_id: str
    kind: str
    offsets_partition: int | None
    record_offset: int
    number: int | None
    timestamp_ms: int | None
    state: str = "Dead"
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str | None = None
    held: Held = NOTHING_HELD
    previous: Generation | None = field(default=None, repr=False)
    skipped: tuple[int, ...] = ()
    skipped_certainly: bool = True
    duration_ms: int | None = None
    is_storm: bool = False
    flapping: tuple[GenerationMember, ...] = ()
    _change: Change | None = field(default=None, init=False, repr=False)

    @property
    def members(self) -> dict[str, GenerationMember]:
        """Its members, by id."""
        return self.held.members

    @property
    def assignment(self) -> dict[str, list[Unit]]:
        """What its members are assigned, by their ids."""
        return self.held.assignment

    @property
    def owners(self) -> Owners:
        """Partition → identities of its members."""
        return self.held.owners

    @property
    def held_before(self) -> Held:
        """What the previous entry holds; nothing without one."""
        return self.previous.held if self.previous is not None else NOTHING_HELD

    @property
    def change(self) -> Change:
        """What is changed since the previous entry."""
        before, held = self.held_before, self.held
        if before is held:
            return held.unchanged
        if self._change is None:
            self._change = Change(before, held)
        return self._change

    @property
    def changes_members_only(self) -> bool:
        """Whether only a static member came back under another member id: nothing was assigned (``G-8``, ``W-11``)."""
        return self.previous is not None and self._follows(self.previous) and self.previous.kind == self.kind

    @property
    def was_converted(self) -> bool:
        """Whether the broker made a classic group of a consumer group and kept its assignment (``J-21``)."""
        return self.previous is not None and self._follows(self.previous) and self.previous.kind != self.kind

    def _follows(self, before: Generation) -> bool:
        return self.kind == CLASSIC and before.number == self.number

    @property
    def stickiness(self) -> float | None:
        """The share of the previous assignment that stays; None if there was none."""
        before = self.held_before.owners
        return self.change.kept / len(before) if before else None
