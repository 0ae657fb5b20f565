"""Bytes that the generator writes: integers, varints, checksums, records of magic 2."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from offsets_log.columnar.jit import instructions
from offsets_log.columnar.jit.numba_backend import compiled_part

Array = np.ndarray[Any, Any]
U = np.uint64

HEADER_SIZE = 61
CRC_POSITION = 17
ATTRIBUTES_POSITION = 21
# Numbers that functions are called with are np.int64: for every plain constant numba compiles a function again.
ZERO, ONE, NO_VALUE = np.int64(0), np.int64(1), np.int64(-1)
# Kept in a file beside this one, and made again when this file changes, not when those it takes functions from do.
kernel = numba.njit(nogil=True, error_model="numpy", cache=True)
part = numba.njit(nogil=True, error_model="numpy")
crc32c_word, crc32c_byte, load64 = (
    compiled_part(function, is_inlined=True, is_instruction=True)
    for function in (instructions.crc32c_word, instructions.crc32c_byte, instructions.load64)
)


@part
def put16(out: Any, at: Any, value: Any) -> None:
    out[at] = value >> 8 & 0xFF
    out[at + 1] = value & 0xFF


@part
def put32(out: Any, at: Any, value: Any) -> None:
    for i in range(4):
        out[at + i] = value >> (24 - 8 * i) & 0xFF


@part
def put64(out: Any, at: Any, value: Any) -> None:
    for i in range(8):
        out[at + i] = value >> (56 - 8 * i) & 0xFF


@part
def copy(out: Any, at: Any, source: Any, start: Any, end: Any) -> Any:
    """Returns where the copy ends. Unsigned places need no look at their sign: that doubles the speed of the whole."""
    for i in range(end - start):
        out[U(at + i)] = source[U(start + i)]
    return at + (end - start)


@part
def varint_size(value: Any) -> Any:
    rest = value << 1 ^ value >> 63
    size = 1
    while rest > 0x7F:
        rest >>= 7
        size += 1
    return size


@part
def put_varint(out: Any, at: Any, value: Any) -> Any:
    """Returns where it ends."""
    rest = value << 1 ^ value >> 63
    while rest > 0x7F:
        out[at] = rest & 0x7F | 0x80
        rest >>= 7
        at += 1
    out[at] = rest
    return at + 1


@part
def put_crc(out: Any, start: Any, end: Any) -> None:
    """The CRC-32C of a batch into its header."""
    crc = U(0xFFFFFFFF)
    at = start + ATTRIBUTES_POSITION
    while at + 8 <= end:
        crc = crc32c_word(crc, load64(out, at))
        at += 8
    while at < end:
        crc = crc32c_byte(crc, out[at])
        at += 1
    put32(out, start + CRC_POSITION, np.int64(crc ^ U(0xFFFFFFFF)))


@part
def put_record(out: Any, at: Any, delta: Any, data: Any, key: Any, key_end: Any, value: Any, value_end: Any) -> Any:
    """A record; a value that would end before it begins is null. Returns where it ends, without headers' count."""
    key_size, value_size = key_end - key, value_end - value
    size = 3 + varint_size(delta) + varint_size(key_size) + key_size + varint_size(value_size) + max(value_size, 0)
    at = put_varint(out, at, size)
    out[at] = 0  # attributes
    out[at + 1] = 0  # timestamp delta
    at = put_varint(out, at + 2, delta)
    at = copy(out, put_varint(out, at, key_size), data, key, key_end)
    at = put_varint(out, at, value_size)
    if value_size > 0:
        at = copy(out, at, data, value, value_end)
    out[at] = 0
    return at
