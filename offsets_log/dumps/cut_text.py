"""Tell a text that was cut, as ``head -c`` and ``tail -c`` do it: its last line has no end, its first no beginning."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

from offsets_log.dumps.source import CHUNK_BYTES, SourceBatch, SourcePiece, damaged_line
from offsets_log.errors import CorruptRecordError, Damage, OffsetsLogError
from offsets_log.log_format.control_record import marker_in
from offsets_log.log_format.record import Record
from offsets_log.log_format.segment import Buffer
from offsets_log.messages.registry import decode_coordinator_record

ENDS = "the text ends within this line: it was cut there, as by head -c; what stands before is read"
BEGINS = "the text begins within this line: it was cut there, as by tail -c; what stands behind is read"
MAY_BEGIN = "; a text that was cut, as by tail -c, begins so"
FIRST_LINE = 1
STRING = r'"(?:[^"\\]|\\.)*"'
KEYS_OF_OFFSETS = (
    re.compile(r"\[(?P<group>[^\n]{0,999}?),(?P<topic>[^,\n]{0,249}),(?P<partition>-?\d{1,10})\]::"),
    re.compile(
        rf'"group"\s*:\s*(?P<group>{STRING})\s*,\s*"topic"\s*:\s*(?P<topic>{STRING})'
        r'\s*,\s*"partition"\s*:\s*(?P<partition>-?\d{1,10})'
    ),
)
"""Keys of offsets, as the console formatters and kafka-dump-log print them."""


def lost_of(piece: str) -> str:
    """Return whose an offset was that cannot be read, to be said after what is wrong; "" if the text does not tell."""
    found = next((match for form in KEYS_OF_OFFSETS if (match := form.search(piece))), None)
    if found is None:
        return ""
    group, topic = (name if name[:1] == '"' else json.dumps(name, ensure_ascii=False) for name in found.group(1, 2))
    return (
        f"; it may be of group {group}, topic {topic}, partition {found['partition']}, whose offset may be a later one"
    )


def with_cuts(pieces: Iterable[SourcePiece], text: Buffer) -> Iterator[SourcePiece]:
    """Pass on what was read of a text; say of lines that were cut that they were, once each.

    A record on a line without an end is one only if its bytes are those of a whole key and value.
    """
    last, may_begin_late = _unended(text), _may_begin_late(text)
    is_told = False
    for piece in pieces:
        line = _damaged(piece)
        if isinstance(piece, Damage) and line is not None and line == last and _is_end(piece.raw, text):
            words = ENDS + lost_of(piece.raw.decode(errors="replace"))
            yield Damage(CorruptRecordError(words, position=last, record_offset=piece.error.record_offset), piece.raw)
        elif isinstance(piece, Damage) and line == FIRST_LINE and may_begin_late:
            problem = piece.error.problem
            if not is_told:
                is_begun = "JSON" in problem
                words = BEGINS + lost_of(piece.raw.decode(errors="replace")) if is_begun else problem + MAY_BEGIN
                yield damaged_line(FIRST_LINE, piece.raw, words)
            is_told = True
        elif last is not None and isinstance(piece, SourceBatch) and any(map(_is_cut, _on(piece, last))):
            yield damaged_line(last, b"", ENDS)
        else:
            yield piece


def _damaged(piece: SourcePiece) -> int | None:
    """Return the line that cannot be read; None for all else, such as a line in a form that is not read."""
    is_damage = isinstance(piece, Damage) and isinstance(piece.error, CorruptRecordError)
    return piece.error.position if is_damage and isinstance(piece, Damage) else None


def _may_begin_late(text: Buffer) -> bool:
    """Return whether there are several lines, and the first does not begin as JSON does."""
    head = memoryview(text)[:CHUNK_BYTES].tobytes().strip()
    return head[:1] not in (b"{", b"[") and b"\n" in head


def _is_end(raw: bytes, text: Buffer) -> bool:
    return bool(raw) and memoryview(text)[-len(raw) :] == raw


def _unended(text: Buffer) -> int | None:
    """Return the number of the last line, if no line feed ends it."""
    view = memoryview(text)
    if not len(view) or view[-1] == ord("\n"):
        return None
    chunks = (view[at : at + CHUNK_BYTES].tobytes() for at in range(0, len(view), CHUNK_BYTES))
    return sum(chunk.count(b"\n") for chunk in chunks) + 1


def _on(piece: SourceBatch, line: int) -> Iterator[Record]:
    return (record for record in piece.records if record.position == line)


def _is_cut(record: Record) -> bool:
    if marker_in(record):
        return False
    try:
        decode_coordinator_record(record.key, record.value)
    except OffsetsLogError:
        return True
    return False
