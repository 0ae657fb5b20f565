"""Register record types: from the first two bytes of a key to the tables of its key and value.

`decode_coordinator_record` reads a record's key and value, `encode_coordinator_record` returns the same bytes again.
Decoding is liberal: it reads what a broker would refuse to load, such as a type 0 key with any value version.

References: ``GroupCoordinatorRecordSerde.java``, ``CoordinatorRecordType``; ``records:Y1``–``Y6``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

from offsets_log.errors import (
    CorruptRecordError,
    OffsetsLogError,
    UnknownRecordTypeError,
    UnsupportedVersionError,
)
from offsets_log.log_format import primitives
from offsets_log.log_format.java_text import MalformedString
from offsets_log.messages import consumer_group as cg
from offsets_log.messages import schema
from offsets_log.messages import share_group as sh
from offsets_log.messages import streams_group as st
from offsets_log.messages.group_metadata import GROUP_METADATA_KEY, GROUP_METADATA_VALUE
from offsets_log.messages.message_struct import UNKNOWN_TAGS
from offsets_log.messages.offset_commit import OFFSET_COMMIT_KEY, OFFSET_COMMIT_VALUE
from offsets_log.messages.schema import Message

INT16 = struct.Struct(">h")
KEYS_REMEMBERED = 1 << 15


@dataclass(frozen=True, slots=True)
class RecordType:
    """A record type: the number in the key, Kafka's name, the key's table, the value's tables newest first."""

    number: int
    name: str
    key: Message
    values: tuple[Message, ...]

    def layouts(self, version: int) -> Iterator[Message]:
        """Yield the tables that describe a value version, newest first."""
        return (layout for layout in self.values if layout.has_version(version))


RECORD_TYPES: dict[int, RecordType] = {
    row.number: row
    for row in (
        RecordType(0, "LegacyOffsetCommit", OFFSET_COMMIT_KEY, (OFFSET_COMMIT_VALUE,)),
        RecordType(1, "OffsetCommit", OFFSET_COMMIT_KEY, (OFFSET_COMMIT_VALUE,)),
        RecordType(2, "GroupMetadata", GROUP_METADATA_KEY, (GROUP_METADATA_VALUE,)),
        RecordType(3, "ConsumerGroupMetadata", cg.GROUP_KEY, (cg.CONSUMER_GROUP_METADATA_VALUE,)),
        RecordType(
            4,
            "ConsumerGroupPartitionMetadata",
            cg.GROUP_KEY,
            (cg.CONSUMER_GROUP_PARTITION_METADATA_VALUE, cg.CONSUMER_GROUP_PARTITION_METADATA_VALUE_3_7),
        ),
        RecordType(
            5,
            "ConsumerGroupMemberMetadata",
            cg.GROUP_MEMBER_KEY,
            (cg.CONSUMER_GROUP_MEMBER_METADATA_VALUE, cg.CONSUMER_GROUP_MEMBER_METADATA_VALUE_3_7),
        ),
        RecordType(
            6,
            "ConsumerGroupTargetAssignmentMetadata",
            cg.GROUP_KEY,
            (cg.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE,),
        ),
        RecordType(
            7,
            "ConsumerGroupTargetAssignmentMember",
            cg.GROUP_MEMBER_KEY,
            (
                cg.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE,
                cg.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE_3_7,
            ),
        ),
        RecordType(
            8,
            "ConsumerGroupCurrentMemberAssignment",
            cg.GROUP_MEMBER_KEY,
            (
                cg.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE,
                cg.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE_3_7,
            ),
        ),
        RecordType(
            9,
            "ShareGroupPartitionMetadata",
            cg.GROUP_KEY,
            (sh.SHARE_GROUP_PARTITION_METADATA_VALUE_4_0, sh.SHARE_GROUP_PARTITION_METADATA_VALUE_3_9),
        ),
        RecordType(10, "ShareGroupMemberMetadata", cg.GROUP_MEMBER_KEY, (sh.SHARE_GROUP_MEMBER_METADATA_VALUE,)),
        RecordType(
            11,
            "ShareGroupMetadata",
            cg.GROUP_KEY,
            (sh.SHARE_GROUP_METADATA_VALUE, sh.SHARE_GROUP_METADATA_VALUE_4_0),
        ),
        RecordType(
            12,
            "ShareGroupTargetAssignmentMetadata",
            cg.GROUP_KEY,
            (sh.SHARE_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE,),
        ),
        RecordType(
            13,
            "ShareGroupTargetAssignmentMember",
            cg.GROUP_MEMBER_KEY,
            (sh.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE,),
        ),
        RecordType(
            14,
            "ShareGroupCurrentMemberAssignment",
            cg.GROUP_MEMBER_KEY,
            (sh.SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE,),
        ),
        RecordType(
            15,
            "ShareGroupStatePartitionMetadata",
            cg.GROUP_KEY,
            (
                sh.SHARE_GROUP_STATE_PARTITION_METADATA_VALUE,
                sh.SHARE_GROUP_STATE_PARTITION_METADATA_VALUE_4_0,
            ),
        ),
        RecordType(
            16,
            "ConsumerGroupRegularExpression",
            cg.GROUP_REGULAR_EXPRESSION_KEY,
            (cg.CONSUMER_GROUP_REGULAR_EXPRESSION_VALUE,),
        ),
        RecordType(17, "StreamsGroupMetadata", cg.GROUP_KEY, (st.STREAMS_GROUP_METADATA_VALUE,)),
        RecordType(19, "StreamsGroupMemberMetadata", cg.GROUP_MEMBER_KEY, (st.STREAMS_GROUP_MEMBER_METADATA_VALUE,)),
        RecordType(
            20,
            "StreamsGroupTargetAssignmentMetadata",
            cg.GROUP_KEY,
            (st.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE,),
        ),
        RecordType(
            21,
            "StreamsGroupTargetAssignmentMember",
            cg.GROUP_MEMBER_KEY,
            (st.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE,),
        ),
        RecordType(
            22,
            "StreamsGroupCurrentMemberAssignment",
            cg.GROUP_MEMBER_KEY,
            (st.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE,),
        ),
        RecordType(23, "StreamsGroupTopology", cg.GROUP_KEY, (st.STREAMS_GROUP_TOPOLOGY_VALUE,)),
    )
}

