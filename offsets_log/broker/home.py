"""Decide who answers for a group that is in another offsets partition than its own: a damaged name, a restored file.

Clients ask the coordinator of the partition that the group's name leads to (``records:H1``), with U+FFFD in place of
bytes that are not UTF-8 (``records:P5``). The Java coordinator looks only at what it loaded from that partition; the
Scala one has one cache for all partitions of its broker.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from offsets_log.replay.coordinator_state import CoordinatorState
from offsets_log.replay.partition_count import PartitionCount, count_of
from offsets_log.replay.partition_for import partition_for
from offsets_log.replay.profile import Profile


def at_home(
    states: Mapping[int | None, CoordinatorState], told: PartitionCount | None = None
) -> dict[int | None, CoordinatorState]:
    """Return what clients are answered, by the partition whose coordinator they ask; the same where that is a guess.

    Args:
        states: offsets partition → what was loaded from it, of one broker; None for one that nobody tells.
        told: how many offsets partitions there are; None for what the groups show.
    """
    found = dict(states)
    known = {partition: state for partition, state in states.items() if partition is not None}
    partitions = told or count_of(states.items())
    if partitions.is_guess:
        return found
    for partition, state in known.items():
        strays = strays_of(state.groups, partitions, partition)
        if not strays:
            continue
        found[partition] = _without(found[partition], strays)
        if state.profile.answers_from_one_cache:
            for group, home in strays.items():
                if home in found and group not in found[home].groups:
                    found[home] = _with(found[home], state, group)
    return found


def strays_of(groups: Iterable[str], partitions: PartitionCount, found_in: int) -> dict[str, int]:
    """Return the groups of an offsets partition that belong to another, and to which."""
    return {group: home for group in groups if (home := partition_for(group, partitions.number)) != found_in}


class Homes:
    """Which groups are in which offsets partitions, and which of these counts.

    Args:
        places: each log's offsets partition and all of its groups, whichever are shown; None for one that nobody tells.
        count: how many offsets partitions there are.

    Attributes:
        strays: (offsets partition, group) of what is in a partition that is not the group's own → the group's own; none
            where the count is a guess.
        doubled: groups of which several logs have records, and nothing tells which counts.
    """

    def __init__(self, places: Sequence[tuple[int | None, Collection[str]]], count: PartitionCount) -> None:
        self.count = count
        self._groups: dict[int, Collection[str]] = {number: names for number, names in places if number is not None}
        self.strays: dict[tuple[int, str], int] = {}
        self.doubled: frozenset[str] = frozenset()
        if not count.is_guess:
            for number, names in self._groups.items():
                self.strays |= {(number, group): home for group, home in strays_of(names, count, number).items()}
        if count.is_guess or any(number is None for number, _ in places):
            times = Counter(group for number, names in places for group in names if (number, group) not in self.strays)
            self.doubled = frozenset(group for group, logs in times.items() if logs > 1)

    def is_read(self, partition: int) -> bool:
        """Whether an offsets partition is among those that were read."""
        return partition in self._groups

    def superseded(self) -> set[tuple[int, str]]:
        """Return the strays that their own partition has too."""
        return {stray for stray, home in self.strays.items() if stray[1] in self._groups.get(home, ())}

    def unanswered(self, profile: Profile) -> set[tuple[int, str]]:
        """Return the strays that `at_home` has not: all, but for what one cache answers with."""
        if not profile.answers_from_one_cache:
            return set(self.strays)
        return self.superseded() | {stray for stray, home in self.strays.items() if home not in self._groups}

    def left_out(self, profile: Profile) -> set[tuple[int, str]]:
        """Return the strays that no broker answers for, as their own partition is here.

        A coordinator with one cache answers for those that their own partition lacks.
        """
        if profile.answers_from_one_cache:
            return self.superseded()
        return {stray for stray, home in self.strays.items() if home in self._groups}


def _without(state: CoordinatorState, groups: Mapping[str, int]) -> CoordinatorState:
    return state.showing(lambda group: group not in groups, lambda topic: True)


def _with(state: CoordinatorState, other: CoordinatorState, group: str) -> CoordinatorState:
    """Return a state with a group of another state added."""
    moved = other.showing(lambda name: name == group, lambda topic: True)
    return replace(
        state,
        groups=state.groups | moved.groups,
        committed=(*state.committed, *moved.committed),
        pending=(*state.pending, *moved.pending),
    )
