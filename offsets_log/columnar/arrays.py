"""The arrays a replay lives in (`state`): what kernels know of keys, groups, producers and open transactions.

Everything grows with distinct keys, never with records. Where a value is needed again it is not kept but found
again: a row knows the batch it stands in and its place among the batch's records.

Kernels take all of them as one parameter, `Arrays`, and what a thread reads with as another, `Buffers`.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
import numpy.typing as npt

from offsets_log.columnar.jit.kinds import LongRows, Longs, Number
from offsets_log.columnar.jit.records import Long, Record, Table
from offsets_log.log_format.compression import CODEC_MASK
from offsets_log.messages import registry

Int64s = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

NOTHING = -1
NEVER = -(1 << 62)
"""Instead of a record offset: hostile messages of magic 0 and 1 have negative ones."""
SLOW_PATH = -2
"""Instead of a batch: the value was read by `log_format`; the index is its place in a list."""

SIZE_BYTES = 4
IS_GROUP, IS_NEWER = -1, -2
"""Instead of a `Row.target`: a type 2 key; a key of the newer kinds of groups."""


class Row(Record):
    """What is known of a raw key: a cache line."""

    key_at: Long  # in the arena; the size stands in the `SIZE_BYTES` before
    target: Long  # the row of the same GroupTopicPartition, IS_GROUP or IS_NEWER
    group: Long
    record_offset: Long  # of the committed offset (of the slow path its number), NEVER without one
    applied_offset: Long  # where it took effect
    batch: Long  # where its batch begins in the log, or SLOW_PATH
    index: Long  # among the batch's records
    tombstone_offset: Long  # of the last one that ends committed values
    # Of a key of the newer kinds of groups (`folds.newer`), whose batch and index are of its last record:
    last_offset: Annotated[Long, "record_offset"]
    member: Annotated[Long, "applied_offset"]  # the row of the member's own key
    is_removed: Annotated[Long, "tombstone_offset"]  # whether the last record is a tombstone


class Group(Record):
    """What is known of a group, or of another name."""

    name_at: Long  # in the arena, as `Row.key_at`
    metadata_offset: Long  # of the last type 2 record, NEVER without one
    metadata_batch: Long
    metadata_index: Long
    is_tombstone: Long  # the last type 2 record
    value_offset: Long  # of the last offset value, whatever became of it
    newer_kind: Long  # of the records of a newer kind, 0 without one
    newer_since: Long  # offset of the first
    newer_last: Long  # of the last
    newer_flags: Long
    anchor_offset: Long  # of a value that made the group, NEVER without one
    anchor_batch: Long
    anchor_index: Long
    value_before: Long  # offset of a value between the type 2 record and the first of a newer kind, NEVER without
    first_offset: Long  # of the first record that names it, NEVER while none is known
    active_ms: Long  # when it last wrote, NEVER while no time is known or asked for
    is_named: Annotated[Long, "newer_kind"]  # of a topic id, where one asks who holds what (`folds.holding`)


KEY_TYPES = 3
"""Types 0, 1 and 2 are known to all kernels; the others, of the newer kinds of groups, to those whose scan state has
programs for them."""
RECORD_TYPES = max(registry.RECORD_TYPES) + 1
COMMIT_TYPES = 2  # record types below it commit offsets
VERSIONS = 8
NO_VERSION = VERSIONS
"""Instead of a value version: a tombstone."""
CODEC_IDS = CODEC_MASK + 1
MAGICS = 3
FORMATS = MAGICS * CODEC_IDS
"""Of batches: by how much older their magic is, and by the codec's id."""
NOTES = 8
MOST_FRAMES = 8
MAX_DISTINCT = 512
MOST_CODE = 1 << 12
"""Numbers of all programs together; those of a release are a third of it."""
BLOCK = 64
"""Records whose keys are looked up together."""
ALONE, WITH_OTHERS = 1, 2
"""Whether all rules would do the same with what was read so far, or states of other rules read along."""


