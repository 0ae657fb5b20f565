"""Transactions without a marker yet, on the way through a log: of each producer the first record, and their number.

`census` counts the records of offsets in them, `inspection` asks where the first record of each stands.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar.jit.compiled import inlined, kernel
from offsets_log.columnar.jit.kinds import Longs, Number
from offsets_log.columnar.scan.interner import intern_producer


@inlined
def _at(scan_state: a.ScanState, producer: Any) -> Any:
    """Return where a producer's transaction stands in ``overflow``."""
    return scan_state.unended_at + producer * a.UNENDED_SIZE


@inlined
def add(scan_state: a.ScanState, overflow: Any, producer: Any, offset: Any, time: Any, batch: Any, count: Any) -> None:
    """Add records in a transaction, with the offset of the first, and where its batch begins in the log."""
    at = _at(scan_state, producer)
    if overflow[at + a.UNENDED_COUNT] == 0:
        overflow[at + a.UNENDED_OFFSET] = offset
        overflow[at + a.UNENDED_TIME] = time
        overflow[at + a.UNENDED_BATCH] = batch
    overflow[at + a.UNENDED_COUNT] += count


@inlined
def end(scan_state: a.ScanState, overflow: Any, producer: Any) -> None:
    """End a transaction by a marker."""
    at = _at(scan_state, producer)
    overflow[at + a.UNENDED_COUNT] = 0
    overflow[at + a.IS_ENDED] = 1


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
        right = _at(right_scan_state, np.int64(i))
        producer_id = right_overflow[right_scan_state.producers_at + i * a.PRODUCER_SIZE + a.PRODUCER_ID]
        producer = intern_producer(scan_state, overflow, producer_id)
        if right_overflow[right + a.IS_ENDED] != 0:
            end(scan_state, overflow, producer)
        count = right_overflow[right + a.UNENDED_COUNT]
        if count != 0:
            offset, time = right_overflow[right + a.UNENDED_OFFSET], right_overflow[right + a.UNENDED_TIME]
            add(scan_state, overflow, producer, offset, time, right_overflow[right + a.UNENDED_BATCH], count)
