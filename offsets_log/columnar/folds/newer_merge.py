"""Joining what `newer` knows of two neighbouring pieces of a log, before `merge` joins the rest."""

from __future__ import annotations

from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar.folds.newer import (
    ABSENT,
    ACTION,
    CURRENT,
    ENDED,
    EPOCH_GONE,
    GONE,
    HAS_NO_TARGET,
    HAS_TARGET,
    LIVE,
    MEMBER,
    NAMES,
    PHASE,
    PRESENT,
    TYPES,
    UNKNOWN,
    WHOLE,
    make_whole,
    owned_entry,
    tell,
)
from offsets_log.columnar.jit.compiled import inlined, kernel, part
from offsets_log.columnar.jit.kinds import LongRows, Number
from offsets_log.columnar.jit.records import Table
from offsets_log.columnar.overflow import More, more_at, owned_at, told_at
from offsets_log.columnar.wire.primitives import be16


@inlined
def link_member(rows: Table[a.Row], row: Any, right_rows: Table[a.Row], i: Any, numbers: Any) -> None:
    """Tell a new row of a key of a newer kind, which is row ``i`` of the right piece, its member's own key."""
    if rows[row].target == a.IS_NEWER:
        member = right_rows[i].member
        rows[row].member = numbers[0, member] if member != i else row


@inlined
def _join_presence(more: More, right_more: More) -> Any:
    """Join which records need a member that does not exist; return the bits that tell whether it does."""
    exists = more.state & (PRESENT | ABSENT)
    needed, missed = right_more.needed, right_more.missed
    if not exists and more.needed == 0:
        more.needed = needed
    if exists & ABSENT and needed != 0:
        missed = needed
    if more.missed == 0:
        more.missed = missed
    later = right_more.state & (PRESENT | ABSENT)
    return later if later else exists


@inlined
def _joined_state(earlier: Any, later: Any) -> Any:
    """Return what is known of a member after two pieces; −1 if that is not plain."""
    before, phase = earlier & PHASE, later & PHASE
    targets = HAS_TARGET | HAS_NO_TARGET
    kept = (later if later & targets else earlier) & targets
    if phase == UNKNOWN:
        return before | kept
    is_plain = before <= LIVE or (before == GONE and phase == GONE)
    return phase | kept if is_plain else np.int64(-1)


@inlined
def _take_anchor(groups: Table[a.Group], group: Any, right_groups: Table[a.Group], i: Any) -> None:
    groups[group].anchor_offset = right_groups[i].anchor_offset
    groups[group].anchor_batch = right_groups[i].anchor_batch
    groups[group].anchor_index = right_groups[i].anchor_index


@part
def join_newer_groups(groups: Table[a.Group], group: Any, right_groups: Table[a.Group], i: Any) -> None:
    """Join what the right piece knows of newer kinds' records of a group, before its type 2 records."""
    has_metadata = right_groups[i].metadata_offset != a.NEVER
    if right_groups[i].newer_kind == 0:
        if groups[group].newer_kind != 0 and has_metadata:
            make_whole(groups, group)
        return
    value_before = right_groups[i].value_before
    if groups[group].newer_kind == 0:
        groups[group].newer_kind = right_groups[i].newer_kind
        groups[group].newer_since = right_groups[i].newer_since
        groups[group].newer_last = right_groups[i].newer_last
        groups[group].newer_flags = right_groups[i].newer_flags
        _take_anchor(groups, group, right_groups, i)
        if not has_metadata and groups[group].value_offset > groups[group].metadata_offset:
            value_before = groups[group].value_offset
        groups[group].value_before = value_before
        return
    flags = groups[group].newer_flags
    is_unanchored = groups[group].anchor_offset == a.NEVER
    has_offset = value_before != a.NEVER or groups[group].value_offset > groups[group].newer_since
    if (
        has_metadata
        or groups[group].newer_kind != right_groups[i].newer_kind
        or flags & (ENDED | EPOCH_GONE) != 0
        or groups[group].newer_last >= right_groups[i].newer_since
        or (is_unanchored and has_offset)
    ):
        flags |= WHOLE
    if is_unanchored:
        _take_anchor(groups, group, right_groups, i)
    groups[group].newer_last = right_groups[i].newer_last
    groups[group].newer_flags = flags | right_groups[i].newer_flags


