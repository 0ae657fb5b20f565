"""Read the JSON Lines of ``decode -o jsonl``, and rows of its tables: all that a record holds, and its place."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from offsets_log.dumps.json_text import parse
from offsets_log.dumps.kafka_json import SHAPE_ERRORS, UnknownFields, told_record
from offsets_log.dumps.source import SegmentPlace, SourceBatch, SourcePiece, damaged_line, header, iter_lines, place_of
from offsets_log.errors import CorruptRecordError, Damage, OffsetsLogError
from offsets_log.log_format.control_record import ControlRecord, control_record
from offsets_log.log_format.java_text import MalformedString
from offsets_log.log_format.record import Record
from offsets_log.log_format.segment import Buffer
from offsets_log.messages.message_struct import UNKNOWN_TAGS
from offsets_log.messages.registry import CoordinatorRecord, encode_coordinator_record
from offsets_log.messages.schema import walk

Row = dict[str, Any]

NEEDED = frozenset({"record_offset", "batch_base_offset", "is_control", "record_type"})
PATH = re.compile(r"\.([A-Za-z]\w*)|\[(\d{1,9})\]")
BASE64_PATHS = {
    "group_base64": ("key.group", "key.groupId"),
    "topic_base64": ("key.topic",),
    "metadata_base64": ("value.metadata",),
}


def is_events_json(text: str) -> bool:
    """Return whether the first line is a row of ``decode``."""
    first = text.lstrip().split("\n", 1)[0]
    return first.startswith("{") and all(f'"{name}":' in first.replace('" :', '":') for name in NEEDED)


def read(buffer: Buffer) -> Iterator[SourcePiece]:
    """Yield the batches of JSON Lines."""
    yield from batches(_rows(buffer), bytes_of_row)


def _rows(buffer: Buffer) -> Iterator[tuple[int, Row] | Damage]:
    for number, line in iter_lines(buffer):
        if not line.strip():
            continue
        try:
            row = parse(line)
        except (ValueError, RecursionError) as error:
            yield damaged_line(number, line, f"it is no JSON: {error}")
            continue
        if not isinstance(row, dict) or not row.keys() >= NEEDED:
            yield damaged_line(number, line, "it is no row of decode")
            continue
        yield number, row


BytesOf = Callable[[Row], tuple[bytes | None, bytes | None]]


@dataclass(slots=True)
class _Open:
    """The rows of one batch."""

    key: tuple[Any, ...]
    line: int
    row: Row
    records: list[Record] = field(default_factory=list)
    last_row: Row = field(default_factory=dict)


FACTS_OF_BATCH = (
    "file", "offsets_partition", "batch_base_offset", "magic", "compression", "timestamp_type", "producer_id",
    "producer_epoch", "is_transactional", "is_control",
)  # fmt: skip


def batches(rows: Iterable[tuple[int, Row] | Damage], bytes_of: BytesOf) -> Iterator[SourcePiece]:
    """Join consecutive rows that have the same facts of a batch to one batch.

    Args:
        bytes_of: returns key and value of a data record's row. Raises OffsetsLogError.
    """
    opened: _Open | None = None
    for item in rows:
        if isinstance(item, Damage):
            yield item
            continue
        line, row = item
        key = tuple(row.get(name) for name in FACTS_OF_BATCH)
        if opened is None or key != opened.key:
            yield from _finish(opened)
            opened = _Open(key, line, row)
        problem: OffsetsLogError | None
        try:
            record, problem = _record(line, row, bytes_of)
            opened.records.append(record)
            opened.last_row = row
        except (OffsetsLogError, *SHAPE_ERRORS) as error:
            problem = (
                error if isinstance(error, OffsetsLogError) else CorruptRecordError(f"no row of decode: {error!r}")
            )
        if problem is not None:
            yield Damage(problem.at(position=line), repr(row).encode(errors="replace"))
    yield from _finish(opened)


def _finish(opened: _Open | None) -> Iterator[SourcePiece]:
    if opened is None or not opened.records:
        return
    row = opened.row
    try:
        yield _batch(opened, row)
    except (OffsetsLogError, *SHAPE_ERRORS) as error:
        yield damaged_line(opened.line, repr(row).encode(errors="replace"), f"no row of decode: {error}")


def _batch(opened: _Open, row: Row) -> SourceBatch:
    file, partition = row.get("file"), row.get("offsets_partition")
    place = place_of(str(file or "")) or SegmentPlace(str(file or ""))
    magic = _int(row.get("magic", 2))
    if magic not in (0, 1, 2):
        raise CorruptRecordError(f"magic {magic}")
    made = header(
        tuple(opened.records),
        line=opened.line,
        magic=magic,
        compression=str(row.get("compression", "none")),
        timestamp_type=str(row.get("timestamp_type", "create")),
        base_offset=_int(row["batch_base_offset"]) if magic == 2 else None,
        is_transactional=row.get("is_transactional") is True,
        is_control=row["is_control"] is True,
        producer_id=_int(row.get("producer_id", -1)),
        producer_epoch=_int(row.get("producer_epoch", -1)),
    )
    place = replace(place, offsets_partition=None if partition is None else _int(partition))
    first, last = row.get("position"), opened.last_row.get("position")
    return SourceBatch(
        place,
        made,
        tuple(opened.records),
        positions=(first, last) if isinstance(first, int) and isinstance(last, int) else None,
    )


def _int(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{value!r} is no whole number")
    return value


def _record(line: int, row: Row, bytes_of: BytesOf) -> tuple[Record, UnknownFields | None]:
    """Return a row's record, and what of it is not known."""
    made = Record(
        offset=_int(row["record_offset"]),
        position=line,
        timestamp_ms=_int(row.get("timestamp_ms", -1)),
        key=None,
        value=None,
        headers=tuple(
            (str(header["key"]), None if header["value_base64"] is None else base64.b64decode(header["value_base64"]))
            for header in row.get("headers") or ()
        ),
    )
    control = row.get("control")
    if row["is_control"] and control is not None:
        return control_record(made, ControlRecord(str(control["type"]), control.get("coordinatorEpoch"))), None
    try:
        key, value = bytes_of(row)
    except UnknownFields as error:
        return replace(made, key=error.key, value=error.value), error
    return replace(made, key=key, value=value), None


