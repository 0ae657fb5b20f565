"""The compiled half of the generator: batches of magic 2 from ready bytes, and what a coordinator must make of them.

Keys and values are copied from `Content`, with offsets, generations and timestamps written over them. `fill` appends
whole batches to a buffer until that is full; `wrap` puts compressed records behind the headers of such batches.

The expected answer is kept while writing, by a rule of its own: the record that *decided* a key is its last plain
value, tombstone or applied transactional value, and a transaction that commits applies those of its values that are
behind the record that decided.

Over 400 lines: one kernel, `fill`, the functions it is made of, and the columns of the arrays they share.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from benchmarks.generator_bytes import (
    ATTRIBUTES_POSITION,
    HEADER_SIZE,
    NO_VALUE,
    ONE,
    ZERO,
    Array,
    U,
    copy,
    kernel,
    part,
    put16,
    put32,
    put64,
    put_crc,
    put_record,
    varint_size,
)

FIRST_TIMESTAMP_POSITION = 27
LEAST_RECORD = 7
MESSAGE_OVERHEAD = 34
"""Bytes of a message of magic 1 without key and value."""
NEVER = 1 << 62

TRANSACTIONAL, CONTROL = np.int64(0x10), np.int64(0x20)
MAX_STEP = np.int64(200)
"""A commit is at most so far beyond the one before."""
MAX_PAUSE_MS = np.int64(10)
UNIT = np.int64(1 << 31)

PRODUCERS = np.int64(32)
NO_PRODUCER = PRODUCERS
"""Row of `State.producers` for batches without one."""
MARKER_WITHIN = np.int64(60)
"""Batches between the first batch of a transaction and its marker, at most."""
MAX_EPOCH = 32766
"""Then a producer goes on with a new id, as Kafka has it."""
MARKER = np.frombuffer(bytes.fromhex("20 000000 08 0000 0000 0c 0000 00000000 00"), np.uint8)
"""Record of a marker: key of version 0 and type ABORT, value of version 0 and coordinator epoch 0."""
MARKER_TYPE_AT = 8

(OFFSET, NOW, BATCHES, BYTES, COMMITS, TOMBSTONES, GROUP_RECORDS, TRANSACTIONAL_BATCHES,
 TRANSACTIONAL_RECORDS, COMMITTED, ABORTED, NEXT_MARKER, NEWER_RECORDS, COUNTS) = range(14)  # fmt: skip
"""Places in `State.counts`."""
START, END, TIMESTAMP_AT, VALUE_COLUMNS = range(4)
"""Columns of `Content.values`."""
KEY_START, KEY_END, VALUE_START, VALUE_END, GENERATION_AT, STATE_TIMESTAMP_AT, GROUP_COLUMNS = range(7)
"""Columns of `Content.groups`."""
(
    NEWER_KEY, NEWER_KEY_END, NEWER_VALUE, NEWER_VALUE_END, EPOCH_AT, PREVIOUS_EPOCH_AT, LIFE_AT, IS_LEAVING,
    NEWER_COLUMNS,
) = range(9)  # fmt: skip
"""Columns of `Content.newer`: the places of epochs in the value, −1 for none; where eight digits of the key tell a
life of the member, and whether it is of the life before."""
ROW, ROUND, ROUND_COLUMNS = range(3)
"""Columns of `State.rounds`: the next of a group's records, and how often all of them were written."""
ROUNDS_OF_LIFE = 64
"""After so many a member leaves and another comes."""
NEWEST, HELD, DECIDED, LATEST, KEY_COLUMNS = range(5)
"""Columns of `State.keys`: the newest offset; what the coordinator holds, −1 for nothing; the record that made it so;
the newest record's offset, transactions ignored, −1 after a tombstone."""
ID, EPOCH, MARKER_AT, PENDING, PRODUCER_COLUMNS = range(5)
"""Columns of `State.producers`: of an open transaction, the batch number to end it at, and how many values it has."""
PENDING_KEY, PENDING_OFFSET, PENDING_RECORD, PENDING_COLUMNS = range(4)
"""Columns of `State.pending`."""


