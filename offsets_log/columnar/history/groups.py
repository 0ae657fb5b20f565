"""Read a classic group's record in kernels: whether the group exists, its members, and what each is assigned.

Kernels leave everything to `messages` and `replay.groups` that they are not sure to read in the same way.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.history import entries as e
from offsets_log.columnar.jit.compiled import U, inlined, part
from offsets_log.columnar.scan.interner import find_row, has_room, intern, is_plain_text, is_utf8, same_bytes, size_of
from offsets_log.columnar.wire.primitives import be16, be32, hash_bytes, is_new

# Value versions with another layout.
WITH_STATE_TIMESTAMP, WITH_INSTANCE_ID, WITH_REBALANCE_TIMEOUT, FLEXIBLE = 2, 3, 1, 4

CONSUMER = np.frombuffer(b"consumer", np.uint8)
LEAST_ASSIGNMENT = 10  # its version, no topics and no user data
BEFORE_NAMES = 4
AROUND_NAMES = 10
"""Bytes of an offset's key before the text of its first name, and all bytes except both texts."""
OFFSET_KEY = 1


@inlined
def _after(data: Any, at: Any, end: Any, is_nullable: Any) -> Any:
    """Return where a string ends that is UTF-8; below 0 if this is not certain."""
    if at < 0 or at + 2 > end:
        return np.int64(-1)
    size = be16(data, at)
    if size < 0:
        return at + 2 if is_nullable else np.int64(-1)
    if size > end - at - 2:
        return np.int64(-1)
    return at + 2 + size if is_plain_text(data, at + 2, size) or is_utf8(data, at + 2, size) else np.int64(-1)


@inlined
def _after_bytes(data: Any, at: Any, end: Any) -> Any:
    """Return where bytes after their int32 size end; below 0 if they are not complete."""
    if at < 0 or at + 4 > end:
        return np.int64(-1)
    size = be32(data, at)
    return at + 4 + size if 0 <= size <= end - at - 4 else np.int64(-1)


@part
def _members_at(data: Any, value: Any, end: Any) -> Any:
    """Return where the array of members begins (below 0 if this is not certain), and where the generation is."""
    version = be16(data, value)
    if version >= FLEXIBLE:
        return np.int64(-1), np.int64(0)
    generation = _after(data, value + 2, end, False)
    if generation < 0 or generation + 4 > end:
        return np.int64(-1), generation
    at = _after(data, _after(data, generation + 4, end, True), end, True)
    if at >= 0 and version >= WITH_STATE_TIMESTAMP:
        at += 8
    return at if at + 4 <= end else np.int64(-1), generation


@part
def _is_assignment(data: Any, at: Any, end: Any) -> Any:
    """Return whether bytes are an assignment of the consumer protocol, whose topics are UTF-8."""
    if end - at < LEAST_ASSIGNMENT or be16(data, at) < 0:
        return False
    count, at = be32(data, at + 2), at + 6
    if count < 0:
        return False
    for _ in range(count):
        at = _after(data, at, end, False)
        if at < 0 or at + 4 > end:
            return False
        partitions, at = be32(data, at), at + 4
        if partitions < 0 or partitions > (end - at) // 4:
            return False
        at += 4 * partitions
    if at + 4 > end:
        return False
    size = be32(data, at)
    return -1 <= size <= end - at - 4


@inlined
def _is_first(scan_state: a.ScanState, data: Any, at: Any) -> Any:
    """Return whether no earlier text of the record was the same."""
    return is_new(scan_state, data, at + 2, max(be16(data, at), np.int64(0)))


