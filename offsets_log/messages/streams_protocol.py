"""Decode user data of Kafka Streams on the classic protocol: group protocol ``stream``.

The subscription is a generated message; the assignment is written with Java's DataOutputStream, hence its modified
UTF-8. From version 5 on, the host maps name topics by numbers of a dictionary.

References: ``streams/src/main/resources/common/message/SubscriptionInfoData.json``,
``streams/processor/internals/assignment/AssignmentInfo.java``, ``ConsumerProtocolUtils.java``.
"""

from __future__ import annotations

import io
import struct
import uuid
from typing import Any

import construct as c

from offsets_log.errors import CorruptRecordError
from offsets_log.log_format import primitives as p
from offsets_log.messages.consumer_protocol import Embedded, EmbeddedMessage, decode_embedded
from offsets_log.messages.schema import BYTES, INT8, INT32, INT64, STRING, UUID, ArrayOf, Field, Scalar, Struct

MAX_TOPIC_NAME = 249
"""Kafka's own limit of letters. Without it a short list of dictionary numbers could repeat a long text very often."""


def decode_modified_utf8(raw: bytes) -> str:
    """Decode what ``DataOutput.writeUTF`` wrote: NUL as two bytes, a surrogate pair as six.

    Raises:
        UnicodeError: bytes that writeUTF does not write, or a lone surrogate.
    """
    units = raw.replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass").encode("utf-16-be", "surrogatepass")
    text = units.decode("utf-16-be")
    if encode_modified_utf8(text) != raw:
        raise UnicodeError("these bytes are not modified UTF-8")
    return text


def encode_modified_utf8(text: str) -> bytes:
    """Encode a text as ``DataOutput.writeUTF`` does, the inverse of `decode_modified_utf8`."""
    units = text.encode("utf-16-be")
    separate = "".join(map(chr, struct.unpack(f">{len(units) // 2}H", units)))
    return separate.encode("utf-8", "surrogatepass").replace(b"\0", b"\xc0\x80")


