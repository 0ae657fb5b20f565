"""Records done to the state: the rules of `replay.partial`, over arrays.

What a rule means is told there; each is cited here where it acts. Records come staged, in log order, and are replayed
in blocks: first all hashes of a block with a request for their table slots, then for their rows, then for their key
bytes, so that the waits for memory of a block pass together.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar.folds import census, inspection, newer
from offsets_log.columnar.jit.compiled import U, inlined, kernel, part, prefetch
from offsets_log.columnar.jit.kinds import Bytes, LongRows, Longs
from offsets_log.columnar.scan import staging as sc
from offsets_log.columnar.scan.keys import HIGH, LOW, NEEDS_ROOM, find_row, intern, intern_newer, is_at
from offsets_log.columnar.wire.primitives import be16, be64, hash_bytes

DONE = 0
FULL = 1
DOUBTFUL_KEY = 2

STAGED_ROW = a.RECORD_AT
"""Column of ``staged``, in place of what staging has there: the row of the raw key of a record that was replayed."""

# Bits of the rules: what `replay.profile.Profile` says.
LATEST_BY_RECORD = 1
ENDS_BY_RECORD = 2
TOMBSTONE_SPARES_COMMITTED = 4
CANCELS_OWN = 8


@inlined
def _is_ended(record_offset: Any, applied_offset: Any, tombstone_offset: Any, rules: Any) -> Any:
    return (record_offset if rules & ENDS_BY_RECORD else applied_offset) < tombstone_offset


@inlined
def apply_value(
    rows: Any, number: Any, record_offset: Any, applied_offset: Any, batch: Any, index: Any, rules: Any
) -> None:
    """A value takes effect, unless it is ended or a better one stands there."""
    row = U(number)
    if _is_ended(record_offset, applied_offset, rows[row, a.TOMBSTONE_OFFSET], rules):
        return
    if rows[row, a.RECORD_OFFSET] != a.NEVER:
        if rules & LATEST_BY_RECORD:
            if record_offset <= rows[row, a.RECORD_OFFSET]:
                return
        elif applied_offset <= rows[row, a.APPLIED_OFFSET]:
            return
    rows[row, a.RECORD_OFFSET] = record_offset
    rows[row, a.APPLIED_OFFSET] = applied_offset
    rows[row, a.BATCH] = batch
    rows[row, a.INDEX] = index


@inlined
def end_values(rows: Any, number: Any, tombstone_offset: Any, rules: Any) -> None:
    """A tombstone ends the committed offset (``J-12``, ``L-18``)."""
    row = U(number)
    last = max(rows[row, a.TOMBSTONE_OFFSET], tombstone_offset)
    rows[row, a.TOMBSTONE_OFFSET] = last
    if _is_ended(rows[row, a.RECORD_OFFSET], rows[row, a.APPLIED_OFFSET], last, rules):
        rows[row, a.RECORD_OFFSET] = a.NEVER


@inlined
def opened_at(desk: Any, number: Any) -> Any:
    """Where an open record stands in ``cold``."""
    return desk[a.OPENED_AT] + number * a.OPEN_SIZE


@inlined
def producer_at(desk: Any, number: Any) -> Any:
    """Where a producer stands in ``cold``."""
    return desk[a.PRODUCERS_AT] + number * a.PRODUCER_SIZE


@part
def open_record(
    desk: Any, cold: Any, producer: Any, row: Any, record_offset: Any, batch: Any, index: Any, cancels: Any
) -> Any:
    """A record of an open transaction; False without room."""
    number = desk[a.FREE]
    if number >= 0:
        desk[a.FREE] = cold[opened_at(desk, number) + a.OPEN_OLDER]
    else:
        number = desk[a.OPENED]
        if number >= desk[a.OPENED_ROOM]:
            return False
        desk[a.OPENED] += 1
    desk[a.OPEN_COUNT] += 1
    entry = opened_at(desk, number)
    owner = producer_at(desk, producer)
    cold[entry + a.OPEN_ROW] = row
    cold[entry + a.OPEN_OFFSET] = record_offset
    cold[entry + a.OPEN_BATCH] = batch
    cold[entry + a.OPEN_INDEX] = index
    cold[entry + a.OPEN_CANCELS] = cancels
    cold[entry + a.OPEN_OLDER] = cold[owner + a.NEWEST]
    if cold[owner + a.NEWEST] == a.NOTHING:
        cold[owner + a.OLDEST] = number
    cold[owner + a.NEWEST] = number
    return True


@part
def mark(desk: Any, rows: Any, cold: Any, producer: Any, commits: Any, marker_offset: Any, rules: Any) -> Any:
    """A marker ends the producer's transaction: of every key the last record counts (``J-10``, ``J-11``, ``L-12``).

    What the producer cancelled before its first marker concerns earlier pieces of the log too. False without room.
    """
    owner = producer_at(desk, producer)
    is_first = cold[owner + a.HEAD_OFFSET] == a.NOTHING
    if is_first and rules & CANCELS_OWN and desk[a.CANCELLED] + desk[a.OPEN_COUNT] > desk[a.CANCELLED_ROOM]:
        return False
    desk[a.RESOLUTION] += 1
    number = cold[owner + a.NEWEST]
    while number != a.NOTHING:
        entry = opened_at(desk, number)
        row = cold[entry + a.OPEN_ROW]
        cancels = cold[entry + a.OPEN_CANCELS]
        if is_first and cancels:
            kept = desk[a.CANCELLED_AT] + desk[a.CANCELLED] * a.CANCELLED_SIZE
            cold[kept + a.CANCELLED_PRODUCER] = producer
            cold[kept + a.CANCELLED_ROW] = row
            desk[a.CANCELLED] += 1
        seen = desk[a.MORE_AT] + row * a.MORE_SIZE + a.SEEN_BY
        if cold[seen] != desk[a.RESOLUTION]:
            cold[seen] = desk[a.RESOLUTION]
            if commits and not cancels:
                batch, index = cold[entry + a.OPEN_BATCH], cold[entry + a.OPEN_INDEX]
                apply_value(rows, row, cold[entry + a.OPEN_OFFSET], marker_offset, batch, index, rules)
        desk[a.OPEN_COUNT] -= 1
        number = cold[entry + a.OPEN_OLDER]
    if cold[owner + a.NEWEST] != a.NOTHING:
        cold[opened_at(desk, cold[owner + a.OLDEST]) + a.OPEN_OLDER] = desk[a.FREE]
        desk[a.FREE] = cold[owner + a.NEWEST]
        cold[owner + a.NEWEST] = a.NOTHING
        cold[owner + a.OLDEST] = a.NOTHING
    if is_first:
        cold[owner + a.HEAD_OFFSET] = marker_offset
        cold[owner + a.HEAD_COMMITS] = commits
    return True


@part
def note_topic_id(desk: Any, cold: Any, row: Any, high: Any, low: Any, record_offset: Any) -> Any:
    """A value names its topic's id; False without room."""
    more = desk[a.MORE_AT] + row * a.MORE_SIZE
    is_other = cold[more + a.TOPIC_HIGH] != high or cold[more + a.TOPIC_LOW] != low
    if is_other and (cold[more + a.TOPIC_HIGH] != 0 or cold[more + a.TOPIC_LOW] != 0):
        if desk[a.NAMED] >= desk[a.NAMED_ROOM]:
            return False
        old = desk[a.NAMED_AT] + desk[a.NAMED] * a.NAMED_SIZE
        cold[old + a.NAMED_ROW] = row
        cold[old + a.NAMED_HIGH] = cold[more + a.TOPIC_HIGH]
        cold[old + a.NAMED_LOW] = cold[more + a.TOPIC_LOW]
        cold[old + a.NAMED_OFFSET] = cold[more + a.TOPIC_OFFSET]
        desk[a.NAMED] += 1
    cold[more + a.TOPIC_HIGH] = high
    cold[more + a.TOPIC_LOW] = low
    cold[more + a.TOPIC_OFFSET] = record_offset
    return True


