"""Define schema tables: messages as rows that read like Kafka's own JSON, and the construct Struct of each version.

A row is a `Field`: name, wire type, versions, nullable, default, tag. Rows are in wire order. `Message.struct` makes
the codec of one value version from them; everything else made of a message (Kafka's JSON, a flat table) uses the same
rows, so a field is declared once.

Parsed messages are plain dicts by field name. A flexible struct with unknown tagged fields keeps them, raw, under
`message_struct.UNKNOWN_TAGS` as ``[(tag, bytes), …]`` and writes them again (``records:P3``).

References: ``generator/.../MessageDataGenerator.java``, ``JsonConverterGenerator.java``.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import construct as c

from offsets_log.log_format import primitives as p
from offsets_log.messages.message_struct import UNKNOWN_TAGS, MessageStruct, NullableStruct, TaggedField

ZEROS = object()
"""Default of a tagged struct that Kafka's generated class represents as an object with zeros and empty lists."""

REDACTED = "(redacted)"
"""Stands in JSON for what is never shown, as in Kafka's own tools."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """A wire type without parts. ``name`` is Kafka's; ``code`` is its construct, None for types with a length."""

    name: str
    code: c.Construct | None = None


INT8 = Scalar("int8", p.INT8)
INT16 = Scalar("int16", p.INT16)
INT32 = Scalar("int32", p.INT32)
INT64 = Scalar("int64", p.INT64)
UINT16 = Scalar("uint16", p.UINT16)
UUID = Scalar("uuid", p.UUID)
BOOL = Scalar("bool", p.BOOL)
FLOAT64 = Scalar("float64", p.FLOAT64)
STRING = Scalar("string")
BYTES = Scalar("bytes")


@dataclass(frozen=True, slots=True, eq=False)
class Struct:
    """A nested struct: its rows in wire order."""

    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ArrayOf:
    """An array of scalars or structs; ``is_repeated`` if a log repeats the same ones often (`readers.remembered`)."""

    element: Scalar | Struct
    is_repeated: bool = False


WireType = Scalar | Struct | ArrayOf


@cache
def camel_case(name: str) -> str:
    """Return a name in camel case: ``leader_epoch`` → ``leaderEpoch``."""
    head, *tail = name.split("_")
    return head + "".join(word.capitalize() for word in tail)


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """One row of a schema table.

    Attributes:
        name: Kafka's name, in snake_case.
        type: wire type.
        versions: value versions that have it: "0+", "1", "2-3".
        nullable: whether the field may be null on the wire.
        default: the value of a missing tag (``records:P2``); for a nullable field it is not always null: a ``"default":
            null`` of the schema is an empty list or object in Kafka's class (``MessageDataGenerator``).
        tag: number of a tagged field, None for a plain one.
        since: first release (major, minor) that knows a tagged field; None for all that know the struct.
        secret: given the fields around it, whether its value must never be shown; None for one that always may.
    """

    name: str
    type: WireType
    versions: str = "0+"
    nullable: bool = False
    default: Any = None
    tag: int | None = None
    since: tuple[int, int] | None = None
    secret: Callable[[Mapping[str, Any]], bool] | None = None

    @property
    def json_name(self) -> str:
        """Kafka's own spelling: camelCase."""
        return camel_case(self.name)


@dataclass(frozen=True, slots=True, eq=False)
class Message:
    """A schema table.

    Attributes:
        name: Kafka's class name.
        fields: rows in wire order.
        versions: value versions this table describes, such as "0-4".
        flexible: versions with compact lengths and tagged fields; None where there are none.
        releases: the Kafka releases (major, minor) that write this layout, first and last; None is open. Two layouts
            may share a version number: then the bytes or the release distinguish them.
    """

    name: str
    fields: tuple[Field, ...]
    versions: str = "0"
    flexible: str | None = None
    releases: tuple[tuple[int, int] | None, tuple[int, int] | None] = (None, None)

    def has_version(self, version: int) -> bool:
        """Whether this table describes that version."""
        return in_versions(version, self.versions)

    def is_written_by(self, release: tuple[int, int]) -> bool:
        """Whether that Kafka release writes this layout."""
        first, last = self.releases
        return (first is None or first <= release) and (last is None or release <= last)

    def is_flexible(self, version: int) -> bool:
        """Whether that version has compact lengths and tagged fields (``records:P1``)."""
        return self.flexible is not None and in_versions(version, self.flexible)

    def fields_of(self, version: int) -> tuple[Field, ...]:
        """Return the rows of one version."""
        return _of_version(self.fields, version)

    def struct(self, version: int) -> c.Construct:
        """Return the construct codec of one version."""
        return _struct_of(self, version)

    def has_later_tags(self, version: int, release: tuple[int, int]) -> bool:
        """Whether a version has tagged fields that a release does not know: it goes by their sizes (``records:P6``)."""
        fields = self.fields_of(version)
        return self.is_flexible(version) and _known_to(fields, release) != fields

    def struct_known_to(self, version: int, release: tuple[int, int]) -> c.Construct:
        """Return the codec of one version without the tagged fields that a release does not know."""
        return _struct_known_to(self, version, release)

    def to_json(self, value: dict[str, Any], version: int) -> dict[str, Any]:
        """Return a parsed message as Kafka's JSON converters write it: names, uuids and bytes as text, no secrets."""
        return _struct_json(self.fields, value, version)

    def zeros(self, version: int) -> dict[str, Any]:
        """Return the smallest message of a version: zeros, empty strings, no elements."""
        return {row.name: _zero(row.type) if row.tag is None else default_of(row) for row in self.fields_of(version)}

    def from_json(self, json: dict[str, Any], version: int) -> dict[str, Any]:
        """Parse Kafka's JSON, the inverse of `to_json`, with defaults filled in."""
        return _struct_from_json(self.fields, json, version)


