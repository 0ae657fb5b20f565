"""Read batches in kernels: whether one is whole and valid, what its header says, and where its records are.

`batch_at` accepts a batch only if everything about it is plain; anything else, damaged or merely unusual, is left to
`log_format`, which knows all cases and names what is wrong. A message of magic 0 and 1 is a batch like any other:
callers of these functions need not know a batch's magic (`messages`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from offsets_log.columnar import arrays as a
from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.jit.compiled import U, inlined, part
from offsets_log.columnar.jit.instructions import crc32c_byte, crc32c_word, load64
from offsets_log.columnar.jit.records import Table
from offsets_log.columnar.wire import messages as ms
from offsets_log.columnar.wire.primitives import be16, be32, be64, varint, varlong
from offsets_log.log_format import batch as b
from offsets_log.log_format import compression


def _positions() -> dict[str, int]:
    """Return the positions of the header's fields, from its declaration."""
    positions: dict[str, int] = {}
    at = 0
    for field in b.BATCH_HEADER.subcons:
        positions[field.name] = at
        at += field.sizeof()
    return positions


_AT = _positions()
LENGTH = _AT["batch_length"]
LAST_OFFSET_DELTA = _AT["last_offset_delta"]
BASE_TIMESTAMP = _AT["base_timestamp"]
MAX_TIMESTAMP = _AT["max_timestamp"]
PRODUCER_ID = _AT["producer_id"]
PRODUCER_EPOCH = _AT["producer_epoch"]
BASE_SEQUENCE = _AT["base_sequence"]
PARTITION_LEADER_EPOCH = _AT["partition_leader_epoch"]
RECORDS_COUNT = _AT["records_count"]
LOG_OVERHEAD = b.LOG_OVERHEAD
HEADER_SIZE = b.BATCH_HEADER_SIZE
MAGIC = b.MAGIC_POSITION
CRC = b.CRC_POSITION
ATTRIBUTES = b.ATTRIBUTES_POSITION
CODEC_MASK = compression.CODEC_MASK
CONTROL_MASK = b.CONTROL_MASK
TRANSACTIONAL_MASK = b.TRANSACTIONAL_MASK
TIMESTAMP_TYPE_MASK = b.TIMESTAMP_TYPE_MASK
KNOWN_ATTRIBUTES = (
    CODEC_MASK | TIMESTAMP_TYPE_MASK | TRANSACTIONAL_MASK | CONTROL_MASK | b.DELETE_HORIZON_MASK
)  # fmt: skip
"""Bits of a batch's attributes that have a meaning."""
OLDER_SHIFT = KNOWN_ATTRIBUTES.bit_length()
"""The bits above these hold how many magics a batch is older than `NEWEST_MAGIC`."""
NEWEST_MAGIC = b.NEWEST_MAGIC
MAX_OFFSETS_IN_SEGMENT = b.MAX_OFFSETS_IN_SEGMENT
MARKER_SIZE = 78
"""Size of a transaction marker as coordinators write it."""
LEAST_RECORD_SIZE = 7
"""Length, attributes, two deltas, key length, value length, headers: one byte each."""

NO_TIME = b.NO_TIMESTAMP
INT64_MAX = np.iinfo(np.int64).max
INT64_MIN = np.iinfo(np.int64).min

_INITIAL = U(0xFFFFFFFF)


@inlined
def _crc32c_on(crc: Any, data: Any, start: Any, end: Any) -> Any:
    at = start
    while at + 8 <= end:
        crc = crc32c_word(crc, load64(data, at))
        at += 8
    while at < end:
        crc = crc32c_byte(crc, data[U(at)])
        at += 1
    return np.int64(crc ^ _INITIAL)


@inlined
def crc32c(data: Any, start: Any, end: Any) -> Any:
    """Return the CRC-32C of ``data[start:end]``; the caller has checked the end."""
    return _crc32c_on(_INITIAL, data, start, end)


# ----------------------------------------------------------------------------------------------- headers


@inlined
def is_older(data: Any, at: Any) -> Any:
    """Return whether a batch is a message of magic 0 or 1."""
    return data[U(at) + U(MAGIC)] < NEWEST_MAGIC


@inlined
def size_at(data: Any, at: Any, end: Any) -> Any:
    """Return the size of the batch that a position seems to hold, or NOT_PLAIN."""
    if end - at < HEADER_SIZE or data[U(at) + U(MAGIC)] != NEWEST_MAGIC:
        return ms.size_at(data, at, end)
    size = be32(data, at + LENGTH) + LOG_OVERHEAD
    return size if HEADER_SIZE <= size <= end - at else np.int64(oc.NOT_PLAIN)


