"""The fields of a message in one version: as Kafka's JSON describes them, and as a table here does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from offsets_log.kafka_releases import Version
from offsets_log.log_format.primitives import ZERO_UUID
from offsets_log.messages.schema import ArrayOf, Field, Message, Scalar, Struct, WireType, default_of, in_versions
from tools.release_drift.jars import Document

OPEN_END = 0x7FFF
STRUCT = "struct"
OF_KAFKA = {"records": "bytes"}
"""Kafka's name of a type → the name that it has here."""


@dataclass(frozen=True, slots=True)
class Row:
    """A field.

    Attributes:
        name: as it is spelt where it comes from.
        type: Kafka's name; "struct" for what has fields of its own; with "[]" before it for an array.
        nullable: whether it may be null in that version.
        tag: None for a plain field.
        default: what a missing tag reads as, parsed; None also where a table does not say one.
        fields: of a struct, or of each element of an array.
    """

    name: str
    type: str
    nullable: bool
    tag: int | None
    default: Any
    fields: Mapping[str, Row]

    def __str__(self) -> str:
        nullable = ", may be null" if self.nullable else ""
        tag = "" if self.tag is None else f", tag {self.tag}, default {self.default!r}"
        return f"{self.name} {self.type}{nullable}{tag}"


Rows = Mapping[str, Row]
"""A name without case and underscores, by which both sides meet → the field; in wire order."""


def versions_in(text: str | None) -> range:
    """Return the versions of ``"0-4"``, ``"3"``, ``"2+"``, ``"none"``; of a field that says none, none."""
    if text in (None, "none"):
        return range(0)
    first, dash, last = str(text).removesuffix("+").partition("-")
    if str(text).endswith("+"):
        return range(int(first), OPEN_END)
    return range(int(first), int(last if dash else first) + 1)


def lines_of(rows: Rows, above: str = "") -> Iterator[str]:
    """Yield each field as a line, with those that it is in before its name."""
    for row in rows.values():
        yield f"{above}{row}"
        yield from lines_of(row.fields, f"{above}{row.name}.")


def kafkas_rows(document: Document, version: int) -> Rows:
    """Return the fields of one version of Kafka's description of a message."""
    structs = {row["name"]: row["fields"] for row in document.get("commonStructs", ())}
    return _kafkas(document["fields"], version, structs)


def _kafkas(fields: Iterable[Document], version: int, structs: Mapping[str, list[Document]]) -> Rows:
    rows = (
        _kafkas_row(field, version, structs)
        for field in fields
        if version in versions_in(field.get("versions", field.get("taggedVersions")))
    )
    return {_plain(row.name): row for row in rows}


def _kafkas_row(field: Document, version: int, structs: Mapping[str, list[Document]]) -> Row:
    element = field["type"].removeprefix("[]")
    array = "[]" if field["type"] != element else ""
    inner_fields: Iterable[Document] = field.get("fields") or structs.get(element, [])
    inner = _kafkas(inner_fields, version, structs)
    is_struct = "fields" in field or element in structs
    kind = STRUCT if is_struct else OF_KAFKA.get(element, element)
    nullable = version in versions_in(field.get("nullableVersions"))
    tag = int(field["tag"]) if version in versions_in(field.get("taggedVersions")) else None
    default = _kafkas_default(array + kind, field.get("default"), inner)
    return Row(field["name"], array + kind, nullable, tag, default, inner)


def _kafkas_default(kind: str, text: Any, inner: Rows) -> Any:
    """Return a default as a value; JSON's own null says none, which is an empty array in Kafka's generated classes."""
    if text == "null":
        return None
    if kind.startswith("[]"):
        return []
    match kind:
        case "struct":
            return {name: row.default for name, row in inner.items()}
        case "string":
            return text or ""
        case "bytes":
            return b""
        case "uuid":
            return ZERO_UUID
        case "bool":
            return str(text).lower() == "true"
        case "float64":
            return float(text or 0)
    return int(str(text or 0), 0)


def own_rows(message: Message, version: int, line: Version) -> Rows:
    """Return the fields of one version of a table that a release (major, minor) knows."""
    return _own(message.fields, version, line)


def _own(fields: Iterable[Field], version: int, line: Version) -> Rows:
    rows = (
        _own_row(field, version, line)
        for field in fields
        if in_versions(version, field.versions) and (field.since is None or field.since <= line)
    )
    return {_plain(row.name): row for row in rows}


def _own_row(field: Field, version: int, line: Version) -> Row:
    element: WireType = field.type.element if isinstance(field.type, ArrayOf) else field.type
    array = "[]" if isinstance(field.type, ArrayOf) else ""
    inner = _own(element.fields, version, line) if isinstance(element, Struct) else {}
    kind = element.name if isinstance(element, Scalar) else STRUCT
    default = default_of(field)
    if isinstance(default, dict):
        default = {_plain(name): value for name, value in default.items()}
    return Row(field.name, array + kind, field.nullable, field.tag, default, inner)


def _plain(name: str) -> str:
    return name.replace("_", "").lower()
