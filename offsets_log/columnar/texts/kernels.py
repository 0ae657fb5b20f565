"""Turn kafka-dump-log's text to segment bytes in a kernel: plain batches with their records.

A program reads a line (`programs`): rows of `OP_COLUMNS` numbers, each a literal that must be there and then one value,
which is kept as a fact or appended to the record. If one line of a batch is not exactly as its program says, or
contradicts its sizes, the batch is left to the slow path with all of its lines.

Over 400 lines: one kernel and the parts it is made of.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.events import columns as k
from offsets_log.columnar.jit.compiled import U, inlined, kernel, part
from offsets_log.columnar.jit.kinds import Bytes, LongRows, Longs
from offsets_log.columnar.scan.interner import is_utf8, same_bytes
from offsets_log.columnar.sinks import embedded as em
from offsets_log.columnar.wire import batches as bt
from offsets_log.log_format import batch as b

# Columns of a program; ``OTHER`` is what is written, the quotes of what may stand there without, what an array has
# instead of elements or between them.
OP, ARGUMENT, LITERAL_AT, LITERAL_SIZE, OTHER_AT, OTHER_SIZE, OP_COLUMNS = range(7)

# Operations, and what ARGUMENT is.
END = 0  # attributes of a batch; of a record whether it IS_CONTROL, or IS_GROUP with a value
FACT = 1  # its number
INT = 2  # bytes that are written
STRING = 3  # whether it MAY_BE_NULL or IS_COMPACT
EMBEDDED = 4  # which of those that are known by their text
WRITE = 5
KEY = 6
VALUE = 7
ARRAY = 8  # operation behind it, which is entered behind its literal where there are no elements
NEXT = 9  # first operation of an element, which is entered behind its literal

# Facts are numbered as the columns of a chunk of `events`, those of 64 bits first.
INTS_AT = k.LONGS
FACTS = k.LONGS + k.ENDS_AT
OF_BATCH, OF_RECORD = range(2)
"""Rows of ``facts``."""

# Numbers of the progress: where the next batch begins in the text, its line, and where it begins in the file that was
# printed; bytes and rows of ``pairs`` written; whether a batch had another size where it was printed, and a group the
# type whose members are expanded; the programs that fitted last. Of the line that is read: where a part of the record
# begins, its size, an array's count and its place.
(
    AT, LINE, NEXT_POSITION, USED, PAIRS, IS_RESIZED, IS_EXPANDED, LAST_OF_BATCHES, LAST_OF_RECORDS, BEGIN, SIZE, COUNT,
    COUNT_AT, PROGRESS_SIZE,
) = range(14)  # fmt: skip

IS_CONTROL, IS_GROUP = 1, 2
MAY_BE_NULL, IS_COMPACT = 1, 2


COUNT_BYTES = 4
QUOTE, BACKSLASH, LEAST_CHARACTER = 34, 92, 32
OPENING, CLOSING = 123, 125

MOST_DIGITS = 18
MOST_STRING = 0x7FFF
MOST_STRING_HEAD = 4
MOST_VARINT = 10
AROUND_RECORD = 6 * MOST_VARINT
INT32_MAX = np.iinfo(np.int32).max


class Parsing(NamedTuple):
    """A text and what becomes of it.

    Attributes:
        progress: how far both are.
        ops, literals: the programs one after the other, and the bytes that they ask for or write.
        of_batches, of_records: where the programs of lines begin.
        facts: what is known of the batch and of the record.
        out: segment bytes.
        pairs: (record offset, line) of each record; of a batch its base offset, and its line as a negative number.
        known_progress, embedded: bytes that are known by their text, as `sinks.embedded` has them.
    """

    progress: Longs
    text: Bytes
    ops: LongRows
    literals: Bytes
    of_batches: Longs
    of_records: Longs
    facts: LongRows
    out: Bytes
    pairs: LongRows
    known_progress: Longs
    embedded: em.Embedded


@inlined
def _stands(text: Any, at: Any, literals: Any, start: Any, size: Any) -> Any:
    """Return whether a literal is at a position."""
    if size > len(text) - at:
        return False
    i = np.int64(0)
    while i < size and text[U(at + i)] == literals[U(start + i)]:
        i += 1
    return i == size


@part
def _int(text: Any, at: Any) -> Any:
    """Return an integer in JSON's form, and where it ends; NOT_PLAIN if it has another form or too many digits."""
    end = np.int64(len(text))
    is_negative = at < end and text[U(at)] == 45
    if is_negative:
        at += 1
    begin = at
    value = np.int64(0)
    while at < end and at - begin <= MOST_DIGITS and 48 <= text[U(at)] <= 57:
        value = 10 * value + np.int64(text[U(at)]) - 48
        at += 1
    digits = at - begin
    if digits == 0 or digits > MOST_DIGITS or (text[U(begin)] == 48 and (digits > 1 or is_negative)):
        return value, np.int64(oc.NOT_PLAIN)
    return (-value if is_negative else value), at


