"""Tables for people: one row is one line; in a pipe what rich draws of all rows at once, on a terminal what fits it."""

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
from offsets_log.rows.needed import Needed
from offsets_log.rows.tables import TIME_SUFFIXES
from offsets_log.words import shown_time, visible, with_edges
from offsets_log_cli import text_table
from offsets_log_cli.text_table import TextTable, View, fitting
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


def is_number(column: str, rows: Sequence[Row]) -> bool:
    return not column.endswith(TIME_SUFFIXES) and all(isinstance(row.get(column), int | float | None) for row in rows)


def shown_columns(rows: Sequence[Row], columns: Sequence[str]) -> list[str]:
    return [column for column in columns if any(row.get(column) is not None for row in rows)]


def by_rich(rows: Sequence[Row], columns: Sequence[str]) -> str:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    shown = shown_columns(rows, columns)
    for column in shown:
        name = (column.removesuffix("_ms") if column.endswith(TIME_SUFFIXES) else column).replace("_", "\n")
        table.add_column(name, justify="right" if is_number(column, rows) else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(as_cell(column, row.get(column))) for column in shown))
    text = io.StringIO()
    Console(file=text, width=100_000, force_terminal=False, color_system=None).print(table)
    return "".join(line.rstrip() + "\n" for line in text.getvalue().split("\n") if line.strip())


def ours(rows: Sequence[Row], columns: Sequence[str], view: View | None = None) -> str:
    stream = io.BytesIO()
    with TextTable(columns, view) as table:
        table.add(rows)
        table.write(stream)
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


@given(ROWS, st.integers(1, 5))
@examples(400)
def test_in_a_pipe_the_same_as_rich(rows: list[Row], block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_table, "ROWS", block)
        patch.setattr(spool, "BYTES_IN_MEMORY", 100)
        assert without_empty(ours(rows, COLUMNS)) == by_rich(rows, COLUMNS)


def without_empty(text: str) -> str:
    """Without rows of nothing but empty texts."""
    return "".join(line + "\n" for line in text.split("\n") if line)


@given(ROWS, st.integers(60, 200))
@examples(200)
def test_on_a_terminal_a_row_is_a_line_that_fits(rows: list[Row], width: int) -> None:
    lines = ours(rows, COLUMNS, View(width)).split("\n")[:-1]
    if not shown_columns(rows, COLUMNS):
        assert lines == []
        return
    rule = next(place for place, line in enumerate(lines) if line.startswith(" ─"))
    below = lines[rule + 1 :]
    assert len(below) - len(rows) in (0, 1), "a line a row, and one that says how many columns are left out"
    assert all(cell_len(line) <= width for line in lines)
    if len(below) > len(rows):
        assert below[-1].endswith("--wide")


ROW = {
    "group": "a-group-of-which-the-name-is-long-and-ends-here",
    "topic": "orders",
    "partition": 3,
    "committed_offset": 123456789012,
    "commit_timestamp_ms": 1_700_000_000_000,
    "metadata": "said by the client, in more words than there is room for",
    "lag": 12,
}
NEEDED = Needed(("group", "topic", "partition", "committed_offset"), ("lag",))


def head_and_row(width: int | None, **how: Any) -> tuple[str, str]:
    lines = ours([ROW], tuple(ROW), View(width, NEEDED, **how)).split("\n")
    rule = next(place for place, line in enumerate(lines) if line.startswith(" ─"))
    return " ".join(lines[rule - 1].split()), lines[rule + 1]


def test_columns_stand_in_the_order_of_need_and_are_left_out_from_the_right() -> None:
    assert head_and_row(60)[0] == "group topic partition offset lag"
    assert head_and_row(110)[0] == "group topic partition offset lag timestamp"
    assert head_and_row(None)[0] == "group topic partition offset lag timestamp metadata"
    assert ours([ROW], tuple(ROW), View(60, NEEDED)).endswith(" 2 more columns: --wide\n")
    assert "--wide" not in ours([ROW], tuple(ROW), View(None, NEEDED))


