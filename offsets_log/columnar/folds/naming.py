"""Whom records are counted for, in kernels: writers by the names in keys, by the hour, by who held a partition.

Names are numbers as those of groups are (`interner.intern_group`): a *writer* is the number of a name, of a group, a
topic, or a topic with its partition. Names are what the keys hold; of an hour it is its number in 8 bytes.

Where only some groups and topics are asked for, Python says of each name once whether it is, and of each key it is
known from then on.

Who held a partition Python says (`investigate.holders`), once for all that follows from the same bytes: a group's
*content* is what a type 2 value says of members, a *version* what came of a content, or of records of the newer kinds.
Those wait until a commit of their group asks who held what.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.folds import newer
from offsets_log.columnar.folds.known import GENERATION_NOTE, MEMBERS_NOTE
from offsets_log.columnar.jit.compiled import U, inlined, kernel, part
from offsets_log.columnar.jit.kinds import Bytes, LongRows, Longs, Number
from offsets_log.columnar.jit.records import Table
from offsets_log.columnar.scan.interner import find_name, has_room, intern_group
from offsets_log.columnar.scan.waiting import Waiting, wait
from offsets_log.columnar.wire import batches as bt
from offsets_log.columnar.wire.primitives import be16, be32, be64, walk

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
TOPIC_ID_SIZE = 16

# What is asked.
OF_CONTENT, OF_TOPIC_ID, OF_GROUP, OF_RECORD, OF_NAMES = range(5)

AS_GROUP, AS_TOPIC = 0, 2
"""Where a name's verdict begins in `Group.verdicts`."""
UNDECIDED, IS_ASKED, HIDDEN, SHOWN = range(4)
"""Verdicts on a name, two bits."""
VERDICT_MASK = 3
HIDDEN_KEY = -2
"""Instead of a key's latest record: none counts."""

UNKNOWN = REMOVED = REFUSED = -1


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


# ---------------------------------------------------------------------------------------------- holders


@part
def note_newer(counts: Any, arrays: a.Arrays, waiting: Waiting, records: a.Records, i: Any, row: Any) -> Any:
    """Put a record of a newer kind aside; return FINISHED or NEEDS_ANSWER."""
    groups, group, number = arrays.groups, arrays.rows[row].group, be16(records.source, records.staged[i].key_at)
    counts[HOLDER] = nobody(counts, group)
    if counts[IS_SEEN]:
        return np.int64(oc.FINISHED)
    if not wait(waiting, records, i, group):
        return asks(counts, OF_RECORD, group)
    counts[IS_SEEN] = 1
    groups[group].waits = 1
    groups[group].now = UNKNOWN
    counts[NAMES_WAIT] |= newer.TYPES[number, newer.NAMES]
    return np.int64(oc.FINISHED)


@inlined
def nobody(counts: Any, group: Any) -> Any:
    """Return whom a record is counted for that nobody sent, as far as is known: a member's row has the group."""
    return group if counts[PER] == PER_MEMBER else np.int64(NOBODY)


@inlined
def asks(counts: Any, why: Any, of: Any) -> Any:
    """Note what Python is asked; return NEEDS_ANSWER."""
    counts[WHY] = why
    counts[ASKED] = of
    return np.int64(oc.NEEDS_ANSWER)


@part
def _saw_group(counts: Any, arrays: a.Arrays, text: Any, source: Any, value: Any, size: Any, group: Any) -> Any:
    """Note a type 2 record; return FINISHED, NEEDS_ROOM or NEEDS_ANSWER."""
    scan_state, groups = arrays.scan_state, arrays.groups
    if groups[group].waits:
        return asks(counts, OF_GROUP, group)
    if size < 0:
        groups[group].now = 0
        groups[group].content = REMOVED
        return np.int64(oc.FINISHED)
    end = value + size
    walk(scan_state, scan_state.value_programs[2, be16(source, value)], source, value + 2, end)
    members_at, generation_at = scan_state.notes[MEMBERS_NOTE], scan_state.notes[GENERATION_NOTE]
    head = named(arrays, source, value, generation_at - value)
    if head < 0:
        return np.int64(oc.NEEDS_ROOM)
    members = named(arrays, source, members_at, end - members_at)
    if members < 0:
        return np.int64(oc.NEEDS_ROOM)
    put_number(text, 0, group)
    put_number(text, 1, head)
    put_number(text, 2, members)
    content = named(arrays, text, np.int64(0), np.int64(3 * NUMBER_SIZE))
    if content < 0:
        return np.int64(oc.NEEDS_ROOM)
    if groups[content].version == 0:
        return asks(counts, OF_CONTENT, content)
    if groups[content].version != REFUSED:
        groups[group].now = groups[content].version - 1
        groups[group].content = content
    return np.int64(oc.FINISHED)


@inlined
def _topic_id(arrays: a.Arrays, source: Any, id_at: Any) -> Any:
    """Return the number of the topic id that a value names, 0 without one; NEEDS_ROOM without room."""
    if id_at < 0 or (be64(source, id_at) == 0 and be64(source, id_at + 8) == 0):
        return np.int64(0)
    return np.int64(named(arrays, source, id_at, np.int64(TOPIC_ID_SIZE)))


@part
def saw_topic_id(counts: Any, arrays: a.Arrays, source: Any, id_at: Any) -> Any:
    """Note the topic id that a value names, if any; return its number, NEEDS_ROOM or NEEDS_ANSWER."""
    topic_id = _topic_id(arrays, source, id_at)
    if topic_id > 0 and arrays.groups[topic_id].is_named == 0:
        return asks(counts, OF_TOPIC_ID, topic_id)
    return topic_id


