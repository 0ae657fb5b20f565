"""Entries of indexes taken at once are those taken one by one, or refused as these are."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from offsets_log.broker.bulk import FEW_ENTRIES, take_run
from offsets_log.broker.failures import BrokerError
from offsets_log.broker.indexes import Indexing
from offsets_log.columnar.cleaning.round_state import Due
from offsets_log.columnar.jit.records import Rows
from offsets_log.log_format.record import INT64_MAX

STEP = st.sampled_from([1, 1, 1, 2, 900, 0, -1, 1 << 31, 1 << 62])
START = st.sampled_from([0, 5, -1, 1 << 31, -(1 << 63), INT64_MAX])


def rows_of(due: list[list[int]]) -> Rows:
    return np.array([tuple(row) for row in due], Due.dtype)


@st.composite
def runs(draw: st.DrawFn) -> list[list[int]]:
    """Columns of entries, most of which rise."""
    size = draw(st.integers(FEW_ENTRIES, FEW_ENTRIES + 4))
    columns = []
    for _ in range(4):
        value, column = draw(START), []
        steps = draw(st.one_of(st.just([1] * size), st.lists(STEP, min_size=size, max_size=size)))
        for step in steps:
            column.append(value)
            value = min(max(value + step, -(1 << 63)), INT64_MAX)
        columns.append(column)
    return [list(row) for row in zip(*columns, strict=True)]


@given(
    some=st.lists(runs(), min_size=1, max_size=3),
    base=st.sampled_from([0, 3, 1 << 40, INT64_MAX]),
    most_bytes=st.sampled_from([None, 8 * (FEW_ENTRIES + 2), 12 * (FEW_ENTRIES + 2)]),
)
def test_a_run_at_once_is_the_same_one_by_one(some: list[list[list[int]]], base: int, most_bytes: int | None) -> None:
    at_once = Indexing.of(base, max_index_bytes=most_bytes)
    one_by_one = deepcopy(at_once)
    for due in some:
        due = [[offset + (base if abs(offset) < 1 << 20 else 0), *rest] for offset, *rest in due]
        due = [[min(max(cell, -(1 << 63)), INT64_MAX) for cell in row] for row in due]
        said = []
        for take, indexing in ((take_run, at_once), (None, one_by_one)):
            try:
                if take is not None:
                    take(indexing, rows_of(due), (1, 2), 3)
                else:
                    indexing.take_run(due, (1, 2), 3)
                said.append("")
            except (BrokerError, OverflowError) as error:
                said.append(str(error))
        assert said[0] == said[1]
        assert at_once == one_by_one
        if said[0]:
            return


def test_rising_entries_are_taken_at_once() -> None:
    due = [[10 + i, 4096 * i, 1_000 + i // 2, 10 + i] for i in range(40)]
    at_once, one_by_one = Indexing.of(10), Indexing.of(10)
    take_run(at_once, rows_of(due), (1_019, 49), 4096 * 39)
    one_by_one.take_run(due, (1_019, 49), 4096 * 39)
    assert at_once == one_by_one
    assert len(at_once.index.offsets) == 40
    assert len(at_once.times.offsets) == 20
