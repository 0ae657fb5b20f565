"""Read and write the index files beside a segment: a broker searches them first, and rebuilds them in recovery.

References: ``OffsetIndex.java``, ``TimeIndex.java``, ``TransactionIndex.java``.
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from offsets_log.broker.failures import BrokerError, InvalidOffsetError
from offsets_log.log_format.batch import MAX_OFFSETS_IN_SEGMENT
from offsets_log.log_format.segment import Buffer

_OFFSET_ENTRY_BYTES = 8
"""Size of an entry: relative offset and position, 4 bytes each."""
TIME_ENTRY = struct.Struct(">qi")
_ABORTED_TRANSACTION = struct.Struct(">hqqqq")

INDEX_INTERVAL_BYTES = 4096
"""Default of ``index.interval.bytes``."""
NO_LIMIT = 1 << 62

WARM_ENTRIES = 1024
"""How many entries at the end of an index are searched first."""


@dataclass(slots=True)
class OffsetIndex:
    """``.index``: at intervals, the last offset of a batch and the batch's position.

    Attributes:
        offsets: last offsets relative to the base offset, ascending unless the file is damaged.
        positions: positions of the batches, in bytes.
    """

    base_offset: int
    offsets: array[int] = field(default_factory=lambda: array("i"))
    positions: array[int] = field(default_factory=lambda: array("i"))
    most_entries: int = NO_LIMIT

    @classmethod
    def read(cls, base_offset: int, data: Buffer) -> OffsetIndex:
        """Read the entries of a file; a rest that is no entry is ignored."""
        view = memoryview(data)
        entries = array("i", bytes(view[: len(view) - len(view) % _OFFSET_ENTRY_BYTES]))
        if sys.byteorder == "little":
            entries.byteswap()
        return cls(base_offset, entries[0::2], entries[1::2])

    @property
    def size_bytes(self) -> int:
        """The size of its entries."""
        return _OFFSET_ENTRY_BYTES * len(self.offsets)

    @property
    def last_offset(self) -> int:
        """The offset of the last entry; the base offset without one."""
        return self.base_offset + self.offsets[-1] if self.offsets else self.base_offset

    def lookup(self, offset: int) -> int:
        """Return the position from which to search an offset."""
        slot = self._slot(offset - self.base_offset)
        return max(self.positions[slot], 0) if slot >= 0 else 0

    def _slot(self, offset: int) -> int:
        """Return the last entry at or below a relative offset, −1 without one.

        Where offsets do not ascend, it is the entry that Kafka's search finds.
        """
        last = len(self.offsets) - 1
        first_warm = max(0, last - WARM_ENTRIES)
        if last >= 0 and self.offsets[first_warm] < offset:
            return self._search(offset, first_warm, last)
        if last < 0 or self.offsets[0] > offset:
            return -1
        return self._search(offset, 0, first_warm)

    def _search(self, offset: int, low: int, high: int) -> int:
        """Search like ``AbstractIndex.binarySearch``."""
        while low < high:
            middle = (low + high + 1) >> 1
            if self.offsets[middle] == offset:
                return middle
            low, high = (low, middle - 1) if self.offsets[middle] > offset else (middle, high)
        return low

    def append(self, offset: int, position: int) -> None:
        """Append an entry.

        Raises:
            InvalidOffsetError: the offset is not larger than the last entry's.
            BrokerError: the file is full, or the offset is too far from the base.
        """
        if len(self.offsets) >= self.most_entries:
            raise BrokerError(f"the index is full with {len(self.offsets)} entries", rule="D-8")
        if self.offsets and offset <= self.last_offset:
            raise InvalidOffsetError(f"offset {offset} is no larger than {self.last_offset} in the index", rule="D-8")
        self.offsets.append(_relative(offset, self.base_offset))
        self.positions.append(position)

    def encode(self) -> bytes:
        """Return the file's contents."""
        entries = array("i", bytes(self.size_bytes))
        entries[0::2], entries[1::2] = self.offsets, self.positions
        if sys.byteorder == "little":
            entries.byteswap()
        return entries.tobytes()

    def truncate_to(self, offset: int) -> None:
        """Remove the entries from an offset on."""
        slot = self._slot(offset - self.base_offset)
        keep = slot if slot >= 0 and self.base_offset + self.offsets[slot] == offset else slot + 1
        del self.offsets[keep:], self.positions[keep:]


