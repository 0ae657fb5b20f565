"""Records of the newer kinds of groups: of each key the last one, as long as the others cannot matter.

What these records do is told by `replay.groups` alone, which folds a group's timeline at the end. So that the timeline
holds distinct keys and not records, a record gives way to the next of its key. That changes nothing where members come
and go as coordinators write it; a group with anything else in it is *whole*: all its records are read again.

What is asked of a group, so that the last records of its keys fold to what all of them fold to, and no record among
those that gave way ended a load:

* Its records are of one kind, behind a type 2 record or none. One value, the *anchor*, is kept, if possible none that
  says what a member has: from there on the group exists.
* A member is removed by the tombstones of what it has, shall get and is, in this order, and comes back with what it is
  and has.
* Behind the tombstone of the target assignment's epoch no value and no target follows, behind the group's nothing.
* Partitions of a consumer group's members have one owner at a time (``J-20``).

Pieces of a log know nothing of each other: what only an earlier piece can tell is asked when they are joined.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar.jit.compiled import inlined, kernel, part
from offsets_log.columnar.jit.kinds import Number
from offsets_log.columnar.jit.records import Table
from offsets_log.columnar.overflow import kept_at, more_at, owned_at, told_at
from offsets_log.columnar.scan.interner import HIGH, LOW, find_owned_slot
from offsets_log.columnar.wire.primitives import be16, be32, be64, hash_bytes, uvarint, walk
from offsets_log.messages.schema import INT32, UUID, ArrayOf, Message, Struct, WireType
from offsets_log.replay import groups as rules
from offsets_log.replay.group import CONSUMER, SHARE, STREAMS
from offsets_log.replay.profile import RELEASES, Profile
from offsets_log.replay.topic_names import NAMING_TYPES

EXISTENCE, METADATA, MEMBER, TARGET_METADATA, TARGET, CURRENT, OTHER = range(7)
ACTIONS: dict[Any, int] = {
    rules.replay_existence: EXISTENCE,
    rules.replay_metadata: METADATA,
    rules.replay_member: MEMBER,
    rules.replay_target_metadata: TARGET_METADATA,
    rules.replay_target_member: TARGET,
    rules.replay_current: CURRENT,
    rules.replay_regular_expression: OTHER,
    rules.replay_topology: OTHER,
}
KINDS = {CONSUMER: 1, SHARE: 2, STREAMS: 3}
OWNING = KINDS[CONSUMER]
NO_KIND = 4
"""Kind of a group that is read again anyway."""
OWNING_TYPE = 8
OWNED_NOTES = ("assigned_partitions", "partitions_pending_revocation")
"""Fields of a value that says what a member of a consumer group has: the first notes of its program."""


def can_own(layout: Message) -> bool:
    """Return whether a layout has its partitions as `_take_list` reads them: topic id, partitions, tagged fields."""
    lists = [row.type for row in layout.fields if row.name in OWNED_NOTES and row.tag is None and not row.nullable]
    return layout.is_flexible(0) and [parts_of(kind) for kind in lists] == [(UUID, (INT32,))] * len(OWNED_NOTES)


def parts_of(kind: WireType) -> tuple[Any, ...] | None:
    """Return the types of the plain fields of a list's elements, of a list in it as a tuple; None of anything else."""
    if not isinstance(kind, ArrayOf) or not isinstance(kind.element, Struct):
        return None
    rows = [row for row in kind.element.fields if row.tag is None]
    types = [(row.type.element,) if isinstance(row.type, ArrayOf) else row.type for row in rows]
    return None if any(row.nullable for row in rows) else tuple(types)


# Columns of ``TYPES``, one row a record type.
ACTION, KIND, NAMES, OF_MEMBER, OPTIONAL, TYPE_COLUMNS = range(6)


