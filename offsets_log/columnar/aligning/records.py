"""Note the records of a topic that users write to: when each was written, a hash of what it says, where it came from.

Keys and values may be anything or null, and records may have headers. Those whose names begin with ``x-`` are no part
of what a record says: tools that copy records put them there. One of them may tell the record's offset in another
cluster, and one its partition.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.jit.compiled import U, inlined, kernel, part
from offsets_log.columnar.jit.kinds import Bytes, LongRows, Number
from offsets_log.columnar.jit.records import Long, Record, Table
from offsets_log.columnar.wire import batches as bt
from offsets_log.columnar.wire import decompressed as dp
from offsets_log.columnar.wire.primitives import MULTIPLIER, OTHER_MULTIPLIER, be32, be64, hash_bytes, varint, varlong


class Noted(Record):
    """A record that is noted."""

    offset: Long
    time: Long
    hash: Long
    flags: Long
    source_offset: Long
    source_partition: Long


IS_CONTROL = 1
IS_TRANSACTIONAL = 2
IS_APPEND_TIME = 4
"""Bits of the flags."""


class ReadingState(Record):
    """The state of a reading."""

    at: Long
    count: Long  # rows that are noted
    least: Long  # records below this offset are passed over
    since: Long  # batches are passed over up to the first with a record of this time or later
    last_offset: Long
    window_count: Long  # batches in the window's table
    window_next: Long
    needed: Long  # rows for one batch


class Header(Record):
    """A header whose number is asked for."""

    name_at: Long
    name_size: Long
    form: Long


class Asked(NamedTuple):
    """What is asked of records.

    Attributes:
        seed: of the hashes.
        names: of the headers.
        headers: whose numbers are asked for: the offset's, then the partition's.
    """

    seed: Number
    names: Bytes
    headers: Table[Header]


LITTLE_ENDIAN, BIG_ENDIAN, TEXT, ANY_FORM = range(4)

X, DASH = ord("x"), ord("-")
ZERO, NINE = ord("0"), ord("9")
MOST_DIGITS = 18
LEAST_SIZE = 7
"""Of a record in bytes."""

_NULL, _HEADERS = U(0xA5A5A5A5), U(0x5BD1E995)


@inlined
def _mixed(value: Any, other: Any) -> Any:
    value = (value ^ other) * MULTIPLIER
    return value ^ value >> U(29)


@part
def _hashed(data: Any, at: Any, size: Any, seed: Any) -> Any:
    """Return a hash of bytes, or that of null for a negative size."""
    return U(seed) ^ _NULL if size < 0 else U(hash_bytes(data, at, size, seed))


@part
def _digits(data: Any, at: Any, size: Any) -> Any:
    """Return a number in decimal digits; −1 if anything else stands there."""
    if size < 1 or size > MOST_DIGITS:
        return np.int64(-1)
    number = np.int64(0)
    for i in range(at, at + size):
        byte = np.int64(data[U(i)])
        if byte < ZERO or byte > NINE:
            return np.int64(-1)
        number = number * 10 + byte - ZERO
    return number


@part
def _number(data: Any, at: Any, size: Any, form: Any) -> Any:
    """Return the number in a header's value; −1 if it holds none, or a negative one."""
    if form in (TEXT, ANY_FORM):
        number = _digits(data, at, size)
        if number >= 0 or form == TEXT:
            return number
    if size != 4 and size != 8:
        return np.int64(-1)
    value = U(0)
    for i in range(size):
        place = at + i if form == BIG_ENDIAN else at + size - 1 - i
        value = value << U(8) | U(data[U(place)])
    number = np.int64(value)
    return number if number >= 0 and (size == 8 or number < 1 << 31) else np.int64(-1)


@part
def _is_named(data: Any, at: Any, size: Any, asked: Asked, i: Any) -> Any:
    if size != asked.headers[i].name_size:
        return False
    begin = asked.headers[i].name_at
    for j in range(size):  # noqa: SIM110 - a kernel
        if data[U(at + j)] != asked.names[U(begin + j)]:
            return False
    return True


@part
def _headers(data: Any, at: Any, end: Any, asked: Asked, row: Any) -> Any:
    """Hash the headers up to the end of a record, and note the numbers asked for; return NOT_PLAIN if they do not fit.

    Their hash is added to the row's.
    """
    count, at = varint(data, at, end)
    if at < 0 or count < 0 or count > end - at:
        return np.int64(oc.NOT_PLAIN)
    for _ in range(count):
        size, at = varint(data, at, end)
        if at < 0 or size < 0 or size > end - at:
            return np.int64(oc.NOT_PLAIN)
        key = at
        value_size, at = varint(data, at + size, end)
        if at < 0 or value_size < -1 or value_size > end - at:
            return np.int64(oc.NOT_PLAIN)
        for i in range(len(asked.headers)):
            if value_size > 0 and _is_named(data, key, size, asked, i):
                number = _number(data, at, value_size, asked.headers[i].form)
                if i == 0:
                    row.source_offset = number
                else:
                    row.source_partition = number
        if size < 2 or data[U(key)] != X or data[U(key + 1)] != DASH:
            found = _mixed(_HEADERS, _hashed(data, key, size, np.int64(1)))
            row.hash = np.int64(_mixed(U(row.hash) ^ found, _hashed(data, at, value_size, np.int64(2))))
        at += max(value_size, 0)
    return np.int64(oc.FINISHED) if at == end else np.int64(oc.NOT_PLAIN)


