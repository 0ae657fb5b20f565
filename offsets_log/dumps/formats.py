"""List the input formats other than segments: how each is recognised by its first bytes, and what reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from offsets_log.dumps import client_records, dump_log, events_json, events_parquet, formatter, kcat
from offsets_log.dumps.cut_text import with_cuts
from offsets_log.dumps.formatter_text import is_formatter_within
from offsets_log.dumps.lines_of_offsets import InMemory, Store
from offsets_log.dumps.segment_builder import SegmentBuilder
from offsets_log.dumps.source import SourcePiece
from offsets_log.dumps.wrapping import TEXT_BYTES, as_utf8
from offsets_log.log_format.batch import MAGIC_POSITION, SUPPORTED_MAGICS
from offsets_log.log_format.segment import Buffer

HEAD_BYTES = 1 << 16
SEGMENTS, PARQUET = "segments", "parquet"


@dataclass(frozen=True, slots=True)
class DumpFormat:
    """A format: its name on the command line, whether a file begins like it, what reads it.

    Attributes:
        has_chosen_rows: whether ``decode`` may have left out records that nobody asked for.
    """

    name: str
    is_like: Callable[[bytes], bool]
    read: Callable[[Buffer], Iterator[SourcePiece]]
    has_chosen_rows: bool = False


def _in_text(is_like: Callable[[str], bool]) -> Callable[[bytes], bool]:
    return lambda head: is_like(head.decode(errors="replace"))


FORMATS = {
    row.name: row
    for row in (
        DumpFormat(PARQUET, events_parquet.is_parquet, events_parquet.read, has_chosen_rows=True),
        DumpFormat("jsonl", _in_text(events_json.is_events_json), events_json.read, has_chosen_rows=True),
        DumpFormat("kcat", kcat.is_kcat, kcat.read),
        DumpFormat("dump-log", _in_text(dump_log.is_dump_log), dump_log.read),
        DumpFormat("records", _in_text(client_records.is_client_records), client_records.read),
        DumpFormat("formatter", _in_text(formatter.is_formatter), formatter.read),
    )
}


def guess_format(buffer: Buffer) -> str:
    """Return the format that a file begins like, or a formatter's line is in it; ``segments`` if there is none."""
    head = memoryview(as_utf8(memoryview(buffer)[:HEAD_BYTES])).tobytes()
    is_within = not head.translate(None, TEXT_BYTES) and is_formatter_within(head.decode(errors="replace"))
    return known_format(head) or ("formatter" if is_within else SEGMENTS)


def known_format(buffer: Buffer) -> str | None:
    """Return the format that a file begins like; None if there is none."""
    head = memoryview(as_utf8(memoryview(buffer)[:HEAD_BYTES])).tobytes()
    if len(head) > MAGIC_POSITION and head[MAGIC_POSITION] in SUPPORTED_MAGICS and head[:1] in b"\x00\x01":
        return SEGMENTS
    return next((row.name for row in FORMATS.values() if row.is_like(head)), None)


def is_other_text(buffer: Buffer) -> bool:
    """Return whether a file is text of no known form."""
    head = memoryview(as_utf8(memoryview(buffer)[:HEAD_BYTES])).tobytes()
    is_text = not head.translate(None, TEXT_BYTES)
    return is_text and bool(head.strip()) and known_format(head) is None


def build_segments(
    name: str, buffer: Buffer, format_name: str, store: Callable[[], Store] = InMemory
) -> SegmentBuilder:  # fmt: skip
    """Read a whole file of one of `FORMATS`.

    Args:
        store: creates the store for the bytes of a segment.
    """
    format_ = FORMATS[format_name]
    built = SegmentBuilder(name, store, has_chosen_rows=format_.has_chosen_rows)
    text = as_utf8(buffer)
    pieces = format_.read(text)
    for piece in pieces if format_name == PARQUET else with_cuts(pieces, text):
        built.add(piece)
    return built
