"""Strings as Java decodes them: malformed UTF-8 becomes U+FFFD, and is written back as the bytes it came from."""

from __future__ import annotations

import codecs
from typing import TypeVar

REPLACEMENT = "\ufffd"

KeyField = TypeVar("KeyField", str, int)


class MalformedString(str):
    """Text read from malformed UTF-8: it prints as Java decodes it, and encodes as the ``raw`` bytes it came from."""

    __slots__ = ("raw",)
    raw: bytes

    def __new__(cls, raw: bytes) -> MalformedString:
        text = super().__new__(cls, decode_java_utf8(raw))
        text.raw = raw
        return text

    def __reduce__(self) -> tuple[type[MalformedString], tuple[bytes]]:
        return MalformedString, (self.raw,)


def _is_continuation(byte: int) -> bool:
    return byte & 0xC0 == 0x80


def _malformed_length(raw: bytes, at: int) -> int:
    """Return how many bytes Java replaces by one U+FFFD at ``at``, where strict decoding fails."""
    lead, rest = raw[at], raw[at + 1 : at + 4]
    if 0xE0 <= lead <= 0xEF:
        if not rest or not _is_continuation(rest[0]) or (lead == 0xE0 and rest[0] < 0xA0):
            return 1
        if len(rest) < 2 or not _is_continuation(rest[1]):
            return 2
        return 3  # a surrogate: three well-formed bytes, one replacement
    if 0xF0 <= lead <= 0xF4:
        low, high = {0xF0: (0x90, 0xBF), 0xF4: (0x80, 0x8F)}.get(lead, (0x80, 0xBF))
        if not rest or not low <= rest[0] <= high:
            return 1
        continued = 1
        while continued < len(rest) and _is_continuation(rest[continued]):
            continued += 1
        return 1 + continued
    return 1


def _replace_as_java(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return REPLACEMENT, error.start + _malformed_length(error.object, error.start)


codecs.register_error("offsets_log.java", _replace_as_java)


def decode_java_utf8(raw: bytes) -> str:
    """Decode UTF-8 as ``new String(bytes, UTF_8)`` does: malformed parts become U+FFFD, never an error.

    Python's ``errors="replace"`` differs for encoded surrogates, which Java replaces as one character.
    """
    return raw.decode(errors="offsets_log.java")


def decode_string(raw: bytes) -> str:
    """Decode UTF-8; return a `MalformedString` if the bytes are not UTF-8."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return MalformedString(raw)


def encode_string(text: str) -> bytes:
    """Encode text as the bytes it came from."""
    return text.raw if isinstance(text, MalformedString) else text.encode()


def plain(value: KeyField) -> KeyField:
    """Return a name as the broker reads it, without the bytes it came from (``B-7``); a number as it is."""
    return "".join(value) if isinstance(value, str) else value
