"""Take contents out of what they were carried in: times and names before lines, quotes of a ticket, base64.

A container's log, a ticket, a terminal put something around each line; base64 and hexdump turn a file to text. What
was there is found by trial: layers of `LAYERS` are taken off the beginning of a file until a form of `formats`, a
segment or an archive appears. A line that does not agree with the others stays as it is, for a reader to report. Lines
keep their numbers, but where a log had cut a line into pieces.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain

from offsets_log.dumps.collected import BEGINNING, contents_of_json
from offsets_log.dumps.hex_text import read_hex
from offsets_log.errors import CorruptRecordError
from offsets_log.log_format.segment import Buffer

HEAD_BYTES = 1 << 16
SAMPLE_LINES = 200
MAX_LAYERS = 4
TEXT_BYTES = bytes({*range(0x20, 0x7F), *range(0x80, 0x100), *b"\t\n\r\f\x1b"})
"""Bytes of texts in any encoding that has one byte for a letter of ASCII."""

IsKnown = Callable[[bytes], bool]
"""Whether bytes begin a file of a form that is read."""

TIME = (
    rb"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)? ?(?:Z|UTC|[+-]\d\d:?\d\d)?\]?:?[ \t]+"
    rb"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d "
)
PROGRAM = rb"(?:(?:[\w.-]+ )?[\w./-]+\[[^\]\s]*\]: |[\w.-]+ [\w./-]+: )"


@dataclass(frozen=True, slots=True)
class Layer:
    """One thing around contents.

    Attributes:
        words: what it is.
        off: returns a text without it; None if the text does not have it.
        is_of_text: whether only a text may have it.
    """

    words: str
    off: Callable[[bytes], bytes | None]
    is_of_text: bool = True


def _before_lines(words: str, pattern: bytes) -> Layer:
    """Return what stands before each line; most lines of a text must have it, and the first that are not empty."""
    prefix = re.compile(pattern)
    every = re.compile(rb"^(?:" + pattern + rb")", re.MULTILINE)

    def off(text: bytes) -> bytes | None:
        lines = [line for line in text[:HEAD_BYTES].split(b"\n")[:SAMPLE_LINES] if line.strip()]
        count = sum(bool(prefix.match(line)) for line in lines)
        return every.sub(b"", text) if lines and 2 * count > len(lines) else None

    return Layer(words, off)


def _pieces_off(text: bytes) -> bytes | None:
    """Join the pieces that a container runtime (CRI) cuts long lines into."""
    form = re.compile(rb"^(?:" + TIME + rb")(?:stdout|stderr) ([FP])(?: |(?=\r?$))", re.MULTILINE)
    lines = text.split(b"\n")
    if not form.match(lines[0]):
        return None
    out: list[bytes] = []
    is_whole = True
    for line in lines:
        found = form.match(line)
        rest = line[found.end() :] if found else line
        out.append(rest if is_whole else out.pop() + rest)
        is_whole = found is None or found[1] == b"F"
    return b"\n".join(out)


COLOUR = re.compile(rb"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x0f")


def _colours_off(text: bytes) -> bytes | None:
    return COLOUR.sub(b"", text) if b"\x1b" in text else None


def _html_off(text: bytes) -> bytes | None:
    """Undo the escapes of HTML; only where all quotes are escaped is it certain that the text itself has none."""
    is_escaped = b'"' not in text and (b"&quot;" in text or b"&#34;" in text or b"&#x27;" in text)
    return html.unescape(text.decode(errors="replace")).encode() if is_escaped else None


def _backslashes_off(text: bytes) -> bytes | None:
    """Undo a JSON string's escapes, with which all quotes have a backslash before them."""
    quotes = text.strip().removeprefix(b'"').removesuffix(b'"')
    if b'\\"' not in quotes or re.search(rb'(?<!\\)"', quotes):
        return None
    try:
        told = json.loads(b'"' + re.sub(rb"\r?\n", rb"\\n", quotes) + b'"')
    except (ValueError, RecursionError):
        return None
    return str(told).encode(errors="replace")


