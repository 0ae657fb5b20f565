"""The construct codecs that messages have beyond wire types: tagged fields, and structs that may be null.

References: ``generator/.../MessageDataGenerator.java``.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import construct as c

from offsets_log.log_format import primitives as p
from offsets_log.log_format import readers, writers

UNKNOWN_TAGS = "unknown tags"
"""Key of the unknown tagged fields inside a parsed struct; not a field name, because it holds a space."""

NO_TAGS = b"\0"
"""A section of tagged fields without any."""


@dataclass(frozen=True, slots=True)
class TaggedField:
    """A field that stands in the tagged section, if it differs from its default (``records:P2``).

    Attributes:
        code: of its data.
        default: makes its value where it does not stand there.
    """

    name: str
    code: c.Construct
    default: Callable[[], Any]


class MessageStruct(p.PlainStruct):
    """A Struct that knows Kafka's tagged-field section.

    Args:
        fields: the plain fields, in wire order.
        tagged: by tag; None for a struct without a section.
    """

    def __init__(self, fields: list[c.Construct], tagged: dict[int, TaggedField] | None) -> None:
        super().__init__(*fields)
        self.tagged = tagged

    def _parse(self, stream: io.BytesIO, context: Any, path: str) -> dict[str, Any]:
        value = super()._parse(stream, context, path)
        if self.tagged is not None:
            self._parse_tagged(value, stream, context, path)
        return value

    def _parse_tagged(self, value: dict[str, Any], stream: io.BytesIO, context: Any, path: str) -> None:
        assert self.tagged is not None
        for field in self.tagged.values():
            value[field.name] = field.default()
        unknown: list[tuple[int, bytes]] = []
        section = f"{path} -> tagged fields"
        for _ in range(p.UVARINT._parsereport(stream, context, section)):
            tag = p.UVARINT._parsereport(stream, context, section)
            size = p.UVARINT._parsereport(stream, context, section)
            if tag not in self.tagged:
                unknown.append((tag, p.read_exactly(stream, size, section, f"tag {tag}")))
            else:  # its own bytes tell how long it is (``records:P6``)
                field = self.tagged[tag]
                value[field.name] = field.code._parsereport(stream, context, f"{path} -> {field.name}")
        if unknown:
            value[UNKNOWN_TAGS] = unknown

    def _build(self, obj: dict[str, Any], stream: io.BytesIO, context: Any, path: str) -> dict[str, Any]:
        super()._build(obj, stream, context, path)
        if self.tagged is not None:
            self._build_tagged(obj, stream, context, path)
        return obj

    def _build_tagged(self, obj: dict[str, Any], stream: io.BytesIO, context: Any, path: str) -> None:
        assert self.tagged is not None
        section: list[tuple[int, bytes]] = list(obj.get(UNKNOWN_TAGS, ()))
        for tag, field in self.tagged.items():
            if obj.get(field.name, default := field.default()) != default:
                inner = io.BytesIO()
                field.code._build(obj[field.name], inner, context, f"{path} -> {field.name}")
                section.append((tag, inner.getvalue()))
        p.UVARINT._build(len(section), stream, context, path)
        for tag, data in sorted(section, key=lambda item: item[0]):
            p.UVARINT._build(tag, stream, context, path)
            p.UVARINT._build(len(data), stream, context, path)
            stream.write(data)

    def reader(self) -> readers.Reader:
        plain, section = super().reader(), p.Array(p.UVARINT, TAGGED_FIELD).reader()
        if self.tagged is None:
            return plain
        defaults = list(self.tagged.values())
        known = {tag: (field.name, readers.part(field.code)) for tag, field in self.tagged.items()}

        def read_struct(data: bytes, at: int) -> tuple[dict[str, Any], int]:
            value, at = plain(data, at)
            for field in defaults:
                value[field.name] = field.default()
            found, at = section(data, at)
            unknown = []
            for row in found:
                if row["tag"] not in known:
                    unknown.append((row["tag"], row["data"]))
                    continue
                name, inner = known[row["tag"]]
                value[name], end = inner(row["data"], 0)
                if end != len(row["data"]):
                    raise readers.NotPlainError
            if unknown:
                value[UNKNOWN_TAGS] = unknown
            return value, at

        return read_struct

    def writer(self) -> writers.Writer:
        if self.tagged is None:
            return super().writer()
        return writers.fields(self.subcons, _section_writer(self.tagged))


def _behind_its_size(size: writers.Writer, write: writers.Writer) -> writers.Writer:
    """Return the writer of bytes behind their number; null is for the inner writer."""

    def write_both(value: Any) -> bytes:
        raw = write(value)
        return size(len(raw)) + raw

    return write_both


def _section_writer(tagged: dict[int, TaggedField]) -> writers.Writer:
    number = writers.part(p.UVARINT)
    rows = [
        (field.name, field.default, number(tag), _behind_its_size(number, writers.part(field.code)))
        for tag, field in sorted(tagged.items())
    ]

    def write_section(value: dict[str, Any]) -> bytes:
        if UNKNOWN_TAGS in value:
            raise readers.NotPlainError
        found = [
            tag + write(value[name]) for name, default, tag, write in rows if name in value and value[name] != default()
        ]
        return number(len(found)) + b"".join(found)

    def write_no_section(value: dict[str, Any]) -> bytes:
        if UNKNOWN_TAGS in value:
            raise readers.NotPlainError
        return NO_TAGS

    return write_section if rows else write_no_section


TAGGED_FIELD = p.PlainStruct("tag" / p.UVARINT, "data" / p.Sized(p.UVARINT, nullable=False))
"""One of a section of tagged fields, whatever it holds."""


class NullableStruct(c.Construct):  # type: ignore[misc]
    """A struct behind a presence marker: int8 (below 0: null), or inside a tagged field uvarint (0: null)."""

    def __init__(self, struct: c.Construct, tagged: bool) -> None:
        super().__init__()
        self.struct = struct
        self.marker: c.Construct = p.UVARINT if tagged else p.INT8
        self.null, self.present = (0, 1) if tagged else (-1, 1)

    def _parse(self, stream: io.BytesIO, context: Any, path: str) -> Any:
        marker = self.marker._parsereport(stream, context, path)
        if marker <= self.null:
            return None
        return self.struct._parsereport(stream, context, path)

    def _build(self, obj: Any, stream: io.BytesIO, context: Any, path: str) -> Any:
        self.marker._build(self.null if obj is None else self.present, stream, context, path)
        if obj is not None:
            self.struct._build(obj, stream, context, path)
        return obj

    def reader(self) -> readers.Reader:
        marker, inner, null = readers.part(self.marker), readers.part(self.struct), self.null

        def read_nullable(data: bytes, at: int) -> tuple[dict[str, Any] | None, int]:
            found, at = marker(data, at)
            return (None, at) if found <= null else inner(data, at)

        return read_nullable

    def writer(self) -> writers.Writer:
        null, present, inner = *map(writers.part(self.marker), (self.null, self.present)), writers.part(self.struct)
        return lambda value: null if value is None else present + inner(value)
