"""The kernel of `history`: what each record did to the answer for its key, an entry for each.

The rules are those of a replay (`folds.offsets`); here is looked at what they did. What a group is, and who held what,
Python says: the kernel comes back for a group's record, and where a commit is the first since one.

entries  one row an event of a key, in log order (`investigate.history.Entry`)
texts    metadata of commits, behind each other
held     one row a row of the replay: what is answered for the key, and what was
lives    one row a group
opens    one row a producer: its entries behind its last marker
"""

from __future__ import annotations

from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar.events.records import BEFORE_TEXT, LEADER_AT, SHAPES, metadata_at
from offsets_log.columnar.folds import offsets as fold
from offsets_log.columnar.jit.compiled import U, inlined, kernel, part
from offsets_log.columnar.jit.kinds import Bytes, LongRows, Longs, Number
from offsets_log.columnar.scan import staging as sc
from offsets_log.columnar.scan.keys import NEEDS_ROOM, has_room, intern_group, intern_producer
from offsets_log.columnar.wire import batches as bt
from offsets_log.columnar.wire.primitives import be16, be32, be64

# Columns of ``entries``.
(
    KEY, MARKS, RECORD_OFFSET, TIMESTAMP, COMMITTED, LEADER_EPOCH, COMMIT_TIMESTAMP, METADATA_AT, METADATA_SIZE,
    PRODUCER_ID, EFFECTIVE, EFFECTIVE_RECORD, HOLDERS, TOPIC_ID, OLDER,
) = range(15)  # fmt: skip
ENTRY_SIZE = 16
"""KEY is a row of raw keys; EFFECTIVE_RECORD is NEVER where nothing is answered; HOLDERS is a number that Python gave,
TOPIC_ID that of a name, both NOTHING without one; OLDER is the entry before of the same transaction."""

# Parts of MARKS.
EVENT, OUTCOME, CHANGE = 1, 8, 64
EVENTS = ("commit", "tombstone", "transaction_committed", "transaction_aborted", "group_gone", "group_back")
COMMIT, TOMBSTONE, COMMITTED_THEN, ABORTED_THEN, GONE, BACK = range(6)
OUTCOMES = (None, "open", "committed", "aborted")
PLAIN, OPEN = range(2)
NONE, NEW, ADVANCED, REWOUND, SAME, DELETED = range(6)
MASK = 7

# Columns of ``held``.
SHOWN, NOW, WAS_RECORD, WAS_APPLIED, WAS, MET, NEXT, KEY_MET = range(8)
HELD_SIZE = 8
"""A verdict; the committed offset that is answered; what was before the record: its record offset, NEVER if nothing was
answered, where it took effect, what it committed; 1 + the entry of the marker that met the key; 1 + the next key of the
group, NEVER-ending ones LAST, 0 for a key that was not met; the raw key it was first met as."""
LAST = -1

# Columns of ``lives``.
GROUP_SHOWN, EXISTS, HOLDERS_NOW, FIRST_KEY, KEYS = range(5)
LIFE_SIZE = 5
UNDECIDED, UNWANTED, WANTED = range(3)

# Columns of ``opens``.
NEWEST, COUNT = range(2)
OPEN_SIZE = 2
"""1 + the newest entry, and how many there are."""

# Of ``counts``.
ENTRIES = 0
TEXT_USED = 1
ALL_ANSWERED = 2  # whether groups that do not exist are answered for, too
OF_GROUP, OF_TIME = 3, 4  # of the record that something is asked for: its group, when it was written
COUNTS = 5

# Why the kernel came back, beside what `staging` has; also what a record needs first.
NEEDS_VERDICT, NEEDS_HOLDERS, NEEDS_GROUP, NEEDS_ENTRIES, BEYOND = range(sc.STOPPED + 1, sc.STOPPED + 6)
"""BEYOND: what only the construct path can tell, as a time of more than 64 bits."""
NOT_KEPT = -1


@inlined
def _is_answered(counts: Any, lives: Any, group: Any) -> Any:
    return counts[ALL_ANSWERED] != 0 or lives[group, EXISTS] != 0


