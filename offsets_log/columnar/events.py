"""All records of a log as Arrow tables, one row each: `pipeline.iter_events` for bulk.

A kernel fills columns of numbers from batches in which everything is plain; keys and topic ids become numbers by a
table of their bytes, each decoded once. A batch with anything unusual in it is read by hand with `pipeline` and its
rows put in their place, so rows and damage are those of the construct path.

A row tells all of an offset commit in columns. ``key`` and ``value`` hold the raw bytes of every other record, and of
an offset commit that the columns do not tell whole: with bytes behind its last field, unknown tagged fields or text
that is not UTF-8. What no column holds are headers and sequence numbers, which no coordinator writes.

Logs are cut into parts that threads read side by side, each from where it seems to begin; a part whose predecessor
ended elsewhere is read again.
"""

from __future__ import annotations

import secrets
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import count, islice, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from offsets_log.columnar import arrays as a
from offsets_log.columnar import batches as bt
from offsets_log.columnar import scan as sc
from offsets_log.columnar import window as wi
from offsets_log.columnar.arrow import schema_of
from offsets_log.columnar.compiled import U, inlined, is_kept, kernel, part, prefetch
from offsets_log.columnar.keys import HIGH, LOW, is_utf8, same_bytes
from offsets_log.columnar.layout import Layout, Scanner
from offsets_log.columnar.programs import NO_PLACE, SIZES, NoProgramError, Program, compile_program, table_of
from offsets_log.columnar.replay import (
    NO_BOUND,
    Advance,
    Note,
    Place,
    Seen,
    first_batch,
    int32_at,
    is_batch_at,
    note_gap,
)
from offsets_log.columnar.wire import be16, be32, be64, hash_bytes, uvarint, walk
from offsets_log.errors import Damage
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.compression import CODECS
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.log_format.primitives import Uuid
from offsets_log.log_format.segment import Tail
from offsets_log.messages.offset_commit import OFFSET_COMMIT_VALUE
from offsets_log.messages.registry import RECORD_TYPES, CoordinatorRecord, record_type_of
from offsets_log.messages.schema import Scalar
from offsets_log.pipeline import EVERYTHING, Event, LogEvent, TailFound, Until, batch_events
from offsets_log.tables import PLACE_COLUMNS, Column, Row

EVENT_COLUMNS = (
    *PLACE_COLUMNS,
    Column("control_type", "string", "of a control record: COMMIT, ABORT or another; null for data"),
    Column("record_type", "int", "the key's number; null for a control record"),
    Column("name", "string", "Kafka's name of the record type"),
    Column("group", "string", "group id"),
    Column("topic", "string", "of an offset commit"),
    Column("partition", "int", "of that topic"),
    Column("is_tombstone", "boolean", "whether the value is null; null for a control record"),
    Column("value_version", "int", "null for a tombstone"),
    Column("committed_offset", "bigint", "of an offset commit"),
    Column("leader_epoch", "int", "of the consumed record; null if none was sent"),
    Column("metadata", "string", "the client's own text"),
    Column("commit_timestamp_ms", "bigint", "when it was committed"),
    Column("expire_timestamp_ms", "bigint", "explicit expiry of value version 1; null if none"),
    Column("topic_id", "string", "null if the record carries none"),
    Column("key", "binary", "raw, of a record that the columns do not tell whole"),
    Column("value", "binary", "raw, of a record that the columns do not tell whole"),
    Column("error", "string", "why the record could not be decoded"),
)
BOUNDED = (
    "offsets_partition",
    "batch_base_offset",
    "record_offset",
    "timestamp_ms",
    "commit_timestamp_ms",
    "record_type",
)
"""Columns whose least and greatest values tell which rows can be passed over."""
TEXTS = ("file", "timestamp_type", "compression", "control_type", "name", "group", "topic", "topic_id")
"""Columns whose texts are many times the same: their Arrow type is a dictionary."""
ALWAYS = (
    "file", "position", "batch_base_offset", "record_offset", "timestamp_ms", "timestamp_type", "magic", "compression",
    "producer_id", "producer_epoch", "is_transactional", "is_control",
)  # fmt: skip
"""Columns that are never null."""

ROWS_IN_TABLE = 2 * 122_880
"""Rows of a table, more or less: two of DuckDB's row groups."""
BYTES_BY_HAND = 1 << 24
"""Of batches whose rows wait in Python for their table."""
PART_BYTES = 1 << 27
MOST_ENTRIES = 1 << 20
"""Distinct keys and topic ids that are remembered."""


def _schema() -> pa.Schema:
    text = pa.dictionary(pa.int32(), pa.string())
    return pa.schema(
        [
            pa.field(field.name, text if field.name in TEXTS else field.type, field.name not in ALWAYS)
            for field in schema_of(EVENT_COLUMNS)
        ]
    )


SCHEMA = _schema()


Numbers = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]


# ------------------------------------------------------------------------------------------------ by hand


def event_row(event: Event) -> Row:
    """One record by `EVENT_COLUMNS`; columns that are null may be missing.

    A number that is too large for its column is wrapped as Java does it.
    """
    batch, record = event.batch, event.record
    row: Row = {
        "file": _encodable(event.segment.file),
        "offsets_partition": event.offsets_partition,
        "position": record.position,
        "batch_base_offset": event.batch_base_offset,
        "record_offset": _int64(record.offset),
        "timestamp_ms": _int64(record.timestamp_ms),
        "timestamp_type": batch.timestamp_type,
        "magic": batch.magic,
        "compression": batch.compression,
        "producer_id": batch.producer_id,
        "producer_epoch": batch.producer_epoch,
        "is_transactional": batch.is_transactional,
        "is_control": batch.is_control,
    }
    if batch.is_control:
        row["control_type"] = None if event.control is None else event.control.type
    elif event.decoded is not None:
        row |= _decoded_columns(event.decoded)
    else:
        number = record_type_of(record.key)
        known = RECORD_TYPES.get(number) if number is not None else None
        row |= {"record_type": number, "name": known.name if known else None, "is_tombstone": record.value is None}
    if event.damage is not None:
        row["error"] = _encodable(str(event.damage.error))
    if event.decoded is None or not _is_told_whole(event.decoded):
        row |= {"key": record.key, "value": record.value}
    return row


def _decoded_columns(decoded: CoordinatorRecord) -> Row:
    row: Row = {
        "record_type": decoded.record_type,
        "name": decoded.name,
        "group": decoded.group,
        "is_tombstone": decoded.is_tombstone,
        "value_version": decoded.value_version,
    }
    if not decoded.is_offset_commit:
        return row
    row |= {"topic": decoded.key["topic"], "partition": decoded.key["partition"]}
    value = decoded.value
    if value is None:
        return row
    topic_id = value.get("topic_id", b"")
    return row | {
        "committed_offset": value["offset"],
        "leader_epoch": _unless_none(value.get("leader_epoch", -1)),
        "metadata": value["metadata"],
        "commit_timestamp_ms": value["commit_timestamp"],
        "expire_timestamp_ms": _unless_none(value.get("expire_timestamp", -1)),
        "topic_id": str(Uuid(topic_id)) if any(topic_id) else None,
    }