def bytes_of_row(row: Row) -> tuple[bytes | None, bytes | None]:
    """Return key and value of a data record, byte for byte.

    Raises:
        UnknownFields: a later version wrote the row, which knew more fields.
        OffsetsLogError: it cannot be read.
    """
    if "key_hex" in row or "value_hex" in row:
        return _from_hex(row.get("key_hex")), _from_hex(row.get("value_hex"))
    record, unknown = told_record(row["record_type"], row.get("key"), row.get("value_version"), row.get("value"))
    key_trailing, value_trailing = _from_hex(row.get("key_trailing_hex")), _from_hex(row.get("trailing_hex"))
    if key_trailing or value_trailing:
        record = replace(record, key_trailing=key_trailing or b"", value_trailing=value_trailing or b"")
    if row.keys() & _BESIDE:
        _put_back(record, row)
    key, value = encode_coordinator_record(record)
    if unknown:
        raise UnknownFields(unknown, key, value)
    return key, value


_BESIDE = {"unknown_tags", "malformed_strings", *BASE64_PATHS}


def _from_hex(text: Any) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


def _put_back(record: CoordinatorRecord, row: Row) -> None:
    """Put back unknown tagged fields, and the raw bytes of names that are not UTF-8."""
    parts = dict((*walk(record.key, "key"), *walk(record.value, "value")))
    for tag in row.get("unknown_tags", ()):
        part = parts.get(tag["path"])
        if not isinstance(part, dict):
            raise CorruptRecordError(f"unknown_tags: no {tag['path']} is there")
        part.setdefault(UNKNOWN_TAGS, []).append((_int(tag["tag"]), bytes.fromhex(tag["hex"])))
    malformed = [(entry["path"], entry["base64"]) for entry in row.get("malformed_strings", ())]
    for name, paths in BASE64_PATHS.items():
        if name in row:
            malformed += [(path, row[name]) for path in paths if path in parts]
    for path, text in malformed:
        above, name = _parent(path, parts)
        above[name] = MalformedString(base64.b64decode(text))


def _parent(path: str, parts: dict[str, Any]) -> tuple[Any, Any]:
    """Return the container of a part, and the part's name or index in it."""
    at = max(path.rfind("."), path.rfind("["))
    above, last = parts.get(path[:at]), PATH.fullmatch(path[at:])
    if path not in parts or last is None:
        raise CorruptRecordError(f"no {path} is there")
    if isinstance(above, list):
        return above, int(last[2])
    return above, re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", last[1] or "")
