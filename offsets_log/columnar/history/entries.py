"""Add entries of `history`: what each record did to the answer for its key, one entry for each.

The rules are those of a replay (`folds.offsets`); their effects are recorded here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.folds import offsets as fold
from offsets_log.columnar.jit.compiled import U, inlined, part
from offsets_log.columnar.jit.kinds import Bytes, LongRows, Longs, Number
from offsets_log.columnar.jit.records import Table
from offsets_log.columnar.overflow import producer_at
from offsets_log.columnar.scan.waiting import Waiting
from offsets_log.log_format.record import INT64_MAX


class History(NamedTuple):
    """What is noted beside a replay.

    Attributes:
        held: one row a row of the replay: what is answered for the key, and what was.
        lives: one row a group.
        opens: one row a producer: its entries behind its last marker.
        entries: one row an event of a key, in log order (`investigate.history.Entry`).
        texts: metadata of commits and what members are called, behind each other.
        members: one row a member of a group as it was at one time; the first is nobody.
        waiting: records of newer kinds that Python has not seen yet.
    """

    held: LongRows
    lives: LongRows
    opens: LongRows
    counts: Longs
    entries: LongRows
    texts: Bytes
    members: LongRows
    waiting: Waiting


# Columns of ``entries``.
(
    KEY, MARKS, RECORD_OFFSET, TIMESTAMP, COMMITTED, LEADER_EPOCH, COMMIT_TIMESTAMP, METADATA_AT, METADATA_SIZE,
    PRODUCER_ID, EFFECTIVE, EFFECTIVE_RECORD, HELD_BY, TOPIC_ID, OLDER, MEMBER, REWOUND_BY,
) = range(17)  # fmt: skip
ENTRY_SIZE = 17
"""Meanings of columns.

KEY is a row of raw keys; EFFECTIVE_RECORD is NEVER if nothing is answered; HELD_BY is the number of a question for the
member that can be answered once all topic ids are known, 0 if MEMBER is set; TOPIC_ID is the number of a name, NOTHING
without one; OLDER is the previous entry of the same transaction; REWOUND_BY is set where CHANGE goes back.
"""

# Columns of ``members``: where texts stand and their sizes, NOTHING where there is none.
MEMBER_ID, INSTANCE_ID, CLIENT_ID, HOST = range(0, 8, 2)
EPOCH = 8
MEMBER_SIZE = 9
NOBODY = 0

# Columns of keys: the numbers of names; whether one of these is not UTF-8.
GROUP, TOPIC, KEY_PARTITION, LOG, IS_MALFORMED, KEY_COLUMNS = range(6)

# Parts of MARKS.
EVENT, OUTCOME, CHANGE = 1, 8, 64
EVENTS = ("commit", "tombstone", "transaction_committed", "transaction_aborted", "group_gone", "group_back")
COMMIT, TOMBSTONE, COMMITTED_THEN, ABORTED_THEN, GONE, BACK = range(6)
OUTCOMES = (None, "open", "committed", "aborted")
PLAIN, OPEN = range(2)
NONE, NEW, ADVANCED, REWOUND, SAME, DELETED, NEW_BELOW = range(7)
GOES_BACK = (REWOUND, NEW_BELOW)
"""NEW_BELOW is NEW, and less than was answered before it was deleted."""
MASK = 7
ALL_MARKS = 512

# Columns of ``held``.
SHOWN, NOW, WAS_RECORD, WAS_APPLIED, WAS, MET, NEXT, KEY_MET, HOLDER, HAS_LAST, LAST_ANSWER = range(11)
HELD_SIZE = 11
"""Meanings of columns.

