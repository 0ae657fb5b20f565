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
from offsets_log.columnar.jit.kinds import Bytes, LongRows, Longs, Number
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
def number_all(
    scan_state: a.ScanState, slots: Longs, rows: Table[a.Row], groups: Table[a.Group], arena: Bytes, overflow: Longs,
    right_scan_state: a.ScanState, right_rows: Table[a.Row], right_groups: Table[a.Group], right_arena: Bytes,
    right_overflow: Longs, numbers: LongRows,
) -> Any:  # fmt: skip
    """Find the left numbers of the right rows, groups and producers; False asks to be called again with more room.

    Args:
        numbers: int64[3, n], NOT_YET where there is none yet.
    """
    for i in range(right_scan_state.group_count):
        if numbers[1, i] == NOT_YET:
            at = right_groups[i].name_at
            size = size_of(right_arena, at)
            if not has_room(scan_state, slots, rows, groups, arena, size):
                return False
            numbers[1, i] = intern_group(scan_state, groups, arena, overflow, right_arena, at, size)
    for i in range(right_scan_state.row_count):
        if numbers[0, i] == NOT_YET:
            at = right_rows[i].key_at
            size = size_of(right_arena, at)
            if not has_room(scan_state, slots, rows, groups, arena, size):
                return False
            found = hash_bytes(right_arena, at, size, scan_state.seed)
            row = find_row(slots, rows, arena, right_arena, at, size, found)
            if row < 0:
                target = right_rows[i].target
                target = target if target < 0 else numbers[0, target] if target != i else np.int64(ITSELF)
                key_at = put(scan_state, arena, right_arena, at, size)
                row = add_row(scan_state, slots, rows, found, key_at, target, numbers[1, right_rows[i].group])
                link_member(rows, row, right_rows, np.int64(i), numbers)
            numbers[0, i] = row
    for i in range(right_scan_state.producer_count):
        producer_id = producer_at(right_scan_state, right_overflow, i).producer_id
        numbers[2, i] = intern_producer(scan_state, overflow, producer_id)
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
def join_rows(
    scan_state: a.ScanState, rows: Table[a.Row], groups: Table[a.Group], overflow: Longs, right_scan_state: a.ScanState,
    right_rows: Table[a.Row], right_groups: Table[a.Group], right_overflow: Longs, numbers: LongRows,
    values_before: Number,
) -> None:  # fmt: skip
    """Join groups, tombstones and committed offsets of the right piece; there is room for all its names.

    Args:
        values_before: values read on the slow path of the left piece: the right one's are numbered behind them.
    """
    for i in range(right_scan_state.group_count):
        _join_group(groups, numbers[1, i], right_groups, i)
    for i in range(right_scan_state.named):
        right = named_at(right_scan_state, right_overflow, i)
        row = numbers[0, right.row]
        high, low = right.high, right.low
        note_topic_id(scan_state, overflow, row, high, low, right.offset)
    for i in range(right_scan_state.row_count):
        if right_rows[i].target != i:
            continue
        row = numbers[0, i]
        if right_rows[i].tombstone_offset != a.NEVER:
            end_values(rows, row, right_rows[i].tombstone_offset)
        if right_rows[i].record_offset != a.NEVER:
            batch, index = right_rows[i].batch, right_rows[i].index
            index += values_before if batch == a.SLOW_PATH else np.int64(0)
            record_offset, applied_offset = right_rows[i].record_offset, right_rows[i].applied_offset
            commit_value(rows, row, record_offset, applied_offset, batch, index)
        more = more_at(right_scan_state, right_overflow, i)
        high, low = more.topic_high, more.topic_low
        if high != 0 or low != 0:
            note_topic_id(scan_state, overflow, row, high, low, more.topic_offset)


@kernel
def join_producers(
    scan_state: a.ScanState, rows: Table[a.Row], overflow: Longs, right_scan_state: a.ScanState, right_overflow: Longs,
    numbers: LongRows, values_before: Number, order: Longs,
) -> None:  # fmt: skip
    """Join what the right piece cancelled, ended and left open; there is room, also in ``order`` for the open."""
    none = np.int64(0)
    for i in range(right_scan_state.cancelled):
        cancelled = cancelled_at(right_scan_state, right_overflow, i)
        producer = numbers[2, cancelled.producer]
        row = numbers[0, cancelled.row]
        open_record(scan_state, overflow, producer, row, np.int64(a.NOTHING), none, none, np.int64(1))
    for i in range(right_scan_state.producer_count):
        right = producer_at(right_scan_state, right_overflow, i)
        head_offset = right.head_offset
        if head_offset != a.NOTHING:
            mark(
                scan_state,
                rows,
                overflow,
                numbers[2, i],
                right.head_commits,
                head_offset,
                scan_state.rules,
            )
        count = 0
        number = right.newest
        while number != a.NOTHING:
            order[count] = number
            count += 1
            number = opened_at(right_scan_state, right_overflow, number).older
        for j in range(count - 1, -1, -1):
            entry = opened_at(right_scan_state, right_overflow, order[j])
            batch, index = entry.batch, entry.index
            index += values_before if batch == a.SLOW_PATH else none
            row = numbers[0, entry.row]
            record_offset, cancels = entry.offset, entry.cancels
            open_record(scan_state, overflow, numbers[2, i], row, record_offset, batch, index, cancels)


@kernel
def compact_open(scan_state: a.ScanState, overflow: Longs) -> None:
    """Keep only the last open record of every producer and key: the others have no effect any more."""
    for i in range(scan_state.producer_count):
        scan_state.resolution += 1
        owner = producer_at(scan_state, overflow, i)
        number = owner.newest
        newer = np.int64(a.NOTHING)
        while number != a.NOTHING:
            entry = opened_at(scan_state, overflow, number)
            older = entry.older
            more = more_at(scan_state, overflow, entry.row)
            if more.seen_by == scan_state.resolution:
                opened_at(scan_state, overflow, newer).older = older
                entry.older = scan_state.free
                scan_state.free = number
                scan_state.open_count -= 1
            else:
                more.seen_by = scan_state.resolution
                newer = number
            number = older
        owner.oldest = newer