BASE64_LINES = re.compile(rb"\s*(?:[A-Za-z0-9+/]+\r?\n)*[A-Za-z0-9+/]+={0,2}\s*\Z")


def _base64_off(text: bytes) -> bytes | None:
    if not BASE64_LINES.match(text):
        return None
    digits = b"".join(text.split())
    try:
        return base64.b64decode(digits[: len(digits) // 4 * 4], validate=True)
    except (ValueError, binascii.Error):
        return None


def _hex_off(text: bytes) -> bytes | None:
    return read_hex(text)


MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""Byte order marks, which Windows' shells write → what follows; the longer ones first."""


def encoding_of(head: bytes) -> str | None:
    """Return the encoding of a text that is not plain UTF-8: by its mark; UTF-16 by the zero in each pair of bytes."""
    marked = next((name for mark, name in MARKS.items() if head.startswith(mark)), None)
    head = head[: HEAD_BYTES // 64]
    pairs = (("utf-16-le", head[1::2], head[::2]), ("utf-16-be", head[::2], head[1::2]))
    is_in = (name for name, zeros, letters in pairs if zeros.count(0) * 10 > 9 * len(zeros) and 0 not in letters)
    return marked or (next(is_in, None) if len(head) > 1 else None)


def as_utf8(buffer: Buffer) -> Buffer:
    """Return a text in UTF-8 without a byte order mark."""
    name = encoding_of(memoryview(buffer)[:HEAD_BYTES].tobytes())
    if name == "utf-8-sig":
        return memoryview(buffer)[len(codecs.BOM_UTF8) :]
    return buffer if name is None else bytes(buffer).decode(name, errors="replace").encode(errors="replace")


def _encoding_off(text: bytes) -> bytes | None:
    return None if encoding_of(text) is None else memoryview(as_utf8(text)).tobytes()


MAX_MESSAGE_BYTES = 1 << 10


def _message_off(data: bytes) -> bytes | None:
    """Take off a line that a program printed before the contents, such as tar's of names that it changed."""
    line, feed, rest = data[:MAX_MESSAGE_BYTES].partition(b"\n")
    is_text = all(byte >= 0x20 or byte in b"\t\r\x1b" for byte in line)
    return data[len(line) + 1 :] if feed and rest and is_text else None


def _carriage_returns_off(data: bytes) -> bytes | None:
    return data.replace(b"\r\n", b"\n") if 0 in data[:HEAD_BYTES] and is_from_terminal(data) else None


MIN_LINE_FEEDS = 3
FROM_TERMINAL = "a copy through a terminal"


def is_from_terminal(data: bytes) -> bool:
    """Return whether each line feed has a carriage return before it, and there are enough of them to be no chance."""
    count = data.count(b"\n")
    return count >= MIN_LINE_FEEDS and data.count(b"\r\n") == count


LAYERS = (
    Layer("an encoding other than UTF-8", _encoding_off, is_of_text=False),
    Layer("colours of a terminal", _colours_off),
    Layer("JSON of a log collector around each line", contents_of_json),
    Layer("a container log's time and stream before each line", _pieces_off),
    _before_lines("marks of a quotation before each line", rb"(?:> ?)+"),
    _before_lines("a time before each line", TIME),
    _before_lines("a time and a program's name before each line", rb"(?:" + TIME + rb")" + PROGRAM),
    _before_lines("a pod's name before each line", rb"\[(?:pod|container)[^\]\s]*\][ \t]|\[[^\]\s]+/[^\]\s]+\][ \t]"),
    _before_lines("a container's name before each line", rb"[\w.-]+ *\| "),
    _before_lines("names of files and numbers of lines", rb"[^\s:|>{\[][^\s:|>]*[:-](?:\d+[:-])?" + BEGINNING),
    _before_lines("numbers of lines", rb" *\d+(?:[:-]|[.)]? +|\t)"),
    _before_lines("two names before each line", rb"[\w.-]+ [\w.-]+ " + BEGINNING),
    _before_lines("blanks before each line", rb"[ \t]+|(?:\xc2\xa0)+"),
    Layer("escapes of HTML", _html_off),
    Layer("backslashes before quotes", _backslashes_off),
    Layer("base64 around it", _base64_off),
    Layer("hexadecimal numbers around it", _hex_off),
    Layer(FROM_TERMINAL, _carriage_returns_off, is_of_text=False),
    Layer("a message before it", _message_off, is_of_text=False),
)
NOT_OF_TEXT = tuple(layer for layer in LAYERS if not layer.is_of_text)
BEFORE_LINES = tuple(layer for layer in LAYERS if layer.words.endswith(" before each line"))


@dataclass(frozen=True, slots=True)
class Unwrapped:
    """Contents, and what was around them, in words; none where nothing was."""

    data: Buffer
    around: tuple[str, ...] = ()


def unwrap(buffer: Buffer, is_known: IsKnown) -> Unwrapped:
    """Return the contents of a file without what they were carried in; the buffer itself if nothing is recognised.

    Raises:
        CorruptRecordError: a hexadecimal text is damaged; the position is the line.
    """
    data: Buffer = from_terminal(buffer) or buffer
    around = () if data is buffer else (FROM_TERMINAL,)
    view = memoryview(data)
    head = view[:HEAD_BYTES].tobytes()
    if len(view) > len(head):
        head = head[: head.rfind(b"\n") + 1] or head[: len(head) // 4 * 4]
    path = _path(head, is_known)
    for layer in path:
        taken = layer.off(memoryview(data).tobytes())
        if taken is None:
            return Unwrapped(buffer)
        data = taken
    return Unwrapped(data, (*around, *(layer.words for layer in path)))


def from_terminal(buffer: Buffer) -> bytes | None:
    """Return a file as it was before it was copied through a terminal, which made 0D 0A of each 0A in it.

    Returns:
        None if it is a text, or was not copied so.
    """
    view = memoryview(buffer)
    head = view[:HEAD_BYTES].tobytes()
    count = head.count(b"\n")
    if 0 not in head or head.count(b"\r\n") < count or (not count and len(view) > len(head)):
        return None
    return _carriage_returns_off(view.tobytes())


def _path(head: bytes, is_known: IsKnown) -> tuple[Layer, ...]:
    """Return the layers around contents of a known form, the outermost first."""
    if is_known(head):
        return () if head.translate(None, TEXT_BYTES) else next(_around(head, is_known), ())
    problems: list[CorruptRecordError] = []
    paths = (_paths(head, is_known, depth, problems) for depth in range(1, MAX_LAYERS + 1))
    path = next(chain.from_iterable(paths), ())
    if not path and problems:
        raise problems[0]
    return path


def _around(head: bytes, is_known: IsKnown) -> Iterator[tuple[Layer, ...]]:
    """Yield what is around contents that are known all the same: before all lines, as a group may have any name."""
    lines = [line for line in head.split(b"\n") if line.strip()]
    for layer in LAYERS:
        is_inside = layer.off in (_colours_off, _html_off, _backslashes_off)
        if layer in BEFORE_LINES or is_inside:
            taken = layer.off(head)
            if taken and is_known(taken) and (is_inside or all(layer.off(line) is not None for line in lines)):
                yield (layer,)


def _paths(
    head: bytes, is_known: IsKnown, depth: int, problems: list[CorruptRecordError]
) -> Iterator[tuple[Layer, ...]]:
    """Yield layers, as many as the depth says, with which contents of a known form appear."""
    is_text = not head.translate(None, TEXT_BYTES)
    for layer in LAYERS if is_text else NOT_OF_TEXT:
        try:
            taken = layer.off(head)
        except CorruptRecordError as error:
            problems.append(error)
            continue
        if taken and taken != head and depth > 1:
            yield from ((layer, *inner) for inner in _paths(taken, is_known, depth - 1, problems))
        elif taken and taken != head and is_known(taken):
            yield (layer,)
