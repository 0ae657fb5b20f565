"""Transactions without a marker yet, on the way through a log: of each producer the first record, and their number.

`census` counts the records of offsets in them, `inspection` asks where the first record of each stands.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar.jit.compiled import inlined, kernel
from offsets_log.columnar.jit.kinds import Longs, Number
from offsets_log.columnar.overflow import producer_at, unended_at
from offsets_log.columnar.scan.interner import intern_producer


@inlined
def add(
    scan_state: a.ScanState, overflow: Longs, producer: Any, offset: Any, time: Any, batch: Any, count: Any
) -> None:
    """Add records in a transaction, with the offset of the first, and where its batch begins in the log."""
    transaction = unended_at(scan_state, overflow, producer)
    if transaction.count == 0:
        transaction.offset = offset
        transaction.time = time
        transaction.batch = batch
    transaction.count += count


@inlined
def end(scan_state: a.ScanState, overflow: Longs, producer: Any) -> None:
    """End a transaction by a marker."""
    transaction = unended_at(scan_state, overflow, producer)
    transaction.count = 0
    transaction.is_ended = 1


@kernel
def add_one(
    scan_state: a.ScanState, overflow: Longs, producer_id: Number, offset: Number, time: Number, batch: Number
) -> Any:
    """Add a record that was read on the slow path; return False without room."""
    producer = intern_producer(scan_state, overflow, np.int64(producer_id))
    if producer < 0:
        return False
    add(scan_state, overflow, producer, offset, time, batch, np.int64(1))
    return True


@kernel
def end_one(scan_state: a.ScanState, overflow: Longs, producer_id: Number) -> Any:
    """End a transaction by a marker that was read on the slow path; return False without room."""
    producer = intern_producer(scan_state, overflow, np.int64(producer_id))
    if producer < 0:
        return False
    end(scan_state, overflow, producer)
    return True


@kernel
def join(scan_state: a.ScanState, overflow: Longs, right_scan_state: a.ScanState, right_overflow: Longs) -> None:
    """Join those of the piece that follows; all its producers are known here."""
    for i in range(right_scan_state.producer_count):
        right = unended_at(right_scan_state, right_overflow, np.int64(i))
        producer_id = producer_at(right_scan_state, right_overflow, i).producer_id
        producer = intern_producer(scan_state, overflow, producer_id)
        if right.is_ended != 0:
            end(scan_state, overflow, producer)
        count = right.count
        if count != 0:
            offset, time = right.offset, right.time
            add(scan_state, overflow, producer, offset, time, right.batch, count)