@inlined
def _remember(counts: Any, rows: Any, held: Any, lives: Any, row: Any) -> None:
    """What is answered for a key before a record."""
    is_there = _is_answered(counts, lives, rows[row, a.GROUP])
    held[row, WAS_RECORD] = rows[row, a.RECORD_OFFSET] if is_there else np.int64(a.NEVER)
    held[row, WAS_APPLIED] = rows[row, a.APPLIED_OFFSET]
    held[row, WAS] = held[row, NOW]


@inlined
def _change(rows: Any, held: Any, row: Any, now: Any) -> Any:
    """Of the answer since `_remember`, where the record offset of the answer is ``now``."""
    was = held[row, WAS_RECORD]
    if now == a.NEVER:
        return np.int64(NONE if was == a.NEVER else DELETED)
    if was == a.NEVER:
        return np.int64(NEW)
    if was == now and held[row, WAS_APPLIED] == rows[row, a.APPLIED_OFFSET]:
        return np.int64(NONE)
    if held[row, NOW] == held[row, WAS]:
        return np.int64(SAME)
    return np.int64(ADVANCED if held[row, NOW] > held[row, WAS] else REWOUND)


@part
def _add(
    counts: Any, rows: Any, held: Any, lives: Any, entries: Any, key: Any, row: Any, event: Any, record_offset: Any,
    timestamp: Any,
) -> Any:  # fmt: skip
    """A new entry, with the answer behind its record; there is room."""
    n = U(counts[ENTRIES])
    counts[ENTRIES] += 1
    is_there = _is_answered(counts, lives, rows[row, a.GROUP])
    now = rows[row, a.RECORD_OFFSET] if is_there else np.int64(a.NEVER)
    entries[n, KEY] = key
    entries[n, MARKS] = event * EVENT + _change(rows, held, row, now) * CHANGE
    entries[n, RECORD_OFFSET] = record_offset
    entries[n, TIMESTAMP] = timestamp
    entries[n, METADATA_AT] = 0
    entries[n, METADATA_SIZE] = 0
    entries[n, EFFECTIVE] = held[row, NOW]
    entries[n, EFFECTIVE_RECORD] = now
    entries[n, HOLDERS] = a.NOTHING
    entries[n, TOPIC_ID] = a.NOTHING
    return np.int64(n)


@inlined
def _meet(rows: Any, held: Any, lives: Any, key: Any, row: Any) -> None:
    """A key that is shown is one of its group from here on."""
    if held[row, NEXT] == 0:
        group = rows[row, a.GROUP]
        held[row, NEXT] = lives[group, FIRST_KEY] if lives[group, FIRST_KEY] != 0 else np.int64(LAST)
        held[row, KEY_MET] = key
        lives[group, FIRST_KEY] = row + 1
        lives[group, KEYS] += 1


@part
def _note_others(
    counts: Any, rows: Any, held: Any, lives: Any, entries: Any, group: Any, but: Any, event: Any, record_offset: Any,
    timestamp: Any,
) -> None:  # fmt: skip
    """Keys whose answer changed with their group, which exists now or does not; there is room.

    Args:
        but: a key that has an entry of its own.
    """
    row = lives[group, FIRST_KEY] - 1
    while row >= 0:
        following = held[row, NEXT] - 1
        if row != but and rows[row, a.RECORD_OFFSET] != a.NEVER:
            held[row, WAS] = held[row, NOW]
            held[row, WAS_APPLIED] = rows[row, a.APPLIED_OFFSET]
            held[row, WAS_RECORD] = rows[row, a.RECORD_OFFSET] if event == GONE else np.int64(a.NEVER)
            _add(counts, rows, held, lives, entries, held[row, KEY_MET], row, event, record_offset, timestamp)
        row = following


@inlined
def _opens_at_once(desk: Any) -> Any:
    """Whether there is room for one more open record."""
    return desk[a.FREE] >= 0 or desk[a.OPENED] < desk[a.OPENED_ROOM]


@part
def _what_is_needed(
    desk: Any, rows: Any, held: Any, lives: Any, counts: Any, entries: Any, row: Any, is_value: Any, producer: Any
) -> Any:
    """What an offset's record needs before anything may be done; FINISHED if nothing."""
    group = rows[row, a.GROUP]
    if held[row, SHOWN] == UNDECIDED:
        return np.int64(NEEDS_VERDICT)
    if is_value and held[row, SHOWN] == WANTED and lives[group, HOLDERS_NOW] < 0:
        return np.int64(NEEDS_HOLDERS)
    if producer >= 0 and not _opens_at_once(desk):
        return np.int64(sc.NEEDS_ROOM)
    many = np.int64(1) if lives[group, EXISTS] else lives[group, KEYS] + 1
    return np.int64(sc.FINISHED if counts[ENTRIES] + many <= len(entries) else NEEDS_ENTRIES)


