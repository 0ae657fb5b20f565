"""Write what all kernels that make text need: raw bytes, numbers, escaped texts, base64."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.jit.compiled import U, inlined, part
from offsets_log.columnar.jit.kinds import Bytes, Longs
from offsets_log.columnar.wire.decompress import copy8, copy_bytes

MOST_ESCAPED = 8
"""Maximum number of bytes for one byte, and the index of their number in a row of ``escapes``."""
# More columns of ``escapes``: whether a byte is printed; whether bytes in base64 that begin with it may say more than
# their text; whether a text with it changes.
IS_PRINTED, IS_FORMAT, IS_ODD, ESCAPE_COLUMNS = range(MOST_ESCAPED + 1, MOST_ESCAPED + 5)
QUOTE = 256
"""One more row of ``escapes``: what stands around a text that changes. IS_ODD says whether an empty text does."""
MOST_DIGITS = 20
MANY = U(100_000_000)
PAIRS = np.frombuffer(b"".join(b"%02d" % number for number in range(100)), np.uint8)
SLACK = 32
"""Bytes that are copied at once; memory that is copied from often has so many bytes after it."""

BASE64 = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=", np.uint8)
URL_SAFE = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=", np.uint8)
DIGITS = np.full(256, -1, np.int64)
DIGITS[BASE64[:64]] = np.arange(64)
"""Letter of base64 → its digit; −1 for other bytes."""


class Output(NamedTuple):
    """What text is written to: numbers that tell how far it is, and the bytes."""

    progress: Longs
    out: Bytes


@inlined
def copy(out: Any, at: Any, data: Any, start: Any, size: Any) -> Any:
    """Copy bytes; return where they end, or FULL. Bytes after that end have no meaning."""
    room = len(out) - at
    if size > room:
        return np.int64(oc.FULL)
    if size > SLACK or room < SLACK or len(data) - start < SLACK:
        copy_bytes(data, start, out, at, size)
    else:  # most literals: some bytes too many, but no loop whose length cannot be foretold
        copy8(data, start, out, at)
        copy8(data, start + 8, out, at + 8)
        copy8(data, start + 16, out, at + 16)
        copy8(data, start + 24, out, at + 24)
    return at + size


@inlined
def _two(out: Any, at: Any, number: Any) -> None:
    """Write two digits of a number below 100."""
    place = number + number
    out[U(at)] = PAIRS[place]
    out[U(at + 1)] = PAIRS[place + U(1)]


@inlined
def _four(out: Any, at: Any, number: Any) -> None:
    high = number // U(100)
    _two(out, at, high)
    _two(out, at + 2, number - high * U(100))


@inlined
def _eight(out: Any, at: Any, number: Any) -> None:
    high = number // U(10_000)
    _four(out, at, high)
    _four(out, at + 4, number - high * U(10_000))


@inlined
def _few(out: Any, at: Any, number: Any) -> Any:
    """Write a number below 10⁸ without leading zeros; return where it ends."""
    if number < U(10_000):
        digits = 1 + np.int64(number >= U(10)) + np.int64(number >= U(100)) + np.int64(number >= U(1000))
    else:
        digits = 5 + np.int64(number >= U(100_000)) + np.int64(number >= U(1_000_000))
        digits += np.int64(number >= U(10_000_000))
    end = at + digits
    while number >= U(100):
        high = number // U(100)
        end -= 2
        _two(out, end, number - high * U(100))
        number = high
    if number >= U(10):
        _two(out, at, number)
    else:
        out[U(at)] = np.uint8(U(48) + number)
    return at + digits


@part
def write_number(out: Any, at: Any, value: Any) -> Any:
    """Write a number in decimal digits; return where they end, or FULL."""
    if len(out) - at < MOST_DIGITS:
        return np.int64(oc.FULL)
    left = U(value)
    if value < 0:
        left = U(~value) + U(1)
        out[U(at)] = np.uint8(45)
        at += 1
    if left < MANY:
        return _few(out, at, left)
    high = left // MANY
    low = left - high * MANY
    if high < MANY:
        at = _few(out, at, high)
    else:
        highest = high // MANY
        at = _few(out, at, highest)
        _eight(out, at, high - highest * MANY)
        at += 8
    _eight(out, at, low)
    return at + 8


@inlined
def _escape(out: Any, at: Any, byte: Any, escapes: Any) -> Any:
    for j in range(escapes[byte, U(MOST_ESCAPED)]):
        out[U(at + j)] = escapes[byte, U(j)]
    return at + np.int64(escapes[byte, U(MOST_ESCAPED)])


@part
def escaped(out: Any, at: Any, data: Any, start: Any, size: Any, escapes: Any) -> Any:
    """Write a text in its form for a line; return where it ends, or FULL."""
    is_odd = escapes[U(QUOTE), U(IS_ODD)] if size == 0 else np.uint8(0)
    for i in range(start, start + size):
        is_odd |= escapes[U(data[U(i)]), U(IS_ODD)]
    if not is_odd:
        return copy(out, at, data, start, size)
    if MOST_ESCAPED * (size + 2) > len(out) - at:
        return np.int64(oc.FULL)
    at = _escape(out, at, U(QUOTE), escapes)
    for i in range(start, start + size):
        at = _escape(out, at, U(data[U(i)]), escapes)
    return _escape(out, at, U(QUOTE), escapes)


@part
def says_more(texts: Any, start: Any, size: Any, escapes: Any) -> Any:
    """Return whether metadata may contain more than text: bytes of a format in base64, or unprintable bytes."""
    if size > 0 and size % 4 == 0:
        first, second = DIGITS[U(texts[U(start)])], DIGITS[U(texts[U(start + 1)])]
        if first >= 0 and second >= 0 and escapes[U(first << 2 | second >> 4), IS_FORMAT]:
            return True
    found = False
    for at in range(start, start + size):
        if not escapes[U(texts[U(at)]), IS_PRINTED]:
            found = True
    return found


@part
def base64(out: Any, at: Any, data: Any, start: Any, size: Any, alphabet: Any) -> Any:
    """Write bytes in base64, padded; the last letter of the alphabet pads. Return where they end, or FULL."""
    if (size + 2) // 3 * 4 > len(out) - at:
        return np.int64(oc.FULL)
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
