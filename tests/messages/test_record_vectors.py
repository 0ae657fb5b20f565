"""Keys and values of every record type and value version: Kafka's own classes, and the traps of the wire format."""

from __future__ import annotations

import copy
import lzma
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from offsets_log.errors import CorruptRecordError, UnknownRecordTypeError, UnsupportedVersionError
from offsets_log.log_format.java_text import MalformedString, decode_java_utf8
from offsets_log.log_format.primitives import ZERO_UUID, Uuid, parse_prefix
from offsets_log.messages.message_struct import UNKNOWN_TAGS
from offsets_log.messages.registry import (
    RECORD_TYPES,
    decode_coordinator_record,
    decode_value,
    encode_coordinator_record,
)
from offsets_log.messages.schema import ZEROS, ArrayOf, Field, Message, Scalar, Struct, WireType
from tests.conftest import VECTORS, json_lines, read_json_lines

# --------------------------------------------------------------------------------------- Kafka's own classes

CLASSIC = {0: (0, 1, 2, 3, 4), 1: (0, 1, 2, 3, 4), 2: (0, 1, 2, 3, 4)}
VECTOR_VERSIONS: dict[str, dict[int, tuple[int, ...]]] = {
    "3.7.2": CLASSIC | dict.fromkeys(range(3, 9), (0,)),
    "3.9.1": CLASSIC | dict.fromkeys(range(3, 12), (0,)),
    "4.0.0": CLASSIC | dict.fromkeys(range(3, 17), (0,)),
    "4.3.0": CLASSIC | {0: (0,)} | dict.fromkeys([*range(3, 9), *range(10, 18), *range(19, 24)], (0,)),
}
"""Kafka version → record type → value versions that its classes write."""
LINES_EACH = {"3.7.2": 12, "3.9.1": 12, "4.0.0": 12, "4.3.0": 40}


def vectors(version: str) -> list[dict[str, Any]]:
    return list(json_lines(lzma.decompress((VECTORS / f"records-{version}.jsonl.xz").read_bytes()).decode()))


def key_and_value(line: dict[str, Any]) -> tuple[bytes, bytes | None]:
    return bytes.fromhex(line["key_hex"]), None if line["value_hex"] is None else bytes.fromhex(line["value_hex"])


def release_of(version: str) -> tuple[int, int]:
    major, minor, _ = version.split(".")
    return int(major), int(minor)


@pytest.mark.parametrize("has_release", [True, False], ids=["release given", "release unknown"])
@pytest.mark.parametrize("version", VECTOR_VERSIONS)
def test_records_of_kafkas_own_classes(
    version: str, has_release: bool, record_property: Callable[[str, object], None]
) -> None:
    """``records:P1``, ``Y1``: flexible versions and all types."""
    counts: Counter[tuple[int, int]] = Counter()
    for line in vectors(version):
        key, value = key_and_value(line)
        record = decode_coordinator_record(key, value, release_of(version) if has_release else None)
        where = f"{line['name']} version {line['value_version']}: {line['value_hex']}"
        version_read = None if value is None else line["value_version"]
        assert (record.record_type, record.value_version) == (line["record_type"], version_read), where
        assert record.key_json() == line["key_json"], where
        assert record.value_json() == line["value_json"], where
        assert len(record.unknown_tags()) == line["unknown_tags"], where
        assert encode_coordinator_record(record) == (key, value), where
        assert (record.key_trailing, record.value_trailing) == (b"", b""), where
        assert not has_release or record.layout is None or record.layout.is_written_by(release_of(version)), where
        counts[line["record_type"], line["value_version"]] += 1
    for (record_type, value_version), count in sorted(counts.items()):
        record_property(f"type {record_type} version {value_version}", count)
    expected = {(number, each) for number, versions in VECTOR_VERSIONS[version].items() for each in versions}
    assert counts == dict.fromkeys(expected, LINES_EACH[version])


@pytest.mark.parametrize("version", VECTOR_VERSIONS)
def test_json_of_kafkas_own_classes_is_read_back(version: str) -> None:
    for line in vectors(version):
        record = decode_coordinator_record(*key_and_value(line), release_of(version))
        if record.value is None:
            continue
        assert record.layout is not None
        assert record.layout.from_json(line["value_json"], line["value_version"]) == without_unknown_tags(record.value)


def values_of(version: str, number: int) -> list[dict[str, Any]]:
    """The lines of one record type without its tombstones."""
    return [line for line in vectors(version) if line["record_type"] == number and line["value_hex"]]


def without_unknown_tags(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_unknown_tags(part) for name, part in value.items() if name != UNKNOWN_TAGS}
    return [without_unknown_tags(part) for part in value] if isinstance(value, list) else value


def test_unknown_tags_occur_in_the_vectors() -> None:
    assert all(sum(line["unknown_tags"] for line in vectors(version)) > 0 for version in VECTOR_VERSIONS)


