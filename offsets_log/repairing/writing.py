"""The files of a repaired partition: segments with their indexes, producer snapshots, leader epochs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from offsets_log.broker.batches import entry_at
from offsets_log.broker.indexes import Indexing
from offsets_log.broker.leader_epochs import encode_leader_epochs, leader_epochs_within, told_leader_epochs
from offsets_log.broker.producers import Producers, encode_snapshot
from offsets_log.broker.segment_writer import SegmentWriter
from offsets_log.cleaner.editing import last_batch
from offsets_log.cleaner.folder import FolderFile
from offsets_log.events import EVERYTHING, Event, batch_events
from offsets_log.log_format.batch import (
    MAX_OFFSETS_IN_SEGMENT,
    NO_PARTITION_LEADER_EPOCH,
    NO_TIMESTAMP,
    decode_batch_header,
)
from offsets_log.log_format.completeness import Missing
from offsets_log.log_format.file_names import LEADER_EPOCHS, PARTITION_METADATA
from offsets_log.log_format.partition_log import Checkpoints, PartitionLog, Segment
from offsets_log.log_format.segment import Buffer
from offsets_log.repairing.left_out import LeftOut, Sum
from offsets_log.repairing.picked import Picked, Run
from offsets_log.repairing.picking import Picking
from offsets_log.repairing.unloadable import NOTHING, Unloadable

MAX_SEGMENT_BYTES = (1 << 31) - 1
"""The size that a segment may have: positions in an index have 4 bytes."""

Emit = Callable[[FolderFile], None]
Tell = Callable[[LeftOut], None]
Miss = Callable[[Missing], None]
Advance = Callable[[int], None]
Join = Callable[[Iterable[Buffer]], Buffer]
"""Puts the pieces of a file together."""


@dataclass(slots=True)
class Repaired:
    """The result of a repair.

    Attributes:
        first_offset: where the first segment begins.
        end_offset: the offset at which the log goes on.
        last_stable_offset: where the oldest transaction without a marker begins; the log's end if there is none.
        rewritten: batches that lost records.
        left_out: by reason.
        missing: so many offsets are in no segment, and nothing explains it.
        undecodable: what is wrong with records that stay though no coordinator understands them, and where they are.
    """

    log: PartitionLog
    first_offset: int = 0
    end_offset: int = 0
    last_stable_offset: int = 0
    segments: int = 0
    batches: int = 0
    size_bytes: int = 0
    rewritten: int = 0
    left_out: dict[str, Sum] = field(default_factory=dict)
    missing: int = 0
    undecodable: list[str] = field(default_factory=list)

    @property
    def start_offset(self) -> int:
        """The offset at which the log begins; earlier records are deleted."""
        return self._within(self.log.checkpoints.log_start_offset) or self.first_offset

    def checkpoints(self) -> Checkpoints:
        """Return the lines for a data directory; a checkpoint that made no sense is not repeated (``CL-2``)."""
        told = self.log.checkpoints
        return Checkpoints(
            cleaned_until=self._within(told.cleaned_until),
            high_watermark=self.end_offset,
            log_start_offset=self._within(told.log_start_offset),
            recovery_point=self.end_offset,
        )

    def _within(self, offset: int | None) -> int | None:
        return offset if offset is not None and self.first_offset < offset <= self.end_offset else None


def repair(
    log: PartitionLog,
    emit: Emit,
    *,
    unloadable: Unloadable = NOTHING,
    tell: Tell = lambda left_out: None,
    miss: Miss = lambda missing: None,
    advance: Advance = lambda count: None,
    in_bulk: bool = False,
) -> Repaired:
    """Write a partition again from all that can be read of it.

    Args:
        emit: takes each file as soon as it is whole.
        tell: takes each piece that is left out, in log order.
        miss: takes what is missing, explained or not.
        advance: takes numbers of bytes that were read.
        in_bulk: whether to use kernels for whole batches, which is worth their start for a large log.
    """
    repairing = _Repairing(log, emit, unloadable)
    for item in _items(repairing.picking, in_bulk=in_bulk):
        match item:
            case Picked():
                repairing.take(item)
                advance(item.header.size_bytes)
            case Run():
                repairing.take_run(item)
                advance(item.end - item.begin)
            case LeftOut():
                repairing.done.left_out.setdefault(item.reason, Sum()).add(item)
                tell(item)
            case Missing():
                repairing.done.missing += item.count if item.is_lost else 0
                miss(item)
    repairing.close()
    return repairing.done


def _items(picking: Picking, *, in_bulk: bool) -> Iterator[Picked | Run | LeftOut | Missing]:
    if not in_bulk:
        return picking.items()
    from offsets_log.repairing.bulk import items_in_bulk

    return items_in_bulk(picking)


class _Repairing:
    """Writes picked batches into new segments."""

    def __init__(self, log: PartitionLog, emit: Emit, unloadable: Unloadable) -> None:
        self.done = Repaired(log)
        self.picking = Picking(log, unloadable)
        self._emit = emit
        self._writer: SegmentWriter | None = None
        self._segment: Segment | None = None
        self._end = 0
        self._epochs: dict[int, int] = {}
        self._latest_ms = NO_TIMESTAMP

    def take(self, picked: Picked) -> None:
        """Write the next batch."""
        writer = self._writer_for(picked)
        self._look_at(picked.batch.raw() if picked.written is None else picked.written.raw)
        if picked.written is None:
            writer.copy(picked.batch)
        else:
            written = picked.written
            writer.write(written.raw, written.last_offset, written.max_timestamp_ms)
            self.done.rewritten += 1
        if picked.aborted is not None:
            writer.aborted.append(picked.aborted)
        epoch = picked.header.partition_leader_epoch
        if epoch >= 0 and epoch > max(self._epochs, default=-1):
            self._epochs[epoch] = picked.first_offset
            self.picking.leader_epoch = epoch
        self._end = picked.batch.next_offset
        self._latest_ms = picked.header.max_timestamp_ms
        self.done.batches += 1
        self.done.size_bytes += picked.batch.size_bytes

    def take_run(self, run: Run) -> None:
        """Write batches that follow the last one in its segment."""
        from offsets_log.broker.bulk import index_run

        assert self._writer is not None
        for at in run.doubts:
            batch = entry_at(run.segment.file, memoryview(run.segment.buffer), at, run.end)
            assert batch is not None
            self._look_at(batch.raw(), at - run.begin)
        for aborted in run.aborted:
            self._writer.aborted.append(aborted)
        index_run(self._writer.indexing, self._writer.size_bytes, run.segment.buffer, run.begin, run.end)
        self._writer.copy_run(run.segment.buffer, run.begin, run.end)
        self._end = run.last_offset + 1
        self._latest_ms = run.latest_ms
        self.done.batches += run.batches
        self.done.size_bytes += run.end - run.begin

    def _look_at(self, raw: bytes, behind: int = 0) -> None:
        """Note the records of a batch that cannot be understood.

        Args:
            behind: so far behind the end of what is written it will stand.
        """
        writer = self._writer
        assert writer is not None
        batch = decode_batch_header(raw, writer.size_bytes + behind)
        segment = Segment(f"{writer.base_offset:020}.log", writer.base_offset, raw)
        for event in batch_events(self.done.log, segment, batch, EVERYTHING, None):
            if isinstance(event, Event) and event.damage is not None:
                self.done.undecodable.append(str(event.damage.error))

    def close(self) -> None:
        """Write the end of the log, and the files beside the segments, after the last batch."""
        if self._writer is not None and self._end < self.picking.end_offset:
            self._reach(self._writer, self.picking.end_offset - 1)
        self._close_segment()
        self._segment = self.done.log.segments[-1]
        if not self.done.segments or self._end < self.picking.end_offset:
            self._end = self.picking.end_offset
            self._begin(self._end)  # its name alone tells where the log goes on (``CL-55``)
            self._close_segment()
        self.done.end_offset = self._end
        if self._end > self.done.first_offset:
            self._snapshot(self._end, self.picking.producers.entries)
        self.done.last_stable_offset = min(self.picking.producers.ongoing, default=self._end)
        beside = self.done.log.beside
        self._emit(FolderFile(LEADER_EPOCHS, [self._leader_epochs()]))
        if PARTITION_METADATA in beside:
            self._emit(FolderFile(PARTITION_METADATA, [beside[PARTITION_METADATA]()]))

    def _reach(self, writer: SegmentWriter, offset: int) -> None:
        """Extend the log to an offset whose batches are left out, by an empty batch.

        The release must read such batches. The Java coordinator answers from a log only once a batch reaches its end.
        """
        raw = last_batch(offset, max(self._epochs, default=NO_PARTITION_LEADER_EPOCH), self._latest_ms)
        if self.picking.unloadable.of_batch(decode_batch_header(raw)) is not None:
            return
        if offset - writer.base_offset >= MAX_OFFSETS_IN_SEGMENT:
            self._close_segment()
            self._snapshot(offset, self.picking.producers.entries)
            writer = self._begin(offset)
        writer.write(raw, offset, self._latest_ms)
        self._end = offset + 1
        self.done.batches += 1
        self.done.size_bytes += len(raw)

    def _leader_epochs(self) -> bytes:
        """Return the log's own epochs, which name ones whose batches were cleaned; else those that recovery finds."""
        told = told_leader_epochs(self.done.log.beside)
        epochs = self._epochs if told is None or not _agree(told, self._epochs) else told
        within = leader_epochs_within(epochs, self.done.checkpoints().log_start_offset or 0, self._end)
        return encode_leader_epochs(within)

    def _writer_for(self, picked: Picked) -> SegmentWriter:
        writer = self._writer
        if writer is not None and picked.segment is self._segment and _fits(writer, picked):
            return writer
        is_begin = picked.segment is not self._segment and picked.segment.base_offset is not None
        base_offset = max(picked.segment.base_offset or 0, self._end) if is_begin else picked.first_offset
        self._close_segment()
        self._segment = picked.segment
        if self.done.segments:
            self._snapshot(base_offset, picked.producers_before(self.picking.producers.entries))
        return self._begin(base_offset)

    def _begin(self, base_offset: int) -> SegmentWriter:
        if not self.done.segments:
            self.done.first_offset = base_offset
        self.done.segments += 1
        self._writer = SegmentWriter(base_offset, Indexing.of(base_offset))
        return self._writer

    def _close_segment(self) -> None:
        if self._writer is None:
            return
        self._writer.close()
        for suffix, pieces in self._writer.files():
            modified_ms = self._segment.modified_ms if suffix == "log" and self._segment else None
            self._emit(FolderFile(f"{self._writer.base_offset:020}.{suffix}", pieces, modified_ms))
        self._writer = None

    def _snapshot(self, offset: int, producers: Producers) -> None:
        self._emit(FolderFile(f"{offset:020}.snapshot", [encode_snapshot(producers)]))


def _fits(writer: SegmentWriter, picked: Picked) -> bool:
    is_near = picked.header.last_offset - writer.base_offset < MAX_OFFSETS_IN_SEGMENT
    return is_near and writer.size_bytes + picked.batch.size_bytes <= MAX_SEGMENT_BYTES


def _agree(told: Mapping[int, int], seen: Mapping[int, int]) -> bool:
    """Return whether batches that begin an epoch lie in it."""
    return all(
        epoch == max((one for one, first in told.items() if first <= offset), default=-1)
        for epoch, offset in seen.items()
    )
