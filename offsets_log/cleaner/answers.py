"""The answers that coordinators give from a log, and where another log makes them answer otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from offsets_log.cleaner.answer import Answer, Standing
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
"""Profiles whose groups must stay the same."""
OF_OFFSETS = (*OF_GROUPS, MODERN_3_7)
"""Profiles whose offsets must stay the same; 3.7's preview does not load what the cleaner leaves of newer groups
(``J-18``)."""


def _answer(state: CoordinatorState) -> Answer:
    values = frozenset((*state.committed, *state.pending))
    standing = Standing([value.record_offset for value in values], values, lambda: values)
    return Answer(standing, state.groups, state.problems, state.topic_names)


@dataclass(slots=True)
class Answers:
    """The memory of every profile after a load.

    Attributes:
        states: one for each of the profiles.
        log: that they were made of.
    """

    states: tuple[Answer, ...]
    log: PartitionLog

    @classmethod
    def of(
        cls,
        log: PartitionLog,
        profiles: Sequence[Profile] = OF_OFFSETS,
        *,
        passes_damage: bool = False,
        in_bulk: bool = False,
    ) -> Answers:
        """Read a log.

        Args:
            profiles: the rules whose answers count; of the first two also those about groups.
            passes_damage: read on behind what cannot be read.
            in_bulk: whether kernels find them, which always can.

        Raises:
            OffsetsLogError: a batch or record in it cannot be read at all.
        """
        if in_bulk:
            from offsets_log.cleaner.bulk_answers import answers_in_bulk

            return cls(tuple(answers_in_bulk(log, profiles)), log)
        states = [PartialState(profile) for profile in profiles]
        events = iter_events(log)
        for piece in pieces(events if passes_damage else undamaged(events)):
            for state in states:
                replay_into(state, piece, on_damage=lambda damage: None)
        return cls(tuple(_answer(finish(state)) for state in states), log)

    def naming(self) -> dict[bytes, tuple[int, str]]:
        """Return topic id → offset and group of the last record that tells its name."""
        return {
            topic_id: (event.record.offset, event.decoded.group)
            for event in iter_events(self.log)
            if isinstance(event, Event) and event.decoded is not None
            for topic_id, _ in topic_names_in(event.decoded)
        }

    @property
    def of_groups(self) -> tuple[Answer, ...]:
        """The states whose groups count."""
        return self.states[: len(OF_GROUPS)]

    def standing_offsets(self) -> set[int]:
        """Return offsets of records that a profile answers from, or holds for an open transaction."""
        return {offset for state in self.states for offset in state.standing.record_offsets}


def undamaged(events: Iterable[LogEvent]) -> Iterator[LogEvent]:
    """Pass on the events.

    Raises:
        OffsetsLogError: a batch, or a record in one, cannot be read.
    """
    for event in events:
        if isinstance(event, Damage):
            raise event.error
        yield event


@dataclass(slots=True)
class Differences:
    """The places where answers differ.

    Attributes:
        offsets: record offsets without a group that end a load.
        names: topic ids that are called by name in one of them only.
    """

    keys: set[GroupTopicPartition] = field(default_factory=set)
    groups: set[str] = field(default_factory=set)
    offsets: set[int] = field(default_factory=set)
    names: set[bytes] = field(default_factory=set)

    def __bool__(self) -> bool:
        return bool(self.keys or self.groups or self.offsets or self.names)


def differences(before: Answers, after: Answers) -> Differences:
    """Return where the answers of a log differ from those of what is left of it."""
    found = Differences()
    for one, other in zip(before.states, after.states, strict=True):
        if one.standing.digest != other.standing.digest:
            found.keys |= {value.key for value in one.standing.values() ^ other.standing.values()}
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
    """Return the topics that a newer group's assignments name by id."""
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