@pytest.mark.parametrize("version", VECTOR_VERSIONS)
def test_a_value_cut_anywhere_does_not_parse(version: str) -> None:
    seen = set()
    for line in vectors(version):
        kind = (line["record_type"], line["value_version"])
        key, value = key_and_value(line)
        row = RECORD_TYPES[line["record_type"]]
        if value is None or kind in seen or len(list(row.layouts(line["value_version"]))) > 1:
            continue
        seen.add(kind)
        for end in range(len(value)):
            with pytest.raises(CorruptRecordError):
                decode_coordinator_record(key, value[:end])
        for end in range(len(key)):
            with pytest.raises((CorruptRecordError, UnknownRecordTypeError)):
                decode_coordinator_record(key[:end], value)
    assert len(seen) > 10


# ------------------------------------------------------------- a second writer, which may write what is forbidden


class Raw(bytes):
    """Bytes to write in place of a value; nothing is written behind them."""


class CutError(Exception):
    """Raised behind `Raw`, with everything written so far."""


@contextmanager
def behind(head: bytes) -> Iterator[None]:
    """What is cut inside has this in front."""
    try:
        yield
    except CutError as cut:
        raise CutError(head + cut.args[0]) from None


def uvarint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def write(fields: tuple[Field, ...], value: dict[str, Any], version: int, flexible: bool) -> bytes:
    """A struct from the rows of its table, written without the package's own encoder."""
    out = b""
    tags: list[tuple[int, bytes]] = []
    message = Message("", fields)
    for row in message.fields_of(version):
        part = value[row.name]
        if row.tag is None:
            with behind(out):
                out += write_part(row.type, part, version, flexible, row.nullable)
        elif part != default_of(row):
            try:
                tags.append((row.tag, write_tagged(row, part, version)))
            except CutError as cut:
                raise CutError(out + section([(row.tag, cut.args[0])])) from None
    return out + (section(tags) if flexible else b"")


def section(tags: list[tuple[int, bytes]]) -> bytes:
    return uvarint(len(tags)) + b"".join(uvarint(tag) + uvarint(len(data)) + data for tag, data in tags)


def write_tagged(row: Field, part: Any, version: int) -> bytes:
    """A tagged nullable struct has a uvarint in front where a plain one has an int8."""
    if not isinstance(row.type, Struct) or not row.nullable:
        return write_part(row.type, part, version, True, row.nullable)
    if part is None:
        return b"\x00"
    with behind(b"\x01"):
        return b"\x01" + write(row.type.fields, part, version, True)


def write_part(type_: WireType, part: Any, version: int, flexible: bool, nullable: bool = False) -> bytes:
    if isinstance(part, Raw):
        raise CutError(bytes(part))
    match type_:
        case Struct(fields):
            if part is None:
                return b"\xff"
            marker = b"\x01" if nullable else b""
            with behind(marker):
                return marker + write(fields, part, version, flexible)
        case ArrayOf(element):
            return write_array(element, part, version, flexible)
        case Scalar("string") | Scalar("bytes"):
            size = -1 if part is None else len(part)
            head = uvarint(size + 1) if flexible else size.to_bytes(2 if type_.name == "string" else 4, signed=True)
            return head + (b"" if part is None else part.encode() if isinstance(part, str) else part)
        case Scalar("uuid"):
            return bytes(part)
        case Scalar(name):
            return int(part).to_bytes(int(name.removeprefix("u").removeprefix("int")) // 8, signed=name[0] != "u")


def write_array(element: Scalar | Struct, part: list[Any] | None, version: int, flexible: bool) -> bytes:
    size = -1 if part is None else len(part)
    out = uvarint(size + 1) if flexible else size.to_bytes(4, signed=True)
    for item in part or ():
        with behind(out):
            out += write_part(element, item, version, flexible)
    return out


def default_of(row: Field) -> Any:
    if row.default is ZEROS:
        return {"session_timeout_ms": 0, "supported_protocols": []}
    return [] if row.default == () else row.default


def sample(type_: WireType, version: int) -> Any:
    """A value of a type with nothing in it that is null, empty, zero or a default."""
    match type_:
        case Struct(fields):
            return {row.name: sample(row.type, version) for row in Message("", fields).fields_of(version)}
        case ArrayOf(element):
            return [sample(element, version), sample(element, version)]
        case Scalar("string"):
            return "na"
        case Scalar("bytes"):
            return b"\x00\x07"
        case Scalar("uuid"):
            return Uuid(range(16))
        case _:
            return 5


# -------------------------------------------------------------------------- null and empty, from the tables

Path = tuple[str | int, ...]


def tables() -> Iterator[tuple[str, Message, int]]:
    """Every key and every value table in every version."""
    for row in RECORD_TYPES.values():
        yield f"{row.number} key", row.key, 0
        for i, layout in enumerate(row.values):
            for version in (version for version in range(10) if layout.has_version(version)):
                yield f"{row.number} v{version}" + f" layout {i}" * bool(i), layout, version


TABLES = list(tables())


def sized_fields(fields: tuple[Field, ...], version: int, path: Path = ()) -> Iterator[tuple[Path, Field]]:
    """Every string, bytes, array and nullable struct of a table with the way to it."""
    for row in Message("", fields).fields_of(version):
        here = (*path, row.name)
        match row.type:
            case Struct(inner):
                if row.nullable:
                    yield here, row
                yield from sized_fields(inner, version, here)
            case ArrayOf(element):
                yield here, row
                if isinstance(element, Struct):
                    yield from sized_fields(element.fields, version, (*here, 1))
                elif element.name == "string":
                    yield (*here, 1), Field(row.name, element)
            case Scalar("string") | Scalar("bytes"):
                yield here, row


SIZED = [
    pytest.param(layout, version, path, field, id=f"{name} {'.'.join(map(str, path))}")
    for name, layout, version in TABLES
    for path, field in sized_fields(layout.fields, version)
]
each_sized_field = pytest.mark.parametrize(("layout", "version", "path", "field"), SIZED)


def changed(layout: Message, version: int, path: Path, part: Any) -> dict[str, Any]:
    """The sample of a table with another value at one place."""
    value = copy.deepcopy(sample(Struct(layout.fields), version))
    *way, last = path
    inner = value
    for step in way:
        inner = inner[step]
    inner[last] = part
    return value


def parse(layout: Message, version: int, data: bytes) -> dict[str, Any]:
    value, trailing = parse_prefix(layout.struct(version), data, "value")
    assert trailing == b""
    return value


def field_name(path: Path) -> str:
    return "value" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)


