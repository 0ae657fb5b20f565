"""Rows of a ledger in kernels: `emit` makes one of each record that was staged and has the row of its key."""

from __future__ import annotations

from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.jit.compiled import U, inlined, kernel, part
from offsets_log.columnar.jit.kinds import LongRows, Number
from offsets_log.columnar.jit.records import Table
from offsets_log.columnar.ledger.columns import (
    BATCH_SUM,
    BATCH_WEIGHT,
    BYTES,
    CONTROLS,
    FIRST,
    NOT_DECODED,
    USED,
    LedgerArrays,
    Said,
)
from offsets_log.columnar.scan.interner import has_room, intern_group
from offsets_log.columnar.wire import batches as bt
from offsets_log.columnar.wire.primitives import be16, be32, be64


@inlined
def is_full(ledger: LedgerArrays, count: Any) -> Any:
    """Return whether rows are asked for, and there is no room for so many."""
    room = len(ledger.columns.key)
    return room > 0 and ledger.counts[USED] + count > room


@inlined
def _weight(staged: Table[a.Staged], i: Any) -> Any:
    return staged[i].key_size + max(staged[i].value_size, np.int64(0)) + 1


@part
def _weight_of_batch(staged: Table[a.Staged], count: Any, number: Any) -> Any:
    """Return the weights of all records of the batch whose first staged record is given."""
    total, batch = np.int64(0), staged[U(number)].batch
    while number < count and staged[U(number)].batch == batch:
        total += _weight(staged, U(number))
        number += 1
    return total


@inlined
def _kind_of(ledger: LedgerArrays, staged: Table[a.Staged], source: Any, i: Any) -> Any:
    """Return the kind of a data record, as `Columns.kind`."""
    record_type = be16(source, staged[i].key_at)
    if staged[i].kind == a.TOMBSTONE:
        return record_type * (a.VERSIONS + 1) + a.NO_VERSION
    return ledger.kinds[record_type] + be16(source, staged[i].value_at)


@inlined
def _add_before(ledger: LedgerArrays, n: Any, key: Any, kind: Any, size: Any, committed: Any) -> None:
    """Write what the key's record before this one was, and remember this one."""
    columns = ledger.columns
    before, before_kind = np.int64(a.NOTHING), np.int64(a.NOTHING)
    before_bytes, before_committed = np.int64(0), np.int64(0)
    if key >= 0:
        latest = ledger.latest[U(key)]
        if latest.row != 0:
            before, before_kind = latest.row - 1, latest.kind
            before_bytes, before_committed = latest.bytes, latest.committed_offset
        latest.row = ledger.counts[FIRST] + np.int64(n) + 1
        latest.kind = kind
        latest.bytes = size
        latest.committed_offset = committed
    columns.before[n] = before
    columns.before_kind[n] = before_kind
    columns.before_bytes[n] = before_bytes
    columns.before_committed_offset[n] = before_committed


@inlined
def add_row(ledger: LedgerArrays, key: Any, kind: Any, size: Any, said: Said) -> None:
    """Write a row; there is room. Python calls it, too, for records that were read on the slow path."""
    columns, counts = ledger.columns, ledger.counts
    n = U(counts[USED])
    columns.key[n] = key
    columns.kind[n] = kind
    if len(columns.record_offset):
        columns.record_offset[n] = said.record_offset
    if len(columns.bytes):
        columns.bytes[n] = size
    if len(columns.timestamp_ms):
        columns.timestamp_ms[n] = said.timestamp_ms
    if len(columns.committed_offset):
        columns.committed_offset[n] = said.committed_offset
    if len(columns.producer_id):
        columns.producer_id[n] = said.producer_id
    if len(columns.is_transactional):
        columns.is_transactional[n] = said.is_transactional
    if len(columns.topic_id):
        columns.topic_id[n] = said.topic_id
    if len(columns.before):
        _add_before(ledger, n, key, kind, size, said.committed_offset)
    counts[USED] += 1


@part
def emit_one(
    ledger: LedgerArrays, arrays: a.Arrays, records: a.Records, count: Any, number: Any, topic_id: Any
) -> None:
    """Write the row of a staged record whose key, if it has one, has its row; records come in their order.

    Args:
        count: how many are staged, with whole batches.
    """
    staged, source, counts = records.staged, records.source, ledger.counts
    i = U(number)
    at = staged[i].batch - arrays.scan_state.segment
    size, time = bt.size_of(records.data, at), bt.time_at(records.data, at, staged[i].timestamp_delta)
    key, committed = np.int64(a.NOTHING), np.int64(0)
    if staged[i].kind == a.COMMIT or staged[i].kind == a.ABORT:
        kind = CONTROLS + staged[i].kind - a.COMMIT
    else:
        if staged[i].index == 0:
            counts[BATCH_WEIGHT] = _weight_of_batch(staged, count, np.int64(number))
            counts[BATCH_SUM] = 0
        begin = size * counts[BATCH_SUM] // counts[BATCH_WEIGHT]
        counts[BATCH_SUM] += _weight(staged, i)
        size = size * counts[BATCH_SUM] // counts[BATCH_WEIGHT] - begin
        kind = np.int64(NOT_DECODED)
        if staged[i].kind != a.PASSED:
            key = staged[i].row
            kind = _kind_of(ledger, staged, source, i)
            if staged[i].kind == a.VALUE and arrays.rows[U(key)].target >= 0:
                committed = be64(source, staged[i].value_at + 2)
    counts[BYTES] += size
    is_transactional = np.int64(bt.attributes_of(records.data, at) & bt.TRANSACTIONAL_MASK != 0)
    producer_id = bt.producer_of(records.data, at)
    said = Said(staged[i].offset, time, committed, producer_id, is_transactional, topic_id)
    add_row(ledger, key, kind, size, said)


@part
def emit(ledger: LedgerArrays, arrays: a.Arrays, records: a.Records, count: Any) -> None:
    """Write the rows of all that is staged, if rows are asked for; there is room (`is_full`)."""
    if len(ledger.columns.key):
        for number in range(count):
            emit_one(ledger, arrays, records, count, np.int64(number), np.int64(0))


GROUP, TOPIC, PARTITION, NAMES = range(4)
"""Columns of `name_keys`: the numbers of names, and the partition; NOTHING where a key has none."""


@kernel
def name_keys(arrays: a.Arrays, named: LongRows, first: Number, with_topics: Number) -> Any:
    """Say of keys from one on what stands in them; NEEDS_ROOM without room for a topic's name.

    Args:
        with_topics: whether topics and partitions are asked for; else they are left as they are.
    """
    rows, arena = arrays.rows, arrays.arena
    for row in range(first, arrays.scan_state.row_count):
        named[row, GROUP] = rows[row].group
        target = rows[row].target
        if with_topics and target >= 0:
            key_at = rows[target].key_at
            topic_at = key_at + 6 + be16(arena, key_at + 2)
            size = be16(arena, topic_at - 2)
            if not has_room(arrays, size):
                return np.int64(oc.NEEDS_ROOM)
            named[row, TOPIC] = intern_group(arrays, arena, topic_at, size)
            named[row, PARTITION] = be32(arena, topic_at + size)
    return np.int64(oc.FINISHED)