def _types() -> a.Int64s:
    """Return what the kernels know of the record types, by the rules' own branches."""
    types = np.full((a.RECORD_TYPES, TYPE_COLUMNS), a.NOTHING, np.int64)
    actions = {number: ACTIONS[branch.replay] for number, branch in rules.BRANCHES.items()}
    member_types = {branch.kind: n for n, branch in rules.BRANCHES.items() if actions[n] == MEMBER}
    for number, branch in rules.BRANCHES.items():
        is_of_member = actions[number] in (MEMBER, TARGET, CURRENT)
        member_type = member_types[branch.kind] if is_of_member else a.NOTHING
        is_optional = any(_is_skipped_alone(number, branch.kind, profile) for profile in RELEASES.values())
        types[number] = actions[number], KINDS[branch.kind], number in NAMING_TYPES, member_type, is_optional
    return types


def _is_skipped_alone(number: int, kind: str, profile: Profile) -> bool:
    """Return whether a release skips records of a type, but not all of that kind of groups."""
    of_kind = {other for other, branch in rules.BRANCHES.items() if branch.kind == kind}
    return number not in profile.known_types and bool(of_kind & profile.known_types)


TYPES = _types()
MEMBER_TYPES = np.flatnonzero(TYPES[:, ACTION] == MEMBER)
HEADS, EPOCHS = (np.flatnonzero(TYPES[:, ACTION] == action).tolist() for action in (METADATA, TARGET_METADATA))
"""The types of a group's epoch and of its target assignment's, by kind."""

# Bits of `Group.newer_flags`.
WHOLE, ENDED, EPOCH_GONE, TOMBSTONE_SEEN, ANCHOR_IS_CURRENT, READ_AGAIN = 1, 2, 4, 8, 16, 32

# What is known of a member, in `More.state` of its own key: a phase, and bits for its target and whether it exists.
UNKNOWN, LIVE, LEAVING, GONE, BACK = range(5)
PHASE = 7
BETWEEN = (LEAVING, BACK)
HAS_TARGET, HAS_NO_TARGET = 8, 16
PRESENT, ABSENT = 32, 64


@inlined
def make_whole(groups: Table[a.Group], group: Any) -> None:
    """Have all records of a group read again."""
    groups[group].newer_flags |= WHOLE


@part
def owned_entry(arrays: a.Arrays, group: Any, high: Any, low: Any, partition: Any) -> Any:
    """Return the number of a partition; the group of a new one is 0. The caller has made sure of room."""
    overflow = arrays.overflow
    at, found = find_owned_slot(arrays, group, high, low, partition)
    if overflow[at] != 0:
        return (overflow[at] & LOW) - 1
    number = arrays.scan_state.owned
    arrays.scan_state.owned = number + 1
    overflow[at] = found & HIGH | number + 1
    entry = owned_at(arrays, number)
    entry.group = group
    entry.high = high
    entry.low = low
    entry.partition = partition
    entry.owner = a.NOTHING
    entry.first_owner = a.NOTHING
    return number


@inlined
def _take(arrays: a.Arrays, group: Any, row: Any, turn: Any, record_offset: Any, number: Any) -> Any:
    """Let a member take a partition; return False if that is not plain."""
    entry = owned_at(arrays, number)
    owner = entry.owner
    if owner >= 0:
        if owner == row and entry.owner_turn == turn:
            return False
        if owner != row and entry.owner_turn == more_at(arrays, owner).turn:
            return False
    if entry.first_owner == a.NOTHING:
        entry.first_owned = record_offset
        entry.first_owner = row
    entry.owner = row
    entry.owner_turn = turn
    return True


@part
def _take_list(
    arrays: a.Arrays, group: Any, row: Any, turn: Any, record_offset: Any, data: Any, at: Any, end: Any
) -> Any:
    """Let a member take the partitions of a list that a program has read; return False if that is not plain."""
    count, at = uvarint(data, at, end)
    for _ in range(count - 1):
        high, low = be64(data, at), be64(data, at + 8)
        partitions, at = uvarint(data, at + 16, end)
        for _ in range(partitions - 1):
            number = owned_entry(arrays, group, high, low, be32(data, at))
            if not _take(arrays, group, row, turn, record_offset, number):
                return False
            at += 4
        tags, at = uvarint(data, at, end)
        for _ in range(tags):
            _, at = uvarint(data, at, end)
            size, at = uvarint(data, at, end)
            at += size
    return True