SHOWN is a verdict; NOW the committed offset that is answered. The next three describe the answer before the record: its
record offset (NEVER if nothing was answered), where it took effect, what it committed. MET is 1 + the entry of the
marker that met the key; NEXT is 1 + the next key of the group, LAST for the last one, 0 for a key that was not met;
KEY_MET is the raw key it was first met as; HOLDER the member that was last assigned it; LAST_ANSWER what was answered
last, if HAS_LAST says that anything was.
"""
LAST = -1

# Columns of ``lives``.
GROUP_SHOWN, EXISTS, HELD_BY_NOW, FIRST_KEY, KEYS, FIRST_MEMBER, ONLY_MEMBER, TOLD_BY, WAITS = range(9)
LIFE_SIZE = 9
"""HELD_BY_NOW is below 0 if it must be asked for; members below FIRST_MEMBER are of the past; WAITS says whether some
of the group's records are waiting."""
TOLD_BY_PYTHON, IS_SIMPLE, IS_CLASSIC, IS_NEWER = range(4)
"""Who processed the group's last record; for records that a kernel processed, whether the group has only offsets, and
for others whether Python has a group of a newer kind."""
UNDECIDED, UNWANTED, WANTED = range(3)

# Columns of ``opens``.
NEWEST, COUNT = range(2)
OPEN_SIZE = 2
"""1 + the newest entry, and the number of entries."""

# Of ``counts``.
(
    ENTRIES,
    TEXT_USED,
    ALL_ANSWERED,  # whether groups that do not exist are answered for, too
    OF_GROUP,
    OF_TIME,  # of the record that something is asked for: its group, when it was written
    MEMBERS,
    COUNTS,
) = range(7)

NOT_KEPT = -1


class OffsetRecord(NamedTuple):
    """A commit or tombstone.

    Attributes:
        producer: of the transaction it belongs to, else NOTHING.
        is_replayed: whether a replay takes it.
        committed: the offset that it commits.
    """

    is_value: Number
    record_offset: Number
    timestamp: Number
    producer: Number
    is_replayed: Number
    committed: Number


@inlined
def _is_answered(history: History, group: Any) -> Any:
    return history.counts[ALL_ANSWERED] != 0 or history.lives[group, EXISTS] != 0


@inlined
def _remember(history: History, rows: Table[a.Row], row: Any) -> None:
    """Remember what is answered for a key before a record."""
    held = history.held
    is_there = _is_answered(history, rows[row].group)
    held[row, WAS_RECORD] = rows[row].record_offset if is_there else np.int64(a.NEVER)
    held[row, WAS_APPLIED] = rows[row].applied_offset
    held[row, WAS] = held[row, NOW]


@inlined
def _change(rows: Table[a.Row], held: Any, row: Any, now: Any) -> Any:
    """Return how the answer changed since `_remember`; ``now`` is the record offset of the answer."""
    was = held[row, WAS_RECORD]
    if now == a.NEVER:
        return np.int64(NONE if was == a.NEVER else DELETED)
    if was == a.NEVER:
        return np.int64(NEW_BELOW if held[row, HAS_LAST] and held[row, NOW] < held[row, LAST_ANSWER] else NEW)
    if was == now and held[row, WAS_APPLIED] == rows[row].applied_offset:
        return np.int64(NONE)
    if held[row, NOW] == held[row, WAS]:
        return np.int64(SAME)
    return np.int64(ADVANCED if held[row, NOW] > held[row, WAS] else REWOUND)


@inlined
def _less(before: Any, now: Any) -> Any:
    """Return by how much an answer is less than the one before it, or `INT64_MAX` where that is more."""
    return before - now if now >= 0 or before <= INT64_MAX + now else np.int64(INT64_MAX)


@part
def _add(
    history: History, rows: Table[a.Row], key: Any, row: Any, event: Any, record_offset: Any, timestamp: Any
) -> Any:
    """Add an entry, with the answer after its record; there is room."""
    entries = history.entries
    n = U(history.counts[ENTRIES])
    history.counts[ENTRIES] += 1
    is_there = _is_answered(history, rows[row].group)
    now = rows[row].record_offset if is_there else np.int64(a.NEVER)
    entries[n, KEY] = key
    change = _change(rows, history.held, row, now)
    entries[n, MARKS] = event * EVENT + change * CHANGE
    if change in GOES_BACK:
        entries[n, REWOUND_BY] = _less(history.held[row, LAST_ANSWER], history.held[row, NOW])
    if now != a.NEVER:
        history.held[row, HAS_LAST] = 1
        history.held[row, LAST_ANSWER] = history.held[row, NOW]
    entries[n, RECORD_OFFSET] = record_offset
    entries[n, TIMESTAMP] = timestamp
    entries[n, METADATA_AT] = 0
    entries[n, METADATA_SIZE] = 0
    entries[n, EFFECTIVE] = history.held[row, NOW]
    entries[n, EFFECTIVE_RECORD] = now
    entries[n, HELD_BY] = 0
    entries[n, MEMBER] = NOBODY
    entries[n, TOPIC_ID] = a.NOTHING
    return np.int64(n)


