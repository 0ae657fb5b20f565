"""What coordinators make of a log, and where another log makes them answer otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from offsets_log.errors import Damage
from offsets_log.events import Event, LogEvent, pieces
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.pipeline import iter_events
from offsets_log.replay.coordinator_state import CoordinatorState, finish
from offsets_log.replay.fold import replay_into
from offsets_log.replay.group import Group
from offsets_log.replay.partial import GroupTopicPartition, PartialState
from offsets_log.replay.profile import CLASSIC, MODERN, MODERN_3_7, Profile
from offsets_log.replay.topic_names import topic_names_in

OF_GROUPS = (MODERN, CLASSIC)
"""Whose groups stay the same."""
OF_OFFSETS = (*OF_GROUPS, MODERN_3_7)
"""Whose offsets do. The preview of 3.7 does not load what Kafka's own cleaner leaves of newer groups (``J-18``)."""


@dataclass(slots=True)
class Answers:
    """The memory of every profile after a load.

    Attributes:
        states: as the profiles asked for.
        naming: topic id → offset and group of the last record that tells its name.
    """

    states: tuple[CoordinatorState, ...]
    naming: dict[bytes, tuple[int, str]]

    @classmethod
    def of(cls, log: PartitionLog, profiles: Sequence[Profile] = OF_OFFSETS, *, passes_damage: bool = False) -> Answers:
        """Read a log once.

        Args:
            profiles: whose answers; of the first two also groups count.
            passes_damage: read on behind what cannot be read.

        Raises:
            OffsetsLogError: a batch or record in it cannot be read at all.
        """
        states = [PartialState(profile) for profile in profiles]
        naming: dict[bytes, tuple[int, str]] = {}
        events = iter_events(log)
        for piece in pieces(events if passes_damage else undamaged(events)):
            for state in states:
                replay_into(state, piece, on_damage=lambda damage: None)
            for event in piece:
                if isinstance(event, Event) and event.decoded is not None:
                    for topic_id, _ in topic_names_in(event.decoded):
                        naming[topic_id] = event.record.offset, event.decoded.group
        return cls(tuple(map(finish, states)), naming)

    @property
    def of_groups(self) -> tuple[CoordinatorState, ...]:
        """The states whose groups count."""
        return self.states[: len(OF_GROUPS)]

    def standing_offsets(self) -> set[int]:
        """Offsets of records that some profile answers from, or holds for an open transaction."""
        return {value.record_offset for state in self.states for value in (*state.committed, *state.pending)}


def undamaged(events: Iterable[LogEvent]) -> Iterator[LogEvent]:
    """The same events.

    Raises:
        OffsetsLogError: a batch, or a record in one, cannot be read.
    """
    for event in events:
        if isinstance(event, Damage):
            raise event.error
        yield event


@dataclass(slots=True)
class Differences:
    """Where answers are not the same.

    Attributes:
        offsets: of records without a group that end a load.
        names: topic ids that are called by name in one of them only.
    """

    keys: set[GroupTopicPartition] = field(default_factory=set)
    groups: set[str] = field(default_factory=set)
    offsets: set[int] = field(default_factory=set)
    names: set[bytes] = field(default_factory=set)

    def __bool__(self) -> bool:
        return bool(self.keys or self.groups or self.offsets or self.names)


def differences(before: Answers, after: Answers) -> Differences:
    """Between a log and what is left of it."""
    found = Differences()
    for one, other in zip(before.states, after.states, strict=True):
        values = {*one.committed, *one.pending} ^ {*other.committed, *other.pending}
        found.keys |= {value.key for value in values}
    for one, other in zip(before.of_groups, after.of_groups, strict=True):
        both = one.groups.keys() | other.groups.keys()
        found.groups |= {name for name in both if one.groups.get(name) != other.groups.get(name)}
        for problem in {*one.problems} ^ {*other.problems}:
            if problem.group is None:
                found.offsets.add(problem.record_offset)
            else:
                found.groups.add(problem.group)
        called = {topic_id for group in one.groups.values() for topic_id in called_topics(group)}
        found.names |= {name for name in called if one.topic_names.get(name) != other.topic_names.get(name)}
    return found


def called_topics(group: Group) -> Iterator[bytes]:
    """Topics that a newer group's assignments call by id."""
    for member in group.members.values():
        yield from _topic_ids(member.current)
    for target in group.targets.values():
        yield from _topic_ids(target)


def _topic_ids(value: Any) -> Iterator[bytes]:
    if isinstance(value, dict):
        if "topic_id" in value:
            yield value["topic_id"]
        for part in value.values():
            yield from _topic_ids(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _topic_ids(part)
