"""The kernel of the table of all records: from a segment's bytes to columns of numbers, until something is not plain.

Records of some batches are staged, their keys hashed and what will be needed of memory asked for; then each becomes a
row. Of a batch that turns out to be not plain no row is left: the caller reads it by hand and goes on behind it.
Keys, group names, topic names and topic ids are *entries*: bytes kept once, found again by their hash.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar.jit.compiled import U, inlined, kernel, part, prefetch
from offsets_log.columnar.jit.kinds import ByteRows, Bytes, IntRows, LongRows, Longs
from offsets_log.columnar.scan import staging as sc
from offsets_log.columnar.scan.keys import HIGH, LOW, is_utf8, same_bytes
from offsets_log.columnar.wire import batches as bt
from offsets_log.columnar.wire import window as wi
from offsets_log.columnar.wire.primitives import be16, be32, be64, hash_bytes, uvarint, walk
from offsets_log.columnar.wire.programs import NO_PLACE, SIZES
from offsets_log.log_format import batch as b
from offsets_log.messages.offset_commit import OFFSET_COMMIT_VALUE
from offsets_log.messages.schema import Scalar

# Rows of ``longs``: columns of 64 bits. OLDER_CHECKSUM is that of a record's message of magic 0 or 1, and told where
# batches have rows.
(
    POSITION, BATCH_BASE_OFFSET, RECORD_OFFSET, TIMESTAMP, PRODUCER_ID, COMMITTED_OFFSET, COMMIT_TIMESTAMP,
    EXPIRE_TIMESTAMP, OLDER_CHECKSUM, LONGS,
) = range(10)  # fmt: skip

# Rows of ``ints``: columns of 32 bits. Names are numbered as they come; from ENDS_AT on it is where what stands in
# ``texts`` for a row ends. KEY_SIZE, VALUE_SIZE and SEQUENCE are told where batches have rows.
(
    KIND, ATTRIBUTES, PRODUCER_EPOCH, RECORD_TYPE, GROUP, TOPIC, PARTITION, VALUE_VERSION, LEADER_EPOCH, TOPIC_ID,
    KEY_SIZE, VALUE_SIZE, SEQUENCE, ENDS_AT,
) = range(14)  # fmt: skip
METADATA, RAW_KEY, RAW_VALUE, TEXTS = range(4)
"""Rows of ``texts``: bytes of one column behind each other."""
INTS = ENDS_AT + TEXTS

COMMITTED, COMMITTED_RAW, GROUP_VALUE, GROUP_TOMBSTONE, TOMBSTONE, ABORT_MARKER, COMMIT_MARKER, BATCH = range(8)
"""Kinds of rows: offset commits, the second kind with bytes that no column tells; classic groups; tombstones of groups
and of offsets; markers; where that is asked for, batches before their records. All but COMMITTED, TOMBSTONE and BATCH
have a raw key."""

# Columns of a batch's row, in place of what they are of a record.
LAST_OFFSET, MAX_TIMESTAMP, CRC, BASE_TIMESTAMP = RECORD_OFFSET, TIMESTAMP, COMMITTED_OFFSET, COMMIT_TIMESTAMP
RECORDS_COUNT, PARTITION_LEADER_EPOCH = PARTITION, LEADER_EPOCH
SIZE, BASE_SEQUENCE, LAST_SEQUENCE = KEY_SIZE, VALUE_SIZE, SEQUENCE

# Columns of ``staged``, in place of what a replay has there.
HASH = a.KIND
BEFORE = a.STAGED_PRODUCER  # the last offset before its batch
ENTRY = a.TOPIC_ID_AT  # of its key, perhaps; NOTHING if it is not known

# Columns of ``entries``.
ENTRY_AT, ENTRY_SIZE, ENTRY_KIND, NUMBER, KEY_TYPE, KEY_GROUP, KEY_TOPIC, KEY_PARTITION, ENTRY_COLUMNS = range(9)
IS_GROUP, IS_TOPIC, IS_TOPIC_ID, IS_KEY = range(4)
"""Kinds of entries; the first three are numbered, each kind from 0 on."""

# Of ``counts``: rows, entries, bytes of the arena, bytes of each text, entries of each kind, staged bytes; and as 0 or
# 1, whether batches have rows.
ROWS = 0
ENTRIES = 1
ARENA_USED = 2
TEXTS_USED = 3
NUMBERED = TEXTS_USED + TEXTS
STAGED_BYTES = NUMBERED + IS_KEY
HAS_BATCHES = STAGED_BYTES + 1
COUNTS = HAS_BATCHES + 1

FULL = sc.STOPPED + 1
"""Why the kernel came back, beside what `staging` has: there is no room for the rows of the next batch."""

# Columns of ``SHAPES``, one row a value version: positions behind the version's two bytes, and behind the metadata.
BEFORE_TEXT, AFTER_TEXT, LEADER_AT, EXPIRE_AT, IS_FLEXIBLE, SHAPE_COLUMNS = range(6)
TOPIC_ID_TAG = next(row.tag for row in OFFSET_COMMIT_VALUE.fields if row.name == "topic_id")
TOPIC_ID_SIZE = SIZES["uuid"]
NO_TAGS = 1
ONLY_TOPIC_ID = 3 + TOPIC_ID_SIZE
"""Bytes of a section of tagged fields with nothing, and with a topic id."""


def _shapes() -> a.Int64s:
    """Where the fields of an offset commit's value stand, from its declaration."""
    shapes = np.full((a.VERSIONS, SHAPE_COLUMNS), a.NOTHING, np.int64)
    for version in range(a.VERSIONS):
        if not OFFSET_COMMIT_VALUE.has_version(version):
            continue
        at: dict[str, int] = {}
        position = 0
        for field in OFFSET_COMMIT_VALUE.fields_of(version):
            if field.tag is None and isinstance(field.type, Scalar):
                at[field.name] = position
                position = 0 if field.name == "metadata" else position + SIZES[field.type.name]
        assert at["offset"] == at["commit_timestamp"] == 0
        shapes[version] = (
            at["metadata"], position, at.get("leader_epoch", a.NOTHING), at.get("expire_timestamp", a.NOTHING),
            OFFSET_COMMIT_VALUE.is_flexible(version),
        )  # fmt: skip
    return shapes


