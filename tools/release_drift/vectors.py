"""Messages that a release's own generated classes write, read and written again by the tables here, byte for byte.

Values are random, by Kafka's description of each version. What no table describes is not asked: `messages` tells it.
"""

from __future__ import annotations

import base64
import json
import random
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

from offsets_log.errors import OffsetsLogError
from offsets_log.kafka_releases import Version
from offsets_log.log_format import primitives as p
from offsets_log.log_format.primitives import Uuid
from offsets_log.messages.consumer_protocol import EmbeddedMessage
from offsets_log.messages.message_struct import UNKNOWN_TAGS
from offsets_log.messages.registry import (
    INT16,
    RECORD_TYPES,
    decode_coordinator_record,
    encode_coordinator_record,
)
from offsets_log.messages.schema import walk
from tools.release_drift.descriptions import STRUCT, Row, Rows, kafkas_rows, versions_in
from tools.release_drift.findings import Finding
from tools.release_drift.jars import Jars
from tools.release_drift.java import run_java
from tools.release_drift.messages import OWN_VERSION
from tools.release_drift.tables import Table, all_tables

EACH = 20
"""Messages of a version."""
WORDS = (
    "",
    "orders",
    "consumer-1-5f6e",
    "Größe",
    "漢字",
    "émoji😀",
    "a\0b",
    "e\u0301",
    "x" * 200,
    "\u202eabc",
    "tab\tline\n",
)
BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}


@dataclass(frozen=True, slots=True)
class Vector:
    """A message as Kafka wrote it.

    Attributes:
        name: Kafka's name.
        version: of its layout.
        data: its bytes, without any version before them.
        json: the same as Kafka's JSON.
        failure: why Kafka's classes did not write it; empty if they did.
    """

    name: str
    version: int
    data: bytes = b""
    json: dict[str, Any] = field(default_factory=dict)
    failure: str = ""


def vector_drift(jars: Jars, _: Jars) -> Iterator[Finding]:
    """Yield versions of messages that are not read as they were written. Raises NotAvailableError without Java."""
    tables = all_tables()
    vectors = list(_written(jars, tables))
    found: dict[tuple[str, int], list[str]] = {}
    for vector in vectors:
        problems = found.setdefault((vector.name, vector.version), [])
        problems += _problems(vector, tables[vector.name], jars.row.line)
    for (name, version), problems in found.items():
        if problems:
            yield Finding(f"{name} version {version} is not read as it was written", (problems[0],), tables[name].place)
    yield from _records(vectors, jars.row.line)


def _written(jars: Jars, tables: dict[str, Table]) -> Iterator[Vector]:
    classes = _converted_classes(jars)
    asked = [
        (name, version, json_value)
        for name, (_, document) in sorted(jars.messages.items())
        if name in tables and name in classes
        for version in versions_in(document["validVersions"])
        if tables[name].layout_of(version, jars.row.line) is not None
        for json_value in _random_messages(name, kafkas_rows(document, version), version)
    ]
    lines = (
        json.dumps({"class": classes[name], "version": version, "json": value}, ensure_ascii=True)
        for name, version, value in asked
    )
    answers = run_java(jars, "Encode", stdin="\n".join(lines)).split("\n")
    for (name, version, _), line in zip(asked, answers, strict=False):
        if line.startswith("!"):
            yield Vector(name, version, failure=line[1:])
        else:
            data, _, told = line.partition(" ")
            yield Vector(name, version, bytes.fromhex(data), json.loads(told))


def _converted_classes(jars: Jars) -> dict[str, str]:
    """Return name of a message → its generated class, of those with a converter of JSON."""
    ending = "JsonConverter.class"
    found = {}
    for path in jars.kafkas:
        with zipfile.ZipFile(path) as jar:
            for entry in jar.namelist():
                if entry.endswith(ending) and "$" not in entry:
                    name = entry.removesuffix(ending).replace("/", ".")
                    simple = name.rpartition(".")[2]
                    found[simple] = found[simple.removesuffix("Data")] = name
    return found


