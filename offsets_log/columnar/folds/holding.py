"""Who held a partition when a commit to it was written, in kernels: a ledger with the column `holder`.

A holder is the number of a name, as groups have them (`interner.intern_group`).

Python says it (`investigate.holders`), once for all that follows from the same bytes: a group's *content* is what a
type 2 value says of members, a *version* what came of a content, or of records of the newer kinds. Those wait until a
commit of their group asks who held what.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.folds import newer
from offsets_log.columnar.folds import offsets as fold
from offsets_log.columnar.folds.known import GENERATION_NOTE, MEMBERS_NOTE
from offsets_log.columnar.jit.compiled import U, inlined, kernel, part
from offsets_log.columnar.jit.kinds import Bytes, LongRows, Longs, Number
from offsets_log.columnar.jit.records import Table
from offsets_log.columnar.ledger.columns import LedgerArrays
from offsets_log.columnar.ledger.kernels import emit_one, is_full
from offsets_log.columnar.scan import staging as sc
from offsets_log.columnar.scan.interner import find_name, has_room, intern_group
from offsets_log.columnar.scan.waiting import Waiting, wait
from offsets_log.columnar.wire.primitives import be16, be32, be64, walk

NOBODY = 0
NOBODYS_NAME = b"\xff"
"""No name in a key is this: it is not UTF-8, and no length."""

(
    PER_MEMBER,  # whether members are asked for, else clients
    HOLDER,  # of the record that is being read
    WHY,  # what Python is asked
    ASKED,  # of what: the number of a name
    NAMES_TOLD,  # how many topic ids have a name
    NAMES_WAIT,  # whether a record that waits may name topic ids
    IS_SEEN,  # whether the record that the kernel comes back to waits, or Python has seen it
    COUNTS,
) = range(8)
"""In ``counts``."""

NUMBER_SIZE = 8
"""Bytes of a number in a name."""
MOST_NUMBERS = 3
"""In one name."""

OF_CONTENT, OF_TOPIC_ID, OF_GROUP, OF_RECORD = range(4)
"""What Python is asked."""

TOPIC_ID_SIZE = 16
UNKNOWN = REMOVED = REFUSED = -1


@inlined
def named(arrays: a.Arrays, data: Any, start: Any, size: Any) -> Any:
    """Return the writer of a name; NEEDS_ROOM without room."""
    if not has_room(arrays, size):
        return np.int64(oc.NEEDS_ROOM)
    return np.int64(intern_group(arrays, data, start, size))


@inlined
def put_number(text: Any, place: Any, number: Any) -> None:
    """Write a number into a name that is made of numbers."""
    for i in range(NUMBER_SIZE):
        text[U(NUMBER_SIZE * place + i)] = number >> 8 * (7 - i) & 0xFF


@inlined
def asks(counts: Any, why: Any, of: Any) -> Any:
    """Note what Python is asked; return NEEDS_ANSWER."""
    counts[WHY] = why
    counts[ASKED] = of
    return np.int64(oc.NEEDS_ANSWER)


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
    return group if counts[PER_MEMBER] else np.int64(NOBODY)


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


@part
def _read(
    counts: Any, arrays: a.Arrays, waiting: Waiting, records: a.Records, text: Any, number: Any, place: Any
) -> Any:
    """Give a staged record the row of its key, and find its holder: FINISHED, or why not."""
    staged, source, i = records.staged, records.source, U(number)
    if staged[i].kind > a.TOMBSTONE:
        counts[HOLDER] = NOBODY
        return np.int64(oc.FINISHED)
    is_plain = staged[i].producer < 0
    row = np.int64(fold.row_of(arrays, staged, source, number, place, np.int64(a.IS_GROUP)))
    if row < 0:
        return row
    if arrays.rows[row].target == a.IS_GROUP and be16(source, staged[i].key_at) >= a.KEY_TYPES:
        found = np.int64(note_newer(counts, arrays, waiting, records, i, row))
    else:
        found = np.int64(find_holder(counts, arrays, text, staged, i, source, row, is_plain))
    if found == oc.FINISHED:
        staged[i].row = row
    return found


@part
def _flush(counts: Any, arrays: a.Arrays, waiting: Waiting, records: a.Records, text: Any, ledger: LedgerArrays) -> Any:
    """Write the rows of what is staged, from where it was left; as `fold.flush`."""
    staged, scan_state = records.staged, arrays.scan_state
    while scan_state.flushed < scan_state.staged:
        first = scan_state.flushed
        last = min(first + a.BLOCK, scan_state.staged)
        fold.prepare(arrays, records.source, staged, first, last)
        for number in range(first, last):
            scan_state.flushed = number
            found = np.int64(_read(counts, arrays, waiting, records, text, np.int64(number), np.int64(number - first)))
            if found != oc.FINISHED:
                return found
            emit_one(ledger, arrays, records, scan_state.staged, np.int64(number), counts[HOLDER])
            counts[IS_SEEN] = 0
        scan_state.flushed = last
    scan_state.staged = 0
    scan_state.flushed = 0
    return np.int64(oc.FINISHED)


class Held(NamedTuple):
    """What is known of holders on the way.

    Attributes:
        waiting: records of newer kinds that Python has not seen yet.
        text: room for a name.
    """

    counts: Longs
    waiting: Waiting
    text: Bytes


@kernel
def scan(held: Held, arrays: a.Arrays, buffers: a.Buffers, data: Bytes, ledger: LedgerArrays) -> Any:
    """Write the rows of a segment from ``scan_state.at`` on; as `offsets.scan`."""
    scan_state = arrays.scan_state
    begin = scan_state.at
    outcome = np.int64(oc.GO_ON)
    while outcome == oc.GO_ON:
        outcome = np.int64(sc.stage(arrays, buffers, data, begin))
        if is_full(ledger, scan_state.staged - scan_state.flushed):
            return np.int64(oc.NEEDS_ROOM)
        source = buffers.window if scan_state.in_window else data
        records = a.Records(buffers.staged, source, data)
        flushed = _flush(held.counts, arrays, held.waiting, records, held.text, ledger)
        if flushed != oc.FINISHED:
            return flushed
        outcome = sc.outcome_of(scan_state, begin, outcome)
    return outcome


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
