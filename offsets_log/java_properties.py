"""Java's properties files."""

from __future__ import annotations

import re
from collections.abc import Iterator

from offsets_log.errors import InputError

AS_IS = ("sasl.jaas.config",)
"""Properties whose values keep blanks at their end."""

_ESCAPED = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_PLAIN = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def parse_properties(text: str, file: str) -> dict[str, str]:
    """What ``java.util.Properties.load`` makes of it: ``name=value``, ``name: value``, ``name value``, with escapes.

    ``#`` and ``!`` begin comments, a backslash at the end joins lines.

    Raises:
        InputError: a line is a name alone.
    """
    found: dict[str, str] = {}
    for number, line in _logical_lines(text):
        match = re.match(r"((?:[^\\=:\s]|\\.)+)(?:\s*[=:]\s*|\s+)(.*)", line, re.DOTALL)
        if match is None:
            raise InputError(f"line {number} is not name=value", file=file)
        name, value = (_ESCAPED.sub(_unescaped, part) for part in match.groups())
        found[name] = value.rstrip() if name not in AS_IS else value
    return found


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Number of the first line, and the lines that a backslash joins as one."""
    joined, first = "", 0
    for number, line in enumerate(re.split(r"\r\n|\r|\n", text), 1):
        stripped = line.lstrip(" \t\f")
        if not joined:
            first = number
            if not stripped or stripped[0] in "#!":
                continue
        odd = (len(stripped) - len(stripped.rstrip("\\"))) % 2
        joined += stripped[: len(stripped) - odd]
        if not odd:
            yield first, joined
            joined = ""
    if joined:
        yield first, joined


def _unescaped(match: re.Match[str]) -> str:
    escape = match[1]
    return chr(int(escape[1:], 16)) if len(escape) == 5 else _PLAIN.get(escape, escape)