@inlined
def _put(out: Any, at: Any, value: Any, size: Any) -> None:
    """Write a number as ``size`` bytes, big-endian."""
    for i in range(size):
        out[U(at + i)] = np.uint8(value >> 8 * (size - 1 - i) & 0xFF)


@inlined
def _zigzag(value: Any) -> Any:
    return U(value << 1) ^ U(value >> 63)


@inlined
def _varint_size(value: Any) -> Any:
    left = _zigzag(value)
    size = np.int64(1)
    while left >= U(0x80):
        left >>= U(7)
        size += 1
    return size


@inlined
def _put_uvarint(out: Any, at: Any, left: Any) -> Any:
    while left >= U(0x80):
        out[U(at)] = np.uint8(left & U(0x7F) | U(0x80))
        left >>= U(7)
        at += 1
    out[U(at)] = np.uint8(left)
    return at + 1


@inlined
def _put_varint(out: Any, at: Any, value: Any) -> Any:
    return _put_uvarint(out, at, _zigzag(value))


@inlined
def _fits(value: Any, bits: Any) -> Any:
    """Return whether a number fits into that many bits, signed."""
    bound = np.int64(1) << (bits - 1)
    return -bound <= value < bound


@inlined
def _write_literal(out: Any, used: Any, literals: Any, start: Any, size: Any) -> Any:
    if size > len(out) - used:
        return np.int64(oc.FULL)
    for i in range(size):
        out[U(used + i)] = literals[U(start + i)]
    return used + size


@part
def _plain_string(text: Any, at: Any) -> Any:
    """Return where a JSON string without escapes ends that begins after its quote."""
    end = np.int64(len(text))
    while at < end and text[U(at)] >= LEAST_CHARACTER and text[U(at)] != QUOTE and text[U(at)] != BACKSLASH:
        at += 1
    return at


@part
def _string(parsing: Parsing, at: Any, pc: Any, used: Any) -> Any:
    """Write a JSON string after its length; return where it ends in the text, and the end of what is written."""
    text, ops, literals, out = parsing.text, parsing.ops, parsing.literals, parsing.out
    quote_at, quotes = ops[pc, OTHER_AT], ops[pc, OTHER_SIZE]
    is_compact = ops[pc, ARGUMENT] == IS_COMPACT
    if len(out) - used < MOST_STRING_HEAD:
        return np.int64(oc.FULL), used
    if not _stands(text, at, literals, quote_at, quotes):
        _put(out, used, np.int64(-1), np.int64(2))
        is_null = len(text) - at >= 4 and text[U(at)] == 110 and text[U(at + 1)] == 117
        is_null = is_null and text[U(at + 2)] == 108 and text[U(at + 3)] == 108 and not is_compact
        return (at + 4 if is_null else np.int64(oc.NOT_PLAIN)), used + 2
    begin = at + quotes
    at = _plain_string(text, begin)
    size = at - begin
    if size > MOST_STRING or not is_utf8(text, begin, size) or not _stands(text, at, literals, quote_at, quotes):
        return np.int64(oc.NOT_PLAIN), used
    if size + MOST_STRING_HEAD > len(out) - used:
        return np.int64(oc.FULL), used
    if is_compact:
        used = _put_uvarint(out, used, U(size + 1))
    else:
        _put(out, used, size, np.int64(2))
        used += 2
    for i in range(size):
        out[U(used + i)] = text[U(begin + i)]
    return at + quotes, used + size