@inlined
def replay_offset(
    desk: Any, rows: Any, groups: Any, cold: Any, row: Any, is_value: Any, record_offset: Any, batch: Any, index: Any,
    producer: Any, rules: Any,
) -> Any:  # fmt: skip
    """A record of type 0 or 1 (`PartialState.add_offset`, `add_tombstone`); False without room.

    Args:
        producer: of the transaction it belongs to, else NOTHING.
    """
    if is_value:
        groups[U(rows[U(row), a.GROUP]), a.VALUE_OFFSET] = record_offset
        if producer < 0:
            apply_value(rows, row, record_offset, record_offset, batch, index, rules)
            return True
    else:
        if producer < 0 or not rules & TOMBSTONE_SPARES_COMMITTED:
            end_values(rows, row, record_offset, rules)
        if producer < 0 or not rules & CANCELS_OWN:
            return True
    return open_record(desk, cold, producer, row, record_offset, batch, index, np.int64(not is_value))


@inlined
def prepare(desk: Any, slots: Any, rows: Any, arena: Any, data: Any, staged: Any, first: Any, last: Any) -> None:
    """Hash the keys of a block, and ask for the memory that replaying it will need."""
    mask = np.int64(len(slots) - 1)
    seed = desk[a.SEED]
    hashes, founds = U(a.HASHES - first), U(a.FOUND - first)
    for number in range(first, last):
        i = U(number)
        if staged[i, a.KIND] <= a.TOMBSTONE:
            found = hash_bytes(data, staged[i, a.KEY], staged[i, a.KEY_SIZE], seed)
            desk[hashes + i] = found
            prefetch(slots, found & mask)
    for number in range(first, last):
        i = U(number)
        if staged[i, a.KIND] <= a.TOMBSTONE:
            found = desk[hashes + i]
            at = found & mask
            slot = slots[U(at)]
            while slot != 0 and (slot ^ found) & HIGH != 0:
                at = at + 1 & mask
                slot = slots[U(at)]
            row = (slot & LOW) - 1
            desk[founds + i] = row
            if row >= 0:
                prefetch(rows, row * a.ROW_SIZE)
    for number in range(first, last):
        i = U(number)
        if staged[i, a.KIND] <= a.TOMBSTONE and desk[founds + i] >= 0:
            key_at = rows[U(desk[founds + i]), a.KEY_AT]
            prefetch(arena, key_at)
            if staged[i, a.KEY_SIZE] > a.CACHE_LINE - a.SIZE_BYTES:
                prefetch(arena, key_at + a.CACHE_LINE)