SHAPES = _shapes()


# ------------------------------------------------------------------------------------------------- entries


@inlined
def _is_entry(entries: Any, arena: Any, entry: Any, kind: Any, data: Any, start: Any, size: Any) -> Any:
    if entries[U(entry), ENTRY_SIZE] != size or entries[U(entry), ENTRY_KIND] != kind:
        return False
    return same_bytes(arena, entries[U(entry), ENTRY_AT], data, start, size)


@part
def _find(slots: Any, entries: Any, arena: Any, data: Any, start: Any, size: Any, kind: Any, found: Any) -> Any:
    """The place of an entry, NOTHING if it is not there."""
    mask = np.int64(len(slots) - 1)
    at = found & mask
    while slots[U(at)] != 0:
        entry = (slots[U(at)] & LOW) - 1
        if (slots[U(at)] ^ found) & HIGH == 0 and _is_entry(entries, arena, entry, kind, data, start, size):
            return entry
        at = at + 1 & mask
    return np.int64(a.NOTHING)


@part
def _put(
    counts: Any, slots: Any, entries: Any, arena: Any, data: Any, start: Any, size: Any, kind: Any, found: Any
) -> Any:
    """A new entry; NOTHING without room."""
    entry = counts[ENTRIES]
    used = counts[ARENA_USED] + a.CACHE_LINE - 1 & -a.CACHE_LINE
    if 2 * (entry + 1) > len(slots) or entry >= len(entries) or used + size > len(arena):
        return np.int64(a.NOTHING)
    for i in range(size):
        arena[U(used + i)] = data[U(start + i)]
    entries[entry, ENTRY_AT] = used
    entries[entry, ENTRY_SIZE] = size
    entries[entry, ENTRY_KIND] = kind
    if kind < IS_KEY:
        entries[entry, NUMBER] = counts[NUMBERED + kind]
        counts[NUMBERED + kind] += 1
    mask = np.int64(len(slots) - 1)
    at = found & mask
    while slots[at] != 0:
        at = at + 1 & mask
    slots[at] = found & HIGH | entry + 1
    counts[ENTRIES] = entry + 1
    counts[ARENA_USED] = used + size
    return entry