class ScanState(Record):
    """What changes while a log is read, what a scan is told, and programs with their notes."""

    at: Long  # where the scan goes on in the segment
    last_offset: Long  # of the last batch accepted
    end_offset: Long
    checked: Long  # where a batch begins that is known to be whole and right
    checked_size: Long
    staged: Long  # records read and not yet replayed
    flushed: Long  # of these, replayed
    needed: Long  # records of the batch for which there was no room
    in_window: Long  # whether the staged records stand in decompressed bytes
    window_next: Long  # the next batch of the window
    window_count: Long  # batches in it
    row_count: Long
    arena_used: Long
    group_count: Long
    producer_count: Long
    opened: Long
    open_count: Long
    free: Long  # first free open record
    cancelled: Long
    named: Long
    owned: Long
    told: Long
    kept: Long
    batches: Long
    records: Long
    first_offset: Long
    missing: Long
    gaps: Long  # places where missing offsets are
    resolution: Long  # how many transactions were resolved
    seed: Long
    # Where the regions of ``overflow`` begin, and their room:
    group_slots_at: Long
    producer_slots_at: Long
    owned_slots_at: Long
    producers_at: Long
    opened_at: Long
    cancelled_at: Long
    more_at: Long
    named_at: Long
    unended_at: Long
    owned_at: Long
    told_at: Long
    kept_at: Long
    group_slots_room: Long
    producer_slots_room: Long
    owned_slots_room: Long
    producers_room: Long
    opened_room: Long
    cancelled_room: Long
    more_room: Long
    named_room: Long
    unended_room: Long
    owned_room: Long
    told_room: Long
    kept_room: Long
    # What a scan is told:
    stop: Long
    segment: Long  # where the segment begins in the log
    base_offset: Long  # of the segment, NOTHING if its name tells none
    following: Long  # base offset of the segment behind it, NOTHING without one
    until_offset: Long
    until_time: Long
    rules: Long
    by_bit: Long  # whether the transactional bit tells a transaction, else a producer id does
    pause: Long  # bytes of one call
    notes_activity: Long  # whether it is asked for when groups last wrote
    is_read_again: Long  # whether batches up to the stop were found whole before, and groups replayed
    # Programs (`wire.programs`), by record type and value version, and what `primitives.walk` notes and needs:
    key_programs: Annotated[Longs, RECORD_TYPES]
    value_programs: Annotated[Longs, RECORD_TYPES, VERSIONS]
    other_programs: Annotated[Longs, RECORD_TYPES]  # of the layout that other releases write under the same version
    one_string: Annotated[
        Longs, RECORD_TYPES, VERSIONS
    ]  # of values that are numbers around one string: bytes before its length, and
    around_string: Annotated[Longs, RECORD_TYPES, VERSIONS]  # all bytes but the string's
    notes: Annotated[Longs, NOTES]
    stack: Annotated[Longs, MOST_FRAMES, 3]
    distinct_count: Long
    distinct: Annotated[Longs, MAX_DISTINCT]
    code: Annotated[Longs, MOST_CODE]
    # Of a block that is looked up, hashes of the keys and the rows that they probably have:
    hashes: Annotated[Longs, BLOCK]
    found: Annotated[Longs, BLOCK]
    # Batches that the kernel accepted, by `FORMATS`; how many there were before the first, and where it begins:
    formats: Annotated[Longs, FORMATS]
    formats_first: Annotated[Longs, FORMATS]
    formats_at: Annotated[Longs, FORMATS]
    # What is looked for on the way (`folds.inspection`): records by type, and by value version or NO_VERSION; of the
    # first of each its offset, and where its batch begins in the log:
    is_inspected: Long
    most_bytes: Long  # of a batch; a larger one is for `log_format`
    read_bytes: Long  # of all batches
    newest_ms: Long
    inspected: Annotated[Longs, RECORD_TYPES, VERSIONS + 1]
    inspected_first: Annotated[Longs, RECORD_TYPES, VERSIONS + 1]
    inspected_at: Annotated[Longs, RECORD_TYPES, VERSIONS + 1]


