"""Turn keys and values that kafka-dump-log printed back to bytes, with one function for each form.

0.9 – 2.3     ``offset::group:topic:partition`` and ``123:metadata``; tombstones without key and payload
0.9 – 0.11    ``metadata::group`` and ``type:protocol:generation:{member=[topic-0]}``
1.0 – 2.3     ``{"metadata":"group"}`` and JSON
2.4 – 3.7     ``offset_commit::group=g,partition=topic-0`` and ``offset=1,metadata=m``
2.4 – 3.7     ``group_metadata::group=g`` and JSON
3.8 and on    Kafka's JSON with types and versions as text, ``<DELETE>`` for a tombstone
any           the bytes themselves as UTF-8, where --offsets-decoder was not given

The contents are not escaped, so a text has several readings. The one is taken whose bytes have the printed sizes of key
and value.

References: ``GroupMetadataManager.formatRecordKeyAndValue``, ``DumpLogSegments.OffsetsMessageParser``,
``CoordinatorRecordMessageParser``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from offsets_log.dumps.json_text import parse
from offsets_log.dumps.kafka_json import UnknownFields, record_bytes
from offsets_log.errors import CorruptBatchError, CorruptRecordError, OffsetsLogError, UnsupportedError
from offsets_log.log_format.java_text import REPLACEMENT
from offsets_log.messages.consumer_protocol import (
    CONSUMER_PROTOCOL_ASSIGNMENT,
    CONSUMER_PROTOCOL_SUBSCRIPTION,
    Embedded,
    encode_embedded,
)
from offsets_log.messages.registry import CoordinatorRecord, encode_coordinator_record


class NotTold(UnsupportedError):
    """Kafka wrote a record there, but the text does not hold its contents."""


class LeftOut(NotTold):
    """Batches that lie between others are not in the text."""


class KeylessTombstone(NotTold):
    """A tombstone printed before 2.4: the tool prints no key beside a null value."""


def records_untold(seen: int, count: int, *, is_control: bool) -> OffsetsLogError:
    """Return the error of a batch of which the text has fewer records than it had."""
    if seen:
        return CorruptBatchError(f"{count - seen} of its {count} records are not in the text")
    if is_control:
        return NotTold("a transaction marker; whether it commits or aborts, --skip-record-metadata leaves out")
    return NotTold("its records are not in the text; kafka-dump-log prints them with --offsets-decoder")


UNTOLD_OF_COMMITS = frozenset(
    {
        "commit_timestamp_ms", "leader_epoch", "expire_timestamp_ms", "topic_id", "value_version",
        "commitTimestamp", "leaderEpoch", "expireTimestamp",
    }
)  # fmt: skip
"""Columns, and fields of Kafka's JSON, that the text of an offset commit lacks."""
UNTOLD_OF_GROUPS = frozenset(
    {
        "leader", "current_state_timestamp_ms", "client_id", "host", "group_instance_id", "rack_id",
        "session_timeout_ms", "rebalance_timeout_ms", "subscribed_topics", "subscription_base64", "assignment_base64",
        "value_version",
        "currentStateTimestamp", "clientId", "clientHost", "groupInstanceId", "rebalanceTimeout", "sessionTimeout",
        "subscription",
    }
)  # fmt: skip
UNTOLD_OF_EXPANDED = frozenset({"assignment_base64"})
"""The column lost with a consumer's assignment: it is printed without its version."""

COMMIT_SIZES = {24: 3, 28: 1, 20: 2}
"""Bytes of an offset commit's value besides its metadata → its version; version 0 has the fields of version 2."""
GROUP_VALUE_VERSION = 3
DELETED = "<DELETE>"
MAX_SPLITS = 20
MEMBER = re.compile(r"(?P<member>.+?)=\[(?P<partitions>.*?)\](?::(?P<user_data>[0-9A-F]*))?(?:,(?=.+?=\[)|$)")
OTHER_MEMBER = re.compile(r"(?P<member>.+?)=[0-9A-F]*(?:,|$)")


