"""Tables of rows for people, in which one row is one line.

Every column is as wide as its widest cell, so the cells of all rows wait until the last one is known, some of them in a
temporary file. On a terminal, columns are dropped from the right until a line fits, texts are cut, times lose their
milliseconds, and structures have no brackets and quotes; numbers and headings are always whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from types import NoneType
from typing import IO, Any

from rich.cells import cell_len, set_cell_size

from offsets_log.disk.spool import Shelf
from offsets_log.rows.needed import Needed
from offsets_log.rows.tables import SPAN_SUFFIXES, TIME_SUFFIXES, Row, to_json
from offsets_log.words import counted, shown_span, shown_time, shown_times, visible, with_edges
from offsets_log_cli.colours import COLOURED, colour_of, coloured

ROWS = 4096
"""How many rows' cells are made at a time."""
MAX_JSON = 120
MAX_TEXT = 240
"""The length at which structures and texts are cut in a table, which is for eyes; the other formats have them whole."""
WHOLE = 1 << 30
"""The length at which they are cut if they are to be whole."""
LEAST_TEXT = 10
LEAST_SHARE = 5
"""Texts are not cut below this width, nor below this part of a line: rather a column at the right is dropped."""
LONGEST_TIME, TO_THE_SECOND = len("0000-00-00 00:00:00.000Z"), len("0000-00-00 00:00:00Z")
"""Spans are not cut, and moments only to the second; what else stands in such columns is, from here on."""
GAP = 2
"""Blanks between two columns; a line has as many at its edges."""
NULL = "-"
CUT = "…"
SENTENCES = frozenset({"problem", "reason", "remarks"})
"""Columns of whole sentences, which have at least half of a line."""
PROSE = SENTENCES | {"metadata", "offsets_partitions", "value", "assignment"}
"""Columns whose texts are cut at their ends; others hold names, of which begin and end matter."""

BETWEEN = "\x1f"
ABSENT = "\x1e"
"""What separates cells, and stands for null; cells have no control characters."""

Cells = tuple[str, int, bool]
"""A column of some rows: all texts, the width of the widest, whether each text is as wide as it is long."""

Widths = tuple[int, int, int]
"""Widths of a column: of its widest cell or heading, in which cells are easy to read, in which they can be read."""


AS_THEY_STAND = Needed()


@dataclass(frozen=True, slots=True)
class View:
    """What of a table is shown.

    Attributes:
        width: how long a line may be; None for any length.
        seldom: columns that are left out.
        has_all: whether no column is dropped, however narrow texts become.
        is_whole: whether texts and structures are shown whole, however long they are.
        is_coloured: whether states, damage and verdicts have colours.
    """

    width: int | None = None
    needed: Needed = AS_THEY_STAND
    seldom: Collection[str] = ()
    has_all: bool = False
    is_whole: bool = False
    is_coloured: bool = False

    def most(self, length: int) -> int:
        """Return the length at which texts are cut that are else cut at this one."""
        return WHOLE if self.is_whole else length


