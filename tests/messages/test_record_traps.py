"""Keys and values whose wire format has a trap: what Kafka's own classes do not write, or not any more."""

from __future__ import annotations

from typing import Any

import pytest

from offsets_log.errors import CorruptRecordError, UnknownRecordTypeError, UnsupportedVersionError
from offsets_log.log_format.java_text import MalformedString, decode_java_utf8
from offsets_log.log_format.primitives import ZERO_UUID, build
from offsets_log.messages.message_struct import UNKNOWN_TAGS
from offsets_log.messages.registry import (
    RECORD_TYPES,
    decode_coordinator_record,
    decode_value,
    encode_coordinator_record,
)
from tests.conftest import VECTORS, read_json_lines
from tests.messages.test_record_vectors import key_and_value, values_of
from tests.messages.test_sized_fields import uvarint

GROUP = b"\x00\x01g"
COMMIT_KEY = b"\x00\x01" + GROUP + b"\x00\x01t" + b"\x00\x00\x00\x03"


def member_key(number: int) -> bytes:
    return number.to_bytes(2) + GROUP + b"\x00\x01m"


def group_key(number: int) -> bytes:
    return number.to_bytes(2) + GROUP


def value_of(key: bytes, value: bytes) -> dict[str, Any]:
    """Decode a value, insist that it is built again, and give it."""
    record = decode_coordinator_record(key, value)
    assert encode_coordinator_record(record) == (key, value)
    assert record.value is not None
    return record.value


class TestTaggedArraysWhoseDefaultKafkaCallsNull:
    """Kafka's class holds an empty list for them: null is written, empty is not."""

    EPOCHS = bytes.fromhex("0000 00000007 00000006")

    def test_epochs_of_a_consumer_groups_member(self) -> None:
        topic = bytes(range(16)) + bytes.fromhex("02 00000001")
        missing = value_of(member_key(8), self.EPOCHS + b"\x00" + b"\x02" + topic + b"\x00" + b"\x01" + b"\x00")
        null = value_of(
            member_key(8), self.EPOCHS + b"\x00" + b"\x02" + topic + b"\x01\x00\x01\x00" + b"\x01" + b"\x00"
        )
        assert missing["assigned_partitions"][0]["assignment_epochs"] == []
        assert null["assigned_partitions"][0]["assignment_epochs"] is None

    def test_epochs_of_a_streams_groups_member(self) -> None:
        task = bytes.fromhex("0273 02 00000001")
        end = b"\x01" * 5 + b"\x00"
        missing = value_of(member_key(22), self.EPOCHS + b"\x01" + b"\x02" + task + b"\x00" + end)
        null = value_of(member_key(22), self.EPOCHS + b"\x01" + b"\x02" + task + b"\x01\x00\x01\x00" + end)
        assert missing["active_tasks"][0]["assignment_epochs"] == []
        assert null["active_tasks"][0]["assignment_epochs"] is None

    def test_configs_of_a_streams_group(self) -> None:
        head = bytes.fromhex("0000 00000007 0000000000000001")
        assert value_of(group_key(17), head + b"\x00")["last_assignment_configs"] == []
        assert value_of(group_key(17), head + b"\x01\x01\x01\x00")["last_assignment_configs"] is None


