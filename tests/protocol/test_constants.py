"""Numbers of the protocol that stand in code: error codes, kinds of keys, and what is meant where nothing is said."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from offsets_log.messages.schema import ArrayOf, Field, Struct, in_versions
from offsets_log.protocol import api_names, describe_configs, error_codes, find_coordinator
from offsets_log.protocol.api import Api
from tests.protocol.kafkas_own import Json, kafkas_own
from tests.protocol.test_tables import CASES, EVERY_API, IDS, has, plain_name

NAMED = {name: code for name, code in vars(error_codes).items() if name.isupper() and isinstance(code, int)}
SAID_OTHERWISE = {"NO_ERROR": "NONE"}


def test_error_codes_are_kafkas() -> None:
    kafkas = {name: int(code) for code, name in kafkas_own()["errors"].items()}
    assert {SAID_OTHERWISE.get(name, name): code for name, code in NAMED.items()}.items() <= kafkas.items()
    assert {name: code for code, name in error_codes.NAMES.items()}.items() <= kafkas.items()
    assert len(NAMED) > 10


def test_names_of_apis_are_kafkas() -> None:
    assert {api.key: api.name for api in EVERY_API.values()}.items() <= api_names.NAMES.items()
    assert [api_names.api_name(key) for key in (93, 94, 95)] == [
        "StreamsGroupTopologyDescriptionUpdate", "UnregisterController", "API 95",
    ]  # fmt: skip


def test_kinds_of_coordinators_and_configurations_are_kafkas() -> None:
    assert (find_coordinator.GROUP, find_coordinator.TRANSACTION, find_coordinator.SHARE) == (0, 1, 2)
    assert (describe_configs.TOPIC, describe_configs.BROKER, describe_configs.GROUP) == (2, 4, 32)


def own_defaults(fields: tuple[Field, ...], version: int, above: str = "") -> Iterator[tuple[str, Any]]:
    for row in fields:
        if in_versions(version, row.versions):
            name = f"{above}{plain_name(row.name)}"
            if row.default is not None:
                yield name, tuple(row.default.values()) if isinstance(row.default, dict) else row.default
            element = row.type.element if isinstance(row.type, ArrayOf) else row.type
            if isinstance(element, Struct):
                yield from own_defaults(element.fields, version, f"{name}.")


def kafka_defaults(description: Json, version: int) -> Iterator[tuple[str, Any]]:
    shared = {struct["name"]: struct["fields"] for struct in description.get("commonStructs", ())}

    def told(fields: list[Json], above: str) -> Iterator[tuple[str, Any]]:
        for field in fields:
            if has(field["versions"], version):
                name, element = f"{above}{plain_name(field['name'])}", field["type"].removeprefix("[]")
                inner = [*told(field.get("fields") or shared.get(element, []), f"{name}.")]
                yield name, _plain(field, tuple(value for _, value in inner))
                yield from inner

    return told(description["fields"], "")


def _plain(field: Json, of_parts: tuple[Any, ...]) -> Any:
    kind, default = field["type"], field.get("default")
    if default == "null":
        return None
    if kind == "bool":
        return str(default).lower() == "true"
    if kind == "string":
        return default or ""
    if kind.startswith(("int", "uint")):
        return int(str(default or 0), 0)
    return () if kind.startswith("[]") else of_parts


@pytest.mark.parametrize(("api", "version"), CASES, ids=IDS)
def test_defaults_are_kafkas(api: Api, version: int) -> None:
    for message in (api.request, api.response):
        kafkas = dict(kafka_defaults(kafkas_own()["messages"][message.name], version))
        own = dict(own_defaults(message.fields, version))
        assert own == {name: kafkas[name] for name in own}
