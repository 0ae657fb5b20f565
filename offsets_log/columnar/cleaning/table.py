"""Raw keys and the offset at which each stands last: a hash table, and the keys' bytes in an arena."""

from __future__ import annotations

from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.cleaning import round_state as d
from offsets_log.columnar.jit.compiled import U, inlined, kernel, part
from offsets_log.columnar.jit.instructions import prefetch
from offsets_log.columnar.jit.kinds import Bytes, Longs, Number
from offsets_log.columnar.jit.records import Table
from offsets_log.columnar.scan.interner import HIGH, LOW, find_row, size_of
from offsets_log.columnar.wire.primitives import hash_bytes


@part
def last_offset(arrays: d.RoundArrays, data: Any, start: Any, size: Any) -> Any:
    """Return where a key stands last; −1 if it is not known."""
    found = hash_bytes(data, start, size, arrays.round_state.seed)
    row = find_row(arrays.slots, arrays.keys, arrays.arena, data, start, size, found)
    return np.int64(-1) if row < 0 else arrays.keys[U(row)].last_offset


@inlined
def has_room(arrays: d.RoundArrays, count: Any, size: Any) -> Any:
    """Return whether a number of new keys with a total size fit."""
    rows = arrays.round_state.keys + count
    room = size + count * (a.CACHE_LINE + a.SIZE_BYTES)
    return (
        2 * rows <= len(arrays.slots)
        and rows <= len(arrays.keys)
        and arrays.round_state.arena_used + room <= len(arrays.arena)
    )


@part
def put(arrays: d.RoundArrays, data: Any, start: Any, size: Any, offset: Any, found: Any) -> None:
    """Note that a key with that hash stands at an offset; the caller has made sure of room."""
    round_state = arrays.round_state
    row = find_row(arrays.slots, arrays.keys, arrays.arena, data, start, size, found)
    if row < 0:
        row = _new_row(arrays, data, start, size, found)
    arrays.keys[U(row)].last_offset = offset
    if offset <= round_state.last_put:
        round_state.is_unsure = 1
    round_state.last_put = offset


@part
def note(arrays: d.RoundArrays, data: Any, start: Any, size: Any, found: Any) -> None:
    """Note a key with that hash, whatever is known of it; the caller has made sure of room."""
    if find_row(arrays.slots, arrays.keys, arrays.arena, data, start, size, found) < 0:
        row = _new_row(arrays, data, start, size, found)
        arrays.keys[U(row)].last_offset = d.NOT_ENTERED


@part
def _new_row(arrays: d.RoundArrays, data: Any, start: Any, size: Any, found: Any) -> Any:
    """Return the row of a key with that hash that has none yet."""
    round_state, slots = arrays.round_state, arrays.slots
    row = round_state.keys
    round_state.keys = row + 1
    mask = np.int64(len(slots) - 1)
    at = found & mask
    while slots[U(at)] != 0:
        at = at + 1 & mask
    slots[U(at)] = found & HIGH | row + 1
    key_at = round_state.arena_used + a.SIZE_BYTES
    for i in range(a.SIZE_BYTES):
        arrays.arena[U(key_at - a.SIZE_BYTES + i)] = size >> 8 * i & 0xFF
    for i in range(size):
        arrays.arena[U(key_at + i)] = data[U(start + i)]
    round_state.arena_used = key_at + size
    arrays.keys[U(row)].key_at = key_at
    return row


@inlined
def prepare(arrays: d.RoundArrays, data: Any, staged: Table[a.Staged], first: Any, last: Any) -> None:
    """Hash the keys of staged records, and ask for the memory that finding them will need, so that waits overlap."""
    slots = arrays.slots
    mask = np.int64(len(slots) - 1)
    for number in range(first, last):
        i = U(number)
        found = hash_bytes(data, staged[i].key_at, staged[i].key_size, arrays.round_state.seed)
        staged[i].hash = found
        prefetch(slots, found & mask)
    for number in range(first, last):
        i = U(number)
        at = staged[i].hash & mask
        while slots[U(at)] != 0 and (slots[U(at)] ^ staged[i].hash) & HIGH != 0:
            at = at + 1 & mask
        staged[i].entry = (slots[U(at)] & LOW) - 1
        if staged[i].entry >= 0:
            prefetch(arrays.keys, staged[i].entry)
    for number in range(first, last):
        i = U(number)
        if staged[i].entry >= 0:
            key_at = arrays.keys[U(staged[i].entry)].key_at
            prefetch(arrays.arena, key_at - a.SIZE_BYTES)
            prefetch(arrays.arena, key_at + staged[i].key_size - 1)


@kernel
def put_one(arrays: d.RoundArrays, key: Bytes, offset: Number) -> int:
    """Put a single key, or note it at `NOT_ENTERED`; FINISHED or NEEDS_ROOM."""
    size = np.int64(len(key))
    if not has_room(arrays, np.int64(1), size):
        return oc.NEEDS_ROOM
    found = hash_bytes(key, np.int64(0), size, arrays.round_state.seed)
    if offset == d.NOT_ENTERED:
        note(arrays, key, np.int64(0), size, found)
    else:
        put(arrays, key, np.int64(0), size, np.int64(offset), found)
    return oc.FINISHED


@kernel
def get_one(arrays: d.RoundArrays, key: Bytes) -> int:
    """Return where a single key stands last; −1 if it is not known."""
    return int(last_offset(arrays, key, np.int64(0), np.int64(len(key))))


@kernel
def rehash(arrays: d.RoundArrays) -> None:
    """Fill an empty, larger hash table."""
    slots = arrays.slots
    mask = np.int64(len(slots) - 1)
    for row in range(arrays.round_state.keys):
        key_at = arrays.keys[U(row)].key_at
        found = hash_bytes(arrays.arena, key_at, size_of(arrays.arena, key_at), arrays.round_state.seed)
        at = found & mask
        while slots[U(at)] != 0:
            at = at + 1 & mask
        slots[U(at)] = found & HIGH | row + 1


@kernel
def take_in(arrays: d.RoundArrays, other_keys: Table[d.Key], other_arena: Bytes, first: Number) -> Any:
    """Put all keys of another table from a row on; return the row for which there is no room, or their number."""
    for row in range(first, len(other_keys)):
        key_at = other_keys[U(row)].key_at
        size = size_of(other_arena, key_at)
        if not has_room(arrays, np.int64(1), size):
            return np.int64(row)
        found = hash_bytes(other_arena, key_at, size, arrays.round_state.seed)
        put(arrays, other_arena, key_at, size, other_keys[U(row)].last_offset, found)
    return np.int64(len(other_keys))


@kernel
def spread(arena: Bytes, begins: Longs, places: Longs, buckets: Number) -> None:
    """Note the bucket of each key, the same one in every process; a key ends where the next one begins."""
    for i in range(len(places)):
        found = hash_bytes(arena, begins[U(i)], begins[U(i + 1)] - begins[U(i)], np.int64(0))
        places[U(i)] = (found >> 32 & 0x7FFFFFFF) % buckets