@dataclass(slots=True)
class TimeIndex:
    """``.timeindex``: at intervals, the largest timestamp so far and the last offset of the batch that has it.

    Attributes:
        timestamps: ascending, in epoch milliseconds.
        offsets: relative to the base offset.
    """

    base_offset: int
    timestamps: array[int] = field(default_factory=lambda: array("q"))
    offsets: array[int] = field(default_factory=lambda: array("i"))
    most_entries: int = NO_LIMIT

    @classmethod
    def read(cls, base_offset: int, data: Buffer) -> TimeIndex:
        """Read the entries of a file; a rest that is no entry is ignored."""
        view = memoryview(data)
        entries = list(TIME_ENTRY.iter_unpack(view[: len(view) - len(view) % TIME_ENTRY.size]))
        return cls(base_offset, array("q", (time for time, _ in entries)), array("i", (at for _, at in entries)))

    @property
    def size_bytes(self) -> int:
        """The size of its entries."""
        return TIME_ENTRY.size * len(self.timestamps)

    @property
    def last_timestamp_ms(self) -> int:
        """The timestamp of the last entry; −1 without one."""
        return self.timestamps[-1] if self.timestamps else -1

    def maybe_append(self, timestamp_ms: int, offset: int, *, is_closing: bool = False) -> None:
        """Append an entry if the time is beyond the last one's (``CL-42``).

        Args:
            is_closing: whether the segment ends; then one more entry fits.

        Raises:
            InvalidOffsetError: a later timestamp has a lower offset.
            BrokerError: the file is full.
        """
        if not is_closing and len(self.timestamps) >= self.most_entries - 1:
            raise BrokerError(f"the time index is full with {len(self.timestamps)} entries", rule="D-8")
        if self.offsets and offset < self.base_offset + self.offsets[-1]:
            last = self.base_offset + self.offsets[-1]
            raise InvalidOffsetError(f"offset {offset} is lower than {last} in the time index", rule="D-8")
        if timestamp_ms > self.last_timestamp_ms:
            self.timestamps.append(timestamp_ms)
            self.offsets.append(_relative(offset, self.base_offset))

    def encode(self) -> bytes:
        """Return the file's contents."""
        return b"".join(map(TIME_ENTRY.pack, self.timestamps, self.offsets))


@dataclass(slots=True)
class Indexing:
    """Both indexes of a segment while its batches are written or read one after the other (``CL-41``, ``CL-42``).

    Attributes:
        latest: the largest timestamp so far, and the last offset of the batch that has it.
        indexed_at: the position of the last entry.
    """

    index: OffsetIndex
    times: TimeIndex
    interval_bytes: int = INDEX_INTERVAL_BYTES
    latest: tuple[int, int] = (-1, -1)
    indexed_at: int = 0

    @classmethod
    def of(
        cls, base_offset: int, interval_bytes: int = INDEX_INTERVAL_BYTES, max_index_bytes: int | None = None
    ) -> Indexing:
        """Return the indexes of a new segment."""
        index, times = OffsetIndex(base_offset), TimeIndex(base_offset)
        if max_index_bytes is not None:
            index.most_entries = max_index_bytes // _OFFSET_ENTRY_BYTES
            times.most_entries = max_index_bytes // TIME_ENTRY.size
        return cls(index, times, interval_bytes)

    def take(self, position: int, last_offset: int, max_timestamp_ms: int, its_offset: int | None = None) -> None:
        """Index a batch that lies at a position, or several batches from there on.

        Args:
            its_offset: of several batches, the last offset of the one that has the timestamp.

        Raises:
            BrokerError: a due entry cannot be written.
        """
        if max_timestamp_ms > self.latest[0]:
            self.latest = max_timestamp_ms, last_offset if its_offset is None else its_offset
        if position - self.indexed_at > self.interval_bytes:
            self.index.append(last_offset, position)
            self.times.maybe_append(*self.latest)
            self.indexed_at = position

    def take_run(self, due: Iterable[Sequence[int]], latest: tuple[int, int], indexed_at: int) -> None:
        """Index batches whose due entries are known.

        Args:
            due: for each entry the last offset, the position, the largest timestamp so far and its offset.
        """
        for last_offset, position, timestamp_ms, its_offset in due:
            self.index.append(last_offset, position)
            self.times.maybe_append(timestamp_ms, its_offset)
        self.latest, self.indexed_at = latest, indexed_at

    def close(self) -> None:
        """Write the last entry at the end of the segment."""
        self.times.maybe_append(*self.latest, is_closing=True)


