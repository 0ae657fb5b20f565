"""Buffers that limit how much is read and written at once, which up to 3.8 shows in the indexes (``CL-41``)."""

from __future__ import annotations

from dataclasses import dataclass, field

from offsets_log.broker.batches import FileBatch
from offsets_log.broker.segment_writer import SegmentWriter
from offsets_log.cleaner.settings import Settings


@dataclass(slots=True)
class Buffers:
    """The buffers for one segment: they grow for a batch that does not fit (``CL-40``)."""

    settings: Settings
    writer: SegmentWriter
    _start: int = 0
    _size: int = field(init=False)

    def __post_init__(self) -> None:
        self._size = self.settings.io_buffer_bytes // 2

    def before(self, batch: FileBatch) -> None:
        """Read a batch again that is not completely in the buffer, after what is there was written."""
        if batch.end > self._start + self._size:
            self.writer.flush()
            self._start = batch.position
            while batch.size_bytes > self._size:
                self._grow(batch.size_bytes)

    def behind(self, batch: FileBatch) -> None:
        """Write at once what has outgrown the write buffer."""
        if self.writer.pending_bytes > self._size:
            self.writer.flush()
            self._start = batch.end

    def _grow(self, needed: int) -> None:
        settings = self.settings
        largest = settings.max_message_bytes if self._size < settings.max_message_bytes else needed
        self._size = min(max(2 * self._size, 1), max(largest, settings.cleaner_max_message_bytes))
