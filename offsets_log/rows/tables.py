"""Define output rows once for the command line and for Spark: columns, and one function that fills a row.

Times are epoch milliseconds. A name that was not UTF-8 is shown as the broker reads it, with U+FFFD; its raw bytes are
in a column with the suffix ``_base64`` (``replay:B-7``), which other rows do not have.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from offsets_log.errors import Damage
from offsets_log.events import Event
from offsets_log.log_format.batch import NO_PRODUCER_ID
from offsets_log.log_format.control_record import ControlRecord
from offsets_log.log_format.java_text import MalformedString
from offsets_log.messages.commit_metadata import decode_commit_metadata
from offsets_log.messages.mirror_maker import MirrorMakerRecord, mirror_maker_topic
from offsets_log.messages.registry import RECORD_TYPES, CoordinatorRecord, record_type_of
from offsets_log.messages.state_topics import STATE_RECORD_TYPES, StateRecord
from offsets_log.replay.coordinator_state import CoordinatorState
from offsets_log.replay.partial import OffsetAndMetadata
from offsets_log.rows.missing_columns import without_missing_columns

Row = dict[str, Any]

UNTOLD_OF_PRODUCERS = frozenset({"producer_id", "producer_epoch"})
"""Columns that are null where a text does not tell a record's batch."""

TIME_SUFFIXES = ("timestamp_ms", "_at_ms")
SPAN_SUFFIXES = ("age_ms", "behind_ms", "duration_ms")
"""Endings of columns that hold a moment and not a duration."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a flat table: its name, its SQL type, what it holds."""

    name: str
    sql_type: str
    doc: str


GROUP_COLUMN = Column("group", "string", "group id")
TOPIC_PARTITION_COLUMNS = (
    Column("topic", "string", "topic that the group consumes"),
    Column("partition", "int", "partition of that topic"),
)
OFFSETS_PARTITION_COLUMN = Column("offsets_partition", "int", "partition of __consumer_offsets")

COMPACT_COLUMNS = (
    GROUP_COLUMN,
    *TOPIC_PARTITION_COLUMNS,
    Column("committed_offset", "bigint", "what the group committed"),
    Column("leader_epoch", "int", "leader epoch of the consumed record; null if none was sent"),
    Column("metadata", "string", "the client's own text"),
    Column("commit_timestamp_ms", "bigint", "when it was committed"),
    Column("expire_timestamp_ms", "bigint", "explicit expire timestamp of value version 1; null if none"),
    Column("topic_id", "string", "id of the topic; null if the record has none"),
    Column("record_offset", "bigint", "offset of the commit's record in the offsets partition"),
    OFFSETS_PARTITION_COLUMN,
)

PENDING_COLUMNS = (
    GROUP_COLUMN,
    *TOPIC_PARTITION_COLUMNS,
    Column("producer_id", "bigint", "id of the producer whose transaction is open"),
    Column("producer_epoch", "int", "epoch of that producer"),
    Column("committed_offset", "bigint", "what the transaction commits, if it is committed"),
    Column("leader_epoch", "int", "leader epoch of the consumed record; null if none was sent"),
    Column("metadata", "string", "the client's own text"),
    Column("record_offset", "bigint", "offset of the commit's record in the offsets partition"),
    OFFSETS_PARTITION_COLUMN,
)
PENDING_NAMES = tuple(column.name for column in PENDING_COLUMNS)

PLACE_COLUMNS = (
    Column("file", "string", "segment file"),
    OFFSETS_PARTITION_COLUMN,
    Column(
        "position",
        "bigint",
        "where the record begins in the file; if it is compressed, where the compressed records begin",
    ),
    Column("batch_base_offset", "bigint", "first offset of its batch"),
    Column("record_offset", "bigint", "offset of the record in the offsets partition"),
    Column("timestamp_ms", "bigint", "time of the record; -1 if it has none"),
    Column("timestamp_type", "string", "create, log_append, or none (magic 0)"),
    Column("magic", "int", "batch format"),
    Column("compression", "string", "none, gzip, snappy, lz4 or zstd"),
    Column("producer_id", "bigint", "id of the producer; -1 if none"),
    Column("producer_epoch", "int", "epoch of the producer; -1 if none"),
    Column("is_transactional", "boolean", "whether the batch belongs to a transaction (attribute bit 4)"),
    Column("is_control", "boolean", "whether the batch holds control records (attribute bit 5)"),
)
"""Columns of a record's place, and of its batch."""

