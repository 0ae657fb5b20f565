"""Transactions without a marker yet, on the way through a log: of each producer the first record, and their number.

`inspection` counts the records of offsets in them, and asks where the first record of each stands.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar.jit.compiled import inlined, kernel
from offsets_log.columnar.jit.kinds import Number
from offsets_log.columnar.overflow import producer_at, unended_at
from offsets_log.columnar.scan.interner import intern_producer


@inlined
def add(arrays: a.Arrays, producer: Any, offset: Any, time: Any, batch: Any, count: Any) -> None:
    """Add records in a transaction, with the offset of the first, and where its batch begins in the log."""
    transaction = unended_at(arrays, producer)
    if transaction.count == 0:
        transaction.offset = offset
        transaction.time = time
        transaction.batch = batch
    transaction.count += count


@inlined
def end(arrays: a.Arrays, producer: Any) -> None:
    """End a transaction by a marker."""
    transaction = unended_at(arrays, producer)
    transaction.count = 0
    transaction.is_ended = 1


@kernel
def add_one(arrays: a.Arrays, producer_id: Number, offset: Number, time: Number, batch: Number) -> Any:
    """Add a record that was read on the slow path; return False without room."""
    producer = intern_producer(arrays, np.int64(producer_id))
    if producer < 0:
        return False
    add(arrays, producer, offset, time, batch, np.int64(1))
    return True


@kernel
def end_one(arrays: a.Arrays, producer_id: Number) -> Any:
    """End a transaction by a marker that was read on the slow path; return False without room."""
    producer = intern_producer(arrays, np.int64(producer_id))
    if producer < 0:
        return False
    end(arrays, producer)
    return True


@kernel
def join(arrays: a.Arrays, right: a.Arrays) -> None:
    """Join those of the piece that follows; all its producers are known here."""
    for i in range(right.scan_state.producer_count):
        theirs = unended_at(right, np.int64(i))
        producer_id = producer_at(right, i).producer_id
        producer = intern_producer(arrays, producer_id)
        if theirs.is_ended != 0:
            end(arrays, producer)
        count = theirs.count
        if count != 0:
            add(arrays, producer, theirs.offset, theirs.time, theirs.batch, count)