@inlined
def _meet(rows: Table[a.Row], history: History, key: Any, row: Any) -> None:
    """Make a key that is shown one of its group's keys from here on."""
    held, lives = history.held, history.lives
    if held[row, NEXT] == 0:
        group = rows[row].group
        held[row, NEXT] = lives[group, FIRST_KEY] if lives[group, FIRST_KEY] != 0 else np.int64(LAST)
        held[row, KEY_MET] = key
        lives[group, FIRST_KEY] = row + 1
        lives[group, KEYS] += 1


@part
def note_others(
    history: History, rows: Table[a.Row], group: Any, but: Any, event: Any, record_offset: Any, timestamp: Any
) -> None:
    """Add entries for keys whose answer changed because their group now exists or does not; there is room.

    Args:
        but: a key that has an entry of its own.
    """
    held = history.held
    row = history.lives[group, FIRST_KEY] - 1
    while row >= 0:
        following = held[row, NEXT] - 1
        if row != but and rows[row].record_offset != a.NEVER:
            held[row, WAS] = held[row, NOW]
            held[row, WAS_APPLIED] = rows[row].applied_offset
            held[row, WAS_RECORD] = rows[row].record_offset if event == GONE else np.int64(a.NEVER)
            _add(history, rows, held[row, KEY_MET], row, event, record_offset, timestamp)
        row = following


@inlined
def _member_of(history: History, row: Any, group: Any, producer: Any) -> Any:
    """Return who holds a key: the member that is assigned it, or the only member unless the commit is transactional."""
    member = history.held[row, HOLDER]
    if member != NOBODY and member >= history.lives[group, FIRST_MEMBER]:
        return member
    return history.lives[group, ONLY_MEMBER] if producer < 0 else np.int64(NOBODY)


@inlined
def _opens_at_once(scan_state: a.ScanState) -> Any:
    """Return whether there is room for one more open record."""
    return scan_state.free >= 0 or scan_state.opened < scan_state.opened_room


@part
def what_is_needed(arrays: a.Arrays, history: History, row: Any, is_value: Any, producer: Any) -> Any:
    """Return what an offset's record needs before anything may be done; FINISHED if nothing."""
    lives = history.lives
    group = arrays.rows[row].group
    if history.held[row, SHOWN] == UNDECIDED:
        return np.int64(oc.NEEDS_VERDICT)
    if is_value and history.held[row, SHOWN] == WANTED and lives[group, HELD_BY_NOW] < 0:
        return np.int64(oc.NEEDS_HOLDERS)
    if producer >= 0 and not _opens_at_once(arrays.scan_state):
        return np.int64(oc.NEEDS_ROOM)
    many = np.int64(1) if lives[group, EXISTS] else lives[group, KEYS] + 1
    return np.int64(oc.FINISHED if history.counts[ENTRIES] + many <= len(history.entries) else oc.NEEDS_ENTRIES)


