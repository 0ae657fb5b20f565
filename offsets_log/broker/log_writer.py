"""Write a new partition log: batches in the order of their offsets → segments that a broker opens unchanged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from offsets_log.broker.batches import FileBatch, entry_in_memory
from offsets_log.broker.failures import BrokerError
from offsets_log.broker.indexes import INDEX_INTERVAL_BYTES, Indexing
from offsets_log.broker.producers import ProducerState, Snapshots
from offsets_log.broker.segment_writer import SegmentWriter
from offsets_log.log_format.batch import MAX_OFFSETS_IN_SEGMENT

Emit = Callable[[SegmentWriter], None]
"""Takes a finished segment, whose contents are not kept afterwards."""


@dataclass(slots=True)
class PartitionLogWriter:
    """Rolls segments as an appending broker does: by size, and where an offset would be too far from the base.

    Attributes:
        producers: what is known of producers; its snapshots are those at the beginning of each segment, and at the end.
        end_offset: the offset after the last batch; None before the first.
    """

    emit: Emit
    segment_bytes: int = 100 << 20
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = INDEX_INTERVAL_BYTES
    producers: ProducerState = field(default_factory=lambda: ProducerState(Snapshots({})))
    end_offset: int | None = None
    _segment: SegmentWriter | None = None

    def write(self, raw: bytes) -> None:
        """Append one whole and valid batch of any magic.

        Raises:
            BrokerError: it is no batch, or it contradicts the batches before it.
        """
        batch = entry_in_memory("", memoryview(raw), 0, len(raw))
        if batch is None or batch.size_bytes != len(raw):
            raise BrokerError(f"{len(raw)} bytes that are not one batch", rule="D-4")
        if self.end_offset is not None and batch.base_offset < self.end_offset:
            raise BrokerError(f"offset {batch.base_offset} behind a log that ends at {self.end_offset}", rule="D-8")
        segment = self._segment_for(batch)
        if batch.producer_id >= 0 and (completed := self.producers.append(batch)) is not None:
            if completed.is_aborted:
                segment.aborted.append(self.producers.aborted_entry(completed))
            self.producers.complete(completed)
        segment.write(raw, batch.last_offset, batch.max_timestamp_ms)
        self.end_offset = self.producers.map_end_offset = batch.next_offset

    def close(self) -> None:
        """End the log."""
        self._end_segment()
        self.producers.take_snapshot()

    def _segment_for(self, batch: FileBatch) -> SegmentWriter:
        """Return the segment that takes a batch, a new one if necessary (``LogSegment.shouldRoll``)."""
        segment = self._segment
        if segment is not None and self._takes(segment, batch):
            return segment
        self._end_segment()
        base_offset = batch.base_offset if self.end_offset is None else self.end_offset
        if batch.last_offset - base_offset >= MAX_OFFSETS_IN_SEGMENT:
            base_offset = batch.base_offset
        if self.end_offset is not None:
            self.producers.map_end_offset = base_offset
            self.producers.take_snapshot()
        indexing = Indexing.of(base_offset, self.index_interval_bytes, self.segment_index_bytes)
        self._segment = SegmentWriter(base_offset, indexing)
        return self._segment

    def _takes(self, segment: SegmentWriter, batch: FileBatch) -> bool:
        index, times = segment.indexing.index, segment.indexing.times
        return (
            segment.size_bytes + batch.size_bytes <= self.segment_bytes
            and batch.last_offset - segment.base_offset < MAX_OFFSETS_IN_SEGMENT
            and len(index.offsets) < index.most_entries
            and len(times.offsets) < times.most_entries - 1
        )

    def _end_segment(self) -> None:
        if self._segment is not None:
            self._segment.close()
            self.emit(self._segment)
            self._segment.release()
            self._segment = None
