"""What all kernels write that make text: bytes as they are, numbers, escaped texts, base64."""

from __future__ import annotations

from typing import Any

import numpy as np

from offsets_log.columnar.jit.compiled import U, inlined, part

NO_ROOM, UNFIT, UNKNOWN = -1, -2, -3
"""Instead of a position: the text is full; the program does not fit the record; its embedded bytes are not known."""

MOST_ESCAPED = 8
"""Bytes that one byte may become, and where their number stands in a row of ``escapes``."""
MOST_DIGITS = 20

BASE64 = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=", np.uint8)
URL_SAFE = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=", np.uint8)


@inlined
def copy(out: Any, at: Any, data: Any, start: Any, size: Any) -> Any:
    """Copy bytes, and where they end; NO_ROOM."""
    if size > len(out) - at:
        return np.int64(NO_ROOM)
    for i in range(size):
        out[U(at + i)] = data[U(start + i)]
    return at + size


@part
def write_number(out: Any, at: Any, value: Any) -> Any:
    """A number in decimal digits."""
    if len(out) - at < MOST_DIGITS:
        return np.int64(NO_ROOM)
    left = U(value)
    if value < 0:
        left = U(~value) + U(1)
        out[U(at)] = np.uint8(45)
        at += 1
    digits, bound = np.int64(1), U(10)
    while digits < 19 and left >= bound:
        digits += 1
        bound *= U(10)
    if digits == 19 and left >= bound:
        digits += 1
    for i in range(digits):
        rest = left // U(10)
        out[U(at + digits - 1 - i)] = np.uint8(U(48) + (left - rest * U(10)))
        left = rest
    return at + digits


@part
def escaped(out: Any, at: Any, data: Any, start: Any, size: Any, escapes: Any) -> Any:
    """A text, byte by byte as it stands in a line."""
    if MOST_ESCAPED * size > len(out) - at:
        return np.int64(NO_ROOM)
    for i in range(size):
        byte = U(data[U(start + i)])
        many = np.int64(escapes[byte, U(MOST_ESCAPED)])
        for j in range(many):
            out[U(at + j)] = escapes[byte, U(j)]
        at += many
    return at


@part
def base64(out: Any, at: Any, data: Any, start: Any, size: Any, alphabet: Any) -> Any:
    """Bytes in base64, padded; the last letter of the alphabet pads."""
    if (size + 2) // 3 * 4 > len(out) - at:
        return np.int64(NO_ROOM)
    for i in range(0, size, 3):
        left = size - i
        second = np.int64(data[U(start + i + 1)]) if left > 1 else np.int64(0)
        third = np.int64(data[U(start + i + 2)]) if left > 2 else np.int64(0)
        bits = np.int64(data[U(start + i)]) << 16 | second << 8 | third
        out[U(at)] = alphabet[U(bits >> 18)]
        out[U(at + 1)] = alphabet[U(bits >> 12 & 63)]
        out[U(at + 2)] = alphabet[U(bits >> 6 & 63 if left > 1 else np.int64(64))]
        out[U(at + 3)] = alphabet[U(bits & 63 if left > 2 else np.int64(64))]
        at += 4
    return at
