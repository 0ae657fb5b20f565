"""Transactions as the cleaner follows them from batch to batch (``CL-13``)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from operator import attrgetter

from offsets_log.broker.batches import FileBatch
from offsets_log.broker.indexes import AbortedTransaction, TransactionIndex
from offsets_log.broker.log_file import LogFile
from offsets_log.errors import Damage
from offsets_log.log_format.control_record import control_type
from offsets_log.log_format.record import iter_records

NO_MORE = (1 << 63) - 1
"""Instead of an offset."""


@dataclass(slots=True)
class Aborted:
    """A transaction that ends with an abort, and whether data of it was met."""

    entry: AbortedTransaction
    is_seen: bool = False


@dataclass(slots=True)
class Transactions:
    """The producers' transactions at a place in the log.

    Attributes:
        coming: those that are known to abort, before they begin, by where that is.
        aborted: producer id → its transaction, of those that are open and abort.
        committed: producers that have data in a transaction that does not.
        kept: where entries go of aborted transactions whose data was met: the new ``.txnindex``;
            None in pass 1.
    """

    kept: TransactionIndex | None = None
    coming: list[AbortedTransaction] = field(default_factory=list)
    aborted: dict[int, Aborted] = field(default_factory=dict)
    committed: set[int] = field(default_factory=set)

    def copy(self, coming: Iterable[AbortedTransaction] | None = None) -> Transactions:
        """Return the same state, to go on from it, with those that are coming or with others in their place."""
        aborted = {producer_id: replace(one) for producer_id, one in self.aborted.items()}
        return Transactions(None, [*(self.coming if coming is None else coming)], aborted, {*self.committed})

    def expect(self, entries: Iterable[AbortedTransaction]) -> None:
        """Add aborted transactions that the indexes name, in any order and any number of times (``CL-14``)."""
        self.coming = sorted((*self.coming, *entries), key=attrgetter("first_offset"))

    @property
    def next_aborted(self) -> int:
        """The offset at which the next transaction begins that is known to abort."""
        return self.coming[0].first_offset if self.coming else NO_MORE

    def can_discard(self, batch: FileBatch) -> bool:
        """Take the next batch: whether it is data of an aborted transaction, or a marker without data before it.

        Raises:
            OffsetsLogError: the first record of a control batch cannot be read.
        """
        self.reach(batch.last_offset)
        return self._take_control(batch) if batch.is_control else self._take_data(batch)

    def reach(self, last_offset: int) -> None:
        """Move to a batch's end: transactions that have begun by then are open (``CL-15``)."""
        if self.next_aborted <= last_offset:
            begun = bisect_right(self.coming, last_offset, key=attrgetter("first_offset"))
            for entry in self.coming[:begun]:
                self.aborted.setdefault(entry.producer_id, Aborted(entry))
            del self.coming[:begun]

    def _take_data(self, batch: FileBatch) -> bool:
        """Take a batch of data (``CL-16``)."""
        if not batch.is_transactional:
            return False
        aborted = self.aborted.get(batch.producer_id)
        if aborted is None:
            self.committed.add(batch.producer_id)
            return False
        aborted.is_seen = True
        return True

    def _take_control(self, batch: FileBatch) -> bool:
        """Take a control batch (``CL-17``)."""
        kind, producer_id = control_kind(batch), batch.producer_id
        if kind is None:
            return True
        if kind == "ABORT":
            aborted = self.aborted.pop(producer_id, None)
            if aborted is None or not aborted.is_seen:
                return True
            if self.kept is not None:
                self.kept.append(aborted.entry)
        elif kind == "COMMIT":
            is_without_data = producer_id not in self.committed
            self.committed.discard(producer_id)
            return is_without_data
        return False


def control_kind(batch: FileBatch) -> str | None:
    """Return what the first record of a control batch says; None without any.

    Raises:
        OffsetsLogError: it cannot be read.
    """
    if (plain := batch.plain_marker()) is not None:
        return plain.type
    record = next(iter_records(batch.whole(), as_loaded=True), None)
    if isinstance(record, Damage):
        raise record.error
    return None if record is None else control_type(record)


def aborted_between(files: Iterable[LogFile], log_start: int, start: int, end: int) -> list[AbortedTransaction]:
    """Return aborted transactions with data below an offset, from the segment with another one on (``CL-14``)."""
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