def _unless_none(number: int) -> int | None:
    return None if number == -1 else number


def _is_told_whole(decoded: CoordinatorRecord) -> bool:
    return decoded.is_offset_commit and not (
        decoded.key_trailing or decoded.value_trailing or decoded.unknown_tags() or decoded.malformed_strings()
    )


def _int64(number: int) -> int:
    return (number + (1 << 63) & (1 << 64) - 1) - (1 << 63)


def _encodable(text: str) -> str:
    """Without the surrogates by which Python holds bytes of file names that are not UTF-8."""
    return text.encode(errors="surrogateescape").decode(errors="replace")


def table_of_events(rows: Sequence[Row]) -> pa.Table:
    """Rows of `event_row` as a table."""
    plain = schema_of(EVENT_COLUMNS)
    columns = [pa.array([row.get(field.name) for row in rows], field.type) for field in plain]
    made = [
        column.dictionary_encode() if field.name in TEXTS else column
        for field, column in zip(plain, columns, strict=True)
    ]
    return pa.Table.from_arrays(made, schema=SCHEMA)


def iter_event_tables(rows: Iterable[Row]) -> Iterator[pa.Table]:
    """Rows of `event_row` as tables of `ROWS_IN_TABLE`."""
    held: list[Row] = []
    for row in rows:
        held.append(row)
        if len(held) == ROWS_IN_TABLE:
            yield table_of_events(held)
            held = []
    if held:
        yield table_of_events(held)


@dataclass(frozen=True, slots=True)
class Shown:
    """Which rows are asked for: records of these groups, and offset commits of these topics; None is all."""

    group: Callable[[str], bool] | None = None
    topic: Callable[[str], bool] | None = None

    @property
    def is_all(self) -> bool:
        """Whether nothing is left out."""
        return self.group is None and self.topic is None

    def shows_group(self, name: str) -> bool:
        """Whether records of this group are asked for."""
        return self.group is None or self.group(name)

    def shows_topic(self, name: str) -> bool:
        """Whether offset commits of this topic are asked for."""
        return self.topic is None or self.topic(name)

    def shows(self, row: Row) -> bool:
        """Whether a row is asked for."""
        if self.is_all:
            return True
        group, topic = row.get("group"), row.get("topic")
        if group is None or not self.shows_group(group):
            return False
        return self.topic is None or (topic is not None and self.topic(topic))


ALL = Shown()


# ------------------------------------------------------------------------------------------------ kernels

# Rows of ``longs``: columns of 64 bits.
(
    POSITION, BATCH_BASE_OFFSET, RECORD_OFFSET, TIMESTAMP, PRODUCER_ID, COMMITTED_OFFSET, COMMIT_TIMESTAMP,
    EXPIRE_TIMESTAMP,
) = range(8)  # fmt: skip
LONGS = 8

# Rows of ``ints``: columns of 32 bits.
KIND = 0
ATTRIBUTES = 1
PRODUCER_EPOCH = 2
KEY = 3  # its number among the entries
VERSION = 4
LEADER_EPOCH = 5
TOPIC_ID = 6  # its number among the entries
SIZES_AT = 7  # of what stands in ``texts``; NOTHING for null
INTS = 10
METADATA, RAW_KEY, RAW_VALUE = range(3)
"""Rows of ``texts``: bytes of one column behind each other."""

HASH = a.KIND
"""The column of ``staged`` with a key's hash, in place of what scans have there."""

COMMITTED, TOMBSTONE, GROUP_VALUE, ABORT_MARKER, COMMIT_MARKER = range(5)
"""Kinds of rows."""

# Of ``counts``.
ROWS = 0
ENTRIES = 1
ARENA_USED = 2
TEXTS_USED = 3
COUNTS = 6

# Columns of ``entries``: one row for each distinct key, group, topic and topic id.
ENTRY_AT = 0  # in the arena
ENTRY_SIZE = 1
ENTRY_KIND = 2
KEY_TYPE = 3  # of a key: its record type
KEY_GROUP = 4  # the entry of its group
KEY_TOPIC = 5  # the entry of its topic
KEY_PARTITION = 6
ENTRY_COLUMNS = 8
IS_KEY, IS_GROUP, IS_TOPIC, IS_TOPIC_ID = range(4)

# Why a kernel came back.
FINISHED, FULL, DOUBTFUL, NEEDS_ROOM, NEEDS_WINDOW, NEEDS_RECORDS, STOPPED = range(7)

# Columns of ``SHAPES``, one row a value version: positions behind the version's two bytes, and behind the metadata.
BEFORE, AFTER, LEADER_AT, EXPIRE_AT, IS_FLEXIBLE = range(5)
NO_TAGS = 1
ONLY_TOPIC_ID = 3 + 16
"""Bytes of a section of tagged fields with nothing, and with a topic id."""


def _shapes() -> a.Int64s:
    """Where the fields of an offset commit's value stand, from its declaration."""
    shapes = np.full((a.VERSIONS, 5), a.NOTHING, np.int64)
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


@part
def _find(slots: Any, entries: Any, arena: Any, data: Any, start: Any, size: Any, kind: Any, found: Any) -> Any:
    """The number of an entry, NOTHING if it is not there."""
    mask = np.int64(len(slots) - 1)
    at = found & mask
    while slots[U(at)] != 0:
        if (slots[U(at)] ^ found) & HIGH == 0:
            entry = (slots[U(at)] & LOW) - 1
            is_alike = entries[U(entry), ENTRY_SIZE] == size and entries[U(entry), ENTRY_KIND] == kind
            if is_alike and same_bytes(arena, entries[U(entry), ENTRY_AT], data, start, size):
                return entry
        at = at + 1 & mask
    return np.int64(a.NOTHING)


@part
def _put(
    counts: Any, slots: Any, entries: Any, arena: Any, data: Any, start: Any, size: Any, kind: Any, found: Any
) -> Any:
    """A new entry; −NEEDS_ROOM."""
    entry = counts[ENTRIES]
    used = counts[ARENA_USED]
    if 2 * (entry + 1) > len(slots) or entry >= len(entries) or used + size > len(arena):
        return np.int64(-NEEDS_ROOM)
    for i in range(size):
        arena[U(used + i)] = data[U(start + i)]
    entries[entry, ENTRY_AT] = used
    entries[entry, ENTRY_SIZE] = size
    entries[entry, ENTRY_KIND] = kind
    mask = np.int64(len(slots) - 1)
    at = found & mask
    while slots[at] != 0:
        at = at + 1 & mask
    slots[at] = found & HIGH | entry + 1
    counts[ENTRIES] = entry + 1
    counts[ARENA_USED] = used + size
    return entry


