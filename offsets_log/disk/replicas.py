"""Several copies of one partition: the longest good one is read, differences where they overlap are told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from offsets_log.errors import Damage
from offsets_log.log_format.batch import LOG_OVERHEAD, MAGIC_POSITION, RecordBatch
from offsets_log.log_format.partition_log import PartitionLog, iter_log


def choose_replica(replicas: Sequence[PartitionLog]) -> PartitionLog:
    """The one whose readable batches reach the highest offset; then the least damaged, the largest, the first.

    Reads every replica whole. The notes of the answer tell the choice and the first difference from each other one.
    """
    if len(replicas) == 1:
        return replicas[0]
    ranks = [_rank(log) for log in replicas]
    best = ranks.index(max(ranks))
    chosen = replicas[best]
    notes = [
        f"{len(replicas)} replicas: {_place(chosen)} is read, its whole batches end before offset {ranks[best][0]}"
    ]
    for log, (end, damaged, _) in zip(replicas, ranks, strict=True):
        if log is chosen:
            continue
        state = f"{-damaged} damaged pieces" if damaged else "undamaged"
        notes.append(f"{_place(log)} is left out: it ends before offset {end}, {state}, {log.size_bytes} bytes")
        difference = first_difference(chosen, log)
        if difference is not None:
            notes.append(
                f"{_place(chosen)} and {_place(log)} differ from record offset {difference} on; one may be compacted"
            )
    return replace(chosen, notes=(*chosen.notes, *notes))


def first_difference(one: PartitionLog, other: PartitionLog) -> int | None:
    """The first base offset where two replicas differ, between the later beginning and the earlier end of both.

    A difference is a batch only one of them has, or two of the same base offset with other bytes. The partition
    leader epoch is not compared: it is no part of what was appended, nor of the checksum.
    """
    begin = max(_begin(one), _begin(other))
    for left, right in zip(_batches(one, begin), _batches(other, begin), strict=False):
        if left.base_offset != right.base_offset or _content(left) != _content(right):
            return min(left.base_offset, right.base_offset)
    return None


def _rank(log: PartitionLog) -> tuple[int, int, int]:
    end = damaged = 0
    for _, item in iter_log(log):
        if isinstance(item, RecordBatch):
            end = max(end, item.next_offset)
        elif isinstance(item, Damage):
            damaged += 1
    return end, -damaged, log.size_bytes


def _begin(log: PartitionLog) -> int:
    """From the first file's name: a compacted log begins there too, even if its first batches are gone."""
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