@part
def _number_of(
    desk: Any, counts: Any, slots: Any, entries: Any, arena: Any, data: Any, start: Any, size: Any, kind: Any
) -> Any:
    """The number of a group, topic or topic id, new or known; NOTHING without room."""
    found = hash_bytes(data, start, size, desk[a.SEED] + kind)
    entry = _find(slots, entries, arena, data, start, size, kind, found)
    if entry < 0:
        entry = _put(counts, slots, entries, arena, data, start, size, kind, found)
    return entries[entry, NUMBER] if entry >= 0 else np.int64(a.NOTHING)


@part
def _new_key(
    desk: Any, counts: Any, slots: Any, entries: Any, arena: Any, data: Any, start: Any, size: Any, found: Any
) -> Any:
    """A key of type 0, 1 or 2, with names of UTF-8 and nothing behind it; −DOUBTFUL, −NEEDS_ROOM."""
    number = be16(data, start)
    if number < 0 or number >= a.KEY_TYPES:
        return np.int64(-sc.DOUBTFUL)
    end = start + size
    if walk(desk, desk[a.KEY_PROGRAMS + number], data, start + 2, end) != end:
        return np.int64(-sc.DOUBTFUL)
    group_at, topic_at = desk[a.NOTES] + 2, desk[a.NOTES + 1] + 2
    group_size = be16(data, group_at - 2)
    if not is_utf8(data, group_at, group_size):
        return np.int64(-sc.DOUBTFUL)
    group = _number_of(desk, counts, slots, entries, arena, data, group_at, group_size, np.int64(IS_GROUP))
    topic = np.int64(0)
    if number < 2:
        topic_size = be16(data, topic_at - 2)
        if not is_utf8(data, topic_at, topic_size):
            return np.int64(-sc.DOUBTFUL)
        topic = _number_of(desk, counts, slots, entries, arena, data, topic_at, topic_size, np.int64(IS_TOPIC))
    if group < 0 or topic < 0:
        return np.int64(-sc.NEEDS_ROOM)
    entry = _put(counts, slots, entries, arena, data, start, size, np.int64(IS_KEY), found)
    if entry < 0:
        return np.int64(-sc.NEEDS_ROOM)
    entries[entry, KEY_TYPE] = number
    entries[entry, KEY_GROUP] = group
    entries[entry, KEY_TOPIC] = topic if number < 2 else np.int64(a.NOTHING)
    entries[entry, KEY_PARTITION] = be32(data, end - 4) if number < 2 else np.int64(a.NOTHING)
    return entry


@inlined
def _look_ahead(desk: Any, slots: Any, entries: Any, arena: Any, data: Any, staged: Any, first: Any, last: Any) -> None:
    """Hash the keys of a block, and ask for the memory that its rows will need."""
    mask = np.int64(len(slots) - 1)
    seed = desk[a.SEED] + IS_KEY
    for number in range(first, last):
        i = U(number)
        found = hash_bytes(data, staged[i, a.KEY], staged[i, a.KEY_SIZE], seed)
        staged[i, HASH] = found
        prefetch(slots, found & mask)
    for number in range(first, last):
        i = U(number)
        found = staged[i, HASH]
        at = found & mask
        slot = slots[U(at)]
        while slot != 0 and (slot ^ found) & HIGH != 0:
            at = at + 1 & mask
            slot = slots[U(at)]
        entry = (slot & LOW) - 1
        staged[i, ENTRY] = entry
        if entry >= 0:
            prefetch(entries, entry * ENTRY_COLUMNS)
    for number in range(first, last):
        i = U(number)
        if staged[i, ENTRY] >= 0:
            at = entries[U(staged[i, ENTRY]), ENTRY_AT]
            prefetch(arena, at)
            if staged[i, a.KEY_SIZE] > a.CACHE_LINE:
                prefetch(arena, at + a.CACHE_LINE)


