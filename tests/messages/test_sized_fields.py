"""Null, empty and forged sizes of every field of every key and value, written by a second writer from the tables."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from offsets_log.errors import CorruptRecordError
from offsets_log.log_format.primitives import Uuid, parse_prefix
from offsets_log.messages.registry import (
    RECORD_TYPES,
)
from offsets_log.messages.schema import ZEROS, ArrayOf, Field, Message, Scalar, Struct, WireType


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


each_table = pytest.mark.parametrize(("layout", "version"), [table[1:] for table in TABLES], ids=[t[0] for t in TABLES])


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
    sized = [field for _, layout, version in TABLES for _, field in sized_fields(layout.fields, version)]
    assert len(sized) > 150
    assert sum(field.nullable for field in sized) > 25


@each_table
def test_a_full_message_is_what_a_second_writer_writes(layout: Message, version: int) -> None:
    value = sample(Struct(layout.fields), version)
    data = write(layout.fields, value, version, layout.is_flexible(version))
    assert parse(layout, version, data) == value
    assert layout.struct(version).build(value) == data


@each_table
def test_null_and_empty_stay_apart(layout: Message, version: int) -> None:
    for path, field in sized_fields(layout.fields, version):
        _null_and_empty(layout, version, path, field)


def _null_and_empty(layout: Message, version: int, path: Path, field: Field) -> None:
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


@each_table
def test_a_forged_size_is_an_error_at_once(layout: Message, version: int) -> None:
    for path, field in sized_fields(layout.fields, version):
        _forged(layout, version, path, field)


def _forged(layout: Message, version: int, path: Path, field: Field) -> None:
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
