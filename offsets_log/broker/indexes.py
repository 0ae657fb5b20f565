"""The index files beside a segment: where a broker looks first, and what it makes anew when it recovers one.

References: ``OffsetIndex.java``, ``TimeIndex.java``, ``TransactionIndex.java``.
"""

from __future__ import annotations

import struct
import sys
from array import array
from dataclasses import dataclass, field

from offsets_log.broker.failures import BrokerError, InvalidOffsetError
from offsets_log.log_format.segment import Buffer

_OFFSET_ENTRY_BYTES = 8
"""Relative offset and position, 4 bytes each."""
_ABORTED_TRANSACTION = struct.Struct(">bxqqqq")
ABORTED_TRANSACTION_VERSION = 0
"""Its first byte alone is looked at (``AbortedTxn.version``)."""

WARM_ENTRIES = 1024
"""At the end of an index, where is looked first."""


@dataclass(slots=True)
class OffsetIndex:
    """``.index``: now and then the last offset of the batch before, and the position of a batch.

    Attributes:
        offsets: relative to the base offset, rising unless the file is damaged.
        positions: of batches that hold nothing before.
    """

    base_offset: int
    offsets: array[int] = field(default_factory=lambda: array("i"))
    positions: array[int] = field(default_factory=lambda: array("i"))

    @classmethod
    def read(cls, base_offset: int, data: Buffer) -> OffsetIndex:
        """The entries of a file; a rest that is no entry is left out."""
        view = memoryview(data)
        entries = array("i", bytes(view[: len(view) - len(view) % _OFFSET_ENTRY_BYTES]))
        if sys.byteorder == "little":
            entries.byteswap()
        return cls(base_offset, entries[0::2], entries[1::2])

    @property
    def last_offset(self) -> int:
        """Of the last entry; the base offset without one."""
        return self.base_offset + self.offsets[-1] if self.offsets else self.base_offset

    def lookup(self, offset: int) -> int:
        """The position to search from."""
        slot = self._slot(offset - self.base_offset)
        return max(self.positions[slot], 0) if slot >= 0 else 0

    def _slot(self, offset: int) -> int:
        """The last entry at or below a relative offset, −1 without one; where they do not rise, what is met."""
        last = len(self.offsets) - 1
        first_warm = max(0, last - WARM_ENTRIES)
        if last >= 0 and self.offsets[first_warm] < offset:
            return self._search(offset, first_warm, last)
        if last < 0 or self.offsets[0] > offset:
            return -1
        return self._search(offset, 0, first_warm)

    def _search(self, offset: int, low: int, high: int) -> int:
        """``AbstractIndex.binarySearch``."""
        while low < high:
            middle = (low + high + 1) >> 1
            if self.offsets[middle] == offset:
                return middle
            low, high = (low, middle - 1) if self.offsets[middle] > offset else (middle, high)
        return low

    def append(self, offset: int, position: int) -> None:
        """Raises InvalidOffsetError: offsets of entries rise."""
        if self.offsets and offset <= self.last_offset:
            raise InvalidOffsetError(f"offset {offset} is no larger than {self.last_offset} in the index", rule="D-8")
        self.offsets.append(offset - self.base_offset)
        self.positions.append(position)

    def truncate_to(self, offset: int) -> None:
        """Without the entries from an offset on."""
        slot = self._slot(offset - self.base_offset)
        keep = slot if slot >= 0 and self.base_offset + self.offsets[slot] == offset else slot + 1
        del self.offsets[keep:], self.positions[keep:]


@dataclass(slots=True)
class TimeIndex:
    """``.timeindex`` as far as making it anew may fail: its last entry.

    Attributes:
        entries: how many there are.
        timestamp_ms, offset: of the last one.
    """

    entries: int = 0
    timestamp_ms: int = -1
    offset: int = -1

    def maybe_append(self, timestamp_ms: int, offset: int) -> None:
        """Raises InvalidOffsetError: a later timestamp stands at a lower offset."""
        if self.entries and offset < self.offset:
            raise InvalidOffsetError(f"offset {offset} is lower than {self.offset} in the time index", rule="D-8")
        if timestamp_ms > self.timestamp_ms:
            self.entries, self.timestamp_ms, self.offset = self.entries + 1, timestamp_ms, offset


@dataclass(slots=True)
class TransactionIndex:
    """``.txnindex`` as it is made anew: the aborted transactions, by their markers' rising offsets."""

    last_offset: int | None = None

    def append(self, last_offset: int) -> None:
        """Raises BrokerError: a marker's offset is not beyond the one before."""
        if self.last_offset is not None and self.last_offset >= last_offset:
            raise BrokerError(
                f"the aborted transaction that ends at {last_offset} comes behind one that ends at {self.last_offset}",
                rule="D-8",
            )
        self.last_offset = last_offset


def is_sane_transaction_index(base_offset: int, data: Buffer) -> bool:
    """Whether a ``.txnindex`` may stay; else its segment is recovered.

    Raises:
        BrokerError: an entry of a version that nobody reads.
    """
    view = memoryview(data)
    whole = view[: len(view) - len(view) % _ABORTED_TRANSACTION.size]
    for version, _, _, last_offset, _ in _ABORTED_TRANSACTION.iter_unpack(whole):
        if version > ABORTED_TRANSACTION_VERSION:
            raise BrokerError(f"an aborted transaction of version {version} in the transaction index", rule="D-8")
        if last_offset < base_offset:
            return False
    return True
