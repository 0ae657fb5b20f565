"""Choose between copies of one partition: the longest good one is read, and differences in the overlap are noted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

from offsets_log.columnar.large import is_large
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.words import counted

if TYPE_CHECKING:
    from offsets_log.disk.extents import Extent

Advance = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Leader:
    """The broker that led a partition last, by the cluster's metadata.

    Attributes:
        node_id: the broker's id.
        epoch: the leader epoch in which it led.
        copies: which of the replicas are from its data directories, by their indices.
    """

    node_id: int
    epoch: int
    copies: Collection[int] = ()


class Alike:
    """Partitions whose copies are undamaged and hold the same batches: nothing is said of each, but of all together."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, ...]] = Counter()

    def add(self, chosen: PartitionLog, replicas: Sequence[PartitionLog]) -> None:
        """Add a partition."""
        self._counts[_home(chosen), *(_home(log) for log in replicas if log is not chosen)] += 1

    @property
    def notes(self) -> list[str]:
        """Which copies are read, a sentence for each set of data directories."""
        return [
            f"{counted(count, 'partition has', 'partitions have')} copies with the same batches: read in {read}, left "
            f"out in {', '.join(others)}"
            for (read, *others), count in self._counts.items()
        ]


def choose_replica(
    replicas: Sequence[PartitionLog],
    leader: Leader | None = None,
    alike: Alike | None = None,
    advance: Advance = lambda size_bytes: None,
    *,
    in_bulk: bool | None = None,
) -> PartitionLog:
    """Return the replica that begins first and, of those, the one whose readable batches reach the highest offset.

    Ties are decided by the least damage, then by size, then by order. Files without a segment's name that follow each
    other are joined to one log; they are not replicas.

    If the leader is known, a replica of a later leader epoch is preferred to a longer one. The leader's own replica, if
    undamaged, has the epoch in which it led: what others have beyond its end counts only if it is of that epoch, too.

    Every replica is read whole. The notes of the answer tell the choice, the first difference from each other replica,
    and what another one has beyond its end. Its high watermark is the highest of all replicas'.

    Args:
        alike: takes the partition if there is nothing to tell of its replicas one by one.
        advance: called with the number of bytes read since the last call, from any thread.
        in_bulk: whether a kernel reads them; None to decide by their size.
    """
    if len(replicas) == 1:
        return replicas[0]
    from offsets_log.disk.extents import extent_of

    if in_bulk is None:
        in_bulk = is_large(sum(log.bytes_to_read for log in replicas))
    with ThreadPoolExecutor() as pool:
        extents = [*pool.map(partial(extent_of, advance=advance, in_bulk=in_bulk), replicas)]
    joined = _join(replicas, extents)
    if joined is not None:
        return joined
    ranks = [_rank(extent, leader, index) for index, extent in enumerate(extents)]
    best = ranks.index(max(ranks))
    chosen, end = replicas[best], extents[best].end
    notes = []
    if alike is not None and all(extent.is_as(extents[best]) for extent in extents):
        alike.add(chosen, replicas)
    else:
        why = "" if leader is None else _why(best, extents, leader)
        notes = [f"{len(replicas)} replicas: {_place(chosen)} is read, its whole batches end before offset {end}{why}"]
        for log, extent in zip(replicas, extents, strict=True):
            if log is not chosen:
                notes += _notes_about(log, extent, chosen, extents[best], in_bulk)
    marks = [log.checkpoints.high_watermark for log in replicas if log.checkpoints.high_watermark is not None]
    told = replace(chosen.checkpoints, high_watermark=max(marks, default=None))
    return replace(chosen, notes=(*chosen.notes, *notes), checkpoints=told)


def _rank(extent: Extent, leader: Leader | None, index: int) -> tuple[int, ...]:
    if leader is None:
        return -extent.begin, extent.end, -extent.damaged, extent.size_bytes
    is_leaders = index in leader.copies
    epoch = max(extent.epoch, leader.epoch) if is_leaders and not extent.damaged else extent.epoch
    return -extent.begin, epoch, extent.end, -extent.damaged, is_leaders, extent.size_bytes


def _why(best: int, extents: Sequence[Extent], leader: Leader) -> str:
    led = f"broker {leader.node_id} led the partition last, in leader epoch {leader.epoch}"
    if best in leader.copies:
        return f"; {led}, and this is its copy"
    if not leader.copies:
        return f"; {led}, and no copy of it was given"
    is_damaged = any(extents[index].damaged for index in leader.copies)
    return f"; {led}, but its copy is {'damaged' if is_damaged else 'older'}"


def _notes_about(log: PartitionLog, extent: Extent, chosen: PartitionLog, best: Extent, in_bulk: bool) -> list[str]:
    state = f"{counted(extent.damaged, 'damaged piece')}" if extent.damaged else "undamaged"
    notes = [f"{_place(log)} is left out: offsets {extent.begin} to {extent.end - 1}, {state}, {log.size_bytes} bytes"]
    if extent.end > best.end:
        notes.append(f"{_place(log)} goes on to offset {extent.end - 1}, which {_place(chosen)} does not have")
    from offsets_log.disk.extents import first_difference

    difference = None if extent.content == best.content else first_difference(chosen, log, in_bulk=in_bulk)
    if difference is not None:
        notes.append(
            f"{_place(chosen)} and {_place(log)} differ from record offset {difference} on; one may be compacted"
        )
    return notes


def _join(logs: Sequence[PartitionLog], extents: Sequence[Extent]) -> PartitionLog | None:
    """Join named files that each hold one piece of the log, in order of offsets; return None if any two overlap."""
    if any(log.segments[0].base_offset is not None for log in logs):
        return None
    order = sorted(range(len(logs)), key=lambda i: extents[i].begin)
    if any(extents[i].end > extents[j].begin for i, j in pairwise(order)):
        return None
    return replace(logs[order[0]], segments=tuple(segment for i in order for segment in logs[i].segments))


def _home(log: PartitionLog) -> str:
    """Return the data directory in which a replica's folder lies; the folder, or the file, that lies in none."""
    place = _place(log)
    return place.rpartition("/")[0] or place


def _place(log: PartitionLog) -> str:
    first = log.segments[0]
    folder = first.file.rpartition("/")[0]
    return first.file if first.base_offset is None or not folder else folder