@dataclass(slots=True)
class _Column:
    """The facts about a column so far.

    Attributes:
        is_number: whether all of its values are numbers.
        is_shown: whether any of its values is not null.
        most: the width of the widest cell.
    """

    name: str
    view: View
    is_time: bool
    is_span: bool
    is_number: bool
    is_shown: bool = False
    most: int = 0

    @classmethod
    def of(cls, name: str, view: View) -> _Column:
        is_time = name.endswith(TIME_SUFFIXES)
        return cls(name, view, is_time, name.endswith(SPAN_SUFFIXES), not is_time)

    @property
    def words(self) -> list[str]:
        return (self.name.removesuffix("_ms") if self.is_time or self.is_span else self.name).split("_")

    def widths(self, room: int) -> Widths:
        """Return the widths in lines of this length."""
        heading, most = max(map(len, self.words)), self.most
        if self.is_number:
            easy = least = most
        elif self.is_span or self.is_time:
            easy, least = min(most, LONGEST_TIME), min(most, TO_THE_SECOND if self.is_time else LONGEST_TIME)
        else:
            share = 2 if self.name in SENTENCES else LEAST_SHARE
            easy, least = (min(most, width) for width in (max(LEAST_TEXT, room // share), LEAST_TEXT))
        return max(most, heading), max(easy, heading), max(least, heading)

    def add(self, values: Sequence[Any]) -> Cells | None:
        """Return the cells of the values that follow."""
        kinds = set(map(type, values))
        if kinds == {NoneType}:
            return None
        self.is_number &= all(issubclass(kind, int | float | NoneType) for kind in kinds)
        kinds.discard(NoneType)
        if kinds == {str}:
            return self._kept(_shown([NULL if value is None else value for value in values], self.view.most(MAX_TEXT)))
        if kinds == {int} and not (self.is_time and min(filter(None, values), default=0) < 0):
            if self.is_time:
                return self._kept(shown_times(values, NULL))
            shown = shown_span if self.is_span else str
            return self._kept([NULL if value is None else shown(value) for value in values])
        return self._kept([self._cell(value) for value in values])

    def _cell(self, value: Any) -> str:
        if value is None:
            return NULL
        if self.is_time and isinstance(value, int) and value >= 0:
            return shown_time(value)
        if isinstance(value, dict | list):
            return self._structure(value, to_json(value))
        return _clipped(to_json(value) if isinstance(value, bool) else str(value), self.view.most(MAX_TEXT))

    def add_fields(self, fields: Sequence[str], sql_type: str) -> Cells | None:
        """Return the cells of the values that follow, given as `fields_of` makes them."""
        if all(field == ABSENT for field in fields):
            return None
        if self.is_time or self.is_span:
            return self.add([None if field == ABSENT else int(field) for field in fields])
        self.is_number &= sql_type not in ("json", "string")
        if sql_type == "json":
            return self._kept(
                [NULL if field == ABSENT else self._structure(json.loads(field), field) for field in fields]
            )
        return self._kept([NULL if field == ABSENT else field for field in fields])

    def _structure(self, value: Any, as_json: str) -> str:
        is_plain = self.view.width is not None and not self.view.is_whole
        return _clipped(in_plain(value, self.name) if is_plain else as_json, self.view.most(MAX_JSON))

    def _kept(self, cells: Sequence[str]) -> Cells:
        joined = BETWEEN.join(cells)
        is_plain = joined.isascii() or joined.replace(CUT, "").isascii()
        width = max(map(len if is_plain else cell_len, cells))
        self.is_shown = True
        self.most = max(self.most, width)
        return joined, width, is_plain

    def lines(self, made: Cells | None, count: int, width: int) -> list[str]:
        """Return so many cells, each as wide as its column."""
        joined, most, is_plain = made or (NULL, len(NULL), True)
        texts = [NULL] * count if made is None else joined.split(BETWEEN)
        if most > width and self.is_time:
            texts = [text if len(text) <= width else f"{text[: TO_THE_SECOND - 1]}Z" for text in texts]
        elif most > width:
            texts = [cut(text, width, in_the_middle=self.name not in PROSE) for text in texts]
        if self.view.is_coloured and self.name in COLOURED:
            return [_padded(coloured(text, colour_of(self.name, text)), width, self.is_number, text) for text in texts]
        if is_plain:
            return [text.rjust(width) for text in texts] if self.is_number else [text.ljust(width) for text in texts]
        return [_padded(text, width, self.is_number, text) for text in texts]


def in_plain(value: Any, column: str) -> str:
    """Return a structure as people read it: values of a key, partitions by topic, else names with their values."""
    if column == "key" and isinstance(value, dict):
        return " ".join(in_plain(part, "") for part in value.values())
    if isinstance(value, dict):
        return ", ".join(f"{name} {in_plain(part, '')}" for name, part in value.items())
    if isinstance(value, list):
        by_topic: dict[str, str] = {}
        for part in value:
            match part:
                case [str(topic), int(partition)]:
                    by_topic[topic] = f"{by_topic.get(topic, topic)} {partition}"
                case _:
                    by_topic[f"\0{len(by_topic)}"] = in_plain(part, "")
        return ", ".join(by_topic.values())
    return value if isinstance(value, str) else to_json(value)


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


def cut(text: str, width: int, *, in_the_middle: bool = False) -> str:
    """Return text that is not wider than this; what is left out is at its end, or in its middle."""
    if cell_len(text) <= width:
        return text
    after = (width - len(CUT)) // 2 if in_the_middle else 0
    before = set_cell_size(text, width - len(CUT) - after).rstrip()
    return before + CUT + set_cell_size(text[::-1], after)[::-1].lstrip()


def _padded(shown: str, width: int, is_number: bool, text: str) -> str:
    """Return what shows a text, with blanks."""
    blank = " " * (width - cell_len(text))
    return blank + shown if is_number else shown + blank


def fitting(columns: Sequence[Widths], room: int, always: int, least: int = 1) -> list[int]:
    """Return how wide as many of the first columns are as fit, of which the widest become narrower; at least of one.

    Args:
        always: how many are shown even if texts are then not easy to read.
        least: how many are shown even if a line becomes longer than that.
    """
    count = next(
        (
            number
            for number in range(len(columns), least, -1)
            if sum(widths[2 if number <= always else 1] + GAP for widths in columns[:number]) <= room
        ),
        min(len(columns), least),
    )
    found = [widest for widest, _, _ in columns[:count]]
    while count and sum(found) + GAP * count > room:
        widest = max(range(count), key=lambda place: (found[place] > columns[place][2], found[place]))
        if found[widest] == columns[widest][2]:
            break
        found[widest] -= 1
    return found


class TextTable(ExitStack):
    """A table that is being made, a context manager; columns that are null in every row are left out."""

    def __init__(self, columns: Sequence[str], view: View | None = None) -> None:
        super().__init__()
        self._view = view or View()
        self._columns = [_Column.of(name, self._view) for name in columns]
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
        """Write the whole table; say below it how many columns did not fit."""
        view = self._view
        shown = [(number, column) for number, column in enumerate(self._columns) if column.is_shown]
        always, then = view.needed
        place = {name: number for number, name in enumerate((*always, *then))}
        shown.sort(key=lambda item: place.get(item[1].name, len(place)))
        found = [(number, column) for number, column in shown if column.name not in view.seldom]
        room = WHOLE if view.width is None else view.width
        widths = [column.widths(room) for _, column in found]
        needed = sum(column.name in always for _, column in found)
        least = len(widths) if view.has_all else 1
        fit = [widest for widest, _, _ in widths] if view.width is None else fitting(widths, room, needed, least)
        laid = [(*place, width) for place, width in zip(found, fit, strict=False)]
        if not laid:
            return
        _write_lines(stream, _heading([(column, width) for _, column, width in laid]))
        for count, cells in self._blocks:
            parts = [column.lines(cells[number], count, width) for number, column, width in laid]
            _write_lines(stream, map(_line, zip(*parts, strict=True)))
        if view.width is not None and (left := len(shown) - len(laid)):
            words = f" {counted(left, 'more column')}: --wide"
            stream.write(f"{coloured(words, 'dim') if view.is_coloured else words}\n".encode())


def _heading(columns: Sequence[tuple[_Column, int]]) -> Iterator[str]:
    """Yield the lines above the rows: a name's words are below each other, the last ones in one line."""
    most = max(len(column.words) for column, _ in columns)
    for words in zip(*([""] * (most - len(column.words)) + column.words for column, _ in columns), strict=True):
        placed = zip(words, columns, strict=True)
        yield _line(word.rjust(width) if column.is_number else word.ljust(width) for word, (column, width) in placed)
    yield _line(["─" * (sum(width for _, width in columns) + GAP * (len(columns) - 1))])


def _line(cells: Iterable[str]) -> str:
    return " " + (" " * GAP).join(cells)


def _write_lines(stream: IO[bytes], lines: Iterable[str]) -> None:
    stream.write("".join(line.rstrip() + "\n" for line in lines).encode())


def fields_of(columns: Sequence[str], view: View) -> Callable[[Row], bytes]:
    """Return a function that turns a row to a line: digits, JSON of structures, texts of cells, ABSENT for null."""

    def field(value: Any) -> str:
        if value is None:
            return ABSENT
        return to_json(value) if isinstance(value, bool | dict | list) else _clipped(str(value), view.most(MAX_TEXT))

    return lambda row: (BETWEEN.join(field(row.get(column)) for column in columns) + "\n").encode()


class FieldReader:
    """Reads lines of `fields_of` into a table, in pieces cut anywhere.

    Args:
        sql_types: the columns' types.
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