@part
def _text(
    desk: Any, counts: Any, slots: Any, entries: Any, arena: Any, data: Any, start: Any, size: Any, kind: Any
) -> Any:
    """The number of a group, topic or topic id, new or known; −NEEDS_ROOM."""
    found = hash_bytes(data, start, size, desk[a.SEED] + kind)
    entry = _find(slots, entries, arena, data, start, size, kind, found)
    return entry if entry >= 0 else _put(counts, slots, entries, arena, data, start, size, kind, found)


@part
def _new_key(
    desk: Any, counts: Any, slots: Any, entries: Any, arena: Any, data: Any, start: Any, size: Any, found: Any
) -> Any:
    """A key of type 0, 1 or 2, with names of UTF-8 and nothing behind it; −DOUBTFUL, −NEEDS_ROOM."""
    number = be16(data, start)
    if number < 0 or number >= a.KEY_TYPES:
        return np.int64(-DOUBTFUL)
    end = start + size
    if walk(desk, desk[a.KEY_PROGRAMS + number], data, start + 2, end) != end:
        return np.int64(-DOUBTFUL)
    group_at, topic_at = desk[a.NOTES], desk[a.NOTES + 1]
    if not is_utf8(data, group_at + 2, be16(data, group_at)):
        return np.int64(-DOUBTFUL)
    group = _text(desk, counts, slots, entries, arena, data, group_at + 2, be16(data, group_at), np.int64(IS_GROUP))
    topic = np.int64(a.NOTHING)
    if number < 2:
        topic_size = be16(data, topic_at)
        if not is_utf8(data, topic_at + 2, topic_size):
            return np.int64(-DOUBTFUL)
        topic = _text(desk, counts, slots, entries, arena, data, topic_at + 2, topic_size, np.int64(IS_TOPIC))
    entry = _put(counts, slots, entries, arena, data, start, size, np.int64(IS_KEY), found)
    if group == -NEEDS_ROOM or topic == -NEEDS_ROOM or entry < 0:
        return np.int64(-NEEDS_ROOM)
    entries[entry, KEY_TYPE] = number
    entries[entry, KEY_GROUP] = group
    entries[entry, KEY_TOPIC] = topic
    entries[entry, KEY_PARTITION] = be32(data, end - 4) if number < 2 else np.int64(a.NOTHING)
    return entry


@inlined
def _add_text(counts: Any, ints: Any, texts: Any, n: Any, which: Any, data: Any, start: Any, size: Any) -> None:
    """What stands in a row of ``texts``; the caller has made sure of room. A size of −1 is null."""
    ints[SIZES_AT + which, n] = size
    used = counts[TEXTS_USED + which]
    for i in range(size):
        texts[which, U(used + i)] = data[U(start + i)]
    counts[TEXTS_USED + which] = used + max(size, np.int64(0))


@part
def _add_raw(
    counts: Any, ints: Any, texts: Any, n: Any, data: Any, key: Any, key_size: Any, value: Any, size: Any
) -> None:
    """The raw key and value of a record."""
    _add_text(counts, ints, texts, n, np.int64(RAW_KEY), data, key, key_size)
    _add_text(counts, ints, texts, n, np.int64(RAW_VALUE), data, value, size)


@inlined
def _add_no_raw(ints: Any, n: Any) -> None:
    ints[SIZES_AT + RAW_KEY, n] = a.NOTHING
    ints[SIZES_AT + RAW_VALUE, n] = a.NOTHING


@inlined
def _metadata_at(data: Any, at: Any, end: Any, version: Any) -> Any:
    """Where the metadata begins and ends; −1 where it does not fit."""
    at += 2 + SHAPES[version, BEFORE]
    if at + 2 > end:
        return np.int64(-1), np.int64(-1)
    if SHAPES[version, IS_FLEXIBLE]:
        size, at = uvarint(data, at, end)
        size -= 1
    else:
        size, at = be16(data, at), at + 2
    if at < 0 or size < 0 or size + SHAPES[version, AFTER] > end - at:
        return np.int64(-1), np.int64(-1)
    return at, at + size


@inlined
def _add_commit(
    desk: Any, counts: Any, slots: Any, entries: Any, arena: Any, longs: Any, ints: Any, texts: Any, n: Any,
    data: Any, key: Any, key_size: Any, value: Any, size: Any,
) -> Any:  # fmt: skip
    """The columns of an offset commit with a value."""
    if size < 2:
        return DOUBTFUL
    version = be16(data, value)
    if version < 0 or version >= a.VERSIONS or SHAPES[version, BEFORE] < 0:
        return DOUBTFUL
    text_at, text_end = _metadata_at(data, value, value + size, version)
    if text_at < 0 or (text_end > text_at and not is_utf8(data, text_at, text_end - text_at)):
        return DOUBTFUL
    after = text_end + SHAPES[version, AFTER]
    left = value + size - after
    topic_id = np.int64(a.NOTHING)
    if SHAPES[version, IS_FLEXIBLE]:
        if left == ONLY_TOPIC_ID and data[U(after)] == 1 and data[U(after + 1)] == 0 and data[U(after + 2)] == 16:
            if be64(data, after + 3) != 0 or be64(data, after + 11) != 0:
                topic_id = _text(
                    desk, counts, slots, entries, arena, data, after + 3, np.int64(16), np.int64(IS_TOPIC_ID)
                )
                if topic_id < 0:
                    return -topic_id
        elif left != NO_TAGS or data[U(after)] != 0:
            return DOUBTFUL
        left = np.int64(0)
    leader_at, expire_at = SHAPES[version, LEADER_AT], SHAPES[version, EXPIRE_AT]
    ints[KIND, n] = COMMITTED
    ints[VERSION, n] = version
    ints[TOPIC_ID, n] = topic_id
    longs[COMMITTED_OFFSET, n] = be64(data, value + 2)
    ints[LEADER_EPOCH, n] = be32(data, value + 2 + leader_at) if leader_at >= 0 else np.int64(-1)
    longs[COMMIT_TIMESTAMP, n] = be64(data, text_end)
    longs[EXPIRE_TIMESTAMP, n] = be64(data, text_end + expire_at) if expire_at >= 0 else np.int64(-1)
    _add_text(counts, ints, texts, n, np.int64(METADATA), data, text_at, text_end - text_at)
    if left > 0:
        _add_raw(counts, ints, texts, n, data, key, key_size, value, size)
    else:
        _add_no_raw(ints, n)
    return FINISHED


