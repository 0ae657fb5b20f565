"""Two neighbouring pieces of a log become one: `PartialState.merge`, over arrays.

The right piece's keys, groups and producers get their numbers in the left one's tables (`number_all`); then tombstones
and winners are compared, and of each producer the right piece's head decides what the left one had open (`join_rows`,
`join_producers`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar.folds.newer_merge import link_member
from offsets_log.columnar.folds.offsets import (
    apply_value,
    end_values,
    mark,
    note_topic_id,
    open_record,
    opened_at,
    producer_at,
)
from offsets_log.columnar.jit.compiled import inlined, kernel
from offsets_log.columnar.jit.kinds import Bytes, LongRows, Longs, Number
from offsets_log.columnar.scan.interner import (
    ITSELF,
    add_row,
    find_row,
    has_room,
    intern_group,
    intern_producer,
    put,
    size_of,
)
from offsets_log.columnar.wire.primitives import hash_bytes

NOT_YET = -1


@kernel
def number_all(
    desk: Longs, slots: Longs, rows: LongRows, groups: LongRows, arena: Bytes, cold: Longs, right_desk: Longs,
    right_rows: LongRows, right_groups: LongRows, right_arena: Bytes, right_cold: Longs, numbers: LongRows,
) -> Any:  # fmt: skip
    """Find the left numbers of the right rows, groups and producers; False asks to be called again with more room.

    Args:
        numbers: int64[3, n], NOT_YET where there is none yet.
    """
    for i in range(right_desk[a.GROUPS]):
        if numbers[1, i] == NOT_YET:
            at = right_groups[i, a.NAME_AT]
            size = size_of(right_arena, at)
            if not has_room(desk, slots, rows, groups, arena, size):
                return False
            numbers[1, i] = intern_group(desk, groups, arena, cold, right_arena, at, size)
    for i in range(right_desk[a.ROWS]):
        if numbers[0, i] == NOT_YET:
            at = right_rows[i, a.KEY_AT]
            size = size_of(right_arena, at)
            if not has_room(desk, slots, rows, groups, arena, size):
                return False
            found = hash_bytes(right_arena, at, size, desk[a.SEED])
            row = find_row(slots, rows, arena, right_arena, at, size, found)
            if row < 0:
                target = right_rows[i, a.TARGET]
                target = target if target < 0 else numbers[0, target] if target != i else np.int64(ITSELF)
                key_at = put(desk, arena, right_arena, at, size)
                row = add_row(desk, slots, rows, found, key_at, target, numbers[1, right_rows[i, a.GROUP]])
                link_member(rows, row, right_rows, np.int64(i), numbers)
            numbers[0, i] = row
    for i in range(right_desk[a.PRODUCERS]):
        producer_id = right_cold[producer_at(right_desk, i) + a.PRODUCER_ID]
        numbers[2, i] = intern_producer(desk, cold, producer_id)
        if numbers[2, i] < 0:
            return False
    return True


@inlined
def _join_group(groups: Any, group: Any, right_groups: Any, right: Any) -> None:
    """What both pieces know of a group."""
    if right_groups[right, a.METADATA_OFFSET] != a.NEVER:
        for field in range(a.METADATA_OFFSET, a.IS_TOMBSTONE + 1):
            groups[group, field] = right_groups[right, field]
    groups[group, a.VALUE_OFFSET] = max(groups[group, a.VALUE_OFFSET], right_groups[right, a.VALUE_OFFSET])
    if groups[group, a.FIRST_OFFSET_OF_GROUP] == a.NEVER:
        groups[group, a.FIRST_OFFSET_OF_GROUP] = right_groups[right, a.FIRST_OFFSET_OF_GROUP]


@kernel
def join_rows(
    desk: Longs, rows: LongRows, groups: LongRows, cold: Longs, right_desk: Longs, right_rows: LongRows,
    right_groups: LongRows, right_cold: Longs, numbers: LongRows, values_before: Number,
) -> None:  # fmt: skip
    """Groups, tombstones and committed offsets of the right piece; there is room for all its names.

    Args:
        values_before: values read by hand of the left piece: the right one's are numbered behind them.
    """
    for i in range(right_desk[a.GROUPS]):
        _join_group(groups, numbers[1, i], right_groups, i)
    for i in range(right_desk[a.NAMED]):
        right = right_desk[a.NAMED_AT] + i * a.NAMED_SIZE
        row = numbers[0, right_cold[right + a.NAMED_ROW]]
        high, low = right_cold[right + a.NAMED_HIGH], right_cold[right + a.NAMED_LOW]
        note_topic_id(desk, cold, row, high, low, right_cold[right + a.NAMED_OFFSET])
    for i in range(right_desk[a.ROWS]):
        if right_rows[i, a.TARGET] != i:
            continue
        row = numbers[0, i]
        if right_rows[i, a.TOMBSTONE_OFFSET] != a.NEVER:
            end_values(rows, row, right_rows[i, a.TOMBSTONE_OFFSET], desk[a.RULES])
        if right_rows[i, a.RECORD_OFFSET] != a.NEVER:
            batch, index = right_rows[i, a.BATCH], right_rows[i, a.INDEX]
            index += values_before if batch == a.BY_HAND else np.int64(0)
            record_offset, applied_offset = right_rows[i, a.RECORD_OFFSET], right_rows[i, a.APPLIED_OFFSET]
            apply_value(rows, row, record_offset, applied_offset, batch, index, desk[a.RULES])
        more = right_desk[a.MORE_AT] + i * a.MORE_SIZE
        high, low = right_cold[more + a.TOPIC_HIGH], right_cold[more + a.TOPIC_LOW]
        if high != 0 or low != 0:
            note_topic_id(desk, cold, row, high, low, right_cold[more + a.TOPIC_OFFSET])


@kernel
def join_producers(
    desk: Longs, rows: LongRows, cold: Longs, right_desk: Longs, right_cold: Longs, numbers: LongRows,
    values_before: Number, order: Longs,
) -> None:  # fmt: skip
    """What the right piece cancelled, ended and left open; there is room for all of it, in ``order`` for the open."""
    none = np.int64(0)
    for i in range(right_desk[a.CANCELLED]):
        right = right_desk[a.CANCELLED_AT] + i * a.CANCELLED_SIZE
        producer = numbers[2, right_cold[right + a.CANCELLED_PRODUCER]]
        row = numbers[0, right_cold[right + a.CANCELLED_ROW]]
        open_record(desk, cold, producer, row, np.int64(a.NOTHING), none, none, np.int64(1))
    for i in range(right_desk[a.PRODUCERS]):
        right = producer_at(right_desk, i)
        head_offset = right_cold[right + a.HEAD_OFFSET]
        if head_offset != a.NOTHING:
            mark(desk, rows, cold, numbers[2, i], right_cold[right + a.HEAD_COMMITS], head_offset, desk[a.RULES])
        count = 0
        number = right_cold[right + a.NEWEST]
        while number != a.NOTHING:
            order[count] = opened_at(right_desk, number)
            count += 1
            number = right_cold[opened_at(right_desk, number) + a.OPEN_OLDER]
        for j in range(count - 1, -1, -1):
            entry = order[j]
            batch, index = right_cold[entry + a.OPEN_BATCH], right_cold[entry + a.OPEN_INDEX]
            index += values_before if batch == a.BY_HAND else none
            row = numbers[0, right_cold[entry + a.OPEN_ROW]]
            record_offset, cancels = right_cold[entry + a.OPEN_OFFSET], right_cold[entry + a.OPEN_CANCELS]
            open_record(desk, cold, numbers[2, i], row, record_offset, batch, index, cancels)


@kernel
def compact_open(desk: Longs, cold: Longs) -> None:
    """Of every producer and key keep the last open record only: the others have no effect any more."""
    for i in range(desk[a.PRODUCERS]):
        desk[a.RESOLUTION] += 1
        owner = producer_at(desk, i)
        number = cold[owner + a.NEWEST]
        newer = np.int64(a.NOTHING)
        while number != a.NOTHING:
            entry = opened_at(desk, number)
            older = cold[entry + a.OPEN_OLDER]
            seen = desk[a.MORE_AT] + cold[entry + a.OPEN_ROW] * a.MORE_SIZE + a.SEEN_BY
            if cold[seen] == desk[a.RESOLUTION]:
                cold[opened_at(desk, newer) + a.OPEN_OLDER] = older
                cold[entry + a.OPEN_OLDER] = desk[a.FREE]
                desk[a.FREE] = number
                desk[a.OPEN_COUNT] -= 1
            else:
                cold[seen] = desk[a.RESOLUTION]
                newer = number
            number = older
        cold[owner + a.OLDEST] = newer
