"""Columns of Arrow as pages of Parquet, not yet compressed: the levels of an optional column, then its values.

Integers of a small range are indices into a dictionary of the whole range, others are differences; texts are indices
into a dictionary while few are distinct. Indices have whole bytes: zstd finds more in them than in packed bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from offsets_log.columnar.finish.arrow import numbers
from offsets_log.columnar.parquet import kernels as k
from offsets_log.columnar.parquet.format import Encoding, uvarint, zigzag

Array = npt.NDArray[Any]

MAX_PAGE_BYTES = (1 << 31) - 1
MOST_NUMBERS = 1 << 12
MOST_TEXTS = 1 << 12
"""Of a dictionary that is made here."""
FIRST_NUMBERS = 1 << 14
"""Where these have too large a range the others are not looked at."""


@dataclass(frozen=True, slots=True)
class Dictionary:
    """The page in front of a column's own."""

    entries: int
    body: Array


@dataclass(frozen=True, slots=True)
class Page:
    """A column's page; the body is void when the next page is made.

    Attributes:
        bounds: the least and the greatest value as bytes, of integers that are not all null.
    """

    encoding: Encoding
    body: Array
    dictionary: Dictionary | None = None
    bounds: tuple[bytes, bytes] | None = None


# ----------------------------------------------------------------------------------------- Arrow's buffers


def _numbers(buffer: pa.Buffer | None, kind: Any, begin: int, count: int) -> Array:
    """A part of a buffer; no buffer is one of nothing."""
    return np.zeros(0, kind) if buffer is None else np.frombuffer(buffer, kind, count, begin * np.dtype(kind).itemsize)