class Content(NamedTuple):
    """Bytes to copy, and where they are. Tables of few arrays: numba takes long over calls with many.

    Attributes:
        data: all of them, joined.
        keys: where the key of each group, topic and partition begins, and where the last one ends.
        values: a row for each group and topic; the committed offset is at byte 2 of the value.
        groups: a row for each group: its group metadata.
        group_size, topic_size: keys of a group, of a topic of a group.
        newer: a row for each record of the newer kinds of groups.
        newer_begins: where the rows of each such group begin, and where the last ones end.
        newer_of: group → the newer group that is meant where one is drawn; empty where there are none.
        is_newer: of each group.
    """

    data: Array
    keys: Array
    values: Array
    groups: Array
    group_size: int
    topic_size: int
    newer: Array
    newer_begins: Array
    newer_of: Array
    is_newer: Array


class Chances(NamedTuple):
    """What is drawn.

    Attributes:
        groups: 65536 group numbers, each as often as the group is busy.
        lengths: 4096 numbers of records of a batch.
        group_metadata, tombstones, transactions: shares of the batches.
        aborts: share of the transactions.
        newer: share of the batches that are of newer groups.
    """

    groups: Array
    lengths: Array
    group_metadata: float
    tombstones: float
    transactions: float
    aborts: float
    newer: float


class State(NamedTuple):
    """What changes while a log is written.

    Attributes:
        random: one number, never 0.
        counts: one number each.
        keys: a row for each group, topic and partition.
        generations: of the groups.
        producers: a row for each.
        pending: a table for each producer: the values of its open transaction.
        rounds: a row for each newer group.
    """

    random: Array
    counts: Array
    keys: Array
    generations: Array
    producers: Array
    pending: Array
    rounds: Array


# -------------------------------------------------------------------------------------------- chance


@part
def _below(random: Any, bound: Any) -> Any:
    """A number from 0 on (xorshift64)."""
    x = random[0]
    x ^= x << U(13)
    x ^= x >> U(7)
    x ^= x << U(17)
    random[0] = x
    return np.int64(x >> U(33)) * bound >> 31


@part
def _unit(random: Any) -> Any:
    return _below(random, UNIT) / UNIT


@part
def _end_batch(state: Any, out: Any, start: Any, end: Any, count: Any, attributes: Any, producer: Any) -> None:
    """The header of a batch whose records stand behind it."""
    counts, row = state.counts, state.producers[producer]
    put64(out, start, counts[OFFSET])
    put32(out, start + 8, end - start - 12)
    put32(out, start + 12, ZERO)  # partition leader epoch
    out[start + 16] = 2  # magic
    put16(out, start + 21, attributes)
    put32(out, start + 23, count - 1)
    put64(out, start + 27, counts[NOW])
    put64(out, start + 35, counts[NOW])
    put64(out, start + 43, row[ID])
    put16(out, start + 51, row[EPOCH])
    put32(out, start + 53, NO_VALUE if attributes & CONTROL else ZERO)  # a coordinator's base sequence is 0
    put32(out, start + 57, count)
    put_crc(out, start, end)
    counts[OFFSET] += count
    counts[BATCHES] += 1
    counts[BYTES] += end - start


# ------------------------------------------------------------------------------------------- batches


@part
def _put_group(content: Any, state: Any, out: Any, start: Any, group: Any) -> Any:
    """One group metadata record: a generation more."""
    row = content.groups[group]
    end = put_record(
        out, start + HEADER_SIZE, ZERO, content.data, row[KEY_START], row[KEY_END], row[VALUE_START], row[VALUE_END]
    )
    value = end - (row[VALUE_END] - row[VALUE_START])
    state.generations[group] += 1
    put32(out, value + row[GENERATION_AT], state.generations[group])
    put64(out, value + row[STATE_TIMESTAMP_AT], state.counts[NOW])
    _end_batch(state, out, start, end + 1, ONE, ZERO, NO_PRODUCER)
    state.counts[GROUP_RECORDS] += 1
    return end + 1