@part
def _saw_commit(counts: Any, arrays: a.Arrays, text: Any, source: Any, id_at: Any, row: Any, is_plain: Any) -> Any:
    """Put who sent a commit into ``counts[HOLDER]``, if anybody: FINISHED, NEEDS_ROOM or NEEDS_ANSWER.

    Args:
        id_at: where the value names a topic id, NOTHING without one.
        is_plain: what it is in `investigate.holders.Holders.of`.
    """
    rows = arrays.rows
    topic_id = saw_topic_id(counts, arrays, source, id_at)
    if topic_id < 0:
        return topic_id
    version = arrays.groups[rows[row].group].now
    if version == UNKNOWN or (version > 0 and _is_outdated(counts, arrays.groups[version].by_id)):
        return asks(counts, OF_GROUP, rows[row].group)
    if version == 0:
        return np.int64(oc.FINISHED)
    if is_plain and rows[row].sent_in == version:
        counts[HOLDER] = rows[row].sent_by
        return np.int64(oc.FINISHED)
    return _look_up(counts, arrays, text, topic_id, row, is_plain, version)


@inlined
def _is_outdated(counts: Any, by_id: Any) -> Any:
    """Return whether topic ids of a version may have got names since."""
    return by_id != 0 and (by_id != 1 + counts[NAMES_TOLD] or counts[NAMES_WAIT] != 0)


@inlined
def _put_id(text: Any, version: Any, topic_id: Any, partition: Any) -> Any:
    """Write the name of a version's partition of a topic id, a number; return its size."""
    put_number(text, 0, version)
    put_number(text, 1, topic_id)
    put_number(text, 2, partition)
    return np.int64(3 * NUMBER_SIZE)


@part
def _look_up(counts: Any, arrays: a.Arrays, text: Any, topic_id: Any, row: Any, is_plain: Any, version: Any) -> Any:
    """Put who holds a key's partition in a version into ``counts[HOLDER]``, if anybody: FINISHED or NEEDS_ROOM."""
    rows, groups, arena = arrays.rows, arrays.groups, arrays.arena
    key_at = rows[rows[row].target].key_at
    topic_at = key_at + 4 + be16(arena, key_at + 2)
    pair = named(arrays, arena, topic_at, 2 + be16(arena, topic_at) + 4)
    if pair < 0:
        return np.int64(oc.NEEDS_ROOM)
    held, by_id = np.int64(-1), groups[version].by_id != 0
    if by_id and topic_id > 0:
        size = _put_id(text, version, topic_id, be32(arena, topic_at + 2 + be16(arena, topic_at)))
        held = find_name(arrays, text, np.int64(0), size)
    if held < 0:
        put_number(text, 0, version)
        put_number(text, 1, pair)
        held = find_name(arrays, text, np.int64(0), np.int64(2 * NUMBER_SIZE))
    if held >= 0 and groups[held].held_by != 0:
        counts[HOLDER] = groups[held].held_by - 1
    elif is_plain and groups[version].only != 0:
        counts[HOLDER] = groups[version].only - 1
    if is_plain and not by_id:
        rows[row].sent_in = version
        rows[row].sent_by = counts[HOLDER]
    return np.int64(oc.FINISHED)


@inlined
def find_holder(
    counts: Any, arrays: a.Arrays, text: Any, staged: Table[a.Staged], i: Any, source: Any, row: Any, is_plain: Any
) -> Any:
    """Put whom a staged record is counted for into ``counts[HOLDER]``: FINISHED, NEEDS_ROOM or NEEDS_ANSWER."""
    rows = arrays.rows
    if row < 0:
        counts[HOLDER] = NOBODY
        return np.int64(oc.FINISHED)
    group = rows[row].group
    counts[HOLDER] = nobody(counts, group)
    if rows[row].target == a.IS_GROUP:
        return _saw_group(counts, arrays, text, source, staged[i].value_at, staged[i].value_size, group)
    if staged[i].kind != a.VALUE:
        return np.int64(oc.FINISHED)
    version = arrays.groups[group].now
    if is_plain and version > 0 and version == rows[row].sent_in and staged[i].topic_id_at < 0:  # most commits
        counts[HOLDER] = rows[row].sent_by
        return np.int64(oc.FINISHED)
    return _saw_commit(counts, arrays, text, source, staged[i].topic_id_at, row, is_plain)


@kernel
def hold(arrays: a.Arrays, text: Bytes, data: Bytes, held: LongRows, version: Number) -> Any:
    """Note who holds what in a version; False without room.

    Args:
        data: topics and partitions as keys have them.
        held: int64[n, 2]: where each ends, and whom its commits are counted for.
    """
    begin = np.int64(0)
    for i in range(len(held)):
        end = held[i, 0]
        pair = named(arrays, data, begin, end - begin)
        if pair < 0:
            return False
        put_number(text, 0, np.int64(version))
        put_number(text, 1, pair)
        name = named(arrays, text, np.int64(0), np.int64(2 * NUMBER_SIZE))
        if name < 0:
            return False
        arrays.groups[name].held_by = held[i, 1] + 1
        begin = end
    return True


@kernel
def hold_ids(arrays: a.Arrays, text: Bytes, ids: Bytes, held: LongRows, version: Number) -> Any:
    """Note who holds what of topic ids in a version; False without room.

    Args:
        ids: one for each row.
        held: int64[n, 2]: the partition, and whom its commits are counted for.
    """
    for i in range(len(held)):
        topic_id = named(arrays, ids, np.int64(TOPIC_ID_SIZE * i), np.int64(TOPIC_ID_SIZE))
        if topic_id < 0:
            return False
        size = _put_id(text, np.int64(version), topic_id, held[i, 0])
        name = named(arrays, text, np.int64(0), size)
        if name < 0:
            return False
        arrays.groups[name].held_by = held[i, 1] + 1
    return True


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
