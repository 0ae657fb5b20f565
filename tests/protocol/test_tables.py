"""Requests and responses in every version, held against those of kafka-python, which are made from Kafka's own JSON."""

from __future__ import annotations

import contextlib
import importlib
import json
from importlib import resources
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offsets_log.errors import CorruptRecordError
from offsets_log.log_format.primitives import Uuid
from offsets_log.messages.schema import ArrayOf, Field, Scalar, Struct, WireType, in_versions
from offsets_log.protocol.api import SIZE_BYTES, Api, Header
from offsets_log.protocol.registry import APIS

CASES = [(api, version) for api in APIS.values() for version in range(api.versions[0], api.versions[1] + 1)]
IDS = [f"{api.name}-{version}" for api, version in CASES]
RANGES = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}


def values_of(kind: WireType, version: int) -> st.SearchStrategy[Any]:
    match kind:
        case Struct(fields):
            return struct_values(fields, version)
        case ArrayOf(element):
            return st.lists(values_of(element, version), max_size=3)
        case Scalar("string"):
            return st.text(max_size=5).filter(lambda text: text.isprintable())
        case Scalar("bytes"):
            return st.binary(max_size=9)
        case Scalar("uuid"):
            return st.binary(min_size=16, max_size=16).map(Uuid)
        case Scalar("bool"):
            return st.booleans()
        case Scalar(name):
            return st.integers(-(1 << RANGES[name] - 1), (1 << RANGES[name] - 1) - 1)
    raise AssertionError(kind)


def struct_values(fields: tuple[Field, ...], version: int) -> st.SearchStrategy[dict[str, Any]]:
    rows = [field for field in fields if in_versions(version, field.versions)]
    return st.fixed_dictionaries({row.name: field_values(row, version) for row in rows})


def field_values(row: Field, version: int) -> st.SearchStrategy[Any]:
    inner = values_of(row.type, version)
    return st.none() | inner if row.nullable else inner


def kafka_json(name: str) -> dict[str, Any]:
    """Kafka's own description of a message, of which kafka-python has a copy."""
    text = (resources.files("kafka.protocol.schemas") / "resources" / f"{name}.json").read_text()
    lines = [line for line in text.splitlines() if not line.strip().startswith("//")]
    found: dict[str, Any] = json.loads("\n".join(lines))
    return found


def flat(fields: list[dict[str, Any]], version: int, above: str = "") -> list[tuple[str, str, bool, int | None]]:
    """Each field of a version with its type, whether it may be null, and its tag."""
    rows: list[tuple[str, str, bool, int | None]] = []
    for field in fields:
        if not _has(field["versions"], version):
            continue
        name = f"{above}{field['name'].lower()}"
        kind = field["type"] if not field.get("fields") else "[]" if field["type"].startswith("[]") else "{}"
        tag = field.get("tag") if _has(field.get("taggedVersions", "none"), version) else None
        rows.append((name, kind.replace("records", "bytes"), _has(field.get("nullableVersions", "none"), version), tag))
        rows += flat(field.get("fields", []), version, f"{name}.")
    return rows


def _has(versions: str, version: int) -> bool:
    return versions != "none" and in_versions(version, versions)


def own(fields: tuple[Field, ...], version: int, above: str = "") -> list[tuple[str, str, bool, int | None]]:
    rows: list[tuple[str, str, bool, int | None]] = []
    for row in fields:
        if not in_versions(version, row.versions):
            continue
        name = f"{above}{row.name.replace('_', '')}"
        element = row.type.element if isinstance(row.type, ArrayOf) else row.type
        kind = "[]" if isinstance(row.type, ArrayOf) else ""
        kind += element.name if isinstance(element, Scalar) else "" if kind else "{}"
        rows.append((name, kind, row.nullable, row.tag))
        rows += own(element.fields, version, f"{name}.") if isinstance(element, Struct) else []
    return rows


@pytest.mark.parametrize(("api", "version"), CASES, ids=IDS)
def test_fields_are_those_of_kafkas_own_description(api: Api, version: int) -> None:
    for message in (api.request, api.response):
        told = kafka_json(message.name)
        assert told["apiKey"] == api.key
        assert _has(told["flexibleVersions"], version) == message.is_flexible(version)
        assert own(message.fields, version) == flat(told["fields"], version)


@pytest.mark.parametrize(("api", "version"), CASES, ids=IDS)
@given(data=st.data())
@settings(max_examples=4, deadline=None)
def test_both_sides_of_the_wire_agree(api: Api, version: int, data: st.DataObject) -> None:
    body = data.draw(struct_values(api.request.fields, version))
    header = Header(api.key, version, 7, "me")
    frame = api.encode_request(header, body)
    assert int.from_bytes(frame[:SIZE_BYTES]) == len(frame) - SIZE_BYTES
    assert api.decode_request(frame[SIZE_BYTES:]) == (header, body)
    answer = data.draw(struct_values(api.response.fields, version))
    if api.always_plain_header:
        answer["error_code"] = 0
    frame = api.encode_response(7, version, answer)
    assert api.decode_response(version, frame[SIZE_BYTES:]) == (7, answer)
    assert_kafka_python_reads(api, version, frame[SIZE_BYTES:])


def assert_kafka_python_reads(api: Api, version: int, frame: bytes) -> None:
    """What it decodes it encodes to the same bytes."""
    known = {1: "consumer", 2: "consumer", 23: "consumer", 3: "metadata", 18: "metadata", 17: "sasl", 36: "sasl"}
    kind = getattr(importlib.import_module(f"kafka.protocol.{known[api.key]}"), api.response.name)
    decoded = kind.decode(frame, version=version, header=True)
    decoded.with_header(correlation_id=7)
    assert bytes(decoded.encode(header=True)) == frame


@pytest.mark.parametrize(("api", "version"), CASES, ids=IDS)
@given(raw=st.binary(max_size=60))
@settings(max_examples=6, deadline=None)
def test_bytes_that_are_no_response_are_refused(api: Api, version: int, raw: bytes) -> None:
    """Nothing but an error of ours, and no room for what a length only claims."""
    for decode in (lambda: api.decode_response(version, raw), lambda: api.decode_request(raw)):
        with contextlib.suppress(CorruptRecordError):
            decode()


def test_a_broker_that_does_not_know_the_version_is_understood() -> None:
    api = APIS[18]
    ranges = [{"api_key": 18, "min_version": 0, "max_version": 2}]
    frame = api.encode_response(1, 0, {"error_code": 35, "api_keys": ranges})
    assert api.decode_response(4, frame[SIZE_BYTES:])[1]["api_keys"] == ranges


@pytest.mark.parametrize(
    ("span", "newest"), [((0, 3), None), ((0, 4), 4), ((6, 9), 9), ((0, 99), 12), ((12, 18), 12), ((13, 18), None)]
)
def test_the_newest_version_that_both_sides_have(span: tuple[int, int], newest: int | None) -> None:
    assert APIS[1].newest_of(*span) == newest
