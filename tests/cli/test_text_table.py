"""Tables for people: what rich draws of all rows at once where that fits, and else a block of lines for each row."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from offsets_log.disk import spool
from offsets_log.rows.tables import TIME_SUFFIXES
from offsets_log.words import shown_time, visible, with_edges
from offsets_log_cli import text_table
from offsets_log_cli.output import write_rows
from tests.sizes import examples

Row = dict[str, Any]


def as_cell(column: str, value: Any) -> str:
    if value is None:
        return "-"
    if column.endswith(TIME_SUFFIXES) and isinstance(value, int) and value >= 0:
        return shown_time(value)
    most = 240
    if isinstance(value, dict | list | bool):
        most = 240 if isinstance(value, bool) else 120
        value = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    text = str(value)
    shown = with_edges(visible(text) if len(text) <= most else visible(text[:most]) + "…")
    return shown if len(shown) <= most else shown[:most] + "…"


def by_rich(rows: Sequence[Row], columns: Sequence[str], width: int) -> str:
    shown = [column for column in columns if any(row.get(column) is not None for row in rows)]
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    widths = []
    for column in shown:
        is_time = column.endswith(TIME_SUFFIXES)
        is_number = all(isinstance(row.get(column), int | float | None) for row in rows) and not is_time
        name = (column.removesuffix("_ms") if is_time else column).replace("_", "\n")
        table.add_column(name, justify="right" if is_number else "left", overflow="fold")
        most, heading = max(cell_len(as_cell(column, row.get(column))) for row in rows), max(map(len, name.split("\n")))
        cells = [as_cell(column, row.get(column)) for row in rows]
        average = sum(map(len, cells)) // len(cells)
        least = most if is_number else min(most, 13 if is_time else max(10, average // 4))
        widths.append((max(most, heading), max(least, heading)))
    found = text_table.fitting(widths, width)
    if found is None:
        return in_blocks(rows, shown, width)
    for column, its_width in zip(table.columns, found, strict=True):
        column.width = its_width
    for row in rows:
        table.add_row(*(Text(as_cell(column, row.get(column))) for column in shown))
    text = io.StringIO()
    Console(file=text, width=width, force_terminal=False, color_system=None).print(table)
    return "".join(line.rstrip() + "\n" for line in text.getvalue().split("\n") if line.strip())


def in_blocks(rows: Sequence[Row], shown: Sequence[str], width: int) -> str:
    names = [
        (column.removesuffix("_ms") if column.endswith(TIME_SUFFIXES) else column).replace("_", " ") for column in shown
    ]
    beside = max(map(len, names)) + 2
    lines = []
    for row in rows:
        for name, column in zip(names, shown, strict=True):
            room = max(24, width - beside)
            cell = as_cell(column, row.get(column))
            cells = (
                Text(cell).wrap(Console(width=room), room, overflow="fold") if cell_len(cell) > room else [Text(cell)]
            )
            lines += [f"{name if i == 0 else '':{beside}}{part.plain}".rstrip() for i, part in enumerate(cells)]
        lines.append("")
    return "".join(line + "\n" for line in lines)


def ours(rows: Sequence[Row], columns: Sequence[str]) -> str:
    stream = io.BytesIO()
    write_rows(stream, iter(rows), columns, "table")
    return stream.getvalue().decode()


COLUMNS = ("group", "partition", "commit_timestamp_ms", "is_bulky", "value", "seen_at_ms", "error_base64")
SOME_TEXT = st.one_of(
    st.text(max_size=12),
    st.text(alphabet="ab \\日本é́️⚕\t\n\x1b‮", max_size=30),
    st.text(alphabet="word wide", min_size=100, max_size=300),
    st.sampled_from(["", " ", "\xa0", "  two  words  ", "-"]),
)
INTS = st.one_of(st.integers(-5, 5), st.integers(-(2**63), 2**63 - 1))
ANY = st.one_of(
    st.none(),
    SOME_TEXT,
    INTS,
    st.booleans(),
    st.lists(SOME_TEXT, max_size=3),
    st.dictionaries(st.sampled_from("abc"), st.one_of(SOME_TEXT, INTS), max_size=3),
)
ROWS = st.lists(
    st.one_of(
        st.fixed_dictionaries(
            {},
            optional={
                "group": st.one_of(st.none(), SOME_TEXT),
                "partition": st.one_of(st.none(), INTS),
                "commit_timestamp_ms": st.one_of(st.none(), INTS),
                "is_bulky": st.one_of(st.none(), st.booleans()),
                "value": ANY,
                "seen_at_ms": st.one_of(INTS, SOME_TEXT),
                "error_base64": st.just(" "),
            },
        ),
        st.dictionaries(st.sampled_from(COLUMNS), ANY),
    ),
    max_size=12,
)


@given(ROWS, st.one_of(st.integers(1, 40), st.integers(41, 400), st.just(10_000)), st.integers(1, 5))
@examples(400)
def test_the_same_as_rich(rows: list[Row], width: int, block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_table, "NO_TERMINAL", width)
        patch.setattr(text_table, "ROWS", block)
        patch.setattr(spool, "BYTES_IN_MEMORY", 100)
        assert ours(rows, COLUMNS) == by_rich(rows, COLUMNS, width)


def test_numbers_and_headings_are_not_folded() -> None:
    name, time, number = (40, 8), (24, 13), (15, 15)
    assert text_table.fitting([name, time, number], 85) == [40, 24, 15]
    assert text_table.fitting([name, time, number], 84) == [39, 24, 15], "the widest first"
    assert text_table.fitting([name, time, number], 42) == [8, 13, 15]
    assert text_table.fitting([name, time, number], 41) is None
    assert text_table.fitting([], 0) == []


@pytest.mark.parametrize("width", [20, 26, 40, 60])
def test_no_number_is_ever_folded(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_table, "NO_TERMINAL", width)
    rows = [{"group": "billing", "first_offset": 123456789, "garbage_ratio": 0.123456, "bytes": 10**12}] * 2
    shown = ours(rows, ("group", "first_offset", "garbage_ratio", "bytes"))
    for number in ("123456789", "0.123456", str(10**12)):
        assert shown.count(number) == 2


def test_of_nothing() -> None:
    assert ours([], COLUMNS) == ours([{"group": None}], COLUMNS) == ""


def test_as_wide_as_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"group": "billing" * 9, "value": {"offset": 5}}]
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    assert ours(rows, COLUMNS) == by_rich(rows, COLUMNS, 40)
    assert max(map(len, ours(rows, COLUMNS).split("\n"))) <= 40