# ----------------------------------------------------------------------------------------- random values


def _random_messages(name: str, rows: Rows, version: int) -> Iterator[dict[str, Any]]:
    for number in range(EACH):
        yield _struct(rows, random.Random(f"{name} {version} {number}"), version)


def _struct(rows: Rows, seeded: random.Random, version: int) -> dict[str, Any]:
    return {
        row.name[0].lower() + row.name[1:]: _field(row, seeded, version)
        for row in rows.values()
        if row.tag is None or seeded.random() < 0.6
    }


def _field(row: Row, seeded: random.Random, version: int) -> Any:
    if row.nullable and (seeded.random() < 0.25 or row.type == "bytes"):
        return None
    if row.type.startswith("[]"):
        return [_value(row, seeded, version) for _ in range(seeded.choice((0, 1, 1, 2, 3)))]
    return _value(row, seeded, version)


def _value(row: Row, seeded: random.Random, version: int) -> Any:
    kind = row.type.removeprefix("[]")
    match kind:
        case "string":
            return seeded.choice(WORDS)
        case "bytes":
            return base64.b64encode(seeded.randbytes(seeded.choice((0, 1, 40, 300)))).decode()
        case "bool":
            return seeded.random() < 0.5
        case "uuid":
            return str(Uuid(seeded.randbytes(16)))
        case "float64":
            return seeded.uniform(-1e9, 1e9)
        case "uint16":
            return seeded.choice((0, 1, 0x7FFF, 0xFFFF))
    if kind == STRUCT:
        return _struct(row.fields, seeded, version)
    top = 1 << BITS[kind] - 1
    return seeded.choice((0, 1, -1, top - 1, -top, seeded.randrange(-top, top)))


# -------------------------------------------------------------------------------------- reading them here


def _problems(vector: Vector, table: Table, line: Version) -> Iterator[str]:
    layout = table.layout_of(vector.version, line)
    assert layout is not None
    if vector.failure:
        yield f"Kafka's own class says {vector.failure}"
        return
    data, told = vector.data, vector.json
    if isinstance(layout, EmbeddedMessage) and layout.number is not None and OWN_VERSION in told:
        _, data = p.parse_prefix(layout.number, data, OWN_VERSION)
        told = {name: value for name, value in told.items() if name != OWN_VERSION}
    try:
        value = p.parse_exactly(layout.struct(vector.version), data, vector.name)
        again = p.build(layout.struct(vector.version), value, vector.name)
    except OffsetsLogError as error:
        yield f"{error}: {vector.data.hex()}"
        return
    if again != data:
        yield f"other bytes are written: {vector.data.hex()}"
    for path, part in walk(value, vector.name):
        if isinstance(part, dict) and UNKNOWN_TAGS in part:
            yield f"{path} has tags {[tag for tag, _ in part[UNKNOWN_TAGS]]}, which no table has"
            return
    if value != layout.from_json(told, vector.version):
        yield f"another value is read: {vector.data.hex()}"


def _records(vectors: Iterable[Vector], line: Version) -> Iterator[Finding]:
    """Put keys before values, as they stand in the offsets topic, and read both by the record type."""
    by_name: dict[str, list[Vector]] = {}
    for vector in vectors:
        if not vector.failure:
            by_name.setdefault(vector.name, []).append(vector)
    for row in RECORD_TYPES.values():
        keys = by_name.get(f"{row.name}Key", [])
        for key, value in zip(cycle(keys), by_name.get(f"{row.name}Value", []), strict=False):
            pair = INT16.pack(row.number) + key.data, INT16.pack(value.version) + value.data
            if encode_coordinator_record(decode_coordinator_record(*pair, (line[0], line[1]))) != pair:
                yield Finding(f"record type {row.number} {row.name} is not written as it was read", (str(pair),))
                break