class JavaText(c.Construct):  # type: ignore[misc]
    """Text after its length: ``writeUTF`` (uint16 bytes), or ``writeChars`` (int32 UTF-16 units)."""

    def __init__(self, length: c.Construct, unit_size: int) -> None:
        super().__init__()
        self.length, self.unit_size = length, unit_size

    def _parse(self, stream: io.BytesIO, context: Any, path: str) -> str:
        count = self.length._parsereport(stream, context, path)
        if count < 0:
            raise p.WireError(f"the length is {count}", path=path)
        raw = p.read_exactly(stream, count * self.unit_size, path)
        try:
            return decode_modified_utf8(raw) if self.unit_size == 1 else raw.decode("utf-16-be")
        except UnicodeError as error:
            raise p.WireError(f"it is not text: {error}", path=path) from None

    def _build(self, obj: str, stream: io.BytesIO, context: Any, path: str) -> str:
        raw = encode_modified_utf8(obj) if self.unit_size == 1 else obj.encode("utf-16-be")
        self.length._build(len(raw) // self.unit_size, stream, context, path)
        stream.write(raw)
        return obj


UTF = Scalar("writeUTF", JavaText(p.UINT16, 1))
CHARS = Scalar("writeChars", JavaText(p.INT32, 2))

# --------------------------------------------------------------------------------------------- the tables

TASK_ID = Struct((Field("topic_group_id", INT32), Field("partition", INT32)))

SUBSCRIPTION_INFO = EmbeddedMessage(
    "SubscriptionInfo",
    (
        Field("latest_supported_version", INT32, "3+"),
        Field("process_id", UUID),
        Field("prev_tasks", ArrayOf(TASK_ID), "1-6"),
        Field("standby_tasks", ArrayOf(TASK_ID), "1-6"),
        Field("user_end_point", BYTES, "2+"),
        Field(
            "task_offset_sums",
            ArrayOf(
                Struct(
                    (
                        Field("topic_group_id", INT32),
                        Field(
                            "partition_to_offset_sum",
                            ArrayOf(Struct((Field("partition", INT32), Field("offset_sum", INT64)))),
                            "7-9",
                        ),
                        Field("partition", INT32, "10+"),
                        Field("offset_sum", INT64, "10+"),
                        Field("named_topology", STRING, "10+", nullable=True),
                    )
                )
            ),
            "7+",
        ),
        Field("unique_field", INT8, "8+"),
        Field("error_code", INT32, "9+"),
        Field("client_tags", ArrayOf(Struct((Field("key", BYTES), Field("value", BYTES)))), "11+"),
    ),
    versions="1-11",
    number=p.INT32,
    later_as_newest=False,
)

TASK_ROWS = (
    Field("topic_group_id", INT32),
    Field("partition", INT32),
    Field("named_topology", CHARS, "10+"),
)

HOST_PARTITIONS = Struct(
    (
        Field("host", UTF),
        Field("port", INT32),
        Field(
            "partitions",
            ArrayOf(Struct((Field("topic", UTF, "2-4"), Field("topic_index", INT32, "5+"), Field("partition", INT32)))),
        ),
    )
)

ASSIGNMENT_INFO = EmbeddedMessage(
    "AssignmentInfo",
    (
        Field("commonly_supported_version", INT32, "3+"),
        Field("active_tasks", ArrayOf(Struct(TASK_ROWS))),
        Field(
            "standby_tasks",
            ArrayOf(
                Struct(
                    (
                        *TASK_ROWS,
                        Field("partitions", ArrayOf(Struct((Field("topic", UTF), Field("partition", INT32))))),
                    )
                )
            ),
        ),
        Field("topic_dictionary", ArrayOf(Struct((Field("topic_index", INT32), Field("topic", UTF)))), "5+"),
        Field("partitions_by_host", ArrayOf(HOST_PARTITIONS), "2+"),
        Field("standby_partitions_by_host", ArrayOf(HOST_PARTITIONS), "6+"),
        Field("err_code", INT32, "4+"),
        Field("next_rebalance_ms", INT64, "7+"),
    ),
    versions="1-11",
    number=p.INT32,
    later_as_newest=False,
)

# ------------------------------------------------------------------------------------------- subscription


def decode_subscription_info(data: bytes, root: str = "user_data") -> Embedded:
    """Decode a client's tasks and its endpoint. Raises CorruptRecordError, for an unknown version too."""
    return decode_embedded(SUBSCRIPTION_INFO, data, root)


def subscription_info_json(info: Embedded) -> dict[str, Any]:
    """Return every field of that version as JSON; tasks as ``subtopology_partition``, a missing endpoint as null."""
    json: dict[str, Any] = {"version": info.version}
    for row in SUBSCRIPTION_INFO.fields_of(info.version):
        json[row.name] = _subscription_field(row.name, info.fields[row.name])
    return json


def _subscription_field(name: str, value: Any) -> Any:
    match name:
        case "process_id":
            return str(uuid.UUID(bytes=bytes(value)))
        case "prev_tasks" | "standby_tasks":
            return [_task(row) for row in value]
        case "user_end_point":
            return _text(value) or None
        case "task_offset_sums":
            return {_task(task): sum_["offset_sum"] for row in value for task, sum_ in _offset_sums(row)}
        case "client_tags":
            return {_text(row["key"]): _text(row["value"]) for row in value}
    return value


def _offset_sums(row: dict[str, Any]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    parts = row.get("partition_to_offset_sum", [row])
    return [({**row, "partition": part["partition"]}, part) for part in parts]


def _task(row: dict[str, Any]) -> str:
    """Return a task id as Java prints it."""
    topology = row.get("named_topology")
    return f"{topology + '__' if topology else ''}{row['topic_group_id']}_{row['partition']}"


def _text(raw: bytes) -> str:
    return raw.decode(errors="replace")


# --------------------------------------------------------------------------------------------- assignment


def decode_assignment_info(data: bytes, root: str = "user_data") -> Embedded:
    """Decode a client's tasks and who has which partition.

    Raises:
        CorruptRecordError: it does not parse, its version is unknown, or a host map names a topic by a number that is
            not in the dictionary.
    """
    info = decode_embedded(ASSIGNMENT_INFO, data, root)
    known = _dictionary(info.fields)
    for row in info.fields.get("topic_dictionary", ()):
        if len(row["topic"]) > MAX_TOPIC_NAME:
            raise CorruptRecordError(f"a topic name of {len(row['topic'])} letters", field=f"{root}.topic_dictionary")
    for host in (*info.fields.get("partitions_by_host", ()), *info.fields.get("standby_partitions_by_host", ())):
        for part in host["partitions"]:
            if "topic_index" in part and part["topic_index"] not in known:
                raise CorruptRecordError(f"no topic has number {part['topic_index']}", field=f"{root}.topic_dictionary")
    return info


def assignment_info_json(info: Embedded) -> dict[str, Any]:
    """Return every field of that version but the dictionary as JSON; Kafka's sets are sorted, active tasks in order."""
    topics = _dictionary(info.fields)
    json: dict[str, Any] = {"version": info.version}
    for row in ASSIGNMENT_INFO.fields_of(info.version):
        value = info.fields[row.name]
        match row.name:
            case "topic_dictionary":
                continue
            case "active_tasks":
                json[row.name] = [_task(task) for task in value]
            case "standby_tasks":
                json[row.name] = {_task(task): _partitions(task, topics) for task in value}
            case "partitions_by_host" | "standby_partitions_by_host":
                json[row.name] = _hosts(value, topics)
            case _:
                json[row.name] = value
    return json


def _dictionary(fields: dict[str, Any]) -> dict[int, str]:
    return {row["topic_index"]: row["topic"] for row in fields.get("topic_dictionary", ())}


def _partitions(row: dict[str, Any], topics: dict[int, str]) -> list[list[Any]]:
    return sorted(
        [part["topic"] if "topic" in part else topics[part["topic_index"]], part["partition"]]
        for part in row["partitions"]
    )


def _hosts(rows: list[dict[str, Any]], topics: dict[int, str]) -> list[dict[str, Any]]:
    hosts = [{"host": row["host"], "port": row["port"], "partitions": _partitions(row, topics)} for row in rows]
    return sorted(hosts, key=lambda host: f"{host['host']}:{host['port']}")