DECODE_COLUMNS = (
    *PLACE_COLUMNS,
    Column("record_type", "int", "the key's number; null for a control record"),
    Column("name", "string", "Kafka's name of the record type"),
    Column("key", "json", "the key's fields"),
    Column("value_version", "int", "version of the value; null for a tombstone"),
    Column("value", "json", "the value's fields; null for a tombstone"),
    Column("control", "json", "contents of a control record: type, coordinator epoch"),
    Column("error", "string", "why the record could not be decoded"),
    Column("key_hex", "string", "raw key, if it could not be decoded"),
    Column("value_hex", "string", "raw value, if it could not be decoded"),
    Column("unknown_tags", "json", "tagged fields that are not in the schema tables: path, tag, hex"),
    Column("trailing_hex", "string", "bytes after the value's last field"),
    Column("key_trailing_hex", "string", "bytes after the key's last field"),
    Column("group_base64", "string", "raw bytes of a group name that is not UTF-8"),
    Column("topic_base64", "string", "raw bytes of a topic name that is not UTF-8"),
    Column("metadata_base64", "string", "raw bytes of metadata that is not UTF-8"),
    Column("malformed_strings", "json", "other strings that are not UTF-8: path, base64"),
    Column("headers", "json", "headers of the record: key, base64"),
)


def partition_name(offsets_partition: int | None) -> str:
    """Return the name of an offsets partition, as a key of JSON objects and in sentences."""
    return "unknown" if offsets_partition is None else str(offsets_partition)


def to_base64(raw: bytes) -> str:
    """Return bytes as base64 text."""
    return base64.b64encode(raw).decode("ascii")


def to_json(value: Any, indent: int | None = None) -> str:
    """Return JSON, on one line unless indented, with names of any alphabet unescaped."""
    if indent is None:
        return json_bytes(value).decode()
    return json.dumps(value, ensure_ascii=False, separators=(",", ": "), indent=indent)


def json_bytes(value: Any) -> bytes:
    """Return JSON on one line, in UTF-8. Raises UnicodeEncodeError for half a surrogate pair."""
    try:
        return orjson.dumps(value)
    except TypeError:  # a text that is no Unicode, a number of more than 64 bits, very deep nesting
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def offset_row(
    value: OffsetAndMetadata, offsets_partition: int | None, missing_columns: frozenset[str] = frozenset()
) -> Row:
    """Return one row of `COMPACT_COLUMNS`."""
    row: Row = {
        "group": value.group,
        "topic": value.topic,
        "partition": value.partition,
        "committed_offset": value.committed_offset,
        "leader_epoch": value.leader_epoch,
        "metadata": value.metadata,
        "commit_timestamp_ms": value.commit_timestamp_ms,
        "expire_timestamp_ms": value.expire_timestamp_ms,
        "topic_id": value.topic_id,
        "record_offset": value.record_offset,
        "offsets_partition": offsets_partition,
    }
    return without_missing_columns(with_raw_texts(row, ("group", "topic", "metadata")), missing_columns)


def with_raw_texts(row: Row, names: Iterable[str]) -> Row:
    """Add to a row the raw bytes of those of its texts that are not UTF-8, and return it."""
    for name in names:
        if isinstance(text := row[name], MalformedString):
            row[f"{name}_base64"] = to_base64(text.raw)
    return row


def raw_names(rows: Iterable[Row]) -> set[str]:
    """Return the columns that only some rows have, of raw bytes of texts that are not UTF-8."""
    return {name for row in rows for name in row if name.endswith("_base64")}


def committed_rows(
    state: CoordinatorState, offsets_partition: int | None, *, orphans: bool, unstable: bool
) -> Iterator[Row]:
    """Yield one row for each served offset of a partition, and one with nulls for each that is untold.

    Args:
        orphans: include offsets of groups that do not exist.
        unstable: add a column that marks offsets under an open transaction; null where the source has no transactions.
    """
    pending = {value.key for value in state.pending}
    tells_pending = "is_transactional" not in state.missing_columns
    for value in state.committed if orphans else state.iter_served():
        row = offset_row(value, offsets_partition, state.missing_columns)
        yield row | {"unstable": value.key in pending if tells_pending else None} if unstable else row
    for row in untold_rows(state, offsets_partition):
        yield row | {"unstable": None} if unstable else row