@inlined
def row_of(
    desk: Any, slots: Any, rows: Any, groups: Any, arena: Any, cold: Any, staged: Any, data: Any, i: Any, place: Any
) -> Any:  # fmt: skip
    """The row of a staged record's key, taken in if it is new; else what `intern` says."""
    start, size = staged[U(i), a.KEY], staged[U(i), a.KEY_SIZE]
    row = desk[U(a.FOUND + place)]
    if row >= 0 and is_at(arena, rows[U(row), a.KEY_AT], data, start, size):
        return row
    found = desk[U(a.HASHES + place)]
    row = find_row(slots, rows, arena, data, start, size, found)
    if row >= 0:
        return row
    number = be16(data, start)
    if number >= a.KEY_TYPES:
        member_type = newer.TYPES[number, newer.OF_MEMBER]
        return intern_newer(desk, slots, rows, groups, arena, cold, data, start, size, found, member_type)
    known = desk[a.GROUPS]
    row = intern(desk, slots, rows, groups, arena, cold, data, start, size, found)
    if desk[a.GROUPS] > known:
        groups[known, a.FIRST_OFFSET_OF_GROUP] = staged[U(i), a.OFFSET]
    return row


@inlined
def _replay_group(desk: Any, rows: Any, groups: Any, cold: Any, row: Any, staged: Any, i: Any, data: Any) -> Any:
    """A staged record of a group; False without room."""
    batch, index, record_offset = staged[i, a.STAGED_BATCH], staged[i, a.STAGED_INDEX], staged[i, a.OFFSET]
    is_value = staged[i, a.KIND] == a.VALUE
    if rows[row, a.TARGET] == a.IS_NEWER:
        number, value, size = be16(data, staged[i, a.KEY]), staged[i, a.VALUE_AT], staged[i, a.VALUE_SIZE]
        return newer.replay_newer(
            desk, rows, groups, cold, row, number, is_value, record_offset, batch, index, data, value, size
        )
    group = rows[row, a.GROUP]
    if groups[group, a.NEWER_FLAGS] & newer.READ_AGAIN:
        return newer.keep(desk, groups, cold, group, is_value, record_offset, batch, index)
    groups[group, a.METADATA_OFFSET] = record_offset
    groups[group, a.METADATA_BATCH] = batch
    groups[group, a.METADATA_INDEX] = index
    groups[group, a.IS_TOMBSTONE] = not is_value
    if groups[group, a.NEWER_KIND] != 0:
        groups[group, a.NEWER_FLAGS] |= newer.WHOLE
    return True


