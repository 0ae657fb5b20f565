"""The kernels of Parquet pages: values without nulls, numbers as bit-packed differences, texts and their numbers.

Source: ``Encodings.md`` of Apache Parquet: Plain, Delta Encoding. ``bits`` are Arrow's validity bitmaps: one bit a
row, the first row's the least significant.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from offsets_log.columnar.jit.compiled import U, inlined, kernel, part
from offsets_log.columnar.scan.keys import HIGH, LOW, same_bytes
from offsets_log.columnar.wire.decompress import copy_bytes
from offsets_log.columnar.wire.primitives import hash_bytes

MINIBLOCK = 64
"""Values of one bit width: their bits fill whole words."""
MINIBLOCKS = 4
BLOCK = MINIBLOCKS * MINIBLOCK
MAX_BLOCK_BYTES = 10 + MINIBLOCKS + 8 * BLOCK

MANY_TEXTS = -1
"""There are more distinct texts than a dictionary has room for."""
MOST_PROBES = 64
"""A row of hashes alike as long as this is no accident."""
SEED = 0x5851F42D4C957F2D


ALL = 0xFF
"""A byte of a bitmap: eight rows that are not null."""


@kernel
def leave_out_nulls(values: Any, bits: Any, out: Any) -> Any:
    """The values of the rows that are not null, and their number.

    Args:
        out: as long as ``values``; may be the same.
    """
    count = np.int64(0)
    for row in range(len(values)):
        out[U(count)] = values[U(row)]
        count += np.int64(bits[U(row >> 3)]) >> (row & 7) & 1
    return count


OUTSIDE = -1
"""A number has no text."""


@kernel
def renumber(numbers: Any, places: Any, used: Any, out: Any) -> Any:
    """Numbers of texts in the order in which they come first, whatever they were; how many there are, or OUTSIDE.

    Args:
        places: zeros, one for each text.
        used: as many; gets what the numbers were.
        out: as long as ``numbers``; may be the same.
    """
    distinct = np.int64(0)
    for i in range(len(numbers)):
        number = np.int64(numbers[U(i)])
        if number < 0 or number >= len(places):
            return np.int64(OUTSIDE)
        if places[U(number)] == 0:
            used[U(distinct)] = number
            distinct += 1
            places[U(number)] = distinct
        out[U(i)] = places[U(number)] - 1
    return distinct


# -------------------------------------------------------------------------------------------- differences


@inlined
def _put_word(out: Any, at: Any, word: Any) -> None:
    """8 bytes, least significant first; the compiler makes one store of them."""
    begin = U(at)
    out[begin] = word & U(0xFF)
    out[begin + U(1)] = word >> U(8) & U(0xFF)
    out[begin + U(2)] = word >> U(16) & U(0xFF)
    out[begin + U(3)] = word >> U(24) & U(0xFF)
    out[begin + U(4)] = word >> U(32) & U(0xFF)
    out[begin + U(5)] = word >> U(40) & U(0xFF)
    out[begin + U(6)] = word >> U(48) & U(0xFF)
    out[begin + U(7)] = word >> U(56) & U(0xFF)


@part
def _put_bits(words: Any, width: Any, out: Any, at: Any) -> Any:
    """The first `MINIBLOCK` words, so many bits of each, as ``width`` words; where they end.

    Neighbours are joined as long as two go into one word, all pairs at once; what is left is put one behind another.
    """
    size = U(width)
    count = MINIBLOCK
    while size <= U(32) and count > 1:
        count >>= 1
        for i in range(count):
            words[U(i)] = words[U(2 * i)] | words[U(2 * i + 1)] << size
        size <<= U(1)
    word = U(0)
    used = U(0)
    for i in range(count):
        value = words[U(i)]
        word |= value << used
        used += size
        if used >= U(64):
            _put_word(out, at, word)
            at += 8
            used -= U(64)
            word = value >> size - used - U(1) >> U(1)  # nothing is left of it where it ends with the word
    return at


@kernel
def pack_differences(values: Any, unused: Any, differences: Any, words: Any, ends: Any, out: Any) -> Any:
    """The blocks of DELTA_BINARY_PACKED, which follow the first value; their size in bytes.

    Args:
        values: int64, one at least.
        unused: of 64 bits, those that values of the column's type do not have: differences go over as they do.
        differences, words: of a block, and of a miniblock: int64 and uint64, for the kernel alone.
        ends: gets the least and the greatest value.
        out: `MAX_BLOCK_BYTES` for each block, the last too.
    """
    at = np.int64(0)
    low = high = values[0]
    for begin in range(1, len(values), BLOCK):
        count = min(BLOCK, len(values) - begin)
        least = np.int64((1 << 63) - 1)
        for i in range(count):
            value = values[U(begin + i)]
            difference = value - values[U(begin + i - 1)] << unused >> unused
            differences[U(i)] = difference
            least = min(least, difference)
            low = min(low, value)
            high = max(high, value)
        for i in range(count, BLOCK):
            differences[U(i)] = least
        left = U(least << np.int64(1) ^ least >> np.int64(63))
        while left > U(0x7F):
            out[U(at)] = left & U(0x7F) | U(0x80)
            left >>= U(7)
            at += 1
        out[U(at)] = left
        widths_at = at + 1
        at = widths_at + MINIBLOCKS
        for miniblock in range(MINIBLOCKS):
            used = U(0)
            for i in range(MINIBLOCK):
                word = U(differences[U(miniblock * MINIBLOCK + i)]) - U(least)
                words[U(i)] = word
                used |= word
            width = np.int64(0)
            while used != U(0):
                used >>= U(1)
                width += 1
            out[U(widths_at + miniblock)] = width
            if width:
                at = _put_bits(words, width, out, at)
    ends[0] = low
    ends[1] = high
    return at


# -------------------------------------------------------------------------------------------------- texts


@kernel
def put_texts(bounds: Any, data: Any, bits: Any, out: Any) -> Any:
    """The texts or bytes of the rows that are not null, each behind its size in 4 bytes; how many bytes these are.

    Args:
        bounds: of the texts in ``data``, int32, one more than rows.
        out: 4 bytes for each row and what the texts have.
    """
    at = np.int64(0)
    rows = len(bounds) - 1
    for first in range(0, rows, 8):
        byte = np.int64(bits[U(first >> 3)])
        if byte == 0:  # most of them
            continue
        for row in range(first, min(first + 8, rows)):
            if byte >> (row & 7) & 1:
                begin = np.int64(bounds[U(row)])
                size = np.int64(bounds[U(row + 1)]) - begin
                for i in range(4):
                    out[U(at + i)] = size >> 8 * i & 0xFF
                copy_bytes(data, begin, out, at + 4, size)
                at += 4 + size
    return at


@inlined
def _number_of(bounds: Any, data: Any, row: Any, slots: Any, rows: Any, distinct: Any) -> Any:
    """The number of a row's text: ``distinct`` if it is new, MANY_TEXTS if it has no place."""
    begin = np.int64(bounds[U(row)])
    size = np.int64(bounds[U(row + 1)]) - begin
    found = hash_bytes(data, begin, size, SEED)
    mask = np.int64(len(slots) - 1)
    for probe in range(MOST_PROBES):
        at = found + probe & mask
        slot = slots[U(at)]
        if slot == 0:
            if distinct == len(rows):
                return np.int64(MANY_TEXTS)
            rows[U(distinct)] = row
            slots[U(at)] = found & HIGH | distinct + 1
            return distinct
        if (slot ^ found) & HIGH == 0:
            number = (slot & LOW) - 1
            first = rows[U(number)]
            other = np.int64(bounds[U(first)])
            if np.int64(bounds[U(first + 1)]) - other == size and same_bytes(data, other, data, begin, size):
                return number
    return np.int64(MANY_TEXTS)


@kernel
def number_texts(bounds: Any, data: Any, bits: Any, slots: Any, rows: Any, numbers: Any) -> Any:
    """Texts as numbers in the order in which they come first; how many there are, or MANY_TEXTS.

    Args:
        slots: a hash table of zeros, a power of two and more than ``rows``.
        rows: room for the row in which each text comes first; MANY_TEXTS are more than these.
        numbers: as many as rows; gets those of the rows that are not null.
    """
    distinct = np.int64(0)
    count = np.int64(0)
    empty = np.int64(MANY_TEXTS)
    for row in range(len(bounds) - 1):
        if np.int64(bits[U(row >> 3)]) >> (row & 7) & 1 == 0:
            continue
        is_empty = bounds[U(row + 1)] == bounds[U(row)]
        number = empty if is_empty else np.int64(MANY_TEXTS)
        if number < 0:
            number = _number_of(bounds, data, np.int64(row), slots, rows, distinct)
            if number < 0:
                return np.int64(MANY_TEXTS)
            distinct = max(distinct, number + 1)
            if is_empty:
                empty = number
        numbers[U(count)] = number
        count += 1
    return distinct
