"""Transactions as the cleaner follows them from batch to batch (``CL-13``)."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, field

from offsets_log.broker.batches import FileBatch
from offsets_log.broker.indexes import AbortedTransaction, TransactionIndex
from offsets_log.broker.log_file import LogFile
from offsets_log.errors import Damage
from offsets_log.log_format.record import control_type, iter_records


@dataclass(slots=True)
class _Aborted:
    """A transaction that ends with an abort, and whether data of it was met."""

    entry: AbortedTransaction
    is_seen: bool = False


@dataclass(slots=True)
class Transactions:
    """What is known of producers at a place in the log.

    Attributes:
        kept: where entries go of aborted transactions whose data was met: the new ``.txnindex``;
            None in pass 1.
    """

    kept: TransactionIndex | None = None
    _coming: list[tuple[int, int, AbortedTransaction]] = field(default_factory=list)
    _aborted: dict[int, _Aborted] = field(default_factory=dict)
    _committed: set[int] = field(default_factory=set)
    _count: int = 0

    def expect(self, entries: Iterable[AbortedTransaction]) -> None:
        """Aborted transactions that the indexes name, in any order and any number of times (``CL-14``)."""
        for entry in entries:
            heapq.heappush(self._coming, (entry.first_offset, self._count, entry))
            self._count += 1

    def can_discard(self, batch: FileBatch) -> bool:
        """Take the next batch: whether it is data of an aborted transaction, or a marker without data before it.

        Raises:
            OffsetsLogError: the first record of a control batch cannot be read.
        """
        while self._coming and self._coming[0][0] <= batch.last_offset:  # CL-15
            entry = heapq.heappop(self._coming)[2]
            self._aborted.setdefault(entry.producer_id, _Aborted(entry))
        return self._take_control(batch) if batch.is_control else self._take_data(batch)

    def _take_data(self, batch: FileBatch) -> bool:
        """``CL-16``."""
        if not batch.is_transactional:
            return False
        aborted = self._aborted.get(batch.producer_id)
        if aborted is None:
            self._committed.add(batch.producer_id)
            return False
        aborted.is_seen = True
        return True

    def _take_control(self, batch: FileBatch) -> bool:
        """``CL-17``."""
        record = next(iter_records(batch.whole(), as_loaded=True), None)
        if record is None:
            return True
        if isinstance(record, Damage):
            raise record.error
        kind, producer_id = control_type(record), batch.producer_id
        if kind == "ABORT":
            aborted = self._aborted.pop(producer_id, None)
            if aborted is None or not aborted.is_seen:
                return True
            if self.kept is not None:
                self.kept.append(aborted.entry)
        elif kind == "COMMIT":
            is_without_data = producer_id not in self._committed
            self._committed.discard(producer_id)
            return is_without_data
        return False


def aborted_between(files: Iterable[LogFile], log_start: int, start: int, end: int) -> list[AbortedTransaction]:
    """Aborted transactions of the log with data below an offset, from the segment on that holds another (``CL-14``)."""
    in_order = list(files)
    floor = max((file.base_offset for file in in_order if file.base_offset <= start), default=None)
    found: list[AbortedTransaction] = []
    if floor is None:
        return found
    for file in in_order:
        if file.base_offset >= floor:
            some, is_complete = file.aborted.collect(log_start, end)
            found += some
            if is_complete:
                break
    return found
