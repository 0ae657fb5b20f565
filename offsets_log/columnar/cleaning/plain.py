"""Plain batches for the cleaner: with a key in each record and no headers; what ends transactions.

A message of magic 0 or 1 is one of them, where all that it holds is of its own magic. Records of compressed batches are
read in a window of decompressed ones (`wire.decompressed`). Of batches of transactions Python says first that they may
be taken; whatever is not plain stays to `offsets_log.cleaner`, whose rules these are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.cleaning import round_state as d
from offsets_log.columnar.cleaning.indexing import newest_at
from offsets_log.columnar.cleaning.rewriting import HORIZON_MASK
from offsets_log.columnar.jit.compiled import U, inlined, part
from offsets_log.columnar.wire import batches as bt
from offsets_log.columnar.wire import decompressed as dp
from offsets_log.columnar.wire import messages as ms
from offsets_log.columnar.wire.primitives import be16, be32, be64

OF_TRANSACTIONS = bt.CONTROL_MASK | bt.TRANSACTIONAL_MASK


@inlined
def _has(open_: Any, first: Any, count: Any, producer_id: Any) -> Any:
    """Return where a producer stands among some; −1 if it does not."""
    for i in range(first, first + count):
        if open_[U(i)] == producer_id:
            return np.int64(i)
    return np.int64(-1)


@inlined
def _has_plain_offsets(data: Any, at: Any) -> Any:
    """Return whether a header's offsets rise and fit into 64 bits."""
    base = be64(data, at)
    delta = np.int64(0) if bt.is_older(data, at) else be32(data, at + bt.LAST_OFFSET_DELTA)
    return base >= 0 and delta >= 0 and base <= bt.INT64_MAX - delta - 1


@inlined
def _aborted_by(arrays: d.RoundArrays, producer_id: Any) -> Any:
    """Return where the open aborted transaction of a producer stands among the open ones; −1 if there is none."""
    for i in range(d.MOST_OPEN, d.MOST_OPEN + arrays.round_state.aborted):
        if arrays.aborting[U(arrays.open_[U(i)])].producer_id == producer_id:
            return np.int64(i)
    return np.int64(-1)


@inlined
def reach(arrays: d.RoundArrays, data: Any, at: Any, end: Any) -> Any:
    """Open the aborted transactions that have begun by the end of the batch at a position (``CL-15``).

    Return whether it is a marker, or data of a transaction.
    """
    round_state = arrays.round_state
    if bt.size_at(data, at, end) < 0:
        return False
    last = bt.last_offset(data, at)
    if round_state.begun < round_state.aborting and arrays.aborting[U(round_state.begun)].begins_at <= last:
        _begin(arrays, last)
    return not bt.is_older(data, at) and be16(data, at + bt.ATTRIBUTES) & OF_TRANSACTIONS != 0


@part
def _begin(arrays: d.RoundArrays, last: Any) -> None:
    """Open the aborted transactions that begin up to an offset, but no second one of a producer."""
    round_state = arrays.round_state
    while round_state.begun < round_state.aborting and arrays.aborting[U(round_state.begun)].begins_at <= last:
        row = round_state.begun
        if _aborted_by(arrays, arrays.aborting[U(row)].producer_id) < 0:
            arrays.open_[U(d.MOST_OPEN + round_state.aborted)] = row
            round_state.aborted += 1
        round_state.begun = row + 1


@part
def aborted_at(arrays: d.RoundArrays, data: Any, at: Any, end: Any) -> Any:
    """Return the row of the aborted transaction that the batch at a position has data of, else −1 (``CL-16``)."""
    round_state = arrays.round_state
    if round_state.aborted == 0 or at == round_state.allowed_at or newest_at(data, at, end) < 0:
        return np.int64(-1)
    if be16(data, at + bt.ATTRIBUTES) & OF_TRANSACTIONS != bt.TRANSACTIONAL_MASK:
        return np.int64(-1)
    last = be64(data, at) + be32(data, at + bt.LAST_OFFSET_DELTA)
    if not _has_plain_offsets(data, at) or last >= round_state.next_aborted:
        return np.int64(-1)
    found = _aborted_by(arrays, be64(data, at + bt.PRODUCER_ID))
    return np.int64(-1) if found < 0 else arrays.open_[U(found)]


@part
def is_of_commit(arrays: d.RoundArrays, data: Any, at: Any) -> Any:
    """Return whether a transaction is to be kept, and note that it has data (``CL-15``, ``CL-16``)."""
    round_state = arrays.round_state
    last = be64(data, at) + be32(data, at + bt.LAST_OFFSET_DELTA)
    producer_id = be64(data, at + bt.PRODUCER_ID)
    if last >= round_state.next_aborted or _aborted_by(arrays, producer_id) >= 0:
        return False
    if _has(arrays.open_, np.int64(0), round_state.committed, producer_id) < 0:
        if round_state.committed >= d.MOST_OPEN:
            return False
        arrays.open_[U(round_state.committed)] = producer_id
        round_state.committed += 1
    return True


