"""Requests and responses in every version, held against Kafka's own descriptions and classes, and against kio."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import io
import uuid
from dataclasses import is_dataclass
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.index import UnknownEntity, api_key_map, load_entity_schema
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType

from offsets_log import protocol
from offsets_log.errors import CorruptRecordError
from offsets_log.log_format.primitives import Uuid, build, parse_from
from offsets_log.messages.schema import ArrayOf, Field, Scalar, Struct, WireType, in_versions
from offsets_log.protocol.api import MOST_EXPLAINED_BYTES, SIZE_BYTES, Api, Header, decode_header
from offsets_log.protocol.offset_fetch import WITH_MANY_GROUPS, WITH_NAMES
from offsets_log.protocol.registry import APIS
from tests.protocol.kafkas_own import Json, kafkas_own
from tests.sizes import examples

MODULES = [import_module(one.name) for one in iter_modules(protocol.__path__, "offsets_log.protocol.")]
EVERY_API = {api.name: api for module in MODULES for api in vars(module).values() if isinstance(api, Api)}
"""Those of `APIS`, which only read, and those that `restore` sends."""
CASES = [(api, version) for api in EVERY_API.values() for version in range(api.versions[0], api.versions[1] + 1)]
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
        case Scalar("uint16"):
            return st.integers(0, (1 << 16) - 1)
        case Scalar(name):
            return st.integers(-(1 << RANGES[name] - 1), (1 << RANGES[name] - 1) - 1)
    raise AssertionError(kind)


def struct_values(fields: tuple[Field, ...], version: int) -> st.SearchStrategy[dict[str, Any]]:
    rows = [field for field in fields if in_versions(version, field.versions)]
    return st.fixed_dictionaries({row.name: field_values(row, version) for row in rows})


OF_KIO = {
    "error_code": st.sampled_from([-1, 0, 3, 35, 69]),
    "timestamp": st.integers(0, 1 << 41),
    "throttle_time_ms": st.integers(0, 1 << 30),
    "session_lifetime_ms": st.integers(0, 1 << 30),
    "topic_id": st.binary(min_size=16, max_size=16).filter(any).map(Uuid),
}
"""Values that kio knows where it has types of its own."""


def field_values(row: Field, version: int) -> st.SearchStrategy[Any]:
    inner = OF_KIO[row.name] if row.name in OF_KIO else values_of(row.type, version)
    return st.none() | inner if row.nullable else inner


def kio_schema(api: Api, version: int, kind: EntityType) -> type[Any]:
    return load_entity_schema(api_key_map[api.key], version, kind)


def is_known_to_kio(api: Api, version: int) -> bool:
    """Whether kio, which may be of an older release, has that version."""
    try:
        kio_schema(api, version, EntityType.request)
    except UnknownEntity:
        return False
    return True


Row = tuple[str, str, bool, int | None]
"""A field's name, its type, whether it may be null, and its tag."""


def kafka_rows(description: Json, version: int) -> list[Row]:
    """The rows of a version, as Kafka's description has them."""
    shared = {struct["name"]: struct["fields"] for struct in description.get("commonStructs", ())}
    rows: list[Row] = []

    def add(fields: list[Json], above: str) -> None:
        for field in fields:
            if not has(field["versions"], version):
                continue
            array, name = "[]" * field["type"].startswith("[]"), above + plain_name(field["name"])
            element = field["type"].removeprefix("[]")
            inner = field.get("fields") or shared.get(element)
            kind = ("" if array else "{}") if inner else "bytes" if element == "records" else element
            tag = field.get("tag") if has(field.get("taggedVersions", "none"), version) else None
            rows.append((name, array + kind, has(field.get("nullableVersions", "none"), version), tag))
            add(inner or [], f"{name}.")

    add(description["fields"], "")
    return rows


def has(versions: str, version: int) -> bool:
    return versions != "none" and in_versions(version, versions)


def plain_name(name: str) -> str:
    """A name in neither of both spellings."""
    return name.replace("_", "").lower()


def own_rows(fields: tuple[Field, ...], version: int, above: str = "") -> list[Row]:
    rows: list[Row] = []
    for row in fields:
        if not in_versions(version, row.versions):
            continue
        name = f"{above}{plain_name(row.name)}"
        element = row.type.element if isinstance(row.type, ArrayOf) else row.type
        kind = "[]" if isinstance(row.type, ArrayOf) else ""
        kind += element.name if isinstance(element, Scalar) else "" if kind else "{}"
        rows.append((name, kind, row.nullable, row.tag))
        rows += own_rows(element.fields, version, f"{name}.") if isinstance(element, Struct) else []
    return rows


