"""Whom records are counted for, in kernels: writers by the names in keys, by the hour, by who held a partition.

Names are numbers as those of groups are (`interner.intern_group`): a *writer* is the number of a name, of a group, a
topic, or a topic with its partition. Names are what the keys hold; of an hour it is its number in 8 bytes.

Where only some groups and topics are asked for, Python says of each name once whether it is, and of each key it is
known from then on.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.jit.compiled import U, inlined, kernel, part
from offsets_log.columnar.jit.kinds import Bytes, Longs
from offsets_log.columnar.scan.interner import has_room, intern_group
from offsets_log.columnar.wire import batches as bt
from offsets_log.columnar.wire.primitives import be16

NOBODY = 0
NOBODYS_NAME = b"\xff"
"""No name in a key is this: it is not UTF-8, and no length."""

# ``counts``: what a count goes by, and where it is; `tally` has more of it.
(
    PER,
    HOUR,  # the latest
    HOURS_WRITER,
    HOLDER,  # whom the record being counted is counted for, where holders are
    WHY,  # what Python is asked
    ASKED,  # of what: the number of a name
    NAMES_TOLD,  # how many topic ids have a name
    NAMES_WAIT,  # whether a record that waits may name topic ids
    IS_SEEN,  # whether the record that the kernel comes back to waits, or Python has seen it
    IS_LEARNING,  # whether only who holds what is noted, and nothing counted
    BY_GROUP,  # whether only records of some groups are counted
    BY_TOPIC,  # whether only offset commits of some topics are
    ASKED_NAMES,  # used of ``tally.Counters.asked``
    FIRST_OF_TALLY,
) = range(14)

PER_GROUP, PER_TOPIC, PER_PARTITION, PER_LOG, PER_HOUR, PER_CLIENT, PER_MEMBER = range(7)
"""Up to `PER_PARTITION` a key has one writer; from `PER_CLIENT` on who held it is asked."""

NUMBER_SIZE = 8
"""Bytes of a number in a name."""
MOST_NUMBERS = 3
"""In one name."""

HOUR_MS = 3_600_000

# What is asked.
OF_CONTENT, OF_TOPIC_ID, OF_GROUP, OF_RECORD, OF_NAMES = range(5)

AS_GROUP, AS_TOPIC = 0, 2
"""Where a name's verdict begins in `Group.verdicts`."""
UNDECIDED, IS_ASKED, HIDDEN, SHOWN = range(4)
"""Verdicts on a name, two bits."""
VERDICT_MASK = 3
HIDDEN_KEY = -2
"""Instead of a key's latest record: none counts."""


@part
def _writer_of_key(counts: Any, arrays: a.Arrays, row: Any) -> Any:
    """Return the writer of a key that was not counted yet, or of a group; NEEDS_ROOM without room."""
    rows, arena = arrays.rows, arrays.arena
    if counts[PER] == PER_GROUP:
        return rows[row].group
    target = rows[row].target
    if target == a.IS_GROUP:
        return np.int64(NOBODY)
    key_at = rows[target].key_at
    topic_at = key_at + 4 + be16(arena, key_at + 2)
    size = 2 + be16(arena, topic_at) + 4
    if counts[PER] == PER_TOPIC:
        topic_at, size = topic_at + 2, size - 6
    return named(arrays, arena, topic_at, size)


@inlined
def named(arrays: a.Arrays, data: Any, start: Any, size: Any) -> Any:
    """Return the writer of a name; NEEDS_ROOM without room."""
    if not has_room(arrays, size):
        return np.int64(oc.NEEDS_ROOM)
    return np.int64(intern_group(arrays, data, start, size))


