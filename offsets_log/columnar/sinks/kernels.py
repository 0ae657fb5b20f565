"""Write lines in a kernel: rows of columns as text, each by the program of its template (`templates`).

A program is rows of `OP_COLUMNS` numbers. An operation writes its literal and then one value: that of a column, or
the next field in the raw value of the record. If the program does not fit, the line is made on the slow path.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.events import columns as k
from offsets_log.columnar.jit.compiled import U, inlined, kernel, part
from offsets_log.columnar.jit.kinds import ByteRows, Bytes, IntRows, Ints, LongPlanes, LongRows
from offsets_log.columnar.sinks.json_kernels import STACK_END, Json, write_json
from offsets_log.columnar.sinks.writers import (
    Output,
    copy,
    escaped,
    says_more,
    write_number,
)
from offsets_log.columnar.wire.primitives import be32

# Columns of a program.
OP, ARGUMENT, LITERAL_AT, LITERAL_SIZE, OP_COLUMNS = range(5)

# Operations, and what ARGUMENT is.
END = 0
LONG = 1  # row of ``longs``
INT = 2  # row of ``ints``
NAME = 3  # row of ``ints`` with the number of a name, and its kind in ``places``
TEXT = 4  # row of ``longs`` with its place in ``whole``, before that with its size
METADATA = 5  # whether the line is made on the slow path where it may say more than its text
EPOCH = 6  # of the coordinator, in a marker's raw value
JSON_KEY = 7  # first step of the program that writes the raw key, see `json_kernels`
CHECK_KEY = 8  # the same, and nothing is written
JSON_VALUE, CHECK_VALUE = 9, 10  # of the raw value

HIDDEN = -1
"""A kind of rows without lines."""
SLOW_PATH, NO_PROGRAM = -1, 0
"""Values instead of where a kind's program begins: its lines are made on the slow path; it has none yet."""

ROW, END_ROW, USED, KIND, PROGRESS_SIZE = range(STACK_END, STACK_END + 5)
"""Numbers of the progress behind those of `json_kernels`: the next row, where rows end, bytes written; a kind without a
program."""

END_OF_MARKER = 6  # its version and the epoch


class Programs(NamedTuple):
    """The programs of all kinds of rows; see `templates.Templates`."""

    begins: Ints
    ops: LongRows
    literals: Bytes
    json: Json


class Columns(NamedTuple):
    """The columns of rows.

    Attributes:
        kinds: the number of each row's program in `Programs`, or HIDDEN.
        longs, ints: numbers.
        texts: bytes of metadata, raw keys and raw values, one row's after the other, as in `events.columns`.
        ends: where those of each row end.
        whole: bytes of texts that other columns have the places of.
        names: names as they stand in lines.
        places: where each begins and ends, by kind and number.
    """

    kinds: Ints
    longs: LongRows
    ints: IntRows
    texts: ByteRows
    ends: IntRows
    whole: Bytes
    names: Bytes
    places: LongPlanes


@inlined
def _begin(columns: Columns, which: Any, n: Any) -> Any:
    """Return where the text of a row begins in ``texts``."""
    return np.int64(columns.ends[which, n - 1]) if n > 0 else np.int64(0)


@inlined
def _column(out: Any, at: Any, op: Any, argument: Any, columns: Columns, n: Any, json: Json) -> Any:
    """Write a value from a column."""
    longs, ints, texts = columns.longs, columns.ints, columns.texts
    if op == LONG:
        return write_number(out, at, longs[argument, n])
    if op == INT:
        return write_number(out, at, np.int64(ints[argument, n]))
    if op == NAME:
        number = ints[argument, n]
        begin = columns.places[argument, number, 0]
        return copy(out, at, columns.names, begin, columns.places[argument, number, 1] - begin)
    if op == TEXT:
        return escaped(out, at, columns.whole, longs[argument, n], longs[argument + 1, n], json.escapes)
    if op == METADATA:
        begin = _begin(columns, k.METADATA, n)
        size = columns.ends[k.METADATA, n] - begin
        if argument and says_more(texts[k.METADATA], begin, size, json.escapes):
            return np.int64(oc.NOT_PLAIN)
        return escaped(out, at, texts[k.METADATA], begin, size, json.escapes)
    begin = _begin(columns, k.RAW_VALUE, n)
    return write_number(out, at, be32(texts[k.RAW_VALUE], begin + END_OF_MARKER - 4))


@inlined
def _json(output: Output, at: Any, op: Any, step: Any, json: Json, columns: Columns, n: Any) -> Any:
    """Write the JSON of a raw key or value, after its type or version."""
    which = np.int64(k.RAW_KEY) if op <= CHECK_KEY else np.int64(k.RAW_VALUE)
    begin, end = _begin(columns, which, n) + 2, np.int64(columns.ends[which, n])
    return write_json(output, at, json, step, columns.texts[which], begin, end)


@part
def _line(output: Output, at: Any, pc: Any, programs: Programs, columns: Columns, n: Any) -> Any:
    """Write the line of a row; return where it ends."""
    ops, out = programs.ops, output.out
    while at >= 0:
        op, argument = ops[pc, OP], ops[pc, ARGUMENT]
        at = copy(out, at, programs.literals, ops[pc, LITERAL_AT], ops[pc, LITERAL_SIZE])
        if at < 0 or op == END:
            return at
        if op < JSON_KEY:
            at = np.int64(_column(out, at, op, argument, columns, n, programs.json))
        else:
            end = np.int64(_json(output, at, op, argument, programs.json, columns, n))
            at = at if op in (CHECK_KEY, CHECK_VALUE) and end >= 0 else end
        pc += 1
    return at


@kernel
def write_lines(output: Output, programs: Programs, columns: Columns) -> Any:
    """Append lines to ``out[:progress[USED]]`` from ``progress[ROW]`` on; return why it stopped."""
    progress = output.progress
    for n in range(progress[ROW], progress[END_ROW]):
        progress[ROW] = n
        kind = columns.kinds[n]
        if kind == HIDDEN:
            continue
        program = np.int64(programs.begins[U(kind)])
        if program == SLOW_PATH:
            return np.int64(oc.NOT_PLAIN)
        if program == NO_PROGRAM or program >= len(programs.ops):
            progress[KIND] = kind
            return np.int64(oc.NEEDS_TEMPLATE)
        at = _line(output, progress[USED], program, programs, columns, n)
        if at < 0:
            return np.int64(at if at == oc.FULL or at == oc.NEEDS_EMBEDDED else oc.NOT_PLAIN)
        progress[USED] = at
    progress[ROW] = progress[END_ROW]
    return np.int64(oc.FINISHED)
