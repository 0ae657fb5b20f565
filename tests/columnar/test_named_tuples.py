"""What travels together is one parameter of a kernel: a named tuple of arrays, records, numbers, and further tuples."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from offsets_log.columnar.jit.compiled import kernel
from offsets_log.columnar.jit.kinds import ArrayKind, Bytes, LongRows, Longs, Number, kinds_of, leaves
from offsets_log.columnar.jit.modes import IS_CHECKED, IS_PYTHON
from offsets_log.columnar.jit.records import Long, Record, Table

ROOT = Path(__file__).parent.parent.parent
TUPLES = """
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from offsets_log.columnar.jit.compiled import kernel, part
from offsets_log.columnar.jit.kinds import Bytes, LongRows, Longs, Number
from offsets_log.columnar.jit.records import Long, Record, Table


class One(Record):
    first: Long
    last: Long


class Inner(NamedTuple):
    numbers: Longs
    one: One
    factor: Number


class Outer(NamedTuple):
    text: Bytes
    inner: Inner
    rows: Table[One]
    planes: LongRows


@part
def total(inner: Inner, rows: Table[One]) -> Any:
    found = np.int64(0)
    for i in range(len(rows)):
        found += inner.factor * rows[i].last + inner.numbers[i]
    inner.one.last = found
    return found


@kernel
def note(before: Number, outer: Outer, after: Number) -> Any:
    inner = Inner(outer.inner.numbers, outer.inner.one, after)
    outer.text[0] = before
    outer.planes[1, 2] = total(outer.inner, outer.rows)
    return total(inner, outer.rows)
"""
USE = """
import numpy as np
from made.tuples import Inner, One, Outer, Table, note

rows, numbers, text, planes = Table(One, 2), np.array([30, 40]), np.zeros(3, np.uint8), np.zeros((2, 3), np.int64)
rows[0].last, rows[1].last = 1, 2
one = One()
assert note(7, Outer(text, Inner(numbers, one, 100), rows, planes), 1000) == 3070
assert (one.first, one.last, text.tolist(), planes.tolist()) == (0, 3070, [7, 0, 0], [[0, 0, 0], [0, 0, 370]])
"""


class Kept(Record):
    first: Long
    last: Long


class Pair(NamedTuple):
    numbers: Longs
    kept: Kept


class Nested(NamedTuple):
    count: Number
    pair: Pair
    rows: Table[Kept]


def take(nested: Nested, text: Bytes, table: LongRows) -> Any:
    return nested.count


LONGS, KEPT = ArrayKind(np.dtype(np.int64), 1), ArrayKind(Kept.dtype, 0)


def test_the_kind_of_a_tuple_is_a_tuple_of_kinds() -> None:
    nested, text, table = kinds_of(take)
    assert isinstance(nested, Nested)
    assert isinstance(nested.pair, Pair)
    assert nested == (None, (LONGS, KEPT), ArrayKind(Kept.dtype, 1))
    assert [*leaves((nested, text))] == [None, LONGS, KEPT, ArrayKind(Kept.dtype, 1), text]
    assert table.dimensions == 2


def test_a_field_that_is_of_no_kind_is_refused() -> None:
    class Odd(NamedTuple):
        number: int

    def odd(nested: Odd) -> None:
        """Takes what no kernel takes."""

    odd.__globals__["Odd"] = Odd
    with pytest.raises(AttributeError):
        kinds_of(odd)


@pytest.mark.skipif(IS_PYTHON or IS_CHECKED, reason="plain Python takes anything")
def test_each_field_must_be_what_it_says() -> None:
    of = kernel(take)
    of._entry = lambda *flat: len(flat)
    text, table, right = np.zeros(1, np.uint8), np.zeros((1, 1), np.int64), Pair(np.zeros(1, np.int64), Kept())
    rows = Table(Kept, 1)
    assert of(Nested(3, right, rows), text, table) == 1 + 2 + 1 + 2 + 2 + 3
    for wrong in (right._replace(numbers=np.zeros(1, np.int32)), right._replace(numbers=table[:, 0:0])):
        with pytest.raises(AssertionError):
            of(Nested(3, wrong, rows), text, table)
    with pytest.raises(ValueError, match="shorter"):
        of(Nested(3, right, rows), text)  # type: ignore[call-arg]


@pytest.mark.parametrize("mode", ["compiled", "plain Python"])
def test_a_kernel_and_its_parts_take_tuples_in_tuples(mode: str, tmp_path: Path) -> None:
    made = tmp_path / "made"
    made.mkdir()
    (made / "__init__.py").touch()
    (made / "tuples.py").write_text(TUPLES)
    modes = {"compiled": {"OFFSETS_LOG_COMPILES": "1"}, "plain Python": {"NUMBA_DISABLE_JIT": "1"}}
    environment = {name: text for name, text in os.environ.items() if not name.startswith("NUMBA_")}
    environment |= {"OFFSETS_LOG_CACHE": str(tmp_path), "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}", **modes[mode]}
    done = subprocess.run([sys.executable, "-c", USE], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
