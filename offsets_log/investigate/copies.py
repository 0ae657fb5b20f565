"""Compare two copies of offsets partitions, even where one does not say which partitions it holds (`diff`).

Pasted text does not name its offsets partition. If the other copy does, groups are put where their names belong
(``records:H1``), so that what only one copy holds is not taken for new or deleted; otherwise all is compared with all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, replace

from offsets_log.broker.home import Homes
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.replay.coordinator_state import CoordinatorState
from offsets_log.replay.partition_count import PartitionCount, partition_count
from offsets_log.replay.partition_for import partition_for

Loaded = tuple[PartitionLog, CoordinatorState]


@dataclass(frozen=True, slots=True)
class Held:
    """The contents of a copy of one offsets partition.

    Attributes:
        logs: the logs it comes from.
        is_whole: whether it is the whole of one log.
    """

    logs: tuple[PartitionLog, ...]
    state: CoordinatorState
    is_whole: bool = True

    @property
    def end_offset(self) -> int | None:
        """The record offset where it continues; None if unknown."""
        return self.state.end_offset if self.is_whole and "record_offset" not in self.state.missing_columns else None


@dataclass(frozen=True, slots=True)
class ComparedPartition:
    """One offsets partition before and after; its number is None if unknown."""

    offsets_partition: int | None
    before: Held
    after: Held

    @property
    def start(self) -> int | None:
        """The offset where ``before`` ends in the log of ``after``; None if it is not known to be the same log."""
        return None if self.after.end_offset is None else self.before.end_offset


def partitions_of(*copies: Iterable[Loaded], told: PartitionCount | None = None) -> PartitionCount | None:
    """Return how many offsets partitions there are, by the logs that tell theirs; None if none does, or all do.

    Args:
        told: what is known otherwise, where the question arises.
    """
    loaded = [item for copy in copies for item in copy]
    known: dict[int, set[str]] = {}
    for log, state in loaded:
        if log.offsets_partition is not None:
            known.setdefault(log.offsets_partition, set()).update(state.groups)
    if not known or all(log.offsets_partition is not None for log, _ in loaded):
        return None
    return told or partition_count(known)


def by_partition(
    copy: Iterable[Loaded], count: PartitionCount | None, *, moves: bool = False
) -> dict[int | None, Held]:
    """Return what a copy holds, by offsets partition.

    Args:
        count: used to put groups of logs with unknown offsets partition where they belong; None to keep these together.
        moves: whether groups are put where they belong from all logs, but for those that their own has too.
    """
    found: dict[int | None, list[Held]] = {}
    copy = list(copy)
    superseded = Homes(places_of(copy), count).superseded() if moves and count is not None else set()
    for log, state in copy:
        if superseded:
            state = _without(state, {group for number, group in superseded if number == log.offsets_partition})
        if (log.offsets_partition is not None and not moves) or count is None:
            found.setdefault(log.offsets_partition, []).append(Held((log,), state))
            continue
        for home in sorted({partition_for(group, count.number) for group in _groups(state)}):
            found.setdefault(home, []).append(Held((log,), _at_home(state, home, count.number), is_whole=False))
    return {partition: _joined(held) for partition, held in found.items()}


def places_of(copy: Iterable[Loaded]) -> list[tuple[int | None, set[str]]]:
    """Return the offsets partition of each log of a copy, and its groups."""
    return [(log.offsets_partition, _groups(state)) for log, state in copy]


def _without(state: CoordinatorState, groups: Set[str]) -> CoordinatorState:
    return state.showing(lambda group: group not in groups, lambda topic: True)


def _groups(state: CoordinatorState) -> set[str]:
    return {*state.groups, *(value.group for value in (*state.committed, *state.pending))}


def _at_home(state: CoordinatorState, home: int, partitions: int) -> CoordinatorState:
    return state.showing(lambda group: partition_for(group, partitions) == home, lambda topic: True)


def _joined(held: Sequence[Held]) -> Held:
    """Join several states to one: their groups differ, except for what is in two logs."""
    if len(held) == 1:
        return held[0]
    states = [part.state for part in held]
    state = replace(
        states[0],
        groups={group_id: group for state in states for group_id, group in state.groups.items()},
        committed=tuple(value for state in states for value in state.committed),
        pending=tuple(value for state in states for value in state.pending),
        topic_names={topic_id: name for state in states for topic_id, name in state.topic_names.items()},
        missing_columns=frozenset().union(*(state.missing_columns for state in states)),
    )
    return Held(tuple(log for part in held for log in part.logs), state, is_whole=False)
