"""Why bytes are still there after a round."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from offsets_log.broker.batches import FileBatch
from offsets_log.cleaner.bounds import OPEN_TRANSACTION
from offsets_log.cleaner.offset_map import OffsetMap
from offsets_log.log_format.record import Record

LATEST = "latest of their keys"
TOMBSTONES = "tombstones waiting"
TOMBSTONES_AT_WORK = "tombstones that change what is answered"
MARKERS = "markers waiting"
MARKERS_WITH_DATA = "markers of transactions with data"
BEYOND_MAP = "beyond the offset map"
WAITING = (TOMBSTONES, MARKERS)


@dataclass(slots=True)
class Sum:
    """The sum of batches that are kept for one reason.

    Attributes:
        until_ms: when the first of them may go, where a time is told.
    """

    size_bytes: int = 0
    batches: int = 0
    records: int = 0
    until_ms: int | None = None

    def add(self, other: Sum) -> None:
        """Add some more."""
        self.size_bytes += other.size_bytes
        self.batches += other.batches
        self.records += other.records
        self.until_ms = min((at for at in (self.until_ms, other.until_ms) if at is not None), default=None)


@dataclass(slots=True)
class Kept:
    """Counts of a part of the log: what was read, and of what is left how much is left why."""

    records_read: int = 0
    reasons: dict[str, Sum] = field(default_factory=dict)

    def count(self, reason: str, size_bytes: int, records: int, until_ms: int | None = None, batches: int = 1) -> None:
        """Count batches that stay."""
        self.reasons.setdefault(reason, Sum()).add(Sum(size_bytes, batches, records, until_ms))

    def add(self, other: Kept) -> None:
        """Add the counts of another part."""
        self.records_read += other.records_read
        for reason, counted in other.reasons.items():
            self.reasons.setdefault(reason, Sum()).add(counted)

    @property
    def records(self) -> int:
        """That stay."""
        return sum(counted.records for counted in self.reasons.values())


def why_in_deep(batch: FileBatch, found: Iterable[Record], open_since: Mapping[int, int]) -> str:
    """Return why a batch is in a log that was cleaned deeply.

    Args:
        found: its records.
        open_since: producer → where its open transaction begins.
    """
    if batch.is_control:
        return MARKERS_WITH_DATA
    if batch.is_transactional and batch.offset >= open_since.get(batch.producer_id, 1 << 63):
        return OPEN_TRANSACTION
    return TOMBSTONES_AT_WORK if any(record.value is None for record in found) else LATEST


def why_kept(batch: FileBatch, left: Iterable[Record], offset_map: OffsetMap, can_discard: bool) -> str:
    """Return why a batch with remaining records stays."""
    if batch.is_control:
        return MARKERS if can_discard else MARKERS_WITH_DATA
    if batch.last_offset > offset_map.latest:
        return BEYOND_MAP
    return TOMBSTONES if any(record.value is None for record in left) else LATEST