@inlined
def _need_member(arrays: a.Arrays, member: Any, record_offset: Any) -> None:
    """Note a record that must find its member before 4.0."""
    more = more_at(arrays, member)
    if more.state & PRESENT:
        return
    if more.state & ABSENT:
        more.missed = more.missed if more.missed != 0 else record_offset + 1
    else:
        more.needed = more.needed if more.needed != 0 else record_offset + 1


@part
def _replay_current(
    arrays: a.Arrays, row: Any, number: Any, is_value: Any, record_offset: Any, data: Any, value: Any, size: Any
) -> None:
    """Replay a record of what a member has."""
    scan_state, rows, groups = arrays.scan_state, arrays.rows, arrays.groups
    group, member = rows[row].group, more_at(arrays, rows[row].member)
    _need_member(arrays, rows[row].member, record_offset)
    phase = member.state & PHASE
    if is_value:
        if phase == LEAVING:
            make_whole(groups, group)
        phase = np.int64(LIVE)
    else:
        if phase == BACK:
            make_whole(groups, group)
        phase = np.int64(GONE if phase == GONE else LEAVING)
    member.state = member.state & ~PHASE | phase
    more = more_at(arrays, row)
    turn = more.turn + 1
    more.turn = turn
    if more.first_turn == 0:
        more.first_turn = record_offset + 1
    if is_value and TYPES[number, KIND] == OWNING:
        end = value + size
        walk(scan_state, scan_state.value_programs[number, be16(data, value)], data, value + 2, end)
        first, second = scan_state.notes[0], scan_state.notes[1]
        is_plain = _take_list(arrays, group, row, turn, record_offset, data, first, end)
        if not is_plain or not _take_list(arrays, group, row, turn, record_offset, data, second, end):
            make_whole(groups, group)


@inlined
def _replay_member(arrays: a.Arrays, row: Any, is_value: Any, record_offset: Any) -> None:
    """Replay a record of what a member is."""
    group, member = arrays.rows[row].group, more_at(arrays, row)
    phase = member.state & PHASE
    if is_value:
        if phase == LEAVING:
            make_whole(arrays.groups, group)
        phase = np.int64(BACK if phase >= GONE else LIVE)
    else:
        _need_member(arrays, row, record_offset)
        if phase != GONE and (phase != LEAVING or not member.state & HAS_NO_TARGET):
            make_whole(arrays.groups, group)
        phase = np.int64(GONE)
    exists = np.int64(PRESENT if is_value else ABSENT)
    member.state = member.state & ~(PHASE | PRESENT | ABSENT) | phase | exists


@inlined
def _replay_action(
    arrays: a.Arrays, row: Any, number: Any, is_value: Any, record_offset: Any, data: Any, value: Any, size: Any
) -> None:
    group, action = arrays.rows[row].group, TYPES[number, ACTION]
    if action == CURRENT:
        _replay_current(arrays, row, number, is_value, record_offset, data, value, size)
    elif action == MEMBER:
        _replay_member(arrays, row, is_value, record_offset)
    elif action == TARGET:
        member = more_at(arrays, arrays.rows[row].member)
        member.state = member.state & ~(HAS_TARGET | HAS_NO_TARGET) | (HAS_TARGET if is_value else HAS_NO_TARGET)
    elif not is_value and action == TARGET_METADATA:
        arrays.groups[group].newer_flags |= EPOCH_GONE
    elif not is_value and action == METADATA:
        arrays.groups[group].newer_flags |= ENDED


