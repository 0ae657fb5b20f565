"""Define the table of all records: its columns, and its rows one record at a time.

A row holds all of an offset commit in columns. ``key`` and ``value`` hold the raw bytes of every other record, and of
an offset commit that the columns cannot hold: with bytes after its last field, unknown tagged fields, fields that have
no column, or text that is not UTF-8. Headers and sequence numbers, which no coordinator writes, are in no column.
"""

from __future__ import annotations

from collections.abc import Collection

from offsets_log.events import Event
from offsets_log.log_format.record import as_int64
from offsets_log.messages.offset_commit import OFFSET_COMMIT_VALUE
from offsets_log.messages.registry import RECORD_TYPES, CoordinatorRecord, record_type_of
from offsets_log.messages.schema import UUID, Field, default_of
from offsets_log.rows.tables import PLACE_COLUMNS, Column, Row, place_row

EVENT_COLUMNS = (
    *PLACE_COLUMNS,
    Column("control_type", "string", "type of a control record: COMMIT, ABORT or another; null for data"),
    Column("record_type", "int", "the key's number; null for a control record"),
    Column("name", "string", "Kafka's name of the record type"),
    Column("group", "string", "group id"),
    Column("topic", "string", "topic of an offset commit"),
    Column("partition", "int", "partition of that topic"),
    Column("is_tombstone", "boolean", "whether the value is null; null for a control record"),
    Column("value_version", "int", "version of the value; null for a tombstone"),
    Column("committed_offset", "bigint", "offset that an offset commit commits"),
    Column("leader_epoch", "int", "leader epoch of the consumed record; null if none was sent"),
    Column("metadata", "string", "the client's own text"),
    Column("commit_timestamp_ms", "bigint", "when it was committed"),
    Column("expire_timestamp_ms", "bigint", "explicit expire timestamp of value version 1; null if none"),
    Column("topic_id", "string", "id of the topic; null if the record has none"),
    Column("key", "binary", "raw bytes, if the columns do not tell all of them"),
    Column("value", "binary", "raw bytes, if the columns do not tell all of them"),
    Column("error", "string", "why the record could not be decoded"),
)
COLUMN_OF_FIELD = {
    "offset": "committed_offset",
    "leader_epoch": "leader_epoch",
    "metadata": "metadata",
    "commit_timestamp": "commit_timestamp_ms",
    "expire_timestamp": "expire_timestamp_ms",
    "topic_id": "topic_id",
}
"""Field of an offset commit's value → the column that tells it, null for the field's default."""
_NAMES = frozenset(column.name for column in EVENT_COLUMNS)
TOLD = {
    field: COLUMN_OF_FIELD[field.name]
    for field in OFFSET_COMMIT_VALUE.fields
    if COLUMN_OF_FIELD.get(field.name) in _NAMES
}
"""The same by rows of the schema table, of columns that there are."""
UNTOLD = tuple(field for field in OFFSET_COMMIT_VALUE.fields if field not in TOLD)
"""Fields of an offset commit's value that no column tells: with another value than the default, the bytes are kept."""
BOUNDED = (
    "offsets_partition",
    "batch_base_offset",
    "record_offset",
    "timestamp_ms",
    "commit_timestamp_ms",
    "record_type",
)
"""Columns whose least and greatest values tell which rows can be skipped."""
RISING = ("position", "batch_base_offset", "record_offset", "timestamp_ms", "committed_offset", "commit_timestamp_ms")
"""Columns whose numbers ascend with the log, or nearly so."""
ROWS_IN_TABLE = 2 * 122_880
"""Approximate number of rows of a table: two of DuckDB's row groups."""


def has_column(field: Field, names: Collection[str]) -> bool:
    """Whether a field of an offset commit is read from a table with these columns; else it has its default.

    Rows with another value of a field that has no column hold their raw bytes. A program that did not know a tagged
    field wrote no column for it, and such bytes: only of other fields, which a version has from the first, a missing
    column is an error.
    """
    return field not in UNTOLD and (field.tag is None or TOLD[field] in names)


def event_row(event: Event) -> Row:
    """Return one record as `EVENT_COLUMNS`; columns that are null may be missing.

    An offset that is too large for its column is wrapped as in Java.
    """
    batch, record = event.batch, event.record
    row = place_row(event)
    row |= {"file": encodable(event.segment.file), "record_offset": as_int64(record.offset)}
    if batch.is_control:
        row["control_type"] = None if event.control is None else event.control.type
    elif event.decoded is not None:
        row |= _decoded_columns(event.decoded)
    else:
        number = record_type_of(record.key)
        known = RECORD_TYPES.get(number) if number is not None else None
        row |= {"record_type": number, "name": known.name if known else None, "is_tombstone": record.value is None}
    if event.damage is not None:
        row["error"] = encodable(str(event.damage.error))
    if event.decoded is None or not _is_told_whole(event.decoded):
        row |= {"key": record.key, "value": record.value}
    return row


def _decoded_columns(decoded: CoordinatorRecord) -> Row:
    row: Row = {
        "record_type": decoded.record_type,
        "name": decoded.name,
        "group": decoded.group,
        "is_tombstone": decoded.is_tombstone,
        "value_version": decoded.value_version,
    }
    if not decoded.is_offset_commit:
        return row
    row |= {"topic": decoded.key["topic"], "partition": decoded.key["partition"]}
    value = decoded.value
    if value is None:
        return row
    return row | {column: _told(field, value) for field, column in TOLD.items()}


def _has_default(field: Field, value: Row) -> bool:
    """Whether a field is missing in a value, or has its default there."""
    default = default_of(field)
    return bool(value.get(field.name, default) == default)


def _told(field: Field, value: Row) -> object:
    """Return what the column of a field tells."""
    if _has_default(field, value):
        return None
    return str(value[field.name]) if field.type is UUID else value[field.name]


def _is_told_whole(decoded: CoordinatorRecord) -> bool:
    value = decoded.value or {}
    return (
        decoded.is_offset_commit
        and all(_has_default(field, value) for field in UNTOLD)
        and not (decoded.key_trailing or decoded.value_trailing or decoded.unknown_tags())
        and not decoded.malformed_strings()
    )


def encodable(text: str) -> str:
    """Return a text without the surrogates by which Python represents bytes of file names that are not UTF-8."""
    return text.encode(errors="surrogateescape").decode(errors="replace")