Told = tuple[bytes, bytes | None, frozenset[str]]
"""Key, value, and the columns that the text does not have."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Printed sizes of key and value in bytes; −1 for null, None where they are not printed."""

    key: int | None
    value: int | None

    def check(self, told: Told, text: str) -> None:
        """Raise CorruptRecordError if the bytes do not have these sizes.

        Sizes are not compared for text that was not UTF-8.
        """
        key, value, missing_columns = told
        if REPLACEMENT in text:
            return
        for name, size, data in (("key", self.key, key), ("value", self.value, value)):
            is_whole = name == "key" or data is None or not missing_columns >= UNTOLD_OF_GROUPS
            if is_whole and size is not None and size != (-1 if data is None else len(data)):
                found = "null" if data is None else f"{len(data)} bytes"
                raise CorruptRecordError(
                    f"the {name} had {size} bytes, what is printed of it makes {found}", field=name
                )

    def check_room(self, found: UnknownFields, text: str) -> None:
        """Raise CorruptRecordError if these sizes leave no room for what is not known of the value."""
        size = len(found.value or b"")
        if self.value is not None and self.value <= size and REPLACEMENT not in text:
            raise CorruptRecordError(
                f"the value had {self.value} bytes, what is known of it makes {size}", field="value"
            )


Form = Callable[[str, str | None, Sizes], Told]


def coordinator_bytes(text: str | None, sizes: Sizes, record_offset: int | None) -> Told:
    """Return key, value and missing columns from a line's text from ``key: `` on.

    Args:
        text: None if the line has no key.
        record_offset: for the errors.

    Raises:
        NotTold: the text does not hold them.
        UnknownFields: it holds more of the value than is known.
        CorruptRecordError: they make no sense.
    """
    if text is None:
        if sizes.value == -1:
            raise KeylessTombstone("a tombstone of which the tool has printed no key", record_offset=record_offset)
        raise NotTold("a record of which the tool has printed no key", record_offset=record_offset)
    error: OffsetsLogError | None = None
    for key, payload in _splits(text):
        try:
            told = _told(key, payload, sizes, text)
        except OffsetsLogError as problem:
            error = error or problem
            continue
        if isinstance(told, UnknownFields):
            raise told.at(record_offset=record_offset)
        return told
    assert error is not None
    raise error.at(record_offset=record_offset)


def _told(key: str, payload: str | None, sizes: Sizes, text: str) -> Told | UnknownFields:
    """Return what one reading of a text tells. Raises OffsetsLogError if the reading is wrong."""
    form = next(form for beginning, form in FORMS if key.startswith(beginning))
    try:
        told = form(key, payload, sizes)
    except UnknownFields as found:
        sizes.check_room(found, text)
        return found
    sizes.check(told, text)
    return told


def _splits(text: str) -> Iterator[tuple[str, str | None]]:
    """Yield (key, payload) for each place where the payload may begin; a group's name may hold ``payload: `` too."""
    text = text.removeprefix("key: ")
    at = text.find(" payload: ")
    if at < 0:
        yield text, None
    for _ in range(MAX_SPLITS):
        if at < 0:
            return
        yield text[:at], text[at + len(" payload: ") :]
        at = text.find(" payload: ", at + 1)


# ------------------------------------------------------------------------------------------- 3.8 and on


def _from_json(key: str, payload: str | None, sizes: Sizes) -> Told:
    told = parse_json(key, "key")
    value = None if payload in (None, DELETED) else parse_json(payload or "", "value")
    if payload is None:
        raise CorruptRecordError("it has a key and no payload")
    if not isinstance(told, dict) or not isinstance(value, dict | None):
        raise CorruptRecordError("it is no JSON object")
    version, data = (None, None) if value is None else (value.get("version"), value.get("data"))
    if value is not None and data is None:
        raise CorruptRecordError("the value has no data", field="value")
    key_bytes, value_bytes = record_bytes(told.get("type"), told.get("data"), version, data)
    is_expanded = isinstance(data, dict) and data.get("protocolType") == "consumer"
    return key_bytes, value_bytes, UNTOLD_OF_EXPANDED if is_expanded else frozenset()


def parse_json(text: str, root: str) -> Any:
    """Parse a JSON text. Raises CorruptRecordError."""
    try:
        return parse(text)
    except (ValueError, RecursionError) as error:
        raise CorruptRecordError(f"it is no JSON: {error}", field=root) from None