@part
def _add_other(
    counts: Any, longs: Any, ints: Any, texts: Any, n: Any, kind: Any, data: Any, key: Any, key_size: Any,
    value: Any, size: Any,
) -> Any:  # fmt: skip
    """The columns of a tombstone, a classic group or a marker, whose key and value have been looked at."""
    ints[KIND, n] = kind
    ints[VERSION, n] = be16(data, value) if kind == GROUP_VALUE else np.int64(-1)
    ints[TOPIC_ID, n] = a.NOTHING
    longs[COMMITTED_OFFSET, n] = 0
    ints[LEADER_EPOCH, n] = -1
    longs[COMMIT_TIMESTAMP, n] = 0
    longs[EXPIRE_TIMESTAMP, n] = -1
    ints[SIZES_AT + METADATA, n] = a.NOTHING
    if kind != TOMBSTONE or be16(data, key) == 2:
        _add_raw(counts, ints, texts, n, data, key, key_size, value, size)
    else:
        _add_no_raw(ints, n)


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
    found = staged[i, HASH]
    entry = _find(slots, entries, arena, data, key, key_size, np.int64(IS_KEY), found)
    if entry < 0:
        entry = _new_key(desk, counts, slots, entries, arena, data, key, key_size, found)
    if entry < 0:
        return -entry
    ints[KEY, n] = entry
    if size >= 0 and be16(data, key) < 2:
        return _add_commit(desk, counts, slots, entries, arena, longs, ints, texts, n, data, key, key_size, value, size)
    if size >= 0 and not _is_group(desk, data, value, size):
        return DOUBTFUL
    kind = np.int64(GROUP_VALUE if size >= 0 else TOMBSTONE)
    _add_other(counts, longs, ints, texts, n, kind, data, key, key_size, value, size)
    return FINISHED


@part
def _add_marker(counts: Any, longs: Any, ints: Any, texts: Any, n: Any, data: Any, staged: Any, i: Any) -> Any:
    """A transaction marker as row ``n``."""
    key, key_size = staged[i, a.KEY], staged[i, a.KEY_SIZE]
    value, size = staged[i, a.VALUE_AT], staged[i, a.VALUE_SIZE]
    if key_size < 4 or size < 6:
        return DOUBTFUL
    number = be16(data, key + 2)
    if be16(data, key) < 0 or be16(data, value) < 0 or number < 0 or number > 1:
        return DOUBTFUL
    ints[KEY, n] = a.NOTHING
    _add_other(counts, longs, ints, texts, n, ABORT_MARKER + number, data, key, key_size, value, size)
    return FINISHED


@inlined
def _look_ahead(desk: Any, slots: Any, entries: Any, source: Any, staged: Any, count: Any) -> None:
    """Hash the keys of a batch and ask for what will be needed of the table."""
    mask = np.int64(len(slots) - 1)
    for item in range(count):
        i = U(item)
        found = hash_bytes(source, staged[i, a.KEY], staged[i, a.KEY_SIZE], desk[a.SEED] + IS_KEY)
        staged[i, HASH] = found
        prefetch(slots, found & mask)
    for item in range(count):
        slot = slots[U(staged[U(item), HASH] & mask)]
        if slot != 0:
            prefetch(entries, ((slot & LOW) - 1) * ENTRY_COLUMNS)


@inlined
def _add_batch(
    desk: Any, counts: Any, slots: Any, entries: Any, arena: Any, staged: Any, source: Any, start: Any, end: Any,
    data: Any, at: Any, longs: Any, ints: Any, texts: Any,
) -> Any:  # fmt: skip
    """The records of the batch at ``at``, which stand in ``source[start:end]``, as rows."""
    count = be32(data, at + bt.RECORDS_COUNT)
    first = counts[ROWS]
    room = texts.shape[1] - max(counts[TEXTS_USED], max(counts[TEXTS_USED + 1], counts[TEXTS_USED + 2]))
    if bt.LEAST_RECORD_SIZE * count > end - start:
        return DOUBTFUL
    if count > len(staged):
        return NEEDS_RECORDS
    if first + count > longs.shape[1] or end - start > room:
        return FULL
    base = be64(data, at)
    if bt.records_at(source, start, end, count, base, be32(data, at + bt.LAST_OFFSET_DELTA), staged, np.int64(0)) < 0:
        return DOUBTFUL
    attributes = be16(data, at + bt.ATTRIBUTES)
    producer_id, producer_epoch = be64(data, at + bt.PRODUCER_ID), be16(data, at + bt.PRODUCER_EPOCH)
    is_append_time = attributes & bt.TIMESTAMP_TYPE_MASK
    time = be64(data, at + (bt.MAX_TIMESTAMP if is_append_time else bt.BASE_TIMESTAMP))
    is_compressed = attributes & bt.CODEC_MASK
    if attributes & bt.CONTROL_MASK == 0:
        _look_ahead(desk, slots, entries, source, staged, count)
    for item in range(count):
        i, n = U(item), U(first + item)
        if attributes & bt.CONTROL_MASK:
            outcome = np.int64(_add_marker(counts, longs, ints, texts, n, source, staged, i))
        else:
            outcome = np.int64(
                _add_record(desk, counts, slots, entries, arena, longs, ints, texts, n, source, staged, i)
            )
        if outcome != FINISHED:
            return outcome
        ints[ATTRIBUTES, n] = attributes
        ints[PRODUCER_EPOCH, n] = producer_epoch
        longs[POSITION, n] = at + bt.HEADER_SIZE if is_compressed else staged[i, a.RECORD_AT]
        longs[BATCH_BASE_OFFSET, n] = base
        longs[RECORD_OFFSET, n] = staged[i, a.OFFSET]
        longs[TIMESTAMP, n] = time if is_append_time else time + staged[i, a.TIMESTAMP_DELTA]
        longs[PRODUCER_ID, n] = producer_id
    counts[ROWS] = first + count
    return FINISHED


@inlined
def _take(
    desk: Any, counts: Any, slots: Any, entries: Any, arena: Any, staged: Any, data: Any, window: Any, table: Any,
    at: Any, size: Any, longs: Any, ints: Any, texts: Any,
) -> Any:  # fmt: skip
    """The batch at a position as rows, or why not."""
    if size < 0 or not sc.is_in_place(desk, data, at, size):
        return DOUBTFUL
    if be64(data, at + bt.MAX_TIMESTAMP) > desk[a.UNTIL_TIME]:
        return STOPPED
    if be64(data, at) + be32(data, at + bt.LAST_OFFSET_DELTA) >= desk[a.UNTIL_OFFSET]:
        return DOUBTFUL
    attributes = be16(data, at + bt.ATTRIBUTES)
    source, start, end = data, at + bt.HEADER_SIZE, at + size
    if attributes & bt.CODEC_MASK:
        place = sc.find_in_window(desk, table, at)
        if place < 0:
            return NEEDS_WINDOW
        source, start, end = window, table[place, wi.BEGIN], table[place, wi.END]
        if end < 0:
            return DOUBTFUL
    return _add_batch(desk, counts, slots, entries, arena, staged, source, start, end, data, at, longs, ints, texts)


