"""Tables of rows for people.

Every column is as wide as its widest cell, so the cells of all rows wait until the last one is known, some of them in a
temporary file. On a terminal texts and times are made narrower, numbers and headings never: where that is not enough,
each row is a block of lines. rich lays out the heading over one row in which a probe stands for all cells of a column.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import islice
from types import NoneType
from typing import IO, Any

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, JustifyMethod
from rich.measure import Measurement
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from offsets_log.disk.spool import Shelf
from offsets_log.rows.tables import SPAN_SUFFIXES, TIME_SUFFIXES, Row, to_json
from offsets_log.words import shown_span, shown_time, shown_times, visible, with_edges

ROWS = 4096
"""How many rows' cells are made at a time."""
MAX_JSON = 120
MAX_TEXT = 240
"""The length at which structures and texts are cut in a table, which is for eyes; the other formats have them whole."""
NO_TERMINAL = 10_000
"""How wide a table may be that does not go to a terminal."""
LEAST_TEXT = 10
MOST_LINES = 4
LEAST_TIME = len("00:00:00.000Z")
"""The widths to which texts and times are folded on a terminal; and how many lines a text has then, on the average."""
LEAST_BESIDE_NAME = len("0000-00-00 00:00:00.000Z")
"""The width that values below each other have at least: no time is folded, and no number is as long."""
GAP = 2
"""Blanks between two columns."""
NULL = "-"
CUT = "…"
MARK = "x"

BETWEEN = "\x1f"
"""Separates cells, which have no control characters."""

Cells = tuple[str, int, bool]
"""A column of some rows: all texts, the width of the widest, whether each text is as wide as it is long."""

Widths = tuple[int, int]
"""Two widths of a column; see `_Column.widths`."""


