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
    commit_value,
    end_values,
    mark,
    note_topic_id,
    open_record,
)
from offsets_log.columnar.jit.compiled import inlined, kernel
from offsets_log.columnar.jit.kinds import LongRows, Longs, Number
from offsets_log.columnar.jit.records import Table
from offsets_log.columnar.overflow import cancelled_at, more_at, named_at, opened_at, producer_at
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
def number_all(arrays: a.Arrays, right: a.Arrays, numbers: LongRows) -> Any:
    """Find the left numbers of the right rows, groups and producers; False asks to be called again with more room.

    Args:
        numbers: int64[3, n], NOT_YET where there is none yet.
    """
    right_scan_state, right_rows, right_arena = right.scan_state, right.rows, right.arena
    for i in range(right_scan_state.group_count):
        if numbers[1, i] == NOT_YET:
            at = right.groups[i].name_at
            size = size_of(right_arena, at)
            if not has_room(arrays, size):
                return False
            numbers[1, i] = intern_group(arrays, right_arena, at, size)
    for i in range(right_scan_state.row_count):
        if numbers[0, i] == NOT_YET:
            at = right_rows[i].key_at
            size = size_of(right_arena, at)
            if not has_room(arrays, size):
                return False
            found = hash_bytes(right_arena, at, size, arrays.scan_state.seed)
            row = find_row(arrays.slots, arrays.rows, arrays.arena, right_arena, at, size, found)
            if row < 0:
                target = right_rows[i].target
                target = target if target < 0 else numbers[0, target] if target != i else np.int64(ITSELF)
                key_at = put(arrays, right_arena, at, size)
                row = add_row(arrays, found, key_at, target, numbers[1, right_rows[i].group])
                link_member(arrays.rows, row, right_rows, np.int64(i), numbers)
            numbers[0, i] = row
    for i in range(right_scan_state.producer_count):
        producer_id = producer_at(right, i).producer_id
        numbers[2, i] = intern_producer(arrays, producer_id)
        if numbers[2, i] < 0:
            return False
    return True


@inlined
def _join_group(groups: Table[a.Group], group: Any, right_groups: Table[a.Group], right: Any) -> None:
    """Join what both pieces know of a group."""
    ours, theirs = groups[group], right_groups[right]
    if theirs.metadata_offset != a.NEVER:
        ours.metadata_offset = theirs.metadata_offset
        ours.metadata_batch = theirs.metadata_batch
        ours.metadata_index = theirs.metadata_index
        ours.is_tombstone = theirs.is_tombstone
    ours.value_offset = max(ours.value_offset, theirs.value_offset)
    if ours.first_offset == a.NEVER:
        ours.first_offset = theirs.first_offset


@kernel
def join_rows(arrays: a.Arrays, right: a.Arrays, numbers: LongRows, values_before: Number) -> None:
    """Join groups, tombstones and committed offsets of the right piece; there is room for all its names.

    Args:
        values_before: values read on the slow path of the left piece: the right one's are numbered behind them.
    """
    right_scan_state, right_rows = right.scan_state, right.rows
    for i in range(right_scan_state.group_count):
        _join_group(arrays.groups, numbers[1, i], right.groups, i)
    for i in range(right_scan_state.named):
        theirs = named_at(right, i)
        row = numbers[0, theirs.row]
        high, low = theirs.high, theirs.low
        note_topic_id(arrays, row, high, low, theirs.offset)
    for i in range(right_scan_state.row_count):
        if right_rows[i].target != i:
            continue
        row = numbers[0, i]
        if right_rows[i].tombstone_offset != a.NEVER:
            end_values(arrays.rows, row, right_rows[i].tombstone_offset)
        if right_rows[i].record_offset != a.NEVER:
            batch, index = right_rows[i].batch, right_rows[i].index
            index += values_before if batch == a.SLOW_PATH else np.int64(0)
            place = a.Place(right_rows[i].record_offset, batch, index)
            commit_value(arrays.rows, row, place, right_rows[i].applied_offset)
        more = more_at(right, i)
        high, low = more.topic_high, more.topic_low
        if high != 0 or low != 0:
            note_topic_id(arrays, row, high, low, more.topic_offset)


@kernel
def join_producers(arrays: a.Arrays, right: a.Arrays, numbers: LongRows, values_before: Number, order: Longs) -> None:
    """Join what the right piece cancelled, ended and left open; there is room, also in ``order`` for the open."""
    none = np.int64(0)
    for i in range(right.scan_state.cancelled):
        cancelled = cancelled_at(right, i)
        producer = numbers[2, cancelled.producer]
        row = numbers[0, cancelled.row]
        open_record(arrays, producer, row, a.Place(np.int64(a.NOTHING), none, none), np.int64(1))
    for i in range(right.scan_state.producer_count):
        theirs = producer_at(right, i)
        head_offset = theirs.head_offset
        if head_offset != a.NOTHING:
            mark(arrays, numbers[2, i], theirs.head_commits, head_offset, arrays.scan_state.rules)
        count = 0
        number = theirs.newest
        while number != a.NOTHING:
            order[count] = number
            count += 1
            number = opened_at(right, number).older
        for j in range(count - 1, -1, -1):
            entry = opened_at(right, order[j])
            batch, index = entry.batch, entry.index
            index += values_before if batch == a.SLOW_PATH else none
            row = numbers[0, entry.row]
            place, cancels = a.Place(entry.offset, batch, index), entry.cancels
            open_record(arrays, numbers[2, i], row, place, cancels)


@kernel
def compact_open(arrays: a.Arrays) -> None:
    """Keep only the last open record of every producer and key: the others have no effect any more."""
    scan_state = arrays.scan_state
    for i in range(scan_state.producer_count):
        scan_state.resolution += 1
        owner = producer_at(arrays, i)
        number = owner.newest
        newer = np.int64(a.NOTHING)
        while number != a.NOTHING:
            entry = opened_at(arrays, number)
            older = entry.older
            more = more_at(arrays, entry.row)
            if more.seen_by == scan_state.resolution:
                opened_at(arrays, newer).older = older
                entry.older = scan_state.free
                scan_state.free = number
                scan_state.open_count -= 1
            else:
                more.seen_by = scan_state.resolution
                newer = number
            number = older
        owner.oldest = newer