@pytest.mark.parametrize(("api", "version"), CASES, ids=IDS)
def test_fields_are_those_of_kafkas_own_description(api: Api, version: int) -> None:
    for message in (api.request, api.response):
        description = kafkas_own()["messages"][message.name]
        assert description.get("apiKey") == api.key
        assert has(description["flexibleVersions"], version) == message.is_flexible(version)
        assert own_rows(message.fields, version) == kafka_rows(description, version)


def test_versions_are_those_of_kafkas_own_description() -> None:
    ours = {message.name: message.versions for api in EVERY_API.values() for message in (api.request, api.response)}
    theirs = {name: kafkas_own()["messages"][name]["validVersions"] for name in ours}
    other = {name: (ours[name], theirs[name]) for name in ours if ours[name] != theirs[name]}
    assert other == {
        **dict.fromkeys(("FetchRequest", "FetchResponse"), ("4-12", "4-18")),  # later ones name topics by their ids
        **dict.fromkeys(("SaslHandshakeRequest", "SaslHandshakeResponse"), ("1", "0-1")),  # 0 is without an API behind
    }


def test_bytes_are_those_of_kafkas_own_classes() -> None:
    """In versions that kio does not know."""
    tables = {message.name: message for api in EVERY_API.values() for message in (api.request, api.response)}
    for one in kafkas_own()["examples"]:
        table, version, raw = tables[one["name"]], one["version"], bytes.fromhex(one["bytes"])
        body = table.from_json(one["json"], version)
        assert build(table.struct(version), body, one["name"]) == raw
        assert parse_from(table.struct(version), raw, one["name"]) == (body, len(raw))
    told = {(one["name"], one["version"]) for one in kafkas_own()["examples"]}
    told |= {(name, version) for name, version in kafkas_own()["unwritten"]}
    assert told == {
        (message.name, n) for api, n in CASES if not is_known_to_kio(api, n) for message in (api.request, api.response)
    }


@pytest.mark.parametrize(("api", "version"), CASES, ids=IDS)
@given(data=st.data())
@examples(4)
def test_both_sides_of_the_wire_agree(api: Api, version: int, data: st.DataObject) -> None:
    body = data.draw(struct_values(api.request.fields, version))
    header = Header(api.key, version, 7, "me")
    frame = api.encode_request(header, body)
    assert int.from_bytes(frame[:SIZE_BYTES]) == len(frame) - SIZE_BYTES
    assert api.decode_request(frame[SIZE_BYTES:]) == (header, body)
    assert_kio_agrees(api, version, EntityType.request, frame[SIZE_BYTES:], body)
    answer = data.draw(struct_values(api.response.fields, version))
    if api.always_plain_header:
        answer["error_code"] = 0
    frame = api.encode_response(7, version, answer)
    assert api.decode_response(version, frame[SIZE_BYTES:]) == (7, answer)
    assert_kio_agrees(api, version, EntityType.response, frame[SIZE_BYTES:], answer)


def assert_kio_agrees(api: Api, version: int, kind: EntityType, frame: bytes, body: dict[str, Any]) -> None:
    """It reads the same values from a frame, and writes them to the same bytes, if it knows the version."""
    if not is_known_to_kio(api, version):
        return
    schema = kio_schema(api, version, kind)
    header, at = entity_reader(schema.__header_schema__)(frame, 0)
    assert header.correlation_id == 7
    found, size = entity_reader(schema)(frame, at)
    assert at + size == len(frame)
    assert from_kio(found) == renamed(body)
    out = io.BytesIO()
    entity_writer(schema.__header_schema__)(out, header)
    entity_writer(schema)(out, found)
    assert out.getvalue() == frame


def from_kio(value: Any) -> Any:
    match value:
        case tuple():
            return [from_kio(part) for part in value]
        case uuid.UUID():
            return value.bytes
        case datetime.timedelta():
            return value // datetime.timedelta(milliseconds=1)
        case datetime.datetime():
            return round(value.timestamp() * 1000)
        case _ if is_dataclass(value):
            return {kio_name(row.name): from_kio(getattr(value, row.name)) for row in dataclasses.fields(value)}
    return value


