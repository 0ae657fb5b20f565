"""Records of named numbers: each field has a place of its own, the same one to Python, NumPy and numba."""

from __future__ import annotations

import pickle
from typing import Annotated

import numpy as np

from offsets_log.columnar.jit.records import Long, Longs, Record, Table


class Sample(Record):
    first: Long
    grid: Annotated[Longs, 2, 3]
    last: Long
    same: Annotated[Long, "first"]


def test_fields_stand_behind_each_other() -> None:
    sample = Sample()
    sample.first, sample.last = 1, 2
    sample.grid[1, 2] = 3
    assert sample.numbers.tolist() == [1, 0, 0, 0, 0, 0, 3, 2]
    assert sample.rows["first"] == 1
    assert sample.rows["grid"].tolist() == [[0, 0, 0], [0, 0, 3]]
    sample.same = 4
    assert (sample.first, sample.numbers.sum()) == (4, 9)


def test_rows_of_a_table_share_its_memory() -> None:
    table = Table(Sample, 2)
    table[1].last = 7
    table[0] = table[1]
    assert table.rows["last"].tolist() == [7, 7]
    table.copy()[0].last = 6
    larger = table.grown(3)
    larger[0].last = 8
    assert (len(larger), larger[2].last, table[0].last) == (3, 0, 7)
    table.up_to(1)[0].last = 9
    assert table[0].last == 9


def test_numbers_stay_numbers_of_64_bits() -> None:
    """Plain Python must wrap where machine code does."""
    assert type(Sample().first) is np.int64


def test_columns_are_told_by_the_names_of_fields() -> None:
    table = Table(Sample, 3)
    table.column(Sample.last)[:] = 5, 6, 7
    table.column(Sample.same)[1] = 8
    assert table.columns(Sample.last, Sample.first).tolist() == [[5, 0], [6, 8], [7, 0]]
    chosen = table.of(np.array([True, False, True]))
    chosen[0].last = 9
    assert ([one.last for one in chosen], table[0].last) == ([9, 7], 5)


def test_a_table_of_another_process_is_one_memory() -> None:
    table = pickle.loads(pickle.dumps(Table(Sample, 2)))
    table[1].last = 7
    assert table.rows["last"].tolist() == [0, 7]