class TestNullableStructs:
    """A plain one has an int8 in front, a tagged one a uvarint."""

    BEFORE = bytes.fromhex("0000 00 00 0263 0268 00000064 00000001 0270")

    @pytest.mark.parametrize(
        ("wire", "endpoint"),
        [
            ("ff", None),
            ("01 0268 2328 00", {"host": "h", "port": 9000}),
            ("01 01 ffff 00", {"host": "", "port": 65535}),
        ],
    )
    def test_endpoint_of_a_streams_member(self, wire: str, endpoint: dict[str, Any] | None) -> None:
        value = value_of(member_key(19), self.BEFORE + bytes.fromhex(wire) + b"\x01\x00")
        assert value["user_endpoint"] == endpoint

    def test_any_negative_marker_is_null(self) -> None:
        record = decode_coordinator_record(member_key(19), self.BEFORE + b"\x80\x01\x00")
        assert record.value is not None
        assert record.value["user_endpoint"] is None

    @pytest.mark.parametrize(
        ("tags", "classic"),
        [
            ("00", {"session_timeout_ms": 0, "supported_protocols": []}),
            ("01 00 01 00", None),
            ("01 00 07 01 00000001 01 00", {"session_timeout_ms": 1, "supported_protocols": []}),
            (
                "01 00 0d 01 00000001 02 0272 0361 62 00 00",
                {"session_timeout_ms": 1, "supported_protocols": [{"name": "r", "metadata": b"ab"}]},
            ),
        ],
    )
    def test_classic_metadata_of_a_consumer_groups_member(self, tags: str, classic: dict[str, Any] | None) -> None:
        before = bytes.fromhex("0000 00 00 0263 0268 01 00 ffffffff 00")
        value = value_of(member_key(5), before + bytes.fromhex(tags))
        assert value["classic_member_metadata"] == classic


@pytest.mark.parametrize("number", [4, 5, 7, 8])
def test_layouts_of_3_7_under_version_0(number: int) -> None:
    later, of_3_7 = RECORD_TYPES[number].values
    lines = values_of("3.7.2", number)
    for line in lines:
        key, value = key_and_value(line)
        assert decode_coordinator_record(key, value, (3, 7)).layout is of_3_7
        assert decode_coordinator_record(key, value).layout is of_3_7
        # The release is a hint: bytes that do not fit it are read as what they are.
        assert decode_coordinator_record(key, value, (4, 3)).value_json() == line["value_json"]
    for line in values_of("4.3.0", number):
        key, value = key_and_value(line)
        assert decode_coordinator_record(key, value).layout is later
        assert decode_coordinator_record(key, value, (4, 3)).layout is later
    assert len(lines) > 5


def test_where_several_layouts_fit_that_of_the_release_is_taken() -> None:
    """``B-9``: as of 4.1 three empty lists and an empty tag 1, as of 4.0 two and a tag 1 of one byte."""
    value = bytes.fromhex("0000010101010100")
    _, fields, _, _ = decode_value(RECORD_TYPES[15], value)
    assert fields[UNKNOWN_TAGS] == [(1, b"")]
    for release in ((4, 1), (4, 3)):
        assert decode_value(RECORD_TYPES[15], value, release)[1] == fields
    _, fields, _, _ = decode_value(RECORD_TYPES[15], value, (4, 0))
    assert fields[UNKNOWN_TAGS] == [(1, b"\0")]


def test_a_release_without_a_layout_reads_none_of_another() -> None:
    """``B-9``: type 9 went with 4.0."""
    value = bytes.fromhex("00000100")
    assert decode_value(RECORD_TYPES[9], value, (4, 1))[1]["topics"] == []
    with pytest.raises(UnsupportedVersionError):
        decode_value(RECORD_TYPES[9], value, (4, 1), only_release=True)


def test_version_1_with_a_retention_has_no_leader_epoch() -> None:
    value = value_of(COMMIT_KEY, bytes.fromhex("0001 000000000000002a 0000 0000000000000064 00000000000000c8"))
    assert value == {"offset": 42, "metadata": "", "commit_timestamp": 100, "expire_timestamp": 200}


def test_version_1_may_have_no_expiry() -> None:
    value = value_of(COMMIT_KEY, bytes.fromhex("0001 000000000000002a 0000 0000000000000064 ffffffffffffffff"))
    assert value["expire_timestamp"] == -1


def test_version_4_leaves_out_the_zero_topic_id() -> None:
    """``records:P2``."""
    body = bytes.fromhex("0004 000000000000002a ffffffff 01 0000000000000064")
    assert value_of(COMMIT_KEY, body + b"\x00")["topic_id"] == ZERO_UUID
    assert value_of(COMMIT_KEY, body + b"\x01\x00\x10" + bytes(range(16)))["topic_id"] == bytes(range(16))