def _flags(buffer: pa.Buffer, begin: int, count: int) -> Array:
    """A part of a bitmap, a byte each."""
    whole = np.frombuffer(buffer, np.uint8)[begin // 8 : (begin + count + 7) // 8]
    return np.unpackbits(whole, bitorder="little")[begin % 8 : begin % 8 + count]


def _bits(buffer: pa.Buffer, begin: int, count: int) -> Array:
    """A part of a bitmap as one, with zeros behind its end."""
    if begin % 8:
        return np.packbits(_flags(buffer, begin, count), bitorder="little")
    bits = np.frombuffer(buffer, np.uint8)[begin // 8 : (begin + count + 7) // 8].copy()
    bits[-1] &= 0xFF >> -count % 8
    return bits


def _byte_arrays(array: pa.Array) -> tuple[Array, Array]:
    """The bounds of texts, and the bytes that they bound."""
    _, bounds, data = array.buffers()
    return _numbers(bounds, np.int32, array.offset, len(array) + 1), _numbers(data, np.uint8, 0, -1)


# --------------------------------------------------------------------------------------------------- pages


class _Memory:
    """Bytes behind each other, in memory that is used again."""

    def __init__(self) -> None:
        self._data = np.zeros(1 << 16, np.uint8)
        self.size = 0

    def room(self, size_bytes: int) -> Array:
        """Free memory behind what is there; what is written to it is counted by adding to `size`."""
        if self.size + size_bytes > len(self._data):
            data = np.empty(max(2 * len(self._data), self.size + size_bytes), np.uint8)
            data[: self.size] = self.whole
            self._data = data
        return self._data[self.size : self.size + size_bytes]

    def put(self, data: bytes | Array) -> None:
        """More bytes."""
        self.room(len(data))[:] = np.frombuffer(data, np.uint8)
        self.size += len(data)

    @property
    def whole(self) -> Array:
        """All that is there."""
        return self._data[: self.size]


class Pages:
    """Makes pages, one after another, in memory that they share."""

    def __init__(self) -> None:
        self._page = _Memory()
        self._values = np.zeros(0, np.int64)
        self._differences = np.zeros(k.BLOCK, np.int64)
        self._words = np.zeros(k.MINIBLOCK, np.uint64)
        self._ends = np.zeros(2, np.int64)
        self._slots = np.zeros(4 * MOST_TEXTS, np.int64)
        self._rows = np.zeros(MOST_TEXTS, np.int64)

    def page(self, array: pa.Array, *, is_optional: bool) -> Page:
        """A column with one row at least.

        Args:
            array: of a type that `parquet_writer` knows, without nulls if it is not optional.
        """
        self._page.size = 0
        nulls = array.null_count
        bits = _bits(array.buffers()[0], array.offset, len(array)) if 0 < nulls < len(array) else None
        if is_optional:
            self._put_levels(bits, len(array), nulls)
        if nulls == len(array):
            return Page(Encoding.PLAIN, self._page.whole)
        if pa.types.is_dictionary(array.type):
            return self._of_dictionary(array, bits)
        if pa.types.is_integer(array.type):
            return self._of_integers(array, bits)
        if pa.types.is_boolean(array.type):
            return self._of_flags(array, bits)
        return self._of_texts(array, bits)

    def _put_levels(self, bits: Array | None, count: int, nulls: int) -> None:
        """Behind their size: what Arrow calls validity is a run of levels."""
        runs = (uvarint(count << 1), b"\0" if nulls else b"\1") if bits is None else (uvarint(len(bits) << 1 | 1), bits)
        self._page.put(sum(map(len, runs)).to_bytes(4, "little"))
        for run in runs:
            self._page.put(run)

    def _scratch(self, like: Array) -> Array:
        """Memory for as many integers; one column's."""
        if len(self._values) < len(like):
            self._values = np.zeros(len(like), np.int64)
        return self._values.view(like.dtype)[: len(like)]

    def _present(self, values: Array, bits: Array | None) -> Array:
        """The values of the rows that are not null, in the column's memory unless they are all."""
        if bits is None:
            return values
        out = self._scratch(values)
        return out[: k.leave_out_nulls(values, bits, out)]

    def _put_indices(self, values: Array, base: int, least: int, most: int) -> None:
        """What numbers are from a base on, as indices: a run of one of them, or all in as many bytes as they need."""
        size_bytes = 1 if most - base < 1 << 8 else 2 if most - base < 1 << 16 else 4
        page = self._page
        page.put(bytes([8 * size_bytes]))
        if least == most:
            page.put(uvarint(len(values) << 1) + (least - base).to_bytes(size_bytes, "little"))
            return
        groups = (len(values) + 7) // 8
        page.put(uvarint(groups << 1 | 1))
        room = page.room(8 * groups * size_bytes)
        made = np.frombuffer(room, f"<u{size_bytes}")
        np.subtract(values, base, out=made[: len(values)], casting="unsafe")
        made[len(values) :] = 0
        page.size += len(room)

    def _of_dictionary(self, array: pa.DictionaryArray, bits: Array | None) -> Page:
        indices, texts = array.indices, array.dictionary
        given = self._present(_numbers(indices.buffers()[1], np.int32, indices.offset, len(indices)), bits)
        places, used = np.zeros((2, len(texts)), np.int32)
        out = self._scratch(given)
        distinct = k.renumber(given, places, used, out)
        if distinct == k.OUTSIDE:
            raise ValueError("a number without a text in its dictionary")
        self._put_indices(out, 0, 0, distinct - 1)
        texts = texts.take(numbers(used[:distinct]))
        return Page(Encoding.RLE_DICTIONARY, self._page.whole, _dictionary(texts))

    def _of_integers(self, array: pa.Array, bits: Array | None) -> Page:
        kind = np.dtype(array.type.to_pandas_dtype())
        values = self._present(_numbers(array.buffers()[1], kind, array.offset, len(array)), bits)
        least, most = _ends(values[:FIRST_NUMBERS])
        if most - least < MOST_NUMBERS:
            least, most = _ends(values)
        dictionary = None
        if most - least < min(MOST_NUMBERS, len(values)):
            self._put_indices(values, least, least, most)
            entries = np.arange(least, most + 1, dtype=np.int64).astype(kind.newbyteorder("<"))
            dictionary = Dictionary(len(entries), entries.view(np.uint8))
        else:
            least, most = self._put_differences(values, unused=64 - 8 * kind.itemsize)
        low, high = (number.to_bytes(kind.itemsize, "little", signed=True) for number in (least, most))
        encoding = Encoding.RLE_DICTIONARY if dictionary else Encoding.DELTA_BINARY_PACKED
        return Page(encoding, self._page.whole, dictionary, (low, high))

    def _put_differences(self, values: Array, *, unused: int) -> tuple[int, int]:
        """The least and the greatest value."""
        page = self._page
        for number in (k.BLOCK, k.MINIBLOCKS, len(values), zigzag(int(values[0]))):
            page.put(uvarint(number))
        room = page.room((len(values) // k.BLOCK + 1) * k.MAX_BLOCK_BYTES)
        whole = np.ascontiguousarray(values, np.int64)
        page.size += k.pack_differences(whole, unused, self._differences, self._words, self._ends, room)
        return int(self._ends[0]), int(self._ends[1])

    def _of_flags(self, array: pa.Array, bits: Array | None) -> Page:
        buffer = array.buffers()[1]
        if bits is None:
            self._page.put(_bits(buffer, array.offset, len(array)))
        else:
            flags = self._present(_flags(buffer, array.offset, len(array)).astype(np.int32), bits)
            self._page.put(np.packbits(flags != 0, bitorder="little"))
        return Page(Encoding.PLAIN, self._page.whole)

    def _of_texts(self, array: pa.Array, bits: Array | None) -> Page:
        bounds, data = _byte_arrays(array)
        if bits is None:
            bits = np.full((len(array) + 7) // 8, 0xFF, np.uint8)
        if pa.types.is_string(array.type):
            self._slots[:] = 0
            made = np.empty(len(array), np.int32)
            distinct = k.number_texts(bounds, data, bits, self._slots, self._rows, made)
            if distinct != k.MANY_TEXTS:
                self._put_indices(made[: len(array) - array.null_count], 0, 0, distinct - 1)
                texts = array.take(numbers(self._rows[:distinct]))
                return Page(Encoding.RLE_DICTIONARY, self._page.whole, _dictionary(texts))
        room = self._page.room(4 * len(array) + int(bounds[-1]) - int(bounds[0]))
        self._page.size += k.put_texts(bounds, data, bits, room)
        return Page(Encoding.PLAIN, self._page.whole)


def _ends(values: Array) -> tuple[int, int]:
    return int(values.min()), int(values.max())


def _dictionary(texts: pa.StringArray) -> Dictionary:
    bounds, data = _byte_arrays(texts)
    body = np.empty(4 * len(texts) + int(bounds[-1]) - int(bounds[0]), np.uint8)
    k.put_texts(bounds, data, np.full((len(texts) + 7) // 8, 0xFF, np.uint8), body)
    return Dictionary(len(texts), body)