@part
def note_offset(arrays: a.Arrays, history: History, key: Any, row: Any, record: OffsetRecord) -> Any:
    """Note a commit or tombstone; return its entry, or NOT_KEPT if it is not shown. Nothing more is needed for it.

    Args:
        key, row: row of the raw key, and row of what it names.
    """
    lives, opens, entries = history.lives, history.opens, history.entries
    rows, is_value, producer = arrays.rows, record.is_value, record.producer
    group = rows[row].group
    is_shown = history.held[row, SHOWN] == WANTED
    if is_shown:
        _meet(rows, history, key, row)
    _remember(history, rows, row)
    is_back = is_value and lives[group, EXISTS] == 0 and history.counts[ALL_ANSWERED] == 0
    if is_back:
        lives[group, EXISTS] = 1
    if record.is_replayed:
        offset, none = record.record_offset, np.int64(a.NOTHING)
        place = a.Place(offset, none, none)
        fold.replay_offset(arrays, row, is_value, place, offset, producer, arrays.scan_state.rules)
    if is_value and producer < 0 and rows[row].record_offset == record.record_offset:
        history.held[row, NOW] = record.committed
    if is_back:
        note_others(history, rows, group, row, np.int64(BACK), record.record_offset, record.timestamp)
    if not is_shown:
        return np.int64(NOT_KEPT)
    event = np.int64(COMMIT if is_value else TOMBSTONE)
    n = _add(history, rows, key, row, event, record.record_offset, record.timestamp)
    entries[n, COMMITTED] = record.committed
    if is_value:
        entries[n, HELD_BY] = lives[group, HELD_BY_NOW]
        entries[n, MEMBER] = _member_of(history, row, group, producer)
    if producer >= 0:
        entries[n, MARKS] += OPEN * OUTCOME
        entries[n, PRODUCER_ID] = producer_at(arrays, producer).producer_id
        entries[n, OLDER] = opens[producer, NEWEST]
        opens[producer, NEWEST] = n + 1
        opens[producer, COUNT] += 1
    return n


@part
def note_marker(
    arrays: a.Arrays,
    history: History,
    producer: Any,
    commits: Any,
    record_offset: Any,
    timestamp: Any,
    is_replayed: Any,
) -> Any:
    """Note the end of a transaction; return FINISHED, NEEDS_ENTRIES or NEEDS_ROOM."""
    rows, held, opens, entries = arrays.rows, history.held, history.opens, history.entries
    if history.counts[ENTRIES] + opens[producer, COUNT] > len(entries):
        return np.int64(oc.NEEDS_ENTRIES)
    n = opens[producer, NEWEST] - 1
    while n >= 0:
        row = rows[entries[n, KEY]].target
        held[row, MET] = 0
        _remember(history, rows, row)
        n = entries[n, OLDER] - 1
    if is_replayed and not fold.mark(arrays, producer, commits, record_offset, arrays.scan_state.rules):
        return np.int64(oc.NEEDS_ROOM)
    n = opens[producer, NEWEST] - 1
    while n >= 0:
        row = rows[entries[n, KEY]].target
        entries[n, MARKS] += np.int64(1 if commits else 2) * OUTCOME
        is_applied = rows[row].applied_offset == record_offset and held[row, WAS_APPLIED] != record_offset
        if is_applied and rows[row].record_offset == entries[n, RECORD_OFFSET]:
            held[row, NOW] = entries[n, COMMITTED]
        n = entries[n, OLDER] - 1
    n = opens[producer, NEWEST] - 1
    producer_id = producer_at(arrays, producer).producer_id
    event = np.int64(COMMITTED_THEN if commits else ABORTED_THEN)
    while n >= 0:
        key = entries[n, KEY]
        row = rows[key].target
        if held[row, MET] == 0:
            made = _add(history, rows, key, row, event, record_offset, timestamp)
            entries[made, MARKS] += np.int64(2 if commits else 3) * OUTCOME
            entries[made, PRODUCER_ID] = producer_id
            held[row, MET] = made + 1
        else:
            entries[held[row, MET] - 1, KEY] = key  # as it was called first
        n = entries[n, OLDER] - 1
    opens[producer, NEWEST] = 0
    opens[producer, COUNT] = 0
    return np.int64(oc.FINISHED)


@part
def turn(rows: Table[a.Row], history: History, group: Any, exists: Any, record_offset: Any, timestamp: Any) -> None:
    """Note that a group exists from here on, or no longer; there is room."""
    history.lives[group, EXISTS] = exists
    if not history.counts[ALL_ANSWERED]:
        event = np.int64(BACK if exists else GONE)
        none = np.int64(a.NOTHING)
        note_others(history, rows, group, none, event, record_offset, timestamp)