# ------------------------------------------------------------------------------------------- offsets


def _offset_colons(key: str, payload: str | None, sizes: Sizes) -> Told:
    """Read ``offset::group:topic:partition``: a group may hold colons, a topic may not."""
    parts = key.removeprefix("offset::").rsplit(":", 2)
    if len(parts) != 3:
        raise CorruptRecordError("it does not tell group, topic and partition", field="key")
    if payload is None:
        raise NotTold("an offset of which the tool has printed no value")
    group, topic, partition = parts
    offset, _, metadata = payload.partition(":")
    return _commit(group, topic, partition, offset, metadata, sizes)


def _offset_commit(key: str, payload: str | None, sizes: Sizes) -> Told:
    """Read ``offset_commit::group=g,partition=topic-0``: a group may hold commas, a topic may not."""
    group, comma, topic_partition = key.removeprefix("offset_commit::group=").rpartition(",partition=")
    topic, dash, partition = topic_partition.rpartition("-")
    if not comma or not dash:
        raise CorruptRecordError("it does not tell group, topic and partition", field="key")
    if payload == DELETED:
        return _commit(group, topic, partition, None, "", sizes)
    if payload is None or not payload.startswith("offset="):
        raise CorruptRecordError("it does not tell the offset", field="value")
    offset, _, metadata = payload.removeprefix("offset=").partition(",metadata=")
    return _commit(group, topic, partition, offset, metadata, sizes)


def _commit(group: str, topic: str, partition: str, offset: str | None, metadata: str, sizes: Sizes) -> Told:
    key = {"group": group, "topic": topic, "partition": _int(partition, "partition")}
    if offset is None:
        made = CoordinatorRecord(record_type=1, key=key)
        return *encode_coordinator_record(made), frozenset()
    around = -1 if sizes.value is None else sizes.value - len(metadata.encode(errors="replace"))
    version = COMMIT_SIZES.get(around, 3)
    value = {
        "offset": _int(offset, "offset"), "leader_epoch": -1, "metadata": metadata, "commit_timestamp": -1,
        "expire_timestamp": -1,
    }  # fmt: skip
    made = CoordinatorRecord(record_type=1, key=key, value_version=version, value=value)
    return *encode_coordinator_record(made), UNTOLD_OF_COMMITS


def _int(text: str, name: str) -> int:
    if not re.fullmatch(r"-?\d{1,19}", text):
        raise CorruptRecordError(f"the {name} is {text[:40]!r}, no number")
    return int(text)


# -------------------------------------------------------------------------------------------- groups


def _group_colons(key: str, payload: str | None, sizes: Sizes) -> Told:
    if payload is None:
        raise NotTold("a group of which the tool has printed no value")
    head, brace, assignment = payload.partition(":{")
    parts = head.rsplit(":", 2) if head.count(":") >= 2 else []
    if not brace or len(parts) != 3:
        raise CorruptRecordError("it does not tell protocol and generation", field="value")
    protocol_type, protocol, generation = parts
    protocol_name = None if protocol == "null" else protocol
    group = key.removeprefix("metadata::")
    key_bytes, value, missing_columns = _group(group, protocol_type, protocol_name, generation, "{" + assignment)
    # Up to 0.11 the tool prints no protocol type for an Empty group, even if the record has one.
    return key_bytes, value, missing_columns if protocol_type else missing_columns | {"protocol_type", "protocolType"}


def _group_in_json(key: str, payload: str | None, sizes: Sizes) -> Told:
    told = parse_json(key, "key")
    return _group_payload(told.get("metadata") if isinstance(told, dict) else None, payload)


def _group_metadata(key: str, payload: str | None, sizes: Sizes) -> Told:
    return _group_payload(key.removeprefix("group_metadata::group="), payload)


def _group_payload(group: object, payload: str | None) -> Told:
    if not isinstance(group, str):
        raise CorruptRecordError("it does not tell the group", field="key")
    if payload == DELETED:
        made = CoordinatorRecord(record_type=2, key={"group": group})
        return *encode_coordinator_record(made), frozenset()
    told = parse_json(payload or "", "value")
    if not isinstance(told, dict):
        raise CorruptRecordError("it is no JSON object", field="value")
    generation = str(told.get("generationId"))
    return _group(group, told.get("protocolType"), told.get("protocol"), generation, told.get("assignment"))