def untold_rows(state: CoordinatorState, offsets_partition: int | None) -> Iterator[Row]:
    """Yield one row of `COMPACT_COLUMNS` for each untold offset: all that depends on its commit is null."""
    nothing: Row = {column.name: None for column in COMPACT_COLUMNS}
    for group, topic, partition in state.untold:
        row = nothing | {"group": group, "topic": topic, "partition": partition, "offsets_partition": offsets_partition}
        yield with_raw_texts(row, ("group", "topic"))


def offset_row_order(row: Row) -> tuple[str, str, int, int]:
    """Return the sort key: group and topic in code point order, then partition."""
    return row["group"], row["topic"], row["partition"], row["offsets_partition"] or 0


def place_row(event: Event) -> Row:
    """Return a record's place and its batch as `PLACE_COLUMNS`."""
    batch, record = event.batch, event.record
    return {
        "file": event.segment.file,
        "offsets_partition": event.offsets_partition,
        "position": record.position,
        "batch_base_offset": event.batch_base_offset,
        "record_offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        "timestamp_type": batch.timestamp_type,
        "magic": batch.magic,
        "compression": batch.compression,
        "producer_id": batch.producer_id,
        "producer_epoch": batch.producer_epoch,
        "is_transactional": batch.is_transactional,
        "is_control": batch.is_control,
    }


def decoded_row(event: Event, *, expand: bool = False) -> Row:
    """Return one record as `decode` shows it: its place, its batch, its key and value in Kafka's own JSON.

    Args:
        expand: show the bytes of members (subscription, assignment, user data) decoded where they can be.
    """
    batch, record, row = event.batch, event.record, place_row(event)
    match event:
        case Event(control=ControlRecord() as control):
            row |= {"record_type": None, "name": None, "control": control_json(control)}
        case Event(decoded=CoordinatorRecord() as decoded):
            row |= decoded_columns(decoded)
            if expand:
                _expand_members(decoded, row["value"])
        case Event(state=(StateRecord() | MirrorMakerRecord()) as state):
            row |= decoded_columns(state)
        case Event(damage=Damage(error)):
            row |= _raw_columns(record.key, record.value, event.topic) | {"error": str(error)}
    if record.headers:
        row["headers"] = [
            {"key": key, "value_base64": None if value is None else to_base64(value)} for key, value in record.headers
        ]
    missing_columns = event.segment.missing_columns
    if event.segment.lines and batch.producer_id < NO_PRODUCER_ID:
        missing_columns |= UNTOLD_OF_PRODUCERS if batch.is_control else UNTOLD_OF_PRODUCERS | {"is_transactional"}
    return (
        {name: None if name in missing_columns else _told(value, missing_columns) for name, value in row.items()}
        if missing_columns
        else row
    )


def _told(shown: Any, missing_columns: frozenset[str]) -> Any:
    """Return a part of a row with null for the fields that its source does not have."""
    if isinstance(shown, list):
        return [_told(part, missing_columns) for part in shown]
    if isinstance(shown, dict):
        return {name: None if name in missing_columns else _told(part, missing_columns) for name, part in shown.items()}
    return shown


def control_json(control: ControlRecord) -> Row:
    """Return a control record as JSON: its type and, for a transaction marker, the coordinator's epoch."""
    row: Row = {"type": control.type}
    return row if control.coordinator_epoch is None else row | {"coordinatorEpoch": control.coordinator_epoch}


def decoded_columns(decoded: CoordinatorRecord | StateRecord | MirrorMakerRecord) -> Row:
    """Return what a record's key and value say."""
    row: Row = {
        "record_type": decoded.record_type,
        "name": decoded.name,
        "key": decoded.key_json(),
        "value_version": decoded.value_version,
        "value": decoded.value_json(),
    }
    unknown_tags = [{"path": path, "tag": tag, "hex": data.hex()} for path, tag, data in decoded.unknown_tags()]
    if unknown_tags:
        row["unknown_tags"] = unknown_tags
    if decoded.key_trailing:
        row["key_trailing_hex"] = decoded.key_trailing.hex()
    if decoded.value_trailing:
        row["trailing_hex"] = decoded.value_trailing.hex()
    return row | _malformed_columns(decoded)


