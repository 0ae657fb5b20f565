"""Yield the batches that a coordinator reads when it loads an open log, in its order.

The log is read from its start offset, one buffer at a time: each time the coordinator searches the batch that holds the
next offset, and takes the bytes from there on as they are. Where offsets go back, it may read the same place again and
again forever (``D-7``), unless a Java coordinator notices (``D-6``).

References: ``CoordinatorLoaderImpl.java``, ``GroupMetadataManager.scala``, ``LocalLog.read``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from offsets_log.broker.batches import FileBatch, entry_in_memory
from offsets_log.broker.failures import BrokerError
from offsets_log.broker.log_file import LogFile
from offsets_log.broker.recovery import OpenLog
from offsets_log.broker.written_offsets import WrittenOffsets

LOAD_BUFFER_BYTES = 5_242_880
"""Default of ``offsets.load.buffer.size``. The buffer grows for a larger batch, and does not shrink again."""

ROUNDS = 2
"""How often the same place is read before the load counts as endless; the second time a record may be refused."""


class LoadReading:
    """One load. Iterate `batches`, then ask how it ended.

    Attributes:
        failure: what ended it before the end of the log.
        ends: false if it reads the same place forever.
        found_nothing: whether the log goes on behind all that can be read: there a load ends, or up to 2.4.0 never does
            (``L-4``).
        next_offset: the offset where it reads on.
    """

    def __init__(self, opened: OpenLog, written: WrittenOffsets | None) -> None:
        self.failure: BrokerError | None = None
        self.ends = True
        self.found_nothing = False
        self.next_offset = opened.start_offset
        self._opened = opened
        self._written = written

    def batches(self) -> Iterator[FileBatch]:
        """Yield every batch that is read; a batch read twice is yielded twice."""
        try:
            yield from self._read_all()
        except BrokerError as error:
            self.failure = error

    def _read_all(self) -> Iterator[FileBatch]:
        seen: Counter[tuple[int, ...]] = Counter()
        most = self._most_reads()
        buffer_bytes = LOAD_BUFFER_BYTES
        while self.next_offset < (self._opened.end_offset or 0):
            if seen[state := self._state()] == ROUNDS or len(seen) > most:
                self.ends = False
                return
            seen[state] += 1
            found = self._find()
            if found is None:
                self.found_nothing = True
                return
            file, first = found
            buffer_bytes = max(buffer_bytes, first.size_bytes)
            yield from self._read(file, first.position, min(file.size_bytes, first.position + buffer_bytes))

    def _most_reads(self) -> int:
        """Return a number of reads far above what a log needs that goes forward; a load with more counts as endless."""
        files = self._opened.files.values()
        return 100 + 2 * (len(files) + sum(file.size_bytes for file in files) // LOAD_BUFFER_BYTES)

    def _state(self) -> tuple[int, ...]:
        """Return everything that decides how the load continues."""
        written = self._written
        return (self.next_offset,) if written is None else (self.next_offset, written.written, written.committed)

    def _find(self) -> tuple[LogFile, FileBatch] | None:
        """Return where the next offset is read from. Raises BrokerError."""
        if self.next_offset < self._opened.start_offset:
            raise BrokerError(f"offset {self.next_offset} lies before the log's beginning", rule="D-6")
        return self._opened.find(self.next_offset)

    def _read(self, file: LogFile, position: int, end: int) -> Iterator[FileBatch]:
        while (batch := entry_in_memory(file.file, file.view, position, end)) is not None:
            yield batch
            position = batch.end
            self.next_offset = batch.next_offset
            if self._written is not None:
                self._written.advance(self.next_offset)
