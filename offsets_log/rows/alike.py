"""Lines of rows of which many differ only in some numbers: one of a kind is cut at these, the others are filled in."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Hashable, Mapping
from operator import itemgetter
from typing import Any, NamedTuple

from offsets_log.rows.tables import Row


class _Template(NamedTuple):
    text: bytes
    numbers: Callable[[Mapping[str, int]], Any]


class AlikeLines:
    """The lines of a format.

    Args:
        line: makes the line of a row.
    """

    def __init__(self, line: Callable[[Row], bytes]) -> None:
        self._line = line
        self._templates: dict[Hashable, _Template | None] = {}

    def of(self, kind: Hashable, row: Callable[[], Row], numbers: Mapping[str, int]) -> bytes:
        """Return a line.

        Args:
            kind: of this kind are rows with nothing else in other columns, and integers in the same ones of these.
            row: makes the row.
            numbers: its columns that others of its kind have other numbers in, at least two.
        """
        template = self._templates.get(kind)
        if template is not None:
            line: bytes = template.text % template.numbers(numbers)
            return line
        made = row()
        is_again = kind in self._templates  # a template is worth its making for what comes again
        self._templates[kind] = self._cut(made, numbers) if is_again else None
        return self._line(made)

    def _cut(self, row: Row, numbers: Mapping[str, int]) -> _Template | None:
        """Return the template of rows like this one; None if a number does not stand in its line exactly once."""
        marks = {name: 10**18 + secrets.randbelow(10**18) for name in numbers}
        line = self._line(row | marks)
        places = {name: line.find(str(mark).encode()) for name, mark in marks.items()}
        if any(line.count(str(mark).encode()) != 1 for mark in marks.values()):
            return None
        text = line.replace(b"%", b"%%")
        for mark in marks.values():
            text = text.replace(str(mark).encode(), b"%d")
        return _Template(text, itemgetter(*sorted(marks, key=lambda name: places[name])))
