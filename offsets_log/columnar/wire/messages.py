"""Read messages of magic 0 and 1 in kernels: whether one is whole and valid, and where a compressed one's messages are.

offset 8 · size 4 · crc 4 · magic 1 · attributes 1 · (timestamp 8, magic 1 only) · key · value

One message is a batch of one record, a compressed one a batch of the messages inside (``records:M3``, ``M9``). As in
`batches`, `log_format` reads everything that is not plain: keys of compressed messages, inner messages that are cut off
or compressed again, and inner offsets that do not ascend or do not end with the outer one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.jit.compiled import U, inlined, part
from offsets_log.columnar.jit.instructions import crc_tables, load64
from offsets_log.columnar.jit.records import Table
from offsets_log.columnar.wire.primitives import be32, be64
from offsets_log.log_format import batch as b
from offsets_log.log_format.compression import CODEC_MASK

SIZE = 8
CRC = b.LEGACY_CRC_POSITION
MAGIC = b.MAGIC_POSITION
ATTRIBUTES = MAGIC + 1
TIMESTAMP = ATTRIBUTES + 1
LENGTH_BYTES = 4
"""Bytes of the length of a key and of a value."""
TIMESTAMP_BYTES = b.LEGACY_HEADER_SIZE[1] - b.LEGACY_HEADER_SIZE[0]
LEAST_SIZE = b.LOG_OVERHEAD + b.MIN_SIZE[0]
LEAST_KEY = 2
"""Least bytes of a key: the record type."""

_INITIAL = U(0xFFFFFFFF)
_TABLES = crc_tables(0xEDB88320).astype(np.uint32)
"""Tables of the CRC-32 that zlib has too."""


@part
def crc32(data: Any, start: Any, end: Any) -> Any:
    """Return the CRC-32 of ``data[start:end]``; the caller has checked the end."""
    crc = _INITIAL
    at = start
    while at + 8 <= end:
        word = load64(data, at) ^ crc
        crc = U(
            _TABLES[7, word & U(0xFF)]
            ^ _TABLES[6, word >> U(8) & U(0xFF)]
            ^ _TABLES[5, word >> U(16) & U(0xFF)]
            ^ _TABLES[4, word >> U(24) & U(0xFF)]
            ^ _TABLES[3, word >> U(32) & U(0xFF)]
            ^ _TABLES[2, word >> U(40) & U(0xFF)]
            ^ _TABLES[1, word >> U(48) & U(0xFF)]
            ^ _TABLES[0, word >> U(56)]
        )
        at += 8
    while at < end:
        crc = crc >> U(8) ^ U(_TABLES[0, (crc ^ U(data[U(at)])) & U(0xFF)])
        at += 1
    return np.int64(crc ^ _INITIAL)


@inlined
def _least_size(magic: Any) -> Any:
    return LEAST_SIZE + TIMESTAMP_BYTES * magic


@inlined
def key_at(at: Any, magic: Any) -> Any:
    """Return the position of the length of a message's key."""
    return at + TIMESTAMP + TIMESTAMP_BYTES * magic


@inlined
def value_at(at: Any, magic: Any) -> Any:
    """Return where the value of a message without a key begins."""
    return key_at(at, magic) + 2 * LENGTH_BYTES


@part
def size_at(data: Any, at: Any, end: Any) -> Any:
    """Return the size of the message that a position seems to hold, or NOT_PLAIN."""
    if end - at < LEAST_SIZE:
        return np.int64(oc.NOT_PLAIN)
    magic = np.int64(data[U(at) + U(MAGIC)])
    size = be32(data, at + SIZE) + b.LOG_OVERHEAD
    return size if magic <= 1 and _least_size(magic) <= size <= end - at else np.int64(oc.NOT_PLAIN)


@inlined
def has_known_attributes(data: Any, at: Any) -> Any:
    """Return whether a message has no other attributes than its magic knows."""
    known = CODEC_MASK | (b.TIMESTAMP_TYPE_MASK if data[U(at) + U(MAGIC)] == 1 else 0)
    return np.int64(data[U(at) + U(ATTRIBUTES)]) & ~known == 0


@part
def is_plain(data: Any, at: Any, size: Any) -> Any:
    """Return whether a whole message has a right checksum and only known attributes."""
    if not has_known_attributes(data, at):
        return False
    return crc32(data, at + MAGIC, at + size) == be32(data, at + CRC) & np.int64(0xFFFFFFFF)


