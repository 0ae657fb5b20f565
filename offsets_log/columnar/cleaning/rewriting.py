"""Write a batch again with some of its records, as Kafka's builder does: as one of the newest magic, or an older one.

A compressed batch is written plain: its checksum, and the sizes of an older one, are right once it is compressed again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar.jit.compiled import U, inlined, part
from offsets_log.columnar.jit.records import Table
from offsets_log.columnar.wire import batches as bt
from offsets_log.columnar.wire import messages as ms
from offsets_log.columnar.wire.decompress import copy_bytes
from offsets_log.columnar.wire.primitives import be16, be32, be64
from offsets_log.log_format import batch as b

HORIZON_MASK = b.DELETE_HORIZON_MASK
MAX_INT32 = (1 << 31) - 1
KEPT_BITS = b.TRANSACTIONAL_MASK | b.TIMESTAMP_TYPE_MASK | bt.CODEC_MASK


@inlined
def can_be_rewritten(round_state: Any, data: Any, at: Any, staged: Table[a.Staged], kept: Any) -> Any:
    """Return whether Kafka's builder accepts the producer, the times and the offsets as they are."""
    if bt.is_older(data, at):
        return _can_be_built(round_state, staged, kept)
    if be64(data, at + bt.PRODUCER_ID) != -1:
        if be16(data, at + bt.PRODUCER_EPOCH) == -1 or be32(data, at + bt.BASE_SEQUENCE) < 0:
            return False
    elif be16(data, at + bt.ATTRIBUTES) & bt.TRANSACTIONAL_MASK:
        return False
    for number in range(kept):  # noqa: SIM110 - kernels know no generators
        if bt.time_at(data, at, staged[U(number)].timestamp_delta) < bt.NO_TIME:
            return False
    return True


@inlined
def _can_be_built(round_state: Any, staged: Table[a.Staged], kept: Any) -> Any:
    """Return whether a new batch takes messages of magic 0 or 1, and the segment its end."""
    first, last = staged[0].offset, staged[U(kept - 1)].offset
    if last < round_state.base_offset or last - first > MAX_INT32:
        return False
    earliest = staged[0].timestamp_delta
    for number in range(1, kept):
        earliest = min(earliest, staged[U(number)].timestamp_delta)
    return earliest >= b.NO_TIMESTAMP


@part
def rewrite(
    round_state: Any, data: Any, at: Any, source: Any, staged: Table[a.Staged], kept: Any, horizon: Any, out: Any
) -> None:
    """Write the batch, of whatever magic, as one of the newest with the records that are kept."""
    begin = round_state.out_used
    is_older = bt.is_older(data, at)
    if is_older:
        _put_header(out, begin, staged[0].offset, staged[U(kept - 1)].offset)
    else:
        copy_bytes(data, at, out, begin, np.int64(bt.HEADER_SIZE))
    before, _ = bt.base_time(data, at)
    first = be64(out, begin)
    base = horizon if horizon >= 0 else before + staged[0].timestamp_delta
    latest = np.int64(-1)
    to = begin + bt.HEADER_SIZE
    for number in range(kept):
        i = U(number)
        time = before + staged[i].timestamp_delta
        latest = max(latest, time)
        to = _put_record(source, staged, i, time - base, staged[i].offset - first, out, to)
    attributes = bt.attributes_of(data, at) & KEPT_BITS | (HORIZON_MASK if horizon >= 0 else 0)
    if is_older and attributes & b.TIMESTAMP_TYPE_MASK:
        latest = bt.max_timestamp(data, at)
    _put(out, begin + bt.LENGTH, to - begin - bt.LOG_OVERHEAD, np.int64(4))
    _put(out, begin + bt.ATTRIBUTES, np.int64(attributes), np.int64(2))
    _put(out, begin + bt.BASE_TIMESTAMP, base, np.int64(8))
    _put(out, begin + bt.MAX_TIMESTAMP, latest, np.int64(8))
    _put(out, begin + bt.RECORDS_COUNT, kept, np.int64(4))
    if round_state.in_window == 0:
        _put(out, begin + bt.CRC, bt.crc32c(out, begin + bt.ATTRIBUTES, to), np.int64(4))
    round_state.out_used = to


@inlined
def _put_header(out: Any, at: Any, first: Any, last: Any) -> None:
    """Write what a new batch without a producer tells whatever is in it, and its offsets."""
    _put(out, at, first, np.int64(8))
    _put(out, at + bt.PARTITION_LEADER_EPOCH, np.int64(b.NO_PARTITION_LEADER_EPOCH), np.int64(4))
    out[U(at + bt.MAGIC)] = bt.NEWEST_MAGIC
    _put(out, at + bt.LAST_OFFSET_DELTA, last - first, np.int64(4))
    _put(out, at + bt.PRODUCER_ID, np.int64(b.NO_PRODUCER_ID), np.int64(8))
    _put(out, at + bt.PRODUCER_EPOCH, np.int64(b.NO_PRODUCER_EPOCH), np.int64(2))
    _put(out, at + bt.BASE_SEQUENCE, np.int64(b.NO_SEQUENCE), np.int64(4))