@part
def _after_member(scan_state: a.ScanState, data: Any, at: Any, end: Any, version: Any, is_consumer: Any) -> Any:
    """Return where a member's row ends; below 0 if its meaning is not certain, or another may have its id."""
    begin = at
    at = _after(data, at, end, False)
    if at < 0 or not _is_first(scan_state, data, begin):
        return np.int64(-1)
    if version >= WITH_INSTANCE_ID:
        begin, at = at, _after(data, at, end, True)
        if at < 0 or (be16(data, begin) >= 0 and not _is_first(scan_state, data, begin)):
            return np.int64(-1)
    at = _after(data, _after(data, at, end, False), end, False)
    if at < 0:
        return at
    at = _after_bytes(data, at + (8 if version >= WITH_REBALANCE_TIMEOUT else 4), end)
    begin, at = at, _after_bytes(data, at, end)
    if at >= 0 and is_consumer and at > begin + 4 and not _is_assignment(data, begin + 4, at):
        return np.int64(-1)
    return at


@part
def _is_plain(scan_state: a.ScanState, data: Any, value: Any, end: Any) -> Any:
    """Return how many members a value has; below 0 if it is not certain to be read here as elsewhere."""
    at, _ = _members_at(data, value, end)
    if at < 0:
        return np.int64(-1)
    version, is_consumer = be16(data, value), _is_consumer(data, value)
    count, at = be32(data, at), at + 4
    if count < 0:
        return np.int64(-1)
    scan_state.distinct_count = 0
    for _ in range(count):
        at = _after_member(scan_state, data, at, end, version, is_consumer)
        if at < 0:
            return at
    return count


@inlined
def _is_consumer(data: Any, value: Any) -> Any:
    """Return whether its protocol type is that of consumers."""
    size = be16(data, value + 2)
    return size == len(CONSUMER) and same_bytes(CONSUMER, np.int64(0), data, value + 4, size)


@inlined
def _text(history: e.History, n: Any, column: Any, data: Any, at: Any) -> Any:
    """Keep a text of a member; return where it ends in the record."""
    size, used = be16(data, at), history.counts[e.TEXT_USED]
    history.members[n, column], history.members[n, column + 1] = used, size
    size = max(size, np.int64(0))
    for i in range(size):
        history.texts[U(used + i)] = data[U(at + 2 + i)]
    history.counts[e.TEXT_USED] = used + size
    return at + 2 + size


@part
def _assign(arrays: a.Arrays, held: Any, key: Any, at: Any, size: Any, member: Any) -> Any:
    """Assign a canonical key's partition to a member from here on; return False without room."""
    found = hash_bytes(key, at, size, arrays.scan_state.seed)
    row = find_row(arrays.slots, arrays.rows, arrays.arena, key, at, size, found)
    if row < 0:
        row = intern(arrays, key, at, size, found)
        if row < 0:
            return False
    held[row, e.HOLDER] = member
    return True


@part
def _assign_all(arrays: a.Arrays, history: e.History, data: Any, at: Any, name_size: Any, member: Any) -> Any:
    """Assign the partitions in its assignment to a member; return False without room.

    The keys are built after the used part of ``texts``, where the group's name was already written.
    """
    texts = history.texts
    key = history.counts[e.TEXT_USED]
    topics, at = be32(data, at + 2), at + 6
    for _ in range(topics):
        size = be16(data, at)
        for i in range(size + 2):
            texts[U(key + BEFORE_NAMES + name_size + i)] = data[U(at + i)]
        partitions, at = be32(data, at + 2 + size), at + 6 + size
        place = key + BEFORE_NAMES + name_size + 2 + size
        for _partition in range(partitions):
            for i in range(4):
                texts[U(place + i)] = data[U(at + i)]
            key_size = AROUND_NAMES + name_size + size
            if not has_room(arrays, key_size) or not _assign(arrays, history.held, texts, key, key_size, member):
                return False
            at += 4
    return True


@inlined
def _begin_key(arena: Any, name_at: Any, history: e.History) -> Any:
    """Write the beginning of a group's keys after the used part of ``texts``; return the size of its name."""
    texts = history.texts
    size, key = size_of(arena, name_at), history.counts[e.TEXT_USED]
    texts[U(key)], texts[U(key + 1)] = 0, OFFSET_KEY
    texts[U(key + 2)], texts[U(key + 3)] = size >> 8 & 0xFF, size & 0xFF
    for i in range(size):
        texts[U(key + BEFORE_NAMES + i)] = arena[U(name_at + i)]
    return size


