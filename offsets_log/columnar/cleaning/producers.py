"""What plain batches of producers do to what a broker knows of them: the rules of `ProducerState`, in a table."""

from __future__ import annotations

from typing import Any

import numpy as np

from offsets_log.columnar.jit.compiled import U, inlined, kernel, part
from offsets_log.columnar.jit.kinds import Bytes, Longs, Number
from offsets_log.columnar.jit.records import Long, Record, Table
from offsets_log.columnar.wire import batches as bt
from offsets_log.columnar.wire.primitives import be16, be32, be64
from offsets_log.log_format import batch as b


class Producer(Record):
    """A producer, and the fields of its `ProducerEntry`."""

    producer_id: Long
    epoch: Long
    last_sequence: Long
    last_offset: Long
    offset_delta: Long
    timestamp: Long
    coordinator_epoch: Long
    first_offset: Long


class Ended(Record):
    """A transaction that ended: the fields of an `AbortedTransaction` but for its version, and whether it is one."""

    producer_id: Long
    first_offset: Long
    last_offset: Long
    last_stable_offset: Long
    is_aborted: Long


class Noted(Record):
    """A batch that has a producer, in the place of a row of `Ended`."""

    producer_id: Long
    position: Long
    last_offset: Long
    size: Long
    kind: Long


DATA, TRANSACTIONAL_DATA, ABORT, COMMIT, OTHER = range(5)
"""Kinds: data, markers in the form that coordinators write, other control batches."""


class Told(Record):
    """What a kernel is told, and tells."""

    count: Long  # rows of producers, or CLOSED
    ended: Long  # transactions that ended


CLOSED = -1
"""Instead of a count: all batches of producers are for Python."""
NOTED = -2
"""Instead of a count: only what such batches are is noted, as rows of `Noted`."""


@part
def take(told: Any, producers: Any, ended: Any, data: Any, at: Any) -> Any:
    """Note a whole batch of magic 2 that has a producer; return False, with nothing done, if it is not plain.

    There must be room for one more transaction that ends.
    """
    base, delta = be64(data, at), be32(data, at + bt.LAST_OFFSET_DELTA)
    if told.count == CLOSED or base < 0 or delta < 0 or base > bt.INT64_MAX - delta - 1:
        return False
    if told.count == NOTED:
        noted = ended[U(told.ended)]
        noted.producer_id, noted.first_offset = be64(data, at + bt.PRODUCER_ID), at
        noted.last_offset, noted.is_aborted = base + delta, _kind_of(data, at)
        noted.last_stable_offset = be32(data, at + bt.LENGTH) + bt.LOG_OVERHEAD
        told.ended += 1
        return True
    row = _row_of(told, producers, be64(data, at + bt.PRODUCER_ID))
    if row < 0:
        return False
    if be16(data, at + bt.ATTRIBUTES) & bt.CONTROL_MASK:
        is_taken = _take_marker(told, producers, ended, data, at, row)
    else:
        is_taken = _take_data(told, producers, data, at, row)
    if is_taken and row == told.count:
        told.count += 1
    return is_taken


@inlined
def _kind_of(data: Any, at: Any) -> Any:
    """Return the kind of a batch."""
    attributes = be16(data, at + bt.ATTRIBUTES)
    if attributes & bt.CONTROL_MASK == 0:
        return np.int64(TRANSACTIONAL_DATA if attributes & bt.TRANSACTIONAL_MASK else DATA)
    if not _is_plain_marker(data, at):
        return np.int64(OTHER)
    return np.int64(COMMIT if data[U(at + bt.HEADER_SIZE + 8)] else ABORT)


@kernel
def take_many(
    told: Told, producers: Table[Producer], ended: Table[Ended], data: Bytes, begins: Longs, first: Number
) -> Any:
    """Take batches from a number on; return that of one that is not plain, or for whose end there is no room.

    Args:
        data: their headers, and all of control batches.
        begins: where each begins.
    """
    number = np.int64(first)
    while number < len(begins) and told.ended < len(ended):
        if not take(told, producers, ended, data, begins[U(number)]):
            break
        number += 1
    return number


@inlined
def _row_of(told: Any, producers: Any, producer_id: Any) -> Any:
    """Return the row of a producer, a new one at the end for a producer not known; −1 if there is no room for it."""
    count = told.count
    for row in range(count):
        if producers[U(row)].producer_id == producer_id:
            return np.int64(row)
    if count >= len(producers):
        return np.int64(-1)
    producer = producers[U(count)]
    producer.producer_id = producer_id
    producer.epoch = b.NO_PRODUCER_EPOCH
    producer.coordinator_epoch = producer.first_offset = -1
    return np.int64(count)


@inlined
def _take_data(told: Any, producers: Any, data: Any, at: Any, row: Any) -> Any:
    """Do what `ProducerEntry.with_data` does."""
    base, delta, producer = be64(data, at), be32(data, at + bt.LAST_OFFSET_DELTA), producers[U(row)]
    is_transactional = be16(data, at + bt.ATTRIBUTES) & bt.TRANSACTIONAL_MASK != 0
    is_open = producer.first_offset >= 0
    if is_open and not is_transactional:
        return False
    if is_transactional and not is_open:
        for other in range(told.count):
            if producers[U(other)].first_offset == base:
                return False
        producer.first_offset = base
    sequence = be32(data, at + bt.BASE_SEQUENCE)
    producer.epoch = be16(data, at + bt.PRODUCER_EPOCH)
    producer.last_sequence = sequence if sequence == b.NO_SEQUENCE else sequence + delta & b.MAX_SEQUENCE
    producer.last_offset = base + delta
    producer.offset_delta = delta
    producer.timestamp = be64(data, at + bt.MAX_TIMESTAMP)
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
    producer, record, base = producers[U(row)], at + bt.HEADER_SIZE, be64(data, at)
    first, epoch = producer.first_offset, be16(data, at + bt.PRODUCER_EPOCH)
    if epoch != producer.epoch or row == told.count:
        producer.last_sequence = b.NO_SEQUENCE
        producer.last_offset = -1
        producer.offset_delta = 0
    late = np.int64(data[U(record + 2)])
    producer.epoch = epoch
    producer.coordinator_epoch = be32(data, record + 12)
    producer.timestamp = be64(data, at + bt.BASE_TIMESTAMP) + (late >> 1 ^ -(late & 1))
    producer.first_offset = -1
    if first >= 0:
        stable = np.int64(-1)
        for other in range(told.count):
            others_first = producers[U(other)].first_offset
            if others_first >= 0 and (stable < 0 or others_first < stable):
                stable = others_first
        transaction = ended[U(told.ended)]
        transaction.producer_id = producer.producer_id
        transaction.first_offset = first
        transaction.last_offset = base
        transaction.last_stable_offset = base + 1 if stable < 0 else stable
        transaction.is_aborted = data[U(record + 8)] == 0
        told.ended += 1
    return True