@part
def rewrite_older(
    round_state: Any, data: Any, at: Any, source: Any, staged: Table[a.Staged], kept: Any, out: Any
) -> None:
    """Write a compressed message of magic 0 or 1 with the messages that are kept, in its own magic (``CL-33``).

    Those inside magic 1 have offsets from the first of them on.
    """
    begin = round_state.out_used
    magic = np.int64(data[U(at) + U(bt.MAGIC)])
    time_type = bt.attributes_of(data, at) & b.TIMESTAMP_TYPE_MASK
    first = staged[0].offset if magic == 1 else np.int64(0)
    to, latest = ms.value_at(begin, magic), np.int64(b.NO_TIMESTAMP)
    for number in range(kept):
        i = U(number)
        latest = max(latest, staged[i].timestamp_delta)
        to = _put_message(source, staged, i, staged[i].offset - first, magic, time_type, out, to)
    _put(out, begin, staged[U(kept - 1)].offset, np.int64(8))
    out[U(begin + ms.MAGIC)] = magic
    out[U(begin + ms.ATTRIBUTES)] = bt.attributes_of(data, at) & (bt.CODEC_MASK | b.TIMESTAMP_TYPE_MASK)
    if magic == 1:
        _put(out, begin + ms.TIMESTAMP, ms.time_of(data, at) if time_type else latest, np.int64(8))
    round_state.out_used = to


@inlined
def _put_message(
    source: Any, staged: Table[a.Staged], i: Any, offset: Any, magic: Any, time_type: Any, out: Any, to: Any
) -> Any:
    """Write a message with a key inside a compressed one; return where it ends."""
    key, key_size, value, value_size = staged[i].key_at, staged[i].key_size, staged[i].value_at, staged[i].value_size
    begin = to
    _put(out, begin, offset, np.int64(8))
    out[U(begin + ms.MAGIC)] = magic
    out[U(begin + ms.ATTRIBUTES)] = time_type
    if magic == 1:
        _put(out, begin + ms.TIMESTAMP, staged[i].timestamp_delta, np.int64(8))
    to = ms.key_at(begin, magic)
    _put(out, to, key_size, np.int64(ms.LENGTH_BYTES))
    to += ms.LENGTH_BYTES
    copy_bytes(source, key, out, to, key_size)
    to += key_size
    _put(out, to, value_size, np.int64(ms.LENGTH_BYTES))
    to += ms.LENGTH_BYTES
    copy_bytes(source, value, out, to, max(value_size, np.int64(0)))
    to += max(value_size, np.int64(0))
    _put(out, begin + ms.SIZE, to - begin - bt.LOG_OVERHEAD, np.int64(4))
    _put(out, begin + ms.CRC, ms.crc32(out, begin + ms.MAGIC, to), np.int64(4))
    return to


@inlined
def _put(out: Any, at: Any, value: Any, size: Any) -> None:
    """Write a number of some bytes, most significant first."""
    for i in range(size):
        out[U(at + i)] = value >> 8 * (size - 1 - i) & 0xFF


@inlined
def _varint_size(value: Any) -> Any:
    """Return the size of a zigzag varint."""
    bits = U(value << 1 ^ value >> 63)
    size = np.int64(1)
    while bits >= U(0x80):
        bits = bits >> U(7)
        size += 1
    return size


@inlined
def _put_varint(out: Any, at: Any, value: Any) -> Any:
    """Write a zigzag varint; return where it ends."""
    bits = U(value << 1 ^ value >> 63)
    while bits >= U(0x80):
        out[U(at)] = bits & U(0x7F) | U(0x80)
        bits = bits >> U(7)
        at += 1
    out[U(at)] = bits
    return at + 1


@inlined
def _put_record(source: Any, staged: Table[a.Staged], i: Any, time: Any, offset: Any, out: Any, to: Any) -> Any:
    """Write a record with the deltas of its time and offset; return where it ends."""
    key_size, value_size = staged[i].key_size, staged[i].value_size
    size = 2 + _varint_size(time) + _varint_size(offset) + _varint_size(key_size) + _varint_size(value_size)
    to = _put_varint(out, to, size + key_size + max(value_size, np.int64(0)))
    out[U(to)] = 0  # attributes
    to = _put_varint(out, to + 1, time)
    to = _put_varint(out, to, offset)
    to = _put_varint(out, to, key_size)
    key = staged[i].key_at
    for n in range(key_size):
        out[U(to + n)] = source[U(key + n)]
    to = _put_varint(out, to + key_size, value_size)
    value = staged[i].value_at
    for n in range(value_size):
        out[U(to + n)] = source[U(value + n)]
    to += max(value_size, np.int64(0))
    out[U(to)] = 0  # headers
    return to + 1
