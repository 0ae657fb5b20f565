"""The batches that a coordinator meets when it loads an open log, in its order.

The log is read from its start offset, a buffer at a time: each time the batch that holds the next offset is looked for,
and what lies behind it is taken as it stands. Where offsets go back, the same place may be read again, for ever
(``D-7``), unless a Java coordinator notices (``D-6``).

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
"""``offsets.load.buffer.size``. The buffer grows for a larger batch, and stays so."""

ROUNDS = 2
"""How often the same place is read before that is called for ever: the second time a record may be refused."""


class LoadReading:
    """One load. Iterate `batches`, then ask how it ended.

    Attributes:
        failure: what ended it before the end of the log.
        ends: false where it reads the same place for ever.
        next_offset: where it reads on.
    """

    def __init__(self, opened: OpenLog, written: WrittenOffsets | None) -> None:
        self.failure: BrokerError | None = None
        self.ends = True
        self.next_offset = opened.start_offset
        self._opened = opened
        self._written = written

    def batches(self) -> Iterator[FileBatch]:
        """Every batch that is read, twice what is read twice."""
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
                return
            file, first = found
            buffer_bytes = max(buffer_bytes, first.size_bytes)
            yield from self._read(file, first.position, min(file.size_bytes, first.position + buffer_bytes))

    def _most_reads(self) -> int:
        """Many more than a log needs that goes forward; of one that goes to and fro for longer nobody sees the end."""
        files = self._opened.files.values()
        return 100 + 2 * (len(files) + sum(file.size_bytes for file in files) // LOAD_BUFFER_BYTES)

    def _state(self) -> tuple[int, ...]:
        """All that decides how it goes on."""
        written = self._written
        return (self.next_offset,) if written is None else (self.next_offset, written.written, written.committed)

    def _find(self) -> tuple[LogFile, FileBatch] | None:
        """Where the next offset is read from."""
        if self.next_offset < self._opened.start_offset:
            raise BrokerError(f"offset {self.next_offset} lies before the log's begin", rule="D-6")
        return self._opened.find(self.next_offset)

    def _read(self, file: LogFile, position: int, end: int) -> Iterator[FileBatch]:
        while (batch := entry_in_memory(file.file, file.view, position, end)) is not None:
            yield batch
            position = batch.end
            self.next_offset = batch.next_offset
            if self._written is not None:
                self._written.advance(self.next_offset)