def test_a_name_is_cut_in_its_middle_and_numbers_are_whole() -> None:
    _, row = head_and_row(60)
    cell, *others = row.split()
    begin, end = cell.split("…")
    assert ROW["group"].startswith(begin)
    assert ROW["group"].endswith(end)
    assert abs(len(begin) - len(end)) <= 1
    assert others == ["orders", "3", "123456789012", "12"]
    assert ROW["group"] in head_and_row(None)[1]
    assert "said by the client, in m…" in ours([ROW], ("metadata", "topic"), View(35))


def test_what_a_row_says_is_shown_even_if_names_are_short() -> None:
    shown = ours([ROW | {"topic": "t" * 40, "lag": 9876543}], tuple(ROW), View(60, NEEDED))
    assert "123456789012" in shown
    assert "9876543" not in shown, "lag comes only if names can be read well"


def test_seldom_columns_come_if_they_are_asked_for() -> None:
    assert "metadata" not in ours([ROW], tuple(ROW), View(seldom={"metadata"}))
    assert ours([ROW], tuple(ROW), View(300, seldom={"metadata"})).endswith(" 1 more column: --wide\n")


def test_texts_are_whole_if_they_are_to_be() -> None:
    row = {"group": "g" * 1000, "value": {"a": "v" * 1000}}
    assert "g" * 1000 not in ours([row], tuple(row))
    shown = ours([row], tuple(row), View(is_whole=True))
    assert "g" * 1000 in shown
    assert "v" * 1000 in shown


def test_the_widest_become_narrower() -> None:
    name, time, number = (40, 12, 8), (24, 24, 24), (15, 15, 15)
    assert fitting([name, time, number], 85, 3) == [40, 24, 15]
    assert fitting([name, time, number], 84, 3) == [39, 24, 15]
    assert fitting([name, time, number], 53, 3) == [8, 24, 15]
    assert fitting([name, time, number], 52, 3) == [24, 24], "the last is left out"
    assert fitting([name, time, number], 5, 3) == [8], "one is always shown"
    assert fitting([], 0, 0) == []


def test_damage_has_a_colour_where_colours_are_shown() -> None:
    rows = [{"severity": "fails", "corrupt": 2}, {"severity": "note", "corrupt": 0}]
    plain = ours(rows, ("severity", "corrupt"), View(80))
    coloured = ours(rows, ("severity", "corrupt"), View(80, is_coloured=True))
    assert "\x1b" not in plain
    assert "\x1b[31mfails\x1b[0m" in coloured
    assert "\x1b[31m2\x1b[0m" in coloured
    assert coloured.count("\x1b[31m") == 2
    assert coloured.replace("\x1b[31m", "").replace("\x1b[0m", "") == plain


def test_of_nothing() -> None:
    assert ours([], COLUMNS) == ours([{"group": None}], COLUMNS) == ""


def test_times_lose_their_milliseconds_before_a_column_is_left_out() -> None:
    assert "2023-11-14 22:13:20.000Z" in ours([ROW], tuple(ROW), View(130, NEEDED))
    needed = Needed(("commit_timestamp_ms", "partition", "committed_offset"))
    assert ours([ROW], tuple(ROW), View(50, needed)).split("\n")[-3].startswith(" 2023-11-14 22:13:20Z  ")


@pytest.mark.parametrize(
    ("column", "value", "shown"),
    [
        ("key", {"group": "billing", "topic": "orders", "partition": 3}, "billing orders 3"),
        ("value", {"offset": 7, "metadata": "", "tags": [1]}, "offset 7, metadata , tags 1"),
        ("value", {"members": [{"id": "a"}, {"id": None}]}, "members id a, id null"),
        ("assignment", [["orders", 0], ["orders", 4], ["refunds", 1]], "orders 0 4, refunds 1"),
        ("value", {"text": "two\nlines"}, r"text two\nlines"),
    ],
)
def test_structures_have_no_brackets_and_quotes_on_a_terminal(column: str, value: Any, shown: str) -> None:
    assert ours([{column: value}], (column,), View(80)).split("\n")[2] == f" {shown}"
    as_it_is = json.dumps(value, separators=(",", ":"))
    assert ours([{column: value}], (column,), View(80, is_whole=True)).split("\n")[2] == f" {visible(as_it_is)}"
    table = io.BytesIO()
    with TextTable((column,), View(80)) as made:
        made.add_fields([[as_it_is]], ["json"])
        made.write(table)
    assert table.getvalue().decode().split("\n")[2] == f" {shown}"