# ---------------------------------------------------------------------------------------------------- rows


@inlined
def _add_text(counts: Any, ints: Any, texts: Any, n: Any, which: Any, data: Any, start: Any, size: Any) -> None:
    """What stands in a row of ``texts``; the caller has made sure of room."""
    used = counts[TEXTS_USED + which]
    for i in range(size):
        texts[which, U(used + i)] = data[U(start + i)]
    ints[ENDS_AT + which, n] = used + max(size, 0)
    counts[TEXTS_USED + which] = used + max(size, 0)


@part
def _add_raw(
    counts: Any, ints: Any, texts: Any, n: Any, data: Any, key: Any, key_size: Any, value: Any, size: Any
) -> None:
    """The raw key and value of a record."""
    _add_text(counts, ints, texts, n, np.int64(RAW_KEY), data, key, key_size)
    _add_text(counts, ints, texts, n, np.int64(RAW_VALUE), data, value, size)


@inlined
def _add_no_text(counts: Any, ints: Any, n: Any, which: Any) -> None:
    ints[ENDS_AT + which, n] = counts[TEXTS_USED + which]


@inlined
def _add_no_raw(counts: Any, ints: Any, n: Any) -> None:
    _add_no_text(counts, ints, n, RAW_KEY)
    _add_no_text(counts, ints, n, RAW_VALUE)


@inlined
def metadata_at(data: Any, at: Any, end: Any, version: Any) -> Any:
    """Where the metadata begins and ends; −1 where it does not fit."""
    at += 2 + SHAPES[version, BEFORE_TEXT]
    if at + 2 > end:
        return np.int64(-1), np.int64(-1)
    if SHAPES[version, IS_FLEXIBLE]:
        size, at = uvarint(data, at, end)
        size -= 1
    else:
        size, at = be16(data, at), at + 2
    if at < 0 or size < 0 or size + SHAPES[version, AFTER_TEXT] > end - at:
        return np.int64(-1), np.int64(-1)
    return at, at + size


@inlined
def _is_topic_id(data: Any, at: Any) -> Any:
    """Whether a section of tagged fields begins with a topic id, its only one."""
    return data[U(at)] == 1 and data[U(at + 1)] == TOPIC_ID_TAG and data[U(at + 2)] == TOPIC_ID_SIZE


@inlined
def _add_commit(
    desk: Any, counts: Any, slots: Any, entries: Any, arena: Any, longs: Any, ints: Any, texts: Any, n: Any,
    data: Any, key: Any, key_size: Any, value: Any, size: Any,
) -> Any:  # fmt: skip
    """The columns of an offset commit with a value."""
    if size < 2:
        return sc.DOUBTFUL
    version = U(be16(data, value))
    if version >= U(a.VERSIONS) or SHAPES[version, BEFORE_TEXT] < 0:
        return sc.DOUBTFUL
    text_at, text_end = metadata_at(data, value, value + size, version)
    if text_at < 0 or (text_end > text_at and not is_utf8(data, text_at, text_end - text_at)):
        return sc.DOUBTFUL
    after = text_end + SHAPES[version, AFTER_TEXT]
    left = value + size - after
    topic_id = np.int64(a.NOTHING)
    if SHAPES[version, IS_FLEXIBLE]:
        if left == ONLY_TOPIC_ID and _is_topic_id(data, after):
            if be64(data, after + 3) != 0 or be64(data, after + 11) != 0:
                topic_id = _number_of(
                    desk, counts, slots, entries, arena, data, after + 3, np.int64(TOPIC_ID_SIZE), np.int64(IS_TOPIC_ID)
                )
                if topic_id < 0:
                    return sc.NEEDS_ROOM
        elif left != NO_TAGS or data[U(after)] != 0:
            return sc.DOUBTFUL
        left = np.int64(0)
    leader_at, expire_at = SHAPES[version, LEADER_AT], SHAPES[version, EXPIRE_AT]
    ints[KIND, n] = COMMITTED_RAW if left > 0 else COMMITTED
    ints[VALUE_VERSION, n] = version
    ints[TOPIC_ID, n] = topic_id
    longs[COMMITTED_OFFSET, n] = be64(data, value + 2)
    ints[LEADER_EPOCH, n] = be32(data, value + 2 + leader_at) if leader_at >= 0 else np.int64(-1)
    longs[COMMIT_TIMESTAMP, n] = be64(data, text_end)
    longs[EXPIRE_TIMESTAMP, n] = be64(data, text_end + expire_at) if expire_at >= 0 else np.int64(-1)
    _add_text(counts, ints, texts, n, np.int64(METADATA), data, text_at, text_end - text_at)
    if left > 0:
        _add_raw(counts, ints, texts, n, data, key, key_size, value, size)
    else:
        _add_no_raw(counts, ints, n)
    return sc.FINISHED


