"""The index of a segment: for some batches their last offset and where they stand (``OffsetIndex.java``)."""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right

from offsets_log.log_format.segment import ReadAt

ENTRY = struct.Struct(">ii")
"""Relative offset, position. A broker makes the file large beforehand: zeros follow the last entry."""

_NO_ENTRY = bytes(ENTRY.size)
_CHUNK_ENTRIES = 128
_CHUNK_BYTES = _CHUNK_ENTRIES * ENTRY.size
"""So much of an index is read at once."""


class OffsetIndex:
    """The entries before the zeros, which are not gone through: there may be many more of them."""

    def __init__(self, read_at: ReadAt) -> None:
        self._read_at = read_at
        self._chunks: dict[int, bytes] = {}
        self._count: int | None = None

    @property
    def count(self) -> int:
        """How many entries there are."""
        if self._count is None:  # a cached_property has one lock for all indexes, which are read at once in a store
            self._count = self._find_count()
        return self._count

    def _find_count(self) -> int:
        if not self._is_full(0):  # as most are
            return self._entries_in(0)
        high = 2
        while self._is_full(high - 1):
            high *= 2
        number = bisect_left(range(high), True, lo=high // 2, key=lambda one: not self._is_full(one))
        return number * _CHUNK_ENTRIES + self._entries_in(number)

    def entry(self, slot: int) -> tuple[int, int]:
        """Return an entry that there is."""
        number, place = divmod(slot, _CHUNK_ENTRIES)
        relative, position = ENTRY.unpack_from(self._chunk(number), place * ENTRY.size)
        return relative, position

    def slot(self, relative_offset: int) -> int:
        """Return the last entry at or below an offset; −1 without one."""
        return bisect_right(range(self.count), relative_offset, key=lambda slot: self.entry(slot)[0]) - 1

    def _is_full(self, number: int) -> bool:
        chunk = self._chunk(number)
        return len(chunk) == _CHUNK_BYTES and chunk[-ENTRY.size :] != _NO_ENTRY

    def _entries_in(self, number: int) -> int:
        """Return how many entries of a chunk stand before the zeros at its end."""
        return -(-len(self._chunk(number).rstrip(b"\x00")) // ENTRY.size)

    def _chunk(self, number: int) -> bytes:
        """Return the whole entries of a chunk."""
        if number not in self._chunks:
            chunk = bytes(self._read_at(number * _CHUNK_BYTES, _CHUNK_BYTES))
            self._chunks[number] = chunk[: len(chunk) // ENTRY.size * ENTRY.size]
        return self._chunks[number]
