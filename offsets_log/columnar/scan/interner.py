"""Number keys: raw key bytes are hashed, looked up in a table, and decoded once when they are new.

Two raw keys can name one GroupTopicPartition: of type 0 and type 1 (``L-22``), with bytes after the last field
(``records:P4``), with malformed UTF-8 (``B-7``). The *canonical* key is of type 1 with nothing after it; other raw keys
get their own rows, which refer to its row. Names that are not UTF-8 are left to Python, which registers them.

Hash tables hold the upper half of the hash and the number + 1; 0 is free.

Over 400 lines: tables, the kernels that search them, and what Python registers must agree in each column.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.jit.compiled import U, inlined, kernel, part
from offsets_log.columnar.jit.instructions import load64
from offsets_log.columnar.jit.kinds import Bytes, Number
from offsets_log.columnar.overflow import owned_at, producer_at
from offsets_log.columnar.wire.primitives import MULTIPLIER, be16, hash_bytes, walk

GROUP_NOTE, TOPIC_NOTE = 0, 1
HIGH = np.int64(-1 << 32)
LOW = np.int64((1 << 32) - 1)


@inlined
def size_of(arena: Any, at: Any) -> Any:
    """Return the size of the entry in the arena at a position."""
    begin = U(at)
    return np.int64(
        U(arena[begin - U(4)])
        | U(arena[begin - U(3)]) << U(8)
        | U(arena[begin - U(2)]) << U(16)
        | U(arena[begin - U(1)]) << U(24)
    )


@inlined
def _difference(arena: Any, at: Any, data: Any, start: Any) -> Any:
    """Return the differing bits of 32 bytes; 0 if they are equal."""
    return (
        load64(arena, at) ^ load64(data, start)
        | load64(arena, at + 8) ^ load64(data, start + 8)
        | load64(arena, at + 16) ^ load64(data, start + 16)
        | load64(arena, at + 24) ^ load64(data, start + 24)
    )


@inlined
def same_bytes(arena: Any, at: Any, data: Any, start: Any, size: Any) -> Any:
    """Return whether the bytes at both places are the same; the caller has checked the ends."""
    if 32 <= size <= 64:  # most keys: some bytes twice, but no loop whose length cannot be foretold
        last = size - 32
        return _difference(arena, at, data, start) | _difference(arena, at + last, data, start + last) == 0
    i = np.int64(0)
    while i + 8 <= size:
        if load64(arena, at + i) != load64(data, start + i):
            return False
        i += 8
    while i < size:
        if arena[U(at + i)] != data[U(start + i)]:
            return False
        i += 1
    return True


@inlined
def is_at(arena: Any, at: Any, data: Any, start: Any, size: Any) -> Any:
    """Return whether the arena holds exactly these bytes at a position."""
    if size_of(arena, at) != size:
        return False
    return same_bytes(arena, at, data, start, size)


@part
def put(arrays: a.Arrays, data: Any, start: Any, size: Any) -> Any:
    """Copy bytes into the arena; return their position."""
    at = (arrays.scan_state.arena_used + a.CACHE_LINE - 1 & -a.CACHE_LINE) + a.SIZE_BYTES
    for i in range(a.SIZE_BYTES):
        arrays.arena[at - a.SIZE_BYTES + i] = size >> 8 * i & 0xFF
    for i in range(size):
        arrays.arena[U(at + i)] = data[U(start + i)]
    arrays.scan_state.arena_used = at + size
    return at


@part
def find_row(slots: Any, rows: Any, arena: Any, data: Any, start: Any, size: Any, found: Any) -> Any:
    """Return the row of a raw key, or NOT_FOUND; rows are any records with a ``key_at``."""
    mask = np.int64(len(slots) - 1)
    at = found & mask
    while slots[U(at)] != 0:
        if (slots[U(at)] ^ found) & HIGH == 0:
            row = (slots[U(at)] & LOW) - 1
            if is_at(arena, rows[U(row)].key_at, data, start, size):
                return row
        at = at + 1 & mask
    return np.int64(oc.NOT_FOUND)


@part
def add_row(arrays: a.Arrays, found: Any, key_at: Any, target: Any, group: Any) -> Any:
    """Add a row for a key in the arena; the caller has made sure of room."""
    slots, rows = arrays.slots, arrays.rows
    row = arrays.scan_state.row_count
    arrays.scan_state.row_count = row + 1
    mask = np.int64(len(slots) - 1)
    at = found & mask
    while slots[at] != 0:
        at = at + 1 & mask
    slots[at] = found & HIGH | row + 1
    rows[row].key_at = key_at
    rows[row].target = target if target != ITSELF else row
    rows[row].group = group
    rows[row].record_offset = a.NEVER
    rows[row].applied_offset = a.NEVER
    rows[row].tombstone_offset = a.NEVER
    return row


ITSELF = -3
"""Passed instead of a target: the row refers to itself."""


@part
def is_utf8(data: Any, start: Any, size: Any) -> Any:
    """Return whether bytes are UTF-8 as Java and Python accept it: without surrogates or overlong forms."""
    at = start
    end = start + size
    while at < end:
        lead = np.int64(data[U(at)])
        if lead < 0x80:
            at += 1
            continue
        more = 1 if 0xC2 <= lead <= 0xDF else 2 if 0xE0 <= lead <= 0xEF else 3 if 0xF0 <= lead <= 0xF4 else 0
        if more == 0 or more >= end - at:
            return False
        second = np.int64(data[U(at + 1)])
        low = 0xA0 if lead == 0xE0 else 0x90 if lead == 0xF0 else 0x80
        high = 0x9F if lead == 0xED else 0x8F if lead == 0xF4 else 0xBF
        if second < low or second > high:
            return False
        for i in range(2, more + 1):
            if np.int64(data[U(at + i)]) & 0xC0 != 0x80:
                return False
        at += more + 1
    return True


@inlined
def is_plain_text(data: Any, start: Any, size: Any) -> Any:
    """Return whether all bytes are ASCII."""
    bits, i = U(0), np.int64(0)
    while i + 8 <= size:
        bits |= load64(data, start + i)
        i += 8
    while i < size:
        bits |= U(data[U(start + i)])
        i += 1
    return bits & U(0x8080808080808080) == U(0)


@part
def are_names_utf8(data: Any, at: Any, end: Any) -> Any:
    """Return whether all strings of a key are UTF-8; the key consists of strings only and was walked through."""
    while at < end:
        size = be16(data, at)
        if not is_utf8(data, at + 2, size):
            return False
        at += 2 + size
    return True


@part
def _name_slot(arrays: a.Arrays, data: Any, start: Any, size: Any, found: Any) -> Any:
    """Return the index in ``overflow`` of the slot of a name, or of the free one for it."""
    scan_state = arrays.scan_state
    mask = scan_state.group_slots_room - 1
    at = found & mask
    while arrays.overflow[scan_state.group_slots_at + at] != 0:
        slot = arrays.overflow[scan_state.group_slots_at + at]
        group = (slot & LOW) - 1
        if (slot ^ found) & HIGH == 0 and is_at(arrays.arena, arrays.groups[group].name_at, data, start, size):
            break
        at = at + 1 & mask
    return scan_state.group_slots_at + at


@part
def intern_group(arrays: a.Arrays, data: Any, start: Any, size: Any) -> Any:
    """Return the number of a group, new or known; the caller has made sure of room."""
    scan_state, groups, overflow = arrays.scan_state, arrays.groups, arrays.overflow
    found = hash_bytes(data, start, size, scan_state.seed)
    at = _name_slot(arrays, data, start, size, found)
    if overflow[at] != 0:
        return (overflow[at] & LOW) - 1
    group = scan_state.group_count
    scan_state.group_count = group + 1
    overflow[at] = found & HIGH | group + 1
    groups[group].name_at = put(arrays, data, start, size)
    groups[group].metadata_offset = a.NEVER
    groups[group].value_offset = a.NEVER
    groups[group].first_offset = a.NEVER
    groups[group].anchor_offset = a.NEVER
    groups[group].value_before = a.NEVER
    groups[group].active_ms = a.NEVER
    return group


@inlined
def has_room(arrays: a.Arrays, size: Any) -> Any:
    """Return whether there is room for a new key of that size, its canonical form and its group."""
    scan_state = arrays.scan_state
    return (
        2 * (scan_state.row_count + 2) <= len(arrays.slots)
        and scan_state.row_count + 2 <= len(arrays.rows)
        and scan_state.row_count + 2 <= scan_state.more_room
        and 2 * (scan_state.group_count + 1) <= scan_state.group_slots_room
        and scan_state.group_count + 1 <= len(arrays.groups)
        and scan_state.arena_used + 3 * (size + a.CACHE_LINE + a.SIZE_BYTES) <= len(arrays.arena)
    )


@part
def intern(arrays: a.Arrays, data: Any, start: Any, size: Any, found: Any) -> Any:
    """Add a new raw key of type 0, 1 or 2; return its row, KEY_NOT_PLAIN or NEEDS_ROOM."""
    scan_state, arena = arrays.scan_state, arrays.arena
    number = be16(data, start)
    if number < 0 or number >= a.KEY_TYPES:
        return np.int64(oc.KEY_NOT_PLAIN)
    if not has_room(arrays, size):
        return np.int64(oc.NEEDS_ROOM)
    end = walk(scan_state, scan_state.key_programs[number], data, start + 2, start + size)
    if end < 0:
        return np.int64(oc.KEY_NOT_PLAIN)
    group_at = scan_state.notes[GROUP_NOTE] + 2
    topic_at = scan_state.notes[TOPIC_NOTE] + 2
    group_size = be16(data, group_at - 2)
    if not is_utf8(data, group_at, group_size):
        return np.int64(oc.KEY_NOT_PLAIN)
    if number < a.COMMIT_TYPES and not is_utf8(data, topic_at, be16(data, topic_at - 2)):
        return np.int64(oc.KEY_NOT_PLAIN)
    group = intern_group(arrays, data, group_at, group_size)
    target = np.int64(a.IS_GROUP if number == 2 else ITSELF)
    if number == 0 or (number == 1 and end != start + size):
        key_at = put(arrays, data, start, end - start)
        arena[key_at + 1] = 1
        canonical = hash_bytes(arena, key_at, end - start, scan_state.seed)
        target = find_row(arrays.slots, arrays.rows, arena, arena, key_at, end - start, canonical)
        if target < 0:
            target = add_row(arrays, canonical, key_at, np.int64(ITSELF), group)
    key_at = put(arrays, data, start, size)
    return add_row(arrays, found, key_at, target, group)


@part
def intern_newer(arrays: a.Arrays, data: Any, start: Any, size: Any, found: Any, member_type: Any, target: Any) -> Any:
    """Add a new key of a newer kind, and its member's own key; return the row of the first, or NEEDS_ROOM.

    Args:
        member_type: record type of the member's own key, NOTHING for a key without one.
        target: `Row.target` of both.
    """
    scan_state, rows, arena = arrays.scan_state, arrays.rows, arrays.arena
    if not has_room(arrays, size):
        return np.int64(oc.NEEDS_ROOM)
    walk(scan_state, scan_state.key_programs[be16(data, start)], data, start + 2, start + size)
    group_at = scan_state.notes[GROUP_NOTE] + 2
    group = intern_group(arrays, data, group_at, be16(data, group_at - 2))
    key_at = put(arrays, data, start, size)
    member = np.int64(a.NOTHING)
    if member_type >= 0 and member_type != be16(data, start):
        member_at = put(arrays, data, start, size)
        arena[member_at] = member_type >> 8
        arena[member_at + 1] = member_type & 0xFF
        hashed = hash_bytes(arena, member_at, size, scan_state.seed)
        member = find_row(arrays.slots, rows, arena, arena, member_at, size, hashed)
        if member < 0:
            member = add_row(arrays, hashed, member_at, target, group)
            rows[member].member = member
    row = add_row(arrays, found, key_at, target, group)
    rows[row].member = member if member >= 0 else row
    return row


@part
def find_newer(arrays: a.Arrays, data: Any, size: Any, member_type: Any) -> Any:
    """Return the row of a canonical key of a newer kind at the start of ``data``, new or known; NEEDS_ROOM."""
    start = np.int64(0)
    found = hash_bytes(data, start, size, arrays.scan_state.seed)
    row = find_row(arrays.slots, arrays.rows, arrays.arena, data, start, size, found)
    if row >= 0:
        return row
    target = np.int64(a.IS_NEWER)
    return intern_newer(arrays, data, start, size, found, member_type, target)


@kernel
def register(arrays: a.Arrays, data: Bytes, raw_size: Number) -> Any:
    """Add a raw key that Python has read; return its row, or NEEDS_ROOM.

    Args:
        data: the raw key, followed by the canonical one.
    """
    slots, rows, arena = arrays.slots, arrays.rows, arrays.arena
    found = hash_bytes(data, np.int64(0), raw_size, arrays.scan_state.seed)
    row = find_row(slots, rows, arena, data, np.int64(0), raw_size, found)
    if row >= 0:
        return row
    size = len(data) - raw_size
    canonical_found = hash_bytes(data, raw_size, size, arrays.scan_state.seed)
    canonical = find_row(slots, rows, arena, data, raw_size, size, canonical_found)
    if canonical < 0:
        canonical = intern(arrays, data, raw_size, size, canonical_found)
    if canonical < 0 or not has_room(arrays, raw_size):
        return np.int64(oc.NEEDS_ROOM)
    row = find_row(slots, rows, arena, data, np.int64(0), raw_size, found)
    if row >= 0:
        return row
    key_at = put(arrays, data, np.int64(0), raw_size)
    target = rows[canonical].target
    return add_row(arrays, found, key_at, target, rows[canonical].group)


@inlined
def hash_producer(producer_id: Any, seed: Any) -> Any:
    """Return a 64-bit hash of a producer id."""
    value = (U(np.int64(producer_id)) ^ U(seed)) * MULTIPLIER
    return np.int64(value ^ value >> U(32))


@part
def intern_producer(arrays: a.Arrays, producer_id: Any) -> Any:
    """Return the number of a producer, new or known; NEEDS_ROOM."""
    scan_state, overflow = arrays.scan_state, arrays.overflow
    found = hash_producer(producer_id, scan_state.seed)
    mask = scan_state.producer_slots_room - 1
    at = found & mask
    while overflow[scan_state.producer_slots_at + at] != 0:
        producer = (overflow[scan_state.producer_slots_at + at] & LOW) - 1
        if producer_at(arrays, producer).producer_id == producer_id:
            return producer
        at = at + 1 & mask
    producer = scan_state.producer_count
    if producer + 1 > scan_state.producers_room or 2 * (producer + 1) > scan_state.producer_slots_room:
        return np.int64(oc.NEEDS_ROOM)
    scan_state.producer_count = producer + 1
    overflow[scan_state.producer_slots_at + at] = found & HIGH | producer + 1
    made = producer_at(arrays, producer)
    made.producer_id = producer_id
    made.head_offset = a.NOTHING
    made.newest = a.NOTHING
    made.oldest = a.NOTHING
    return producer


@part
def find_owned_slot(arrays: a.Arrays, group: Any, high: Any, low: Any, partition: Any) -> Any:
    """Return the index in ``overflow`` of a taken partition's slot, or of the free one for it; and its hash."""
    scan_state = arrays.scan_state
    value = (U(high) ^ U(scan_state.seed)) * MULTIPLIER
    value = (value ^ value >> U(29) ^ U(low)) * MULTIPLIER
    value = (value ^ value >> U(29) ^ U(group) << U(32) ^ U(partition)) * MULTIPLIER
    found = np.int64(value ^ value >> U(32))
    mask = scan_state.owned_slots_room - 1
    at = found & mask
    while arrays.overflow[scan_state.owned_slots_at + at] != 0:
        slot = arrays.overflow[scan_state.owned_slots_at + at]
        entry = owned_at(arrays, (slot & LOW) - 1)
        if (
            (slot ^ found) & HIGH == 0
            and entry.group == group
            and entry.high == high
            and entry.low == low
            and entry.partition == partition
        ):
            break
        at = at + 1 & mask
    return scan_state.owned_slots_at + at, found


