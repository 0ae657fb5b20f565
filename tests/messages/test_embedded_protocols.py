"""Embedded data of Connect, Kafka Streams and the Schema Registry: old versions, missing fields, hostile bytes."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest

from offsets_log.errors import CorruptRecordError
from offsets_log.messages import connect_protocol as connect
from offsets_log.messages import streams_protocol as streams
from offsets_log.messages.consumer_protocol import encode_embedded
from offsets_log.messages.embedded import expand_assignment, expand_subscription

CONNECT_ROW = bytes.fromhex("00000001 0001 63 00000002 ffffffff 00000000")
CONNECT_HEAD = bytes.fromhex("0000 0001 6c 0001 75 0000000000000009")
CONNECT_JSON = {
    "version": 1,
    "error": 0,
    "leader": "l",
    "leader_url": "u",
    "config_offset": 9,
    "connectors": [],
    "tasks": [],
    "revoked_connectors": [],
    "revoked_tasks": [],
    "scheduled_delay": 0,
}


@pytest.mark.parametrize(
    ("tail", "more"),
    [
        (b"", {}),
        (b"\xff\xff\xff\xff", {}),
        (CONNECT_ROW, {"connectors": ["c"], "tasks": [["c", 0]]}),
        (CONNECT_ROW + b"\xff\xff\xff\xff", {"connectors": ["c"], "tasks": [["c", 0]]}),
        (b"\xff\xff\xff\xff" + CONNECT_ROW, {"revoked_connectors": ["c"], "revoked_tasks": [["c", 0]]}),
        (b"\xff\xff\xff\xff" * 2 + b"\0\0\0\x05", {"scheduled_delay": 5}),
    ],
)
def test_connect_assignment_may_lack_its_last_fields(tail: bytes, more: dict[str, Any]) -> None:
    raw = b"\0\1" + CONNECT_HEAD + tail
    assert encode_embedded(connect.decode_assignment(raw)) == raw
    assert expand_assignment("connect", "compatible", raw) == CONNECT_JSON | more


def test_connect_assignment_version_0_may_not() -> None:
    with pytest.raises(CorruptRecordError, match="cut off"):
        connect.decode_assignment(b"\0\0" + CONNECT_HEAD)


@pytest.mark.parametrize(
    ("name", "may_be_last"),
    [
        ("error", False), ("leader", False), ("leader_url", False), ("config_offset", False),
        ("assignment", True), ("revoked", True), ("delay", True),
    ],
)  # fmt: skip
def test_connect_assignment_is_built_without_its_last_fields_and_with_no_hole(name: str, may_be_last: bool) -> None:
    raw = b"\0\1" + CONNECT_HEAD + CONNECT_ROW * 2 + b"\0\0\0\5"
    message = connect.decode_assignment(raw)
    whole = dict(message.fields)
    names = list(whole)
    for row in names[names.index(name) :]:
        del message.fields[row]
    if may_be_last:
        short = encode_embedded(message)
        assert raw.startswith(short)
        assert connect.decode_assignment(short).fields == message.fields
    else:
        with pytest.raises(CorruptRecordError, match="missing"):
            encode_embedded(message)
    message.fields.clear()
    message.fields.update({row: value for row, value in whole.items() if row != name})
    if name != names[-1]:
        with pytest.raises(CorruptRecordError, match="missing"):
            encode_embedded(message)


@pytest.mark.parametrize(
    ("allocation", "assignment"),
    [
        (b"", None),
        (b"\xff\xff\xff\xff", None),
        (b"\0\0\0\x02\0\x01", {"error": "field subscription.allocation.error: it is cut off (byte 0 of 0)"}),
    ],
)
def test_connect_metadata_without_a_readable_allocation(allocation: bytes, assignment: Any) -> None:
    raw = bytes.fromhex("0001 0001 75 0000000000000009") + allocation
    assert encode_embedded(connect.decode_metadata(raw)) == raw
    expanded = expand_subscription("connect", "compatible", raw)
    assert expanded == {"url": "u", "config_offset": 9, "assignment": assignment}


# --------------------------------------------------------------------------------------------- streams

PROCESS_ID = bytes(range(16))
PROCESS_TEXT = "00010203-0405-0607-0809-0a0b0c0d0e0f"
TASKS = bytes.fromhex("00000002 00000000 00000003 00000001 00000004")
STANDBY = bytes.fromhex("00000001 00000002 00000005 00000002 0001 74 00000001 0001 74 00000000")
HOSTS = bytes.fromhex("00000002 0001 68 00000050 00000001 0001 74 00000003 0001 67 00000009 00000000")
LATEST = b"\0\0\0\x0b"


@pytest.mark.parametrize("version", range(1, 7))
def test_streams_subscription_of_old_versions(version: int) -> None:
    raw = struct.pack(">i", version) + LATEST * (version >= 3) + PROCESS_ID + TASKS + bytes(4)
    expected: dict[str, Any] = {"version": version, "process_id": PROCESS_TEXT, "prev_tasks": ["0_3", "1_4"]}
    expected |= {"standby_tasks": []} | ({"latest_supported_version": 11} if version >= 3 else {})
    if version >= 2:
        raw += b"\0\0\0\x03h:1"
        expected["user_end_point"] = "h:1"
    message = streams.decode_subscription_info(raw)
    assert encode_embedded(message) == raw
    assert streams.subscription_info_json(message) == expected


@pytest.mark.parametrize("version", range(1, 5))
def test_streams_assignment_of_old_versions(version: int) -> None:
    raw = struct.pack(">i", version) + LATEST * (version >= 3) + TASKS + STANDBY
    expected: dict[str, Any] = {"version": version, "active_tasks": ["0_3", "1_4"]}
    expected |= {"standby_tasks": {"2_5": [["t", 0], ["t", 1]]}}
    if version >= 2:
        raw += HOSTS
        expected["partitions_by_host"] = [
            {"host": "g", "port": 9, "partitions": []},
            {"host": "h", "port": 80, "partitions": [["t", 3]]},
        ]
    if version >= 3:
        expected["commonly_supported_version"] = 11
    if version >= 4:
        raw += b"\0\0\0\x02"
        expected["err_code"] = 2
    message = streams.decode_assignment_info(raw)
    assert encode_embedded(message) == raw
    assert streams.assignment_info_json(message) == expected


def test_streams_named_topology() -> None:
    name = "top😀".encode("utf-16-be")
    task = bytes.fromhex("00000000 00000003 00000005") + name
    raw = b"\0\0\0\x0a" + LATEST + b"\0\0\0\1" + task + bytes(4 * 5) + bytes(8)
    message = streams.decode_assignment_info(raw)
    assert encode_embedded(message) == raw
    assert streams.assignment_info_json(message)["active_tasks"] == ["top😀__0_3"]
    sums = bytes.fromhex("00000001 00000000 00000003 0000000000000007 0003 746f70")
    raw = b"\0\0\0\x0a" + LATEST + PROCESS_ID + bytes(4) + sums + bytes(5)
    message = streams.decode_subscription_info(raw)
    assert encode_embedded(message) == raw
    assert streams.subscription_info_json(message)["task_offset_sums"] == {"top__0_3": 7}


@pytest.mark.parametrize("text", ["", "a\0b", "größe", "团队", "😀x😀", "\x7f\x80\u07ff\u0800\uffff"])
def test_modified_utf8(text: str) -> None:
    raw = streams.encode_modified_utf8(text)
    assert streams.decode_modified_utf8(raw) == text
    assert len(raw) == sum(1 if 0 < unit < 0x80 else 2 if unit < 0x800 else 3 for unit in utf16(text))


def utf16(text: str) -> list[int]:
    return [unit for (unit,) in struct.iter_unpack(">H", text.encode("utf-16-be"))]


@pytest.mark.parametrize(
    "raw", [b"\0", "😀".encode(), b"\xed\xa0\xbd", b"\xed\xb8\x80\xed\xa0\xbd", b"\xc1\x81", b"\xe2\x82"]
)
def test_what_write_utf_does_not_write_is_refused(raw: bytes) -> None:
    with pytest.raises(UnicodeError):
        streams.decode_modified_utf8(raw)
    host = b"\0\0\0\x02" + bytes(8) + b"\0\0\0\1" + struct.pack(">H", len(raw)) + raw + bytes(8)
    with pytest.raises(CorruptRecordError, match="not text") as caught:
        streams.decode_assignment_info(host)
    assert caught.value.field == "user_data.partitions_by_host[0].host"


def test_streams_topic_dictionary_is_checked() -> None:
    def assignment(topic: bytes, index: int) -> bytes:
        dictionary = b"\0\0\0\1\0\0\0\7" + struct.pack(">H", len(topic)) + topic
        hosts = bytes.fromhex("00000001 0001 68 00000050 00000001") + struct.pack(">ii", index, 3)
        return b"\0\0\0\x05" + LATEST + bytes(8) + dictionary + hosts + bytes(4)

    good = streams.assignment_info_json(streams.decode_assignment_info(assignment(b"t" * 249, 7)))
    assert good["partitions_by_host"] == [{"host": "h", "port": 80, "partitions": [["t" * 249, 3]]}]
    for topic, index, problem in ((b"t", 8, "no topic has number 8"), (b"t" * 250, 7, "250 letters")):
        with pytest.raises(CorruptRecordError, match=problem):
            streams.decode_assignment_info(assignment(topic, index))


# --------------------------------------------------------------------------- which decoder, and failures

IDENTITY = {"version": 1, "host": "größe", "port": 8081, "master_eligibility": True, "scheme": "http"}


def test_schema_registry() -> None:
    assert expand_subscription("sr", "v0", json.dumps(IDENTITY).encode()) == IDENTITY
    assignment = {"version": 1, "error": 0, "master": "sr-1", "master_identity": IDENTITY}
    assert expand_assignment("sr", "v0", json.dumps(assignment, ensure_ascii=False).encode()) == assignment


@pytest.mark.parametrize(
    "text",
    [b"{", b"7", b"\xff", b'{"a":NaN}', b'{"a":1e999}', b'{"a":"\\ud800"}', b"[" * 9999, b'{"a":' + b"9" * 5000 + b"}"],
)
def test_schema_registry_text_that_is_no_answer(text: bytes) -> None:
    assert list(expand_subscription("sr", "v0", text) or ()) == ["error"]


@pytest.mark.parametrize(("count", "is_read"), [(100, True), (101, False)])
def test_schema_registry_text_has_at_most_100_brackets(count: int, is_read: bool) -> None:
    """Python's parser goes as deep as they are."""
    nested = {"a": json.loads("[" * (count - 1) + "]" * (count - 1))}
    found = expand_subscription("sr", "v0", json.dumps(nested).encode())
    assert (found == nested) == is_read
