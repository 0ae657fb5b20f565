"""Pass 1: of every key in the dirty part of the log, where it stands last."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import ClassVar

from offsets_log.broker.batches import FileBatch
from offsets_log.broker.log_file import LogFile
from offsets_log.cleaner.batches import batches, records
from offsets_log.cleaner.settings import Settings
from offsets_log.cleaner.transactions import Transactions
from offsets_log.errors import OffsetsLogError

SLOT_BYTES = 24
"""A digest of the key, and an offset."""
NOT_ENTERED = -(1 << 63)
"""The offset of a key that is only noted: below any other."""


@dataclass(slots=True)
class OffsetMap:
    """Key → the offset of its last record, of those that are not of aborted transactions.

    Attributes:
        usable: so many keys it may hold; None for any number.
        latest: the map knows of all records up to this offset.
        is_full: it ended before the round's end.
        is_bulk: whether kernels fill it.
        begins: base offset of each segment that is entered → the transactions where it begins.
        notes_others: whether keys of records that are not entered are noted too, at `NOT_ENTERED`: pass 2 asks for
            them, and in another part of the log they may be entered.
    """

    is_bulk: ClassVar[bool] = False
    usable: int | None = None
    latest: int = -1
    offsets: dict[bytes, int] = field(default_factory=dict)
    is_full: bool = False
    begins: dict[int, Transactions] = field(default_factory=dict)
    notes_others: bool = False

    @classmethod
    def of(cls, settings: Settings) -> OffsetMap:
        """Make a map as large as the settings allow (``CL-8``)."""
        if settings.dedupe_buffer_bytes is None:
            return cls()
        return cls(int(settings.dedupe_buffer_bytes // SLOT_BYTES * (settings.load_factor_percent / 100)))

    def put(self, key: bytes, offset: int) -> bool:
        """Put a key; return False, with nothing put, if the map is full, even if it has the key (``CL-12``)."""
        if self.usable is not None and len(self.offsets) >= self.usable:
            self.is_full = True
            return False
        self.offsets[key] = self.latest = offset
        return True

    def note(self, key: bytes) -> None:
        """Note a key, whatever is known of it."""
        self.offsets.setdefault(key, NOT_ENTERED)

    def note_all(self, file: LogFile) -> None:
        """Note all keys of a segment, up to what cannot be read."""
        with suppress(OffsetsLogError):
            for batch in batches(file, passing=lambda position: self.note_run(file, position)):
                if not batch.is_control:
                    _note(batch, self)

    def note_run(self, file: LogFile, position: int) -> int:
        """Note the keys of a run of batches from a position on; where it ends: here nothing is noted so."""
        return position

    def get(self, key: bytes) -> int:
        """Return the offset of a key; −1 if it is not known."""
        return self.offsets.get(key, -1)

    def close(self) -> None:
        """End its use."""

    def enter(
        self,
        file: LogFile,
        position: int,
        first_dirty: int,
        transactions: Transactions,
        batch: FileBatch | None = None,
    ) -> int:
        """Enter a run of batches from a position on, or the one given; where it ends: here nothing is entered so."""
        return position


def enter_segments(
    segments: Iterable[tuple[LogFile, int]], first: int, found: OffsetMap, transactions: Transactions
) -> None:
    """Enter segments, each given with the offset where the next one begins, up to where the map is full.

    Raises:
        OffsetsLogError: something there cannot be read.
    """
    for file, next_offset in segments:
        found.begins[file.base_offset] = transactions.copy(coming=())
        if not enter_segment(file, file.index.lookup(first), first, found, transactions):
            break
        found.latest = next_offset - 1


def enter_segment(
    file: LogFile, start: int, first_dirty: int, found: OffsetMap, transactions: Transactions
) -> bool:  # fmt: skip
    """Enter one segment from a position on; return False if the map is full (``CL-10``).

    Raises:
        OffsetsLogError: something there cannot be read.
    """
    for batch in batches(file, start, lambda position: found.enter(file, position, first_dirty, transactions)):
        is_entered = not transactions.can_discard(batch) and not batch.is_control
        if is_entered and not _enter(file, batch, first_dirty, found, transactions):
            return False
        if found.notes_others and not is_entered and not batch.is_control:
            _note(batch, found)
        if batch.last_offset >= first_dirty:
            found.latest = batch.last_offset
    return True


def _enter(file: LogFile, batch: FileBatch, first_dirty: int, found: OffsetMap, transactions: Transactions) -> bool:
    """Enter one batch; return False if the map is full."""
    if not batch.is_legacy and found.enter(file, batch.position, first_dirty, transactions, batch) == batch.end:
        return True
    for record in records(batch):
        if record.key is not None and record.offset >= first_dirty:
            if not found.put(record.key, record.offset):
                return False
        elif record.key is not None and found.notes_others:
            found.note(record.key)
    return True


def _note(batch: FileBatch, found: OffsetMap) -> None:
    """Note the keys of a batch."""
    for record in records(batch):
        if record.key is not None:
            found.note(record.key)