@inlined
def size_of(data: Any, at: Any) -> Any:
    """Return the size of a batch that was accepted."""
    return be32(data, at + LENGTH) + LOG_OVERHEAD


@inlined
def last_offset(data: Any, at: Any) -> Any:
    """Return the last offset of a batch."""
    return be64(data, at) if is_older(data, at) else be64(data, at) + be32(data, at + LAST_OFFSET_DELTA)


@inlined
def attributes_of(data: Any, at: Any) -> Any:
    """Return the known bits of a batch's attributes, with its age above `OLDER_SHIFT`."""
    if is_older(data, at):
        older = np.int64(NEWEST_MAGIC) - np.int64(data[U(at) + U(MAGIC)])
        return np.int64(data[U(at) + U(ms.ATTRIBUTES)]) | older << OLDER_SHIFT
    return be16(data, at + ATTRIBUTES) & KNOWN_ATTRIBUTES


@inlined
def max_timestamp(data: Any, at: Any) -> Any:
    """Return the newest time in a batch, according to its header."""
    return ms.time_of(data, at) if is_older(data, at) else be64(data, at + MAX_TIMESTAMP)


@inlined
def leader_epoch(data: Any, at: Any) -> Any:
    """Return the partition leader epoch."""
    return np.int64(b.NO_PARTITION_LEADER_EPOCH) if is_older(data, at) else be32(data, at + PARTITION_LEADER_EPOCH)


@inlined
def producer_of(data: Any, at: Any) -> Any:
    """Return the producer's id."""
    return np.int64(b.NO_PRODUCER_ID) if is_older(data, at) else be64(data, at + PRODUCER_ID)


@inlined
def producer_epoch(data: Any, at: Any) -> Any:
    """Return the producer's epoch."""
    return np.int64(b.NO_PRODUCER_EPOCH) if is_older(data, at) else be16(data, at + PRODUCER_EPOCH)


@inlined
def base_sequence(data: Any, at: Any) -> Any:
    """Return the producer's first sequence number."""
    return np.int64(b.NO_SEQUENCE) if is_older(data, at) else be32(data, at + BASE_SEQUENCE)


@inlined
def checksum_of(data: Any, at: Any) -> Any:
    """Return the checksum in the header."""
    return be32(data, at + (ms.CRC if is_older(data, at) else CRC)) & np.int64(0xFFFFFFFF)