@cache
def in_versions(version: int, versions: str) -> bool:
    """Whether a version is in "3", "1-4" or "2+"."""
    first, dash, last = versions.removesuffix("+").partition("-")
    if versions.endswith("+"):
        return version >= int(first)
    return int(first) <= version <= int(last if dash else first)


@cache
def _of_version(fields: tuple[Field, ...], version: int) -> tuple[Field, ...]:
    return tuple(field for field in fields if in_versions(version, field.versions))


# ------------------------------------------------------------------------------ from rows to construct


def default_of(field: Field) -> Any:
    """Return a new default value of a field: what a missing tag reads as (``records:P2``)."""
    if field.default is ZEROS:
        assert isinstance(field.type, Struct)
        return {row.name: _zero(row.type) for row in field.type.fields}
    return list(field.default) if isinstance(field.default, tuple) else field.default


def _zero(type_: WireType) -> Any:
    match type_:
        case ArrayOf():
            return []
        case Scalar("string"):
            return ""
        case Scalar("bytes"):
            return b""
        case Scalar("uuid"):
            return p.ZERO_UUID
        case _:
            return 0


@cache
def _struct_of(message: Message, version: int) -> c.Construct:
    return _struct(message.fields, version, message.is_flexible(version))


@cache
def _struct_known_to(message: Message, version: int, release: tuple[int, int]) -> c.Construct:
    return _struct(_known_to(message.fields, release), version, message.is_flexible(version))


@cache
def _known_to(fields: tuple[Field, ...], release: tuple[int, int]) -> tuple[Field, ...]:
    """Return fields without the tagged ones that a release does not know; the same ones where it knows all."""
    known = (row for row in fields if row.since is None or row.since <= release)
    types = [(row, _type_known_to(row.type, release)) for row in known]
    return tuple(row if known_type is row.type else replace(row, type=known_type) for row, known_type in types)


def _type_known_to(wire_type: WireType, release: tuple[int, int]) -> WireType:
    match wire_type:
        case Struct(fields):
            known = _known_to(fields, release)
            return wire_type if known == fields else Struct(known)
        case ArrayOf(element, is_repeated):
            inner = _type_known_to(element, release)
            assert not isinstance(inner, ArrayOf)
            return wire_type if inner is element else ArrayOf(inner, is_repeated)
        case _:
            return wire_type


def _struct(fields: tuple[Field, ...], version: int, flexible: bool) -> c.Construct:
    rows = _of_version(fields, version)
    plain = [row.name / _code(row, version, flexible) for row in rows if row.tag is None]
    tagged = {
        row.tag: TaggedField(row.name, _code(row, version, flexible), partial(default_of, row))
        for row in rows
        if row.tag is not None
    }
    return MessageStruct(plain, tagged if flexible else None)


def _code(field: Field, version: int, flexible: bool) -> c.Construct:
    match field.type:
        case Struct(fields):
            struct = _struct(fields, version, flexible)
            return NullableStruct(struct, tagged=field.tag is not None) if field.nullable else struct
        case ArrayOf(element, is_repeated):
            inner = _code(Field(field.name, element), version, flexible)
            return p.Array(p.COMPACT if flexible else p.INT32, inner, field.nullable, is_repeated)
        case Scalar("string"):
            return p.string(p.COMPACT if flexible else p.INT16, field.nullable)
        case Scalar("bytes"):
            return p.Sized(p.COMPACT if flexible else p.INT32, field.nullable)
        case Scalar(code=code):
            return code


# ------------------------------------------------------------------------------------ from rows to JSON


def _struct_json(fields: tuple[Field, ...], value: dict[str, Any], version: int) -> dict[str, Any]:
    return {
        row.json_name: REDACTED if _is_redacted(row, value) else _json(row.type, value[row.name], version)
        for row in _of_version(fields, version)
        if row.tag is None or value[row.name] != default_of(row)
    }


def _is_redacted(row: Field, value: Mapping[str, Any]) -> bool:
    return row.secret is not None and value[row.name] is not None and row.secret(value)


def _json(type_: WireType, value: Any, version: int) -> Any:
    if value is None:
        return None
    match type_:
        case Struct(fields):
            return _struct_json(fields, value, version)
        case ArrayOf(element):
            return [_json(element, item, version) for item in value]
        case Scalar("bytes"):
            return base64.b64encode(value).decode("ascii")
        case Scalar("uuid"):
            return str(value)
        case Scalar("bool"):
            return bool(value)
        case _:
            return value


def _struct_from_json(fields: tuple[Field, ...], json: dict[str, Any], version: int) -> dict[str, Any]:
    return {
        row.name: _from_json(row.type, json[row.json_name], version) if row.json_name in json else default_of(row)
        for row in _of_version(fields, version)
    }


def _from_json(type_: WireType, json: Any, version: int) -> Any:
    if json is None:
        return None
    match type_:
        case Struct(fields):
            return _struct_from_json(fields, json, version)
        case ArrayOf(element):
            return [_from_json(element, item, version) for item in json]
        case Scalar("bytes"):
            return base64.b64decode(json)
        case Scalar("uuid"):
            return p.Uuid.from_text(json)
        case _:
            return json


# -------------------------------------------------------------------------- walking a parsed message


def walk(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield every part of a parsed message with its path in Kafka's spelling, containers before their parts."""
    yield path, value
    if isinstance(value, dict):
        for name, part in value.items():
            if name != UNKNOWN_TAGS:
                yield from walk(part, f"{path}.{Field(name, INT8).json_name}")
    elif isinstance(value, list):
        for i, part in enumerate(value):
            yield from walk(part, f"{path}[{i}]")