def _expand_members(decoded: CoordinatorRecord, json: Any) -> None:
    """Replace base64 by what it contains: members of type 2, classic members of type 5 (`messages.embedded`).

    The decoded contents of a commit's metadata are added beside it.
    """
    value = decoded.value
    if value is None:
        return
    if decoded.is_offset_commit:
        _replace(json, "metadataDecoded", decode_commit_metadata(value["metadata"], value["offset"]))
        return
    from offsets_log.messages.embedded import expand_assignment, expand_subscription

    if decoded.record_type == 2 and value.get("members"):
        protocol_type, protocol = value["protocol_type"], value["protocol"]
        for shown, member in zip(json["members"], value["members"], strict=True):
            _replace(shown, "subscription", expand_subscription(protocol_type, protocol, member["subscription"]))
            _replace(shown, "assignment", expand_assignment(protocol_type, protocol, member["assignment"]))
    elif value.get("classic_member_metadata") and json.get("classicMemberMetadata"):
        shown_protocols = json["classicMemberMetadata"]["supportedProtocols"]
        for shown, row in zip(shown_protocols, value["classic_member_metadata"]["supported_protocols"], strict=True):
            _replace(shown, "metadata", expand_subscription("consumer", row["name"], row["metadata"]))


def _replace(shown: Row, name: str, expanded: Row | None) -> None:
    if expanded is not None:
        shown[name] = expanded


NAME_PATHS = {
    "key.group": "group_base64",
    "key.groupId": "group_base64",
    "key.topic": "topic_base64",
    "value.metadata": "metadata_base64",
}


def _malformed_columns(decoded: CoordinatorRecord | StateRecord | MirrorMakerRecord) -> Row:
    row: Row = {}
    others = []
    for path, raw in decoded.malformed_strings():
        if path in NAME_PATHS:
            row[NAME_PATHS[path]] = to_base64(raw)
        else:
            others.append({"path": path, "base64": to_base64(raw)})
    return row | ({"malformed_strings": others} if others else {})


def _raw_columns(key: bytes | None, value: bytes | None, topic: str | None) -> Row:
    number, name = _type_and_name(key, topic)
    return {
        "record_type": number,
        "name": name,
        "key_hex": None if key is None else key.hex(),
        "value_hex": None if value is None else value.hex(),
    }


def _type_and_name(key: bytes | None, topic: str | None) -> tuple[int | None, str | None]:
    of_mirror_maker = None if topic is None else mirror_maker_topic(topic)
    if of_mirror_maker is not None:
        return None, of_mirror_maker.name
    number = record_type_of(key)
    types = RECORD_TYPES if topic is None else STATE_RECORD_TYPES[topic]
    known = types.get(number) if number is not None else None
    return number, known.name if known else None


def problem_row(damage: Damage) -> Row:
    """Return a row that says where a damaged or unreadable piece lies, and what is wrong with it."""
    error = damage.error
    return {
        "file": error.file,
        "position": error.position,
        "record_offset": error.record_offset,
        "problem": f"{error.field}: {error.problem}" if error.field else error.problem,
    }


def pending_row(
    value: OffsetAndMetadata, offsets_partition: int | None, missing_columns: frozenset[str] = frozenset()
) -> Row:
    """Return the row of an offset of an open transaction."""
    row = offset_row(value, offsets_partition, missing_columns)
    for name in ("commit_timestamp_ms", "expire_timestamp_ms", "topic_id"):
        del row[name]
    return row | {"producer_id": value.producer_id, "producer_epoch": value.producer_epoch}


def damage_row(damage: Damage) -> Row:
    """Return the row of a damaged or unreadable piece in the quarantine."""
    error = damage.error
    return {
        "file": error.file,
        "position": error.position,
        "record_offset": error.record_offset,
        "field": error.field,
        "kind": "unsupported" if damage.is_unsupported else "corrupt",
        "problem": error.problem,
        "raw_base64": to_base64(damage.raw),
    }
