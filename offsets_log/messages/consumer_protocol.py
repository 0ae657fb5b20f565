"""Decode what members of classic ``consumer`` groups put into type 2: subscription, assignment.

The tables here, and those of `sticky_user_data`, `streams_protocol` and `connect_protocol`, describe bytes inside a
record's bytes. `decode_subscription` and similar functions return an `Embedded`; `encode_embedded` returns the same
bytes again.

References: ``clients/.../common/message/ConsumerProtocolSubscription.json``, ``ConsumerProtocolAssignment.json``,
``clients/consumer/internals/ConsumerProtocol.java``.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import cache
from typing import Any

import construct as c

from offsets_log.errors import CorruptRecordError
from offsets_log.log_format import primitives as p
from offsets_log.log_format import readers
from offsets_log.messages.message_struct import MessageStruct
from offsets_log.messages.schema import BYTES, INT32, STRING, ArrayOf, Field, Message, Struct

# ------------------------------------------------------------------------- messages inside a record's bytes


@dataclass(frozen=True, slots=True, eq=False)
class EmbeddedMessage(Message):
    """A schema table of bytes inside a record.

    Attributes:
        number: wire type of the leading version; None where the bytes do not contain their version.
        later_as_newest: whether a later version is read with the newest layout (``records:D1``).
        may_end_before: names of the last rows; the bytes may end before each of them.
    """

    number: c.Construct | None = p.INT16
    later_as_newest: bool = True
    may_end_before: tuple[str, ...] = ()

    def struct(self, version: int) -> c.Construct:
        """Return the construct codec of one version, without the leading version."""
        return _struct_of(self, self.layout_version(version))

    def layout_version(self, version: int) -> int:
        """Return the version whose rows are used: the newest for a later one."""
        newest = int(self.versions.rpartition("-")[2])
        return min(version, newest) if self.later_as_newest else version


@cache
def _struct_of(table: EmbeddedMessage, layout_version: int) -> c.Construct:
    struct = Message.struct(table, layout_version)
    return MissingTail(struct, table.may_end_before) if table.may_end_before else struct


class MissingTail(c.Construct):  # type: ignore[misc]
    """A struct that may end before any of its last rows; rows missing on the wire are missing in the dict."""

    def __init__(self, struct: MessageStruct, tail: tuple[str, ...]) -> None:
        super().__init__()
        self.rows, self.tail = struct.subcons, tail

    def _parse(self, stream: io.BytesIO, context: Any, path: str) -> dict[str, Any]:
        value: dict[str, Any] = {}
        for row in self.rows:
            if row.name in self.tail and not p.bytes_left(stream):
                break
            value[row.name] = row._parsereport(stream, context, path)
        return value

    def _build(self, obj: dict[str, Any], stream: io.BytesIO, context: Any, path: str) -> dict[str, Any]:
        present = [row for row in self.rows if row.name in obj or row.name not in self.tail]
        if present != self.rows[: len(present)]:
            raise p.WireError("a row is missing before one that is not", path=path)
        for row in present:
            row._build(obj[row.name], stream, context, path)
        return obj

    def reader(self) -> readers.Reader:
        rows = [(row.name, row.name in self.tail, readers.part(row)) for row in self.rows]

        def read_rows(data: bytes, at: int) -> tuple[dict[str, Any], int]:
            value: dict[str, Any] = {}
            for name, may_be_missing, reader in rows:
                if may_be_missing and at >= len(data):
                    break
                value[name], at = reader(data, at)
            return value, at

        return read_rows


@dataclass(frozen=True, slots=True)
class Embedded:
    """A decoded message from bytes inside a record.

    Attributes:
        table: the table it was read with.
        version: the version as written, even if a later one was read with the newest layout.
        fields: the fields by the table's row names.
        trailing: bytes after the last field, which Kafka ignores.
    """

    table: EmbeddedMessage
    version: int
    fields: dict[str, Any]
    trailing: bytes = b""

    def to_json(self) -> dict[str, Any]:
        """Return the fields as Kafka's JSON converters write them."""
        return self.table.to_json(self.fields, self.table.layout_version(self.version))


