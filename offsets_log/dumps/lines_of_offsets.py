"""Where stores keep what is made of a source, and on which of its lines a record offset is."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Protocol

from offsets_log.log_format.segment import Buffer


class Store(Protocol):
    """Bytes that can be appended to, wherever they are kept."""

    def append(self, data: bytes) -> None:
        """Append bytes."""

    def buffer(self) -> Buffer:
        """Return all bytes; none may be appended afterwards."""


class InMemory:
    """A `Store` in memory."""

    def __init__(self) -> None:
        self._data = bytearray()

    def append(self, data: bytes) -> None:
        """Append bytes."""
        self._data += data

    def buffer(self) -> Buffer:
        """Return all bytes."""
        return memoryview(self._data).toreadonly()


class LinesOfOffsets(Mapping[int, int]):
    """Record offset → line of a source, kept as pairs of numbers; binary search is used while offsets ascend.

    Attributes:
        last: the last offset as far as they ascend; None without one.

    Args:
        store: holds pairs of int64, see `SegmentPiece`.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.last: int | None = None
        self._rises = True
        self._count = 0
        self._pairs: memoryview | None = None

    def add(self, pairs: bytes) -> None:
        """Append pairs."""
        offsets = memoryview(pairs).cast("q")[::2]
        if self._rises and len(offsets):
            told = [*offsets] if self.last is None else [self.last, *offsets]
            self._rises = all(one <= other for one, other in pairwise(told))
            self.last = told[-1]
        self._count += len(offsets)
        self._store.append(pairs)

    def __getitem__(self, record_offset: int) -> int:
        """Return the last record's line, or that of the first batch that begins there. Raises KeyError."""
        pairs = self._pairs = memoryview(self._store.buffer()).cast("q") if self._pairs is None else self._pairs
        offsets, lines = pairs[::2], pairs[1::2]
        begin = bisect_left(offsets, record_offset) if self._rises else 0
        of_batch = None
        of_record = None
        for i in range(begin, self._count):
            if offsets[i] == record_offset:
                if lines[i] > 0:
                    of_record = lines[i]
                elif of_batch is None and of_record is None:
                    of_batch = -lines[i]
            elif self._rises:
                break
        if of_record is None and of_batch is None:
            raise KeyError(record_offset)
        return of_record or of_batch or 0

    def __iter__(self) -> Iterator[int]:
        return iter({*memoryview(self._store.buffer()).cast("q")[::2]})

    def __len__(self) -> int:
        return self._count