@part
def _take_members(arrays: a.Arrays, history: e.History, data: Any, value: Any, end: Any, group: Any) -> Any:
    """Take the members of a plain value; return False without room for keys."""
    lives, members = history.lives, history.members
    version, is_consumer = be16(data, value), _is_consumer(data, value)
    at, generation_at = _members_at(data, value, end)
    count, at = be32(data, at), at + 4
    first = history.counts[e.MEMBERS]
    begin = at
    for n in range(first, first + count):
        at = _text(history, n, e.MEMBER_ID, data, at)
        members[n, e.INSTANCE_ID], members[n, e.INSTANCE_ID + 1] = 0, a.NOTHING
        if version >= WITH_INSTANCE_ID:
            at = _text(history, n, e.INSTANCE_ID, data, at)
        at = _text(history, n, e.CLIENT_ID, data, at)
        at = _text(history, n, e.HOST, data, at)
        members[n, e.EPOCH] = be32(data, generation_at)
        at = _before_assignment(data, at, version)
        at += 4 + be32(data, at)
    history.counts[e.MEMBERS] = first + count
    lives[group, e.FIRST_MEMBER] = first
    lives[group, e.ONLY_MEMBER] = first if count == 1 else np.int64(e.NOBODY)
    lives[group, e.HELD_BY_NOW] = 0
    is_simple = count == 0 and be16(data, value + 2) == 0
    lives[group, e.TOLD_BY] = e.IS_SIMPLE if is_simple else e.IS_CLASSIC
    if not is_consumer:
        return True
    name_size = _begin_key(arrays.arena, arrays.groups[group].name_at, history)
    at = begin
    for n in range(first, first + count):
        for _ in range(4 if version >= WITH_INSTANCE_ID else 3):
            at += 2 + max(be16(data, at), np.int64(0))
        at = _before_assignment(data, at, version)
        size = be32(data, at)
        if size > 0 and not _assign_all(arrays, history, data, at + 4, name_size, np.int64(n)):
            return False
        at += 4 + size
    return True


@inlined
def _before_assignment(data: Any, at: Any, version: Any) -> Any:
    """Return where a member's assignment begins, from where its texts end."""
    at += 8 if version >= WITH_REBALANCE_TIMEOUT else 4
    return at + 4 + be32(data, at)


@part
def note_group(
    arrays: a.Arrays,
    history: e.History,
    data: Any,
    value: Any,
    size: Any,
    group: Any,
    record_offset: Any,
    timestamp: Any,
) -> Any:
    """Note a type 2 record of a group that is shown; return FINISHED, or what it needs first.

    Args:
        size: size of the value; below 0 for a tombstone.
    """
    lives, counts = history.lives, history.counts
    exists = np.int64(size >= 0)
    if lives[group, e.EXISTS] != exists and counts[e.ENTRIES] + lives[group, e.KEYS] > len(history.entries):
        return np.int64(oc.NEEDS_ENTRIES)
    if exists:
        count = _is_plain(arrays.scan_state, data, value, value + size)
        if count < 0:
            return np.int64(oc.NEEDS_GROUP)
        if counts[e.MEMBERS] + count > len(history.members):
            return np.int64(oc.NEEDS_MEMBERS)
        if counts[e.TEXT_USED] + 2 * size + size_of(arrays.arena, arrays.groups[group].name_at) + AROUND_NAMES > len(
            history.texts
        ):
            return np.int64(oc.NEEDS_TEXTS)
        if not _take_members(arrays, history, data, value, value + size, group):
            return np.int64(oc.NEEDS_ROOM)
    else:
        lives[group, e.FIRST_MEMBER] = counts[e.MEMBERS]
        lives[group, e.ONLY_MEMBER] = e.NOBODY
        lives[group, e.HELD_BY_NOW] = 0
        lives[group, e.TOLD_BY] = e.IS_SIMPLE
    if lives[group, e.EXISTS] != exists:
        e.turn(arrays.rows, history, group, exists, record_offset, timestamp)
    return np.int64(oc.FINISHED)
