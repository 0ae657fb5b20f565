"""A generation of a group as the log has it: members, assignments, and what changed since the previous one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from offsets_log.replay.group import CLASSIC

Unit = tuple[Any, int]
"""What is assigned: topic name and partition, topic id and partition, or a task's subtopology and partition."""
Owners = dict[Unit, frozenset[str]]
NOBODY: frozenset[str] = frozenset()


Value = TypeVar("Value")


class _Once(Generic[Value]):
    """A property that is computed once; unlike `functools.cached_property` of Python 3.11 it takes no lock."""

    def __init__(self, find: Callable[[Any], Value]) -> None:
        self.find = find
        self.__doc__ = find.__doc__

    def __get__(self, owner: Any, kind: type | None = None) -> Value:
        found = self.find(owner)
        setattr(owner, self.find.__name__, found)
        return found


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


@dataclass(kw_only=True)
class Generation:
    """One entry of a group's timeline.

    Attributes:
        kind: ``classic``, ``consumer``, ``share`` or ``streams``.
        number: generation of a classic group, group epoch of the others; None if the group was deleted.
        timestamp_ms: when the record was written; None if it has no time.
        state: the group's state by the coordinator's name; ``Dead`` if it was deleted.
        members, assignment: by member id; for the newer kinds the target assignment of this epoch.
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
    members: dict[str, GenerationMember] = field(default_factory=dict)
    assignment: dict[str, list[Unit]] = field(default_factory=dict)
    previous: Generation | None = field(default=None, repr=False)
    skipped: tuple[int, ...] = ()
    skipped_certainly: bool = True
    duration_ms: int | None = None
    is_storm: bool = False
    flapping: tuple[GenerationMember, ...] = ()

    @property
    def has_same_members(self) -> bool:
        """Whether its record has the very members of the one before: nobody joined or left."""
        return self.previous is not None and self.previous.members is self.members

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

    @_Once
    def joined(self) -> list[GenerationMember]:
        """Return members that the previous entry does not have, by id; also static members with a new id."""
        before = self.previous.members if self.previous else {}
        return [self.members[member_id] for member_id in sorted(self.members.keys() - before.keys())]

    @_Once
    def left(self) -> list[GenerationMember]:
        """Return members of the previous entry that this one does not have."""
        before = self.previous.members if self.previous else {}
        return [before[member_id] for member_id in sorted(before.keys() - self.members.keys())]

    @_Once
    def owners(self) -> Owners:
        """Return partition → identities of its members; a share group's partition may have several."""
        if self.previous and self.assignment == self.previous.assignment and self.members == self.previous.members:
            return self.previous.owners
        found: Owners = {}
        for member_id, units in self.assignment.items():
            member = self.members.get(member_id)
            owner = frozenset((member.identity if member else member_id,))
            if found.keys().isdisjoint(units):
                found.update(dict.fromkeys(units, owner))
            else:
                found.update((unit, found.get(unit, owner) | owner) for unit in units)
        return self.previous.owners if self.previous and found == self.previous.owners else found

    @_Once
    def kept(self) -> int:
        """Return how many partitions stay with their previous owners."""
        before = self.previous.owners if self.previous else {}
        if self.owners is before:
            return len(before)
        return sum(not before.get(unit, NOBODY).isdisjoint(owners) for unit, owners in self.owners.items())

    @property
    def stickiness(self) -> float | None:
        """The share of the previous assignment that stays; None if there was none."""
        before = self.previous.owners if self.previous else {}
        return self.kept / len(before) if before else None

    @_Once
    def moved(self) -> list[Move]:
        """Partitions that a new member has and that another member had before."""
        if self.previous is None or self.owners is self.previous.owners:
            return []
        before = self.previous.owners
        changed = [unit for unit, owners in self.owners.items() if before.get(unit, owners) != owners]
        sources = {member.identity: member for member in self.previous.members.values()}
        targets = {member.identity: member for member in self.members.values()}
        return [
            Move(unit, sources.get(source, GenerationMember(source)), targets.get(target, GenerationMember(target)))
            for unit in sorted(changed)
            for source, target in zip(
                sorted(before[unit] - self.owners[unit]), sorted(self.owners[unit] - before[unit]), strict=False
            )
        ]
