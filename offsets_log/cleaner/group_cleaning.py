"""Pass 2: segments that belong together are written again, as one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from offsets_log.broker.batches import FileBatch
from offsets_log.broker.indexes import AbortedTransaction, Indexing
from offsets_log.broker.log_file import LogFile
from offsets_log.broker.producers import Producers
from offsets_log.broker.segment_writer import SegmentWriter
from offsets_log.cleaner.batches import batches, records
from offsets_log.cleaner.bounds import modified
from offsets_log.cleaner.buffers import Buffers
from offsets_log.cleaner.failures import CleaningError, SegmentOverflowError
from offsets_log.cleaner.kept import WAITING, Kept, why_kept
from offsets_log.cleaner.offset_map import OffsetMap
from offsets_log.cleaner.retention import Retention, horizon_of
from offsets_log.cleaner.rewriting import Written, emptied, must_be_rewritten, rewritten
from offsets_log.cleaner.settings import Settings
from offsets_log.cleaner.transactions import Transactions
from offsets_log.log_format.batch import MAX_OFFSETS_IN_SEGMENT
from offsets_log.log_format.record import Record

if TYPE_CHECKING:
    from offsets_log.cleaner.bulk import Sieve


@dataclass(slots=True)
class NewSegment:
    """A segment that takes the place of old ones.

    Attributes:
        replaced: base offsets of those, its own among them.
        modified_ms: when the last of those was written (``CL-38``).
    """

    writer: SegmentWriter
    replaced: list[int]
    modified_ms: int


Advance = Callable[[int], None]
"""Takes numbers of bytes that were read."""
Expected = Callable[[LogFile, int], list[AbortedTransaction]]
"""Returns the aborted transactions with data in a segment, given it and the offset where it ends (``CL-14``)."""


@dataclass(slots=True)
class GroupCleaning:
    """Pass 2 of one group after the other.

    Attributes:
        producers: the active ones.
        old_tombstones_until: see there.
        transactions: their state where the next group begins.
    """

    map: OffsetMap
    producers: Producers
    keeps_empty_at: int | None
    settings: Settings
    old_tombstones_until: int
    transactions: Transactions
    expected: Expected
    advance: Advance

    def clean(self, group: Sequence[LogFile]) -> tuple[NewSegment, Kept]:
        """Write one new segment, even if nothing is in it (``CL-38``); return it, and why its bytes are kept.

        Raises:
            SegmentOverflowError: one of the old segments is to be split, for the new one cannot take its offsets.
            OffsetsLogError: something cannot be read, or not be written.
        """
        settings = self.settings
        base_offset, kept = group[0].base_offset, Kept()
        indexing = Indexing.of(base_offset, settings.index_interval_bytes, settings.segment_index_bytes)
        writer = SegmentWriter(base_offset, indexing, settings.rules.indexes_each_batch)
        self.transactions.kept = writer.aborted
        for file, end in ends_of(group):
            self.transactions.expect(self.expected(file, file.read_next_offset() if end is None else end))
            retention = Retention(
                self.map,
                self.producers,
                self.keeps_empty_at,
                settings,
                keeps_old_tombstones=modified(file, settings.now_ms) > self.old_tombstones_until,
            )
            _Copying(retention, self.transactions, writer, kept).run(file)
            self.advance(file.size_bytes)
        writer.close()
        return NewSegment(writer, [file.base_offset for file in group], modified(group[-1], settings.now_ms)), kept


def ends_of(group: Sequence[LogFile]) -> Iterator[tuple[LogFile, int | None]]:
    """Yield each segment of a group, and where the next one begins; None for the last one (``CL-14``)."""
    return zip(group, [*(file.base_offset for file in group[1:]), None], strict=True)


@dataclass(slots=True)
class _Copying:
    """A segment's batches on their way into a new one."""

    retention: Retention
    transactions: Transactions
    writer: SegmentWriter
    kept: Kept
    sieve: Sieve | None = None

    def run(self, file: LogFile) -> None:
        """Copy all of them.

        Raises:
            SegmentOverflowError: the segment is to be split, for the new one cannot take its offsets.
            OffsetsLogError: something cannot be read, or not be written.
        """
        buffers = Buffers(self.retention.settings, self.writer)
        self.sieve = self._new_sieve(file)
        for batch in batches(file, passing=self._pass):
            try:
                buffers.before(batch)
                self._take(batch)
                buffers.behind(batch)
            except SegmentOverflowError as error:
                if not _overflows(file):
                    raise CleaningError("the segment is not split: its offsets fit", file=file.file) from None
                error.base_offset = file.base_offset
                raise
        self.writer.flush()
        if self.sieve is not None:
            self.sieve.tell(self.kept)

    def _new_sieve(self, file: LogFile) -> Sieve | None:
        """Return what cleans a segment in bulk, if kernels have filled the map."""
        if not self.retention.map.is_bulk:
            return None
        from offsets_log.cleaner.bulk import Sieve

        return Sieve(self.retention, self.transactions, self.writer, file)

    def _pass(self, position: int) -> int:
        """Do what can be done in bulk."""
        return position if self.sieve is None else self.sieve.sift(position)

    def _take(self, batch: FileBatch) -> None:
        can_discard = self.transactions.can_discard(batch)
        if not can_discard and self._is_sifted(batch):
            return
        discards = self.retention.discards_records(batch, can_discard)
        why_empty = self.retention.why_kept_empty(batch)
        if discards and why_empty is None:
            self.kept.records_read += batch.records_count
            return
        found = list(records(batch))
        self.kept.records_read += len(found)
        left = [] if discards else [record for record in found if self.retention.keeps_record(batch, record)]
        if left:
            self._keep(batch, found, left, can_discard)
        elif why_empty is not None:
            written = emptied(batch)
            self._write(batch, written)
            self.kept.count(why_empty, len(written.raw), 0)

    def _is_sifted(self, batch: FileBatch) -> bool:
        """Clean a single batch in bulk, if it is plain but for one reason; return whether that was done."""
        if self.sieve is None or batch.is_control or batch.is_legacy:
            return False
        return self.sieve.sift(batch.position, batch) == batch.end

    def _keep(self, batch: FileBatch, found: list[Record], left: list[Record], can_discard: bool) -> None:
        settings = self.retention.settings
        horizon_ms, is_new = horizon_of(batch, left, can_discard, settings)
        if len(left) == len(found) and not is_new and not must_be_rewritten(batch, settings.rules):
            self._ensure_fits(batch, batch.last_offset, batch.last_offset)
            self.writer.copy(batch)
            size_bytes = batch.size_bytes
        else:
            written = rewritten(batch, left, horizon_ms, settings.rules)
            self._write(batch, written)
            size_bytes = len(written.raw)
        why = why_kept(batch, left, self.retention.map, can_discard)
        is_waiting = why in WAITING and horizon_ms >= 0
        self.kept.count(why, size_bytes, len(left), horizon_ms if is_waiting else None)

    def _write(self, batch: FileBatch, written: Written) -> None:
        self._ensure_fits(batch, written.last_offset, written.largest_offset)
        self.writer.write(written.raw, written.last_offset, written.max_timestamp_ms, written.largest_offset)

    def _ensure_fits(self, batch: FileBatch, last_offset: int, largest_offset: int) -> None:
        base_offset = self.writer.base_offset
        if last_offset < base_offset or largest_offset - base_offset >= MAX_OFFSETS_IN_SEGMENT:
            raise SegmentOverflowError(
                f"offset {largest_offset} cannot be in a segment that begins at {base_offset}; it is split",
                file=batch.file,
                position=batch.position,
            )


def _overflows(file: LogFile) -> bool:
    """Return whether a segment holds offsets too far from its base offset (``LogSegment.hasOverflow``)."""
    next_offset = file.read_next_offset()
    return next_offset > file.base_offset and not file.takes(next_offset - 1)
