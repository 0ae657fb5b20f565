"""What plain batches of producers do to what a broker knows of them: the rules of `ProducerState`, in a table."""

from __future__ import annotations

from typing import Any

import numpy as np

from offsets_log.columnar.jit.compiled import U, inlined, part
from offsets_log.columnar.wire import batches as bt
from offsets_log.columnar.wire.primitives import be16, be32, be64
from offsets_log.log_format import batch as b

# Columns of the table: the producer, and the fields of its `ProducerEntry`.
PRODUCER_ID, EPOCH, LAST_SEQUENCE, LAST_OFFSET, OFFSET_DELTA, TIMESTAMP, COORDINATOR_EPOCH, FIRST_OFFSET = range(8)
COLUMNS = 8

# Columns of transactions that ended: the fields of an `AbortedTransaction` but for its version, and which they are.
ENDED_PRODUCER_ID, ENDED_FIRST, ENDED_LAST, ENDED_STABLE, IS_ABORTED = range(5)
ENDED_COLUMNS = 5

# Numbers that a kernel is told, and tells.
COUNT = 0  # rows of the table, or one of those below
ENDED = 1  # transactions that ended
TOLD_SIZE = 2

CLOSED = -1  # all batches of producers are for Python
NOTED = -2  # only where they are is noted, in the first column of transactions that ended


@part
def take(told: Any, producers: Any, ended: Any, data: Any, at: Any) -> Any:
    """Note a whole batch of magic 2 that has a producer; return False, with nothing done, if it is not plain.

    There must be room for one more transaction that ends.
    """
    base, delta = be64(data, at), be32(data, at + bt.LAST_OFFSET_DELTA)
    if told[COUNT] == CLOSED or base < 0 or delta < 0 or base > bt.INT64_MAX - delta - 1:
        return False
    if told[COUNT] == NOTED:
        ended[U(told[ENDED]), 0] = at
        told[ENDED] += 1
        return True
    row = _row_of(told, producers, be64(data, at + bt.PRODUCER_ID))
    if row < 0:
        return False
    if be16(data, at + bt.ATTRIBUTES) & bt.CONTROL_MASK:
        is_taken = _take_marker(told, producers, ended, data, at, row)
    else:
        is_taken = _take_data(told, producers, data, at, row)
    if is_taken and row == told[COUNT]:
        told[COUNT] += 1
    return is_taken


@inlined
def _row_of(told: Any, producers: Any, producer_id: Any) -> Any:
    """Return the row of a producer, a new one at the end for a producer not known; −1 if there is no room for it."""
    count = told[COUNT]
    for row in range(count):
        if producers[U(row), PRODUCER_ID] == producer_id:
            return np.int64(row)
    if count >= len(producers):
        return np.int64(-1)
    producers[U(count), PRODUCER_ID] = producer_id
    producers[U(count), EPOCH] = b.NO_PRODUCER_EPOCH
    producers[U(count), COORDINATOR_EPOCH] = producers[U(count), FIRST_OFFSET] = -1
    return np.int64(count)


@inlined
def _take_data(told: Any, producers: Any, data: Any, at: Any, row: Any) -> Any:
    """Do what `ProducerEntry.with_data` does."""
    base, delta, i = be64(data, at), be32(data, at + bt.LAST_OFFSET_DELTA), U(row)
    is_transactional = be16(data, at + bt.ATTRIBUTES) & bt.TRANSACTIONAL_MASK != 0
    is_open = producers[i, FIRST_OFFSET] >= 0
    if is_open and not is_transactional:
        return False
    if is_transactional and not is_open:
        for other in range(told[COUNT]):
            if producers[U(other), FIRST_OFFSET] == base:
                return False
        producers[i, FIRST_OFFSET] = base
    sequence = be32(data, at + bt.BASE_SEQUENCE)
    producers[i, EPOCH] = be16(data, at + bt.PRODUCER_EPOCH)
    producers[i, LAST_SEQUENCE] = sequence if sequence == b.NO_SEQUENCE else sequence + delta & b.MAX_SEQUENCE
    producers[i, LAST_OFFSET] = base + delta
    producers[i, OFFSET_DELTA] = delta
    producers[i, TIMESTAMP] = be64(data, at + bt.MAX_TIMESTAMP)
    return True


@inlined
def _is_plain_marker(data: Any, at: Any) -> Any:
    """Return whether a control batch has the form that `FileBatch.plain_marker` knows, and no extreme time."""
    if be32(data, at + bt.LENGTH) != bt.MARKER_SIZE - bt.LOG_OVERHEAD or be32(data, at + bt.RECORDS_COUNT) != 1:
        return False
    if be16(data, at + bt.ATTRIBUTES) & (bt.CODEC_MASK | bt.TIMESTAMP_TYPE_MASK):
        return False
    record = at + bt.HEADER_SIZE
    is_plain = data[U(record)] == 0x20 and data[U(record + 2)] < 0x80 and be32(data, record + 3) == 0x00080000
    is_plain = is_plain and data[U(record + 7)] == 0 and data[U(record + 8)] <= 1
    is_plain = is_plain and data[U(record + 9)] == 12 and data[U(record + 10)] < 0x80 and data[U(record + 16)] == 0
    return is_plain and abs(be64(data, at + bt.BASE_TIMESTAMP)) < 1 << 62


@inlined
def _take_marker(told: Any, producers: Any, ended: Any, data: Any, at: Any, row: Any) -> Any:
    """Do what `ProducerEntry.with_marker` does, and note the transaction that it ends."""
    if not _is_plain_marker(data, at):
        return False
    i, record, base = U(row), at + bt.HEADER_SIZE, be64(data, at)
    first, epoch = producers[i, FIRST_OFFSET], be16(data, at + bt.PRODUCER_EPOCH)
    if epoch != producers[i, EPOCH] or row == told[COUNT]:
        producers[i, LAST_SEQUENCE] = b.NO_SEQUENCE
        producers[i, LAST_OFFSET] = -1
        producers[i, OFFSET_DELTA] = 0
    late = np.int64(data[U(record + 2)])
    producers[i, EPOCH] = epoch
    producers[i, COORDINATOR_EPOCH] = be32(data, record + 12)
    producers[i, TIMESTAMP] = be64(data, at + bt.BASE_TIMESTAMP) + (late >> 1 ^ -(late & 1))
    producers[i, FIRST_OFFSET] = -1
    if first >= 0:
        stable = np.int64(-1)
        for other in range(told[COUNT]):
            others_first = producers[U(other), FIRST_OFFSET]
            if others_first >= 0 and (stable < 0 or others_first < stable):
                stable = others_first
        place = U(told[ENDED])
        ended[place, ENDED_PRODUCER_ID] = producers[i, PRODUCER_ID]
        ended[place, ENDED_FIRST] = first
        ended[place, ENDED_LAST] = base
        ended[place, ENDED_STABLE] = base + 1 if stable < 0 else stable
        ended[place, IS_ABORTED] = data[U(record + 8)] == 0
        told[ENDED] += 1
    return True
