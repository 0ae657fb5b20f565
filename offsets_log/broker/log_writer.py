"""Write a new partition log: batches in the order of their offsets → segments that a broker opens unchanged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from offsets_log.broker.batches import FileBatch, entry_in_memory
from offsets_log.broker.failures import BrokerError
from offsets_log.broker.indexes import INDEX_INTERVAL_BYTES, Indexing
from offsets_log.broker.leader_epochs import LeaderEpochs, assign, latest_of
from offsets_log.broker.log_file import LogFile
from offsets_log.broker.producers import ProducerState, Snapshots
from offsets_log.broker.segment_writer import SegmentWriter
from offsets_log.log_format.batch import MAX_OFFSETS_IN_SEGMENT
from offsets_log.log_format.record import INT64_MAX
from offsets_log.log_format.segment import Buffer

if TYPE_CHECKING:
    from offsets_log.broker.bulk import Follower


Emit = Callable[[SegmentWriter], None]
"""Takes a finished segment, whose contents are not kept afterwards."""


@dataclass(slots=True)
class PartitionLogWriter:
    """Rolls segments as an appending broker does: by size, and where an offset would be too far from the base.

    Attributes:
        producers: what is known of producers; its snapshots are those at the beginning of each segment, and at the end.
        leader_epochs: those of the batches.
        end_offset: the offset after the last batch; None before the first.
        last: the last batch that was written, where it lies.
        segment: the one that is written; what it collects may be taken (`SegmentWriter.take_pieces`).
        records: number of records that the headers of all batches declare.
    """

    emit: Emit
    segment_bytes: int = 100 << 20
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = INDEX_INTERVAL_BYTES
    producers: ProducerState = field(default_factory=lambda: ProducerState(Snapshots({})))
    leader_epochs: LeaderEpochs = field(default_factory=dict)
    end_offset: int | None = None
    last: Buffer = b""
    segment: SegmentWriter | None = None
    records: int = 0

    def begin(self, base_offset: int) -> SegmentWriter:
        """Begin a segment; an empty log so begins where it is said, not with its first batch."""
        indexing = Indexing.of(base_offset, self.index_interval_bytes, self.segment_index_bytes)
        self.segment = SegmentWriter(base_offset, indexing)
        if self.end_offset is None:
            self.end_offset = self.producers.map_end_offset = self.producers.snapshot_offset = base_offset
        return self.segment

    def write(self, raw: bytes) -> None:
        """Append one whole and valid batch of any magic.

        Raises:
            BrokerError: it is no batch, or it contradicts the batches before it.
        """
        batch = entry_in_memory("", memoryview(raw), 0, len(raw))
        if batch is None or batch.size_bytes != len(raw):
            raise BrokerError(f"{len(raw)} bytes that are not one batch", rule="D-4")
        self._append(batch, batch.last_offset)

    def write_all(self, data: Buffer, begin: int = 0, until_offset: int = INT64_MAX) -> int:
        """Append the whole batches of a buffer from a position on, those with right checksums; return where they end.

        Plain ones are taken by a kernel. The buffer is kept until the segment is written.

        Args:
            until_offset: a batch that holds it or a later one is not appended, nor is what follows.

        Raises:
            BrokerError: what follows is no valid batch, or something contradicts what came before it. What was taken
                until then is appended.
        """
        view, at, run = memoryview(data), begin, _Run(self, until_offset)
        while True:
            at = run.append(view, at)
            batch = entry_in_memory("", view, at, len(view))
            if batch is None or (last_offset := batch.last_offset) >= until_offset:
                return at
            batch.ensure_valid()
            self._append(batch, last_offset)
            at = batch.end

    def close(self) -> None:
        """End the log."""
        self._end_segment()
        self.producers.take_snapshot()

    @property
    def last_batch(self) -> bytes:
        """The last batch that was written; empty before the first."""
        return bytes(self.last)

    def _append(self, batch: FileBatch, last_offset: int) -> None:
        base_offset = batch.base_offset
        if self.end_offset is not None and base_offset < self.end_offset:
            raise BrokerError(f"offset {base_offset} behind a log that ends at {self.end_offset}", rule="D-8")
        if last_offset < base_offset:
            raise BrokerError(f"a batch from {base_offset} to {last_offset}", rule="D-8")
        segment = self._segment_for(batch, base_offset, last_offset)
        if not batch.is_legacy:
            assign(self.leader_epochs, batch.partition_leader_epoch, batch.offset)
        if batch.producer_id >= 0:
            self._tell_producers(batch, segment)
        segment.copy(batch)
        self.end_offset = self.producers.map_end_offset = last_offset + 1
        self.last = batch.view[batch.position : batch.end]
        self.records += batch.records_count

    def _tell_producers(self, batch: FileBatch, segment: SegmentWriter) -> None:
        """Note what a batch with a producer means to it and its transaction. Raises BrokerError."""
        completed = self.producers.append(batch)
        if completed is not None:
            if completed.is_aborted:
                segment.aborted.append(self.producers.aborted_entry(completed))
            self.producers.complete(completed)

    def _segment_for(self, batch: FileBatch, first_offset: int, last_offset: int) -> SegmentWriter:
        """Return the segment that takes a batch, a new one if necessary (``LogSegment.shouldRoll``)."""
        segment = self.segment
        if segment is not None and self._takes(segment, batch.size_bytes, last_offset):
            return segment
        self._end_segment()
        base_offset = first_offset if self.end_offset is None else self.end_offset
        if last_offset - base_offset >= MAX_OFFSETS_IN_SEGMENT:
            base_offset = first_offset
        if segment is not None:
            self.producers.map_end_offset = base_offset
            self.producers.take_snapshot()
        return self.begin(base_offset)

    def _takes(self, segment: SegmentWriter, size_bytes: int, last_offset: int) -> bool:
        index, times = segment.indexing.index, segment.indexing.times
        return (
            segment.size_bytes + size_bytes <= self.segment_bytes
            and last_offset - segment.base_offset < MAX_OFFSETS_IN_SEGMENT
            and len(index.offsets) < index.most_entries
            and len(times.offsets) < times.most_entries - 1
        )

    def _end_segment(self) -> None:
        if self.segment is not None:
            self.segment.close()
            self.emit(self.segment)
            self.segment.release()
            self.segment = None


@dataclass(slots=True)
class _Run:
    """Runs of plain batches on their way from one buffer into a log."""

    writer: PartitionLogWriter
    until_offset: int
    _follower: Follower | None = None

    def append(self, view: memoryview, at: int) -> int:
        """Append a run to the segment that is written; return where it ends."""
        segment, end_offset = self.writer.segment, self.writer.end_offset
        if segment is None or end_offset is None or at >= len(view):
            return at
        follower = self._follower_for(segment, view, at)
        end = follower.follow(at, latest_of(self.writer.leader_epochs), end_offset - 1)
        if end > at and follower.next_offset is not None:
            segment.copy_run(view, at, end)
            self.writer.end_offset = self.writer.producers.map_end_offset = follower.next_offset
            self.writer.last = view[follower.last_at : end]
            self.writer.records += follower.records
        follower.give_back()
        return end

    def _follower_for(self, segment: SegmentWriter, view: memoryview, at: int) -> Follower:
        from offsets_log.broker.bulk import Follower
        from offsets_log.columnar.cleaning.indexing import CHECKED

        follower = self._follower
        if follower is None or follower.indexing is not segment.indexing:
            end = min(len(view), at + max(self.writer.segment_bytes - segment.size_bytes, 0))
            file = LogFile(segment.base_offset, "", view, end, segment.indexing.index, finds_by_base_offset=True)
            file.aborted = segment.aborted
            follower = Follower(file, segment.indexing, CHECKED, producers=self.writer.producers)
            follower.begin, follower.until_offset = segment.size_bytes - at, self.until_offset
            self._follower = follower
        follower.records = 0
        return follower
