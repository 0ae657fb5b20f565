"""Lines that are filled in: the same as those that are made."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from offsets_log.rows.alike import AlikeLines
from offsets_log_cli.output import TEXT_FORMATS
from tests.sizes import examples

NAMES = ("name", "first", "other", "second")
NAMED = st.sampled_from(["a", 'of "all", %d and 100 %', "é", "12"])
ROWS = st.lists(st.tuples(NAMED, st.integers(-(1 << 63), (1 << 63) - 1), st.integers()), max_size=9)


def row_of(name: str, first: int, second: int) -> dict[str, Any]:
    return {"name": name, "first": first, "other": [name, None], "second": second}


@examples(100)
@given(rows=ROWS, form=st.sampled_from(list(TEXT_FORMATS)))
def test_lines_are_those_of_the_format(rows: list[tuple[str, int, int]], form: str) -> None:
    line = TEXT_FORMATS[form](NAMES).line
    lines = AlikeLines(line)
    for name, first, second in rows:
        made = row_of(name, first, second)
        assert lines.of(name, lambda made=made: made, {"first": first, "second": second}) == line(made)


def test_rows_of_a_kind_are_made_twice_at_most() -> None:
    made: list[int] = []

    def row(number: int) -> dict[str, Any]:
        made.append(number)
        return row_of("a", number, number)

    lines = AlikeLines(TEXT_FORMATS["jsonl"](NAMES).line)
    for number in range(9):
        lines.of("kind", lambda number=number: row(number), {"first": number, "second": number})
    assert made == [0, 1]


def test_a_format_that_leaves_out_a_number_has_no_template() -> None:
    lines = AlikeLines(lambda row: str(row["first"]).encode())
    texts = [lines.of("kind", lambda n=n: row_of("a", n, n), {"first": n, "second": n}) for n in range(4)]
    assert texts == [b"0", b"1", b"2", b"3"]