@part
def _note_offset(
    desk: Any, rows: Any, groups: Any, cold: Any, held: Any, lives: Any, opens: Any, counts: Any, entries: Any,
    key: Any, row: Any, is_value: Any, record_offset: Any, timestamp: Any, producer: Any, is_replayed: Any,
    committed: Any,
) -> Any:  # fmt: skip
    """A commit or tombstone: its entry, NOT_KEPT if it is not shown; nothing is needed any more.

    Args:
        key, row: of the raw key, and of what it names.
        producer: of the transaction it belongs to, else NOTHING.
        is_replayed: whether a replay takes it.
    """
    group = rows[row, a.GROUP]
    is_shown = held[row, SHOWN] == WANTED
    if is_shown:
        _meet(rows, held, lives, key, row)
    _remember(counts, rows, held, lives, row)
    is_back = is_value and lives[group, EXISTS] == 0 and counts[ALL_ANSWERED] == 0
    if is_back:
        lives[group, EXISTS] = 1
    if is_replayed:
        none, rules = np.int64(a.NOTHING), desk[a.RULES]
        fold.replay_offset(desk, rows, groups, cold, row, is_value, record_offset, none, none, producer, rules)
    if is_value and producer < 0 and rows[row, a.RECORD_OFFSET] == record_offset:
        held[row, NOW] = committed
    if is_back:
        _note_others(counts, rows, held, lives, entries, group, row, np.int64(BACK), record_offset, timestamp)
    if not is_shown:
        return np.int64(NOT_KEPT)
    event = np.int64(COMMIT if is_value else TOMBSTONE)
    n = _add(counts, rows, held, lives, entries, key, row, event, record_offset, timestamp)
    entries[n, COMMITTED] = committed
    if is_value:
        entries[n, HOLDERS] = lives[group, HOLDERS_NOW]
    if producer >= 0:
        entries[n, MARKS] += OPEN * OUTCOME
        entries[n, PRODUCER_ID] = cold[fold.producer_at(desk, producer) + a.PRODUCER_ID]
        entries[n, OLDER] = opens[producer, NEWEST]
        opens[producer, NEWEST] = n + 1
        opens[producer, COUNT] += 1
    return n


@part
def _note_marker(
    desk: Any, rows: Any, cold: Any, held: Any, lives: Any, opens: Any, counts: Any, entries: Any, producer: Any,
    commits: Any, record_offset: Any, timestamp: Any, is_replayed: Any,
) -> Any:  # fmt: skip
    """The end of a transaction; FINISHED, NEEDS_ENTRIES or NEEDS_ROOM."""
    if counts[ENTRIES] + opens[producer, COUNT] > len(entries):
        return np.int64(NEEDS_ENTRIES)
    n = opens[producer, NEWEST] - 1
    while n >= 0:
        row = rows[entries[n, KEY], a.TARGET]
        held[row, MET] = 0
        _remember(counts, rows, held, lives, row)
        n = entries[n, OLDER] - 1
    if is_replayed and not fold.mark(desk, rows, cold, producer, commits, record_offset, desk[a.RULES]):
        return np.int64(sc.NEEDS_ROOM)
    n = opens[producer, NEWEST] - 1
    while n >= 0:
        row = rows[entries[n, KEY], a.TARGET]
        entries[n, MARKS] += np.int64(1 if commits else 2) * OUTCOME
        is_applied = rows[row, a.APPLIED_OFFSET] == record_offset and held[row, WAS_APPLIED] != record_offset
        if is_applied and rows[row, a.RECORD_OFFSET] == entries[n, RECORD_OFFSET]:
            held[row, NOW] = entries[n, COMMITTED]
        n = entries[n, OLDER] - 1
    n = opens[producer, NEWEST] - 1
    producer_id = cold[fold.producer_at(desk, producer) + a.PRODUCER_ID]
    event = np.int64(COMMITTED_THEN if commits else ABORTED_THEN)
    while n >= 0:
        key = entries[n, KEY]
        row = rows[key, a.TARGET]
        if held[row, MET] == 0:
            made = _add(counts, rows, held, lives, entries, key, row, event, record_offset, timestamp)
            entries[made, MARKS] += np.int64(2 if commits else 3) * OUTCOME
            entries[made, PRODUCER_ID] = producer_id
            held[row, MET] = made + 1
        else:
            entries[held[row, MET] - 1, KEY] = key  # as it was called first
        n = entries[n, OLDER] - 1
    opens[producer, NEWEST] = 0
    opens[producer, COUNT] = 0
    return np.int64(sc.FINISHED)