class Staged(Record):
    """A record that was read and not yet replayed. `batches.records_of` fills all up to ``record_at``."""

    key_at: Long  # position of its bytes
    key_size: Long
    value_at: Long  # position of its bytes
    value_size: Long  # NOTHING for a tombstone
    offset: Long
    timestamp_delta: Long  # of magic 0 and 1 the time itself
    record_at: Long  # position of its length; of magic 0 and 1 that of its batch in the segment
    kind: Long
    batch: Long  # where it begins in the log
    index: Long  # among the batch's records
    producer: Long
    topic_id_at: Long  # position of its bytes
    row: Annotated[Long, "record_at"]  # once it was replayed: of its raw key
    # Where records are looked up and not replayed (`events`, `cleaning`):
    hash: Annotated[Long, "kind"]  # of its key
    entry: Annotated[Long, "topic_id_at"]  # of its key, perhaps; NOTHING if it is not known
    offset_before: Annotated[Long, "producer"]  # the last offset before its batch

    def raw_key(self, source: Bytes) -> bytes:
        """Return its key from the bytes it stands in."""
        return source[self.key_at : self.key_at + self.key_size].tobytes()

    def raw_value(self, source: Bytes) -> bytes | None:
        """Return its value from the bytes it stands in."""
        return source[self.value_at : self.value_at + self.value_size].tobytes() if self.value_size >= 0 else None


class Arrays(NamedTuple):
    """The arrays of a replay.

    Attributes:
        slots: hash table of raw keys.
        rows: one for each raw key.
        groups: one for each group.
        arena: bytes of keys and group names, each behind its size.
        overflow: what few records touch (`overflow`): hash tables of groups and producers, open transactions, topic
            ids.
    """

    scan_state: ScanState
    slots: Longs
    rows: Table[Row]
    groups: Table[Group]
    arena: Bytes
    overflow: Longs


class Buffers(NamedTuple):
    """What a thread reads with.

    Attributes:
        staged: records of batches on their way to where they belong.
        window, table: decompressed batches, see `decompressed`.
    """

    staged: Table[Staged]
    window: Bytes
    table: LongRows


class Records(NamedTuple):
    """Records that are staged, the bytes that they stand in, and those of their segment."""

    staged: Table[Staged]
    source: Bytes
    data: Bytes


class Place(NamedTuple):
    """Where a record stands: its offset, where its batch begins in the log, or SLOW_PATH, and its index there."""

    record_offset: Number
    batch: Number
    record_index: Number


VALUE, TOMBSTONE, COMMIT, ABORT, PASSED = range(5)
"""Kinds of staged records; PASSED were taken care of otherwise."""

LEAST_KEYS = 1 << 12
CACHE_LINE = 64


def _in_cache_lines(size_bytes: int) -> Bytes:
    """Return zeros that begin with a cache line."""
    made = np.zeros(size_bytes + CACHE_LINE, np.uint8)
    begin = -made.ctypes.data % CACHE_LINE
    return made[begin : begin + size_bytes]


def new_rows(count: int, known: Table[Row] | None = None) -> Table[Row]:
    """Return rows, each in one cache line: those that are known, and empty ones behind them."""
    rows = Table(Row, _in_cache_lines(count * Row.dtype.itemsize).view(Row.dtype))
    if known is not None:
        rows.numbers[: len(known)] = known.numbers
    return rows


def new_arena(size_bytes: int) -> Bytes:
    """Return an empty arena; what is put there begins with a cache line, so that most keys need no other."""
    return _in_cache_lines(size_bytes)


def new_scan_state(code: Int64s, *, seed: int) -> ScanState:
    """Return a scan state with programs; the seed of its hashes cannot be foreseen."""
    scan_state = ScanState()
    scan_state.code[: len(code)] = code
    scan_state.last_offset = scan_state.free = scan_state.first_offset = scan_state.checked = NOTHING
    scan_state.seed = seed
    return scan_state