def kio_name(name: str) -> str:
    """A name without what kio leaves out of it where it has a type of its own."""
    return name.removesuffix("_ms").replace("_", "")


def renamed(value: Any) -> Any:
    match value:
        case dict():
            return {kio_name(name): renamed(part) for name, part in value.items()}
        case list():
            return [renamed(part) for part in value]
    return value


@pytest.mark.parametrize(("api", "version"), CASES, ids=IDS)
@given(raw=st.binary(max_size=60))
@examples(6)
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


def test_frames_are_those_of_the_protocol_guide() -> None:
    """A size of 4 bytes, then the header: with tagged fields in flexible versions, but for ApiVersions' answers."""
    api = APIS[18]
    assert api.encode_request(Header(18, 0, 7, "c"), {}) == bytes.fromhex("0000000b 0012 0000 00000007 0001 63")
    flexible = {"client_software_name": "n", "client_software_version": "v"}
    framed = api.encode_request(Header(18, 3, 7, None), flexible)
    assert framed == bytes.fromhex("00000010 0012 0003 00000007 ffff 00 026e 0276 00")
    assert decode_header(framed[SIZE_BYTES:]) == (Header(18, 3, 7, None), bytes.fromhex("00 026e 0276 00"))
    assert api.decode_request(framed[SIZE_BYTES:] + b"more") == (Header(18, 3, 7, None), flexible)
    for version, words in ((99, "has no version 99"), (-1, "has no version -1")):
        changed = framed[SIZE_BYTES:6] + version.to_bytes(2, signed=True) + framed[8:]
        with pytest.raises(CorruptRecordError, match=words):
            api.decode_request(changed)
    answer = {"error_code": 0, "api_keys": []}
    assert api.encode_response(7, 0, answer) == bytes.fromhex("0000000a 00000007 0000 00000000")


@pytest.mark.parametrize(
    ("span", "newest"), [((0, 3), None), ((0, 4), 4), ((6, 9), 9), ((0, 99), 12), ((12, 18), 12), ((13, 18), None)]
)
def test_the_newest_version_that_both_sides_have(span: tuple[int, int], newest: int | None) -> None:
    assert APIS[1].newest_of(*span) == newest


def test_a_broker_is_not_asked_in_versions_that_make_topics() -> None:
    assert APIS[3].versions == (0, 13)
    assert APIS[3].newest_of(0, 3) is None
    assert APIS[3].newest_of(0, 4) == 4
    assert {key for key, api in APIS.items() if api.asked_from} == {3}


def test_both_tables_of_an_api_have_the_same_versions() -> None:
    assert [api.name for api in APIS.values() if api.request.versions != api.response.versions] == []


def test_versions_that_stand_in_code_are_those_of_the_tables() -> None:
    offset_fetch = APIS[9]
    has_many = [any(row.name == "groups" for row in offset_fetch.request.fields_of(n)) for n in range(1, 11)]
    assert has_many.index(True) + 1 == WITH_MANY_GROUPS
    topic = {"name": "t", "topic_id": bytes(16), "partition_indexes": [1]}
    group = {"group_id": "g", "member_id": None, "member_epoch": -1, "topics": [topic]}
    body = {"groups": [group], "require_stable": True}
    has_names = [b"\2t" in offset_fetch.encode_request(Header(9, n, 1, None), body) for n in range(8, 11)]
    assert has_names.index(False) - 1 == WITH_NAMES - 8


@pytest.mark.parametrize("more", [-1, 0, 1, 100])
def test_a_request_of_any_size_is_read_or_refused(more: int) -> None:
    """Of a large one that is wrong it is not said where."""
    api, size = APIS[1], MOST_EXPLAINED_BYTES + more
    body = api.request.zeros(4) | {"topics": [{"topic": "t" * 20_000, "partitions": []}] * 3}
    frame = api.encode_request(Header(1, 4, 7, ""), body)[SIZE_BYTES:]
    frame += bytes(size - len(frame))
    assert api.decode_request(frame)[1] == body
    short = frame[:40] + bytes(20) + b"\x7f" * (size - 60)
    with pytest.raises(CorruptRecordError) as caught:
        api.decode_request(short)
    assert ("not those of such a message" in str(caught.value)) == (more > 0)
    assert str(caught.value.field).startswith("FetchRequest")