@part
def _add_other(
    counts: Any, longs: Any, ints: Any, texts: Any, n: Any, kind: Any, data: Any, key: Any, key_size: Any,
    value: Any, size: Any,
) -> Any:  # fmt: skip
    """The columns of a tombstone, a classic group or a marker, whose key and value have been looked at."""
    ints[KIND, n] = kind
    ints[VALUE_VERSION, n] = be16(data, value) if kind == GROUP_VALUE else np.int64(-1)
    ints[TOPIC_ID, n] = a.NOTHING
    longs[COMMITTED_OFFSET, n] = 0
    ints[LEADER_EPOCH, n] = -1
    longs[COMMIT_TIMESTAMP, n] = 0
    longs[EXPIRE_TIMESTAMP, n] = -1
    _add_no_text(counts, ints, n, METADATA)
    if kind != TOMBSTONE:
        _add_raw(counts, ints, texts, n, data, key, key_size, value, size)
    else:
        _add_no_raw(counts, ints, n)


@part
def _is_group(desk: Any, data: Any, value: Any, size: Any) -> Any:
    """Whether the program of its version can read a type 2 value to its end or to trailing bytes."""
    if size < 2:
        return False
    version = be16(data, value)
    if version < 0 or version >= a.VERSIONS:
        return False
    program = desk[a.VALUE_PROGRAMS + 2 * a.VERSIONS + version]
    return program != NO_PLACE and walk(desk, program, data, value + 2, value + size) >= 0


@inlined
def _add_record(
    desk: Any, counts: Any, slots: Any, entries: Any, arena: Any, longs: Any, ints: Any, texts: Any, n: Any,
    data: Any, staged: Any, i: Any,
) -> Any:  # fmt: skip
    """A data record as row ``n``."""
    key, key_size = staged[i, a.KEY], staged[i, a.KEY_SIZE]
    value, size = staged[i, a.VALUE_AT], staged[i, a.VALUE_SIZE]
    entry = staged[i, ENTRY]
    if entry < 0 or not _is_entry(entries, arena, entry, IS_KEY, data, key, key_size):
        entry = _find(slots, entries, arena, data, key, key_size, np.int64(IS_KEY), staged[i, HASH])
    if entry < 0:
        entry = _new_key(desk, counts, slots, entries, arena, data, key, key_size, staged[i, HASH])
    if entry < 0:
        return -entry
    number = entries[U(entry), KEY_TYPE]
    ints[RECORD_TYPE, n] = number
    ints[GROUP, n] = entries[U(entry), KEY_GROUP]
    ints[TOPIC, n] = entries[U(entry), KEY_TOPIC]
    ints[PARTITION, n] = entries[U(entry), KEY_PARTITION]
    if size >= 0 and number < 2:
        return _add_commit(desk, counts, slots, entries, arena, longs, ints, texts, n, data, key, key_size, value, size)
    if size >= 0 and not _is_group(desk, data, value, size):
        return sc.DOUBTFUL
    kind = np.int64(GROUP_VALUE if size >= 0 else GROUP_TOMBSTONE if number == 2 else TOMBSTONE)
    _add_other(counts, longs, ints, texts, n, kind, data, key, key_size, value, size)
    return sc.FINISHED


