"""Write entries as lines in a kernel, each by the template of its kind.

A template is rows of `OP_COLUMNS` numbers: a literal, and the value after it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.history import entries as e
from offsets_log.columnar.jit.compiled import U, inlined, kernel, part
from offsets_log.columnar.jit.instructions import prefetch
from offsets_log.columnar.jit.kinds import ByteRows, Bytes, LongPlanes, LongRows, Longs, Number
from offsets_log.columnar.sinks import writers as wr
from offsets_log.columnar.wire import batches as bt

# Columns of a template, and what may stand behind its literal.
OP, ARGUMENT, LITERAL_AT, LITERAL_SIZE, OP_COLUMNS = range(5)
END = 0
NUMBER = 1  # column of ``entries``
PARTITION = 2
NAME = 3  # column of ``keys``, which is its kind too
METADATA = 4
EPOCH = 5
MEMBER_TEXT = 6  # column of ``members``

# Columns of ``keys``: the numbers of names as they stand in lines; whether a name is not UTF-8.
GROUP, TOPIC, KEY_PARTITION, LOG, IS_MALFORMED, KEY_COLUMNS = range(6)

# What the template of an entry depends on beside its marks.
HAS_TIME, HAS_LEADER, HAS_ANSWER, HAS_MEMBER, HAS_INSTANCE_ID = (1 << 9 << bit for bit in range(5))
KINDS = 1 << 14
UNKNOWN = -1
"""Value instead of where a template begins."""

# One more column of ``letters``, which are escapes: whether a text with such a byte is quoted, by what stands in row
# `QUOTE`.
IS_ODD, LETTER_COLUMNS = range(wr.ESCAPE_COLUMNS, wr.ESCAPE_COLUMNS + 2)
QUOTE = 256


AHEAD = 8
"""How many entries ahead memory is prefetched, since entries lie in another order."""

ROW, END_ROW, USED, ONLY_REWINDS, KIND, PROGRESS_SIZE = range(6)


class Templates(NamedTuple):
    """The templates of all kinds of entries.

    Attributes:
        begins: where each begins, by the number of its log and its kind.
        ops: the templates one after the other.
        literals: bytes that they write.
        letters: for each byte of a text what stands for it.
    """

    begins: Longs
    ops: LongRows
    literals: Bytes
    letters: ByteRows


class Shown(NamedTuple):
    """Entries and what they name, see `entries`; names as they stand in lines, and where each begins and ends, by kind
    and number."""

    entries: LongRows
    keys: LongRows
    texts: Bytes
    members: LongRows
    names: Bytes
    places: LongPlanes


@part
def _is_odd(data: Any, start: Any, size: Any, letters: Any) -> Any:
    """Return whether a text changes when it is written in a line."""
    found = np.uint8(0)
    for at in range(start, start + size):
        found |= letters[U(data[U(at)]), IS_ODD]
    return found != 0


@kernel
def find_odd(members: LongRows, count: Number, texts: Bytes, letters: ByteRows) -> None:
    """Note for each member whether its texts change when they are written in lines."""
    for n in range(count):
        found = False
        for column in range(e.MEMBER_ID, e.EPOCH, 2):
            if _is_odd(texts, members[U(n), U(column)], members[U(n), U(column + 1)], letters):
                found = True
        members[U(n), e.IS_ODD] = found


@part
def _text(out: Any, at: Any, data: Any, start: Any, size: Any, letters: Any) -> Any:
    """Write a text in its form for a line."""
    if not _is_odd(data, start, size, letters):
        return wr.copy(out, at, data, start, size)
    quotes = np.int64(letters[QUOTE, wr.MOST_ESCAPED])
    if wr.MOST_ESCAPED * (size + 2) > len(out) - at:
        return np.int64(oc.FULL)
    for i in range(quotes):
        out[U(at + i)] = letters[QUOTE, U(i)]
    at = wr.escaped(out, at + quotes, data, start, size, letters)
    for i in range(quotes):
        out[U(at + i)] = letters[QUOTE, U(i)]
    return at + quotes


@inlined
def _value(out: Any, at: Any, op: Any, argument: Any, shown: Shown, n: Any, letters: Any) -> Any:
    """Do an operation; return where its output ends, or FULL."""
    entries, texts, members = shown.entries, shown.texts, shown.members
    if op == NUMBER:
        return np.int64(wr.write_number(out, at, entries[n, argument]))
    if op == METADATA:
        return np.int64(_text(out, at, texts, entries[n, e.METADATA_AT], entries[n, e.METADATA_SIZE], letters))
    key, member = entries[n, e.KEY], entries[n, e.MEMBER]
    if op == PARTITION:
        return np.int64(wr.write_number(out, at, shown.keys[key, KEY_PARTITION]))
    if op == NAME:
        number = shown.keys[key, argument]
        begin = shown.places[argument, number, 0]
        return np.int64(wr.copy(out, at, shown.names, begin, shown.places[argument, number, 1] - begin))
    if op == EPOCH:
        return np.int64(wr.write_number(out, at, members[member, e.EPOCH]))
    start, size = members[member, argument], members[member, argument + 1]
    if members[member, e.IS_ODD]:
        return np.int64(_text(out, at, texts, start, size, letters))
    return np.int64(wr.copy(out, at, texts, start, size))


@part
def _line(out: Any, at: Any, pc: Any, templates: Templates, shown: Shown, n: Any) -> Any:
    """Write the line of an entry; return where it ends, or FULL."""
    ops = templates.ops
    while at >= 0:
        at = np.int64(wr.copy(out, at, templates.literals, ops[pc, LITERAL_AT], ops[pc, LITERAL_SIZE]))
        op, argument = ops[pc, OP], ops[pc, ARGUMENT]
        if at < 0 or op == END:
            return at
        at = _value(out, at, op, argument, shown, n, templates.letters)
        pc += 1
    return at


@inlined
def _kind(shown: Shown, n: Any) -> Any:
    """Return the facts that decide which template an entry is written by."""
    entries = shown.entries
    kind = entries[n, e.MARKS]
    is_commit = kind // e.EVENT & e.MASK == e.COMMIT
    if bt.has_time(entries[n, e.TIMESTAMP]):
        kind += HAS_TIME
    if entries[n, e.EFFECTIVE_RECORD] != a.NEVER:
        kind += HAS_ANSWER
    if is_commit and entries[n, e.LEADER_EPOCH] != -1:
        kind += HAS_LEADER
    member = entries[n, e.MEMBER]
    if is_commit and member != e.NOBODY:
        kind += HAS_MEMBER
        if shown.members[member, e.INSTANCE_ID + 1] >= 0:
            kind += HAS_INSTANCE_ID
    return kind


@kernel
def write(output: wr.Output, templates: Templates, shown: Shown, order: Longs) -> Any:
    """Append lines to ``out[:progress[USED]]`` from ``progress[ROW]`` on; return why it stopped."""
    progress, entries, keys = output.progress, shown.entries, shown.keys
    for i in range(progress[ROW], progress[END_ROW]):
        progress[ROW] = i
        if i + AHEAD < len(order):
            soon = order[U(i + AHEAD)] * e.ENTRY_SIZE
            prefetch(entries, soon)
            prefetch(entries, soon + e.ENTRY_SIZE // 2)
        n = U(order[U(i)])
        change = entries[n, e.MARKS] // e.CHANGE & e.MASK
        if progress[ONLY_REWINDS] and change not in e.GOES_BACK:
            continue
        key = entries[n, e.KEY]
        if keys[key, IS_MALFORMED]:
            return np.int64(oc.NOT_PLAIN)
        if wr.says_more(shown.texts, entries[n, e.METADATA_AT], entries[n, e.METADATA_SIZE], templates.letters):
            return np.int64(oc.NOT_PLAIN)
        kind = _kind(shown, n)
        program = templates.begins[U(keys[key, LOG] * KINDS + kind)]
        if program == UNKNOWN or program >= len(templates.ops):
            progress[KIND] = keys[key, LOG] * KINDS + kind
            return np.int64(oc.NEEDS_TEMPLATE)
        at = _line(output.out, progress[USED], program, templates, shown, n)
        if at < 0:
            return np.int64(oc.FULL)
        progress[USED] = at
    progress[ROW] = progress[END_ROW]
    return np.int64(oc.FINISHED)