@part
def _json_end(text: Any, at: Any) -> Any:
    """Return where a JSON string or object without escapes ends; NOT_PLAIN if it does not end in this line."""
    depth = np.int64(0)
    end = np.int64(len(text))
    while at < end and text[U(at)] >= LEAST_CHARACTER:
        if text[U(at)] == QUOTE:
            at = _plain_string(text, at + 1)
            if at >= end or text[U(at)] != QUOTE:
                return np.int64(oc.NOT_PLAIN)
        elif text[U(at)] == OPENING:
            depth += 1
        elif text[U(at)] == CLOSING:
            depth -= 1
        at += 1
        if depth <= 0:
            return at
    return np.int64(oc.NOT_PLAIN)


@part
def _embedded(parsing: Parsing, at: Any, which: Any, used: Any) -> Any:
    """Write the bytes known for an embedded text; known bytes of size 0 mean that the slow path must read it."""
    known_progress, embedded = parsing.known_progress, parsing.embedded
    end = np.int64(_json_end(parsing.text, at))
    if end < 0:
        return end, used
    number, _ = em.find_known(known_progress, embedded, parsing.text, at, end - at, which)
    if number < 0:
        known_progress[em.WHICH], known_progress[em.EMBEDDED_AT], known_progress[em.EMBEDDED_SIZE] = which, at, end - at
        return np.int64(oc.NEEDS_EMBEDDED), used
    size = embedded.known[number, em.TEXT_SIZE]
    if size == 0:
        return np.int64(oc.NOT_PLAIN), used
    used = np.int64(_write_literal(parsing.out, used, embedded.memory, embedded.known[number, em.TEXT_AT], size))
    return (end if used >= 0 else np.int64(oc.FULL)), used


@part
def _begin_record(parsing: Parsing, used: Any) -> Any:
    """Write the part of a record before its key, from known facts."""
    facts, out = parsing.facts, parsing.out
    key_size, value_size = facts[OF_RECORD, INTS_AT + k.KEY_SIZE], facts[OF_RECORD, INTS_AT + k.VALUE_SIZE]
    offset_delta = facts[OF_RECORD, k.RECORD_OFFSET] - facts[OF_BATCH, k.BATCH_BASE_OFFSET]
    time_delta = facts[OF_RECORD, k.TIMESTAMP] - facts[OF_BATCH, k.BASE_TIMESTAMP]
    if facts[OF_BATCH, INTS_AT + k.ATTRIBUTES] & bt.TIMESTAMP_TYPE_MASK:
        time_delta = np.int64(0)
    if not (_fits(key_size, 31) and _fits(value_size, 31) and key_size >= 0 and value_size >= -1):
        return np.int64(oc.NOT_PLAIN)
    size = 2 + _varint_size(time_delta) + _varint_size(offset_delta) + _varint_size(key_size) + key_size
    size += _varint_size(value_size) + max(value_size, 0)
    if size + AROUND_RECORD > len(out) - used:
        return np.int64(oc.FULL)
    used = _put_varint(out, used, size)
    out[U(used)] = 0
    used = _put_varint(out, _put_varint(out, used + 1, time_delta), offset_delta)
    return _put_varint(out, used, key_size)


@part
def _value_of(parsing: Parsing, at: Any, pc: Any, row: Any, used: Any) -> Any:
    """Do an operation: return where the text continues and the end of what is written; negative numbers are reasons."""
    ops, out = parsing.ops, parsing.out
    op, argument = ops[pc, OP], ops[pc, ARGUMENT]
    if op == STRING:
        return _string(parsing, at, pc, used)
    if op == EMBEDDED:
        return _embedded(parsing, at, argument, used)
    if op == WRITE:
        used = np.int64(_write_literal(out, used, parsing.literals, ops[pc, OTHER_AT], ops[pc, OTHER_SIZE]))
        return at, used
    number, at = _int(parsing.text, at)
    if at < 0:
        return at, used
    if op == FACT:
        parsing.facts[row, argument] = number
        return at, used
    if argument < 8 and not _fits(number, 8 * argument):
        return np.int64(oc.NOT_PLAIN), used
    if argument > len(out) - used:
        return np.int64(oc.FULL), used
    _put(out, used, number, argument)
    return at, used + argument


