"""Find how many partitions `__consumer_offsets` has, from where its groups are."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from typing import NamedTuple

from offsets_log.replay.coordinator_state import CoordinatorState
from offsets_log.replay.partition_for import DEFAULT_PARTITIONS, positive_hash

SAMPLE = 2000
"""Maximum number of groups that are looked at."""

MAX_PARTITIONS = 1000

FEW = 5
"""Minimum number of groups for a choice: with fewer, any number of partitions can fit by chance."""


class PartitionCount(NamedTuple):
    """The number of partitions of `__consumer_offsets`, and how it is known.

    Attributes:
        source: ``option`` if the user gave it, ``metadata`` if the cluster's metadata log tells it, ``checkpoints`` if
            or folders of a data directory do, ``data`` or ``default`` if groups confirm it, ``guess`` if too few do.
            ``outgrown`` if there are at least so many, but the groups are where fewer would put them: the topic was
            given more partitions, and nothing tells how many.
    """

    number: int
    source: str

    @property
    def is_guess(self) -> bool:
        """Whether nothing confirms it."""
        return self.source in ("guess", "outgrown")


def partition_count(groups: Mapping[int, Collection[str]]) -> PartitionCount:
    """Return how many partitions `__consumer_offsets` has, from where its groups are (``records:H1``–``H3``).

    The answer is 50 unless a higher partition was found, or at least half of the groups contradict it, or one of only a
    few. Then it is the highest partition found plus one, if all groups of several partitions fit that; else the number
    that most groups fit (the largest of equals). Where all fit only a lower number than there are partitions, the topic
    was given more: all that there are, if there is no gap among them.

    Args:
        groups: offsets partition → its groups.
    """
    found = max(groups, default=-1) + 1
    named = ((partition, group) for partition, names in groups.items() for group in names)
    sample = [(partition, positive_hash(group)) for partition, group in islice(named, SAMPLE)]
    distances = [number - partition for partition, number in sample]

    def fitting(partitions: int) -> int:  # which is higher than any partition of the sample
        return [distance % partitions for distance in distances].count(0)

    if found <= DEFAULT_PARTITIONS:
        fits = fitting(DEFAULT_PARTITIONS)
        if fits == len(sample) or (fits * 2 > len(sample) and len(sample) >= FEW):
            return PartitionCount(DEFAULT_PARTITIONS, "default")
    if sum(map(bool, groups.values())) > 1 and fitting(found) == len(sample):
        return PartitionCount(found, "data")
    if len(sample) >= FEW:
        best = max(
            range(found, max(found, MAX_PARTITIONS) + 1), key=lambda partitions: (fitting(partitions), partitions)
        )
        if fitting(best) < len(sample) and any(fitting(fewer) == len(sample) for fewer in range(_end(groups), found)):
            return PartitionCount(found, "checkpoints" if len(groups) == found else "outgrown")
        if fitting(best) * 2 > len(sample):
            return PartitionCount(best, "data")
    return PartitionCount(max(found, DEFAULT_PARTITIONS), "guess")


def outgrown_in_words(count: PartitionCount) -> str:
    """Say that the groups are where fewer partitions would put them."""
    least = " at least" if count.is_guess else ""
    return (
        f"the groups here are where fewer offsets partitions would put them than there are, {count.number}{least}: the "
        "topic was given more, and groups were left in partitions where no broker looks for them"
    )


def _end(groups: Mapping[int, Collection[str]]) -> int:
    """Return the highest partition with groups, plus one."""
    return max((number for number, names in groups.items() if names), default=-1) + 1


def count_shown_by(groups: Mapping[int, Collection[str]]) -> PartitionCount:
    """Return the answer of `partition_count`, which is a guess if there is no group at all."""
    count = partition_count(groups)
    return count if any(groups.values()) else count._replace(source="guess")


def count_of_groups(
    found: Iterable[tuple[int | None, Iterable[str]]], named: Iterable[int | None] = ()
) -> PartitionCount:
    """Return the answer of `count_shown_by`.

    Args:
        found: offsets partition and groups in it; None for one that nobody tells.
        named: partitions that there are too, with groups that nobody knows.
    """
    groups: dict[int, set[str]] = {number: set() for number in named if number is not None}
    for partition, names in found:
        if partition is not None:
            groups.setdefault(partition, set()).update(names)
    return count_shown_by(groups)


def count_of(states: Iterable[tuple[int | None, CoordinatorState]], named: Iterable[int | None] = ()) -> PartitionCount:
    """Return the answer of `count_of_groups` for what was loaded, whatever a filter hides of it."""
    found = ((partition, (*state.groups, *state.hidden_groups)) for partition, state in states)
    return count_of_groups(found, named)
