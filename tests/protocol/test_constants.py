"""Numbers of the protocol that stand in code: error codes, kinds of keys, and what is meant where nothing is said."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterator
from typing import Any, get_args, get_origin

import pytest
from kio.schema.errors import ErrorCode
from kio.static.constants import EntityType

from offsets_log.messages.schema import INT16, ArrayOf, Field, Struct, in_versions
from offsets_log.protocol import describe_configs, error_codes, find_coordinator
from offsets_log.protocol.api import Api
from tests.protocol.test_tables import CASES, IDS, kio_schema, plain_name

NAMED = {name: code for name, code in vars(error_codes).items() if name.isupper() and isinstance(code, int)}
SAID_OTHERWISE = {"NO_ERROR": "NONE"}


def test_error_codes_are_kafkas() -> None:
    kafkas = {code.name.upper(): code.value for code in ErrorCode}
    assert {SAID_OTHERWISE.get(name, name): code for name, code in NAMED.items()}.items() <= kafkas.items()
    assert {name: code for code, name in error_codes.NAMES.items()}.items() <= kafkas.items()
    assert len(NAMED) > 10


def test_kinds_of_coordinators_and_configurations_are_kafkas() -> None:
    assert (find_coordinator.GROUP, find_coordinator.TRANSACTION, find_coordinator.SHARE) == (0, 1, 2)
    assert (describe_configs.TOPIC, describe_configs.BROKER) == (2, 4)


def own_defaults(fields: tuple[Field, ...], version: int, above: str = "") -> Iterator[tuple[str, Any]]:
    for row in fields:
        if in_versions(version, row.versions):
            name = f"{above}{plain_name(row.name)}"
            if row.default is not None and row.type != INT16:  # of codes of errors Kafka says none
                yield name, tuple(row.default.values()) if isinstance(row.default, dict) else row.default
            element = row.type.element if isinstance(row.type, ArrayOf) else row.type
            if isinstance(element, Struct):
                yield from own_defaults(element.fields, version, f"{name}.")


def kio_defaults(schema: type[Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for field in dataclasses.fields(schema):
        name = f"{above}{plain_name(field.name)}"
        yield name, _plain(field.default)
        hints = [field.type, *get_args(field.type)]
        arrays = [get_args(hint)[0] for hint in hints if get_origin(hint) is tuple]
        for element in filter(dataclasses.is_dataclass, [*hints, *arrays]):
            yield from kio_defaults(element, f"{name}.")


def _plain(default: Any) -> Any:
    if dataclasses.is_dataclass(default):
        return tuple(getattr(default, field.name) for field in dataclasses.fields(default))
    if isinstance(default, datetime.timedelta):
        return default // datetime.timedelta(milliseconds=1)
    return default.value if isinstance(default, ErrorCode) else default


@pytest.mark.parametrize(("api", "version"), CASES, ids=IDS)
def test_defaults_are_kafkas(api: Api, version: int) -> None:
    for message, kind in ((api.request, EntityType.request), (api.response, EntityType.response)):
        kafkas = dict(kio_defaults(kio_schema(api, version, kind)))
        own = dict(own_defaults(message.fields, version))
        assert own == {name: kafkas[name] for name in own}