@part
def _begin_part(parsing: Parsing, pc: Any, used: Any) -> Any:
    """Begin a record with its key, or its value; return the end of what is written, or why not."""
    progress, ops, out = parsing.progress, parsing.ops, parsing.out
    if ops[pc, OP] == KEY:
        size = parsing.facts[OF_RECORD, INTS_AT + k.KEY_SIZE]
        used = np.int64(_begin_record(parsing, used))
    elif used - progress[BEGIN] != progress[SIZE]:
        return np.int64(oc.NOT_PLAIN)
    else:
        size = parsing.facts[OF_RECORD, INTS_AT + k.VALUE_SIZE]
        used = np.int64(_put_varint(out, used, size) if len(out) - used >= MOST_VARINT else np.int64(oc.FULL))
    if used < 0:
        return used
    progress[BEGIN], progress[SIZE] = used, size
    return np.int64(_write_literal(out, used, parsing.literals, ops[pc, OTHER_AT], ops[pc, OTHER_SIZE]))


@part
def _end_record(parsing: Parsing, argument: Any, used: Any) -> Any:
    """End a record; return the end of what is written, or why not."""
    progress, out = parsing.progress, parsing.out
    if used - progress[BEGIN] != progress[SIZE]:
        return np.int64(oc.NOT_PLAIN)
    if len(out) - used < MOST_VARINT + 1:
        return np.int64(oc.FULL)
    at, prefix = progress[BEGIN] + 2, parsing.known_progress[em.PREFIX]
    is_group = argument & IS_GROUP and prefix <= used - at
    if is_group and same_bytes(parsing.embedded.memory, np.int64(0), out, at, prefix):
        progress[IS_EXPANDED] = 1
    if parsing.facts[OF_RECORD, INTS_AT + k.VALUE_SIZE] < 0:
        used = _put_varint(out, used, np.int64(-1))
    out[U(used)] = 0
    return used + 1


@part
def _step(parsing: Parsing, at: Any, pc: Any, used: Any) -> Any:
    """Begin or continue an array.

    Returns:
        The next operation, whether it is entered after its literal, where the text continues, and the end of what is
        written.
    """
    progress, ops = parsing.progress, parsing.ops
    if ops[pc, OP] == ARRAY:
        if len(parsing.out) - used < COUNT_BYTES:
            return pc, False, np.int64(oc.FULL), used
        progress[COUNT_AT], progress[COUNT] = used, 0
        used += COUNT_BYTES
    is_entered = bool(_stands(parsing.text, at, parsing.literals, ops[pc, OTHER_AT], ops[pc, OTHER_SIZE]))
    if is_entered == (ops[pc, OP] == NEXT):
        progress[COUNT] += 1
    _put(parsing.out, progress[COUNT_AT], progress[COUNT], np.int64(COUNT_BYTES))
    if is_entered:
        return ops[pc, ARGUMENT], True, at + ops[pc, OTHER_SIZE], used
    return pc + 1, False, at, used


@part
def _line(parsing: Parsing, at: Any, pc: Any, row: Any, used: Any) -> Any:
    """Read a line by a program; return where the next one begins, the end of what is written, and END's argument."""
    ops = parsing.ops
    parsing.facts[OF_RECORD, INTS_AT + k.VALUE_SIZE] = -1
    is_entered = False
    while at >= 0 and used >= 0:
        if not is_entered:
            if not _stands(parsing.text, at, parsing.literals, ops[pc, LITERAL_AT], ops[pc, LITERAL_SIZE]):
                return np.int64(oc.NOT_PLAIN), used, np.int64(0)
            at += ops[pc, LITERAL_SIZE]
        is_entered = False
        op = ops[pc, OP]
        if op == END:
            if row == OF_RECORD:
                used = np.int64(_end_record(parsing, ops[pc, ARGUMENT], used))
            return (at if used >= 0 else used), used, ops[pc, ARGUMENT]
        if op >= ARRAY:
            pc, is_entered, at, used = _step(parsing, at, pc, used)
            continue
        if op >= KEY:
            used = np.int64(_begin_part(parsing, pc, used))
        else:
            at, used = _value_of(parsing, at, pc, row, used)
        pc += 1
    return (used if used < 0 else at), used, np.int64(0)


