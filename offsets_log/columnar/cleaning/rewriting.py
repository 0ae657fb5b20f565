"""Write a batch of the newest magic again with some of its records, as Kafka's builder does."""

from __future__ import annotations

from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar.jit.compiled import U, inlined, part
from offsets_log.columnar.jit.records import Table
from offsets_log.columnar.wire import batches as bt
from offsets_log.columnar.wire.decompress import copy_bytes
from offsets_log.columnar.wire.primitives import be16, be32, be64
from offsets_log.log_format import batch as b

HORIZON_MASK = b.DELETE_HORIZON_MASK
KEPT_BITS = b.TRANSACTIONAL_MASK | bt.CODEC_MASK


@inlined
def can_be_rewritten(data: Any, at: Any, staged: Table[a.Staged], kept: Any) -> Any:
    """Return whether Kafka's builder accepts the producer and the times as they are."""
    if be64(data, at + bt.PRODUCER_ID) != -1:
        if be16(data, at + bt.PRODUCER_EPOCH) == -1 or be32(data, at + bt.BASE_SEQUENCE) < 0:
            return False
    elif be16(data, at + bt.ATTRIBUTES) & bt.TRANSACTIONAL_MASK:
        return False
    for number in range(kept):  # noqa: SIM110 - kernels know no generators
        if bt.time_at(data, at, staged[U(number)].timestamp_delta) < bt.NO_TIME:
            return False
    return True


@part
def rewrite(
    round_state: Any, data: Any, at: Any, source: Any, staged: Table[a.Staged], kept: Any, horizon: Any, out: Any
) -> None:
    """Write the batch with the records that are kept; one that is to be compressed again has no checksum yet."""
    begin = round_state.out_used
    copy_bytes(data, at, out, begin, np.int64(bt.HEADER_SIZE))
    before = be64(data, at + bt.BASE_TIMESTAMP)
    base = horizon if horizon >= 0 else before + staged[0].timestamp_delta
    latest = np.int64(-1)
    to = begin + bt.HEADER_SIZE
    for number in range(kept):
        i = U(number)
        time = before + staged[i].timestamp_delta
        latest = max(latest, time)
        to = _put_record(source, staged, i, time - base, staged[i].offset - be64(data, at), out, to)
    attributes = be16(data, at + bt.ATTRIBUTES) & KEPT_BITS | (HORIZON_MASK if horizon >= 0 else 0)
    _put(out, begin + bt.LENGTH, to - begin - bt.LOG_OVERHEAD, np.int64(4))
    _put(out, begin + bt.ATTRIBUTES, np.int64(attributes), np.int64(2))
    _put(out, begin + bt.BASE_TIMESTAMP, base, np.int64(8))
    _put(out, begin + bt.MAX_TIMESTAMP, latest, np.int64(8))
    _put(out, begin + bt.RECORDS_COUNT, kept, np.int64(4))
    if round_state.in_window == 0:
        _put(out, begin + bt.CRC, bt.crc32c(out, begin + bt.ATTRIBUTES, to), np.int64(4))
    round_state.out_used = to


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
