"""Read one segment from its beginning: rebuild its indexes, and find how much of it is whole.

References: ``LogSegment.recover``, ``LocalLog.splitOverflowedSegment``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from offsets_log.broker.batches import FileBatch
from offsets_log.broker.failures import BrokerError, InvalidBatchError, OffsetOverflowError
from offsets_log.broker.indexes import INDEX_INTERVAL_BYTES, Indexing, TransactionIndex
from offsets_log.broker.leader_epochs import LeaderEpochs, assign, latest_of
from offsets_log.broker.log_file import LogFile
from offsets_log.broker.producers import ProducerState

if TYPE_CHECKING:
    from offsets_log.broker.bulk import Follower, Notes


@dataclass(slots=True)
class SegmentRecovery:
    """The reading of one segment from its beginning.

    Attributes:
        in_bulk: whether a kernel reads plain batches.
        valid_bytes: position of the first bad batch, or the end.
        notes: takes batches of producers that are read in bulk, in the place of ``producers``.
        indexing: the file's indexes, as they are being rebuilt.
    """

    file: LogFile
    producers: ProducerState
    leader_epochs: LeaderEpochs
    index_interval_bytes: int = INDEX_INTERVAL_BYTES
    in_bulk: bool = False
    notes: Notes | None = None
    valid_bytes: int = 0
    indexing: Indexing = field(init=False)

    def run(self) -> None:
        """Read to the first bad batch or the end, and rebuild the file's indexes."""
        self.read()
        self.indexing.close()

    def read(self) -> None:
        """Do what `run` does, but leave the indexes open for batches that are written behind."""
        self.indexing = Indexing.of(self.file.base_offset, self.index_interval_bytes)
        self.file.index, self.file.times = self.indexing.index, self.indexing.times
        self.file.aborted = TransactionIndex()
        follower = self._follower() if self.in_bulk else None
        try:
            while (batch := self._next(follower)) is not None:
                batch.ensure_valid()
                if follower is not None:
                    follower.give_back()
                self._take(batch)
        except InvalidBatchError:
            pass
        if follower is not None:
            follower.give_back()

    def _follower(self) -> Follower:
        from offsets_log.broker.bulk import Follower
        from offsets_log.columnar.cleaning.indexing import BY_LAST_OFFSET

        return Follower(self.file, self.indexing, BY_LAST_OFFSET, producers=self.producers, notes=self.notes)

    def _next(self, follower: Follower | None) -> FileBatch | None:
        """Return the next batch that is not read in bulk."""
        if follower is not None:
            self.valid_bytes = follower.follow(self.valid_bytes, latest_of(self.leader_epochs))
            if follower.next_newest is not None:
                self.producers.map_end_offset = follower.next_newest
        return next(self.file.batches(self.valid_bytes), None)

    def _take(self, batch: FileBatch) -> None:
        last_offset = batch.last_offset
        if not self.file.takes(last_offset):
            raise OffsetOverflowError(
                f"offset {last_offset} cannot be in a segment that begins at {self.file.base_offset}",
                rule="D-8",
                file=self.file.file,
                position=batch.position,
            )
        self.indexing.take(self.valid_bytes, last_offset, batch.max_timestamp_ms)
        self.valid_bytes = batch.end
        if not batch.is_legacy:
            assign(self.leader_epochs, batch.partition_leader_epoch, batch.offset)
            self.tell_producers(batch)

    def tell_producers(self, batch: FileBatch) -> None:
        """Note what a batch means to producers and transactions. Raises BrokerError."""
        if batch.producer_id >= 0:
            completed = self.producers.append(batch)
            if completed is not None:
                if completed.is_aborted:
                    self.file.aborted.append(self.producers.aborted_entry(completed))
                self.producers.complete(completed)
        self.producers.map_end_offset = batch.next_offset


def split(file: LogFile, index_interval_bytes: int = INDEX_INTERVAL_BYTES) -> Iterator[LogFile]:
    """Yield several segments in place of one; each begins with the first batch that the one before cannot take.

    Raises:
        BrokerError: something in the file is no batch.
    """
    part: LogFile | None = None
    indexing = Indexing.of(file.base_offset)
    end = 0
    for batch in file.batches():
        if part is None or not part.takes(batch.last_offset):
            if part is not None:
                indexing.close()
                yield part
            indexing = Indexing.of(batch.base_offset, index_interval_bytes)
            view = file.view[batch.position : file.size_bytes]
            part = LogFile(
                batch.base_offset,
                file.file,
                view,
                0,
                indexing.index,
                file.finds_by_base_offset,
                indexing.times,
                modified_ms=file.modified_ms,
            )
            if not part.takes(batch.last_offset):
                break
        indexing.take(part.size_bytes, batch.last_offset, batch.max_timestamp_ms)
        part.size_bytes += batch.size_bytes
        end = batch.end
    if part is None or end != file.size_bytes:
        raise BrokerError("the segment cannot be split", rule="D-8", file=file.file, position=end)
    indexing.close()
    yield part
