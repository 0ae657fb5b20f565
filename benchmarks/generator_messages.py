"""Generated batches of magic 2 written again as messages of magic 0 and 1."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.generator_bytes import HEADER_SIZE, ZERO, Array, U, copy, kernel, part, put32, put64
from benchmarks.generator_kernels import FIRST_TIMESTAMP_POSITION


def _crc32_table() -> Array:
    table: Array = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = table >> 1 ^ np.where(table & 1, np.uint32(0xEDB88320), np.uint32(0))
    return table


CRC32_TABLE = _crc32_table()


@part
def _put_crc32(out: Any, start: Any, end: Any) -> None:
    """The CRC-32 of a message into its header."""
    crc = np.uint32(0xFFFFFFFF)
    for at in range(start + 16, end):
        crc = crc >> np.uint32(8) ^ CRC32_TABLE[(crc ^ np.uint32(out[U(at)])) & np.uint32(0xFF)]
    put32(out, start + 12, np.int64(crc ^ np.uint32(0xFFFFFFFF)))


@part
def _get(data: Any, at: Any, count: Any) -> Any:
    """An integer of so many bytes."""
    value = ZERO
    for i in range(count):
        value = value << 8 | np.int64(data[U(at + i)])
    return value


@part
def _get_varint(data: Any, at: Any) -> Any:
    """A zigzag varint, and where it ends."""
    value, shift = ZERO, ZERO
    while data[U(at)] & 0x80:
        value |= np.int64(data[U(at)] & 0x7F) << shift
        shift += 7
        at += 1
    value |= np.int64(data[U(at)]) << shift
    return value >> 1 ^ -(value & 1), at + 1


@part
def _put_sized(out: Any, at: Any, data: Any, start: Any, size: Any) -> Any:
    """Bytes behind their size, −1 for none; where they end."""
    put32(out, at, size)
    return copy(out, at + 4, data, start, start + max(size, ZERO))


@part
def _put_message(out: Any, start: Any, magic: Any, offset: Any, time: Any, data: Any, record: Any) -> Any:
    """A record as a message; where that ends and where the record does."""
    _, at = _get_varint(data, record)
    _, at = _get_varint(data, at + 1)
    _, at = _get_varint(data, at)
    put64(out, start, offset)
    out[start + 16], out[start + 17] = magic, 0
    if magic:
        put64(out, start + 18, time)
    key_size, at = _get_varint(data, at)
    end = _put_sized(out, start + 18 + 8 * magic, data, at, key_size)
    value_size, at = _get_varint(data, at + key_size)
    end = _put_sized(out, end, data, at, value_size)
    put32(out, start + 8, end - start - 12)
    _put_crc32(out, start, end)
    return end, at + max(value_size, ZERO) + 1


@kernel
def as_messages(
    plain: Any, starts: Any, magic: Any, is_relative: Any, out: Any, message_starts: Any, batch_starts: Any,
    offsets: Any,
) -> Any:  # fmt: skip
    """The records of batches as messages; how many.

    Args:
        is_relative: whether the offsets that stand in them begin again with each batch.
        message_starts, batch_starts: get where each message, and each batch's first one, begins and the last one ends.
        offsets: gets those of the log.
    """
    at, count = ZERO, ZERO
    for batch in range(len(starts) - 1):
        batch_starts[batch] = at
        start = starts[batch]
        base, time = _get(plain, start, np.int64(8)), _get(plain, start + FIRST_TIMESTAMP_POSITION, np.int64(8))
        record = start + HEADER_SIZE
        index = ZERO
        while record < starts[batch + 1]:
            message_starts[count] = at
            offsets[count] = base + index
            offset = index if is_relative else base + index
            at, record = _put_message(out, at, np.int64(magic), offset, time, plain, record)
            index += 1
            count += 1
    batch_starts[len(starts) - 1] = at
    message_starts[count] = at
    return count
