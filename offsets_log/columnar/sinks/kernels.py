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
from offsets_log.columnar.jit.kinds import ByteRows, Bytes, IntRows, Ints, LongPlanes, LongRows, Longs
from offsets_log.columnar.scan.interner import is_utf8, same_bytes
from offsets_log.columnar.sinks.json_kernels import STACK_SIZE, Json, write_json
from offsets_log.columnar.sinks.writers import (
    BASE64,
    MOST_ESCAPED,
    Output,
    base64,
    copy,
    escaped,
    says_more,
    write_number,
)
from offsets_log.columnar.wire.primitives import be16, be32, be64, hash_bytes

# Columns of a program. ``OTHER`` is a second literal: the quotes of what may stand there without, or what an array has
# between its elements or instead of any.
OP, ARGUMENT, LITERAL_AT, LITERAL_SIZE, OTHER_AT, OTHER_SIZE, OP_COLUMNS = range(7)

# Operations, and what ARGUMENT is.
END = 0  # whether a raw value must end here
LONG = 1  # row of ``longs``
INT = 2  # row of ``ints``
NAME = 3  # row of ``ints`` with the number of a name, and its kind in ``places``
TEXT = 4  # row of ``longs`` with its place in ``whole``, before that with its size
METADATA = 5  # whether the line is made on the slow path where it may say more than its text
EPOCH = 6  # of the coordinator, in a marker's raw value
JSON_KEY = 7  # first step of the program that writes the raw key, see `json_kernels`
JSON_VALUE = 8  # of the raw value
READ_INT32 = 9
READ_INT64 = 10
READ_STRING = 11  # whether it may be null
READ_BYTES = 12  # as base64
READ_EMBEDDED = 13  # field of a member, known by its bytes; as base64 where it is not to be expanded
ARRAY = 14  # operation behind it, which is entered behind its literal where there are no elements
NEXT = 15  # first operation of an element, which is entered behind its literal

HIDDEN = -1
"""A kind of rows without lines."""
SLOW_PATH, NO_PROGRAM = -1, 0
"""Values instead of where a kind's program begins: its lines are made on the slow path; it has none yet."""

# Numbers of the progress, behind what `json_kernels` enters: the next row, where rows end, bytes written. Then what
# embedded bytes are known: their number, the seed of their hashes; with how many bytes of ``memory`` a raw value must
# begin behind its version if its fields are expanded; and which bytes are not known. At last the kind that has no
# program.
(
    ROW, END_ROW, USED, KNOWN, SEED, PREFIX, WHICH, EMBEDDED_AT, EMBEDDED_SIZE, KIND, PROGRESS_SIZE,
) = range(STACK_SIZE, STACK_SIZE + 11)  # fmt: skip


# Columns of ``known``: embedded bytes in ``memory``, what they are, and what stands in a line for them.
KNOWN_AT, KNOWN_SIZE, KNOWN_WHICH, TEXT_AT, TEXT_SIZE, KNOWN_COLUMNS = range(6)

FIELDS = 4
"""What embedded bytes are: −1 a protocol type, −2 − n a protocol of the type in row n, and from FIELDS on a field of a
member, FIELDS * (1 + n) + its number, where row n is the group's protocol."""

END_OF_MARKER = 6  # its version and the epoch


class Embedded(NamedTuple):
    """The embedded bytes that are known; see `known.Known`."""

    slots: Longs
    known: LongRows
    memory: Bytes


class Programs(NamedTuple):
    """The programs of all kinds of rows; see `templates.Templates`."""

    begins: Ints
    ops: LongRows
    literals: Bytes
    json: Json
    embedded: Embedded


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


@part
def _string(out: Any, at: Any, programs: Programs, pc: Any, data: Any, read: Any, end: Any) -> Any:
    """Write a text with an int16 length; return where it ends in the line, and in the record."""
    ops = programs.ops
    if read + 2 > end:
        return np.int64(oc.NOT_PLAIN), read
    size, read = be16(data, read), read + 2
    if size < 0:
        if ops[pc, ARGUMENT] == 0 or len(out) - at < MOST_ESCAPED:
            return np.int64(oc.NOT_PLAIN if ops[pc, ARGUMENT] == 0 else oc.FULL), read
        out[U(at)], out[U(at + 1)], out[U(at + 2)], out[U(at + 3)] = 110, 117, 108, 108  # null
        return at + 4, read
    if size > end - read or not is_utf8(data, read, size):
        return np.int64(oc.NOT_PLAIN), read
    at = copy(out, at, programs.literals, ops[pc, OTHER_AT], ops[pc, OTHER_SIZE])
    if at >= 0:
        at = escaped(out, at, data, read, size, programs.json.escapes)
    if at >= 0:
        at = copy(out, at, programs.literals, ops[pc, OTHER_AT], ops[pc, OTHER_SIZE])
    return at, read + size


@part
def find_known(progress: Any, embedded: Embedded, data: Any, start: Any, size: Any, which: Any) -> Any:
    """Return the number of embedded bytes, −1 if they are not known, and their slot."""
    slots, known = embedded.slots, embedded.known
    mask = np.int64(len(slots) - 1)
    slot = hash_bytes(data, start, size, progress[SEED] + which) & mask
    while slots[U(slot)] != 0:
        number = slots[U(slot)] - 1
        is_like = known[number, KNOWN_SIZE] == size and known[number, KNOWN_WHICH] == which
        if is_like and same_bytes(embedded.memory, known[number, KNOWN_AT], data, start, size):
            return number, slot
        slot = slot + 1 & mask
    return np.int64(-1), slot


