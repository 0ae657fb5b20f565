"""Mark values in kafka-dump-log's lines, and cut the lines at them: an operation of `kernels` reads each value."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from offsets_log.columnar.sinks import kernels as sk
from offsets_log.columnar.sinks.forms import dump_log_form
from offsets_log.columnar.sinks.marks import Mark, Marks, NoTemplateError, a_number, a_text, split
from offsets_log.columnar.texts import kernels as tk
from offsets_log.messages.schema import BYTES, INT32, INT64, STRING, ArrayOf, Field, Scalar, Struct, in_versions
from offsets_log.rows.tables import Row

FORM = dump_log_form(lambda damage: None)
INT_SIZES = {INT32: 4, INT64: 8}


@dataclass(frozen=True, slots=True)
class ReadMark(Mark):
    """A mark, and the operation that reads what stands there.

    Attributes:
        element: 0 or 1 in the elements of an array, which has two; None elsewhere.
    """

    element: int | None = None


class ReadMarks(Marks):
    """The values of a record: columns are facts, and what the record's bytes hold is read into these.

    Args:
        elements: number of elements of an array, two or none.
    """

    def __init__(self, elements: int) -> None:
        super().__init__(FORM)
        self._elements = elements
        self._element: int | None = None
        self._has_array = False

    def note(self, text: bytes, op: int, argument: int) -> None:
        """Note the mark of a column."""
        self.made.append(ReadMark(text, tk.FACT, argument + (tk.INTS_AT if op == sk.INT else 0)))

    def _read(self, text: bytes, op: int, argument: int) -> None:
        self.made.append(ReadMark(text, op, argument, self._element))

    def integer(self, size: int) -> int:
        """Return a number that marks one of so many bytes."""
        number = a_number()
        self._read(str(number).encode(), tk.INT, size)
        return number

    def string(self, op: int, argument: int = 0) -> str:
        """Return a text that marks what an operation reads."""
        text = a_text()
        self._read(text.encode(), op, argument)
        return text

    def _embedded(self, number: int) -> bytes:
        raw = secrets.token_bytes(24)
        self._read(base64.b64encode(raw), tk.EMBEDDED, number)
        return raw

    def fields(self, fields: Sequence[Field], version: int) -> Row:
        """Return the fields of a struct.

        Raises:
            NoTemplateError: no operation reads one of them.
        """
        return {row.name: self.field(row, version) for row in fields if in_versions(version, row.versions)}

    def field(self, row: Field, version: int) -> Any:
        """Return a field. Raises NoTemplateError."""
        match row.type:
            case _ if row.name in FORM.expanded and row.type is BYTES:
                return self._embedded(list(FORM.expanded).index(row.name))
            case Scalar() as scalar if scalar in INT_SIZES and not row.nullable:
                return self.integer(INT_SIZES[scalar])
            case Scalar() as scalar if scalar is STRING:
                return self.string(tk.STRING, tk.MAY_BE_NULL * row.nullable)
            case ArrayOf(Struct(fields)) if not row.nullable and not self._has_array:
                self._has_array = True
                elements = [self._bytes_of_element(number, fields, version) for number in range(self._elements)]
                self._element = None
                return elements
        raise NoTemplateError

    def _bytes_of_element(self, number: int, fields: Sequence[Field], version: int) -> Row:
        self._element = number
        return self.fields(fields, version)


@dataclass(slots=True)
class Step:
    """A row of a program with its literals: see `kernels`."""

    op: int
    argument: int = 0
    literal: bytes = b""
    other: bytes = b""


def steps_of(marked_line: Callable[[ReadMarks], bytes]) -> list[Step]:
    """Return the steps that read lines.

    Args:
        marked_line: makes a line of marks.

    Raises:
        NoTemplateError: there are none.
    """
    cuts = _cuts(marked_line, elements=2)
    empty = _cuts(marked_line, elements=0)
    made: list[Step] = []
    first = None  # step of an array's element
    outside = 0
    for cut, mark, quote in cuts:
        element = mark.element if mark is not None else None
        if element is None:
            outside += 1
        elif element == 0 and first is None:
            made.append(Step(tk.ARRAY, other=empty[outside][0]))
            first = len(made)
        elif element == 1:
            if first is not None and made[-1].op != tk.NEXT:
                made.append(Step(tk.NEXT, first, other=cut))
                made[first - 1].argument = len(made)
            continue
        made.append(Step(tk.END, literal=cut) if mark is None else Step(mark.op, mark.argument, cut, quote))
    return made


def _cuts(marked_line: Callable[[ReadMarks], bytes], *, elements: int) -> list[tuple[bytes, ReadMark | None, bytes]]:
    """Cut a line of marks.

    Returns:
        The bytes before each mark, the mark, and its quotes if null has none; at last the line's end.
    """
    marks = ReadMarks(elements)
    literals, found = split(marked_line(marks), marks)
    seen = [mark for mark in found if isinstance(mark, ReadMark)]
    if [mark for mark in seen if mark.op != tk.FACT] != [mark for mark in marks.made if mark.op != tk.FACT]:
        raise NoTemplateError  # a line has them in another order than the bytes
    quotes = [b""] * (len(seen) + 1)
    for i, mark in enumerate(seen):
        if mark.op == tk.EMBEDDED or (mark.op == tk.STRING and mark.argument):
            before, colon, quotes[i] = literals[i].rpartition(b":")
            literals[i], literals[i + 1] = before + colon, literals[i + 1].removeprefix(quotes[i])
    return list(zip(literals, [*seen, None], quotes, strict=True))