# -------------------------------------------------------------------------------------------- what is staged


@part
def _keep_commit(counts: Any, entries: Any, texts: Any, n: Any, data: Any, value: Any, size: Any, topic_id: Any) -> Any:
    """The columns of a commit, which a program has read; False without room for its metadata."""
    version = U(be16(data, value))
    text_at, text_end = metadata_at(data, value, value + size, version)
    used = counts[TEXT_USED]
    if used + text_end - text_at > len(texts):
        return False
    leader_at = SHAPES[version, LEADER_AT]
    entries[n, LEADER_EPOCH] = be32(data, value + 2 + leader_at) if leader_at >= 0 else np.int64(-1)
    entries[n, COMMIT_TIMESTAMP] = be64(data, text_end)
    entries[n, METADATA_AT] = used
    entries[n, METADATA_SIZE] = text_end - text_at
    entries[n, TOPIC_ID] = topic_id
    for i in range(text_end - text_at):
        texts[U(used + i)] = data[U(text_at + i)]
    counts[TEXT_USED] = used + text_end - text_at
    return True


@inlined
def _is_beyond(timestamp: Any) -> Any:
    """Whether a time may have more than 64 bits, which `batches.time_at` does not tell."""
    return timestamp == bt.INT64_MAX or timestamp == bt.INT64_MIN


@inlined
def _topic_id(
    desk: Any, slots: Any, rows: Any, groups: Any, arena: Any, cold: Any, lives: Any, source: Any, key: Any,
    staged: Any, i: Any,
) -> Any:  # fmt: skip
    """The number of the topic id that a commit names, noted for its topic; NOTHING without one, or NEEDS_ROOM."""
    at = staged[i, a.TOPIC_ID_AT]
    if at < 0 or (be64(source, at) == 0 and be64(source, at + 8) == 0):
        return np.int64(a.NOTHING)
    if not has_room(desk, slots, rows, groups, arena, np.int64(16)) or desk[a.GROUPS] >= len(lives):
        return np.int64(NEEDS_ROOM)
    row, high, low = rows[key, a.TARGET], be64(source, at), be64(source, at + 8)
    if not fold.note_topic_id(desk, cold, row, high, low, staged[i, a.OFFSET]):
        return np.int64(NEEDS_ROOM)
    return intern_group(desk, groups, arena, cold, source, at, np.int64(16))


@part
def _note_staged_marker(
    desk: Any, rows: Any, cold: Any, held: Any, lives: Any, opens: Any, counts: Any, entries: Any, staged: Any,
    data: Any, i: Any,
) -> Any:  # fmt: skip
    """A marker: FINISHED, or what it needs first."""
    producer, commits = staged[i, a.STAGED_PRODUCER], np.int64(staged[i, a.KIND] == a.COMMIT)
    timestamp = bt.time_at(data, staged[i, a.RECORD_AT] - bt.HEADER_SIZE, staged[i, a.TIMESTAMP_DELTA])
    if producer >= len(opens):
        return np.int64(sc.NEEDS_ROOM)
    if _is_beyond(timestamp):
        return np.int64(BEYOND)
    return _note_marker(
        desk, rows, cold, held, lives, opens, counts, entries, producer, commits, staged[i, a.OFFSET], timestamp,
        np.int64(1),
    )  # fmt: skip


