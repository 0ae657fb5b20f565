"""Take lines out of the JSON that collectors of logs put around each: a field of it, wherever in an object it is.

The field is looked for in the first object, and is the same in all: one that collectors name so, else a text that
begins as lines do that are read, else an object with a record's key and value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from offsets_log.dumps.json_items import iter_items
from offsets_log.errors import Damage

TEXT_FIELDS = ("log", "message", "msg", "line", "text", "textPayload", "@message", "_raw", "MESSAGE")
"""Where collectors of logs keep the line."""
DOCKER = ("log",)
"""Where docker keeps it, with its line feed; a piece of a line has none."""
RECORD = ("key", "value")
"""Names of a record's parts, as Kafka's formatters print them."""
MAX_DEPTH = 4

BEGINNING = rb"(?=\| |baseOffset: |offset: |Dumping |Log starting offset|Starting offset|\[|\{)"
"""What may follow names of files: how lines that are read begin."""
_BEGINS = re.compile(rb"\s*" + BEGINNING)

Path = tuple[str, ...]


def contents_of_json(text: bytes) -> bytes | None:
    """Return the lines in a collector's JSON objects; None if the text is no such objects.

    What is no object with the field stays as it is, for a reader to report.
    """
    if text.lstrip()[:1] not in (b"{", b"["):
        return None
    out: list[bytes] = []
    path: Path | None = None
    number = 1
    for line, raw, row in _objects(text):
        out += [b"\n"] * (line - number)
        number = line + 1
        path = next(_paths(row), None) if path is None else path
        if path is None:
            return None
        told = _at(row, path)
        is_cut = told is None and text.endswith(raw)
        out.append((raw if is_cut else raw + b"\n") if told is None else _with_end(told, path))
    return b"".join(out)


def _objects(text: bytes) -> Iterator[tuple[int, bytes, dict[str, Any]]]:
    """Yield objects with their line and bytes, an empty one for what is none: one a line, or in any other shape."""
    lines = text.split(b"\n")
    first = next((line for line in lines if line.strip()), b"")
    if _object(first):
        yield from ((number, line, _object(line)) for number, line in enumerate(lines, 1) if line.strip())
        return
    for number, item in iter_items(text.decode(errors="replace")):
        yield (number, item.raw, {}) if isinstance(item, Damage) else (number, json.dumps(item).encode(), item)


def _object(line: bytes) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return row if isinstance(row, dict) else {}


def _paths(row: dict[str, Any]) -> Iterator[Path]:
    """Yield where the contents may be, what is most likely first."""
    within = list(_within(row, ()))
    yield from ((name,) for name in TEXT_FIELDS if isinstance(row.get(name), str))
    texts = [(path, told.encode(errors="replace")) for path, told in within if isinstance(told, str)]
    yield from (path for path, _ in texts if path[-1] in TEXT_FIELDS)
    yield from (path for path, told in texts if _BEGINS.match(told))
    yield from (path for path, told in [*within, ((), row)] if isinstance(told, dict) and told.keys() >= {*RECORD})


def _within(row: dict[str, Any], path: Path) -> Iterator[tuple[Path, Any]]:
    for name, told in row.items():
        yield (*path, name), told
        if isinstance(told, dict) and len(path) < MAX_DEPTH - 1:
            yield from _within(told, (*path, name))


def _at(row: dict[str, Any], path: Path) -> bytes | None:
    """Return the contents at a place, as one line; None if there are none."""
    told: Any = row
    for name in path:
        told = told.get(name) if isinstance(told, dict) else None
    if isinstance(told, str):
        return told.encode(errors="replace")
    if isinstance(told, dict) and told.keys() >= {*RECORD}:
        return json.dumps(told if path else {name: told[name] for name in RECORD}).encode()
    return None


def _with_end(line: bytes, path: Path) -> bytes:
    return line if path == DOCKER or line.endswith(b"\n") else line + b"\n"
