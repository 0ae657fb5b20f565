"""Note a log's records for `history` in kernels, in their order, by the rules of `entries`.

They return for a group's record that `groups` does not take, and where Python's knowledge of a group is needed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.events.records import BEFORE_TEXT, LEADER_AT, SHAPES, metadata_at
from offsets_log.columnar.folds import newer
from offsets_log.columnar.folds import offsets as fold
from offsets_log.columnar.history import entries as e
from offsets_log.columnar.history import groups as gr
from offsets_log.columnar.jit.compiled import U, inlined, kernel, part
from offsets_log.columnar.jit.instructions import prefetch
from offsets_log.columnar.jit.kinds import Bytes, Number
from offsets_log.columnar.jit.records import Table
from offsets_log.columnar.scan import staging as sc
from offsets_log.columnar.scan.interner import has_room, intern_group, intern_producer
from offsets_log.columnar.scan.waiting import wait
from offsets_log.columnar.wire import batches as bt
from offsets_log.columnar.wire.primitives import be16, be32, be64

# -------------------------------------------------------------------------------------------- what is staged


@part
def _keep_commit(history: e.History, n: Any, data: Any, value: Any, size: Any, topic_id: Any) -> None:
    """Fill in the columns of a commit, which a program has read; there is room for its metadata."""
    entries = history.entries
    version = U(be16(data, value))
    text_at, text_end = metadata_at(data, value, value + size, version)
    used = history.counts[e.TEXT_USED]
    leader_at = SHAPES[version, LEADER_AT]
    entries[n, e.LEADER_EPOCH] = be32(data, value + 2 + leader_at) if leader_at >= 0 else np.int64(-1)
    entries[n, e.COMMIT_TIMESTAMP] = be64(data, text_end)
    entries[n, e.METADATA_AT] = used
    entries[n, e.METADATA_SIZE] = text_end - text_at
    entries[n, e.TOPIC_ID] = topic_id
    for i in range(text_end - text_at):
        history.texts[U(used + i)] = data[U(text_at + i)]
    history.counts[e.TEXT_USED] = used + text_end - text_at


@inlined
def _topic_id(arrays: a.Arrays, lives: Any, records: a.Records, key: Any, i: Any) -> Any:
    """Return the number of a commit's topic id, noted for its topic; NOTHING without one, or NEEDS_ROOM."""
    staged, source = records.staged, records.source
    at = staged[i].topic_id_at
    if at < 0 or (be64(source, at) == 0 and be64(source, at + 8) == 0):
        return np.int64(a.NOTHING)
    if not has_room(arrays, np.int64(16)) or arrays.scan_state.group_count >= len(lives):
        return np.int64(oc.NEEDS_ROOM)
    row, high, low = arrays.rows[key].target, be64(source, at), be64(source, at + 8)
    if not fold.note_topic_id(arrays, row, high, low, staged[i].offset):
        return np.int64(oc.NEEDS_ROOM)
    return intern_group(arrays, source, at, np.int64(16))


@part
def _note_staged_marker(arrays: a.Arrays, history: e.History, records: a.Records, i: Any) -> Any:
    """Note a marker; return FINISHED, or what it needs first."""
    staged = records.staged
    producer, commits = staged[i].producer, np.int64(staged[i].kind == a.COMMIT)
    timestamp = bt.time_at(records.data, staged[i].record_at - bt.HEADER_SIZE, staged[i].timestamp_delta)
    if producer >= len(history.opens):
        return np.int64(oc.NEEDS_ROOM)
    return e.note_marker(arrays, history, producer, commits, staged[i].offset, timestamp, np.int64(1))


@part
def _wait(history: e.History, records: a.Records, i: Any, group: Any) -> Any:
    """Put a record aside for Python; return FINISHED, or NEEDS_GROUP without room."""
    if not wait(history.waiting, records, i, group):
        return np.int64(oc.NEEDS_GROUP)
    history.lives[group, e.WAITS] = 1
    history.lives[group, e.HELD_BY_NOW] = a.NOTHING
    return np.int64(oc.FINISHED)


