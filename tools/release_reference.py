"""Writes `docs/releases.md`, the table of Kafka's releases: ``python -m tools.release_reference`` or ``make docs``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from offsets_log.kafka_releases import NEWEST, ROWS, KafkaRelease

PAGE = Path(__file__).parent.parent / "docs" / "releases.md"
PREFACE = f"""\
# Kafka's releases

What changed in which release, for a reader of its logs: what a row does not name is as in the row above. `make docs`
writes this page from the table in `offsets_log/kafka_releases.py`. `--release`, `--drop-unloadable`, what `serve`
answers, and what help and pages say of releases come from that table, too.

A release that is newer than all of these, or than the last one of its line, is answered as the row before it, and
every verdict then says so: `99.0 (as {NEWEST.name}, not verified)`.
A name between the lines, such as 3.10, is refused.

| from | up to | what changed |
|---|---|---|
"""
COLUMNS = {
    "scala": "Scala coordinator", "java": "Java coordinator", "load": "load", "scala_era": "expiry, Scala",
    "java_era": "expiry, Java", "writes": "writes", "defaults": "defaults", "cleaner": "cleaner",
    "assignors": "clients' assignors", "metadata_versions": "metadata versions", "features": "levels of a new cluster",
    "apis": "newest versions", "errors": "errors", "settings": "settings",
}  # fmt: skip
"""Column of the table → its name on the page."""


def reference() -> str:
    """The whole page."""
    return PREFACE + "".join(f"| {row.name} | {row.until or ''} | {_changes(row)} |\n" for row in ROWS)


def _changes(row: KafkaRelease) -> str:
    told = [] if row.says is None else [row.says]
    for column, name in COLUMNS.items():
        value = getattr(row, column)
        if value is None and column == "scala":
            told.append(f"{name}: gone")
        elif value:
            told.append(f"{name}: {', '.join(_named(value))}")
    return "<br>".join(told)


def _named(value: Mapping[Any, Any] | tuple[str, ...] | str) -> Iterator[str]:
    match value:
        case str():
            yield value
        case tuple():
            yield from (f"`{name}`" for name in value)
        case Mapping():
            yield from (f"`{name}` {_plain(one)}" for name, one in value.items())


def _plain(value: Any) -> str:
    match value:
        case frozenset():
            return " ".join(map(str, sorted(value)))
        case tuple() if all(isinstance(one, int) for one in value):
            return ".".join(map(str, value))
        case tuple():
            return " ".join(f"{first}: {second}" for first, second in value)
        case bool() | None:
            return {True: "yes", False: "no", None: "none"}[value]
    return str(value)


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