@inlined
def _note_staged_id(desk: Any, cold: Any, row: Any, staged: Any, i: Any, data: Any) -> Any:
    """The topic id of a staged record, if it has one; False without room."""
    topic_id = staged[i, a.TOPIC_ID_AT]
    if topic_id < 0:
        return True
    high, low = be64(data, topic_id), be64(data, topic_id + 8)
    return (high == 0 and low == 0) or note_topic_id(desk, cold, row, high, low, staged[i, a.OFFSET])


@part
def flush(desk: Any, slots: Any, rows: Any, groups: Any, arena: Any, cold: Any, staged: Any, data: Any) -> Any:
    """Replay what is staged, from where it was left: DONE, FULL or DOUBTFUL_KEY (of the record ``FLUSHED``)."""
    rules = desk[a.RULES]
    while desk[a.FLUSHED] < desk[a.STAGED]:
        first = desk[a.FLUSHED]
        last = min(first + a.BLOCK, desk[a.STAGED])
        prepare(desk, slots, rows, arena, data, staged, first, last)
        for number in range(first, last):
            desk[a.FLUSHED] = number
            i = U(number)
            kind = staged[i, a.KIND]
            record_offset = staged[i, a.OFFSET]
            if kind > a.TOMBSTONE:
                producer = staged[i, a.STAGED_PRODUCER]
                if kind != a.PASSED and not mark(
                    desk, rows, cold, producer, np.int64(kind == a.COMMIT), record_offset, rules
                ):
                    return FULL
                continue
            row = row_of(desk, slots, rows, groups, arena, cold, staged, data, number, number - first)
            if row < 0:
                return FULL if row == NEEDS_ROOM else DOUBTFUL_KEY
            staged[i, STAGED_ROW] = row
            batch, index = staged[i, a.STAGED_BATCH], staged[i, a.STAGED_INDEX]
            if rows[U(row), a.TARGET] < 0:
                if not _replay_group(desk, rows, groups, cold, row, staged, i, data):
                    return FULL
                continue
            row = rows[U(row), a.TARGET]
            if not _note_staged_id(desk, cold, row, staged, i, data):
                return FULL
            producer = staged[i, a.STAGED_PRODUCER]
            if not replay_offset(
                desk, rows, groups, cold, row, kind == a.VALUE, record_offset, batch, index, producer, rules
            ):
                return FULL
        desk[a.FLUSHED] = last
    desk[a.STAGED] = 0
    desk[a.FLUSHED] = 0
    return DONE


@kernel
def scan(
    desk: Longs, slots: Longs, rows: LongRows, groups: LongRows, arena: Bytes, cold: Longs, staged: LongRows,
    data: Bytes, window: Bytes, table: LongRows,
) -> Any:  # fmt: skip
    """Replay a segment from ``desk[AT]`` on; why it came back, with what all that is staged was replayed."""
    begin = desk[a.AT]
    outcome = np.int64(sc.GO_ON)
    while outcome == sc.GO_ON:
        outcome = sc.stage(desk, cold, staged, data, window, table, begin)
        source = window if desk[a.IN_WINDOW] else data
        count = desk[a.STAGED]
        flushed = flush(desk, slots, rows, groups, arena, cold, staged, source)
        if flushed != DONE:
            return sc.NEEDS_ROOM if flushed == FULL else sc.DOUBTFUL_KEY
        if desk[a.IS_SURVEYED]:
            census.count(desk, cold, staged, source, data, count)
        if desk[a.IS_INSPECTED]:
            inspection.count(desk, cold, staged, source, data, count)
        outcome = sc.outcome_of(desk, begin, outcome)
    return outcome
