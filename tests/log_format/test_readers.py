"""Readers give what the construct gives, and leave to it what it would refuse."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import construct as c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from offsets_log.log_format import primitives as p
from offsets_log.log_format import readers
from offsets_log.messages.connect_protocol import CONNECT_ASSIGNMENT, CONNECT_METADATA
from offsets_log.messages.consumer_protocol import CONSUMER_PROTOCOL_ASSIGNMENT, CONSUMER_PROTOCOL_SUBSCRIPTION
from offsets_log.messages.message_struct import NullableStruct
from offsets_log.messages.registry import RECORD_TYPES
from offsets_log.messages.schema import INT32, INT64, STRING, ArrayOf, Field, Message, Scalar, Struct, WireType
from offsets_log.messages.sticky_user_data import COOPERATIVE_STICKY_USER_DATA, STICKY_USER_DATA
from offsets_log.messages.streams_protocol import ASSIGNMENT_INFO, SUBSCRIPTION_INFO

EMBEDDED = (
    CONSUMER_PROTOCOL_SUBSCRIPTION, CONSUMER_PROTOCOL_ASSIGNMENT, STICKY_USER_DATA, COOPERATIVE_STICKY_USER_DATA,
    CONNECT_METADATA, CONNECT_ASSIGNMENT, SUBSCRIPTION_INFO, ASSIGNMENT_INFO,
)  # fmt: skip


@pytest.mark.parametrize("code", [p.UVARINT, p.VARINT, p.VARLONG, p.COMPACT], ids=repr)
def test_varints_at_the_edges_of_their_bytes(code: c.Construct) -> None:
    read = readers.part(code)
    for number in ((1 << power) + more for power in (6, 7, 8, 13, 14, 15, 21, 28) for more in range(-2, 2)):
        raw = p.build(code, number, "number")
        assert read(raw + b"\xff", 0) == (number, len(raw))


@pytest.mark.parametrize("code", [p.UVARINT, p.VARINT, p.VARLONG, p.COMPACT], ids=repr)
def test_a_varint_that_goes_on_and_on_is_none(code: c.Construct) -> None:
    for last in (b"\0", b"\1", b"\x7f"):
        assert readers.read(code, b"\x80" * 10 + last) is None
        assert by_construct(code, b"\x80" * 10 + last) is None


def test_a_tagged_field_ends_with_its_bytes() -> None:
    """Tag 0 of type 3 is an int64."""
    code = next(RECORD_TYPES[3].layouts(0)).struct(0)
    for size in (7, 8, 9):
        raw = bytes(4) + b"\1\0" + bytes([size]) + bytes(size)
        found = readers.read(code, raw)
        assert (found is not None) is (size == 8)
        assert found is None or found == by_construct(code, raw)


def test_a_byte_of_yes_or_no_is_no_at_0_only_and_keeps_any_number_but_1() -> None:
    for byte in range(256):
        value = {0: False, 1: True}.get(byte, byte)
        for found in (readers.read(p.BOOL, bytes((byte, 9))), by_construct(p.BOOL, bytes((byte, 9)))):
            assert found == (value, 1)
            assert type(found[0]) is type(value)
        assert p.build(p.BOOL, value, "answer") == bytes((byte,))


@pytest.mark.parametrize(
    ("code", "value"),
    [
        (p.UUID, p.Uuid(range(16))),
        (p.BOOL, True),
        (p.FLOAT64, 0.5),
        (p.INT64, -5),
        (p.VARLONG, -(1 << 40)),
        (p.string(p.COMPACT, nullable=False), "größe"),
        (p.Array(p.INT32, p.INT16), [1, 2]),
        (p.Array(p.COMPACT, p.UUID), [p.Uuid(16)]),
    ],
)
def test_what_is_cut_off_anywhere_is_refused(code: c.Construct, value: Any) -> None:
    raw = p.build(code, value, "part")
    assert readers.read(code, b"before" + raw, 6) == (value, 6 + len(raw))
    for end in range(len(raw)):
        assert by_construct(code, raw[:end]) is None
        assert readers.read(code, raw[:end]) is None


def tables() -> Iterator[tuple[Message, int]]:
    """Every table with each of its versions."""
    messages = [row.key for row in RECORD_TYPES.values()]
    messages += [layout for row in RECORD_TYPES.values() for layout in row.values]
    for message in [*messages, *EMBEDDED]:
        yield from ((message, version) for version in range(20) if message.has_version(version))


TABLES = list(tables())


def values(type_: WireType, nullable: bool, version: int) -> st.SearchStrategy[Any]:
    """Values of a wire type."""
    match type_:
        case Struct(fields):
            made = fields_of(fields, version)
        case ArrayOf(element):
            made = st.lists(values(element, False, version), max_size=3)
        case Scalar("string"):
            made = st.text(max_size=5)
        case Scalar("bytes"):
            made = st.binary(max_size=5)
        case Scalar("uuid"):
            made = st.binary(min_size=16, max_size=16).map(p.Uuid)
        case Scalar("bool"):
            made = st.booleans()
        case Scalar(name):
            made = st.integers(0, 100 if name == "int8" else 10_000)
    return st.none() | made if nullable else made


def fields_of(fields: tuple[Field, ...], version: int) -> st.SearchStrategy[dict[str, Any]]:
    """A struct of these rows."""
    rows = Message("", fields, "0+").fields_of(version)
    return st.fixed_dictionaries({row.name: values(row.type, row.nullable, version) for row in rows})


def by_construct(code: c.Construct, data: bytes) -> tuple[Any, int] | None:
    stream = io.BytesIO(data)
    try:
        return code.parse_stream(stream), stream.tell()
    except c.ConstructError:
        return None


def deep(value: Any) -> str:
    """With types, and the bytes of malformed strings."""
    if isinstance(value, dict):
        return str({name: deep(part) for name, part in value.items()})
    if isinstance(value, list):
        return str([deep(part) for part in value])
    return f"{type(value).__name__} {getattr(value, 'raw', b'')!r} {value!r}"


def agree(code: c.Construct, data: bytes) -> bool:
    """Whether a reader reads the bytes, which the construct does, then, too."""
    found, expected = readers.read(code, data), by_construct(code, data)
    if found is not None:
        assert expected is not None
        assert deep(found[0]) == deep(expected[0])
        assert found[1] == expected[1]
    return found is not None


def test_every_table_has_a_reader() -> None:
    """But one that has lengths of its own."""
    without = [(message, version) for message, version in TABLES if readers.reader_of(message.struct(version)) is None]
    assert len(TABLES) > 90
    assert without == [(message, version) for message, version in TABLES if message is ASSIGNMENT_INFO]


@given(st.data())
def test_what_was_built_is_read(data: st.DataObject) -> None:
    message, version = data.draw(st.sampled_from([row for row in TABLES if row[0] is not ASSIGNMENT_INFO]))
    code = message.struct(version)
    raw = p.build(code, data.draw(fields_of(message.fields, version)), "")
    assert agree(code, raw + data.draw(st.binary(max_size=3)))
    at = data.draw(st.integers(0, len(raw)))
    agree(code, raw[:at])
    change = data.draw(st.binary(min_size=1, max_size=4))
    agree(code, raw[:at] + change + raw[at + len(change) :])
    agree(code, raw[:at] + change + raw[at:])


@given(st.sampled_from(TABLES), st.binary(max_size=60))
def test_any_bytes(table: tuple[Message, int], raw: bytes) -> None:
    message, version = table
    agree(message.struct(version), raw)


def test_where_a_struct_has_numbers_of_its_own() -> None:
    """Nothing is told of one that a reader leaves to the construct."""
    rows = (Field("a", INT32), Field("name", STRING), Field("rows", ArrayOf(INT64)), Field("b", INT64))
    code = Message("", rows).struct(0)
    raw = p.build(code, {"a": 5, "name": "two", "rows": [7], "b": 9}, "")
    places = readers.number_places(code, b"\xff" + raw, 1)
    assert [(name, one.unpack_from(raw, at - 1)) for name, one, at in places] == [("a", (5,)), ("b", (9,))]
    assert readers.number_places(code, raw[:6], 0) == []


TAGGED = Message(
    "Tagged",
    (Field("number", INT32), Field("name", STRING, nullable=True, tag=0), Field("rows", ArrayOf(INT64), tag=3)),
    flexible="0",
)


@pytest.mark.parametrize(
    ("section", "is_read"),
    [
        (b"\0", True),
        (b"\1\0\3\2hi"[:-1] + b"i", False),
        (b"\1\0\2\2h", True),
        (b"\2\0\2\2h\3\x09\2\0\0\0\0\0\0\0\7", True),
        (b"\1\0\3\2hi", False),  # bytes left over
        (b"\1\7\1x", True),  # a tag that no table knows
        (b"\1\0\5\2h", False),  # cut off
    ],
)
def test_tagged_fields(section: bytes, is_read: bool) -> None:
    assert agree(TAGGED.struct(0), b"\0\0\0\1" + section) == is_read


@pytest.mark.parametrize("tagged", [False, True])
def test_what_stands_before_a_struct_that_may_be_null(tagged: bool) -> None:
    """Any marker but null, of one byte any below 0, has a struct behind it."""
    code = NullableStruct(Message("", (Field("number", INT32),)).struct(0), tagged=tagged)
    for marker in range(127):
        assert readers.read(code, bytes([marker, 0, 0, 0, 7])) == (
            (None, 1) if tagged and marker == 0 else ({"number": 7}, 5)
        )
    for marker in () if tagged else range(128, 256):
        assert readers.read(code, bytes([marker, 0, 0, 0, 7])) == (None, 1)
        assert by_construct(code, bytes([marker, 0, 0, 0, 7])) == (None, 1)


@pytest.mark.parametrize("nullable", [False, True])
@pytest.mark.parametrize("lowest", [-1, -(1 << 15)])
@pytest.mark.parametrize("length", [-(1 << 15), -2, -1, 0, 1, 2])
def test_lengths_below_zero_are_null_where_null_may_be(length: int, lowest: int, nullable: bool) -> None:
    """−1, and where all below 0 are null any other; the same count of elements is null at −1 only."""
    sized = p.Sized(p.INT16, nullable=nullable, lowest=lowest)
    counted = p.Array(p.INT16, p.INT8, nullable=nullable)
    raw = length.to_bytes(2, signed=True) + b"\1"
    whole = {0: (0, 2), 1: (1, 3)}
    for code, least in ((sized, lowest), (counted, -1)):
        expected = (None, 2) if nullable and least <= length < 0 else whole.get(length)
        for found in (by_construct(code, raw), readers.read(code, raw)):
            assert (found if found is None or found[0] is None else (len(found[0]), found[1])) == expected


@pytest.mark.parametrize(
    ("code", "raw"),
    [
        (p.Sized(p.INT16, nullable=True), b"\0\2x"),
        (p.Sized(p.INT16, nullable=False), b"\xff\xff"),
        (p.Sized(p.INT16, nullable=True), b"\xff\xfe"),
        (p.Array(p.INT16, p.INT8, nullable=True), b"\0\2x"),
        (p.Array(p.INT16, p.INT8, nullable=False), b"\xff\xff"),
        (p.Array(p.INT16, p.INT8, nullable=True), b"\xff\xfe"),
        (p.UVARINT, b"\x80"),
        (p.UVARINT, b"\xff" * 6),
        (p.VARINT, b"\x80"),
        (p.COMPACT, b"\x80"),
    ],
)
def test_an_error_names_its_field(code: c.Construct, raw: bytes) -> None:
    with pytest.raises(c.ConstructError) as caught:
        ("name" / code).parse(raw)
    assert caught.value.path == "(parsing) -> name"


@pytest.mark.parametrize(
    ("path", "root", "field"),
    [
        ("(parsing) -> members[2] -> client_id", "value", "value.members[2].client_id"),
        ("(building) -> epoch", "", "epoch"),
        ("(parsing)", "key", "key"),
        (None, "key", "key"),
        ("(parsing)", "", ""),
        (None, "", ""),
    ],
)
def test_a_field_is_named_below_its_root(path: str | None, root: str, field: str) -> None:
    assert p.field_of(path, root) == field


def test_no_more_is_remembered_than_so_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is behind them is read again, after bytes from the middle of others too; what it is found by counts."""
    monkeypatch.setattr(readers, "MOST_BYTES_REMEMBERED", 12)
    read: list[bytes] = []

    def element(data: bytes, at: int) -> tuple[bytes, int]:
        read.append(data[at : at + 2])
        return data[at : at + 2], at + 2

    remembered = readers.remembered(element)
    for raw in (b"aa", b"bb", b"aa", b"cc", b"bb", b"dd", b"dd", b"aa"):
        assert remembered(b"...." + raw, 4) == (raw, 6)
    assert read == [b"aa", b"bb", b"cc", b"dd", b"aa"]
