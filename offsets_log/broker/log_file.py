"""Hold a segment as a broker does: its bytes up to their valid end, and the index by which offsets are found.

References: ``LogSegment.java``, ``FileRecords.java``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from offsets_log.broker.batches import FileBatch, entry_at
from offsets_log.broker.indexes import OffsetIndex, TimeIndex, TransactionIndex
from offsets_log.log_format.batch import MAX_OFFSETS_IN_SEGMENT


@dataclass(slots=True)
class LogFile:
    """A segment.

    Attributes:
        file: name to show.
        view: the whole file.
        size_bytes: how much of it the broker holds.
        finds_by_base_offset: whether offsets are searched by batches' base offsets (since 4.1) or by their last
            offsets.
        times, aborted: its other indexes.
        modified_ms: when the file was last written, in epoch milliseconds; None if unknown.
    """

    base_offset: int
    file: str
    view: memoryview
    size_bytes: int
    index: OffsetIndex
    finds_by_base_offset: bool
    times: TimeIndex = field(default_factory=lambda: TimeIndex(0))
    aborted: TransactionIndex = field(default_factory=TransactionIndex)
    modified_ms: int | None = None

    def batches(self, start: int = 0, end: int | None = None) -> Iterator[FileBatch]:
        """Yield the entries from a position on. Raises InvalidBatchError."""
        position, end = start, self.size_bytes if end is None else end
        while (batch := entry_at(self.file, self.view, position, end)) is not None:
            yield batch
            position = batch.end

    def takes(self, offset: int) -> bool:
        """Whether an offset is near enough to the base offset for the indexes."""
        return 0 <= offset - self.base_offset < MAX_OFFSETS_IN_SEGMENT

    def translate(self, offset: int) -> FileBatch | None:
        """Return the batch to read from for an offset (``translateOffset``); None if the file ends before it."""
        batches = self.batches(self.index.lookup(offset))
        if self.finds_by_base_offset:
            return _by_base_offset(batches, offset)
        return next((batch for batch in batches if batch.last_offset >= offset), None)

    def read_next_offset(self) -> int:
        """Return the offset where the log continues after the segment (``readNextOffset``)."""
        first = self.translate(self.index.last_offset)
        if first is None:
            return self.base_offset
        last = deque(self.batches(first.position), maxlen=1)
        return last[0].next_offset if last else self.base_offset

    def truncate_to(self, offset: int) -> int:
        """Cut the segment from the batch that holds an offset; return how many bytes were cut."""
        batch = self.translate(offset)
        self.index.truncate_to(offset)
        if batch is None:
            return 0
        cut = self.size_bytes - batch.position
        self.size_bytes = batch.position
        return cut


def _by_base_offset(batches: Iterator[FileBatch], offset: int) -> FileBatch | None:
    before: FileBatch | None = None
    for batch in batches:
        base_offset = batch.base_offset
        if base_offset == offset:
            return batch
        if base_offset > offset:
            return before if before is not None and before.last_offset >= offset else batch
        before = batch
    return before if before is not None and before.last_offset >= offset else None
