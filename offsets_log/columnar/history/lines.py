"""Kernels that put entries in order and write them as lines, each by the template of its kind.

A template is rows of `OP_COLUMNS` numbers: a literal, and the value behind it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar.history import kernels as k
from offsets_log.columnar.jit.compiled import U, inlined, kernel, part
from offsets_log.columnar.jit.kinds import Bytes, LongPlanes, LongRows, Longs, Number
from offsets_log.columnar.sinks.writers import copy, write_number

# Columns of a template, and what may stand behind its literal.
OP, ARGUMENT, LITERAL_AT, LITERAL_SIZE, OP_COLUMNS = range(5)
END, NUMBER, NAME, METADATA = range(4)
"""NUMBER: a column of ``values``; NAME: a kind of names, by the column of the same number behind `NAMES`."""

# Columns of ``values``, behind those of an entry.
NAMES = k.ENTRY_SIZE
GROUP, TOPIC, HOLDER = range(3)
PARTITION = NAMES + 3
VALUE_SIZE = NAMES + 4

FINISHED, FULL, NEEDS_HAND = range(3)
"""Why `write` came back: nothing is left; no room for the next line; the next line is to be made by hand."""

ROW, USED, DESK = range(3)

BASE64 = np.full(256, -1, np.int64)
BASE64[[*b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"]] = np.arange(64)


@kernel
def put_in_order(entries: LongRows, count: Number, ranks: Longs, places: Longs, latest: Longs, order: Longs) -> Any:
    """Number entries by the rank of their key, those of a key as they come; whether their offsets rise then.

    Args:
        ranks: of each key.
        places: of each rank, where its entries begin.
        latest: of each rank, NEVER.
    """
    rises = True
    for n in range(count):
        rank = U(ranks[U(entries[U(n), k.KEY])])
        order[U(places[rank])] = n
        places[rank] += 1
        if entries[U(n), k.RECORD_OFFSET] < latest[rank]:
            rises = False
        latest[rank] = entries[U(n), k.RECORD_OFFSET]
    return rises


@kernel
def count_keys(entries: LongRows, begin: Number, end: Number, numbers: Longs) -> None:
    """How many entries each key has."""
    for n in range(begin, end):
        numbers[U(entries[U(n), k.KEY])] += 1


@kernel
def take(entries: LongRows, order: Longs, values: LongRows) -> None:
    """Copy entries into the first columns of ``values``, in an order."""
    for i in range(len(order)):
        n = U(order[U(i)])
        for column in range(k.ENTRY_SIZE):
            values[U(i), U(column)] = entries[n, U(column)]


@inlined
def _begins_with(data: Any, start: Any, formats: Any) -> Any:
    """Whether base64 of bytes begins with one of some bytes."""
    first, second = BASE64[U(data[U(start)])], BASE64[U(data[U(start + 1)])]
    return first >= 0 and second >= 0 and formats[U(first << 2 | second >> 4)] != 0


@kernel
def find_texts(values: LongRows, texts: Bytes, plain: Bytes, formats: Bytes, is_text: Bytes) -> None:
    """Of each row, whether its metadata says no more than it reads, and stands in a line as it is.

    Args:
        plain: of each byte, whether it does.
        formats: of each byte, whether bytes that begin with it may say more, in base64.
    """
    for i in range(len(values)):
        start, size = values[U(i), k.METADATA_AT], values[U(i), k.METADATA_SIZE]
        found = not (size > 0 and size % 4 == 0 and _begins_with(texts, start, formats))
        for at in range(start, start + size):
            if not plain[U(texts[U(at)])]:
                found = False
        is_text[U(i)] = found


@part
def _line(
    out: Any, at: Any, pc: Any, ops: Any, literals: Any, values: Any, i: Any, texts: Any, names: Any, places: Any
) -> Any:  # fmt: skip
    """The line of a row, and where it ends; NO_ROOM."""
    while at >= 0:
        at = copy(out, at, literals, ops[pc, LITERAL_AT], ops[pc, LITERAL_SIZE])
        op, argument = ops[pc, OP], ops[pc, ARGUMENT]
        if at < 0 or op == END:
            return at
        if op == NUMBER:
            at = np.int64(write_number(out, at, values[i, argument]))
        elif op == NAME:
            number = values[i, NAMES + argument]
            begin = places[argument, number, 0]
            at = copy(out, at, names, begin, places[argument, number, 1] - begin)
        else:
            at = copy(out, at, texts, values[i, k.METADATA_AT], values[i, k.METADATA_SIZE])
        pc += 1
    return at


@kernel
def write(
    desk: Longs, out: Bytes, programs: Longs, ops: LongRows, literals: Bytes, values: LongRows, texts: Bytes,
    names: Bytes, places: LongPlanes,
) -> Any:  # fmt: skip
    """Write lines behind ``out[:desk[USED]]`` from ``desk[ROW]`` on; why it came back."""
    for i in range(desk[ROW], len(values)):
        desk[ROW] = i
        if programs[U(i)] == a.NOTHING:
            return np.int64(NEEDS_HAND)
        at = _line(out, desk[USED], programs[U(i)], ops, literals, values, U(i), texts, names, places)
        if at < 0:
            return np.int64(FULL)
        desk[USED] = at
    desk[ROW] = len(values)
    return np.int64(FINISHED)