@kernel
def fill(
    desk: Any, counts: Any, slots: Any, entries: Any, arena: Any, staged: Any, data: Any, window: Any, table: Any,
    longs: Any, ints: Any, texts: Any,
) -> Any:  # fmt: skip
    """Make rows of a segment's batches from ``desk[AT]`` on; why it came back.

    Rows are numbered from ``counts[ROWS]`` on. A batch that was not taken leaves nothing but entries.
    """
    while desk[a.AT] < desk[a.STOP]:
        at = desk[a.AT]
        is_known = at == desk[a.CHECKED]
        size = desk[a.CHECKED_SIZE] if is_known else bt.batch_at(data, at, np.int64(len(data)))
        used = counts[TEXTS_USED], counts[TEXTS_USED + 1], counts[TEXTS_USED + 2]
        outcome = np.int64(
            _take(desk, counts, slots, entries, arena, staged, data, window, table, at, size, longs, ints, texts)
        )
        if outcome != FINISHED:
            counts[TEXTS_USED], counts[TEXTS_USED + 1], counts[TEXTS_USED + 2] = used
            return outcome
        desk[a.LAST_OFFSET] = be64(data, at) + be32(data, at + bt.LAST_OFFSET_DELTA)
        desk[a.AT] = at + size
    return np.int64(FINISHED)


@kernel
def enter(desk: Any, counts: Any, slots: Any, entries: Any, arena: Any) -> None:
    """Enter all entries into their empty table, after it has grown."""
    mask = np.int64(len(slots) - 1)
    for entry in range(counts[ENTRIES]):
        seed = desk[a.SEED] + entries[entry, ENTRY_KIND]
        found = hash_bytes(arena, entries[entry, ENTRY_AT], entries[entry, ENTRY_SIZE], seed)
        at = found & mask
        while slots[at] != 0:
            at = at + 1 & mask
        slots[at] = found & HIGH | entry + 1


def is_compiled() -> bool:
    """Whether the kernels are kept on disk already, as they are now."""
    return is_kept(fill)


# ---------------------------------------------------------------------------------------------- entries

LEAST_ENTRIES = 1 << 12


class _Texts:
    """Distinct texts, numbered as they come."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def add(self, text: str) -> int:
        """Its number."""
        return self.numbers.setdefault(text, len(self.numbers))

    def column(self, numbers: Numbers) -> pa.DictionaryArray:
        """Numbers as a column, null where they are negative; of many texts only those that stand in it."""
        texts = list(self.numbers)
        is_null = numbers < 0
        if 4 * len(texts) > len(numbers):
            used, numbers = np.unique(numbers, return_inverse=True)
            texts = [texts[number] if number >= 0 else "" for number in used.tolist()]
        return dictionary_column(numbers, texts, is_null)


def dictionary_column(numbers: Numbers, texts: Sequence[str], is_null: Mask | None = None) -> pa.DictionaryArray:
    """Numbers of texts as a column."""
    return pa.DictionaryArray.from_arrays(
        nullable_column(numbers.astype(np.int32, copy=False), is_null), pa.array(texts, pa.string())
    )


def nullable_column(numbers: Numbers, is_null: Mask | None) -> pa.Array:
    """Numbers as a column, on the same memory where none is null."""
    return pa.array(numbers, mask=is_null if is_null is not None and is_null.any() else None)


def bytes_column(data: a.Bytes, sizes: Numbers, kind: pa.DataType) -> pa.Array:
    """Texts or bytes that stand behind each other as a column; a negative size is null."""
    is_there = sizes >= 0
    if not is_there.any():
        return pa.nulls(len(sizes), kind)
    bounds = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(np.maximum(sizes, 0), out=bounds[1:])
    validity = None if is_there.all() else pa.py_buffer(np.packbits(is_there, bitorder="little"))
    return pa.Array.from_buffers(kind, len(sizes), [validity, pa.py_buffer(bounds), pa.py_buffer(data)])


class _Entries:
    """Keys, names and topic ids as numbers."""

    def __init__(self) -> None:
        self.slots = np.zeros(4 * LEAST_ENTRIES, np.int64)
        self.entries = np.zeros((LEAST_ENTRIES, ENTRY_COLUMNS), np.int64)
        self.arena = np.zeros(64 * LEAST_ENTRIES, np.uint8)
        self.numbers = np.full(LEAST_ENTRIES, a.NOTHING, np.int32)
        self.groups, self.topics, self.topic_ids = _Texts(), _Texts(), _Texts()
        self.understood = 0

    def grow(self, desk: a.Int64s, counts: a.Int64s) -> None:
        """Twice the room."""
        self.slots = np.zeros(2 * len(self.slots), np.int64)
        self.entries = np.concatenate([self.entries, np.zeros_like(self.entries)])
        self.arena = np.concatenate([self.arena, np.zeros_like(self.arena)])
        self.numbers = np.concatenate([self.numbers, np.full_like(self.numbers, a.NOTHING)])
        enter(desk, counts, self.slots, self.entries, self.arena)

    def understand(self, count: int) -> None:
        """Decode the names and topic ids that are new."""
        kinds = self.entries[self.understood : count, ENTRY_KIND]
        texts = {IS_GROUP: self.groups, IS_TOPIC: self.topics, IS_TOPIC_ID: self.topic_ids}
        for entry in (self.understood + np.flatnonzero(kinds != IS_KEY)).tolist():
            at, size, kind = self.entries[entry, :3].tolist()
            raw = self.arena[at : at + size].tobytes()
            self.numbers[entry] = texts[kind].add(str(Uuid(raw)) if kind == IS_TOPIC_ID else raw.decode())
        self.understood = count

    def numbers_of(self, entries: Numbers) -> Numbers:
        """The texts' numbers of entries; NOTHING stays NOTHING."""
        return np.where(entries >= 0, self.numbers[entries], np.int32(a.NOTHING))

    def fields(self) -> list[Numbers]:
        """By entry, of keys: type, numbers of group and topic, partition. The last one is that of control records."""
        keys = self.entries[: self.understood + 1]
        is_key = keys[:, ENTRY_KIND] == IS_KEY
        names = [self.numbers_of(np.where(is_key, keys[:, field], a.NOTHING)) for field in (KEY_GROUP, KEY_TOPIC)]
        types, partitions = (keys[:, field].astype(np.int32) for field in (KEY_TYPE, KEY_PARTITION))
        return [types, *names, partitions]

    def shown(self, shown: Shown) -> Mask:
        """By entry, whether records with this key are asked for."""
        groups = np.array([shown.shows_group(name) for name in self.groups.numbers], np.bool_)
        topics = np.array([shown.shows_topic(name) for name in self.topics.numbers] + [shown.topic is None], np.bool_)
        keys = np.flatnonzero(self.entries[: self.understood, ENTRY_KIND] == IS_KEY)
        is_shown = np.zeros(self.understood + 1, np.bool_)  # the last one is that of control records
        if len(keys):
            fields = self.entries[keys]
            is_shown[keys] = groups[self.numbers_of(fields[:, KEY_GROUP])]
            is_shown[keys] &= topics[self.numbers_of(fields[:, KEY_TOPIC])]
        return is_shown


