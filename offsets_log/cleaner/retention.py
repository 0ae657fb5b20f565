"""The rules for what a batch keeps, one function for each rule."""

from __future__ import annotations

from dataclasses import dataclass

from offsets_log.broker.batches import FileBatch
from offsets_log.broker.producers import Producers
from offsets_log.cleaner.offset_map import OffsetMap
from offsets_log.cleaner.settings import Settings
from offsets_log.log_format import batch as b
from offsets_log.log_format.record import Record

LAST_OF_PRODUCER = "last batch of a producer"
LAST_OF_ROUND = "last batch of the round"


@dataclass(frozen=True, slots=True)
class Retention:
    """Decides about the batches and records of a segment.

    Attributes:
        producers: the active ones.
        keeps_empty_at: where the batch ends that stays without records whoever wrote it, see `Bounds`.
        keeps_old_tombstones: whether those of magic 0 and 1 stay.
    """

    map: OffsetMap
    producers: Producers
    keeps_empty_at: int | None
    settings: Settings
    keeps_old_tombstones: bool = True

    def discards_records(self, batch: FileBatch, can_discard: bool) -> bool:
        """Return whether all records go: those of aborted transactions, or a due marker without data (``CL-20``)."""
        if not batch.is_control:
            return can_discard
        horizon = batch.delete_horizon_ms
        return can_discard and horizon is not None and horizon <= self.settings.now_ms

    def why_kept_empty(self, batch: FileBatch) -> str | None:
        """Return why a batch stays even without records; None if it goes then (``CL-21``)."""
        if self._is_last_of_producer(batch):
            return LAST_OF_PRODUCER
        return LAST_OF_ROUND if batch.next_offset == self.keeps_empty_at else None

    def _is_last_of_producer(self, batch: FileBatch) -> bool:
        """Return whether a broker must find the batch's sequence numbers or epoch again (``CL-27``)."""
        producer = self.producers.get(batch.producer_id) if batch.producer_id >= 0 else None
        if producer is None:
            return False
        if producer.last_offset >= 0:
            return batch.last_offset == producer.last_offset
        return batch.is_control and batch.producer_epoch == producer.epoch

    def keeps_record(self, batch: FileBatch, record: Record) -> bool:
        """Return whether a record stays in a batch whose records are not all discarded (``CL-22``)."""
        if batch.is_control or record.offset > self.map.latest:
            return True
        if record.key is None or record.offset < self.map.get(record.key):
            return False
        return record.value is not None or self._keeps_tombstone(batch)

    def _keeps_tombstone(self, batch: FileBatch) -> bool:
        """Return whether a tombstone stays: until the time in its batch, if there is one (``CL-23``)."""
        if batch.is_legacy:
            return self.keeps_old_tombstones
        horizon = batch.delete_horizon_ms
        return horizon is None or self.settings.now_ms < horizon


def horizon_of(batch: FileBatch, kept: list[Record], can_discard: bool, settings: Settings) -> tuple[int, bool]:
    """Return when a batch's tombstones and markers may go (−1: never), and whether that is new (``CL-26``)."""
    present = batch.delete_horizon_ms
    is_waiting = any(record.value is None for record in kept) or (batch.is_control and can_discard)
    takes_horizon = settings.rules.makes_magic_2 or not batch.is_legacy
    if present is None and is_waiting and takes_horizon:
        return settings.now_ms + settings.delete_retention_ms, True
    return b.NO_TIMESTAMP if present is None else present, False