@part
def _add_marker(counts: Any, longs: Any, ints: Any, texts: Any, n: Any, data: Any, staged: Any, i: Any) -> Any:
    """A transaction marker as row ``n``."""
    key, key_size = staged[i, a.KEY], staged[i, a.KEY_SIZE]
    value, size = staged[i, a.VALUE_AT], staged[i, a.VALUE_SIZE]
    if key_size < 4 or size < 6:
        return sc.DOUBTFUL
    number = be16(data, key + 2)
    if be16(data, key) < 0 or be16(data, value) < 0 or number < 0 or number > 1:
        return sc.DOUBTFUL
    for column in range(RECORD_TYPE, PARTITION + 1):
        ints[column, n] = a.NOTHING
    _add_other(counts, longs, ints, texts, n, ABORT_MARKER + number, data, key, key_size, value, size)
    return sc.FINISHED


@part
def _flush(
    desk: Any, counts: Any, slots: Any, entries: Any, arena: Any, staged: Any, data: Any, longs: Any, ints: Any,
    texts: Any,
) -> Any:  # fmt: skip
    """Make rows of what is staged; of the first batch that is not taken nothing is left but entries."""
    begin = counts[ROWS]
    batch = np.int64(0)
    metadata, raw_key, raw_value = counts[TEXTS_USED], counts[TEXTS_USED + 1], counts[TEXTS_USED + 2]
    for number in range(desk[a.STAGED]):
        i, n = U(number), U(begin + number)
        if number % a.BLOCK == 0:
            last = min(number + a.BLOCK, desk[a.STAGED])
            _look_ahead(desk, slots, entries, arena, data, staged, number, last)
        if staged[i, a.STAGED_INDEX] == 0:
            batch = np.int64(number)
            metadata, raw_key, raw_value = counts[TEXTS_USED], counts[TEXTS_USED + 1], counts[TEXTS_USED + 2]
        if staged[i, a.RECORD_AT] < 0:
            _add_no_text(counts, ints, n, METADATA)
            _add_no_raw(counts, ints, n)
            outcome = np.int64(sc.FINISHED)
        elif ints[ATTRIBUTES, n] & bt.CONTROL_MASK:
            outcome = np.int64(_add_marker(counts, longs, ints, texts, n, data, staged, i))
        else:
            outcome = np.int64(_add_record(desk, counts, slots, entries, arena, longs, ints, texts, n, data, staged, i))
        if outcome != sc.FINISHED:
            counts[ROWS] = begin + batch
            counts[TEXTS_USED], counts[TEXTS_USED + 1], counts[TEXTS_USED + 2] = metadata, raw_key, raw_value
            desk[a.AT] = staged[i, a.STAGED_BATCH]
            desk[a.LAST_OFFSET] = staged[i, BEFORE]
            desk[a.WINDOW_NEXT] = 0
            desk[a.STAGED] = 0
            return outcome
    counts[ROWS] = begin + desk[a.STAGED]
    desk[a.STAGED] = 0
    return np.int64(sc.FINISHED)


# -------------------------------------------------------------------------------------------------- batches


@inlined
def _sequence(base: Any, delta: Any) -> Any:
    """A sequence number behind a batch's first; they begin again behind the greatest."""
    return base + delta & b.MAX_SEQUENCE