# ------------------------------------------------------------------------------------------- conversion

CODEC_NAMES = [codec.name for codec in CODECS]
TYPE_NAMES = [RECORD_TYPES[number].name for number in range(a.KEY_TYPES)]


class _Chunk:
    """Rows on their way into a table: those of the kernel in columns, those read by hand with their places."""

    def __init__(self) -> None:
        self.desk = _new_desk()
        self.counts = np.zeros(COUNTS, np.int64)
        self.longs = np.zeros((LONGS, ROWS_IN_TABLE), np.int64)
        self.ints = np.zeros((INTS, ROWS_IN_TABLE), np.int32)
        self.texts = np.zeros((3, 32 * ROWS_IN_TABLE), np.uint8)
        self.entries = _Entries()
        self.files: list[tuple[int, str]] = []
        self.by_hand: list[Row] = []
        self.places: list[int] = []
        self.bytes_by_hand = 0

    @property
    def rows(self) -> int:
        """Of the kernel."""
        return int(self.counts[ROWS])

    def __len__(self) -> int:
        return self.rows + len(self.by_hand)

    @property
    def is_full(self) -> bool:
        """Whether it is time for a table."""
        return len(self) >= ROWS_IN_TABLE or self.bytes_by_hand >= BYTES_BY_HAND

    def begin_file(self, file: str) -> None:
        """The kernel's rows from here on are of this file."""
        self.files.append((self.rows, _encodable(file)))

    def add_by_hand(self, row: Row) -> None:
        """The next row."""
        self.by_hand.append(row)
        self.places.append(self.rows)

    def widen(self, count: int) -> None:
        """Room for a batch of so many records, or of more bytes. There must be no rows."""
        if count > self.longs.shape[1]:
            self.longs = np.zeros((LONGS, count), np.int64)
            self.ints = np.zeros((INTS, count), np.int32)
        else:
            self.texts = np.zeros((3, 2 * self.texts.shape[1]), np.uint8)

    def begin(self) -> None:
        """Begin with another part."""
        self.clear()
        self.files = []

    def clear(self) -> None:
        """Begin anew, behind a table."""
        self.counts[[ROWS, TEXTS_USED, TEXTS_USED + 1, TEXTS_USED + 2]] = 0
        if self.counts[ENTRIES] > MOST_ENTRIES:
            self.entries = _Entries()
            self.counts[:] = 0
        self.files = [(0, file) for _, file in self.files[-1:]]
        self.by_hand, self.places, self.bytes_by_hand = [], [], 0

    def table(self, offsets_partition: int | None, shown: Shown) -> pa.Table:
        """The rows asked for, in log order, on the memory of the chunk."""
        self.entries.understand(int(self.counts[ENTRIES]))
        columns = self._columns(offsets_partition)
        table = pa.Table.from_arrays([columns[name] for name in SCHEMA.names], schema=SCHEMA)
        places = self.places
        if not shown.is_all:
            mask = self.entries.shown(shown)[self.ints[KEY, : self.rows]]
            table = table.filter(pa.array(mask))
            places = np.concatenate([[0], np.cumsum(mask)])[places].tolist() if places else []
        if not self.by_hand:
            return table
        order = np.insert(np.arange(len(table)), places, len(table) + np.arange(len(places)))
        both = pa.concat_tables([table, table_of_events(self.by_hand)]).unify_dictionaries()
        return both.take(pa.array(order))

    def _columns(self, offsets_partition: int | None) -> dict[str, pa.Array]:
        n = self.rows
        longs, ints, entries = self.longs[:, :n], self.ints[:, :n], self.entries
        attributes = ints[ATTRIBUTES]
        partition = pa.scalar(offsets_partition, pa.int32())
        return {
            "file": self._file_column(),
            "offsets_partition": pa.repeat(partition, n),
            "position": pa.array(longs[POSITION]),
            "batch_base_offset": pa.array(longs[BATCH_BASE_OFFSET]),
            "record_offset": pa.array(longs[RECORD_OFFSET]),
            "timestamp_ms": pa.array(longs[TIMESTAMP]),
            "timestamp_type": dictionary_column(attributes & bt.TIMESTAMP_TYPE_MASK != 0, ["create", "log_append"]),
            "magic": pa.repeat(pa.scalar(2, pa.int32()), n),
            "compression": dictionary_column(attributes & bt.CODEC_MASK, CODEC_NAMES),
            "producer_id": pa.array(longs[PRODUCER_ID]),
            "producer_epoch": pa.array(ints[PRODUCER_EPOCH]),
            "is_transactional": pa.array(attributes & bt.TRANSACTIONAL_MASK != 0),
            "is_control": pa.array(attributes & bt.CONTROL_MASK != 0),
            "topic_id": entries.topic_ids.column(entries.numbers_of(ints[TOPIC_ID])),
            "key": bytes_column(self.texts[RAW_KEY], ints[SIZES_AT + RAW_KEY], pa.binary()),
            "value": bytes_column(self.texts[RAW_VALUE], ints[SIZES_AT + RAW_VALUE], pa.binary()),
            "error": pa.nulls(n, pa.string()),
            **self._key_columns(),
            **self._value_columns(),
        }

    def _file_column(self) -> pa.Array:
        begins = [begin for begin, _ in self.files]
        counts = np.diff([*begins, self.rows])
        return dictionary_column(np.repeat(np.arange(len(counts)), counts), [file for _, file in self.files])

    def _key_columns(self) -> dict[str, pa.Array]:
        kinds, keys, entries = self.ints[KIND, : self.rows], self.ints[KEY, : self.rows], self.entries
        is_control = kinds >= ABORT_MARKER
        fields = entries.fields()
        places = keys.astype(np.intp)
        types, groups, topics, partitions = (field[places] for field in fields)
        if is_control.any():
            types[is_control] = groups[is_control] = topics[is_control] = a.NOTHING
        return {
            "control_type": dictionary_column(kinds - ABORT_MARKER, ["ABORT", "COMMIT"], ~is_control),
            "record_type": nullable_column(types, is_control),
            "name": dictionary_column(types, TYPE_NAMES, is_control),
            "group": entries.groups.column(groups),
            "topic": entries.topics.column(topics),
            "partition": nullable_column(partitions, topics < 0),
        }

    def _value_columns(self) -> dict[str, pa.Array]:
        longs, ints = self.longs[:, : self.rows], self.ints[:, : self.rows]
        kinds = ints[KIND]
        is_other = kinds != COMMITTED
        return {
            "is_tombstone": nullable_column(kinds == TOMBSTONE, kinds >= ABORT_MARKER),
            "value_version": nullable_column(ints[VERSION], ints[VERSION] < 0),
            "committed_offset": nullable_column(longs[COMMITTED_OFFSET], is_other),
            "leader_epoch": nullable_column(ints[LEADER_EPOCH], ints[LEADER_EPOCH] == -1),
            "metadata": bytes_column(self.texts[METADATA], ints[SIZES_AT + METADATA], pa.string()),
            "commit_timestamp_ms": nullable_column(longs[COMMIT_TIMESTAMP], is_other),
            "expire_timestamp_ms": nullable_column(longs[EXPIRE_TIMESTAMP], longs[EXPIRE_TIMESTAMP] == -1),
        }


