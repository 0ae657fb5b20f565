"""Say of batches and records what kafka-dump-log of each era prints of them, by other means than the product's."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable
from typing import Any

from offsets_log.log_format.batch import (
    RecordBatch,
    decode_batch_header,
)
from offsets_log.log_format.building import encode_legacy_message
from offsets_log.log_format.java_text import decode_java_utf8
from offsets_log.log_format.record import Record
from offsets_log.messages.registry import (
    CoordinatorRecord,
)
from tests.dump_log import DumpedRecord, Fact

Version = tuple[int, int]


def last_sequence(batch: RecordBatch) -> int:
    if batch.base_sequence < 0:
        return -1
    return (batch.base_sequence + batch.last_offset - batch.base_offset) % 2**31


def facts_of_batch(batch: RecordBatch, records: list[Record]) -> dict[str, Fact]:
    """All that a batch line of any era may say."""
    return {
        "offset": batch.last_offset,
        "base_offset": batch.base_offset if batch.magic == 2 else records[0].offset,
        "last_offset": batch.last_offset,
        "count": batch.records_count,
        "base_sequence": batch.base_sequence,
        "last_sequence": last_sequence(batch),
        "producer_id": batch.producer_id,
        "producer_epoch": batch.producer_epoch,
        "partition_leader_epoch": batch.partition_leader_epoch,
        "is_transactional": batch.is_transactional,
        "is_control": batch.is_control,
        "delete_horizon_ms": batch.delete_horizon_ms,
        "position": batch.position,
        "timestamp_type": batch.timestamp_type,
        "timestamp_ms": batch.max_timestamp_ms,
        "size": batch.size_bytes,
        "magic": batch.magic,
        "codec": batch.codec.name,
        "crc": batch.crc,
        "is_valid": batch.is_valid(),
    }


def facts_of_record(batch: RecordBatch, records: list[Record], record: Record, tool: Version) -> dict[str, Fact]:
    """All that a record line of any era may say, the facts of its batch among them."""
    facts = facts_of_batch(batch, records) | {
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        "key_size": -1 if record.key is None else len(record.key),
        "value_size": -1 if record.value is None else len(record.value),
        "sequence": record.sequence,
        "header_keys": f"[{','.join(key for key, _ in record.headers)}]",
        "crc": None if batch.magic == 2 else message_crc(batch, record),
    }
    if tool < (0, 11):
        facts["codec"] = "none"  # the inner message's own
    return facts


def message_crc(batch: RecordBatch, record: Record) -> int:
    """The checksum of a message of magic 0 or 1, made from what was read of it."""
    attributes = batch.attributes if batch.codec.id == 0 else 0
    message = encode_legacy_message(
        magic=batch.magic,
        offset=0,
        timestamp_ms=record.timestamp_ms,
        attributes=attributes,
        key=record.key,
        value=record.value,
    )
    return decode_batch_header(message).crc


CODEC_NAMES = {"nocompressioncodec": "none"}


def check_facts(printed: dict[str, Fact], ours: dict[str, Fact], needed: set[str], where: str) -> None:
    """Everything printed is what we read, and what an era always prints was printed."""
    assert needed <= printed.keys(), f"{where}: {needed - printed.keys()} was not printed"
    if "codec" in printed:
        codec = str(printed["codec"]).lower()
        printed = printed | {"codec": CODEC_NAMES.get(codec, codec)}
    assert printed == {name: ours[name] for name in printed}, where


# ----------------------------------------------------------------------- key and payload, as text of an era


def split_json_text(key: str | None, payload: str | None) -> tuple[Any, Any]:
    """3.8 and later print JSON."""
    assert key is not None
    assert payload is not None
    return json.loads(key), payload if payload == "<DELETE>" else json.loads(payload)


def json_form(record: CoordinatorRecord) -> tuple[Any, Any]:
    key = {"type": str(record.record_type), "data": record.key_json()}
    value = record.value_json()
    if value is None:
        return key, "<DELETE>"
    if record.record_type == 2 and value["protocolType"] == "consumer":
        for member in value["members"]:
            member["subscription"] = expanded(read_subscription, member["subscription"])
            member["assignment"] = expanded(read_assignment, member["assignment"])
    return key, {"version": str(record.value_version), "data": value}


def offset_text(record: CoordinatorRecord, prefix: str) -> str:
    """Offset and metadata; the older texts know no more of a commit."""
    assert record.value is not None
    metadata = record.value["metadata"]
    return f"{record.value['offset']}{prefix}{metadata}" if metadata else str(record.value["offset"])


def members_text(record: CoordinatorRecord) -> list[str]:
    """The assignment of each member as the texts before 3.8 have it."""
    assert record.value is not None
    is_consumer = record.value["protocol_type"] == "consumer"
    texts = []
    for member in record.value["members"]:
        text = hexadecimal(member["assignment"])
        if is_consumer:
            assignment = read_assignment(member["assignment"])
            partitions = [
                f"{part['topic']}-{number}"
                for part in assignment["assignedPartitions"]
                for number in part["partitions"]
            ]
            user_data = hexadecimal(base64.b64decode(assignment["userData"] or ""))
            text = f"[{', '.join(partitions)}]" + (f":{user_data}" if user_data else "")
        texts.append(f"{member['member_id']}={text}")
    return texts


def hexadecimal(data: bytes) -> str:
    """Bytes as one number, as the tool prints them: without leading zeros."""
    return f"{int.from_bytes(data):X}" if data else ""


def is_arrangement(text: str, pieces: list[str]) -> bool:
    """Whether a text is these pieces in some order, joined by commas: members stand in hash order."""
    if not pieces:
        return text == ""
    return any(
        text == piece
        if len(pieces) == 1
        else text.startswith(f"{piece},") and is_arrangement(text[len(piece) + 1 :], pieces[:i] + pieces[i + 1 :])
        for i, piece in enumerate(pieces)
    )


def check_assignment(text: str, record: CoordinatorRecord, where: str) -> None:
    assert (text[0], text[-1]) == ("{", "}"), where
    assert is_arrangement(text[1:-1], members_text(record)), f"{where}: {text} is not {members_text(record)}"


def check_raw(dumped: DumpedRecord, raw: Record, record: CoordinatorRecord, where: str) -> None:
    """0.8.2: the bytes, read as UTF-8."""
    assert raw.key is not None
    assert dumped.key == decode_java_utf8(raw.key), where
    assert dumped.payload == ("null" if raw.value is None else decode_java_utf8(raw.value)), where


def check_colons(dumped: DumpedRecord, raw: Record, record: CoordinatorRecord, where: str) -> None:
    """0.9 – 1.1: keys as ``offset::group:topic:partition``; tombstones have neither key nor payload."""
    if record.value is None:
        assert (dumped.key, dumped.payload) == (None, None), where
        return
    if record.is_offset_commit:
        assert dumped.key == f"offset::{record.group}:{record.key['topic']}:{record.key['partition']}", where
        assert dumped.payload == offset_text(record, ":"), where
        return
    assert dumped.key == f"metadata::{record.group}", where
    assert dumped.payload is not None
    protocol = "null" if record.value["protocol"] is None else record.value["protocol"]
    # These versions know the protocol type from the members only.
    protocol_type = record.value["protocol_type"] if record.value["members"] else ""
    head = f"{protocol_type}:{protocol}:{record.value['generation']}:"
    assert dumped.payload.startswith(head), where
    check_assignment(dumped.payload.removeprefix(head), record, where)


def check_metadata_json(dumped: DumpedRecord, record: CoordinatorRecord, where: str) -> None:
    """1.0 – 3.7: a group as JSON, the assignment inside as text."""
    assert record.value is not None
    assert dumped.payload is not None
    payload = json.loads(dumped.payload)
    check_assignment(payload.pop("assignment"), record, where)
    assert payload == {
        "protocolType": record.value["protocol_type"],
        "protocol": record.value["protocol"],
        "generationId": record.value["generation"],
    }, where


def check_1_1(dumped: DumpedRecord, raw: Record, record: CoordinatorRecord, where: str) -> None:
    """1.0 – 2.3: offsets as before, groups as JSON."""
    if record.value is None or record.is_offset_commit:
        check_colons(dumped, raw, record, where)
        return
    assert json.loads(dumped.key or "") == {"metadata": record.group}, where
    check_metadata_json(dumped, record, where)


def check_2_8(dumped: DumpedRecord, raw: Record, record: CoordinatorRecord, where: str) -> None:
    """2.4 – 3.7: ``offset_commit::group=…,partition=…``; types it does not know by their number only."""
    if record.record_type > 2:
        assert (dumped.key, dumped.payload) == (f"unknown::version={record.record_type}", None), where
        return
    if record.is_offset_commit:
        partition = f"{record.key['topic']}-{record.key['partition']}"
        assert dumped.key == f"offset_commit::group={record.group},partition={partition}", where
    else:
        assert dumped.key == f"group_metadata::group={record.group}", where
    if record.value is None:
        assert dumped.payload == "<DELETE>", where
    elif record.is_offset_commit:
        assert dumped.payload == f"offset={offset_text(record, ',metadata=')}", where
    else:
        check_metadata_json(dumped, record, where)


def check_json(dumped: DumpedRecord, raw: Record, record: CoordinatorRecord, where: str) -> None:
    """3.8 and later: everything, as JSON."""
    assert split_json_text(dumped.key, dumped.payload) == json_form(record), where


TEXTS = {
    (0, 8): check_raw,
    (0, 10): check_colons,
    (0, 11): check_colons,
    (1, 1): check_1_1,
    (2, 8): check_2_8,
    (3, 7): check_2_8,
    (3, 9): check_json,
    (4, 3): check_json,
    (4, 4): check_json,
}


# ------------------------------------------------------------------ the members' own bytes, read a second way


class Reader:
    """Big-endian numbers, strings and arrays of the consumer protocol."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def number(self, form: str) -> int:
        (value,) = struct.unpack_from(f">{form}", self.data, self.at)
        self.at += struct.calcsize(form)
        return int(value)

    def take(self, size: int) -> bytes:
        assert 0 <= size <= len(self.data) - self.at
        self.at += size
        return self.data[self.at - size : self.at]

    def string(self) -> str | None:
        size = self.number("h")
        return None if size < 0 else self.take(size).decode()

    def bytes(self) -> str | None:
        size = self.number("i")
        return None if size < 0 else base64.b64encode(self.take(size)).decode()

    def array(self, element: Callable[[], Any]) -> list[Any]:
        return [element() for _ in range(self.number("i"))]

    def topic_partitions(self) -> dict[str, Any]:
        return {"topic": self.string(), "partitions": self.array(lambda: self.number("i"))}


def read_subscription(data: bytes) -> dict[str, Any]:
    reader = Reader(data)
    version = reader.number("h")
    json: dict[str, Any] = {"topics": reader.array(reader.string), "userData": reader.bytes()}
    if version >= 1:
        json["ownedPartitions"] = reader.array(reader.topic_partitions)
    if version >= 2:
        json["generationId"] = reader.number("i")
    if version >= 3:
        json["rackId"] = reader.string()
    return json


def read_assignment(data: bytes) -> dict[str, Any]:
    reader = Reader(data)
    reader.number("h")
    return {"assignedPartitions": reader.array(reader.topic_partitions), "userData": reader.bytes()}


def expanded(read: Callable[[bytes], dict[str, Any]], encoded: str) -> Any:
    """JSON of the members' bytes, or the base64 text as it is where they are something else."""
    try:
        return read(base64.b64decode(encoded))
    except (struct.error, AssertionError):
        return encoded
