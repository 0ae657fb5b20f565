"""Which of two copies of a log a cluster would have truncated: the one whose end is of the earlier leader epoch.

A leader writes its epoch into every batch, and a follower truncates its log to where its epochs leave those of the
leader. A cleaner takes batches, and may so take the first of an epoch, but moves none: what a copy holds of an epoch
is proof, and what it lacks is none.

References: KIP-101, KIP-279, ``LeaderEpochFileCache.endOffsetFor``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from offsets_log.log_format.batch import NO_PARTITION_LEADER_EPOCH

NOTHING = -1


@dataclass(frozen=True, slots=True)
class EpochEntry:
    """A leader epoch in a log.

    Attributes:
        start_offset: the first offset in it, as far as the log or its ``leader-epoch-checkpoint`` tell.
        last_offset: of its last batch here; `NOTHING` if there is none.
    """

    epoch: int
    start_offset: int
    last_offset: int = NOTHING


@dataclass(frozen=True, slots=True)
class Truncation:
    """Where a cluster would have truncated one of two copies.

    Attributes:
        offset: the first offset that would be gone.
        epoch: the leader epoch there in the copy that would be truncated.
        later: that in the other one.
    """

    offset: int
    epoch: int
    later: int


Line = Sequence[EpochEntry]
"""Leader epochs of a log, both they and their offsets rising."""


def line_of(runs: Iterable[EpochEntry], noted: Mapping[int, int], end_offset: int) -> Line:
    """Return the leader epochs of a log.

    Where epochs fall, as no leader writes them, the later batches count, as in a broker's own list of them.

    Args:
        runs: the epochs of batches that follow each other, in the order of the log.
        noted: leader epoch → first offset, of ``leader-epoch-checkpoint``; nothing behind the log's end counts.
    """
    line: list[EpochEntry] = []
    for run in runs:
        while line and line[-1].epoch > run.epoch:
            line.pop()
        if run.epoch == NO_PARTITION_LEADER_EPOCH:
            continue
        start = line.pop().start_offset if line and line[-1].epoch == run.epoch else run.start_offset
        line.append(EpochEntry(run.epoch, start, run.last_offset))
    known = {entry.epoch: entry for entry in line}
    for epoch, start in noted.items():
        own = known.get(epoch, EpochEntry(epoch, start))
        if start <= min(end_offset, own.start_offset):
            known[epoch] = EpochEntry(epoch, start, own.last_offset)
    merged = [entry for _, entry in sorted(known.items())]
    rises = all(one.start_offset <= other.start_offset for one, other in pairwise(merged))
    return merged if rises else line


def truncation(copy: Line, leader: Line) -> Truncation | None:
    """Return where a copy would lose batches if the other were the leader's; None if they agree, or it is the later.

    They contradict each other where one holds a batch of an epoch behind the start of a later one in the other.
    """
    if not copy or not leader or copy[-1].epoch >= leader[-1].epoch:
        return None
    offset = min((*_overruled(copy, leader), *_overruled(leader, copy)), default=None)
    if offset is None or offset > max(entry.last_offset for entry in copy):
        return None
    return Truncation(offset, _epoch_at(copy, offset), _epoch_at(leader, offset))


def _overruled(one: Line, other: Line) -> Iterator[int]:
    """Yield from where on batches of one stand behind the start of a later epoch in the other."""
    for entry in one:
        later = next((begun for begun in other if begun.epoch > entry.epoch), None)
        if later is not None and later.start_offset <= entry.last_offset:
            yield max(entry.start_offset, later.start_offset)


def _epoch_at(line: Line, offset: int) -> int:
    begun = [entry.epoch for entry in line if entry.start_offset <= offset]
    return begun[-1] if begun else NO_PARTITION_LEADER_EPOCH
