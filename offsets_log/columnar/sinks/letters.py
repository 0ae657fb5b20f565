"""Learn how texts stand in the lines of a format, from lines with texts of all letters."""

from __future__ import annotations

import secrets
from collections.abc import Callable

import numpy as np

from offsets_log.columnar.sinks import writers as wr
from offsets_log.messages.commit_metadata import FORMATS

PRINTED = frozenset(b"\t\n\r") | frozenset(range(0x20, 0x7F))
"""Bytes of metadata that is text; metadata with other bytes is processed one by one."""


class Letters:
    """The letters of a format; without lines that show a text all stand as they are.

    Args:
        line_with: returns a line with a text in it.

    Attributes:
        escapes: uint8[257, `writers.ESCAPE_COLUMNS`], for each byte of a text what stands for it in a line.
    """

    def __init__(self, line_with: Callable[[str], bytes] = lambda text: b"") -> None:
        self.escapes = np.zeros((wr.QUOTE + 1, wr.ESCAPE_COLUMNS), np.uint8)
        self.escapes[list(PRINTED), wr.IS_PRINTED] = self.escapes[list(FORMATS), wr.IS_FORMAT] = True
        mark = f"mark{secrets.randbits(90)}"
        cut = mark.encode()
        before, *shown = line_with(mark).split(cut)
        quote, self._odd = b"", dict[str, str]()
        for byte in range(wr.QUOTE):
            begin, made = before, bytes([byte])
            if shown and byte < 128:
                begin, made, *_ = line_with(f"{mark}{chr(byte)}{mark}").split(cut)
            quote = begin[len(before) :] or quote
            self._set(byte, chr(byte), made, is_odd=begin != before or made != bytes([byte]))
        self._quote = quote.decode()
        self._set(wr.QUOTE, "", quote, is_odd=line_with("") != line_with(mark).replace(cut, b""))

    def _set(self, row: int, text: str, made: bytes, *, is_odd: bool) -> None:
        self.escapes[row, : len(made)] = list(made)
        self.escapes[row, wr.MOST_ESCAPED] = len(made)
        self.escapes[row, wr.IS_ODD] = is_odd
        if is_odd:
            self._odd[text] = made.decode()

    def of(self, text: str) -> bytes:
        """Return a text as it stands in a line."""
        if self._odd.keys().isdisjoint(text or ("",)):
            return "".join(text).encode()
        return f"{self._quote}{''.join(self._odd.get(letter, letter) for letter in text)}{self._quote}".encode()
