"""Turn the text of hexdump, xxd and od back to bytes.

``hexdump -C``      ``00000010  02 fc d8 69  …  |...i|``, a line ``*`` for lines like the one before it
``xxd``             ``00000010: 02fc d869 … ...i``, and ``xxd -p``, which is only digits
``od -t x1``, ``od -b``, ``hexdump -b``                an address in any base, and a number a byte
``od -x``, ``od``, ``hexdump``                         a number for two bytes, the lower byte first

Addresses have to go on where the line before ended: a line that is missing is noticed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from offsets_log.errors import CorruptRecordError

SAME_AGAIN = b"*"


def _of_bytes(base: int) -> Callable[[bytes], bytes]:
    return lambda text: bytes(int(number, base) for number in text.split())


def _of_digits(text: bytes) -> bytes:
    return bytes.fromhex(text.decode())


def _of_words(base: int) -> Callable[[bytes], bytes]:
    return lambda text: b"".join(int(number, base).to_bytes(2, "little") for number in text.split())


@dataclass(frozen=True, slots=True)
class Form:
    """One way of printing bytes: the lines, whose groups are an address and the numbers, and how these are read."""

    line: re.Pattern[bytes]
    read: Callable[[bytes], bytes]
    bases: tuple[int, ...]


FORMS = (
    Form(re.compile(rb"([0-9a-f]{6,16}): ((?:[0-9a-f]{2,16} ?){1,32})(?:  ?.*)?$", re.IGNORECASE), _of_digits, (16,)),
    Form(
        re.compile(rb"([0-9a-f]{6,16})((?: {1,2}[0-9a-f]{2})+) *(?:[|>].*)?$", re.IGNORECASE),
        _of_bytes(16),
        (16, 8, 10),
    ),
    Form(re.compile(rb"([0-9a-f]{6,16})((?: +[0-7]{3})+) *$", re.IGNORECASE), _of_bytes(8), (16, 8, 10)),
    Form(re.compile(rb"([0-9a-f]{6,16})((?: +[0-9a-f]{4})+) *$", re.IGNORECASE), _of_words(16), (16, 8, 10)),
    Form(re.compile(rb"([0-9a-f]{6,16})((?: +[0-7]{6})+) *$", re.IGNORECASE), _of_words(8), (16, 8, 10)),
)
PLAIN = re.compile(rb"(?:[0-9a-f]{2})+$", re.IGNORECASE)
MIN_PLAIN_DIGITS = 32
END = re.compile(rb"[0-9a-f]{6,16}$", re.IGNORECASE)
"""The last line: the number of bytes."""


@dataclass(frozen=True, slots=True)
class _Line:
    """A line that was read: its number, address and bytes, and whether lines like the one before it were left out."""

    number: int
    address: bytes
    data: bytes
    repeats: bool


def read_hex(text: bytes) -> bytes | None:
    """Return the bytes that a text shows; None if it is of no such form.

    Raises:
        CorruptRecordError: a line is missing or damaged; its position is the line.
    """
    lines = [line.rstrip(b"\r ") for line in text.split(b"\n")]
    shown = [line for line in lines if line]
    if shown and len(shown[0]) >= MIN_PLAIN_DIGITS and all(map(PLAIN.match, shown)):
        return bytes.fromhex(b"".join(shown).decode())
    form = next((form for form in FORMS if shown and form.line.match(shown[0])), None)
    return None if form is None else _joined([*_lines(form, lines)], form)


def _lines(form: Form, lines: list[bytes]) -> Iterator[_Line]:
    repeats = False
    for number, line in enumerate(lines, 1):
        found = form.line.match(line)
        if line == SAME_AGAIN:
            repeats = True
        elif found or END.match(line):
            yield _Line(number, found[1] if found else line, form.read(found[2]) if found else b"", repeats)
            repeats = False
        elif line:
            raise CorruptRecordError("it is no line of a hexadecimal dump", position=number)


def _joined(lines: list[_Line], form: Form) -> bytes:
    base = next((base for base in form.bases if _goes_on(lines, base)), form.bases[0])
    out, last = bytearray(), b""
    for line in lines:
        at = int(line.address, base) if _is_of(line.address, base) else -1
        if line.repeats and last:
            out += last * ((at - len(out)) // len(last))
        if not line.data and at == len(out) - 1:
            out.pop()  # the last word was of one byte
        if at != len(out):
            raise CorruptRecordError(
                f"its address is {line.address.decode()}, but what stands before ends at {len(out)}: lines are missing",
                position=line.number,
            )
        out += line.data
        last = line.data or last
    return bytes(out)


def _is_of(address: bytes, base: int) -> bool:
    return all(int(digit, 16) < base for digit in address.decode())


def _goes_on(lines: list[_Line], base: int) -> bool:
    """Return whether in a base the address of a line follows from the line before, where none is left out between."""
    if not all(_is_of(line.address, base) for line in lines):
        return False
    for before, line in pairwise(lines):
        step = int(line.address, base) - int(before.address, base)
        if not line.repeats:
            return step in (len(before.data), len(before.data) - 1)
    return len(lines) < 2 or step % len(lines[0].data) == 0
