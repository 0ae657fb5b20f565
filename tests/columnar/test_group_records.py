"""Records of groups of every type, as rows and lines: what the schema tables allow, and bytes that they do not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offsets_log.columnar.events import export
from offsets_log.columnar.sinks import lines
from offsets_log.columnar.sinks.json_programs import Programs
from offsets_log.columnar.sinks.lines import Press
from offsets_log.columnar.sinks.marks import NoTemplateError
from offsets_log.log_format.primitives import Uuid
from offsets_log.messages.message_struct import UNKNOWN_TAGS
from offsets_log.messages.registry import (
    RECORD_TYPES,
    CoordinatorRecord,
    encode_coordinator_record,
)
from offsets_log.messages.schema import BYTES, INT32, STRING, UUID, ArrayOf, Field, Message, Scalar, Struct
from tests.builders import LogBuilder
from tests.columnar.engines import columnar_rows, construct_rows
from tests.columnar.test_lines import ALL_FORMATS, NASTY, Release, assert_equal, lines_in_bulk, press, press_of
from tests.sizes import examples

__all__ = ["press"]

SIGNED = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}
TEXT = st.one_of(st.sampled_from([text for text in NASTY if len(text) < 20]), st.text(max_size=5))
RELEASES = st.sampled_from([None, (3, 7), (3, 9), (4, 0), (4, 3), (4, 4)])
KINDS = [(number, layout) for number, row in RECORD_TYPES.items() if number > 1 for layout in row.values]
TAGGED_BYTES = [b"", b"\0", b"\1", bytes(8), bytes(4), b"\xff" * 4, b"\1\0\0\0\0\0\0", b"\1" + bytes(5), b"\2a"]
"""Data of tagged fields, as it should be and otherwise, some of it what they are where they are not there."""


def values_of(type_: Any, version: int, *, odd: bool) -> st.SearchStrategy[Any]:
    """What a field of a wire type may be; ``odd``: with tags that its table does not know or has already."""
    match type_:
        case ArrayOf(element):
            return st.lists(values_of(element, version, odd=odd), max_size=2)
        case Struct(fields):
            return struct_of(fields, version, odd=odd)
        case Scalar("string"):
            return TEXT
        case Scalar("bytes"):
            return st.binary(max_size=7)
        case Scalar("uuid"):
            return st.binary(min_size=16, max_size=16).map(Uuid)
        case Scalar("uint16"):
            return st.integers(0, (1 << 16) - 1)
        case Scalar(name):
            most = 1 << SIGNED[name]
            return st.one_of(st.sampled_from([0, -1, most - 1, -most]), st.integers(-most, most - 1))
    raise AssertionError(type_)


def struct_of(fields: tuple[Field, ...], version: int, *, odd: bool) -> st.SearchStrategy[dict[str, Any]]:
    rows = Message("", fields).fields_of(version)
    zeros = Message("", fields).zeros(version)
    choices = {}
    for row in rows:
        choices[row.name] = values_of(row.type, version, odd=odd)
        if row.nullable:
            choices[row.name] = st.none() | choices[row.name]
        if row.tag is not None:
            choices[row.name] = st.just(zeros[row.name]) | choices[row.name]
    if odd:
        tags = st.tuples(st.integers(0, 2), st.sampled_from(TAGGED_BYTES))
        choices[UNKNOWN_TAGS] = st.just([]) | st.lists(tags, max_size=2)
    return st.fixed_dictionaries(choices)


@st.composite
def records(draw: st.DrawFn, *, odd: bool) -> tuple[bytes, bytes]:
    number, layout = draw(st.sampled_from(KINDS))
    version = draw(st.sampled_from([version for version in range(8) if layout.has_version(version)]))
    key = draw(struct_of(RECORD_TYPES[number].key.fields, 0, odd=False))
    value = draw(struct_of(layout.fields, version, odd=odd and layout.is_flexible(version)))
    made = encode_coordinator_record(
        CoordinatorRecord(record_type=number, key=key, value_version=version, value=value, layout=layout)
    )
    assert made[1] is not None
    return made[0], made[1]


@st.composite
def changed(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """A record with bytes that are others, fewer or more than its table says."""
    key, value = draw(records(odd=True))
    pieces = [bytearray(key), bytearray(value)]
    which, at = pieces[draw(st.integers(0, 3)) > 0], draw(st.integers(0, 200))
    at %= len(which)
    match draw(st.integers(0, 2)):
        case 0:
            which[at] = draw(st.integers(0, 255))
        case 1:
            del which[at:]
        case 2:
            which += draw(st.binary(min_size=1, max_size=3))
    return bytes(pieces[0]), bytes(pieces[1])


@examples(60)
@given(made=st.lists(records(odd=True) | changed(), min_size=1, max_size=6), release=RELEASES)
def test_generated_lines(made: list[tuple[bytes, bytes]], release: Release, press: Press) -> None:
    log = LogBuilder()
    for key, value in made:
        log.add((key, value), (key, None))
    assert_equal(log.log, press, release=release)


@examples(150)
@given(made=st.lists(records(odd=True) | changed(), min_size=1, max_size=6), release=RELEASES)
def test_generated_rows(made: list[tuple[bytes, bytes]], release: Release) -> None:
    log = LogBuilder()
    for key, value in made:
        log.add((key, value), (key, None))
    assert columnar_rows(log.log, release=release) == construct_rows(log.log, release=release)


@pytest.mark.parametrize("form", [form for form in ALL_FORMATS if "--expand" not in form])
@examples(60)
@given(made=st.lists(records(odd=False), min_size=1, max_size=6))
def test_they_need_no_hand(made: list[tuple[bytes, bytes]], form: str) -> None:
    """What brokers write of groups is written by the kernel: but for classic groups of a version that none writes."""

    def slow_path(*arguments: object) -> None:
        raise AssertionError("made on the slow path")

    log = LogBuilder()
    for key, value in made:
        if (key[:2], value[:2]) != (b"\0\2", b"\0\4"):
            log.add((key, value), (key, None))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(export.EventReading, "take", slow_path)
        patch.setattr(lines.LineChunk, "_line", slow_path)
        lines_in_bulk(log.log, press_of(form))


def test_a_layout_without_a_program() -> None:
    """Tagged fields that would stand elsewhere in JSON than in the bytes, or alone, are left to Python."""
    tagged, plain = Field("a", INT32, tag=0, default=0), Field("b", STRING)
    programs = Programs(b'"')
    for fields in (tagged, plain), (tagged,), (plain, Field("c", BYTES, tag=1), tagged):
        with pytest.raises(NoTemplateError):
            programs.begin_of(Message("", fields, flexible="0+"), 0)
    assert programs.begin_of(Message("", (plain, tagged), flexible="0+"), 0) == len(programs.steps) - 6
    with pytest.raises(NoTemplateError):
        programs.begin_of(Message("", (plain, Field("d", UUID, tag=0)), flexible=None), 0)
