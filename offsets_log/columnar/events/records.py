"""Turn records to rows: the columns of offset commits, of other records and of markers."""

from __future__ import annotations

from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.events import columns as k
from offsets_log.columnar.events.entries import find, is_entry, new_key, number_of
from offsets_log.columnar.events.layouts import layout_of
from offsets_log.columnar.jit.compiled import U, inlined, part
from offsets_log.columnar.jit.records import Table
from offsets_log.columnar.scan.interner import is_utf8
from offsets_log.columnar.wire.primitives import be16, be32, be64, uvarint
from offsets_log.columnar.wire.programs import SIZES
from offsets_log.messages.offset_commit import OFFSET_COMMIT_VALUE
from offsets_log.messages.schema import Scalar

# Columns of ``SHAPES``, one row a value version: positions behind the version's two bytes, and behind the metadata.
BEFORE_TEXT, AFTER_TEXT, LEADER_AT, EXPIRE_AT, IS_FLEXIBLE, SHAPE_COLUMNS = range(6)
FIELDS_READ = frozenset({"offset", "leader_epoch", "metadata", "commit_timestamp", "expire_timestamp"})
"""Fields without a tag that the kernel reads: versions with others are read on the slow path."""
TOPIC_ID_TAG = next(row.tag for row in OFFSET_COMMIT_VALUE.fields if row.name == "topic_id")
TOPIC_ID_SIZE = SIZES["uuid"]
NO_TAGS = 1
ONLY_TOPIC_ID = 3 + TOPIC_ID_SIZE
"""Bytes of a section of tagged fields without fields, and with only a topic id."""


def _shapes() -> a.Int64s:
    """Return the positions of the fields of an offset commit's value, from its declaration.

    A version has none if it has a field that the kernel does not read.
    """
    shapes = np.full((a.VERSIONS, SHAPE_COLUMNS), a.NOTHING, np.int64)
    for version in range(a.VERSIONS):
        fields = [field for field in OFFSET_COMMIT_VALUE.fields_of(version) if field.tag is None]
        if not OFFSET_COMMIT_VALUE.has_version(version) or not {field.name for field in fields} <= FIELDS_READ:
            continue
        at: dict[str, int] = {}
        position = 0
        for field in fields:
            assert isinstance(field.type, Scalar)
            at[field.name] = position
            position = 0 if field.name == "metadata" else position + SIZES[field.type.name]
        assert at["offset"] == at["commit_timestamp"] == 0
        shapes[version] = (
            at["metadata"], position, at.get("leader_epoch", a.NOTHING), at.get("expire_timestamp", a.NOTHING),
            OFFSET_COMMIT_VALUE.is_flexible(version),
        )  # fmt: skip
    return shapes


SHAPES = _shapes()


@inlined
def _add_text(chunk: k.ChunkArrays, n: Any, which: Any, data: Any, start: Any, size: Any) -> None:
    """Append the bytes of a row to ``texts``; the caller has made sure of room."""
    used = chunk.counts[k.TEXTS_USED + which]
    for i in range(size):
        chunk.texts[which, U(used + i)] = data[U(start + i)]
    chunk.ints[k.ENDS_AT + which, n] = used + max(size, 0)
    chunk.counts[k.TEXTS_USED + which] = used + max(size, 0)


@part
def _add_raw(chunk: k.ChunkArrays, n: Any, data: Any, key: Any, key_size: Any, value: Any, size: Any) -> None:
    """Add the raw key and value of a record."""
    _add_text(chunk, n, np.int64(k.RAW_KEY), data, key, key_size)
    _add_text(chunk, n, np.int64(k.RAW_VALUE), data, value, size)


@inlined
def add_no_text(chunk: k.ChunkArrays, n: Any, which: Any) -> None:
    chunk.ints[k.ENDS_AT + which, n] = chunk.counts[k.TEXTS_USED + which]


@inlined
def add_no_raw(chunk: k.ChunkArrays, n: Any) -> None:
    add_no_text(chunk, n, k.RAW_KEY)
    add_no_text(chunk, n, k.RAW_VALUE)


@inlined
def metadata_at(data: Any, at: Any, end: Any, version: Any) -> Any:
    """Return where the metadata begins and ends; −1 where it does not fit."""
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
    """Return whether a section of tagged fields begins with a topic id as its only field."""
    return data[U(at)] == 1 and data[U(at + 1)] == TOPIC_ID_TAG and data[U(at + 2)] == TOPIC_ID_SIZE


