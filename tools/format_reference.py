"""Writes `docs/formats.md`, the layout of every record type: ``python -m tools.format_reference`` or ``make docs``."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from offsets_log.messages.layouts import FieldRow, field_rows
from offsets_log.messages.registry import RECORD_TYPES, RecordType

PAGE = Path(__file__).parent.parent / "docs" / "formats.md"
PREFACE = """\
# Record layouts

Keys and values of every record type, version by version. `offsets-log explain offset-commit` prints the same for one
type. `make docs` writes this page from the tables that decode records.

A field has up to three names: `commit_timestamp` here, `commitTimestamp` (Kafka's own) in what `decode` prints, and
`commit_timestamp_ms`, with the unit, as a column of rows.

A key begins with the record type, a value with its version, each an int16. Integers are big-endian. In layouts that are
*flexible*, a length is an unsigned varint of the length plus one (0 is null), and every struct ends with its tagged
fields: their number, then the tag, the size and the bytes of each.
"""


def reference() -> str:
    """The whole page."""
    return PREFACE + "".join(map(_section, RECORD_TYPES.values()))


def _section(record_type: RecordType) -> str:
    versions = groupby(field_rows(record_type), key=lambda row: (row.part, row.version, row.flexible, row.releases))
    return f"\n## {record_type.number} {record_type.name}\n" + "".join(
        f"\n**{_title(*facts)}**\n\n" + "".join(_table(rows)) for facts, rows in versions
    )


def _title(part: str, version: int | None, flexible: bool, releases: str | None) -> str:
    written = "" if releases is None else f", written by {releases}"
    return "Key" if part == "key" else f"Value, version {version}{', flexible' if flexible else ''}{written}"


def _table(rows: Iterator[FieldRow]) -> Iterator[str]:
    yield "| field | type | |\n|---|---|---|\n"
    for row in rows:
        yield f"| `{row.field}` | {row.type} | {'; '.join(_remarks(row))} |\n"


def _remarks(row: FieldRow) -> Iterator[str]:
    if row.tag is not None:
        yield f"tag {row.tag}"
    if row.nullable:
        yield "may be null"
    if row.default is not None:
        yield f"default {row.default}"
    if row.since is not None:
        yield f"since {row.since}"


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