@inlined
def _may_wait(lives: Any, staged: Table[a.Staged], i: Any, group: Any, number: Any) -> Any:
    """Return whether a record of a newer kind changes nothing before somebody asks who holds what in its group.

    Only the tombstone of a group's epoch, or a record of a classic group, removes a group of a newer kind.
    """
    is_removal = staged[i].kind != a.VALUE and newer.TYPES[U(number), newer.ACTION] == newer.METADATA
    return lives[group, e.TOLD_BY] == e.IS_NEWER and not is_removal


@part
def _note_staged_group(
    arrays: a.Arrays, history: e.History, records: a.Records, i: Any, key: Any, timestamp: Any
) -> Any:
    """Note a group's record; return FINISHED, or what it needs first.

    Records of the newer kinds are for Python: those of groups that are shown, and all that name topics.
    """
    lives, staged, source = history.lives, records.staged, records.source
    group, number = arrays.rows[key].group, be16(source, staged[i].key_at)
    is_shown = lives[group, e.GROUP_SHOWN] == e.WANTED
    if number >= a.KEY_TYPES:
        names = staged[i].kind == a.VALUE and newer.TYPES[U(number), newer.NAMES] != 0
        if not is_shown and not names:
            return np.int64(oc.FINISHED)
        if is_shown and not _may_wait(lives, staged, i, group, number):
            return np.int64(oc.NEEDS_GROUP)
        return _wait(history, records, i, group)
    if not is_shown:
        return np.int64(oc.FINISHED)
    if lives[group, e.WAITS]:
        return np.int64(oc.NEEDS_GROUP)
    return gr.note_group(
        arrays, history, source, staged[i].value_at, staged[i].value_size, group, staged[i].offset, timestamp
    )


@part
def _note_staged(arrays: a.Arrays, history: e.History, records: a.Records, number: Any, place: Any) -> Any:
    """Note a staged record; return FINISHED, or what it needs first, with nothing done."""
    rows, staged, source, lives = arrays.rows, records.staged, records.source, history.lives
    i = U(number)
    kind = staged[i].kind
    if kind == a.PASSED:
        return np.int64(oc.FINISHED)
    at = staged[i].batch - arrays.scan_state.segment
    if kind > a.TOMBSTONE:
        return _note_staged_marker(arrays, history, records, i)
    key = np.int64(fold.row_of(arrays, staged, source, number, place, np.int64(a.IS_GROUP)))
    if key < 0:
        return key
    if rows[key].group >= len(lives) or key >= len(history.held) or staged[i].producer >= len(history.opens):
        return np.int64(oc.NEEDS_ROOM)
    shown = lives[rows[key].group, e.GROUP_SHOWN]
    if shown == e.UNDECIDED:
        return np.int64(oc.NEEDS_VERDICT)
    timestamp = bt.time_at(records.data, at, staged[i].timestamp_delta)
    history.counts[e.OF_GROUP], history.counts[e.OF_TIME] = rows[key].group, timestamp
    if rows[key].target == a.IS_GROUP:
        return _note_staged_group(arrays, history, records, i, key, timestamp)
    topic_id = _topic_id(arrays, lives, records, key, i)
    if topic_id == oc.NEEDS_ROOM:
        return topic_id
    if shown != e.WANTED:
        return np.int64(oc.FINISHED)
    return _note_staged_offset(arrays, history, records, i, key, timestamp, topic_id)


@part
def _note_staged_offset(
    arrays: a.Arrays, history: e.History, records: a.Records, i: Any, key: Any, timestamp: Any, topic_id: Any
) -> Any:
    """Note a commit or tombstone of a shown group; return FINISHED, or what it needs first, with nothing done."""
    staged, source = records.staged, records.source
    is_value, row, producer = staged[i].kind == a.VALUE, arrays.rows[key].target, staged[i].producer
    value, size = staged[i].value_at, staged[i].value_size
    if is_value and SHAPES[U(be16(source, value)), BEFORE_TEXT] < 0:
        return np.int64(oc.BEYOND)
    need = e.what_is_needed(arrays, history, row, is_value, producer)
    if need != oc.FINISHED:
        return need
    if history.counts[e.TEXT_USED] + max(size, 0) > len(history.texts):
        return np.int64(oc.NEEDS_TEXTS)
    committed = be64(source, value + 2) if is_value else np.int64(0)
    record = e.OffsetRecord(np.int64(is_value), staged[i].offset, timestamp, producer, np.int64(1), committed)
    n = e.note_offset(arrays, history, key, row, record)
    if is_value and n >= 0:
        _keep_commit(history, n, source, value, size, topic_id)
    return np.int64(oc.FINISHED)


