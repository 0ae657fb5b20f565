"""Runs of batches that nothing is wrong with, as they stand in a segment: to be copied unread."""

from __future__ import annotations

from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar.jit.compiled import inlined, kernel
from offsets_log.columnar.jit.kinds import Bytes, LongRows, Longs, Number
from offsets_log.columnar.scan import staging as sc
from offsets_log.columnar.wire import batches as bt
from offsets_log.columnar.wire import decompressed as dp
from offsets_log.columnar.wire.primitives import be32, be64


@kernel
def whole(
    scan_state: Longs, staged: LongRows, data: Bytes, window: Bytes, table: LongRows, leader_epoch: Number
) -> int:  # fmt: skip
    """Go along batches of magic 2 without a producer that stand in their places, all of whose records can be read.

    They have right checksums, no later leader epoch, and end below the scan state's bound; none is larger than it says.
    """
    begin = scan_state[a.AT]
    while scan_state[a.AT] < scan_state[a.STOP]:
        if scan_state[a.AT] - begin >= scan_state[a.PAUSE]:
            return sc.PAUSED
        at = scan_state[a.AT]
        size = bt.next_batch_at(scan_state, data, at, np.int64(len(data)))
        if size < 0 or not _is_usual(scan_state, data, at, size, leader_epoch):
            return sc.NOT_PLAIN
        count = _records(scan_state, staged, data, window, table, at, size)
        if count < 0:
            return int(-count)
        scan_state[a.LAST_OFFSET] = bt.last_offset(data, at)
        scan_state[a.BATCHES] += 1
        scan_state[a.RECORDS] += count
        scan_state[a.NEWEST_MS] = be64(data, at + bt.MAX_TIMESTAMP)
        scan_state[a.AT] = at + size
    return sc.FINISHED


@inlined
def _is_usual(scan_state: Any, data: Any, at: Any, size: Any, leader_epoch: Any) -> Any:
    if bt.is_older(data, at) or bt.producer_of(data, at) >= 0 or bt.attributes_of(data, at) & bt.CONTROL_MASK:
        return False
    if be32(data, at + bt.PARTITION_LEADER_EPOCH) > leader_epoch or size > scan_state[a.MOST_BYTES]:
        return False
    return sc.is_in_place(scan_state, data, at, size) and bt.last_offset(data, at) < scan_state[a.UNTIL_OFFSET]


@inlined
def _records(scan_state: Any, staged: Any, data: Any, window: Any, table: Any, at: Any, size: Any) -> Any:
    """Return how many records a batch has; negative: minus the reason why that is unknown."""
    source, start, end = data, at + bt.HEADER_SIZE, at + size
    if bt.attributes_of(data, at) & bt.CODEC_MASK:
        place = sc.find_in_window(scan_state, table, at)
        if place < 0:
            return np.int64(-sc.NEEDS_WINDOW)
        source, start, end = window, table[place, dp.BEGIN], table[place, dp.END]
    count = bt.count_of(source, start, end, data, at) if end >= 0 else np.int64(0)
    if count <= 0:
        return np.int64(-sc.NOT_PLAIN)
    if count > len(staged):
        scan_state[a.NEEDED] = count
        return np.int64(-sc.NEEDS_RECORDS)
    found = bt.records_of(source, start, end, count, data, at, staged, np.int64(0))
    return count if found == count else np.int64(-sc.NOT_PLAIN)


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
