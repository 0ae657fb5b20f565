"""List how a record type's key and values look on the wire, as rows made from the schema tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from offsets_log.log_format.primitives import Uuid
from offsets_log.messages.registry import RECORD_TYPES, RecordType
from offsets_log.messages.schema import ZEROS, ArrayOf, Field, Message, Scalar, Struct, WireType, in_versions

NEAR = 3
"""How many similar names are suggested for an unknown record type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldRow:
    """One field of one version of a layout.

    Attributes:
        part: ``key`` or ``value``.
        version: version of the value; a key has none.
        flexible: whether lengths are compact and every struct ends with its tagged fields.
        layout: Kafka's name of the message.
        releases: releases that write this layout, where layouts share a version number; None otherwise.
        field: path of the field, in snake_case: ``members[].client_id``.
        type: ``int32``, ``string``, ``[]int32``, ``struct``, ``[]struct``.
        versions: the versions of the value that have the field.
        nullable: whether the field may be null on the wire.
        tag: number of a tagged field, None for a plain one.
        default: the value of a missing tag, or of a plain field in versions that lack it; None if it has none.
        since: first release that knows a tagged field, where that is later than the layout; None otherwise.
    """

    part: str
    version: int | None
    flexible: bool
    layout: str
    releases: str | None
    field: str
    type: str
    versions: str
    nullable: bool
    tag: int | None
    default: Any
    since: str | None


def record_type(text: str) -> RecordType | None:
    """Return a record type by number or by Kafka's name in any spelling, or None.

    Spellings are for example ``2``, ``group-metadata``, ``GroupMetadataValue``.
    """
    wanted = _bare(text)
    return next((row for row in RECORD_TYPES.values() if wanted in (str(row.number), _bare(row.name))), None)


def like(text: str) -> list[str]:
    """Return names of record types similar to an unknown one, as a command takes them: ``offset-commit``."""
    known = {_bare(row.name): row.name for row in RECORD_TYPES.values()}
    found = get_close_matches(_bare(text), known, n=NEAR, cutoff=0.7)
    return [re.sub(r"(?<=[a-z])(?=[A-Z])", "-", known[name]).lower() for name in found]


def _bare(text: str) -> str:
    return re.sub(r"[-_\s]", "", re.sub(r"(?<=\w)[-_ ]?(key|value)$", "", text.lower()))


def versions_of(message: Message) -> range:
    """Return the value versions that a table describes."""
    first, _, last = message.versions.partition("-")
    return range(int(first), int(last or first) + 1)


def field_rows(row: RecordType) -> Iterator[FieldRow]:
    """Yield the key's fields, then those of every value version, newest layout first where several share a number."""
    yield from _rows("key", None, row.key, 0, None)
    for version in sorted({version for layout in row.values for version in versions_of(layout)}):
        for layout in row.layouts(version):
            yield from _rows("value", version, layout, version, _releases(layout))


def _releases(layout: Message) -> str | None:
    first, last = (None if release is None else ".".join(map(str, release)) for release in layout.releases)
    if first == last:
        return first
    if first is None:
        return f"up to {last}"
    return f"{first} and later" if last is None else f"{first} to {last}"


def _rows(part: str, shown: int | None, message: Message, version: int, releases: str | None) -> Iterator[FieldRow]:
    for path, field in _fields(message.fields_of(version), version, ""):
        yield FieldRow(
            part=part,
            version=shown,
            flexible=message.is_flexible(version),
            layout=message.name,
            releases=releases,
            field=path,
            type=_type_name(field.type),
            versions=field.versions,
            nullable=field.nullable,
            tag=field.tag,
            default=_default(field),
            since=None if field.since is None else ".".join(map(str, field.since)),
        )


def _fields(fields: tuple[Field, ...], version: int, above: str) -> Iterator[tuple[str, Field]]:
    """Yield each field with its path, containers before their parts."""
    for field in fields:
        path = above + field.name
        yield path, field
        is_array = isinstance(field.type, ArrayOf)
        inner = field.type.element if isinstance(field.type, ArrayOf) else field.type
        if isinstance(inner, Struct):
            below = f"{path}[]." if is_array else f"{path}."
            yield from _fields(_in_version(inner, version), version, below)


def _in_version(struct: Struct, version: int) -> tuple[Field, ...]:
    return tuple(field for field in struct.fields if in_versions(version, field.versions))


def _type_name(type_: WireType) -> str:
    match type_:
        case ArrayOf(element):
            return f"[]{_type_name(element)}"
        case Scalar(name=name):
            return name
        case _:
            return "struct"


def _default(field: Field) -> Any:
    if field.default is ZEROS:
        return "zeros, no elements"
    if isinstance(field.default, tuple):
        return list(field.default)
    return str(field.default) if isinstance(field.default, Uuid) else field.default