@part
def _note_staged(
    desk: Any, slots: Any, rows: Any, groups: Any, arena: Any, cold: Any, held: Any, lives: Any, opens: Any,
    counts: Any, entries: Any, texts: Any, staged: Any, source: Any, data: Any, number: Any, place: Any,
) -> Any:  # fmt: skip
    """A record that is staged: FINISHED, or what it needs first, with nothing done."""
    i = U(number)
    kind = staged[i, a.KIND]
    if kind == a.PASSED:
        return np.int64(sc.FINISHED)
    at = staged[i, a.STAGED_BATCH] - desk[a.SEGMENT]
    if kind > a.TOMBSTONE:
        return _note_staged_marker(desk, rows, cold, held, lives, opens, counts, entries, staged, data, i)
    key = np.int64(fold.row_of(desk, slots, rows, groups, arena, cold, staged, source, number, place))
    if key < 0:
        return np.int64(sc.NEEDS_ROOM if key == NEEDS_ROOM else sc.DOUBTFUL_KEY)
    if rows[key, a.GROUP] >= len(lives) or key >= len(held) or staged[i, a.STAGED_PRODUCER] >= len(opens):
        return np.int64(sc.NEEDS_ROOM)
    shown = lives[rows[key, a.GROUP], GROUP_SHOWN]
    if shown == UNDECIDED:
        return np.int64(NEEDS_VERDICT)
    timestamp = bt.time_at(data, at, staged[i, a.TIMESTAMP_DELTA])
    counts[OF_GROUP], counts[OF_TIME] = rows[key, a.GROUP], timestamp
    if shown == WANTED and _is_beyond(timestamp):
        return np.int64(BEYOND)
    if rows[key, a.TARGET] == a.IS_GROUP:
        return np.int64(NEEDS_GROUP if shown == WANTED else sc.FINISHED)
    topic_id = _topic_id(desk, slots, rows, groups, arena, cold, lives, source, key, staged, i)
    if topic_id == NEEDS_ROOM:
        return np.int64(sc.NEEDS_ROOM)
    if shown != WANTED:
        return np.int64(sc.FINISHED)
    return _note_staged_offset(
        desk, rows, groups, cold, held, lives, opens, counts, entries, texts, staged, source, i, key, timestamp,
        topic_id,
    )  # fmt: skip


@part
def _note_staged_offset(
    desk: Any, rows: Any, groups: Any, cold: Any, held: Any, lives: Any, opens: Any, counts: Any, entries: Any,
    texts: Any, staged: Any, source: Any, i: Any, key: Any, timestamp: Any, topic_id: Any,
) -> Any:  # fmt: skip
    """A commit or tombstone of a group that is shown: FINISHED, or what it needs first, with nothing done."""
    is_value, row, producer = staged[i, a.KIND] == a.VALUE, rows[key, a.TARGET], staged[i, a.STAGED_PRODUCER]
    value, size = staged[i, a.VALUE_AT], staged[i, a.VALUE_SIZE]
    if is_value and SHAPES[U(be16(source, value)), BEFORE_TEXT] < 0:
        return np.int64(BEYOND)
    need = _what_is_needed(desk, rows, held, lives, counts, entries, row, is_value, producer)
    if need != sc.FINISHED:
        return need
    if counts[TEXT_USED] + max(size, 0) > len(texts):
        return np.int64(NEEDS_ENTRIES)
    committed = be64(source, value + 2) if is_value else np.int64(0)
    n = _note_offset(
        desk, rows, groups, cold, held, lives, opens, counts, entries, key, row, np.int64(is_value),
        staged[i, a.OFFSET], timestamp, producer, np.int64(1), committed,
    )  # fmt: skip
    if is_value and n >= 0:
        _keep_commit(counts, entries, texts, n, source, value, size, topic_id)
    return np.int64(sc.FINISHED)


@part
def _flush(
    desk: Any, slots: Any, rows: Any, groups: Any, arena: Any, cold: Any, held: Any, lives: Any, opens: Any,
    counts: Any, entries: Any, texts: Any, staged: Any, source: Any, data: Any,
) -> Any:  # fmt: skip
    """Note what is staged, from where it was left: FINISHED, or what the record ``FLUSHED`` needs."""
    while desk[a.FLUSHED] < desk[a.STAGED]:
        first = desk[a.FLUSHED]
        last = min(first + a.BLOCK, desk[a.STAGED])
        fold.prepare(desk, slots, rows, arena, source, staged, first, last)
        for number in range(first, last):
            desk[a.FLUSHED] = number
            need = _note_staged(
                desk, slots, rows, groups, arena, cold, held, lives, opens, counts, entries, texts, staged, source,
                data, np.int64(number), np.int64(number - first),
            )  # fmt: skip
            if need != sc.FINISHED:
                return need
        desk[a.FLUSHED] = last
    desk[a.STAGED] = 0
    desk[a.FLUSHED] = 0
    return np.int64(sc.FINISHED)