@part
def _any_line(parsing: Parsing, last: Any, at: Any, programs: Any, row: Any, used: Any) -> Any:
    """Read a line by the first program that fits, beginning with the one that fitted last."""
    count = np.int64(len(programs))
    for i in range(count):
        number = (parsing.progress[last] + i) % count
        behind, end, argument = _line(parsing, at, programs[number], row, used)
        if behind != oc.NOT_PLAIN:
            parsing.progress[last] = number
            return behind, end, argument
    return np.int64(oc.NOT_PLAIN), used, np.int64(0)


@part
def _is_header(facts: Any, attributes: Any) -> Any:
    """Return whether a header can hold a batch's facts."""
    span = facts[OF_BATCH, k.LAST_OFFSET] - facts[OF_BATCH, k.BATCH_BASE_OFFSET]
    return (
        0 <= span <= INT32_MAX
        and (facts[OF_BATCH, k.BASE_TIMESTAMP] >= 0 or attributes & b.DELETE_HORIZON_MASK == 0)
        and 0 <= facts[OF_BATCH, INTS_AT + k.RECORDS_COUNT] <= INT32_MAX
        and _fits(facts[OF_BATCH, INTS_AT + k.PRODUCER_EPOCH], 16)
        and _fits(facts[OF_BATCH, INTS_AT + k.BASE_SEQUENCE], 32)
        and _fits(facts[OF_BATCH, INTS_AT + k.PARTITION_LEADER_EPOCH], 32)
    )


@part
def _put_header(parsing: Parsing, attributes: Any, begin: Any, end: Any) -> None:
    """Write the header of the batch whose records follow it."""
    facts, out = parsing.facts, parsing.out
    base = facts[OF_BATCH, k.BATCH_BASE_OFFSET]
    _put(out, begin, base, np.int64(8))
    _put(out, begin + bt.LENGTH, end - begin - bt.LOG_OVERHEAD, np.int64(4))
    _put(out, begin + bt.PARTITION_LEADER_EPOCH, facts[OF_BATCH, INTS_AT + k.PARTITION_LEADER_EPOCH], np.int64(4))
    out[begin + bt.MAGIC] = 2
    _put(out, begin + bt.ATTRIBUTES, attributes, np.int64(2))
    _put(out, begin + bt.LAST_OFFSET_DELTA, facts[OF_BATCH, k.LAST_OFFSET] - base, np.int64(4))
    _put(out, begin + bt.BASE_TIMESTAMP, facts[OF_BATCH, k.BASE_TIMESTAMP], np.int64(8))
    _put(out, begin + bt.MAX_TIMESTAMP, facts[OF_BATCH, k.MAX_TIMESTAMP], np.int64(8))
    _put(out, begin + bt.PRODUCER_ID, facts[OF_BATCH, k.PRODUCER_ID], np.int64(8))
    _put(out, begin + bt.PRODUCER_EPOCH, facts[OF_BATCH, INTS_AT + k.PRODUCER_EPOCH], np.int64(2))
    _put(out, begin + bt.BASE_SEQUENCE, facts[OF_BATCH, INTS_AT + k.BASE_SEQUENCE], np.int64(4))
    _put(out, begin + bt.RECORDS_COUNT, facts[OF_BATCH, INTS_AT + k.RECORDS_COUNT], np.int64(4))
    _put(out, begin + bt.CRC, bt.crc32c(out, begin + bt.ATTRIBUTES, end), np.int64(4))


@part
def _time_by(parsing: Parsing, at: Any, pc: Any) -> Any:
    """Take the time of the record at a position by a program; return whether it fits so far."""
    ops = parsing.ops
    while ops[pc, OP] == FACT:
        if not _stands(parsing.text, at, parsing.literals, ops[pc, LITERAL_AT], ops[pc, LITERAL_SIZE]):
            return False
        number, at = _int(parsing.text, at + ops[pc, LITERAL_SIZE])
        if at < 0:
            return False
        if ops[pc, ARGUMENT] == k.TIMESTAMP:
            parsing.facts[OF_BATCH, k.BASE_TIMESTAMP] = number
            return True
        pc += 1
    return False


@part
def _first_time(parsing: Parsing, at: Any) -> Any:
    """Take the time of a batch's first record as its base; return whether there is one."""
    programs = parsing.of_records
    count = np.int64(len(programs))
    i = np.int64(0)
    while i < count and not _time_by(parsing, at, programs[(parsing.progress[LAST_OF_RECORDS] + i) % count]):
        i += 1
    return i < count


