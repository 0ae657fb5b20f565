"""Fill the table of all records in a kernel: from a segment's bytes to columns of numbers, until one is not plain.

Records of some batches are staged, their keys are hashed and the memory they need is prefetched; then each becomes a
row. If a batch turns out not to be plain, its rows are removed: the caller reads it on the slow path and continues
after it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.events import columns as k
from offsets_log.columnar.events.entries import look_ahead
from offsets_log.columnar.events.records import add_marker, add_no_raw, add_no_text, add_record
from offsets_log.columnar.jit.compiled import U, inlined, kernel, part
from offsets_log.columnar.jit.kinds import Bytes
from offsets_log.columnar.jit.records import Table
from offsets_log.columnar.scan import staging as sc
from offsets_log.columnar.wire import batches as bt
from offsets_log.columnar.wire import decompressed as dp
from offsets_log.columnar.wire.primitives import be32, be64
from offsets_log.log_format import batch as b


@part
def _flush(scan_state: a.ScanState, chunk: k.ChunkArrays, staged: Table[a.Staged], data: Any) -> Any:
    """Make rows of what is staged; the first batch that is not plain leaves nothing but entries."""
    counts = chunk.counts
    begin = counts[k.ROWS]
    batch = np.int64(0)
    metadata, raw_key, raw_value = counts[k.TEXTS_USED], counts[k.TEXTS_USED + 1], counts[k.TEXTS_USED + 2]
    for number in range(scan_state.staged):
        i, n = U(number), U(begin + number)
        if number % a.BLOCK == 0:
            last = min(number + a.BLOCK, scan_state.staged)
            look_ahead(scan_state, chunk, data, staged, number, last)
        if staged[i].index == 0:
            batch = np.int64(number)
            metadata, raw_key, raw_value = counts[k.TEXTS_USED], counts[k.TEXTS_USED + 1], counts[k.TEXTS_USED + 2]
        if staged[i].record_at < 0:
            add_no_text(chunk, n, k.METADATA)
            add_no_raw(chunk, n)
            outcome = np.int64(oc.FINISHED)
        elif chunk.ints[k.ATTRIBUTES, n] & bt.CONTROL_MASK:
            outcome = np.int64(add_marker(chunk, n, data, staged, i))
        else:
            outcome = np.int64(add_record(scan_state, chunk, n, data, staged, i))
        if outcome != oc.FINISHED:
            counts[k.ROWS] = begin + batch
            counts[k.TEXTS_USED], counts[k.TEXTS_USED + 1], counts[k.TEXTS_USED + 2] = metadata, raw_key, raw_value
            scan_state.at = staged[i].batch
            scan_state.last_offset = staged[i].offset_before
            scan_state.window_next = 0
            scan_state.staged = 0
            return outcome
    counts[k.ROWS] = begin + scan_state.staged
    scan_state.staged = 0
    return np.int64(oc.FINISHED)


# -------------------------------------------------------------------------------------------------- batches


@inlined
def _sequence(base: Any, delta: Any) -> Any:
    """Return a sequence number after a batch's first; numbers start again after the greatest."""
    return base + delta & b.MAX_SEQUENCE


@part
def _stage_batch(
    scan_state: a.ScanState, chunk: k.ChunkArrays, staged: Table[a.Staged], i: Any, n: Any, data: Any, at: Any
) -> None:
    """Stage the row of a batch itself as a record without bytes."""
    longs, ints = chunk.longs, chunk.ints
    staged[i].key_at, staged[i].key_size = at, 0
    staged[i].record_at = a.NOTHING
    staged[i].batch = at
    staged[i].index = 0
    staged[i].offset_before = scan_state.last_offset
    base, last = be64(data, at), bt.last_offset(data, at)
    base_sequence = bt.base_sequence(data, at)
    for column in range(k.KIND, k.ENDS_AT):
        ints[column, n] = a.NOTHING
    ints[k.KIND, n] = k.BATCH
    ints[k.ATTRIBUTES, n] = bt.attributes_of(data, at)
    ints[k.PRODUCER_EPOCH, n] = bt.producer_epoch(data, at)
    ints[k.SIZE, n] = bt.size_of(data, at)
    ints[k.BASE_SEQUENCE, n] = base_sequence
    ints[k.LAST_SEQUENCE, n] = b.NO_SEQUENCE
    if base_sequence != b.NO_SEQUENCE:
        ints[k.LAST_SEQUENCE, n] = _sequence(base_sequence, last - base)
    longs[k.POSITION, n] = at
    longs[k.BATCH_BASE_OFFSET, n] = base
    longs[k.LAST_OFFSET, n] = last
    longs[k.MAX_TIMESTAMP, n] = bt.max_timestamp(data, at)
    longs[k.PRODUCER_ID, n] = bt.producer_of(data, at)
    longs[k.CRC, n] = bt.checksum_of(data, at)
    if not bt.is_older(data, at):  # of an older one no line tells more
        ints[k.RECORDS_COUNT, n] = be32(data, at + bt.RECORDS_COUNT)
        ints[k.PARTITION_LEADER_EPOCH, n] = be32(data, at + bt.PARTITION_LEADER_EPOCH)
        longs[k.BASE_TIMESTAMP, n] = be64(data, at + bt.BASE_TIMESTAMP)


