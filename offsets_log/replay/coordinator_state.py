"""Compute what a coordinator holds after loading one offsets partition: the end of a replay.

*Served* offsets are what OffsetFetch answers: the committed offsets of groups that exist (``J-15``, ``B-17``). The
offsets of other groups are *orphans*: they are in the log and in the coordinator's memory, but no client gets them. The
Scala coordinator gives every group its committed and pending offsets once the whole log is read (``L-34``, ``L-35``); a
producer whose offsets were all cancelled leaves no trace there (``L-40``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from itertools import filterfalse
from operator import attrgetter

from offsets_log.log_format.partition_log import OF_GROUPS, UNRECORDED_GROUPS
from offsets_log.replay.group import Group
from offsets_log.replay.groups import GROUP_METADATA, add_simple_groups, replay_timeline
from offsets_log.replay.partial import GroupTopicPartition, OffsetAndMetadata, PartialState
from offsets_log.replay.problem import Problem
from offsets_log.replay.profile import Profile
from offsets_log.replay.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Holdings:
    """How much a coordinator's memory holds.

    Attributes:
        groups: groups that exist.
        offsets, orphans: numbers of committed offsets of groups that exist, and of groups that do not.
        pending: offsets of open transactions, of groups and topics that are not shown too; by record offset.
        hidden_groups: number of groups that exist and are not shown; None if it is not known.
    """

    groups: tuple[Group, ...]
    offsets: int
    orphans: int
    pending: tuple[OffsetAndMetadata, ...] = ()
    hidden_groups: int | None = 0


@dataclass(frozen=True, slots=True)
class CoordinatorState:
    """The state after a load.

    Attributes:
        groups: the groups that exist, by id.
        committed: every committed offset, orphans included.
        pending: offsets of open transactions, including those of groups that do not exist (``B-2``).
        problems: what would have ended a real load, by record offset; the records after it were read all the same.
        topic_names: topic id → name, as far as the records contain both.
        end_offset: the log's next offset.
        missing_columns: columns that the log's source does not have; they are null in rows.
        hidden_groups: names of groups that exist in the log but are not in ``groups``: not shown, or not served.
        hidden_pending: offsets of open transactions that are not in ``pending``: not shown.
        untold: keys of offsets that nobody can tell from this source, as it does not tell of their last commit
            whether it took effect. They are in none of the others.
    """

    profile: Profile
    groups: dict[str, Group]
    committed: tuple[OffsetAndMetadata, ...]
    pending: tuple[OffsetAndMetadata, ...]
    problems: tuple[Problem, ...]
    topic_names: dict[bytes, str]
    end_offset: int
    missing_columns: frozenset[str] = frozenset()
    hidden_groups: frozenset[str] = frozenset()
    hidden_pending: tuple[OffsetAndMetadata, ...] = ()
    untold: frozenset[GroupTopicPartition] = frozenset()

    def missing_columns_of(self, group: Group) -> frozenset[str]:
        """Return columns of a group that the log's source does not have: of its own record it may have none."""
        is_untold = UNRECORDED_GROUPS in self.missing_columns and not group.has_record
        return self.missing_columns | OF_GROUPS if is_untold else self.missing_columns

    def iter_served(self) -> Iterator[OffsetAndMetadata]:
        """Yield the committed offsets of groups that exist."""
        return (value for value in self.committed if value.group in self.groups)

    def iter_orphans(self) -> Iterator[OffsetAndMetadata]:
        """Yield the committed offsets of groups that do not exist."""
        return (value for value in self.committed if value.group not in self.groups)

    def showing(self, group: Callable[[str], bool], topic: Callable[[str], bool]) -> CoordinatorState:
        """Return the same state with only some groups and topics shown; its problems stay as they are."""

        def is_shown(value: OffsetAndMetadata) -> bool:
            return group(value.group) and topic(value.topic)

        shown = {group_id: found for group_id, found in self.groups.items() if group(group_id)}
        return replace(
            self,
            groups=shown,
            hidden_groups=self.hidden_groups | (self.groups.keys() - shown.keys()),
            committed=tuple(filter(is_shown, self.committed)),
            pending=tuple(filter(is_shown, self.pending)),
            hidden_pending=(*self.hidden_pending, *filterfalse(is_shown, self.pending)),
            untold=frozenset(key for key in self.untold if group(key[0]) and topic(key[1])),
        )

    def holdings(self) -> Holdings:
        """Count what it holds."""
        served = sum(1 for _ in self.iter_served())
        pending = sorted((*self.pending, *self.hidden_pending), key=attrgetter("record_offset"))
        hidden = len(self.hidden_groups)
        return Holdings(tuple(self.groups.values()), served, len(self.committed) - served, tuple(pending), hidden)

    @property
    def failure(self) -> Problem | None:
        """The first problem, which ends the load of this partition; None if it loads."""
        return self.problems[0] if self.problems else None

    def as_broker(self) -> CoordinatorState:
        """Return what a real broker keeps of it: nothing if the load ends early (``L-42``, ``J-3``, ``B-4``)."""
        if self.failure is None or self.failure.is_served:
            return self
        return self.emptied()

    def emptied(self) -> CoordinatorState:
        """Return the state with no groups and offsets left in it."""
        hidden_groups = self.hidden_groups | self.groups.keys()
        return replace(self, groups={}, committed=(), pending=(), untold=frozenset(), hidden_groups=hidden_groups)


def finish(state: PartialState) -> CoordinatorState:
    """Compute the state of a whole log, read from its first record on."""
    committed, pending = tuple(state.iter_committed()), tuple(state.iter_pending())
    untold = frozenset(state.iter_untold())
    groups, problems = settle_groups(
        state.profile,
        state.timelines,
        committed={value.group for value in committed},
        pending={group for group, _, _ in (*untold, *(value.key for value in pending))},
        end_offset=state.end_offset,
    )
    return CoordinatorState(
        profile=state.profile,
        groups=groups,
        committed=tuple(value for value in committed if value.key not in untold) if untold else committed,
        pending=pending,
        problems=in_order((*state.problems, *problems)),
        topic_names=state.topic_names,
        end_offset=state.end_offset,
        untold=untold,
    )


def in_order(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Sort problems by record offset."""
    return tuple(sorted(problems, key=lambda problem: problem.record_offset))


def settle_groups(
    profile: Profile,
    timelines: Mapping[str, Timeline],
    *,
    committed: Set[str],
    pending: Set[str],
    end_offset: int,
) -> tuple[dict[str, Group], list[Problem]]:
    """Return the groups once all records are replayed, and the problems a load would have met.

    Args:
        committed, pending: names of groups that have committed offsets, and offsets in open transactions.
    """
    groups: dict[str, Group] = {}
    problems: list[Problem] = []
    for group_id, timeline in timelines.items():
        group, found = replay_timeline(group_id, timeline, profile)
        problems += found
        if group is not None:
            groups[group_id] = group
    add_simple_groups(groups, profile, committed | pending)
    if profile.checks_removed_groups:
        problems += [
            Problem(end_offset, "L-39", f"unexpected unload of active group {group_id!r}", group_id, is_served=True)
            for group_id, timeline in timelines.items()
            if group_id in groups and group_id not in committed and _was_removed(timeline)
        ]
    return groups, problems


def _was_removed(timeline: Timeline) -> bool:
    """Whether the group's last type 2 record is a tombstone."""
    records = (event.record for event in reversed(timeline.events))
    last = next((record for record in records if record is not None and record.record_type == GROUP_METADATA), None)
    return last is not None and last.is_tombstone
