"""Keep keys and names as entries, which are found by their hash or added."""

from __future__ import annotations

from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.events import columns as k
from offsets_log.columnar.jit.compiled import U, inlined, kernel, part
from offsets_log.columnar.jit.instructions import prefetch
from offsets_log.columnar.jit.records import Table
from offsets_log.columnar.scan.interner import HIGH, LOW, is_utf8, same_bytes
from offsets_log.columnar.wire.primitives import be16, be32, hash_bytes, walk
from offsets_log.columnar.wire.programs import NO_PLACE


@inlined
def is_entry(entries: Any, arena: Any, entry: Any, kind: Any, data: Any, start: Any, size: Any) -> Any:
    if entries[U(entry), k.ENTRY_SIZE] != size or entries[U(entry), k.ENTRY_KIND] != kind:
        return False
    return same_bytes(arena, entries[U(entry), k.ENTRY_AT], data, start, size)


@part
def find(chunk: k.ChunkArrays, data: Any, start: Any, size: Any, kind: Any, found: Any) -> Any:
    """Return the place of an entry, NOTHING if it does not exist."""
    slots = chunk.slots
    mask = np.int64(len(slots) - 1)
    at = found & mask
    while slots[U(at)] != 0:
        entry = (slots[U(at)] & LOW) - 1
        if (slots[U(at)] ^ found) & HIGH == 0 and is_entry(chunk.entries, chunk.arena, entry, kind, data, start, size):
            return entry
        at = at + 1 & mask
    return np.int64(a.NOTHING)


@part
def _put(chunk: k.ChunkArrays, data: Any, start: Any, size: Any, kind: Any, found: Any) -> Any:
    """Add an entry; return its place, or NOTHING without room."""
    counts, slots, entries = chunk.counts, chunk.slots, chunk.entries
    entry = counts[k.ENTRIES]
    used = counts[k.ARENA_USED] + a.CACHE_LINE - 1 & -a.CACHE_LINE
    if 2 * (entry + 1) > len(slots) or entry >= len(entries) or used + size > len(chunk.arena):
        return np.int64(a.NOTHING)
    for i in range(size):
        chunk.arena[U(used + i)] = data[U(start + i)]
    entries[entry, k.ENTRY_AT] = used
    entries[entry, k.ENTRY_SIZE] = size
    entries[entry, k.ENTRY_KIND] = kind
    if kind < k.IS_KEY:
        entries[entry, k.NUMBER] = counts[k.NUMBERED + kind]
        counts[k.NUMBERED + kind] += 1
    mask = np.int64(len(slots) - 1)
    at = found & mask
    while slots[at] != 0:
        at = at + 1 & mask
    slots[at] = found & HIGH | entry + 1
    counts[k.ENTRIES] = entry + 1
    counts[k.ARENA_USED] = used + size
    return entry


@part
def number_of(scan_state: a.ScanState, chunk: k.ChunkArrays, data: Any, start: Any, size: Any, kind: Any) -> Any:
    """Return the number of a group, topic or topic id, new or known; NOTHING without room."""
    found = hash_bytes(data, start, size, scan_state.seed + kind)
    entry = find(chunk, data, start, size, kind, found)
    if entry < 0:
        entry = _put(chunk, data, start, size, kind, found)
    return chunk.entries[entry, k.NUMBER] if entry >= 0 else np.int64(a.NOTHING)


@part
def new_key(scan_state: a.ScanState, chunk: k.ChunkArrays, data: Any, start: Any, size: Any, found: Any) -> Any:
    """Add a key of a known type, with group and topic in UTF-8 and nothing after them.

    Returns:
        Its entry, NOT_PLAIN or NEEDS_ROOM.
    """
    entries = chunk.entries
    number = be16(data, start)
    if number < 0 or number >= a.RECORD_TYPES:
        return np.int64(oc.NOT_PLAIN)
    end = start + size
    program = scan_state.key_programs[number]
    if program == NO_PLACE or walk(scan_state, program, data, start + 2, end) != end:
        return np.int64(oc.NOT_PLAIN)
    group_at, topic_at = scan_state.notes[0] + 2, scan_state.notes[1] + 2
    group_size = be16(data, group_at - 2)
    if not is_utf8(data, group_at, group_size):
        return np.int64(oc.NOT_PLAIN)
    group = number_of(scan_state, chunk, data, group_at, group_size, np.int64(k.IS_GROUP))
    topic = np.int64(0)
    if number < a.COMMIT_TYPES:
        topic_size = be16(data, topic_at - 2)
        if not is_utf8(data, topic_at, topic_size):
            return np.int64(oc.NOT_PLAIN)
        topic = number_of(scan_state, chunk, data, topic_at, topic_size, np.int64(k.IS_TOPIC))
    if group < 0 or topic < 0:
        return np.int64(oc.NEEDS_ROOM)
    entry = _put(chunk, data, start, size, np.int64(k.IS_KEY), found)
    if entry < 0:
        return np.int64(oc.NEEDS_ROOM)
    entries[entry, k.KEY_TYPE] = number
    entries[entry, k.KEY_GROUP] = group
    entries[entry, k.KEY_TOPIC] = topic if number < a.COMMIT_TYPES else np.int64(a.NOTHING)
    entries[entry, k.KEY_PARTITION] = be32(data, end - 4) if number < a.COMMIT_TYPES else np.int64(a.NOTHING)
    return entry


@inlined
def look_ahead(
    scan_state: a.ScanState, chunk: k.ChunkArrays, data: Any, staged: Table[a.Staged], first: Any, last: Any
) -> None:
    """Hash the keys of a block, and prefetch the memory that its rows will need."""
    slots = chunk.slots
    mask = np.int64(len(slots) - 1)
    seed = scan_state.seed + k.IS_KEY
    for number in range(first, last):
        i = U(number)
        found = hash_bytes(data, staged[i].key_at, staged[i].key_size, seed)
        staged[i].hash = found
        prefetch(slots, found & mask)
    for number in range(first, last):
        i = U(number)
        found = staged[i].hash
        at = found & mask
        slot = slots[U(at)]
        while slot != 0 and (slot ^ found) & HIGH != 0:
            at = at + 1 & mask
            slot = slots[U(at)]
        entry = (slot & LOW) - 1
        staged[i].entry = entry
        if entry >= 0:
            prefetch(chunk.entries, entry * k.ENTRY_COLUMNS)
    for number in range(first, last):
        i = U(number)
        if staged[i].entry >= 0:
            at = chunk.entries[U(staged[i].entry), k.ENTRY_AT]
            prefetch(chunk.arena, at)
            if staged[i].key_size > a.CACHE_LINE:
                prefetch(chunk.arena, at + a.CACHE_LINE)


@kernel
def enter(scan_state: a.ScanState, chunk: k.ChunkArrays) -> None:
    """Enter all entries into their empty table, after it has grown."""
    slots, entries = chunk.slots, chunk.entries
    mask = np.int64(len(slots) - 1)
    for entry in range(chunk.counts[k.ENTRIES]):
        seed = scan_state.seed + entries[entry, k.ENTRY_KIND]
        found = hash_bytes(chunk.arena, entries[entry, k.ENTRY_AT], entries[entry, k.ENTRY_SIZE], seed)
        at = found & mask
        while slots[at] != 0:
            at = at + 1 & mask
        slots[at] = found & HIGH | entry + 1
