"""Runs of batches that nothing is wrong with, as they stand in a segment: to be copied unread."""

from __future__ import annotations

from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.cleaning import producers as pr
from offsets_log.columnar.jit.compiled import U, inlined, kernel, part
from offsets_log.columnar.jit.kinds import Bytes, Longs, Number
from offsets_log.columnar.jit.records import Table
from offsets_log.columnar.scan import staging as sc
from offsets_log.columnar.scan.interner import is_utf8
from offsets_log.columnar.wire import batches as bt
from offsets_log.columnar.wire import decompressed as dp
from offsets_log.columnar.wire.primitives import be16, walk


@kernel
def whole(
    scan_state: a.ScanState,
    buffers: a.Buffers,
    data: Bytes,
    told: pr.Told,
    producers: Table[pr.Producer],
    ended: Table[pr.Ended],
    doubts: Longs,
    leader_epoch: Number,
) -> int:
    """Go along batches that stand in their places, all of whose records can be read.

    They have right checksums, no later leader epoch, and end below the scan state's bound; none is larger than it says.
    Those of producers are as plain as `producers.take` asks for.

    Args:
        doubts: takes the places of batches whose keys and values may not be understood, behind the number of them.
    """
    begin = scan_state.at
    while scan_state.at < scan_state.stop:
        if scan_state.at - begin >= scan_state.pause:
            return oc.PAUSED
        at = scan_state.at
        size = bt.next_batch_at(scan_state, data, at, np.int64(len(data)))
        if size < 0 or not _is_usual(scan_state, data, at, size, leader_epoch):
            return oc.NOT_PLAIN
        count = _records(scan_state, buffers, data, at, size)
        if count < 0:
            return int(count)
        if told.ended >= len(ended) or doubts[0] + 1 >= len(doubts):
            return oc.PAUSED
        is_of_producer = bt.producer_of(data, at) >= 0
        if is_of_producer and not pr.take(told, producers, ended, data, at):
            return oc.NOT_PLAIN
        if bt.attributes_of(data, at) & bt.CONTROL_MASK:
            if not is_of_producer:
                return oc.NOT_PLAIN
        else:
            source = buffers.window if bt.attributes_of(data, at) & bt.CODEC_MASK else data
            _doubt(scan_state, source, buffers.staged, count, doubts, at)
        scan_state.last_offset = bt.last_offset(data, at)
        scan_state.batches += 1
        scan_state.records += count
        scan_state.newest_ms = bt.max_timestamp(data, at)
        scan_state.at = at + size
    return oc.FINISHED


@inlined
def _is_usual(scan_state: a.ScanState, data: Any, at: Any, size: Any, leader_epoch: Any) -> Any:
    if size > scan_state.most_bytes or bt.leader_epoch(data, at) > leader_epoch:
        return False
    return sc.is_in_place(scan_state, data, at, size) and bt.last_offset(data, at) < scan_state.until_offset


@inlined
def _doubt(scan_state: a.ScanState, source: Any, staged: Table[a.Staged], count: Any, doubts: Any, at: Any) -> None:
    """Note a batch if one of its staged records may not be understood."""
    for i in range(count):
        if not _is_understood(scan_state, source, staged, U(i)):
            doubts[0] += 1
            doubts[U(doubts[0])] = at
            break


@part
def _is_understood(scan_state: a.ScanState, source: Any, staged: Table[a.Staged], i: Any) -> Any:
    """Return whether the programs read a staged record's key and value through, and its names are UTF-8."""
    key, key_size = staged[i].key_at, staged[i].key_size
    if key_size < 2:
        return False
    number = be16(source, key)
    if 0 <= number < a.KEY_TYPES:
        if walk(scan_state, scan_state.key_programs[number], source, key + 2, key + key_size) < 0:
            return False
        for note in range(1 if number == 2 else 2):
            name = scan_state.notes[note] + 2
            if not is_utf8(source, name, be16(source, name - 2)):
                return False
    return sc.value_kind(scan_state, source, key, key_size, staged[i].value_at, staged[i].value_size) >= 0


@inlined
def _records(scan_state: a.ScanState, buffers: a.Buffers, data: Any, at: Any, size: Any) -> Any:
    """Return how many records a batch has, or why that is not known."""
    staged, table = buffers.staged, buffers.table
    source, start, end = data, bt.records_begin(data, at), at + size
    if bt.attributes_of(data, at) & bt.CODEC_MASK:
        place = dp.find_in_window(scan_state, table, at)
        if place < 0:
            return np.int64(oc.NEEDS_WINDOW)
        source, start, end = buffers.window, table[place, dp.BEGIN], table[place, dp.END]
    count = bt.count_of(source, start, end, data, at) if end >= 0 else np.int64(0)
    if count <= 0:
        return np.int64(oc.NOT_PLAIN)
    if count > len(staged):
        scan_state.needed = count
        return np.int64(oc.NEEDS_RECORDS)
    found = bt.records_of(source, start, end, count, data, at, staged, np.int64(0))
    first = bt.base_offset(data, at, staged, np.int64(0))
    is_behind = first > scan_state.last_offset and first >= scan_state.base_offset
    return count if found == count and is_behind else np.int64(oc.NOT_PLAIN)


@kernel
def of_producers(data: Bytes, begin: Number, found: Longs) -> Any:
    """Note where batches of transactions and control batches are, from a position on.

    Returns:
        Where to go on when these were taken; at the end of the data, or where no batch is, the end.
    """
    at, count = np.int64(begin), 0
    while at < len(data) and count < len(found):
        size = bt.size_at(data, at, np.int64(len(data)))
        if size < 0:
            return np.int64(len(data))
        if bt.attributes_of(data, at) & (bt.TRANSACTIONAL_MASK | bt.CONTROL_MASK):
            found[count] = at
            count += 1
        at += size
    return at
