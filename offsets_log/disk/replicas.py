"""Choose between copies of one partition: the longest good one is read, and differences in the overlap are noted."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from offsets_log.errors import Damage
from offsets_log.log_format.batch import LOG_OVERHEAD, MAGIC_POSITION, RecordBatch
from offsets_log.log_format.partition_log import PartitionLog, iter_log
from offsets_log.words import counted


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


def choose_replica(replicas: Sequence[PartitionLog], leader: Leader | None = None) -> PartitionLog:
    """Return the replica that begins first and, of those, the one whose readable batches reach the highest offset.

    Ties are decided by the least damage, then by size, then by order. Files without a segment's name that follow each
    other are joined to one log; they are not replicas.

    If the leader is known, a replica of a later leader epoch is preferred to a longer one. The leader's own replica, if
    undamaged, has the epoch in which it led: what others have beyond its end counts only if it is of that epoch, too.

    Every replica is read whole. The notes of the answer tell the choice, the first difference from each other replica,
    and what another one has beyond its end. Its high watermark is the highest of all replicas'.
    """
    if len(replicas) == 1:
        return replicas[0]
    extents = [_extent(log) for log in replicas]
    joined = _join(replicas, extents)
    if joined is not None:
        return joined
    ranks = [_rank(extent, leader, index) for index, extent in enumerate(extents)]
    best = ranks.index(max(ranks))
    chosen, end = replicas[best], extents[best].end
    why = "" if leader is None else _why(best, extents, leader)
    notes = [f"{len(replicas)} replicas: {_place(chosen)} is read, its whole batches end before offset {end}{why}"]
    for log, extent in zip(replicas, extents, strict=True):
        if log is not chosen:
            notes += _notes_about(log, extent, chosen, end)
    marks = [log.checkpoints.high_watermark for log in replicas if log.checkpoints.high_watermark is not None]
    told = replace(chosen.checkpoints, high_watermark=max(marks, default=None))
    return replace(chosen, notes=(*chosen.notes, *notes), checkpoints=told)


def _rank(extent: _Extent, leader: Leader | None, index: int) -> tuple[int, ...]:
    if leader is None:
        return -extent.begin, extent.end, -extent.damaged, extent.size_bytes
    is_leaders = index in leader.copies
    epoch = max(extent.epoch, leader.epoch) if is_leaders and not extent.damaged else extent.epoch
    return -extent.begin, epoch, extent.end, -extent.damaged, is_leaders, extent.size_bytes


def _why(best: int, extents: Sequence[_Extent], leader: Leader) -> str:
    led = f"broker {leader.node_id} led the partition last, in leader epoch {leader.epoch}"
    if best in leader.copies:
        return f"; {led}, and this is its copy"
    if not leader.copies:
        return f"; {led}, and no copy of it was given"
    is_damaged = any(extents[index].damaged for index in leader.copies)
    return f"; {led}, but its copy is {'damaged' if is_damaged else 'older'}"


def _notes_about(log: PartitionLog, extent: _Extent, chosen: PartitionLog, end: int) -> list[str]:
    state = f"{counted(extent.damaged, 'damaged piece')}" if extent.damaged else "undamaged"
    notes = [f"{_place(log)} is left out: offsets {extent.begin} to {extent.end - 1}, {state}, {log.size_bytes} bytes"]
    if extent.end > end:
        notes.append(f"{_place(log)} goes on to offset {extent.end - 1}, which {_place(chosen)} does not have")
    difference = first_difference(chosen, log)
    if difference is not None:
        notes.append(
            f"{_place(chosen)} and {_place(log)} differ from record offset {difference} on; one may be compacted"
        )
    return notes


@dataclass(frozen=True, slots=True)
class _Extent:
    """The extent of a replica: offsets from ``begin`` to below ``end``, damaged pieces, size in bytes.

    Attributes:
        epoch: the leader epoch of its last batch; −1 before magic 2.
    """

    begin: int
    end: int
    damaged: int
    size_bytes: int
    epoch: int


def _join(logs: Sequence[PartitionLog], extents: Sequence[_Extent]) -> PartitionLog | None:
    """Join named files that each hold one piece of the log, in order of offsets; return None if any two overlap."""
    if any(log.segments[0].base_offset is not None for log in logs):
        return None
    order = sorted(range(len(logs)), key=lambda i: extents[i].begin)
    if any(extents[i].end > extents[j].begin for i, j in pairwise(order)):
        return None
    return replace(logs[order[0]], segments=tuple(segment for i in order for segment in logs[i].segments))


def first_difference(one: PartitionLog, other: PartitionLog) -> int | None:
    """Return the first base offset where two replicas differ, between the later beginning and the earlier end of both.

    A difference is a batch only one of them has, or two of the same base offset with other bytes. The partition
    leader epoch is not compared: it is no part of what was appended, nor of the checksum.
    """
    begin = max(_begin(one), _begin(other))
    for left, right in zip(_batches(one, begin), _batches(other, begin), strict=False):
        if left.base_offset != right.base_offset or _content(left) != _content(right):
            return min(left.base_offset, right.base_offset)
    return None


def _extent(log: PartitionLog) -> _Extent:
    end, damaged, epoch = 0, 0, -1
    for _, item in iter_log(log):
        if isinstance(item, RecordBatch):
            end = max(end, item.next_offset)
            epoch = item.partition_leader_epoch if item.magic == 2 else -1
        elif isinstance(item, Damage):
            damaged += 1
    return _Extent(_begin(log), end, damaged, log.size_bytes, epoch)


def _begin(log: PartitionLog) -> int:
    """Return the base offset in the first file's name: a compacted log begins there even without its first batches."""
    named = log.segments[0].base_offset
    return named if named is not None else next((batch.base_offset for batch in _batches(log)), 0)


def _batches(log: PartitionLog, begin: int = 0) -> Iterator[RecordBatch]:
    items = (item for _, item in iter_log(log))
    return (item for item in items if isinstance(item, RecordBatch) and item.base_offset >= begin)


def _content(batch: RecordBatch) -> tuple[bytes, bytes]:
    start = MAGIC_POSITION if batch.magic == 2 else LOG_OVERHEAD
    return batch.raw[:LOG_OVERHEAD], batch.raw[start:]


def _place(log: PartitionLog) -> str:
    first = log.segments[0]
    folder = first.file.rpartition("/")[0]
    return first.file if first.base_offset is None or not folder else folder