@part
def _stage_batch(
    desk: Any, staged: Any, i: Any, n: Any, data: Any, at: Any, longs: Any, ints: Any
) -> None:  # fmt: skip
    """The row of a batch itself, staged as a record without bytes."""
    staged[i, a.KEY], staged[i, a.KEY_SIZE] = at, 0
    staged[i, a.RECORD_AT] = a.NOTHING
    staged[i, a.STAGED_BATCH] = at
    staged[i, a.STAGED_INDEX] = 0
    staged[i, BEFORE] = desk[a.LAST_OFFSET]
    base, last = be64(data, at), bt.last_offset(data, at)
    base_sequence = bt.base_sequence(data, at)
    for column in range(KIND, ENDS_AT):
        ints[column, n] = a.NOTHING
    ints[KIND, n] = BATCH
    ints[ATTRIBUTES, n] = bt.attributes_of(data, at)
    ints[PRODUCER_EPOCH, n] = bt.producer_epoch(data, at)
    ints[SIZE, n] = bt.size_of(data, at)
    ints[BASE_SEQUENCE, n] = base_sequence
    ints[LAST_SEQUENCE, n] = b.NO_SEQUENCE
    if base_sequence != b.NO_SEQUENCE:
        ints[LAST_SEQUENCE, n] = _sequence(base_sequence, last - base)
    longs[POSITION, n] = at
    longs[BATCH_BASE_OFFSET, n] = base
    longs[LAST_OFFSET, n] = last
    longs[MAX_TIMESTAMP, n] = bt.max_timestamp(data, at)
    longs[PRODUCER_ID, n] = bt.producer_of(data, at)
    longs[CRC, n] = bt.checksum_of(data, at)
    if not bt.is_older(data, at):  # of an older one no line tells more
        ints[RECORDS_COUNT, n] = be32(data, at + bt.RECORDS_COUNT)
        ints[PARTITION_LEADER_EPOCH, n] = be32(data, at + bt.PARTITION_LEADER_EPOCH)
        longs[BASE_TIMESTAMP, n] = be64(data, at + bt.BASE_TIMESTAMP)


@part
def _stage(
    desk: Any, counts: Any, staged: Any, source: Any, start: Any, end: Any, data: Any, at: Any, longs: Any, ints: Any,
    text_size: Any,
) -> Any:  # fmt: skip
    """The records of the batch at ``at``, which stand in ``source[start:end]``, and the columns that they share."""
    count = bt.count_of(source, start, end, data, at)
    has_row = counts[HAS_BATCHES]
    staged_count = desk[a.STAGED] + has_row
    staged_bytes = (end - start) + (counts[STAGED_BYTES] if desk[a.STAGED] else np.int64(0))
    room = text_size - max(counts[TEXTS_USED], max(counts[TEXTS_USED + 1], counts[TEXTS_USED + 2]))
    desk[a.NEEDED] = count
    if staged_count + count >= len(staged):
        return sc.NEEDS_RECORDS
    first = counts[ROWS] + staged_count
    if first + count > longs.shape[1] or staged_bytes > room:
        return FULL
    if bt.records_of(source, start, end, count, data, at, staged, staged_count) < 0:
        return sc.DOUBTFUL
    if has_row:
        _stage_batch(desk, staged, U(staged_count - 1), U(first - 1), data, at, longs, ints)
    base, base_sequence = bt.base_offset(data, at, staged, staged_count), bt.base_sequence(data, at)
    attributes = bt.attributes_of(data, at)
    producer_id, producer_epoch = bt.producer_of(data, at), bt.producer_epoch(data, at)
    checksum = bt.checksum_of(data, at)
    time, is_counted = bt.base_time(data, at)
    is_compressed, records_begin = attributes & bt.CODEC_MASK, bt.records_begin(data, at)
    for item in range(count):
        i, n = U(staged_count + item), U(first + item)
        time_delta = np.int64(staged[i, a.TIMESTAMP_DELTA]) if is_counted else np.int64(0)
        timestamp = time + time_delta
        if (timestamp ^ time) & (timestamp ^ time_delta) < 0:
            return sc.DOUBTFUL  # more than 64 bits
        staged[i, a.STAGED_BATCH] = at
        staged[i, a.STAGED_INDEX] = item + has_row
        staged[i, BEFORE] = desk[a.LAST_OFFSET]
        ints[ATTRIBUTES, n] = attributes
        ints[PRODUCER_EPOCH, n] = producer_epoch
        longs[POSITION, n] = records_begin if is_compressed else staged[i, a.RECORD_AT]
        longs[BATCH_BASE_OFFSET, n] = base
        longs[RECORD_OFFSET, n] = staged[i, a.OFFSET]
        longs[TIMESTAMP, n] = timestamp
        longs[PRODUCER_ID, n] = producer_id
        if has_row:
            offset_delta = staged[i, a.OFFSET] - base
            ints[KEY_SIZE, n] = staged[i, a.KEY_SIZE]
            ints[VALUE_SIZE, n] = staged[i, a.VALUE_SIZE]
            longs[OLDER_CHECKSUM, n] = checksum
            ints[SEQUENCE, n] = b.NO_SEQUENCE
            if base_sequence >= 0:
                ints[SEQUENCE, n] = _sequence(base_sequence, offset_delta)
    desk[a.STAGED] = staged_count + count
    counts[STAGED_BYTES] = staged_bytes
    return sc.FINISHED