@part
def _flush(arrays: a.Arrays, history: e.History, records: a.Records) -> Any:
    """Note what is staged, from where it was left; return FINISHED, or what the next record needs."""
    scan_state = arrays.scan_state
    while scan_state.flushed < scan_state.staged:
        first = scan_state.flushed
        last = min(first + a.BLOCK, scan_state.staged)
        fold.prepare(arrays, records.source, records.staged, first, last)
        for place in range(last - first):
            if scan_state.found[place] >= 0:
                prefetch(history.held, scan_state.found[place] * e.HELD_SIZE)
        for number in range(first, last):
            scan_state.flushed = number
            need = _note_staged(arrays, history, records, np.int64(number), np.int64(number - first))
            if need != oc.FINISHED:
                return need
        scan_state.flushed = last
    scan_state.staged = 0
    scan_state.flushed = 0
    return np.int64(oc.FINISHED)


@kernel
def scan(arrays: a.Arrays, history: e.History, buffers: a.Buffers, data: Bytes) -> Any:
    """Note a segment's records from ``scan_state.at`` on, like `folds.offsets.scan`."""
    scan_state = arrays.scan_state
    begin = scan_state.at
    outcome = np.int64(oc.GO_ON)
    while outcome == oc.GO_ON:
        outcome = sc.stage(arrays, buffers, data, begin)
        source = buffers.window if scan_state.in_window else data
        records = a.Records(buffers.staged, source, data)
        need = _flush(arrays, history, records)
        if need != oc.FINISHED:
            return need
        outcome = sc.outcome_of(scan_state, begin, outcome)
    return outcome


# ------------------------------------------------------------------------------------- records read on the slow path


@kernel
def note_one(
    arrays: a.Arrays,
    history: e.History,
    key: Number,
    record: e.OffsetRecord,
    producer_id: Number,
    transactional: Number,
) -> Any:
    """Note an offset's record, of no producer yet; return 0, or 1 + its entry, or below 0 what it needs first."""
    row = arrays.rows[key].target
    producer = np.int64(a.NOTHING)
    if transactional:
        producer = intern_producer(arrays, producer_id)
        if producer < 0 or producer >= len(history.opens):
            return np.int64(oc.NEEDS_ROOM)
    need = e.what_is_needed(arrays, history, row, record.is_value != 0, producer)
    if need != oc.FINISHED:
        return need
    told = e.OffsetRecord(
        record.is_value, record.record_offset, record.timestamp, producer, record.is_replayed, record.committed
    )
    return e.note_offset(arrays, history, key, row, told) + 1


@kernel
def mark_one(
    arrays: a.Arrays,
    history: e.History,
    producer_id: Number,
    commits: Number,
    record_offset: Number,
    timestamp: Number,
    is_replayed: Number,
) -> Any:
    """Note a control record that ends a transaction; return FINISHED, or what it needs first."""
    producer = intern_producer(arrays, producer_id)
    if producer < 0 or producer >= len(history.opens):
        return np.int64(oc.NEEDS_ROOM)
    return e.note_marker(arrays, history, producer, commits, record_offset, timestamp, is_replayed)


@kernel
def turn_group(
    rows: Table[a.Row], history: e.History, group: Number, exists: Number, record_offset: Number, timestamp: Number
) -> Any:
    """Note that a group exists from here on, or no longer; return FINISHED or NEEDS_ENTRIES."""
    if history.counts[e.ENTRIES] + history.lives[group, e.KEYS] > len(history.entries):
        return np.int64(oc.NEEDS_ENTRIES)
    e.turn(rows, history, group, exists, record_offset, timestamp)
    return np.int64(oc.FINISHED)


@kernel
def name_one(arrays: a.Arrays, data: Bytes) -> Any:
    """Return the number of a name; −1 without room."""
    if not has_room(arrays, np.int64(len(data))):
        return np.int64(-1)
    return intern_group(arrays, data, np.int64(0), np.int64(len(data)))