@part
def _put_newer(content: Any, state: Any, out: Any, start: Any, group: Any, length: Any) -> Any:
    """The next records of a newer group, which writes all it has round after round with a higher epoch."""
    rounds = state.rounds[group]
    at = start + HEADER_SIZE
    first, behind = content.newer_begins[group], content.newer_begins[group + 1]
    count = ZERO
    while count < length or content.newer[first + rounds[ROW], IS_LEAVING]:  # who leaves does so in one batch
        row = content.newer[first + rounds[ROW]]
        life = rounds[ROUND] // ROUNDS_OF_LIFE
        if not row[IS_LEAVING] or (life > 0 and rounds[ROUND] % ROUNDS_OF_LIFE == 0):
            end = put_record(
                out, at, count, content.data, row[NEWER_KEY], row[NEWER_KEY_END], row[NEWER_VALUE],
                row[NEWER_VALUE_END],
            )  # fmt: skip
            size = row[NEWER_VALUE_END] - row[NEWER_VALUE]
            value = end - max(size, ZERO)
            if row[EPOCH_AT] >= 0:
                put32(out, value + row[EPOCH_AT], rounds[ROUND] + 1)
            if row[PREVIOUS_EPOCH_AT] >= 0:
                put32(out, value + row[PREVIOUS_EPOCH_AT], rounds[ROUND])
            if row[LIFE_AT] >= 0:
                key = value - varint_size(size) - (row[NEWER_KEY_END] - row[NEWER_KEY])
                for i in range(8):
                    out[key + row[LIFE_AT] + i] = 97 + (life - row[IS_LEAVING] >> 28 - 4 * i & 15)
            at = end + 1
            count += 1
        rounds[ROW] += 1
        if first + rounds[ROW] == behind:
            rounds[ROW] = 0
            rounds[ROUND] += 1
    state.counts[NEWER_RECORDS] += count
    _end_batch(state, out, start, at, count, ZERO, NO_PRODUCER)
    return at


@part
def _put_tombstone(content: Any, state: Any, out: Any, at: Any, delta: Any, key: Any) -> Any:
    at = put_record(out, at, delta, content.data, content.keys[key], content.keys[key + 1], ZERO, NO_VALUE)
    row = state.keys[key]
    row[HELD] = row[LATEST] = NO_VALUE
    row[DECIDED] = state.counts[OFFSET] + delta
    state.counts[TOMBSTONES] += 1
    return at + 1