@part
def _writer_of_time(counts: Any, arrays: a.Arrays, text: Any, time: Any) -> Any:
    """Return the writer of an hour; NEEDS_ROOM without room."""
    if not bt.has_time(time):
        return np.int64(NOBODY)
    hour = time // HOUR_MS
    if hour != counts[HOUR] or counts[HOURS_WRITER] == NOBODY:
        put_number(text, 0, hour)
        writer = named(arrays, text, np.int64(0), np.int64(NUMBER_SIZE))
        if writer < 0:
            return writer
        counts[HOURS_WRITER] = writer
        counts[HOUR] = hour
    return counts[HOURS_WRITER]


@inlined
def put_number(text: Any, place: Any, number: Any) -> None:
    """Write a number into a name that is made of numbers."""
    for i in range(NUMBER_SIZE):
        text[U(NUMBER_SIZE * place + i)] = number >> 8 * (7 - i) & 0xFF


@inlined
def writer_of(counts: Any, arrays: a.Arrays, text: Any, row: Any, time: Any) -> Any:
    """Return the writer for whom a record is counted; NEEDS_ROOM without room."""
    rows = arrays.rows
    if counts[PER] == PER_HOUR:
        return _writer_of_time(counts, arrays, text, time)
    if counts[PER] >= PER_CLIENT:
        return counts[HOLDER]
    if row < 0 or counts[PER] == PER_LOG:
        return np.int64(NOBODY)
    if rows[row].last >= 0 and rows[row].target != a.IS_GROUP:
        return rows[row].group
    return _writer_of_key(counts, arrays, row)


# ------------------------------------------------------------------------------- which keys are asked for


@inlined
def asks(counts: Any, why: Any, of: Any) -> Any:
    """Note what Python is asked; return NEEDS_ANSWER."""
    counts[WHY] = why
    counts[ASKED] = of
    return np.int64(oc.NEEDS_ANSWER)


@inlined
def _verdict(counts: Any, arrays: a.Arrays, asked: Any, name: Any, role: Any) -> Any:
    """Return the verdict on a name in a role; ask for it if it was not asked yet."""
    groups = arrays.groups
    verdict = groups[name].verdicts >> role & VERDICT_MASK
    if verdict == UNDECIDED:
        groups[name].verdicts |= np.int64(IS_ASKED) << role
        asked[counts[ASKED_NAMES], 0] = name
        asked[counts[ASKED_NAMES], 1] = role
        counts[ASKED_NAMES] += 1
        verdict = np.int64(IS_ASKED)
    return verdict


@part
def verdict_on(counts: Any, arrays: a.Arrays, asked: Any, row: Any) -> Any:
    """Return SHOWN or HIDDEN for a key, IS_ASKED where Python must answer first; NEEDS_ROOM without room."""
    rows = arrays.rows
    if row < 0 or rows[row].last == HIDDEN_KEY:
        return np.int64(HIDDEN)
    if rows[row].last >= 0:
        return np.int64(SHOWN)
    verdict = np.int64(SHOWN)
    if counts[BY_GROUP]:
        verdict = _verdict(counts, arrays, asked, rows[row].group, np.int64(AS_GROUP))
    if verdict == SHOWN and counts[BY_TOPIC]:
        target = rows[row].target
        if target == a.IS_GROUP:
            verdict = np.int64(HIDDEN)
        else:
            key_at = rows[target].key_at
            topic_at = key_at + 4 + be16(arrays.arena, key_at + 2)
            topic = named(arrays, arrays.arena, topic_at + 2, np.int64(be16(arrays.arena, topic_at)))
            if topic < 0:
                return topic
            verdict = _verdict(counts, arrays, asked, topic, np.int64(AS_TOPIC))
    if verdict == HIDDEN:
        rows[row].last = HIDDEN_KEY
    return verdict


@kernel
def number(arrays: a.Arrays, names: Bytes, ends: Longs, numbers: Longs) -> Any:
    """Number names, one behind the other, by where each ends; False without room."""
    begin = np.int64(0)
    for i in range(len(ends)):
        found = named(arrays, names, begin, ends[i] - begin)
        if found < 0:
            return False
        numbers[i] = found
        begin = ends[i]
    return True
