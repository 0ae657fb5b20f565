"""Decide who answers for a group that is in another offsets partition than its own: a damaged name, a restored file.

Clients ask the coordinator of the partition that the group's name leads to (``records:H1``), with U+FFFD in place of
bytes that are not UTF-8 (``records:P5``). The Java coordinator looks only at what it loaded from that partition; the
Scala one has one cache for all partitions of its broker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from offsets_log.replay.coordinator_state import CoordinatorState
from offsets_log.replay.partition_count import PartitionCount, count_of
from offsets_log.replay.partition_for import partition_for


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
        strays = strays_of(state, partitions, partition)
        if not strays:
            continue
        found[partition] = _without(found[partition], strays)
        if state.profile.answers_from_one_cache:
            for group, home in strays.items():
                if home in found and group not in found[home].groups:
                    found[home] = _with(found[home], state, group)
    return found


def strays_of(state: CoordinatorState, partitions: PartitionCount, found_in: int) -> dict[str, int]:
    """Return the groups of an offsets partition that belong to another, and to which."""
    return {group: home for group in state.groups if (home := partition_for(group, partitions.number)) != found_in}


def iter_superseded(
    states: Iterable[tuple[int | None, CoordinatorState]], partitions: PartitionCount
) -> Iterator[tuple[int, str]]:
    """Yield the groups in a partition that is not theirs while their own has them too; none where that is a guess."""
    if partitions.is_guess:
        return
    known = [(partition, state) for partition, state in states if partition is not None]
    present = {(partition, group) for partition, state in known for group in state.groups}
    for partition, state in known:
        for group, home in strays_of(state, partitions, partition).items():
            if (home, group) in present:
                yield partition, group


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