def _group(group: str, protocol_type: Any, protocol: Any, generation: str, assignment: Any) -> Told:
    """Build what every text before 3.8 contains of a group."""
    if not isinstance(protocol_type, str | None) or not isinstance(protocol, str | None):
        raise CorruptRecordError("the protocol is no text", field="value")
    value = {
        "protocol_type": protocol_type or "",
        "generation": _int(generation, "generation"),
        "protocol": protocol,
        "leader": None,
        "current_state_timestamp": -1,
        "members": list(_members(protocol_type, assignment)),
    }
    made = CoordinatorRecord(record_type=2, key={"group": group}, value_version=GROUP_VALUE_VERSION, value=value)
    return *encode_coordinator_record(made), UNTOLD_OF_GROUPS


def _members(protocol_type: str | None, assignment: object) -> Iterator[dict[str, Any]]:
    if not isinstance(assignment, str) or assignment[:1] != "{" or assignment[-1:] != "}":
        raise CorruptRecordError("it tells no assignment", field="value")
    text, at = assignment[1:-1], 0
    subscription = encode_embedded(Embedded(CONSUMER_PROTOCOL_SUBSCRIPTION, 0, {"topics": [], "user_data": None}))
    while at < len(text):
        if protocol_type == "consumer":
            found = MEMBER.match(text, at)
            data = None if found is None else _assignment(found["partitions"], found["user_data"])
        else:
            found = OTHER_MEMBER.match(text, at)
            data = b""  # printed as one number, without leading zeros
        if found is None or data is None:
            raise CorruptRecordError(f"the assignment is not readable from {text[at : at + 40]!r} on", field="value")
        at = found.end()
        yield {
            "member_id": found["member"],
            "group_instance_id": None,
            "client_id": "",
            "client_host": "",
            "rebalance_timeout": 0,
            "session_timeout": 0,
            "subscription": subscription if protocol_type == "consumer" else b"",
            "assignment": data,
        }


def _assignment(partitions: str, user_data: str | None) -> bytes:
    topics: dict[str, list[int]] = {}
    for name in partitions.split(", ") if partitions else []:
        topic, dash, number = name.rpartition("-")
        if not dash:
            raise CorruptRecordError(f"{name[:40]!r} is no partition", field="value")
        topics.setdefault(topic, []).append(_int(number, "partition"))
    rows = [{"topic": topic, "partitions": numbers} for topic, numbers in topics.items()]
    return encode_embedded(
        Embedded(CONSUMER_PROTOCOL_ASSIGNMENT, 0, {"assigned_partitions": rows, "user_data": None}), "assignment"
    )


# --------------------------------------------------------------------------------- neither of these


def _not_decoded(key: str, payload: str | None, sizes: Sizes) -> Told:
    raise NotTold(f"a record the tool did not decode: {key[:200]}")


def _raw(key: str, payload: str | None, sizes: Sizes) -> Told:
    """Return bytes that the tool printed as UTF-8; their number shows whether all of them were valid."""
    data = key.encode(errors="replace")
    value = None if sizes.value == -1 else (payload or "").encode(errors="replace")
    if (
        sizes.key != len(data)
        or sizes.value != (-1 if value is None else len(value))
        or REPLACEMENT in key + (payload or "")
    ):
        raise NotTold("bytes printed as text, which loses some; kafka-dump-log prints all with --offsets-decoder")
    return data, value, frozenset()


FORMS: tuple[tuple[str, Form], ...] = (
    ('{"type":', _from_json),
    ("offset_commit::group=", _offset_commit),
    ("group_metadata::group=", _group_metadata),
    ("offset::", _offset_colons),
    ("metadata::", _group_colons),
    ('{"metadata":', _group_in_json),
    ("unknown::", _not_decoded),
    ("Unknown record type ", _not_decoded),
    ("Error at offset ", _not_decoded),
    ("", _raw),
)
"""Beginning of a key → how it is read; the first match counts."""