OFFSET_COMMIT_TYPES = frozenset({0, 1})


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyAndValue:
    """A decoded key and value of an internal topic.

    Attributes:
        key: the key's fields.
        value_version: None for a tombstone.
        value: the value's fields; None for a tombstone.
        layout: the table the value was read with; None for a tombstone.
        key_trailing, value_trailing: bytes after the last field, which Kafka ignores (``records:P4``).
    """

    key: dict[str, Any]
    value_version: int | None = None
    value: dict[str, Any] | None = None
    layout: Message | None = None
    key_trailing: bytes = b""
    value_trailing: bytes = b""

    @property
    def is_tombstone(self) -> bool:
        """Whether the value is null; empty bytes are not null."""
        return self.value is None

    def value_json(self) -> dict[str, Any] | None:
        """Return the value as Kafka's JSON; None for a tombstone."""
        if self.value is None or self.layout is None or self.value_version is None:
            return None
        return self.layout.to_json(self.value, self.value_version)

    def unknown_tags(self) -> list[tuple[str, int, bytes]]:
        """Return tagged fields no table knows: path of their struct, tag, raw bytes."""
        return [
            (path, tag, data)
            for path, part in schema.walk(self.value, "value")
            if isinstance(part, dict)
            for tag, data in part.get(UNKNOWN_TAGS, ())
        ]

    def malformed_strings(self) -> list[tuple[str, bytes]]:
        """Return strings that were not UTF-8 (``replay:B-7``): path, raw bytes."""
        return [
            (path, part.raw)
            for root, fields in (("key", self.key), ("value", self.value))
            for path, part in schema.walk(fields, root)
            if isinstance(part, MalformedString)
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorRecord(KeyAndValue):
    """A decoded key and value of ``__consumer_offsets``.

    Attributes:
        record_type: the number in the key.
    """

    record_type: int

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle for other processes, which have tables of their own."""
        number = None if self.layout is None else RECORD_TYPES[self.record_type].values.index(self.layout)
        return _with_layout, (number, {name: getattr(self, name) for name in _PLAIN})

    @property
    def name(self) -> str:
        """Kafka's name of the record type."""
        return RECORD_TYPES[self.record_type].name

    @property
    def is_offset_commit(self) -> bool:
        """Whether it is of type 0 or 1, which name the same GroupTopicPartition (``replay:L-22``)."""
        return self.record_type in OFFSET_COMMIT_TYPES

    @property
    def group(self) -> str:
        """The group id, whatever the key's field is called."""
        group: str = self.key["group"] if "group" in self.key else self.key["group_id"]
        return group

    @property
    def group_topic_partition(self) -> tuple[str, str, int]:
        """Return what an offset commit or its tombstone is about: group, topic and partition."""
        return self.key["group"], self.key["topic"], self.key["partition"]

    def key_json(self) -> dict[str, Any]:
        """Return the key as Kafka's JSON."""
        return RECORD_TYPES[self.record_type].key.to_json(self.key, 0)


_PLAIN = [field.name for field in fields(CoordinatorRecord) if field.name != "layout"]


def _with_layout(number: int | None, plain: dict[str, Any]) -> CoordinatorRecord:
    layout = None if number is None else RECORD_TYPES[plain["record_type"]].values[number]
    return CoordinatorRecord(layout=layout, **plain)


def _leading_int16(data: bytes, root: str, what: str) -> int:
    if len(data) < INT16.size:
        raise CorruptRecordError(f"{len(data)} bytes are too few for the {what}", field=root)
    number: int = INT16.unpack_from(data)[0]
    return number


@lru_cache(maxsize=KEYS_REMEMBERED)
def decode_key(key: bytes | None) -> tuple[RecordType, dict[str, Any], bytes]:
    """Decode a record key: its row, its fields (not to be changed), trailing bytes. Results are cached, as keys repeat.

    Raises:
        CorruptRecordError: a null key (``records:R2``) or one that does not parse.
        UnknownRecordTypeError: a type no known release writes.
    """
    return read_key(key, RECORD_TYPES)


def read_key(key: bytes | None, types: Mapping[int, RecordType]) -> tuple[RecordType, dict[str, Any], bytes]:
    """Decode a record key as `decode_key`, of a topic with record types of its own. Raises as `decode_key`."""
    if key is None:
        raise CorruptRecordError("the key is null", field="key")
    number = _leading_int16(key, "key", "record type")
    if number not in types:
        raise UnknownRecordTypeError(f"unknown record type {number}", field="key")
    row = types[number]
    fields, trailing = primitives.parse_prefix(row.key.struct(0), key[INT16.size :], "key")
    return row, fields, trailing


def record_type_of(key: bytes | None) -> int | None:
    """Return the number a key begins with, known or not; None for a key without one."""
    return None if key is None or len(key) < INT16.size else int(INT16.unpack_from(key)[0])


def value_version_of(value: bytes | None) -> int | None:
    """Return the version a value begins with, known or not; None for a value without one."""
    return record_type_of(value)


DecodedValue = tuple[int, dict[str, Any], Message, bytes]
"""The version of a value, its fields, the table used, trailing bytes."""


def decode_value(
    row: RecordType, value: bytes, release: tuple[int, int] | None = None, *, only_release: bool = False
) -> DecodedValue:
    """Decode a record value.

    Where several layouts share the version number, the one of ``release`` is tried first, then the newest; the
    first that fits the whole value is taken, and only if none does, the first that parses with bytes left over.

    Args:
        release: (major, minor) of the Kafka release that wrote the record, if known.
        only_release: try only layouts of that release, as that release does.

    Raises:
        UnsupportedVersionError: a value version no table describes, or none of that release alone.
        CorruptRecordError: no layout parses; the error is that of the layout tried first.
    """
    version = _leading_int16(value, "value", "value version")
    layouts = list(row.layouts(version))
    if release is not None and only_release:
        layouts = [layout for layout in layouts if layout.is_written_by(release)]
    if not layouts:
        raise UnsupportedVersionError(f"{row.name} has no known value version {version}", field="value")
    if release is not None:
        layouts.sort(key=lambda layout: not layout.is_written_by(release))
    first_error: OffsetsLogError | None = None
    with_trailing = None
    for layout in layouts:
        try:
            fields, trailing = primitives.parse_prefix(layout.struct(version), value[INT16.size :], "value")
        except CorruptRecordError as error:
            first_error = first_error or error
            continue
        if not trailing:
            return version, fields, layout, trailing
        with_trailing = with_trailing or (version, fields, layout, trailing)
    if with_trailing is None:
        assert first_error is not None
        raise first_error
    return with_trailing


def decode_coordinator_record(
    key: bytes | None, value: bytes | None, release: tuple[int, int] | None = None
) -> CoordinatorRecord:
    """Decode a record of ``__consumer_offsets``.

    Args:
        release: as of `decode_value`.

    Raises:
        CorruptRecordError, UnknownRecordTypeError, UnsupportedVersionError: with the field's path.
    """
    row, key_fields, key_trailing = decode_key(key)
    if value is None:
        return CoordinatorRecord(record_type=row.number, key=key_fields, key_trailing=key_trailing)
    version, fields, layout, trailing = decode_value(row, value, release)
    return CoordinatorRecord(
        record_type=row.number,
        key=key_fields,
        value_version=version,
        value=fields,
        layout=layout,
        key_trailing=key_trailing,
        value_trailing=trailing,
    )


def encode_coordinator_record(record: CoordinatorRecord) -> tuple[bytes, bytes | None]:
    """Encode a record, the inverse of `decode_coordinator_record`: return key and value, byte for byte."""
    return encode_key_and_value(RECORD_TYPES[record.record_type], record)


def encode_key_and_value(row: RecordType, record: KeyAndValue) -> tuple[bytes, bytes | None]:
    """Encode a record of any topic whose keys begin with a record type."""
    key = INT16.pack(row.number) + primitives.build(row.key.struct(0), record.key, "key") + record.key_trailing
    if record.value is None or record.value_version is None:
        return key, None
    layout = record.layout or next(row.layouts(record.value_version))
    body = primitives.build(layout.struct(record.value_version), record.value, "value")
    return key, INT16.pack(record.value_version) + body + record.value_trailing