@part
def _known_field(progress: Any, data: Any, begin: Any, start: Any, size: Any, field: Any, embedded: Embedded) -> Any:
    """Return the number of a member's field, known for the protocol type and protocol of its group; else −1.

    Args:
        begin: where the group's value begins behind its version: type, generation and protocol were read before.
    """
    at, number, which = begin, np.int64(-1), np.int64(-1)
    for step in range(3):
        if step == 2:
            at, length, which = start, size, FIELDS * (1 + number) + field
        else:
            length = max(be16(data, at), np.int64(0))
            at, which = at + 2, -2 - number
        number, _ = find_known(progress, embedded, data, at, length, which)
        if number < 0:
            progress[WHICH], progress[EMBEDDED_AT], progress[EMBEDDED_SIZE] = which, at, length
            return number
        at += length + 4
    return number


@part
def _embedded(
    output: Output, at: Any, programs: Programs, pc: Any, data: Any, begin: Any, start: Any, size: Any
) -> Any:
    """Write embedded bytes in the form of a line."""
    ops, embedded, out = programs.ops, programs.embedded, output.out
    prefix = output.progress[PREFIX]
    if prefix <= start - begin and same_bytes(embedded.memory, np.int64(0), data, begin, prefix):
        number = _known_field(output.progress, data, begin, start, size, ops[pc, ARGUMENT], embedded)
        if number < 0:
            return np.int64(oc.NEEDS_EMBEDDED)
        return copy(out, at, embedded.memory, embedded.known[number, TEXT_AT], embedded.known[number, TEXT_SIZE])
    at = copy(out, at, programs.literals, ops[pc, OTHER_AT], ops[pc, OTHER_SIZE])
    if at >= 0:
        at = base64(out, at, data, start, size, BASE64)
    if at >= 0:
        at = copy(out, at, programs.literals, ops[pc, OTHER_AT], ops[pc, OTHER_SIZE])
    return at


@part
def _read(output: Output, at: Any, programs: Programs, pc: Any, data: Any, begin: Any, read: Any, end: Any) -> Any:
    """Write the next value of the record; return where it ends in the line, and in the record."""
    out = output.out
    op = programs.ops[pc, OP]
    if op == READ_STRING:
        return _string(out, at, programs, pc, data, read, end)
    if op == READ_INT64:
        if read + 8 > end:
            return np.int64(oc.NOT_PLAIN), read
        return write_number(out, at, be64(data, read)), read + 8
    if read + 4 > end:
        return np.int64(oc.NOT_PLAIN), read
    number, read = be32(data, read), read + 4
    if op == READ_INT32:
        return write_number(out, at, number), read
    if number < 0 or number > end - read:
        return np.int64(oc.NOT_PLAIN), read
    if op == READ_EMBEDDED:
        at = _embedded(output, at, programs, pc, data, begin, read, number)
        return at, read + number
    return base64(out, at, data, read, number, BASE64), read + number


@inlined
def _count(data: Any, read: Any, end: Any) -> Any:
    """Return how many elements an array has, −1 without a count, and where they begin."""
    return (be32(data, read), read + 4) if read + 4 <= end else (np.int64(-1), read)


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
    which = np.int64(k.RAW_KEY) if op == JSON_KEY else np.int64(k.RAW_VALUE)
    begin, end = _begin(columns, which, n) + 2, np.int64(columns.ends[which, n])
    return write_json(output, at, json, step, columns.texts[which], begin, end)


@part
def _line(output: Output, at: Any, pc: Any, programs: Programs, columns: Columns, n: Any) -> Any:
    """Write the line of a row; return where it ends."""
    ops, out = programs.ops, output.out
    data = columns.texts[k.RAW_VALUE]
    begin, end = _begin(columns, k.RAW_VALUE, n) + 2, np.int64(columns.ends[k.RAW_VALUE, n])
    read = begin
    left = np.int64(0)
    is_entered = False
    while at >= 0:
        op, argument = ops[pc, OP], ops[pc, ARGUMENT]
        if not is_entered:
            at = copy(out, at, programs.literals, ops[pc, LITERAL_AT], ops[pc, LITERAL_SIZE])
        is_entered = False
        if at < 0 or op == END:
            return np.int64(oc.NOT_PLAIN) if at >= 0 and argument and read != end else at
        if op < JSON_KEY:
            at = np.int64(_column(out, at, op, argument, columns, n, programs.json))
        elif op < READ_INT32:
            at = np.int64(_json(output, at, op, argument, programs.json, columns, n))
        elif op < ARRAY:
            at, read = _read(output, at, programs, pc, data, begin, read, end)
        else:
            if op == ARRAY:
                left, read = _count(data, read, end)
                if left < 0:
                    return np.int64(oc.NOT_PLAIN)
            else:
                left -= 1
            is_entered = bool((left == 0) == (op == ARRAY))
            if is_entered:
                at = copy(out, at, programs.literals, ops[pc, OTHER_AT], ops[pc, OTHER_SIZE])
                pc = argument
                continue
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


@kernel
def remember(progress: Longs, embedded: Embedded) -> None:
    """Enter row ``progress[KNOWN]`` of ``known`` into the table; there is room."""
    known = embedded.known
    number = progress[KNOWN]
    at, size, which = known[number, KNOWN_AT], known[number, KNOWN_SIZE], known[number, KNOWN_WHICH]
    _, slot = find_known(progress, embedded, embedded.memory, at, size, which)
    embedded.slots[slot] = number + 1
    progress[KNOWN] = number + 1