@part
def marker_at(arrays: d.RoundArrays, data: Any, at: Any, end: Any) -> Any:
    """Return the size of the plain marker at a position; it ends a transaction with data (``CL-17``).

    Else 0, and nothing is done.
    """
    round_state, open_ = arrays.round_state, arrays.open_
    size = newest_at(data, at, end)
    unusual = bt.CODEC_MASK | HORIZON_MASK
    if size != bt.MARKER_SIZE or be16(data, at + bt.ATTRIBUTES) & (unusual | bt.CONTROL_MASK) != bt.CONTROL_MASK:
        return np.int64(0)
    record = at + bt.HEADER_SIZE
    kind = be16(data, record + 7)
    is_plain = be32(data, at + bt.RECORDS_COUNT) == 1 and data[U(record)] == 0x20 and data[U(record + 2)] < 0x80
    is_plain = is_plain and be32(data, record + 3) == 0x00080000 and 0 <= kind <= 1
    last = be64(data, at) + be32(data, at + bt.LAST_OFFSET_DELTA)
    if not is_plain or data[U(record + 9)] != 12 or data[U(record + 16)] != 0 or last >= round_state.next_aborted:
        return np.int64(0)
    producer_id = be64(data, at + bt.PRODUCER_ID)
    if kind == 0:
        return size if _ends_aborted(arrays, producer_id) else np.int64(0)
    found = _has(open_, np.int64(0), round_state.committed, producer_id)
    if found < 0:
        return np.int64(0)
    round_state.committed -= 1
    open_[U(found)] = open_[U(round_state.committed)]
    return size


@inlined
def _ends_aborted(arrays: d.RoundArrays, producer_id: Any) -> Any:
    """End a producer's aborted transaction if data of it was met, and its entry may follow the last one."""
    round_state, open_, aborting = arrays.round_state, arrays.open_, arrays.aborting
    found = _aborted_by(arrays, producer_id)
    if found < 0:
        return False
    row = U(open_[U(found)])
    if aborting[row].is_seen == 0 or aborting[row].ends_at <= round_state.last_ended:
        return False
    round_state.aborted -= 1
    open_[U(found)] = open_[U(d.MOST_OPEN + round_state.aborted)]
    round_state.ended += 1
    aborting[row].ended_as = round_state.ended
    round_state.last_ended = aborting[row].ends_at
    return True


@inlined
def _has_plain_attributes(data: Any, at: Any) -> Any:
    """Return whether a batch is of data, with times that its records or messages tell."""
    if bt.is_older(data, at):
        return ms.has_known_attributes(data, at)
    return be16(data, at + bt.ATTRIBUTES) & (bt.CONTROL_MASK | bt.TIMESTAMP_TYPE_MASK) == 0


@inlined
def _is_of_one_magic(source: Any, start: Any, end: Any, data: Any, at: Any) -> Any:
    """Return whether a batch holds no messages of another magic, as brokers once wrote them (``CL-33``)."""
    return not bt.is_older(data, at) or ms.are_of_magic(source, start, end, np.int64(data[U(at) + U(bt.MAGIC)]))


@part
def plain_at(arrays: d.RoundArrays, data: Any, at: Any, end: Any, buffers: a.Buffers, first: Any) -> Any:
    """Stage the batch at a position; return how many records it has, or the reason why it is not taken.

    Whether they stand in the window, and how large the batch is when it is not compressed, is noted in the round state.

    Args:
        first: so many records are staged already; all of them stand where those of this batch must stand.
    """
    round_state, table = arrays.round_state, buffers.table
    size = bt.size_at(data, at, end)
    if size < 0 or not _has_plain_attributes(data, at):
        return np.int64(oc.NOT_PLAIN)
    attributes = bt.attributes_of(data, at)
    source, start, stop = data, bt.records_begin(data, at), at + size
    if first and round_state.in_window != (attributes & bt.CODEC_MASK != 0):
        return np.int64(oc.PAUSED)
    round_state.in_window = attributes & bt.CODEC_MASK != 0
    if round_state.in_window:
        place = dp.find_in_window(round_state, table, at)
        if place < 0:
            return np.int64(oc.NEEDS_WINDOW)
        source, start, stop = buffers.window, table[place, dp.BEGIN], table[place, dp.END]
        if stop < 0:
            return np.int64(oc.NOT_PLAIN)
    round_state.plain_size = bt.HEADER_SIZE + stop - start
    count = bt.count_of(source, start, stop, data, at)
    if not _has_plain_offsets(data, at) or count <= 0 or not _is_of_one_magic(source, start, stop, data, at):
        return np.int64(oc.NOT_PLAIN)
    if count > len(buffers.staged) - first:
        return np.int64(oc.PAUSED if first else oc.NEEDS_RECORDS)
    if bt.records_of(source, start, stop, count, data, at, buffers.staged, first) != count:
        return np.int64(oc.NOT_PLAIN)
    is_open = attributes & bt.TRANSACTIONAL_MASK and round_state.rule == d.BY_KEYS
    is_open = is_open and at != round_state.allowed_at
    return np.int64(oc.NOT_PLAIN) if is_open and not is_of_commit(arrays, data, at) else count
