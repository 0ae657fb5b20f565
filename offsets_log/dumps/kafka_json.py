"""Turn Kafka's JSON back to a record's bytes: the inverse of `CoordinatorRecord.key_json` and ``value_json``.

References: ``CoordinatorRecordJsonConverters.java``.
"""

from __future__ import annotations

import base64
from functools import lru_cache
from json import loads as parse
from typing import Any

from offsets_log.errors import CorruptRecordError, OffsetsLogError, UnknownRecordTypeError, UnsupportedVersionError
from offsets_log.log_format.primitives import Uuid
from offsets_log.messages.consumer_protocol import (
    CONSUMER_PROTOCOL_ASSIGNMENT,
    CONSUMER_PROTOCOL_SUBSCRIPTION,
    Embedded,
    EmbeddedMessage,
    encode_embedded,
)
from offsets_log.messages.registry import RECORD_TYPES, CoordinatorRecord, RecordType, encode_coordinator_record
from offsets_log.messages.schema import Message

Json = dict[str, Any]

SHAPE_ERRORS = (KeyError, TypeError, ValueError, AttributeError, OverflowError)
"""Exceptions raised by values of other types than a schema table asks for."""


def record_type(number: object) -> RecordType:
    """Return the record type with a number, which some tools print as text.

    Raises:
        UnknownRecordTypeError, CorruptRecordError: the number is unknown, or it is no number.
    """
    if isinstance(number, str) and number.isascii() and number.isdigit() and len(number) < 6:
        number = int(number)
    if not isinstance(number, int) or isinstance(number, bool):
        raise CorruptRecordError("it tells no record type", field="key")
    if number not in RECORD_TYPES:
        raise UnknownRecordTypeError(f"unknown record type {number}", field="key")
    return RECORD_TYPES[number]


def coordinator_record(number: object, key: object, version: object, value: object) -> CoordinatorRecord:
    """Build a record from its JSON; a value of None is a tombstone. Expanded consumer members become bytes again.

    If several layouts share one version number, the first one that has exactly these fields is taken.

    Raises:
        CorruptRecordError: the JSON does not fit the record's tables, or says more than they hold.
        UnknownRecordTypeError, UnsupportedVersionError: there is no such record type or value version.
    """
    row = record_type(number)
    key_fields = _fields(row.key, key, 0, "key")
    if value is None:
        return CoordinatorRecord(record_type=row.number, key=key_fields)
    if isinstance(version, str) and version.isascii() and version.isdigit():
        version = int(version[:6])
    if not isinstance(version, int) or isinstance(version, bool):
        raise CorruptRecordError("it tells no value version", field="value")
    layouts = tuple(row.layouts(version))
    if not layouts:
        raise UnsupportedVersionError(f"{row.name} has no known value version {version}", field="value")
    value = _collapsed(row.number, value)
    first_error: OffsetsLogError | None = None
    for layout in layouts:
        try:
            fields = _fields(layout, value, version, "value")
        except CorruptRecordError as error:
            first_error = first_error or error
            continue
        return CoordinatorRecord(
            record_type=row.number, key=key_fields, value_version=version, value=fields, layout=layout
        )
    assert first_error is not None
    raise first_error


def record_bytes(number: object, key: object, version: object, value: object) -> tuple[bytes, bytes | None]:
    """Return the record's key and value as bytes. Raises what `coordinator_record` does."""
    return encode_coordinator_record(coordinator_record(number, key, version, value))


def _fields(table: Message, json: object, version: int, root: str) -> dict[str, Any]:
    if not isinstance(json, dict):
        raise CorruptRecordError("it is no JSON object", field=root)
    try:
        fields = table.from_json(json, version)
        told = table.to_json(fields, version)
    except SHAPE_ERRORS as error:
        raise CorruptRecordError(f"it is not of {table.name} version {version}: {error!r}", field=root) from None
    if told != json:
        names = sorted(name for name in {*told, *json} if told.get(name, ...) != json.get(name, ...))
        raise CorruptRecordError(f"{', '.join(names)}: not as in {table.name} version {version}", field=root)
    return fields


# ------------------------------------------------------------------------------------ expanded members


def _collapsed(number: int, value: object) -> object:
    """Return a type 2 value whose subscriptions and assignments are base64 again where a tool shows them decoded."""
    if number != 2 or not isinstance(value, dict) or not isinstance(value.get("members"), list):
        return value
    return value | {"members": [_collapsed_member(member) for member in value["members"]]}


def _collapsed_member(member: object) -> object:
    if not isinstance(member, dict):
        return member
    shown = {
        name: _member_bytes(table, member[name], name)
        for name, table in MEMBER_TABLES.items()
        if isinstance(member.get(name), dict)
    }
    return member | shown


MEMBER_TABLES = {"subscription": CONSUMER_PROTOCOL_SUBSCRIPTION, "assignment": CONSUMER_PROTOCOL_ASSIGNMENT}
BESIDE_FIELDS = {"version", "trailing_hex", "userDataDecoded"}
"""Names that `decode --expand` shows beside the fields of a member's bytes."""


def _member_bytes(table: EmbeddedMessage, json: Json, root: str) -> str:
    """Return the base64 of a subscription or an assignment.

    kafka-dump-log leaves the version out. A subscription's version follows from its fields; for an assignment 0 is
    taken, which reads the same.
    """
    names = json.keys() - BESIDE_FIELDS
    version = json.get("version", max((v for v in range(4) if _names(table, v) <= names), default=0))
    if table is CONSUMER_PROTOCOL_ASSIGNMENT and "version" not in json:
        version = 0
    if not isinstance(version, int) or not table.has_version(table.layout_version(version)):
        raise CorruptRecordError("these bytes cannot be had from what is shown", field=root)
    fields = _fields(table, {name: json[name] for name in names}, table.layout_version(version), root)
    try:
        trailing = bytes.fromhex(json.get("trailing_hex", ""))
    except SHAPE_ERRORS:
        raise CorruptRecordError("trailing_hex is no hexadecimal", field=root) from None
    return base64.b64encode(encode_embedded(Embedded(table, version, fields, trailing), root)).decode("ascii")


def field_bytes(name: str, text: bytes) -> bytes:
    """Return the bytes in a record for the JSON of a member's field, expanded or in base64, or of a commit's topic id.

    Returns:
        A member's field with its size before it, or a topic id as the section of tagged fields; empty bytes for
        anything that is not plainly one of these.
    """
    return _topic_id_bytes(text) if name == "topic_id" else _sized_member_bytes(name, text)


TOPIC_ID_TAGS = b"\1\0\x10"
"""One tagged field, with number 0 and 16 bytes."""


def _topic_id_bytes(text: bytes) -> bytes:
    try:
        told = parse(text)
        topic_id = Uuid.from_text(told)
    except (RecursionError, *SHAPE_ERRORS):
        return b""
    return TOPIC_ID_TAGS + topic_id if any(topic_id) and str(Uuid(topic_id)) == told else b""


def _sized_member_bytes(name: str, text: bytes) -> bytes:
    try:
        json = parse(text)
        told = _member_bytes(MEMBER_TABLES[name], json, name) if isinstance(json, dict) else json
        data = base64.b64decode(told, validate=True)
    except (OffsetsLogError, RecursionError, *SHAPE_ERRORS):
        return b""
    return len(data).to_bytes(4) + data if base64.b64encode(data).decode("ascii") == told else b""


@lru_cache
def _names(table: EmbeddedMessage, version: int) -> frozenset[str]:
    return frozenset(field.json_name for field in table.fields_of(version))
