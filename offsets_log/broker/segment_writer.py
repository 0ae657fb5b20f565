"""Write a new segment: batches one after the other, and the indexes beside them (``CL-41``, ``CL-42``, ``CL-43``)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from offsets_log.broker.batches import FileBatch
from offsets_log.broker.indexes import Indexing, TransactionIndex
from offsets_log.log_format.segment import Buffer

NOTHING = (-1, -1, -1)
"""Largest offset, largest timestamp, and the last offset of the batch that has it."""


@dataclass(slots=True)
class SegmentWriter:
    """Collects a segment's contents as pieces of the buffers they come from, without copying batches.

    Attributes:
        aborted: filled by the caller that follows the transactions.
        size_bytes: size of all that was written.
        indexes_each_batch: if False, the batches between two calls of `flush` have at most one entry, as up to 3.8.
    """

    base_offset: int
    indexing: Indexing
    indexes_each_batch: bool = True
    aborted: TransactionIndex = field(default_factory=TransactionIndex)
    size_bytes: int = 0
    _pieces: list[Buffer] = field(default_factory=list)
    _copied: tuple[memoryview, int, int] | None = None
    _flushed_bytes: int = 0
    _pending: tuple[int, int, int] = NOTHING

    @property
    def pending_bytes(self) -> int:
        """The number of bytes written since the last call of `flush`."""
        return self.size_bytes - self._flushed_bytes

    def write(self, raw: bytes, last_offset: int, max_timestamp_ms: int, largest_offset: int | None = None) -> None:
        """Append a new batch.

        Args:
            largest_offset: largest offset of its records, if it is not its last offset.

        Raises:
            BrokerError: its offset cannot be indexed here.
        """
        self._end_run()
        self._pieces.append(raw)
        self._index(len(raw), last_offset, max_timestamp_ms, last_offset if largest_offset is None else largest_offset)

    def write_run(self, raw: bytes) -> None:
        """Append consecutive new batches, which the caller has noted in `indexing`."""
        self._end_run()
        self._pieces.append(raw)
        self.size_bytes += len(raw)

    def copy(self, batch: FileBatch) -> None:
        """Append a batch unchanged. Raises as `write` does."""
        self._copy(batch.view, batch.position, batch.end)
        self._index(batch.size_bytes, batch.last_offset, batch.max_timestamp_ms, batch.last_offset)

    def copy_run(self, buffer: Buffer, begin: int, end: int) -> None:
        """Append consecutive batches unchanged, which the caller has noted in `indexing`."""
        self._copy(memoryview(buffer), begin, end)
        self.size_bytes += end - begin

    def _copy(self, view: memoryview, begin: int, end: int) -> None:
        """Append a piece of a buffer; pieces that touch each other become one."""
        run = self._copied
        if run is not None and run[0].obj is view.obj and run[2] == begin:
            self._copied = run[0], run[1], end
        else:
            self._end_run()
            self._copied = view, begin, end

    def flush(self) -> None:
        """Index what was written since the last call. Raises as `write` does."""
        if self._pending is not NOTHING:
            largest_offset, max_timestamp_ms, its_offset = self._pending
            self.indexing.take(self._flushed_bytes, largest_offset, max_timestamp_ms, its_offset)
            self._pending = NOTHING
        self._flushed_bytes = self.size_bytes

    def close(self) -> None:
        """End the segment."""
        self.flush()
        self._end_run()
        self.indexing.close()

    def files(self) -> Iterator[tuple[str, list[Buffer]]]:
        """Yield each file's suffix and its contents in pieces; without aborted transactions no ``.txnindex``."""
        yield "log", self._pieces
        yield "index", [self.indexing.index.encode()]
        yield "timeindex", [self.indexing.times.encode()]
        if self.aborted.entries:
            yield "txnindex", [self.aborted.encode()]

    def take_pieces(self) -> list[Buffer]:
        """Return the log's pieces since the last call, which are the caller's to write then."""
        self._end_run()
        pieces = self._pieces[:]
        self._pieces.clear()
        return pieces

    def release(self) -> None:
        """Drop the contents after they were written."""
        self._pieces.clear()

    def _index(self, size_bytes: int, last_offset: int, max_timestamp_ms: int, largest_offset: int) -> None:
        if self.indexes_each_batch:
            self.indexing.take(self.size_bytes, last_offset, max_timestamp_ms)
        else:
            largest, latest, its_offset = self._pending
            if max_timestamp_ms > latest:
                latest, its_offset = max_timestamp_ms, last_offset
            self._pending = max(largest, largest_offset), latest, its_offset
        self.size_bytes += size_bytes

    def _end_run(self) -> None:
        if self._copied is not None:
            view, start, end = self._copied
            self._pieces.append(view[start:end])
            self._copied = None