@part
def _records(parsing: Parsing, at: Any, attributes: Any, used: Any, row: Any) -> Any:
    """Read the lines of a batch's records; return where the next line begins, and the end of what is written."""
    facts = parsing.facts
    count = facts[OF_BATCH, INTS_AT + k.RECORDS_COUNT]
    is_control = np.int64(IS_CONTROL if attributes & bt.CONTROL_MASK else 0)
    least = facts[OF_BATCH, k.BATCH_BASE_OFFSET]
    for item in range(count):
        at, used, argument = _any_line(parsing, LAST_OF_RECORDS, at, parsing.of_records, OF_RECORD, used)
        if at < 0:
            return at, used
        offset = facts[OF_RECORD, k.RECORD_OFFSET]
        if argument & IS_CONTROL != is_control or offset < least or offset > facts[OF_BATCH, k.LAST_OFFSET]:
            return np.int64(oc.NOT_PLAIN), used
        least = offset + 1
        parsing.pairs[row + item, 0] = offset
        parsing.pairs[row + item, 1] = parsing.progress[LINE] + 1 + item
    return at, used


@part
def _batch(parsing: Parsing, at: Any, attributes: Any) -> Any:
    """Read the records of the batch whose line was read.

    Returns:
        Where the next line begins, and the ends of what is written in ``out`` and ``pairs``.
    """
    progress, facts, pairs = parsing.progress, parsing.facts, parsing.pairs
    begin, row = progress[USED], progress[PAIRS]
    facts[OF_BATCH, INTS_AT + k.ATTRIBUTES] = attributes
    count = facts[OF_BATCH, INTS_AT + k.RECORDS_COUNT]
    if not _is_header(facts, attributes):
        return np.int64(oc.NOT_PLAIN), begin, row
    if len(parsing.out) - begin < bt.HEADER_SIZE or count + 1 > len(pairs) - row:
        return np.int64(oc.FULL), begin, row
    if attributes & b.DELETE_HORIZON_MASK == 0:
        facts[OF_BATCH, k.BASE_TIMESTAMP] = b.NO_TIMESTAMP
        if count and not _first_time(parsing, at):
            return np.int64(oc.NOT_PLAIN), begin, row
    pairs[row, 0] = facts[OF_BATCH, k.BATCH_BASE_OFFSET]
    pairs[row, 1] = -progress[LINE]
    at, end = _records(parsing, at, attributes, begin + bt.HEADER_SIZE, row + 1)
    if at >= 0:
        _put_header(parsing, attributes, begin, end)
        if end - begin != facts[OF_BATCH, INTS_AT + k.SIZE]:
            progress[IS_RESIZED] = 1
    return at, end, row + 1 + count


@kernel
def read_batches(parsing: Parsing) -> Any:
    """Read batches from ``progress[AT]`` on and append them to what is written; return why it stopped.

    A batch is complete when the line after its last one is known to be another batch's, or the text ends there.
    One that does not follow the batch before it in the file is left to the slow path.
    """
    progress, facts = parsing.progress, parsing.facts
    at = progress[AT]
    line, used, rows, position = progress[LINE], progress[USED], progress[PAIRS], progress[NEXT_POSITION]
    while True:
        is_end = at == len(parsing.text)
        behind, attributes = at, np.int64(0)
        if not is_end:
            behind, _, attributes = _any_line(parsing, LAST_OF_BATCHES, at, parsing.of_batches, OF_BATCH, used)
            if behind < 0:
                return np.int64(oc.NOT_PLAIN)
        progress[AT], progress[LINE], progress[USED], progress[PAIRS] = at, line, used, rows
        progress[NEXT_POSITION] = position
        if is_end:
            return np.int64(oc.FINISHED)
        if facts[OF_BATCH, k.POSITION] != position:
            return np.int64(oc.NOT_PLAIN)
        position += facts[OF_BATCH, INTS_AT + k.SIZE]
        at, used, rows = _batch(parsing, behind, attributes)
        if at < 0:
            return np.int64(at if at == oc.FULL or at == oc.NEEDS_EMBEDDED else oc.NOT_PLAIN)
        line += 1 + facts[OF_BATCH, INTS_AT + k.RECORDS_COUNT]