@part
def _enter_group(groups: Table[a.Group], group: Any, number: Any, is_value: Any, place: a.Place) -> None:
    """Note what any record of a newer kind does to its group."""
    action, kind, flags = TYPES[number, ACTION], TYPES[number, KIND], groups[group].newer_flags
    record_offset = place.record_offset
    if groups[group].newer_kind == 0:
        groups[group].newer_kind = kind
        groups[group].newer_since = record_offset
        if groups[group].value_offset > groups[group].metadata_offset:
            groups[group].value_before = groups[group].value_offset
    else:
        has_offset_between = (
            groups[group].anchor_offset == a.NEVER and groups[group].value_offset > groups[group].newer_since
        )
        is_behind_epoch = flags & EPOCH_GONE != 0 and (is_value or action == TARGET)
        if (
            groups[group].newer_kind != kind
            or record_offset <= groups[group].newer_last
            or flags & ENDED != 0
            or is_behind_epoch
            or has_offset_between
        ):
            flags |= WHOLE
    groups[group].newer_last = record_offset
    if not is_value:
        flags |= TOMBSTONE_SEEN
    elif groups[group].anchor_offset == a.NEVER or (
        flags & ANCHOR_IS_CURRENT != 0 and flags & TOMBSTONE_SEEN == 0 and action != CURRENT
    ):
        groups[group].anchor_offset = record_offset
        groups[group].anchor_batch = place.batch
        groups[group].anchor_index = place.record_index
        flags = flags & ~ANCHOR_IS_CURRENT | (ANCHOR_IS_CURRENT if action == CURRENT else 0)
    groups[group].newer_flags = flags


@inlined
def tell(arrays: a.Arrays, row: Any) -> None:
    """Keep a record with names of topics, whose key has a later one; there is room."""
    rows = arrays.rows
    told = told_at(arrays, arrays.scan_state.told)
    told.offset = rows[row].last_offset
    told.batch = rows[row].batch
    told.index = rows[row].index
    arrays.scan_state.told += 1


@inlined
def _keep(arrays: a.Arrays, group: Any, place: a.Place) -> None:
    kept = kept_at(arrays, arrays.scan_state.kept)
    kept.group = group
    kept.offset = place.record_offset
    kept.batch = place.batch
    kept.index = place.record_index
    arrays.scan_state.kept += 1


@part
def keep(arrays: a.Arrays, group: Any, place: a.Place) -> Any:
    """Keep a record of a group that is read again, behind its offset values; False without room."""
    groups = arrays.groups
    if arrays.scan_state.kept + 2 > arrays.scan_state.kept_room:
        return False
    if groups[group].value_offset != a.NEVER:
        none = np.int64(a.NOTHING)
        _keep(arrays, group, a.Place(groups[group].value_offset, none, none))
        groups[group].value_offset = a.NEVER
    _keep(arrays, group, place)
    return True


@kernel
def keep_one(arrays: a.Arrays, group: Number, record_offset: Number, index: Number) -> Any:
    """Keep a record that was read on the slow path; False without room."""
    return keep(arrays, group, a.Place(record_offset, np.int64(a.SLOW_PATH), index))


@part
def replay_newer(
    arrays: a.Arrays, row: Any, number: Any, is_value: Any, place: a.Place, data: Any, value: Any, size: Any
) -> Any:
    """Replay a record of a newer kind of group; return False, with nothing done, without room."""
    scan_state, rows, groups = arrays.scan_state, arrays.rows, arrays.groups
    if groups[rows[row].group].newer_flags & READ_AGAIN:
        return keep(arrays, rows[row].group, place)
    most = scan_state.owned + max(size, 0) // 4
    if most > scan_state.owned_room or scan_state.told >= scan_state.told_room:
        return False
    group = rows[row].group
    if scan_state.is_inspected and TYPES[number, OPTIONAL] and groups[group].anchor_offset == a.NEVER:
        make_whole(groups, group)  # what makes the group is not the same by all rules
    _enter_group(groups, group, number, is_value, place)
    _replay_action(arrays, row, number, is_value, place.record_offset, data, value, size)
    if TYPES[number, NAMES]:
        more = more_at(arrays, row)
        found = hash_bytes(data, value, size, scan_state.seed) if is_value else np.int64(0)
        has_names = rows[row].last_offset != a.NEVER and rows[row].is_removed == 0
        if has_names and more.turn != found:
            tell(arrays, row)
        more.turn = found
    rows[row].last_offset = place.record_offset
    rows[row].batch = place.batch
    rows[row].index = place.record_index
    rows[row].is_removed = not is_value
    return True