@dataclass(slots=True)
class _Column:
    """The facts about a column so far.

    Attributes:
        is_number: whether all of its values are numbers.
        is_shown: whether any of its values is not null.
        most: the width of the widest cell.
        characters, cells: how many of them there are.
    """

    name: str
    is_time: bool
    is_span: bool
    is_number: bool
    is_shown: bool = False
    most: int = 0
    characters: int = 0
    cells: int = 0

    @classmethod
    def of(cls, name: str) -> _Column:
        is_time = name.endswith(TIME_SUFFIXES)
        return cls(name, is_time, name.endswith(SPAN_SUFFIXES), not is_time)

    @property
    def words(self) -> list[str]:
        return (self.name.removesuffix("_ms") if self.is_time or self.is_span else self.name).split("_")

    @property
    def widths(self) -> Widths:
        """The width in which nothing is folded, and the least in which cells can be read."""
        heading = max(map(len, self.words))
        if self.is_number or self.is_span:
            least = self.most
        else:
            average = self.characters // max(self.cells, 1)
            least = min(self.most, LEAST_TIME if self.is_time else max(LEAST_TEXT, average // MOST_LINES))
        return max(self.most, heading), max(least, heading)

    @property
    def justify(self) -> JustifyMethod:
        return "right" if self.is_number else "left"

    def add(self, values: Sequence[Any]) -> Cells | None:
        """Return the cells of the values that follow."""
        kinds = set(map(type, values))
        if kinds == {NoneType}:
            self._add_nothing(len(values))
            return None
        self.is_number &= all(issubclass(kind, int | float | NoneType) for kind in kinds)
        if kinds == {str}:
            return self._kept(_shown(values, MAX_TEXT))
        kinds.discard(NoneType)
        if kinds == {str}:
            return self._kept(_shown([NULL if value is None else value for value in values], MAX_TEXT))
        if kinds == {int} and not (self.is_time and min(filter(None, values), default=0) < 0):
            if self.is_time:
                return self._kept(shown_times(values, NULL))
            shown = shown_span if self.is_span else str
            return self._kept([NULL if value is None else shown(value) for value in values])
        return self._kept([_cell(value, self.is_time) for value in values])

    def add_fields(self, fields: Sequence[str], sql_type: str) -> Cells | None:
        """Return the cells of the values that follow, given as `fields_of` makes them."""
        if not any(fields):
            self._add_nothing(len(fields))
            return None
        if self.is_time or self.is_span:
            return self.add([int(field) if field else None for field in fields])
        self.is_number &= sql_type not in ("json", "string")
        cells = [field or NULL for field in fields]
        return self._kept(_shown(cells, MAX_JSON) if sql_type == "json" else cells)

    def _add_nothing(self, count: int) -> None:
        self.characters += len(NULL) * count
        self.cells += count

    def _kept(self, cells: Sequence[str]) -> Cells:
        joined = BETWEEN.join(cells)
        is_plain = joined.isascii() or joined.replace(CUT, "").isascii()
        width = max(map(len if is_plain else cell_len, cells))
        self.is_shown = True
        self.characters += len(joined) - len(BETWEEN) * (len(cells) - 1)
        self.cells += len(cells)
        self.most = max(self.most, width)
        return joined, width, is_plain


def _shown(texts: Sequence[str], most: int) -> Sequence[str]:
    """Return texts as cells show them."""
    is_short = max(map(len, texts)) <= most
    begins = texts if is_short else [text[: most + 1] for text in texts]
    joined = "".join(begins)
    if not joined.isprintable() or "\\" in joined or any(text != text.strip() for text in texts):
        return [_clipped(text, most) for text in texts]
    return texts if is_short else [text if len(text) <= most else text[:most] + CUT for text in begins]


def _clipped(text: str, most: int) -> str:
    """Return text as `visible` does, cut so that one cell does not make every line of the table too long."""
    shown = with_edges(visible(text) if len(text) <= most else visible(text[:most]) + CUT)
    return shown if len(shown) <= most else shown[:most] + CUT


def _cell(value: Any, is_time: bool) -> str:
    if value is None:
        return NULL
    if is_time and isinstance(value, int) and value >= 0:
        return shown_time(value)
    if isinstance(value, dict | list):
        return _clipped(to_json(value), MAX_JSON)
    return _clipped(to_json(value) if isinstance(value, bool) else str(value), MAX_TEXT)


# ------------------------------------------------------------------------------------------------- layout


class _Probe:
    """Stands for all cells of a column, and notes how wide they may be."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.width = 0

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(self.most, self.most)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        self.width = options.max_width
        yield Segment(MARK * self.width)


@dataclass(frozen=True, slots=True)
class _Layout:
    """The places of columns in a line.

    Attributes:
        heading: lines above the rows.
        columns: for each column that is shown its number, its width, and the text before it.
    """

    heading: list[str]
    columns: list[tuple[int, int, str]]

    @classmethod
    def of(cls, columns: Sequence[_Column], console: Console) -> _Layout | None:
        """Lay out the columns; None if they do not fit beside each other."""
        table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
        shown = [(number, column) for number, column in enumerate(columns) if column.is_shown]
        probes = [_Probe(column.most) for _, column in shown]
        widths = fitting([column.widths for _, column in shown], console.width)
        if widths is None:
            return None
        for (_, column), width in zip(shown, widths, strict=True):
            table.add_column("\n".join(column.words), justify=column.justify, overflow="fold", width=width)
        table.add_row(*probes)
        with console.capture() as captured:
            console.print(table)
        lines = list(_stripped(captured.get().split("\n")))
        placed = [(number, probe.width) for (number, _), probe in zip(shown, probes, strict=True) if probe.width]
        if not placed:
            return cls(lines, [])
        gaps = re.split(f"{MARK}+", lines.pop())
        return cls(lines, [(*place, gap) for place, gap in zip(placed, gaps, strict=False)])


def fitting(columns: Sequence[Widths], room: int) -> list[int] | None:
    """Return how wide columns are that fit, of which the widest become narrower; None if none do."""
    room -= GAP * len(columns)
    for most in range(max((widest for widest, _ in columns), default=0), -1, -1):
        found = [max(least, min(widest, most)) for widest, least in columns]
        if sum(found) <= room:
            return found
    return None


def _stripped(lines: Iterable[str]) -> Iterator[str]:
    """Return lines without blanks at their ends, and without empty ones."""
    return filter(None, map(str.rstrip, lines))


class TextTable(ExitStack):
    """A table that is being made, a context manager; columns that are null in every row are left out."""

    def __init__(self, columns: Sequence[str]) -> None:
        super().__init__()
        self._columns = [_Column.of(name) for name in columns]
        self._blocks = self.enter_context(Shelf())

    def add(self, rows: Iterable[Row]) -> None:
        """Add rows that follow; columns may be missing."""
        rows = iter(rows)
        while block := list(islice(rows, ROWS)):
            self._put(len(block), [column.add([row.get(column.name) for row in block]) for column in self._columns])

    def add_columns(self, columns: Sequence[Sequence[Any]]) -> None:
        """Add rows that follow, given by column."""
        for begin in range(0, len(columns[0]), ROWS):
            block = [values[begin : begin + ROWS] for values in columns]
            self._put(len(block[0]), [column.add(values) for column, values in zip(self._columns, block, strict=True)])

    def add_fields(self, columns: Sequence[Sequence[str]], sql_types: Sequence[str]) -> None:
        """Add rows that follow, given as fields by column."""
        kinds = zip(self._columns, columns, sql_types, strict=True)
        self._put(len(columns[0]), [column.add_fields(fields, sql_type) for column, fields, sql_type in kinds])

    def _put(self, count: int, cells: list[Cells | None]) -> None:
        self._blocks.add((count, cells))

    def write(self, stream: IO[bytes]) -> None:
        """Write the whole table, as wide as a terminal on standard output is."""
        width = None if sys.stdout.isatty() else NO_TERMINAL
        console = Console(file=io.StringIO(), width=width, force_terminal=False, color_system=None)
        layout = _Layout.of(self._columns, console)
        if layout is None:
            for count, cells in self._blocks:
                _write_lines(stream, self._lines_by_row(count, cells, console))
            return
        _write_lines(stream, layout.heading)
        for count, cells in self._blocks:
            _write_lines(stream, _stripped(self._lines(count, cells, layout, console)))

    def _lines_by_row(self, count: int, cells: list[Cells | None], console: Console) -> Iterator[str]:
        """Yield for each row a line of each column, and an empty one."""
        shown = [
            (" ".join(column.words), _texts(made, count))
            for column, made in zip(self._columns, cells, strict=True)
            if column.is_shown
        ]
        beside = max(len(name) for name, _ in shown) + GAP
        width = max(console.width - beside, LEAST_BESIDE_NAME)
        for row in range(count):
            for name, texts in shown:
                first, *below = _folded(texts[row], width, "left", console)
                yield f"{name:{beside}}{first}".rstrip()
                yield from (f"{' ' * beside}{line}".rstrip() for line in below)
            yield ""

    def _lines(self, count: int, cells: list[Cells | None], layout: _Layout, console: Console) -> Iterable[str]:
        form, parts = "", list[Iterable[str]]()
        further: Further = {}
        for number, width, gap in layout.columns:
            made, justify = cells[number], self._columns[number].justify
            texts = _texts(made, count)
            _, most, is_plain = made or (NULL, len(NULL), True)
            if most > width:
                texts = _fold(texts, number, partial(_folded, width=width, justify=justify, console=console), further)
            if is_plain:
                form += f"{gap}%{width if justify == 'right' else -width}s"
                parts.append(texts)
            else:
                form += f"{gap}%s"
                parts.append([_padded(text, width, justify) for text in texts])
        lines = map(form.__mod__, zip(*parts, strict=True))
        return _with_further(lines, further, layout) if further else lines


def _texts(made: Cells | None, count: int) -> list[str]:
    """Return the cells of so many rows."""
    return [NULL] * count if made is None else made[0].split(BETWEEN)


Further = dict[int, dict[int, list[str]]]
"""Row → column → the lines of its cell below the first."""


def _fold(texts: Sequence[str], number: int, folded: Callable[[str], list[str]], further: Further) -> list[str]:
    """Return the first lines of a column's cells; add the others to what is printed below."""
    firsts = []
    for row, (first, *below) in enumerate(map(folded, texts)):
        firsts.append(first)
        if below:
            further.setdefault(row, {})[number] = below
    return firsts


def _with_further(lines: Iterable[str], further: Further, layout: _Layout) -> Iterator[str]:
    """Yield each row's first line, and those below it."""
    for row, line in enumerate(lines):
        yield line
        below = further.get(row, {})
        for place in range(max(map(len, below.values()), default=0)):
            yield "".join(
                gap + (below[number][place] if place < len(below.get(number, ())) else " " * width)
                for number, width, gap in layout.columns
            )


def fields_of(columns: Sequence[str]) -> Callable[[Row], bytes]:
    """Return a function that turns a row to a line: digits, JSON of structures, texts of cells, nothing for null."""

    def field(value: Any) -> str:
        if value is None:
            return ""
        return to_json(value) if isinstance(value, dict | list) else _clipped(str(value), MAX_TEXT)

    return lambda row: (BETWEEN.join(field(row.get(column)) for column in columns) + "\n").encode()


class FieldReader:
    """Reads lines of `fields_of` into a table, in pieces cut anywhere.

    Args:
        sql_types: the columns' types; there are no booleans.
    """

    def __init__(self, table: TextTable, sql_types: Sequence[str]) -> None:
        self._table = table
        self._sql_types = sql_types
        self._rest = b""

    def add(self, piece: bytes | memoryview) -> None:
        """Read the next piece; the last piece ends with a line's end."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for begin in range(0, len(lines), ROWS):
            rows = [line.decode().split(BETWEEN) for line in lines[begin : begin + ROWS]]
            self._table.add_fields(list(zip(*rows, strict=True)), self._sql_types)


def _padded(text: str, width: int, justify: JustifyMethod) -> str:
    blank = " " * (width - cell_len(text))
    return blank + text if justify == "right" else text + blank


def _folded(text: str, width: int, justify: JustifyMethod, console: Console) -> list[str]:
    """Return the lines of a cell, each as wide as its column."""
    if cell_len(text) <= width:
        return [_padded(text, width, justify)]
    lines = Text(text).wrap(console, width, justify=justify, overflow="fold")
    return [set_cell_size(line.plain, width) for line in lines]


def _write_lines(stream: IO[bytes], lines: Iterable[str]) -> None:
    text = "\n".join(lines)
    if text:
        stream.write((text + "\n").encode())