def test_unknown_tags_are_kept_wherever_they_stand() -> None:
    """``records:P3``."""
    topic = bytes(range(16)) + bytes.fromhex("01") + bytes.fromhex("02 03 01 aa 05 02 bbcc")
    value = bytes.fromhex("0000 02") + topic + bytes.fromhex("01 07 00")
    record = decode_coordinator_record(member_key(7), value)
    assert record.unknown_tags() == [
        ("value", 7, b""),
        ("value.topicPartitions[0]", 3, b"\xaa"),
        ("value.topicPartitions[0]", 5, b"\xbb\xcc"),
    ]
    assert encode_coordinator_record(record) == (member_key(7), value)
    assert record.value_json() == {"topicPartitions": [{"topicId": "AAECAwQFBgcICQoLDA0ODw", "partitions": []}]}


def test_unknown_tags_beside_a_known_one_keep_their_order() -> None:
    """Also one that stands there twice."""
    value = bytes.fromhex("0000 00000005 03 00 08 0000000000000001 09 01 ff 09 01 aa")
    record = decode_coordinator_record(group_key(3), value)
    assert record.unknown_tags() == [("value", 9, b"\xff"), ("value", 9, b"\xaa")]
    assert encode_coordinator_record(record) == (group_key(3), value)


@pytest.mark.parametrize("size", ["00", "07", "08", "09", "ff7f"])
def test_the_size_of_a_known_tag_is_not_looked_at(size: str) -> None:
    """``records:P6``: its own type tells how long it is, and what comes next."""
    record = decode_coordinator_record(
        group_key(3), bytes.fromhex(f"0000 00000005 02 00 {size} 0000000000000001 09 01 ff 00")
    )
    assert record.value is not None
    assert (record.value["epoch"], record.value["metadata_hash"]) == (5, 1)
    assert (record.unknown_tags(), record.value_trailing) == ([("value", 9, b"\xff")], b"\0")


@pytest.mark.parametrize("size", ["01", "7f"])
def test_the_size_of_an_unknown_tag_is_all_that_is_known(size: str) -> None:
    """``records:P3``, ``records:P6``."""
    with pytest.raises(CorruptRecordError):
        decode_coordinator_record(group_key(3), bytes.fromhex(f"0000 00000005 02 09 {size} ff ff 00 08 00"))


def test_trailing_bytes_are_kept() -> None:
    """``records:P4``: nothing is wrong with them."""
    key, value = COMMIT_KEY + b"\x01\x02", bytes.fromhex("0000 0000000000000001 0000 0000000000000002 090807")
    record = decode_coordinator_record(key, value)
    assert (record.key_trailing, record.value_trailing) == (b"\x01\x02", b"\x09\x08\x07")
    assert record.value == {"offset": 1, "metadata": "", "commit_timestamp": 2}
    assert encode_coordinator_record(record) == (key, value)


@pytest.mark.parametrize("value", [b"", b"\x00"])
def test_an_empty_value_is_no_tombstone(value: bytes) -> None:
    assert decode_coordinator_record(COMMIT_KEY, None).is_tombstone
    with pytest.raises(CorruptRecordError) as caught:
        decode_coordinator_record(COMMIT_KEY, value)
    assert caught.value.field == "value"


def test_a_tagged_field_that_is_not_given_is_written_as_its_default() -> None:
    """``records:P2``: a field that a later release adds changes nothing where nobody names it."""
    layout = RECORD_TYPES[3].values[0]
    tagged = [row.name for row in layout.fields_of(0) if row.tag is not None]
    assert tagged
    value = layout.zeros(0) | {"epoch": 7}
    bare = {name: part for name, part in value.items() if name not in tagged}
    for given in (bare, {**bare, UNKNOWN_TAGS: [(90, b"x")]}):
        assert build(layout.struct(0), given, "value") == build(layout.struct(0), value | given, "value")