def decode_embedded(table: EmbeddedMessage, data: bytes, root: str) -> Embedded:
    """Decode a leading version and the fields after it.

    Raises:
        CorruptRecordError: with the field path below ``root``; also for a version that no layout describes.
    """
    version, body = p.parse_prefix(table.number, data, f"{root}.version")
    if not table.has_version(table.layout_version(version)):
        raise CorruptRecordError(f"{table.name} has no version {version}", field=f"{root}.version")
    return decode_body(table, version, body, root)


def decode_body(table: EmbeddedMessage, version: int, body: bytes, root: str) -> Embedded:
    """Decode the fields of a message whose version is known.

    Raises:
        CorruptRecordError: with the field path below ``root``.
    """
    fields, trailing = p.parse_prefix(table.struct(version), body, root)
    return Embedded(table, version, fields, trailing)


def encode_embedded(message: Embedded, root: str = "") -> bytes:
    """Encode a decoded message, byte for byte.

    Raises:
        CorruptRecordError: the fields do not fit the table.
    """
    number = message.table.number
    head = b"" if number is None else p.build(number, message.version, f"{root}.version")
    return head + p.build(message.table.struct(message.version), message.fields, root) + message.trailing


# ------------------------------------------------------------------------------------- the consumer protocol

TOPIC_PARTITIONS = Struct((Field("topic", STRING), Field("partitions", ArrayOf(INT32))))

CONSUMER_PROTOCOL_SUBSCRIPTION = EmbeddedMessage(
    "ConsumerProtocolSubscription",
    (
        Field("topics", ArrayOf(STRING)),
        Field("user_data", BYTES, nullable=True),
        Field("owned_partitions", ArrayOf(TOPIC_PARTITIONS), "1+", default=()),
        Field("generation_id", INT32, "2+", default=-1),
        Field("rack_id", STRING, "3+", nullable=True),
    ),
    versions="0-3",
)

CONSUMER_PROTOCOL_ASSIGNMENT = EmbeddedMessage(
    "ConsumerProtocolAssignment",
    (
        Field("assigned_partitions", ArrayOf(TOPIC_PARTITIONS)),
        Field("user_data", BYTES, nullable=True),
    ),
    versions="0-3",
)


def decode_subscription(data: bytes, root: str = "subscription") -> Embedded:
    """Decode what a consumer asked for. Raises CorruptRecordError."""
    return decode_embedded(CONSUMER_PROTOCOL_SUBSCRIPTION, data, root)


def refusal_of_subscription(data: bytes) -> str | None:
    """Return why a coordinator fails that looks for a consumer's topics; None if it finds them, or gives up (``B-18``).

    It reads version 0, which all versions begin with, and gives up where bytes end before a length or a count.
    """
    version_and_count = 6
    if len(data) < version_and_count:
        return None
    count, rest = int.from_bytes(data[2:version_and_count], signed=True), memoryview(data)[version_and_count:]
    if count < 0:
        return "its topics are null"
    if count > len(rest):
        return f"{count} topics in {len(rest)} bytes"
    for _ in range(count):
        if len(rest) < 2:
            return None
        size, rest = int.from_bytes(rest[:2], signed=True), rest[2:]
        if size < 0:
            return "a topic is null"
        if size > len(rest):
            return f"a topic takes {size} bytes, {len(rest)} are left"
        rest = rest[size:]
    size, left = int.from_bytes(rest[:4], signed=True), len(rest) - 4
    return f"the user data takes {size} bytes, {left} are left" if size > left >= 0 else None


def decode_assignment(data: bytes, root: str = "assignment") -> Embedded:
    """Decode what a consumer was assigned. Raises CorruptRecordError, for zero bytes too (``records:E1``)."""
    return decode_embedded(CONSUMER_PROTOCOL_ASSIGNMENT, data, root)
