"""Turn Kafka's JSON back to a record's bytes: the inverse of `CoordinatorRecord.key_json` and ``value_json``.

References: ``CoordinatorRecordJsonConverters.java``.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from offsets_log.dumps.json_text import parse
from offsets_log.errors import (
    CorruptRecordError,
    OffsetsLogError,
    UnknownRecordTypeError,
    UnsupportedError,
    UnsupportedVersionError,
)
from offsets_log.kafka_releases import NEWEST
from offsets_log.log_format.primitives import Uuid
from offsets_log.messages.consumer_protocol import (
    CONSUMER_PROTOCOL_ASSIGNMENT,
    CONSUMER_PROTOCOL_SUBSCRIPTION,
    Embedded,
    EmbeddedMessage,
    encode_embedded,
)
from offsets_log.messages.registry import RECORD_TYPES, CoordinatorRecord, RecordType, encode_coordinator_record
from offsets_log.messages.schema import ArrayOf, Field, Message, Struct, WireType

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


class UnknownFields(UnsupportedError):
    """A record's value has fields that no known release has: a newer one wrote it. Its other fields are known.

    Attributes:
        key, value: the record's bytes without those fields.
    """

    def __init__(self, names: Iterable[str], key: bytes, value: bytes | None) -> None:
        super().__init__(
            f"{', '.join(names)}: no release up to {NEWEST.name} has this; it is left out, the record's other fields "
            "are used",
            field="value",
        )
        self.key, self.value = key, value


def told_record(number: object, key: object, version: object, value: object) -> tuple[CoordinatorRecord, list[str]]:
    """Build a record from its JSON; a value of None is a tombstone. Expanded consumer members become bytes again.

    If several layouts share one version number, the first one that has exactly these fields is taken; else the newest
    one, if only fields are left over that it has in no version.

    Returns:
        The record, and the paths of fields in the value that no known release has.

    Raises:
        CorruptRecordError: the JSON does not fit the record's tables.
        UnknownRecordTypeError, UnsupportedVersionError: there is no such record type or value version.
        UnsupportedError: the key has unknown fields, without which it is another key.
    """
    row = record_type(number)
    key_fields, unknown = _fields(row.key, key, 0, "key")
    if unknown:
        raise UnsupportedError(f"{', '.join(unknown)}: no release up to {NEWEST.name} has this", field="key")
    if value is None:
        return CoordinatorRecord(record_type=row.number, key=key_fields), []
    if isinstance(version, str) and version.isascii() and version.isdigit():
        version = int(version[:6])
    if not isinstance(version, int) or isinstance(version, bool):
        raise CorruptRecordError("it tells no value version", field="value")
    layouts = tuple(row.layouts(version))
    if not layouts:
        raise UnsupportedVersionError(f"{row.name} has no known value version {version}", field="value")
    value = _collapsed(row.number, value)
    found: list[tuple[dict[str, Any], list[str], Message]] = []
    first_error: OffsetsLogError | None = None
    for layout in layouts:
        try:
            found.append((*_fields(layout, value, version, "value"), layout))
        except CorruptRecordError as error:
            first_error = first_error or error
    if not found:
        assert first_error is not None
        raise first_error
    fields, unknown, layout = min(found, key=lambda one: len(one[1]))
    made = CoordinatorRecord(record_type=row.number, key=key_fields, value_version=version, value=fields, layout=layout)
    return made, unknown


def record_bytes(number: object, key: object, version: object, value: object) -> tuple[bytes, bytes | None]:
    """Return the record's key and value as bytes.

    Raises:
        UnknownFields: the value has fields that are not known; the error has the bytes of the others.
        OffsetsLogError: what `told_record` raises.
    """
    record, unknown = told_record(number, key, version, value)
    told = encode_coordinator_record(record)
    if unknown:
        raise UnknownFields(unknown, *told)
    return told


def _fields(table: Message, json: object, version: int, root: str) -> tuple[dict[str, Any], list[str]]:
    """Return a message's fields, and the paths of those that the table has in no version."""
    if not isinstance(json, dict):
        raise CorruptRecordError("it is no JSON object", field=root)
    try:
        fields = table.from_json(json, version)
        told = table.to_json(fields, version)
    except SHAPE_ERRORS as error:
        raise CorruptRecordError(f"it is not of {table.name} version {version}: {error!r}", field=root) from None
    if told == json:
        return fields, []
    unknown = list(_beyond(table.fields, json, told, ""))
    if None in unknown:
        names = sorted(name for name in {*told, *json} if told.get(name, ...) != json.get(name, ...))
        raise CorruptRecordError(f"{', '.join(names)}: not as in {table.name} version {version}", field=root)
    return fields, sorted({name for name in unknown if name is not None})


def _beyond(fields: tuple[Field, ...], json: Json, told: Json, path: str) -> Iterator[str | None]:
    """Yield the path of each field in the JSON that a table does not have; None for any other difference."""
    of = {field.json_name: field.type for field in fields}
    for name in {*json, *told}:
        if name not in of:
            yield f"{path}{name}"
        elif name not in json or name not in told:
            yield None
        else:
            yield from _beyond_in(of[name], json[name], told[name], f"{path}{name}")


def _beyond_in(type_: WireType, json: Any, told: Any, path: str) -> Iterator[str | None]:
    match type_, json, told:
        case Struct(fields), dict(), dict():
            yield from _beyond(fields, json, told, f"{path}.")
        case ArrayOf(element), list(), list() if len(json) == len(told):
            for item, own in zip(json, told, strict=True):
                yield from _beyond_in(element, item, own, f"{path}[]")
        case _ if json != told:
            yield None


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
    fields, unknown = _fields(table, {name: json[name] for name in names}, table.layout_version(version), root)
    if unknown:
        raise CorruptRecordError(f"{', '.join(unknown)}: these bytes cannot be had from what is shown", field=root)
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
