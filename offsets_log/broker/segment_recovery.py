"""One segment read from its begin: its indexes made anew, and how much of it is whole.

References: ``LogSegment.recover``, ``LocalLog.splitOverflowedSegment``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from offsets_log.broker.batches import FileBatch
from offsets_log.broker.failures import BrokerError, InvalidBatchError, OffsetOverflowError
from offsets_log.broker.indexes import OffsetIndex, TimeIndex, TransactionIndex
from offsets_log.broker.log_file import LogFile
from offsets_log.broker.producers import ProducerState

INDEX_INTERVAL_BYTES = 4096
"""``index.interval.bytes``."""


@dataclass(slots=True)
class SegmentRecovery:
    """Reading one segment from its begin.

    Attributes:
        valid_bytes: up to the first bad batch.
    """

    file: LogFile
    producers: ProducerState
    valid_bytes: int = 0
    _indexed_at: int = 0
    _latest: tuple[int, int] = (-1, -1)
    _times: TimeIndex = field(default_factory=TimeIndex)
    _aborted: TransactionIndex = field(default_factory=TransactionIndex)

    def run(self) -> None:
        """To the first bad batch, or the end."""
        try:
            for batch in self.file.batches():
                batch.ensure_valid()
                self._take(batch)
        except InvalidBatchError:
            pass
        self._times.maybe_append(*self._latest)

    def _take(self, batch: FileBatch) -> None:
        last_offset = batch.last_offset
        if not self.file.takes(last_offset):
            raise OffsetOverflowError(
                f"offset {last_offset} cannot be in a segment that begins at {self.file.base_offset}",
                rule="D-8",
                file=self.file.file,
                position=batch.position,
            )
        self._latest = max(self._latest, (batch.max_timestamp_ms, last_offset), key=lambda latest: latest[0])
        if self.valid_bytes - self._indexed_at > INDEX_INTERVAL_BYTES:
            self.file.index.append(last_offset, self.valid_bytes)
            self._times.maybe_append(*self._latest)
            self._indexed_at = self.valid_bytes
        self.valid_bytes = batch.end
        if not batch.is_legacy:
            self._tell_producers(batch)

    def _tell_producers(self, batch: FileBatch) -> None:
        if batch.producer_id >= 0:
            completed = self.producers.append(batch)
            if completed is not None:
                if completed.is_aborted:
                    self._aborted.append(completed.last_offset)
                self.producers.complete(completed)
        self.producers.map_end_offset = batch.next_offset


def split(file: LogFile) -> Iterator[LogFile]:
    """Several in the place of one; each begins with the first batch that the one before cannot take.

    Raises:
        BrokerError: something is in the file that is no batch.
    """
    part: LogFile | None = None
    end = 0
    for batch in file.batches():
        if part is None or not part.takes(batch.last_offset):
            if part is not None:
                yield part
            index = OffsetIndex(batch.base_offset)
            view = file.view[batch.position : file.size_bytes]
            part = LogFile(batch.base_offset, file.file, view, 0, index, file.finds_by_base_offset)
            if not part.takes(batch.last_offset):
                break
        part.size_bytes += batch.size_bytes
        end = batch.end
    if part is None or end != file.size_bytes:
        raise BrokerError("the segment cannot be split", rule="D-8", file=file.file, position=end)
    yield part