def magics(attributes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the magic of batches, from the results of `attributes_of`."""
    return NEWEST_MAGIC - (attributes >> OLDER_SHIFT)


TIMESTAMP_TYPES = ("create", "log_append", "none")


def timestamp_types(attributes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the types of their records' times, as indexes of `TIMESTAMP_TYPES`."""
    return np.where(magics(attributes) == 0, 2, (attributes & TIMESTAMP_TYPE_MASK != 0).astype(np.int32))


# ------------------------------------------------------------------------------------------ whole batches


@part
def batch_at(data: Any, at: Any, end: Any) -> Any:
    """Return the size of the whole batch with a right checksum at a position, or NOT_PLAIN."""
    size = size_at(data, at, end)
    if size < 0:
        return size
    if is_older(data, at):
        return size if ms.is_plain(data, at, size) else np.int64(oc.NOT_PLAIN)
    is_right = crc32c(data, at + ATTRIBUTES, at + size) == be32(data, at + CRC) & np.int64(0xFFFFFFFF)
    return size if is_right else np.int64(oc.NOT_PLAIN)


@part
def next_batch_at(scan_state: a.ScanState, data: Any, at: Any, end: Any) -> Any:
    """Do what `batch_at` does, and check the next batch too: two checksums at once take little longer than one."""
    if at == scan_state.checked:
        return scan_state.checked_size
    size = size_at(data, at, end)
    if size < 0 or scan_state.is_read_again:
        return size
    behind = at + size
    next_size = size_at(data, behind, end)
    if next_size < 0 or is_older(data, at) or is_older(data, behind):
        return batch_at(data, at, end)
    crc, next_crc = _INITIAL, _INITIAL
    i, j = at + ATTRIBUTES, behind + ATTRIBUTES
    for _ in range((min(size, next_size) - ATTRIBUTES) // 8):
        crc = crc32c_word(crc, load64(data, i))
        next_crc = crc32c_word(next_crc, load64(data, j))
        i += 8
        j += 8
    crc = _crc32c_on(crc, data, i, behind)
    next_crc = _crc32c_on(next_crc, data, j, behind + next_size)
    if next_crc == be32(data, behind + CRC) & np.int64(0xFFFFFFFF):
        scan_state.checked = behind
        scan_state.checked_size = next_size
    return size if crc == be32(data, at + CRC) & np.int64(0xFFFFFFFF) else np.int64(oc.NOT_PLAIN)


# ----------------------------------------------------------------------------------------------- records


@inlined
def records_begin(data: Any, at: Any) -> Any:
    """Return where the records of an uncompressed batch begin; for an older message this is the message itself."""
    return at if is_older(data, at) else at + HEADER_SIZE


@part
def compressed_at(data: Any, at: Any, end: Any) -> Any:
    """Return where the compressed records of a batch begin that ends at ``end``, or NOT_PLAIN."""
    return ms.compressed_at(data, at, end) if is_older(data, at) else at + HEADER_SIZE


@part
def count_of(source: Any, start: Any, end: Any, data: Any, at: Any) -> Any:
    """Return how many records the batch at ``at`` declares; NOT_PLAIN if so many do not fit.

    Args:
        source, start, end: its records, decompressed.
    """
    count = ms.count_of(source, start, end) if is_older(data, at) else be32(data, at + RECORDS_COUNT)
    return count if LEAST_RECORD_SIZE * count <= end - start else np.int64(oc.NOT_PLAIN)


@part
def records_of(
    source: Any, start: Any, end: Any, count: Any, data: Any, at: Any, staged: Table[a.Staged], first: Any
) -> Any:
    """Note the positions of the records of the batch at ``at`` in ``staged`` from ``first`` on.

    Args:
        source, start, end: its records, decompressed.
        count: see `count_of`.

    Returns:
        The number of records, or NOT_PLAIN.
    """
    if is_older(data, at):
        return ms.messages_at(source, start, end, count, data, at, staged, first)
    base, delta = be64(data, at), be32(data, at + LAST_OFFSET_DELTA)
    return _records_at(source, start, end, count, base, delta, staged, first)


@inlined
def base_offset(data: Any, at: Any, staged: Table[a.Staged], first: Any) -> Any:
    """Return the base offset of a batch whose records are staged; for an older message it is the first record's."""
    return staged[U(first)].offset if is_older(data, at) else be64(data, at)


@part
def _records_at(
    data: Any,
    at: Any,
    end: Any,
    count: Any,
    base_offset: Any,
    last_offset_delta: Any,
    staged: Table[a.Staged],
    first: Any,
) -> Any:
    """Do what `records_of` does for magic 2, with values from its header."""
    if count < 0 or count > len(staged) - first:
        return np.int64(oc.NOT_PLAIN)
    previous = np.int64(-1)
    for number in range(first, first + count):
        i = U(number)
        staged[i].record_at = at
        size, at = varint(data, at, end)
        if at < 0 or size < 1 or size > end - at:
            return np.int64(oc.NOT_PLAIN)
        record_end = at + size
        staged[i].timestamp_delta, at = varlong(data, at + 1, record_end)
        if at < 0:
            return np.int64(oc.NOT_PLAIN)
        offset_delta, at = varint(data, at, record_end)
        if at < 0 or offset_delta <= previous or offset_delta > last_offset_delta:
            return np.int64(oc.NOT_PLAIN)
        previous = offset_delta
        key_size, at = varint(data, at, record_end)
        if at < 0 or key_size < 2 or key_size > record_end - at:
            return np.int64(oc.NOT_PLAIN)
        staged[i].key_at = at
        staged[i].key_size = key_size
        value_size, at = varint(data, at + key_size, record_end)
        if at < 0 or value_size < -1 or value_size > record_end - at:
            return np.int64(oc.NOT_PLAIN)
        staged[i].value_at = at
        staged[i].value_size = value_size
        at += max(value_size, 0)
        if at + 1 != record_end or data[U(at)] != 0:  # no headers
            return np.int64(oc.NOT_PLAIN)
        at = record_end
        staged[i].offset = base_offset + offset_delta
    return count if at == end else np.int64(oc.NOT_PLAIN)


@inlined
def base_time(data: Any, at: Any) -> Any:
    """Return the time that deltas are added to, and whether they are; deltas of an older message are times."""
    if is_older(data, at):
        return np.int64(0), True
    if be16(data, at + ATTRIBUTES) & TIMESTAMP_TYPE_MASK:
        return be64(data, at + MAX_TIMESTAMP), False
    return be64(data, at + BASE_TIMESTAMP), True


@inlined
def time_at(data: Any, at: Any, delta: Any) -> Any:
    """Return when a record of the batch was written; the sum wraps around (`log_format.record.as_int64`)."""
    base, is_counted = base_time(data, at)
    return base + delta if is_counted else base


@inlined
def has_time(time: Any) -> Any:
    """Return whether a record has a time (`log_format.batch.time_of`)."""
    return time != NO_TIME