@part
def join_newer_row(arrays: a.Arrays, right: a.Arrays, i: Any, row: Any, records_before: Any) -> None:
    """Join the right piece's last record of a key, after the partitions of its members."""
    rows, right_rows = arrays.rows, right.rows
    number = be16(arrays.arena, rows[row].key_at)
    more, right_more = more_at(arrays, row), more_at(right, i)
    if TYPES[number, ACTION] == MEMBER:
        exists = _join_presence(more, right_more)
        state = _joined_state(more.state, right_more.state)
        if state < 0:
            make_whole(arrays.groups, rows[row].group)
        more.state = max(state, 0) | exists
    if right_rows[i].last_offset == a.NEVER:
        return
    if TYPES[number, NAMES]:
        if rows[row].last_offset != a.NEVER and rows[row].is_removed == 0:
            tell(arrays, row)
        more.turn = 0  # hashed with another seed
    if TYPES[number, ACTION] == CURRENT and more.first_turn == 0:
        more.first_turn = right_more.first_turn
    batch = right_rows[i].batch
    rows[row].last_offset = right_rows[i].last_offset
    rows[row].batch = batch
    rows[row].index = right_rows[i].index + (records_before if batch == a.SLOW_PATH else np.int64(0))
    rows[row].is_removed = right_rows[i].is_removed


@part
def join_owned(arrays: a.Arrays, right: a.Arrays, numbers: Any) -> None:
    """Join partitions that the right piece's members took; their first record gave back what they held before."""
    for i in range(right.scan_state.owned):
        theirs = owned_at(right, i)
        group = numbers[1, theirs.group]
        number = owned_entry(arrays, group, theirs.high, theirs.low, theirs.partition)
        entry = owned_at(arrays, number)
        owner, first = entry.owner, theirs.first_owner
        if owner >= 0 and entry.owner_turn == more_at(arrays, owner).turn:
            given_back = more_at(arrays, owner).given_back
            is_later = given_back == 0 or given_back - 1 > theirs.first_owned
            if owner != numbers[0, first] and is_later:
                make_whole(arrays.groups, group)
        if entry.first_owner == a.NOTHING:
            entry.first_owner = numbers[0, first]
            entry.first_owned = theirs.first_owned
        right_owner = theirs.owner
        right_turn = more_at(right, right_owner).turn
        entry.owner = numbers[0, right_owner]
        entry.owner_turn = a.NOTHING if theirs.owner_turn == right_turn else np.int64(0)


@part
def _mark_turns(arrays: a.Arrays, right: a.Arrays, numbers: Any, is_begin: Any) -> None:
    """Note for each member where the right piece's first record of what it has stands; afterwards count its turns."""
    for i in range(right.scan_state.row_count):
        if right.rows[i].target != a.IS_NEWER:
            continue
        row = numbers[0, i]
        if TYPES[be16(arrays.arena, arrays.rows[row].key_at), ACTION] != CURRENT:
            continue
        more = more_at(arrays, row)
        if is_begin:
            more.given_back = more_at(right, i).first_turn
        else:
            more.turn += 1
            more.given_back = 0


@kernel
def join_newer(arrays: a.Arrays, right: a.Arrays, numbers: LongRows, records_before: Number) -> None:
    """Join records of newer kinds of the right piece, before those of other types; there is room.

    Args:
        numbers: see `merge.number_all`.
        records_before: records read on the slow path of the left piece: the right one's are numbered behind them.
    """
    right_scan_state, right_groups = right.scan_state, right.groups
    scan_state, groups = arrays.scan_state, arrays.groups
    for i in range(right_scan_state.group_count):
        group = numbers[1, i]
        is_new = groups[group].newer_kind == 0
        join_newer_groups(groups, group, right_groups, np.int64(i))
        is_taken = is_new or groups[group].anchor_offset == right_groups[i].anchor_offset
        if is_taken and groups[group].anchor_batch == a.SLOW_PATH:
            groups[group].anchor_index += records_before
    _mark_turns(arrays, right, numbers, True)
    join_owned(arrays, right, numbers)
    _mark_turns(arrays, right, numbers, False)
    for i in range(scan_state.owned):
        entry = owned_at(arrays, np.int64(i))
        if entry.owner_turn == a.NOTHING:
            entry.owner_turn = more_at(arrays, entry.owner).turn
    for i in range(right_scan_state.row_count):
        if right.rows[i].target == a.IS_NEWER:
            join_newer_row(arrays, right, np.int64(i), numbers[0, i], records_before)
    for i in range(right_scan_state.told):
        theirs = told_at(right, i)
        told = told_at(arrays, scan_state.told)
        batch = theirs.batch
        told.offset = theirs.offset
        told.batch = batch
        told.index = theirs.index + (records_before if batch == a.SLOW_PATH else np.int64(0))
        scan_state.told += 1