@kernel
def fill_slots(arrays: a.Arrays) -> None:
    """Enter all rows, groups and producers into their empty tables, after these have grown."""
    scan_state, slots, arena, overflow = arrays.scan_state, arrays.slots, arrays.arena, arrays.overflow
    seed = scan_state.seed
    mask = np.int64(len(slots) - 1)
    for row in range(scan_state.row_count):
        found = hash_bytes(arena, arrays.rows[row].key_at, size_of(arena, arrays.rows[row].key_at), seed)
        at = found & mask
        while slots[at] != 0:
            at = at + 1 & mask
        slots[at] = found & HIGH | row + 1
    for kind in range(2):
        begin = scan_state.group_slots_at if kind == 0 else scan_state.producer_slots_at
        mask = (scan_state.group_slots_room if kind == 0 else scan_state.producer_slots_room) - 1
        for number in range(scan_state.group_count if kind == 0 else scan_state.producer_count):
            if kind == 0:
                name_at = arrays.groups[number].name_at
                found = hash_bytes(arena, name_at, size_of(arena, name_at), seed)
            else:
                found = hash_producer(producer_at(arrays, number).producer_id, seed)
            at = found & mask
            while overflow[begin + at] != 0:
                at = at + 1 & mask
            overflow[begin + at] = found & HIGH | number + 1
    for number in range(scan_state.owned):
        entry = owned_at(arrays, number)
        at, found = find_owned_slot(arrays, entry.group, entry.high, entry.low, entry.partition)
        overflow[at] = found & HIGH | number + 1