class AbortedTransaction(NamedTuple):
    """An entry of ``.txnindex`` (``CL-43``).

    Attributes:
        version: 0; see `is_of_known_version`.
        last_offset: the marker's offset.
        last_stable_offset: where the oldest other transaction open at that time began, else the offset after the
            marker.
    """

    version: int
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int

    def is_of_known_version(self, *, reads_as_message: bool) -> bool:
        """Whether a broker takes the entry for one of version 0: since 4.4 only that, as of any message (``K44-21``).

        Before, the first byte alone is asked, and may be negative (``AbortedTxn.version``).
        """
        return not self.version if reads_as_message else self.version >> 8 <= 0


@dataclass(slots=True)
class TransactionIndex:
    """``.txnindex``: the aborted transactions, by ascending offsets of their markers."""

    entries: list[AbortedTransaction] = field(default_factory=list)

    @classmethod
    def read(cls, data: Buffer) -> TransactionIndex:
        """Read the entries of a file; a rest that is no entry is ignored."""
        view = memoryview(data)
        whole = view[: len(view) - len(view) % _ABORTED_TRANSACTION.size]
        return cls([AbortedTransaction(*entry) for entry in _ABORTED_TRANSACTION.iter_unpack(whole)])

    def append(self, entry: AbortedTransaction) -> None:
        """Append an entry. Raises BrokerError if its marker's offset is not beyond the last one."""
        if self.entries and self.entries[-1].last_offset >= entry.last_offset:
            raise BrokerError(
                f"the aborted transaction that ends at {entry.last_offset} comes behind one that ends at "
                f"{self.entries[-1].last_offset}",
                rule="D-8",
            )
        self.entries.append(entry)

    def collect(self, start: int, end: int) -> tuple[list[AbortedTransaction], bool]:
        """Return the entries that end at ``start`` or later and begin below ``end`` (``CL-14``).

        The second value says whether all such transactions are among them.
        """
        found = []
        for entry in self.entries:
            if entry.last_offset >= start and entry.first_offset < end:
                found.append(entry)
            if entry.last_stable_offset >= end:
                return found, True
        return found, False

    def encode(self) -> bytes:
        """Return the file's contents; without entries there is no file."""
        return b"".join(_ABORTED_TRANSACTION.pack(*entry) for entry in self.entries)


def is_sane_transaction_index(base_offset: int, index: TransactionIndex, *, reads_as_message: bool) -> bool:
    """Whether a ``.txnindex`` may stay; otherwise its segment is recovered.

    Args:
        reads_as_message: see `AbortedTransaction.is_of_known_version`.

    Raises:
        BrokerError: an entry has an unknown version.
    """
    for entry in index.entries:
        if not entry.is_of_known_version(reads_as_message=reads_as_message):
            raise BrokerError(f"an aborted transaction of version {entry.version} in the transaction index", rule="D-8")
        if entry.last_offset < base_offset:
            return False
    return True


def _relative(offset: int, base_offset: int) -> int:
    """Return an offset relative to the base. Raises BrokerError if 4 bytes cannot hold it."""
    if not 0 <= offset - base_offset < MAX_OFFSETS_IN_SEGMENT:
        raise BrokerError(f"offset {offset} is too far from {base_offset} for an index", rule="D-8")
    return offset - base_offset
