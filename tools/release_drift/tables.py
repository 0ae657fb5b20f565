"""Which tables here stand for which of Kafka's messages, and where they are written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from types import ModuleType

import offsets_log.messages
import offsets_log.protocol
from offsets_log.kafka_releases import Version
from offsets_log.messages.cluster_metadata.control import CONTROL_MESSAGES
from offsets_log.messages.cluster_metadata.registry import METADATA_RECORDS
from offsets_log.messages.consumer_protocol import CONSUMER_PROTOCOL_ASSIGNMENT, CONSUMER_PROTOCOL_SUBSCRIPTION
from offsets_log.messages.registry import RECORD_TYPES, RecordType
from offsets_log.messages.schema import Message
from offsets_log.messages.state_topics import STATE_RECORD_TYPES
from offsets_log.messages.streams_protocol import SUBSCRIPTION_INFO
from offsets_log.protocol.api import REQUEST_HEADER, RESPONSE_HEADER, Api

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Table:
    """The tables of one message.

    Attributes:
        layouts: newest first; several where layouts share a version.
        number: the record type or API key that they are registered under; None for a message without one.
        place: the file that they are written in.
    """

    layouts: tuple[Message, ...]
    number: int | None
    place: str

    def layout_of(self, version: int, line: Version) -> Message | None:
        """Return the table of a version, as a release (major, minor) writes it; None if there is none."""
        with_version = [layout for layout in self.layouts if layout.has_version(version)]
        written = (layout for layout in with_version if layout.is_written_by((line[0], line[1])))
        return next(written, with_version[0] if with_version else None)


def all_apis() -> tuple[Api, ...]:
    """Every API with tables: those that read, and those that ``restore`` sends."""
    found = (value for module in _modules(offsets_log.protocol) for value in vars(module).values())
    return tuple({id(value): value for value in found if isinstance(value, Api)}.values())


def all_tables() -> dict[str, Table]:
    """Kafka's name of a message → its tables."""
    places = {id(value): _place(module) for module, value in _written()}

    def table(number: int | None, *layouts: Message) -> Table:
        return Table(layouts, number, places[id(layouts[0])])

    tables: dict[str, Table] = {}
    for row in _record_types():
        tables[f"{row.name}Key"] = table(row.number, row.key)
        tables[f"{row.name}Value"] = table(row.number, *row.values)
    for number, message in METADATA_RECORDS.items():
        tables[message.name] = table(number, message)
    for message in (
        *CONTROL_MESSAGES.values(),
        CONSUMER_PROTOCOL_SUBSCRIPTION,
        CONSUMER_PROTOCOL_ASSIGNMENT,
        REQUEST_HEADER,
        RESPONSE_HEADER,
    ):
        tables[message.name] = table(None, message)
    tables["SubscriptionInfoData"] = table(None, SUBSCRIPTION_INFO)
    for api in all_apis():
        for message in (api.request, api.response):
            tables[message.name] = Table((message,), api.key, places[id(api)])
    return tables


def _record_types() -> Iterator[RecordType]:
    yield from RECORD_TYPES.values()
    for types in STATE_RECORD_TYPES.values():
        yield from types.values()


def _modules(package: ModuleType) -> list[ModuleType]:
    return [import_module(found.name) for found in walk_packages(package.__path__, f"{package.__name__}.")]


def _written() -> Iterator[tuple[ModuleType, Message | Api]]:
    """Yield tables with the modules that know them, those that write them last."""
    modules = [*_modules(offsets_log.messages), *_modules(offsets_log.protocol)]
    texts = {module: Path(module.__file__ or "").read_text(encoding="utf-8") for module in modules}
    for module in sorted(modules, key=lambda module: module.__name__):
        for name, value in vars(module).items():
            if isinstance(value, Message | Api) and f"\n{name} = " in texts[module]:
                yield module, value


def _place(module: ModuleType) -> str:
    return Path(module.__file__ or "").relative_to(ROOT).as_posix()
