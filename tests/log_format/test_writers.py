"""Writers give the bytes that the construct builds, and leave to it what it would refuse."""

from __future__ import annotations

import io
from typing import Any

import construct as c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from offsets_log.errors import CorruptRecordError
from offsets_log.log_format import primitives as p
from offsets_log.log_format import writers
from offsets_log.messages.consumer_protocol import EmbeddedMessage
from offsets_log.messages.message_struct import UNKNOWN_TAGS
from offsets_log.messages.schema import BOOL, INT16, INT32, STRING, UUID, ArrayOf, Field, Message, Struct
from offsets_log.messages.streams_protocol import ASSIGNMENT_INFO
from offsets_log.protocol.registry import APIS
from tests.log_format.test_readers import TABLES, TAGGED, fields_of

REQUESTS = [
    (message, version)
    for api in APIS.values()
    for message in (api.request, api.response)
    for version in range(api.versions[0], api.versions[1] + 1)
]

WRITTEN = REQUESTS + [row for row in TABLES if row[0] is not ASSIGNMENT_INFO]


def by_construct(code: c.Construct, value: Any) -> bytes:
    stream = io.BytesIO()
    code.build_stream(value, stream)
    return stream.getvalue()


def test_every_request_and_response_has_a_writer() -> None:
    without = [(message.name, v) for message, v in REQUESTS if writers.writer_of(message.struct(v)) is None]
    assert len(REQUESTS) > 150
    assert without == []


def test_a_table_of_records_has_none_only_if_it_is_embedded() -> None:
    without = {message.name for message, version in TABLES if writers.writer_of(message.struct(version)) is None}
    assert without <= {message.name for message, _ in TABLES if isinstance(message, EmbeddedMessage)}


@given(st.data())
def test_the_bytes_are_those_of_the_construct(data: st.DataObject) -> None:
    message, version = data.draw(st.sampled_from(WRITTEN))
    code = message.struct(version)
    value = data.draw(fields_of(message.fields, version))
    expected = by_construct(code, value)
    assert writers.write(code, value) == (expected if writers.writer_of(code) else None)
    assert p.build(code, value, "") == expected


EDGES = [-(1 << 63) - 1, -(1 << 63), -(1 << 31) - 1, -(1 << 31), -129, -2, -1, 0, 63, 64, 127, 128, 255, 256, 16383,
         16384, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, (1 << 63) - 1, 1 << 63, 1 << 64]  # fmt: skip
CODES = [p.INT8, p.INT16, p.INT32, p.INT64, p.UINT16, p.UVARINT, p.VARINT, p.VARLONG, p.COMPACT, p.BOOL]


@pytest.mark.parametrize("code", CODES, ids=repr)
def test_numbers_at_the_edges(code: c.Construct) -> None:
    for number in EDGES:
        written = writers.write(code, number)
        try:
            expected = by_construct(code, number)
        except (c.ConstructError, ValueError):
            assert written is None, number
        else:
            assert written == expected, number


ROW = Struct((Field("number", INT16), Field("name", STRING), Field("id", UUID), Field("flag", BOOL)))
PLAIN = Message("Plain", (Field("before", INT32), Field("rows", ArrayOf(ROW), nullable=True), Field("n", INT32)))
GOOD = {"before": 1, "rows": [{"number": 2, "name": "x", "id": p.ZERO_UUID, "flag": True}], "n": 3}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"before": 1 << 31}, "Plain.before"),
        ({"rows": [GOOD["rows"][0] | {"number": 1 << 15}]}, "Plain.rows[0].number"),
        ({"rows": [GOOD["rows"][0], GOOD["rows"][0] | {"name": None}]}, "Plain.rows[1].name"),
        ({"rows": [GOOD["rows"][0] | {"name": "x" * (1 << 15)}]}, "Plain.rows[0].name"),
        ({"rows": [GOOD["rows"][0] | {"id": b"short"}]}, "Plain.rows[0].id"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_field(change: dict[str, Any], field: str) -> None:
    code = PLAIN.struct(0)
    assert writers.write(code, GOOD) == by_construct(code, GOOD)
    with pytest.raises(CorruptRecordError) as error:
        p.build(code, GOOD | change, "Plain")
    assert error.value.field == field


def test_a_field_that_is_missing_is_named() -> None:
    with pytest.raises(CorruptRecordError, match="'n' is missing"):
        p.build(PLAIN.struct(0), {"before": 1, "rows": None}, "Plain")


def test_unknown_tagged_fields_stand_where_they_stood() -> None:
    code = TAGGED.struct(0)
    value = {"number": 1, "name": "h", "rows": [7], UNKNOWN_TAGS: [(1, b"a"), (9, b"b")]}
    raw = p.build(code, value, "")
    assert raw == by_construct(code, value)
    assert p.parse_exactly(code, raw, "") == value