@part
def _put_commit(content: Any, state: Any, out: Any, at: Any, delta: Any, key: Any, producer: Any) -> Any:
    template = content.values[key // content.topic_size]
    end = put_record(
        out, at, delta, content.data, content.keys[key], content.keys[key + 1], template[START], template[END]
    )
    value = end - (template[END] - template[START])
    row = state.keys[key]
    row[NEWEST] += 1 + _below(state.random, MAX_STEP)
    row[LATEST] = row[NEWEST]
    put64(out, value + 2, row[NEWEST])
    put64(out, value + template[TIMESTAMP_AT], state.counts[NOW])
    record = state.counts[OFFSET] + delta
    if producer == NO_PRODUCER:
        row[HELD] = row[NEWEST]
        row[DECIDED] = record
    else:
        pending = state.pending[producer, state.producers[producer, PENDING]]
        pending[PENDING_KEY], pending[PENDING_OFFSET], pending[PENDING_RECORD] = key, row[NEWEST], record
        state.producers[producer, PENDING] += 1
    state.counts[COMMITS] += 1
    return end + 1


@part
def _begin_transaction(state: Any) -> Any:
    """A producer, whose transaction is open from now on."""
    producer = _below(state.random, PRODUCERS)
    row, counts = state.producers[producer], state.counts
    if row[MARKER_AT] == NEVER:
        row[MARKER_AT] = counts[BATCHES] + 2 + _below(state.random, MARKER_WITHIN - 2)
        counts[NEXT_MARKER] = min(counts[NEXT_MARKER], row[MARKER_AT])
    counts[TRANSACTIONAL_BATCHES] += 1
    return producer


@part
def _put_batch(content: Any, chances: Any, state: Any, out: Any, start: Any) -> Any:
    """A batch by chance: group metadata, tombstones, plain or transactional commits."""
    counts = state.counts
    counts[NOW] += _below(state.random, MAX_PAUSE_MS)
    group = chances.groups[_below(state.random, len(chances.groups))]
    kind = _unit(state.random)
    if kind < chances.group_metadata and not content.is_newer[group]:
        return _put_group(content, state, out, start, group)
    length = chances.lengths[_below(state.random, len(chances.lengths))]
    if len(content.newer_of) > 0 and _unit(state.random) < chances.newer:
        return _put_newer(content, state, out, start, content.newer_of[group], length)
    place = _below(state.random, content.group_size)
    is_tombstones = chances.group_metadata <= kind < chances.group_metadata + chances.tombstones
    producer = NO_PRODUCER
    if not is_tombstones and kind >= 1.0 - chances.transactions:
        producer = _begin_transaction(state)
    at = start + HEADER_SIZE
    for i in range(length):
        key = group * content.group_size + (place + i) % content.group_size
        if is_tombstones:
            at = _put_tombstone(content, state, out, at, i, key)
        else:
            at = _put_commit(content, state, out, at, i, key, producer)
    _end_batch(state, out, start, at, length, ZERO if producer == NO_PRODUCER else TRANSACTIONAL, producer)
    if producer != NO_PRODUCER:
        counts[TRANSACTIONAL_RECORDS] += length
    return at


# ------------------------------------------------------------------------------------------- markers


@part
def _put_marker(chances: Any, state: Any, out: Any, start: Any, producer: Any) -> Any:
    """The end of a transaction, with the producer's epoch one higher than in its data (KIP-890)."""
    commits = _unit(state.random) >= chances.aborts
    records = start + HEADER_SIZE
    end = copy(out, records, MARKER, ZERO, len(MARKER))
    out[records + MARKER_TYPE_AT] = 1 if commits else 0
    row = state.producers[producer]
    row[EPOCH] += 1
    _end_batch(state, out, start, end, ONE, TRANSACTIONAL | CONTROL, producer)
    state.counts[COMMITTED if commits else ABORTED] += 1
    if commits:
        _apply(state, state.pending[producer, : row[PENDING]])
    row[PENDING] = 0
    row[MARKER_AT] = NEVER
    state.counts[NEXT_MARKER] = state.producers[_next_to_end(state), MARKER_AT]
    if row[EPOCH] == MAX_EPOCH:
        row[ID] += PRODUCERS
        row[EPOCH] = 0
    return end


@part
def _apply(state: Any, pending: Any) -> None:
    """The values of a transaction that committed."""
    for i in range(len(pending)):
        row = state.keys[pending[i, PENDING_KEY]]
        if pending[i, PENDING_RECORD] > row[DECIDED]:
            row[DECIDED] = pending[i, PENDING_RECORD]
            row[HELD] = pending[i, PENDING_OFFSET]


@part
def _next_to_end(state: Any) -> Any:
    """The producer whose transaction ends next; any, if none is open."""
    found = 0
    for producer in range(PRODUCERS):
        if state.producers[producer, MARKER_AT] < state.producers[found, MARKER_AT]:
            found = producer
    return found


# ------------------------------------------------------------------------------------------- kernels


@kernel
def fill(content: Any, chances: Any, state: Any, out: Any, starts: Any, room: Any, target: Any) -> Any:
    """Append batches to an empty buffer, until ``target`` bytes are written in all and every transaction has ended.

    Args:
        starts: gets where each batch begins, and where the last one ends.
        room: bytes that any batch fits in.

    Returns: how many batches; 0 when the log is complete.
    """
    counts = state.counts
    at = n = ZERO
    while n + 1 < len(starts) and at + room <= len(out):
        is_complete = counts[BYTES] >= target
        if is_complete and counts[NEXT_MARKER] == NEVER:
            break
        starts[n] = at
        n += 1
        if is_complete or counts[NEXT_MARKER] <= counts[BATCHES]:
            at = _put_marker(chances, state, out, at, _next_to_end(state))
        else:
            at = _put_batch(content, chances, state, out, at)
    starts[n] = at
    return n


@kernel
def wrap(plain: Any, starts: Any, packed: Any, packed_starts: Any, codec: Any, out: Any, out_starts: Any) -> None:
    """Put compressed records behind the headers of batches; control batches stay as they are.

    Args:
        starts, packed_starts: where the batches and their compressed records begin, and where the last ones end.
        codec: number for the attributes.
        out_starts: gets where the new batches begin, and where the last one ends.
    """
    at = ZERO
    for i in range(len(starts) - 1):
        out_starts[i] = at
        records = copy(out, at, plain, starts[i], starts[i] + HEADER_SIZE)
        end = copy(out, records, packed, packed_starts[i], packed_starts[i + 1])
        if not out[at + ATTRIBUTES_POSITION + 1] & CONTROL:
            put32(out, at + 8, end - at - 12)
            out[at + ATTRIBUTES_POSITION + 1] |= codec
            put_crc(out, at, end)
        at = end
    out_starts[len(starts) - 1] = at


# ------------------------------------------------------------------------------------ older messages
