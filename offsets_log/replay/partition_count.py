"""Find how many partitions `__consumer_offsets` has, from where its groups are."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from math import gcd, prod
from typing import NamedTuple

from offsets_log.replay.coordinator_state import CoordinatorState
from offsets_log.replay.partition_for import DEFAULT_PARTITIONS, positive_hash
from offsets_log.words import counted

SAMPLE = 2000
"""Maximum number of groups that are looked at."""

MAX_PARTITIONS = 1000

FEW = 5
"""Minimum number of groups for a choice: with fewer, any number of partitions can fit by chance."""

CHANCE = 1e-3
"""Likelihood below which two numbers do not explain all places by chance."""


class PartitionCount(NamedTuple):
    """The number of partitions of `__consumer_offsets`, and how it is known.

    Attributes:
        source: ``option`` if the user gave it, ``metadata`` if the cluster's metadata log tells it, ``checkpoints`` if
            or folders of a data directory do, ``data`` or ``default`` if groups confirm it, ``guess`` if too few do.
            ``outgrown`` if there are at least so many, but groups are where fewer would put them: the topic was given
            more partitions, and nothing tells how many. ``contradicted`` if no number puts all groups of several
            partitions where they are: one has groups of another, or a group is in two.
    """

    number: int
    source: str

    @property
    def is_guess(self) -> bool:
        """Whether nothing confirms it."""
        return self.source in ("guess", *DOUBTED)


DOUBTED = ("outgrown", "contradicted")
"""Sources of a number that groups speak against."""


def partition_count(groups: Mapping[int, Collection[str]]) -> PartitionCount:
    """Return how many partitions `__consumer_offsets` has, from where its groups are (``records:H1``–``H3``).

    The answer is 50 unless a higher partition was found, or at least half of the groups contradict it, or one of only a
    few. Then it is the highest partition found plus one, if all groups of several partitions fit that; else the number
    that most groups fit (the largest of equals). Where all fit a lower number than there are partitions, or each fits
    either that or a higher one, the topic was given more: all that there are, if there is no gap among them.

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
    if _are_several(groups) and fitting(found) == len(sample):
        return PartitionCount(found, "data")
    are_all_here = len(groups) == found
    if len(sample) >= FEW:
        best = max(
            range(found, max(found, MAX_PARTITIONS) + 1), key=lambda partitions: (fitting(partitions), partitions)
        )
        if fitting(best) < len(sample) and any(fitting(fewer) == len(sample) for fewer in range(_end(groups), found)):
            return PartitionCount(found, "checkpoints" if are_all_here else "outgrown")
        if fitting(best) * 2 > len(sample):
            return PartitionCount(best, "data")
        if grown := _outgrown(sample, found):
            return PartitionCount(grown, "checkpoints" if are_all_here and grown == found else "outgrown")
    is_doubled = len({number for _, number in sample}) < len(sample)
    is_shown = _are_several(groups) and (is_doubled or len(sample) >= FEW)
    if is_shown and 0 < gcd(*distances) < found:  # of which any number that all fit is a divisor
        return PartitionCount(found if are_all_here else max(found, DEFAULT_PARTITIONS), "contradicted")
    return PartitionCount(max(found, DEFAULT_PARTITIONS), "guess")


def _are_several(groups: Mapping[int, Collection[str]]) -> bool:
    """Whether more than one partition has groups."""
    return sum(map(bool, groups.values())) > 1


def _outgrown(sample: Collection[tuple[int, int]], found: int) -> int:
    """Return the number that some groups fit where the others fit a lower one; 0 if there is none.

    Groups stay where the lower number put them until they commit again. Of several numbers that explain this, that of
    the partitions found counts, or else none.

    Args:
        sample: partition and positive hash of each group.
        found: the number of partitions found.
    """
    higher = set()
    for lower in range(1, found):
        common = gcd(*(number - partition for partition, number in sample if number % lower != partition))
        for more in (number for number in range(found, max(found, MAX_PARTITIONS) + 1) if common % number == 0):
            chance = prod((partition < lower) / lower + 1 / more for partition, _ in sample)
            if chance * found < CHANCE:
                higher.add(more)
    return found if found in higher else higher.pop() if len(higher) == 1 else 0


def _end(groups: Mapping[int, Collection[str]]) -> int:
    """Return the highest partition with groups, plus one."""
    return max((number for number, names in groups.items() if names), default=-1) + 1


def doubt_in_words(count: PartitionCount, found: Iterable[tuple[int | None, Collection[str]]]) -> str:
    """Say what groups speak against the number, and what to do; nothing if they do not.

    Args:
        found: offsets partition and groups in it, those from which the number is known.
    """
    if count.source == "outgrown":
        return (
            f"groups here are where fewer offsets partitions would put them than there are, {count.number} at least: "
            "the topic was given more, and groups were left in partitions where no broker looks for them. "
            f"--partitions N tells how many there are, as --partitions {count.number}"
        )
    if count.source != "contradicted":
        return ""
    filled = [(partition, names) for partition, names in found if partition is not None and names]
    groups = {name for _, names in filled for name in names}
    partitions = ", ".join(str(partition) for partition, _ in sorted(filled, key=lambda one: one[0]))
    return (
        f"no single number of offsets partitions puts the {counted(len(groups), 'group')} here, in offsets partitions "
        f"{partitions}, where they are: the topic was given more, or folders are not named as they were, and no broker "
        "looks for a group outside of its own partition. --partitions N tells how many there are, as --partitions "
        f"{count.number}"
    )


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