@inlined
def _add_commit(
    scan_state: a.ScanState, chunk: k.ChunkArrays, n: Any, data: Any, key: Any, key_size: Any, value: Any, size: Any
) -> Any:
    """Fill in the columns of an offset commit with a value."""
    longs, ints = chunk.longs, chunk.ints
    if size < 2:
        return oc.NOT_PLAIN
    version = U(be16(data, value))
    if version >= U(a.VERSIONS) or SHAPES[version, BEFORE_TEXT] < 0:
        return oc.NOT_PLAIN
    text_at, text_end = metadata_at(data, value, value + size, version)
    if text_at < 0 or (text_end > text_at and not is_utf8(data, text_at, text_end - text_at)):
        return oc.NOT_PLAIN
    after = text_end + SHAPES[version, AFTER_TEXT]
    left = value + size - after
    topic_id = np.int64(a.NOTHING)
    if SHAPES[version, IS_FLEXIBLE]:
        if left == ONLY_TOPIC_ID and _is_topic_id(data, after):
            if be64(data, after + 3) != 0 or be64(data, after + 11) != 0:
                topic_id = number_of(
                    scan_state, chunk, data, after + 3, np.int64(TOPIC_ID_SIZE), np.int64(k.IS_TOPIC_ID)
                )
                if topic_id < 0:
                    return oc.NEEDS_ROOM
        elif left != NO_TAGS or data[U(after)] != 0:
            return oc.NOT_PLAIN
        left = np.int64(0)
    leader_at, expire_at = SHAPES[version, LEADER_AT], SHAPES[version, EXPIRE_AT]
    ints[k.KIND, n] = k.COMMITTED_RAW if left > 0 else k.COMMITTED
    ints[k.VALUE_VERSION, n] = version
    ints[k.TOPIC_ID, n] = topic_id
    longs[k.COMMITTED_OFFSET, n] = be64(data, value + 2)
    ints[k.LEADER_EPOCH, n] = be32(data, value + 2 + leader_at) if leader_at >= 0 else np.int64(-1)
    longs[k.COMMIT_TIMESTAMP, n] = be64(data, text_end)
    longs[k.EXPIRE_TIMESTAMP, n] = be64(data, text_end + expire_at) if expire_at >= 0 else np.int64(-1)
    _add_text(chunk, n, np.int64(k.METADATA), data, text_at, text_end - text_at)
    if left > 0:
        _add_raw(chunk, n, data, key, key_size, value, size)
    else:
        add_no_raw(chunk, n)
    return oc.FINISHED


@part
def _add_other(
    chunk: k.ChunkArrays, n: Any, kind: Any, data: Any, key: Any, key_size: Any, value: Any, size: Any
) -> Any:
    """Fill in the columns of a tombstone, a group's record or a marker, whose key and value have been checked."""
    longs, ints = chunk.longs, chunk.ints
    ints[k.KIND, n] = kind
    ints[k.VALUE_VERSION, n] = be16(data, value) if kind == k.GROUP_VALUE else np.int64(-1)
    ints[k.TOPIC_ID, n] = a.NOTHING
    longs[k.COMMITTED_OFFSET, n] = 0
    ints[k.LEADER_EPOCH, n] = -1
    longs[k.COMMIT_TIMESTAMP, n] = 0
    longs[k.EXPIRE_TIMESTAMP, n] = -1
    add_no_text(chunk, n, k.METADATA)
    if kind != k.TOMBSTONE:
        _add_raw(chunk, n, data, key, key_size, value, size)
    else:
        add_no_raw(chunk, n)


@inlined
def add_record(
    scan_state: a.ScanState, chunk: k.ChunkArrays, n: Any, data: Any, staged: Table[a.Staged], i: Any
) -> Any:
    """Add a data record as row ``n``."""
    entries, ints = chunk.entries, chunk.ints
    key, key_size = staged[i].key_at, staged[i].key_size
    value, size = staged[i].value_at, staged[i].value_size
    entry = staged[i].entry
    if entry < 0 or not is_entry(entries, chunk.arena, entry, k.IS_KEY, data, key, key_size):
        entry = find(chunk, data, key, key_size, np.int64(k.IS_KEY), staged[i].hash)
    if entry < 0:
        entry = new_key(scan_state, chunk, data, key, key_size, staged[i].hash)
    if entry < 0:
        return entry
    number = entries[U(entry), k.KEY_TYPE]
    ints[k.RECORD_TYPE, n] = number
    ints[k.GROUP, n] = entries[U(entry), k.KEY_GROUP]
    ints[k.TOPIC, n] = entries[U(entry), k.KEY_TOPIC]
    ints[k.PARTITION, n] = entries[U(entry), k.KEY_PARTITION]
    if size >= 0 and number < a.COMMIT_TYPES:
        return _add_commit(scan_state, chunk, n, data, key, key_size, value, size)
    if size >= 0:
        version = be16(data, value) if size >= 2 else np.int64(-1)
        if version < 0 or version >= a.VERSIONS:
            return oc.NOT_PLAIN
        layout = layout_of(scan_state, number, version, data, value + 2, value + size)
        if layout < 0:
            return oc.NOT_PLAIN
        ints[k.LAYOUT, n] = layout
    kind = np.int64(k.GROUP_VALUE if size >= 0 else k.TOMBSTONE if number < a.COMMIT_TYPES else k.GROUP_TOMBSTONE)
    _add_other(chunk, n, kind, data, key, key_size, value, size)
    return oc.FINISHED


@part
def add_marker(chunk: k.ChunkArrays, n: Any, data: Any, staged: Table[a.Staged], i: Any) -> Any:
    """Add a transaction marker as row ``n``."""
    key, key_size = staged[i].key_at, staged[i].key_size
    value, size = staged[i].value_at, staged[i].value_size
    if key_size < 4 or size < 6:
        return oc.NOT_PLAIN
    number = be16(data, key + 2)
    if be16(data, key) < 0 or be16(data, value) < 0 or number < 0 or number > 1:
        return oc.NOT_PLAIN
    for column in (k.RECORD_TYPE, k.GROUP, k.TOPIC, k.PARTITION):
        chunk.ints[column, n] = a.NOTHING
    _add_other(chunk, n, k.ABORT_MARKER + number, data, key, key_size, value, size)
    return oc.FINISHED