# ------------------------------------------------------------------------------------------------ reading


@cache
def _programs() -> tuple[a.Int64s, dict[tuple[int, int | None], int]]:
    """The programs of keys and of type 2 values, and where each begins: (record type, version; None for the key)."""
    programs: dict[tuple[int, int | None], Program] = {}
    for number in range(a.KEY_TYPES):
        row = RECORD_TYPES[number]
        programs[number, None] = compile_program(row.key, 0, noted=("group", "topic"))
    for version in range(a.VERSIONS):
        layouts = list(RECORD_TYPES[2].layouts(version))
        if len(layouts) == 1:
            try:
                programs[2, version] = compile_program(layouts[0], version)
            except NoProgramError:
                continue
    return table_of(programs)


def _new_desk() -> a.Int64s:
    code, begins = _programs()
    desk = np.zeros(a.CODE + len(code), np.int64)
    desk[a.CODE :] = code
    desk[a.SEED] = secrets.randbits(61)
    for number in range(a.KEY_TYPES):
        desk[a.KEY_PROGRAMS + number] = begins[number, None]
        for version in range(a.VERSIONS):
            place = a.VALUE_PROGRAMS + number * a.VERSIONS + version
            desk[place] = begins.get((number, version), NO_PLACE)
    return desk


@dataclass(slots=True)
class _Cursor:
    """Where reading goes on.

    Attributes:
        last_offset: of the last batch accepted.
        next_offset: the offset behind all that was read.
        entered: the segment that was last begun; None where nothing is known of what is before it.
        is_stopped: whether a bound ended it.
    """

    place: Place
    last_offset: int
    next_offset: int
    entered: int | None = None
    is_stopped: bool = False


