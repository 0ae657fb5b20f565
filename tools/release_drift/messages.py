"""Kafka's descriptions of its messages against the tables here, version by version."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from offsets_log.kafka_releases import Version
from offsets_log.messages.consumer_protocol import EmbeddedMessage
from offsets_log.messages.schema import Message
from tools.release_drift.descriptions import Row, Rows, kafkas_rows, lines_of, own_rows, versions_in
from tools.release_drift.findings import Finding
from tools.release_drift.jars import Document, Jars
from tools.release_drift.tables import Table, all_tables

RELEASES = "offsets_log/kafka_releases.py"
WORDS_ONLY = frozenset({"about", "ignorable", "entityType", "mapKey"})
"""Keys of a description that change no byte."""
OWN_VERSION = "version"
"""A field that stands before the others, which the table's `EmbeddedMessage.number` is here."""


def message_drift(jars: Jars, known: Jars) -> Iterator[Finding]:
    """Yield what a release's messages have that no table says, and the other way round.

    Args:
        known: the newest release that is known; messages without a table are compared with it.
    """
    tables = all_tables()
    untold: dict[str, list[Document]] = {}
    for name, (_, document) in sorted(jars.messages.items()):
        if document["validVersions"] == "none":
            continue
        table = tables.pop(name, None)
        if table is not None:
            yield from _drift_of(name, document, table, jars.row.line)
        else:
            untold.setdefault(_subject(document), []).append(document)
    for subject, documents in untold.items():
        yield from _untold(subject, documents, known)
    for name, table in sorted(tables.items()) if jars.is_newest else ():
        yield Finding(f"{name} is in the tables only", place=table.place)
    for api, own in jars.row.apis.items():
        newest = versions_in(jars.messages[f"{api}Request"][1]["validVersions"])[-1]
        if newest != own:
            yield Finding(f"{api} goes up to version {newest}, not {own}", place=RELEASES)


def _subject(document: Document) -> str:
    """Return what a reader calls a message: both messages of an API by its name."""
    name: str = document["name"]
    if document["type"] in ("request", "response"):
        return f"API {document['apiKey']} {name.removesuffix('Request').removesuffix('Response')}"
    return f"record {document['apiKey']} {name}" if "apiKey" in document else name


def _untold(subject: str, documents: list[Document], known: Jars) -> Iterator[Finding]:
    details = []
    for document in documents:
        details.append(f"{document['name']}, versions {document['validVersions']}:")
        rows = kafkas_rows(document, versions_in(document["validVersions"])[-1])
        details += [f"  {line}" for line in lines_of(rows)]
    yield Finding(f"{subject} is in no table", tuple(details))
    before = [known.messages[name][1] for name in (each["name"] for each in documents) if name in known.messages]
    if before and _bytes_of(before) != _bytes_of(documents):
        spans = f"versions {documents[0]['validVersions']}, were {before[0]['validVersions']}"
        yield Finding(f"{subject}, which is in no table, is not as in {known.version}: {spans}")


def _bytes_of(part: Any) -> Any:
    """Return a description without what is only said in words."""
    match part:
        case dict():
            return {name: _bytes_of(value) for name, value in part.items() if name not in WORDS_ONLY}
        case list():
            return [_bytes_of(value) for value in part]
    return part


def _drift_of(name: str, document: Document, table: Table, line: Version) -> Iterator[Finding]:
    number = document.get("apiKey", table.number)
    if number != table.number:
        yield Finding(f"{name} has number {number}, not {table.number}", place=table.place)
    found: dict[str, list[int]] = {}
    before: set[str] = set()
    for version in versions_in(document["validVersions"]):
        rows = kafkas_rows(document, version)
        layout = table.layout_of(version, line)
        if layout is None:
            new = tuple(field for field in lines_of(rows) if field not in before)
            yield Finding(f"{name} version {version} is in no table", new, table.place)
        else:
            for difference in _differences(document, rows, layout, version, line):
                found.setdefault(difference, []).append(version)
        before = set(lines_of(rows))
    for difference, versions in found.items():
        span = f"version {versions[0]}" if len(versions) == 1 else f"versions {versions[0]}-{versions[-1]}"
        yield Finding(f"{name} {span}: {difference}", place=table.place)


def _differences(document: Document, rows: Rows, layout: Message, version: int, line: Version) -> Iterator[str]:
    is_flexible = version in versions_in(document.get("flexibleVersions"))
    if is_flexible != layout.is_flexible(version):
        yield "flexible" if is_flexible else "not flexible"
    if isinstance(layout, EmbeddedMessage) and layout.number is not None:
        rows = {name: row for name, row in rows.items() if name != OWN_VERSION}
    yield from _differing_rows(rows, own_rows(layout, version, line), "")


def _differing_rows(kafkas: Rows, own: Rows, above: str) -> Iterator[str]:
    for name, row in kafkas.items():
        if name not in own:
            yield f"{above}{row} is in no table"
            continue
        yield from (f"{above}{row.name} {problem}" for problem in _problems(row, own[name]))
        yield from _differing_rows(row.fields, own[name].fields, f"{above}{row.name}.")
    yield from (f"{above}{row} is in the table only" for name, row in own.items() if name not in kafkas)
    order = [name for name, row in kafkas.items() if row.tag is None and name in own]
    if order != [name for name, row in own.items() if row.tag is None and name in kafkas]:
        yield f"{above}the fields are in another order"


def _problems(kafkas: Row, own: Row) -> Iterator[str]:
    if kafkas.type != own.type:
        yield f"has type {kafkas.type}, not {own.type}"
    if kafkas.nullable != own.nullable:
        yield "may be null" if kafkas.nullable else "may not be null"
    if kafkas.tag != own.tag:
        yield f"has tag {kafkas.tag}, not {own.tag}"
    is_told = own.tag is not None or own.default is not None
    if is_told and kafkas.default != own.default:
        yield f"has default {kafkas.default!r}, not {own.default!r}"