def test_there_are_many_fields_to_try() -> None:
    nullable = [case for case in SIZED if case.values[3].nullable]
    assert len(SIZED) > 150
    assert len(nullable) > 25


@pytest.mark.parametrize(("name", "layout", "version"), TABLES, ids=[name for name, _, _ in TABLES])
def test_a_full_message_is_what_a_second_writer_writes(name: str, layout: Message, version: int) -> None:
    value = sample(Struct(layout.fields), version)
    data = write(layout.fields, value, version, layout.is_flexible(version))
    assert parse(layout, version, data) == value
    assert layout.struct(version).build(value) == data


@each_sized_field
def test_null_and_empty_stay_apart(layout: Message, version: int, path: Path, field: Field) -> None:
    flexible = layout.is_flexible(version)
    data = {}
    for part in (None, empty_of(field)):
        value = changed(layout, version, path, part)
        if part is None and not field.nullable:
            with pytest.raises(CorruptRecordError) as caught:
                parse(layout, version, write(layout.fields, value, version, flexible))
            assert caught.value.field == field_name(path)
            continue
        data[part is None] = write(layout.fields, value, version, flexible)
        parsed = parse(layout, version, data[part is None])
        assert parsed == value
        assert layout.struct(version).build(parsed) == data[part is None]
    assert len(set(data.values())) == 1 + field.nullable


def empty_of(field: Field) -> Any:
    match field.type:
        case Struct():
            return default_of(field) or {"host": "", "port": 0}
        case ArrayOf():
            return []
        case Scalar("string"):
            return ""
        case _:
            return b""


@each_sized_field
def test_a_forged_size_is_an_error_at_once(layout: Message, version: int, path: Path, field: Field) -> None:
    if isinstance(field.type, Struct):
        return
    flexible = layout.is_flexible(version)
    if flexible:
        sizes = [uvarint(2**31), uvarint(2**32 - 1), uvarint(5)]
    else:
        width = 2 if field.type == Scalar("string") else 4
        sizes = [(2 ** (8 * width - 1) - 1).to_bytes(width), b"\x80" + bytes(width - 1), (4).to_bytes(width)]
    for size in sizes:
        value = changed(layout, version, path, Raw(size + b"\x00\x00\x00"))
        with pytest.raises(CutError) as cut:
            write(layout.fields, value, version, flexible)
        with pytest.raises(CorruptRecordError) as caught:
            parse_prefix(layout.struct(version), cut.value.args[0], "value")
        assert caught.value.field == field_name(path)


# ----------------------------------------------------------------------------------------------- the traps

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
    value = bytes.fromhex("0000 00000005 02 00 08 0000000000000001 09 01 ff")
    record = decode_coordinator_record(group_key(3), value)
    assert record.unknown_tags() == [("value", 9, b"\xff")]
    assert encode_coordinator_record(record) == (group_key(3), value)


def test_a_known_tag_with_bytes_left_over_does_not_parse() -> None:
    with pytest.raises(CorruptRecordError, match="1 bytes left over"):
        decode_coordinator_record(group_key(3), bytes.fromhex("0000 00000005 01 00 09 0000000000000001 ff"))


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


@pytest.mark.parametrize("number", [-1, 18, 24, 99, 1000, 32767, -32768])
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