@part
def time_of(data: Any, at: Any) -> Any:
    """Return when a message was written, according to its own header."""
    return be64(data, at + TIMESTAMP) if data[U(at) + U(MAGIC)] == 1 else np.int64(b.NO_TIMESTAMP)


@part
def compressed_at(data: Any, at: Any, end: Any) -> Any:
    """Return where the value of a compressed message begins that fills it up to its end, or NOT_PLAIN."""
    value = value_at(at, np.int64(data[U(at) + U(MAGIC)]))
    if value > end or be32(data, value - 2 * LENGTH_BYTES) != -1 or be32(data, value - LENGTH_BYTES) != end - value:
        return np.int64(oc.NOT_PLAIN)
    return value


@part
def count_of(source: Any, start: Any, end: Any) -> Any:
    """Return how many messages ``source[start:end]`` holds, by their sizes; NOT_PLAIN if they do not fill it."""
    count, at = np.int64(0), start
    while at < end:
        size = size_at(source, at, end)
        if size < 0:
            return np.int64(oc.NOT_PLAIN)
        at += size
        count += 1
    return count


@part
def are_of_magic(source: Any, start: Any, end: Any, magic: Any) -> Any:
    """Return whether all messages that ``source[start:end]`` holds are of a magic; `count_of` has counted them."""
    at = start
    while at < end:
        if np.int64(source[U(at) + U(MAGIC)]) != magic:
            return False
        at += be32(source, at + SIZE) + b.LOG_OVERHEAD
    return True


@inlined
def _place(source: Any, at: Any, size: Any, staged: Table[a.Staged], i: Any) -> Any:
    """Note the positions of key and value of a message; return whether they fill it."""
    key = key_at(at, np.int64(source[U(at) + U(MAGIC)])) + LENGTH_BYTES
    left = at + size - key - LENGTH_BYTES
    key_size = be32(source, key - LENGTH_BYTES)
    if key_size < LEAST_KEY or key_size > left:
        return False
    value = key + key_size + LENGTH_BYTES
    value_size = be32(source, value - LENGTH_BYTES)
    staged[i].key_at = key
    staged[i].key_size = key_size
    staged[i].value_at = value
    staged[i].value_size = value_size
    return value_size >= -1 and max(value_size, 0) == left - key_size


@part
def messages_at(
    source: Any, start: Any, end: Any, count: Any, data: Any, at: Any, staged: Table[a.Staged], first: Any
) -> Any:  # fmt: skip
    """Note the records of the message at ``at``, as `batches.records_of` does, with their times as deltas.

    Args:
        source, start, end: the message itself, or the messages inside, decompressed.
    """
    if count < 1 or count > len(staged) - first:
        return np.int64(oc.NOT_PLAIN)
    attributes = np.int64(data[U(at) + U(ATTRIBUTES)])
    is_inside = attributes & CODEC_MASK != 0
    rules_time = is_inside and attributes & b.TIMESTAMP_TYPE_MASK != 0
    place, previous = start, np.int64(-1)
    for number in range(first, first + count):
        i = U(number)
        size = size_at(source, place, end)
        if size < 0 or not _place(source, place, size, staged, i):
            return np.int64(oc.NOT_PLAIN)
        offset = be64(source, place)
        if is_inside and (
            offset <= previous or np.int64(source[U(place) + U(ATTRIBUTES)]) & ~np.int64(b.TIMESTAMP_TYPE_MASK)
        ):
            return np.int64(oc.NOT_PLAIN)
        is_ruled = rules_time and source[U(place) + U(MAGIC)] == 1
        staged[i].timestamp_delta = time_of(data, at) if is_ruled else time_of(source, place)
        staged[i].record_at = at
        staged[i].offset = offset
        previous = offset
        place += size
    if place != end:
        return np.int64(oc.NOT_PLAIN)
    return _in_log(data, at, staged, first, count) if is_inside else count


@inlined
def _in_log(data: Any, at: Any, staged: Table[a.Staged], first: Any, count: Any) -> Any:
    """Turn offsets inside a compressed message to those of the log: the last one is its own (``records:M5``)."""
    shift = be64(data, at) - staged[U(first + count - 1)].offset
    if shift < 0 or (shift > 0 and data[U(at) + U(MAGIC)] == 0):
        return np.int64(oc.NOT_PLAIN)
    for number in range(first, first + count):
        staged[U(number)].offset += shift
    return count