@kernel
def scan(
    desk: Longs, slots: Longs, rows: LongRows, groups: LongRows, arena: Bytes, cold: Longs, held: LongRows,
    lives: LongRows, opens: LongRows, counts: Longs, entries: LongRows, texts: Bytes, staged: LongRows, data: Bytes,
    window: Bytes, table: LongRows,
) -> Any:  # fmt: skip
    """Note a segment's records from ``desk[AT]`` on; as `folds.offsets.scan`."""
    begin = desk[a.AT]
    outcome = np.int64(sc.GO_ON)
    while outcome == sc.GO_ON:
        outcome = sc.stage(desk, cold, staged, data, window, table, begin)
        source = window if desk[a.IN_WINDOW] else data
        need = _flush(
            desk, slots, rows, groups, arena, cold, held, lives, opens, counts, entries, texts, staged, source, data
        )
        if need != sc.FINISHED:
            return need
        outcome = sc.outcome_of(desk, begin, outcome)
    return outcome


# ------------------------------------------------------------------------------------- records read by hand


@kernel
def note_one(
    desk: Longs, rows: LongRows, groups: LongRows, cold: Longs, held: LongRows, lives: LongRows, opens: LongRows,
    counts: Longs, entries: LongRows, key: Number, is_value: Number, record_offset: Number, timestamp: Number,
    producer_id: Number, transactional: Number, is_replayed: Number, committed: Number,
) -> Any:  # fmt: skip
    """An offset's record: 0, or 1 + its entry; below 0 what it needs first."""
    row = rows[key, a.TARGET]
    producer = np.int64(a.NOTHING)
    if transactional:
        producer = intern_producer(desk, cold, producer_id)
        if producer < 0 or producer >= len(opens):
            return np.int64(-sc.NEEDS_ROOM)
    need = _what_is_needed(desk, rows, held, lives, counts, entries, row, is_value != 0, producer)
    if need != sc.FINISHED:
        return -need
    n = _note_offset(
        desk, rows, groups, cold, held, lives, opens, counts, entries, key, row, is_value, record_offset, timestamp,
        producer, is_replayed, committed,
    )  # fmt: skip
    return n + 1


@kernel
def mark_one(
    desk: Longs, rows: LongRows, cold: Longs, held: LongRows, lives: LongRows, opens: LongRows, counts: Longs,
    entries: LongRows, producer_id: Number, commits: Number, record_offset: Number, timestamp: Number,
    is_replayed: Number,
) -> Any:  # fmt: skip
    """A control record that ends a transaction; FINISHED, or what it needs first."""
    producer = intern_producer(desk, cold, producer_id)
    if producer < 0 or producer >= len(opens):
        return np.int64(sc.NEEDS_ROOM)
    return _note_marker(
        desk, rows, cold, held, lives, opens, counts, entries, producer, commits, record_offset, timestamp, is_replayed
    )


@kernel
def turn_group(
    rows: LongRows, held: LongRows, lives: LongRows, counts: Longs, entries: LongRows, group: Number, exists: Number,
    record_offset: Number, timestamp: Number,
) -> Any:  # fmt: skip
    """A group that exists from here on, or no longer; FINISHED or NEEDS_ENTRIES."""
    if counts[ENTRIES] + lives[group, KEYS] > len(entries):
        return np.int64(NEEDS_ENTRIES)
    lives[group, EXISTS] = exists
    if not counts[ALL_ANSWERED]:
        event = np.int64(BACK if exists else GONE)
        none = np.int64(a.NOTHING)
        _note_others(counts, rows, held, lives, entries, group, none, event, record_offset, timestamp)
    return np.int64(sc.FINISHED)


@kernel
def name_one(
    desk: Longs, slots: Longs, rows: LongRows, groups: LongRows, arena: Bytes, cold: Longs, data: Bytes
) -> Any:
    """The number of a name; −1 without room."""
    if not has_room(desk, slots, rows, groups, arena, np.int64(len(data))):
        return np.int64(-1)
    return intern_group(desk, groups, arena, cold, data, np.int64(0), np.int64(len(data)))
