"""What stays of a log: single batches, and runs of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from offsets_log.broker.batches import FileBatch
from offsets_log.broker.indexes import AbortedTransaction
from offsets_log.broker.producers import ProducerEntry, Producers
from offsets_log.cleaner.rewriting import Written
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.partition_log import Segment
from offsets_log.log_format.record import Record

LAST_OFFSET = (1 << 63) - 2
"""The last offset that a record may have: one more must follow, at which the log goes on."""


@dataclass(frozen=True, slots=True)
class Picked:
    """A batch that stays.

    Attributes:
        batch: the batch to write, from its segment's file or newly made.
        header: the header that was read.
        first_offset: offset of its first record; for magic 2 its base offset.
        written: the new batch, if it lost records.
        aborted: the transaction that it aborts, if it is such a marker.
        producer: what was known of its producer before it.
    """

    segment: Segment
    batch: FileBatch
    header: RecordBatch
    first_offset: int
    records: Sequence[Record]
    written: Written | None = None
    aborted: AbortedTransaction | None = None
    producer: ProducerEntry | None = None

    def producers_before(self, behind: Producers) -> Producers:
        """Return all producers before this batch, given those after it."""
        before = {producer_id: entry for producer_id, entry in behind.items() if producer_id != self.batch.producer_id}
        return before if self.producer is None else before | {self.batch.producer_id: self.producer}


@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive whole batches of one segment that stay as they are.

    Attributes:
        latest_ms: the largest timestamp of the last batch.
        aborted: the transactions that abort markers among them end.
        doubts: positions of batches whose keys and values may not be understood.
    """

    segment: Segment
    begin: int
    end: int
    batches: int
    last_offset: int
    latest_ms: int
    aborted: Sequence[AbortedTransaction]
    doubts: Sequence[int]