class _Job:
    """A log and what is asked of it."""

    def __init__(self, log: PartitionLog, until: Until, release: tuple[int, int] | None, shown: Shown) -> None:
        self.log = log
        self.layout = Layout(log)
        self.until = until
        self.release = release
        self.shown = shown
        self.is_cancelled = threading.Event()

    def parts(self) -> Iterator[tuple[Place, Place]]:
        """Where parts begin and end, more or less: small segments together, large ones cut."""
        cuts = [Place(0, 0)]
        held = 0
        for index, size in enumerate(map(len, self.layout.data)):
            if held and held + size > PART_BYTES:
                cuts.append(Place(index, 0))
                held = 0
            pieces = max(1, round(size / PART_BYTES))
            cuts += [Place(index, size * i // pieces) for i in range(1, pieces)]
            held += size if pieces == 1 else size // pieces
        yield from pairwise([*cuts, Place(len(self.layout.data), 0)])

    def begin(self, cut: Place) -> _Cursor | None:
        """The first batch of a segment at or behind a cut; None if the way there is doubtful."""
        if cut == Place(0, 0):
            return _Cursor(cut, -1, 0)
        begin = first_batch(self.layout, cut)
        return None if begin is None else _Cursor(begin[0], begin[1], begin[1] + 1)

    def fits(self, cursor: _Cursor) -> bool:
        """Whether the batch there is in its place, which a part that begins with it could not know."""
        return is_batch_at(self.layout, cursor.place, cursor.last_offset)


class _Reader:
    """Reads batches from a cursor on."""

    def __init__(self, job: _Job, chunk: _Chunk, cursor: _Cursor, scanner: Scanner, note: Note) -> None:
        self.job = job
        self.layout = job.layout
        self.chunk = chunk
        self.cursor = cursor
        self.scanner = scanner
        self.note = note
        self.ordered: int | None = None
        self.is_due = False

    def tables(self, end: Place, advance: Advance) -> Iterator[pa.Table]:
        """The rows up to the first batch at or behind ``end``; each table is good until the next is asked for."""
        cursor, sizes = self.cursor, [len(data) for data in self.layout.data]
        while cursor.place < end and cursor.place.segment_index < len(sizes) and not cursor.is_stopped:
            if self.job.is_cancelled.is_set():
                return
            index, before = cursor.place.segment_index, cursor.place.position
            if before >= sizes[index]:
                cursor.place = Place(index + 1, 0)
                continue
            if cursor.entered is not None and cursor.entered != index:
                note_gap(self.job.log, index, cursor.next_offset, self.note)
            cursor.entered = index
            self._step(index, end.position if end.segment_index == index else sizes[index])
            advance((sizes[index] if cursor.place.segment_index != index else cursor.place.position) - before)
            if self.is_due or self.chunk.is_full:
                yield from self._flushed()
        yield from self._flushed()

    def _flushed(self) -> Iterator[pa.Table]:
        table = self.chunk.table(self.job.log.offsets_partition, self.job.shown) if len(self.chunk) else ()
        if len(table):
            yield table
        self.chunk.clear()
        self.is_due = False

    def _step(self, index: int, stop: int) -> None:
        """A call of the kernel, and what it came back for."""
        data, chunk, scanner = self.layout.data[index], self.chunk, self.scanner
        desk, entries = chunk.desk, chunk.entries
        self._order(index, stop)
        outcome = fill(
            desk, chunk.counts, entries.slots, entries.entries, entries.arena, scanner.staged, data, scanner.window,
            scanner.table, chunk.longs, chunk.ints, chunk.texts,
        )  # fmt: skip
        position = int(desk[a.AT])
        self.cursor.place = Place(index, position)
        self.cursor.last_offset = int(desk[a.LAST_OFFSET])
        self.cursor.next_offset = self.cursor.last_offset + 1
        if outcome == DOUBTFUL:
            self._by_hand(index)
        elif outcome == NEEDS_WINDOW:
            desk[a.WINDOW_COUNT] = scanner.fill_window(data, position, stop)
            desk[a.WINDOW_NEXT] = 0
        elif outcome == STOPPED:
            self.cursor.is_stopped = True
        elif outcome != FINISHED:
            self._more_room(outcome, int32_at(data, position + bt.RECORDS_COUNT))

    def _more_room(self, outcome: int, count: int) -> None:
        """For a batch of so many records."""
        if outcome == NEEDS_ROOM:
            self.chunk.entries.grow(self.chunk.desk, self.chunk.counts)
        elif outcome == NEEDS_RECORDS:
            self.scanner.more_records(count)
        elif self.chunk.rows:
            self.is_due = True
        else:
            self.chunk.widen(count)

    def _order(self, index: int, stop: int) -> None:
        """What the desk must say before a scan."""
        desk, until = self.chunk.desk, self.job.until
        if index != self.ordered:
            desk[a.CHECKED] = a.NOTHING
            desk[a.WINDOW_COUNT] = 0
            self.ordered = index
            self.chunk.begin_file(self.job.log.segments[index].file)
        base_offset = self.job.log.segments[index].base_offset
        following = self.layout.walk.following_base_offset(index)
        desk[a.AT] = self.cursor.place.position
        desk[a.STOP] = stop
        desk[a.LAST_OFFSET] = self.cursor.last_offset
        desk[a.BASE_OFFSET] = a.NOTHING if base_offset is None else base_offset
        desk[a.FOLLOWING] = a.NOTHING if following is None else following
        desk[a.UNTIL_OFFSET] = NO_BOUND if until.record_offset is None else until.record_offset
        desk[a.UNTIL_TIME] = NO_BOUND if until.time_ms is None else until.time_ms

    def _by_hand(self, index: int) -> None:
        """Read on with `log_format` until a batch was read."""
        job, cursor = self.job, self.cursor
        segment = job.log.segments[index]
        for item, last_offset in self.layout.walk.items(index, cursor.place.position, cursor.last_offset):
            match item:
                case Damage():
                    self.note(item)
                case Tail():
                    self.note(TailFound(segment, item))
                case RecordBatch():
                    if job.until.stops_before(item):
                        cursor.is_stopped = True
                        return
                    self._add_events(batch_events(job.log, segment, item, job.until, job.release))
                    self.chunk.bytes_by_hand += item.size_bytes
                    cursor.last_offset = last_offset
                    cursor.next_offset = item.next_offset
                    cursor.place = Place(index, item.position + item.size_bytes)
                    return
        cursor.place = Place(index + 1, 0)

    def _add_events(self, events: Iterator[LogEvent]) -> None:
        for event in events:
            if isinstance(event, Damage):
                self.note(event)
            elif isinstance(event, Event):
                if event.damage is not None:
                    self.note(event.damage)
                row = event_row(event)
                if self.job.shown.shows(row):
                    self.chunk.add_by_hand(row)


# -------------------------------------------------------------------------------------------- all logs

Write = Callable[[PartitionLog, int, Iterator[pa.Table]], int]
"""What to do with the tables of a part, by its number: how many rows they had. Called from several threads, and once
more for a part that is read again; what was there before is void then."""


@dataclass(frozen=True, slots=True)
class _Part:
    """What became of a part: where it began and should end, what was seen on the way, where it ended."""

    job: _Job
    number: int
    end: Place
    begin: Place | None = None
    cursor: _Cursor | None = None
    notes: Sequence[Seen] = ()
    rows: int = 0


class Export:
    """All records of logs as tables, in parts that are read and written side by side.

    Args:
        write: takes the tables of one part. Parts are numbered in log order, those without rows too.
        note: log → what to do with what could not be read, with tails and gaps; called in log order.
        advance: called with the number of bytes read since, from any thread.
    """

    def __init__(
        self,
        write: Write,
        *,
        note: Callable[[PartitionLog], Note],
        shown: Shown = ALL,
        until: Callable[[PartitionLog], Until] = lambda log: EVERYTHING,
        release: tuple[int, int] | None = None,
        threads: int = 1,
        advance: Advance = lambda size_bytes: None,
    ) -> None:
        self.write = write
        self.note = note
        self.shown = shown
        self.until = until
        self.release = release
        self.threads = threads
        self.advance = advance
        self._chunks: list[_Chunk] = []

    def run(self, logs: Sequence[PartitionLog]) -> int:
        """How many rows there were."""
        rows = 0
        waiting: deque[tuple[_Job, Future[_Part]]] = deque()
        cursor: _Cursor | None = None
        with ThreadPoolExecutor(self.threads) as pool:
            try:
                parts = self._parts(logs)
                while True:
                    for job, number, cut, end in islice(parts, 2 * self.threads - len(waiting)):
                        waiting.append((job, pool.submit(self._read, job, number, cut, end)))
                    if not waiting:
                        return rows
                    job, future = waiting.popleft()
                    part = future.result()
                    cursor, more = self._joined(part, None if part.begin == Place(0, 0) else cursor)
                    rows += more
            finally:
                for job, future in waiting:
                    job.is_cancelled.set()
                    future.cancel()

    def _parts(self, logs: Sequence[PartitionLog]) -> Iterator[tuple[_Job, int, Place, Place]]:
        number = count()
        for log in logs:
            job = _Job(log, self.until(log), self.release, self.shown)
            for cut, end in job.parts():
                yield job, next(number), cut, end

    def _read(self, job: _Job, number: int, cut: Place, end: Place) -> _Part:
        """A part from where it seems to begin."""
        cursor = job.begin(cut)
        if cursor is None:
            return _Part(job, number, end)
        begin = cursor.place
        notes: list[Seen] = []
        rows = self._write(job, number, cursor, end, notes.append, self.advance)
        return _Part(job, number, end, begin, cursor, notes, rows)

    def _write(self, job: _Job, number: int, cursor: _Cursor, end: Place, note: Note, advance: Advance) -> int:
        chunk = self._chunks.pop() if self._chunks else _Chunk()
        chunk.begin()
        with Scanner() as scanner:
            rows = self.write(job.log, number, _Reader(job, chunk, cursor, scanner, note).tables(end, advance))
        self._chunks.append(chunk)
        return rows

    def _joined(self, part: _Part, before: _Cursor | None) -> tuple[_Cursor, int]:
        """Put a part behind what was before it in its log: where that ends then, and its rows."""
        job, cursor, note = part.job, part.cursor, self.note(part.job.log)
        if before is None or (
            not before.is_stopped and cursor is not None and part.begin == before.place and job.fits(before)
        ):
            assert cursor is not None
            assert part.begin is not None
            if before is not None and part.begin.position == 0:
                note_gap(job.log, part.begin.segment_index, before.next_offset, note)
            for seen in part.notes:
                note(seen)
            rows = part.rows
        else:
            cursor = before
            rows = self._write(job, part.number, cursor, part.end, note, lambda size_bytes: None)
        if cursor.is_stopped:
            job.is_cancelled.set()
        return cursor, rows