@inlined
def _take(
    desk: Any, counts: Any, staged: Any, data: Any, window: Any, table: Any, at: Any, size: Any, longs: Any, ints: Any,
    text_size: Any,
) -> Any:  # fmt: skip
    """Stage the batch at a position, or say why not."""
    if size < 0 or not sc.is_in_place(desk, data, at, size):
        return sc.DOUBTFUL
    if bt.max_timestamp(data, at) > desk[a.UNTIL_TIME]:
        return sc.STOPPED
    if bt.last_offset(data, at) >= desk[a.UNTIL_OFFSET]:
        return sc.DOUBTFUL
    in_window = bt.attributes_of(data, at) & bt.CODEC_MASK != 0
    if desk[a.STAGED] and desk[a.IN_WINDOW] != in_window:
        return sc.PAUSED  # what is staged stands in one place
    desk[a.IN_WINDOW] = in_window
    if not in_window:
        begin = bt.records_begin(data, at)
        return _stage(desk, counts, staged, data, begin, at + size, data, at, longs, ints, text_size)
    place = sc.find_in_window(desk, table, at)
    if place < 0:
        return sc.NEEDS_WINDOW
    begin, end = table[place, wi.BEGIN], table[place, wi.END]
    if end < 0:
        return sc.DOUBTFUL
    return _stage(desk, counts, staged, window, begin, end, data, at, longs, ints, text_size)


@kernel
def fill(
    desk: Longs, counts: Longs, slots: Longs, entries: LongRows, arena: Bytes, staged: LongRows, data: Bytes,
    window: Bytes, table: LongRows, longs: LongRows, ints: IntRows, texts: ByteRows,
) -> Any:  # fmt: skip
    """Make rows of a segment's batches from ``desk[AT]`` on, behind ``counts[ROWS]``; why it came back."""
    desk[a.STAGED] = 0
    text_size = np.int64(texts.shape[1])
    outcome = np.int64(sc.FINISHED)
    while True:
        at = desk[a.AT]
        if outcome == sc.FINISHED and at < desk[a.STOP] and desk[a.STAGED] < sc.FLUSH_AT:
            size = bt.next_batch_at(desk, data, at, np.int64(len(data)))
            outcome = np.int64(_take(desk, counts, staged, data, window, table, at, size, longs, ints, text_size))
            if outcome == sc.FINISHED:
                desk[a.LAST_OFFSET] = bt.last_offset(data, at)
                desk[a.AT] = at + size
            continue
        source = window if desk[a.IN_WINDOW] else data
        flushed = _flush(desk, counts, slots, entries, arena, staged, source, longs, ints, texts)
        if flushed != sc.FINISHED:
            return flushed
        if outcome > sc.PAUSED:
            return outcome
        if at >= desk[a.STOP]:
            return np.int64(sc.FINISHED)
        outcome = np.int64(sc.FINISHED)


@kernel
def enter(desk: Longs, counts: Longs, slots: Longs, entries: LongRows, arena: Bytes) -> None:
    """Enter all entries into their empty table, after it has grown."""
    mask = np.int64(len(slots) - 1)
    for entry in range(counts[ENTRIES]):
        seed = desk[a.SEED] + entries[entry, ENTRY_KIND]
        found = hash_bytes(arena, entries[entry, ENTRY_AT], entries[entry, ENTRY_SIZE], seed)
        at = found & mask
        while slots[at] != 0:
            at = at + 1 & mask
        slots[at] = found & HIGH | entry + 1