@part
def _record(data: Any, at: Any, end: Any, least: Any, most: Any, asked: Asked, row: Any) -> Any:
    """Note the record that ``data[at:end]`` is, behind its length; its offset and time are deltas."""
    row.time, at = varlong(data, at + 1, end)
    if at < 0:
        return np.int64(oc.NOT_PLAIN)
    delta, at = varint(data, at, end)
    if at < 0 or delta < least or delta > most:
        return np.int64(oc.NOT_PLAIN)
    row.offset = delta
    size, at = varint(data, at, end)
    if at < 0 or size < -1 or size > end - at:
        return np.int64(oc.NOT_PLAIN)
    key = _hashed(data, at, size, asked.seed)
    size, at = varint(data, at + max(size, 0), end)
    if at < 0 or size < -1 or size > end - at:
        return np.int64(oc.NOT_PLAIN)
    row.hash = np.int64(_mixed(key * OTHER_MULTIPLIER, _hashed(data, at, size, asked.seed + 1)))
    row.source_offset = -1
    row.source_partition = -1
    return _headers(data, at + max(size, 0), end, asked, row)


@part
def _batch(data: Any, at: Any, source: Any, start: Any, end: Any, asked: Asked, rows: Any, first: Any) -> Any:
    """Note the records of the batch at ``at``, which are ``source[start:end]``; return how many, or NOT_PLAIN."""
    count, base, most = be32(data, at + bt.RECORDS_COUNT), be64(data, at), be32(data, at + bt.LAST_OFFSET_DELTA)
    attributes = bt.attributes_of(data, at)
    flags = np.int64(0)
    if attributes & bt.TRANSACTIONAL_MASK:
        flags |= IS_TRANSACTIONAL
    if attributes & bt.TIMESTAMP_TYPE_MASK:
        flags |= IS_APPEND_TIME
    place, least = start, np.int64(0)
    for number in range(first, first + count):
        row = rows[U(number)]
        size, place = varint(source, place, end)
        if place < 0 or size < LEAST_SIZE - 1 or size > end - place:
            return np.int64(oc.NOT_PLAIN)
        if _record(source, place, place + size, least, most, asked, row) < 0:
            return np.int64(oc.NOT_PLAIN)
        place += size
        least = row.offset + 1
        row.offset += base
        row.time = bt.time_at(data, at, row.time)
        row.flags = flags
    return count if place == end else np.int64(oc.NOT_PLAIN)


@inlined
def _control(state: Any, data: Any, at: Any, rows: Any) -> None:
    row = rows[U(state.count)]
    row.offset = be64(data, at)
    row.time = bt.max_timestamp(data, at)
    row.flags = IS_CONTROL | IS_TRANSACTIONAL
    row.hash = row.source_offset = row.source_partition = -1
    state.count += 1


@inlined
def _is_passed_over(state: Any, data: Any, at: Any) -> Any:
    """Whether a batch is before all that is asked for."""
    if bt.last_offset(data, at) < state.least:
        return True
    if bt.is_older(data, at) or bt.attributes_of(data, at) & bt.TIMESTAMP_TYPE_MASK:
        return False
    return be64(data, at + bt.MAX_TIMESTAMP) < state.since


@kernel
def note(
    state: ReadingState, data: Bytes, window: Bytes, table: LongRows, asked: Asked, rows: Table[Noted],
) -> int:  # fmt: skip
    """Note the records of a segment's batches from a position on.

    Returns:
        FINISHED at the segment's end; FULL where no room is left for the next batch; NEEDS_RECORDS if it never is;
        NEEDS_WINDOW; NOT_PLAIN at a batch that only the slow path reads.
    """
    while state.at < len(data):
        at = state.at
        size = bt.size_at(data, at, np.int64(len(data)))
        if size < 0 or bt.last_offset(data, at) < be64(data, at) or be64(data, at) <= state.last_offset:
            return oc.NOT_PLAIN
        if not _is_passed_over(state, data, at):
            outcome = _take(state, data, at, size, window, table, asked, rows)
            if outcome != oc.FINISHED:
                return int(outcome)
            state.since = bt.INT64_MIN
        state.last_offset = bt.last_offset(data, at)
        state.at = at + size
    return oc.FINISHED


@part
def _take(state: Any, data: Any, at: Any, size: Any, window: Any, table: Any, asked: Asked, rows: Any) -> Any:
    """Note one batch; return FINISHED or why it is not noted."""
    if bt.is_older(data, at) or bt.batch_at(data, at, np.int64(len(data))) < 0:
        return np.int64(oc.NOT_PLAIN)
    if bt.attributes_of(data, at) & bt.CONTROL_MASK:
        if state.count >= len(rows):
            return np.int64(oc.FULL)
        _control(state, data, at, rows)
        return np.int64(oc.FINISHED)
    count = be32(data, at + bt.RECORDS_COUNT)
    if count == 0:
        return np.int64(oc.FINISHED)
    source, start, end = data, at + bt.HEADER_SIZE, at + size
    if bt.attributes_of(data, at) & bt.CODEC_MASK:
        place = dp.find_in_window(state, table, at)
        if place < 0:
            return np.int64(oc.NEEDS_WINDOW)
        source, start, end = window, table[place, dp.BEGIN], table[place, dp.END]
    if end < 0 or count < 0 or count * LEAST_SIZE > end - start:
        return np.int64(oc.NOT_PLAIN)
    if count > len(rows) - state.count:
        state.needed = count
        return np.int64(oc.NEEDS_RECORDS if state.count == 0 else oc.FULL)
    found = _batch(data, at, source, start, end, asked, rows, state.count)
    if found < 0:
        return np.int64(oc.NOT_PLAIN)
    state.count += count
    return np.int64(oc.FINISHED)