@part
def _stage(
    scan_state: a.ScanState,
    chunk: k.ChunkArrays,
    staged: Table[a.Staged],
    source: Any,
    start: Any,
    end: Any,
    data: Any,
    at: Any,
) -> Any:
    """Stage the records of the batch at ``at``, which are in ``source[start:end]``, and the columns that they share."""
    counts, longs, ints = chunk.counts, chunk.longs, chunk.ints
    count = bt.count_of(source, start, end, data, at)
    has_row = counts[k.HAS_BATCHES]
    staged_count = scan_state.staged + has_row
    staged_bytes = (end - start) + (counts[k.STAGED_BYTES] if scan_state.staged else np.int64(0))
    room = chunk.texts.shape[1] - max(counts[k.TEXTS_USED], max(counts[k.TEXTS_USED + 1], counts[k.TEXTS_USED + 2]))
    scan_state.needed = count
    if staged_count + count >= len(staged):
        return oc.NEEDS_RECORDS
    first = counts[k.ROWS] + staged_count
    if first + count > longs.shape[1] or staged_bytes > room:
        return oc.FULL
    if bt.records_of(source, start, end, count, data, at, staged, staged_count) < 0:
        return oc.NOT_PLAIN
    if has_row:
        _stage_batch(scan_state, chunk, staged, U(staged_count - 1), U(first - 1), data, at)
    base, base_sequence = bt.base_offset(data, at, staged, staged_count), bt.base_sequence(data, at)
    attributes = bt.attributes_of(data, at)
    producer_id, producer_epoch = bt.producer_of(data, at), bt.producer_epoch(data, at)
    checksum = bt.checksum_of(data, at)
    time, is_counted = bt.base_time(data, at)
    is_compressed, records_begin = attributes & bt.CODEC_MASK, bt.records_begin(data, at)
    for item in range(count):
        i, n = U(staged_count + item), U(first + item)
        staged[i].batch = at
        staged[i].index = item + has_row
        staged[i].offset_before = scan_state.last_offset
        ints[k.ATTRIBUTES, n] = attributes
        ints[k.PRODUCER_EPOCH, n] = producer_epoch
        longs[k.POSITION, n] = records_begin if is_compressed else staged[i].record_at
        longs[k.BATCH_BASE_OFFSET, n] = base
        longs[k.RECORD_OFFSET, n] = staged[i].offset
        longs[k.TIMESTAMP, n] = time + staged[i].timestamp_delta if is_counted else time
        longs[k.PRODUCER_ID, n] = producer_id
        if has_row:
            offset_delta = staged[i].offset - base
            ints[k.KEY_SIZE, n] = staged[i].key_size
            ints[k.VALUE_SIZE, n] = staged[i].value_size
            longs[k.OLDER_CHECKSUM, n] = checksum
            ints[k.SEQUENCE, n] = b.NO_SEQUENCE
            if base_sequence >= 0:
                ints[k.SEQUENCE, n] = _sequence(base_sequence, offset_delta)
    scan_state.staged = staged_count + count
    counts[k.STAGED_BYTES] = staged_bytes
    return oc.FINISHED


@inlined
def _take(scan_state: a.ScanState, chunk: k.ChunkArrays, buffers: a.Buffers, data: Any, at: Any, size: Any) -> Any:
    """Stage the batch at a position, or return why not."""
    table = buffers.table
    refused = sc.refusal(scan_state, data, at, size)
    if refused != oc.FINISHED:
        return refused
    in_window = bt.attributes_of(data, at) & bt.CODEC_MASK != 0
    if scan_state.staged and scan_state.in_window != in_window:
        return oc.PAUSED  # what is staged stands in one place
    scan_state.in_window = in_window
    if not in_window:
        begin = bt.records_begin(data, at)
        return _stage(scan_state, chunk, buffers.staged, data, begin, at + size, data, at)
    place = dp.find_in_window(scan_state, table, at)
    if place < 0:
        return oc.NEEDS_WINDOW
    begin, end = table[place, dp.BEGIN], table[place, dp.END]
    if end < 0:
        return oc.NOT_PLAIN
    return _stage(scan_state, chunk, buffers.staged, buffers.window, begin, end, data, at)


@kernel
def fill(scan_state: a.ScanState, chunk: k.ChunkArrays, buffers: a.Buffers, data: Bytes) -> Any:
    """Append rows of a segment's batches from ``scan_state.at`` on; return why it stopped."""
    scan_state.staged = 0
    outcome = np.int64(oc.FINISHED)
    while True:
        at = scan_state.at
        if outcome == oc.FINISHED and at < scan_state.stop and scan_state.staged < sc.FLUSH_AT:
            size = bt.next_batch_at(scan_state, data, at, np.int64(len(data)))
            outcome = np.int64(_take(scan_state, chunk, buffers, data, at, size))
            if outcome == oc.FINISHED:
                scan_state.last_offset = bt.last_offset(data, at)
                scan_state.at = at + size
            continue
        source = buffers.window if scan_state.in_window else data
        flushed = _flush(scan_state, chunk, buffers.staged, source)
        if flushed != oc.FINISHED:
            return flushed
        if outcome < oc.PAUSED:
            return outcome
        if at >= scan_state.stop:
            return np.int64(oc.FINISHED)
        outcome = np.int64(oc.FINISHED)