@pytest.mark.parametrize("number", [-1, 18, max(RECORD_TYPES) + 1, 99, 1000, 32767, -32768])
def test_record_types_that_nobody_writes(number: int) -> None:
    """``records:Y5``: the type is told, of a tombstone too."""
    with pytest.raises(UnknownRecordTypeError, match=f"unknown record type {number}"):
        decode_coordinator_record(number.to_bytes(2, signed=True) + GROUP, b"\x00\x00")
    with pytest.raises(UnknownRecordTypeError, match=f"unknown record type {number}"):
        decode_coordinator_record(number.to_bytes(2, signed=True) + GROUP, None)


@pytest.mark.parametrize("version", [-1, 5, 99])
def test_value_versions_that_nobody_writes(version: int) -> None:
    with pytest.raises(UnsupportedVersionError, match=f"value version {version}"):
        decode_coordinator_record(COMMIT_KEY, version.to_bytes(2, signed=True) + bytes(30))


@pytest.mark.parametrize("key", [None, b"", b"\x00", b"\x00\x01", b"\x00\x02\x00\x05abc", b"\x00\x02\xff\xff"])
def test_keys_that_cannot_be(key: bytes | None) -> None:
    """``records:R2``: no key, and what is none."""
    with pytest.raises(CorruptRecordError) as caught:
        decode_coordinator_record(key, b"\x00\x00")
    assert (caught.value.field or "").startswith("key")


@pytest.mark.parametrize(
    ("version", "body"),
    [
        (0, "000000000000002a 0001 78 0000000000000064"),
        (1, "000000000000002a 0001 78 0000000000000064 00000000000000c8"),
        (2, "000000000000002a 0001 78 0000000000000064"),
        (3, "000000000000002a 00000007 0001 78 0000000000000064"),
        (4, "000000000000002a 00000007 0278 0000000000000064 00"),
    ],
)
def test_a_type_0_key_with_any_value_version(version: int, body: str) -> None:
    key = b"\x00\x00" + COMMIT_KEY[2:]
    value = version.to_bytes(2) + bytes.fromhex(body)
    record = decode_coordinator_record(key, value)
    assert (record.record_type, record.is_offset_commit, record.group, record.name) == (
        0,
        True,
        "g",
        "LegacyOffsetCommit",
    )
    assert encode_coordinator_record(record) == (key, value)
    same = decode_coordinator_record(COMMIT_KEY, value)
    assert (record.key, record.value) == (same.key, same.value)
    assert (same.value or {})["offset"] == 42


# -------------------------------------------------------------------------------------------- malformed text


def test_malformed_text_is_read_as_java_reads_it() -> None:
    lines = read_json_lines(VECTORS / "java-utf8.jsonl")
    assert len(lines) == 380
    for line in lines:
        assert decode_java_utf8(bytes.fromhex(line["hex"])) == line["text"], line["hex"]
    # Python's own replacement is not Java's.
    assert any(bytes.fromhex(line["hex"]).decode(errors="replace") != line["text"] for line in lines)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"\xed\xa0\x80", "\ufffd"),
        (b"a\xed\xa0\x80\xed\xb0\x80b", "a\ufffd\ufffdb"),
        (b"\xc3", "\ufffd"),
        (b"\xc0\x80", "\ufffd\ufffd"),
        (b"\xf0\x9f\xa6", "\ufffd"),
    ],
)
def test_malformed_text_keeps_its_bytes(raw: bytes, text: str) -> None:
    key = b"\x00\x01" + len(raw).to_bytes(2) + raw + b"\x00\x01t" + b"\x00\x00\x00\x03"
    value = b"\x00\x04" + bytes(8) + bytes(4) + uvarint(len(raw) + 1) + raw + bytes(8) + b"\x00"
    record = decode_coordinator_record(key, value)
    assert record.group == text
    assert (record.value or {})["metadata"] == text
    assert isinstance(record.group, MalformedString)
    assert record.malformed_strings() == [("key.group", raw), ("value.metadata", raw)]
    assert encode_coordinator_record(record) == (key, value)
