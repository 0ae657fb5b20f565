"""Both passes by kernels, over runs of plain batches: the others stay to be read one by one, in their places."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from offsets_log.broker.batches import FileBatch
from offsets_log.broker.bulk import bytes_of
from offsets_log.broker.log_file import LogFile
from offsets_log.broker.segment_writer import SegmentWriter
from offsets_log.cleaner.kept import BEYOND_MAP, LATEST, MARKERS_WITH_DATA, TOMBSTONES, Kept
from offsets_log.cleaner.offset_map import OffsetMap
from offsets_log.cleaner.retention import Retention
from offsets_log.cleaner.settings import Settings
from offsets_log.cleaner.transactions import Transactions
from offsets_log.cleaner.unpacking import repacked, unpacked
from offsets_log.columnar import arrays as a
from offsets_log.columnar.cleaning import kernels, table
from offsets_log.columnar.cleaning import round_state as d

MOST_STAGED = 1 << 20
"""Records of a batch; one with more is read on the slow path."""
OUT_BYTES = 1 << 22
DUE_ENTRIES = 1 << 12
REASONS = {
    LATEST: d.KEPT_LATEST,
    TOMBSTONES: d.KEPT_TOMBSTONES,
    BEYOND_MAP: d.KEPT_BEYOND,
    MARKERS_WITH_DATA: d.KEPT_MARKERS,
}


def takes_bulk(settings: Settings) -> bool:
    """Whether kernels know a round's rules: with a map of any size, and indexes of each batch."""
    return (
        settings.dedupe_buffer_bytes is None
        and settings.rules.indexes_each_batch
        and 0 <= settings.now_ms + settings.delete_retention_ms < d.NO_HORIZON
    )


class PackedKeys(NamedTuple):
    """Keys and the offset at which each stands last, to be handed over.

    Attributes:
        arena: the keys behind each other, before each its size in `SIZE_BYTES` bytes, the least significant first.
        begins: where each begins with its size, and behind them where the last one ends.
    """

    arena: a.Bytes
    begins: a.Int64s
    last_offsets: a.Int64s


def packed(offset_map: OffsetMap) -> PackedKeys:
    """All keys of either kind of map."""
    if isinstance(offset_map, KeyTable):
        return offset_map.packed()
    keys = [len(key).to_bytes(a.SIZE_BYTES, "little") + key for key in offset_map.offsets]
    begins = np.cumsum([0, *map(len, keys)], dtype=np.int64)
    offsets = np.array([*offset_map.offsets.values()], np.int64)
    return PackedKeys(np.frombuffer(b"".join(keys), np.uint8), begins, offsets)


def fill(offset_map: OffsetMap, packed: PackedKeys) -> None:
    """Put packed keys, which are all different, into an empty map of either kind."""
    if isinstance(offset_map, KeyTable):
        offset_map.fill(packed)
        return
    arena, begins = packed.arena.tobytes(), packed.begins.tolist()
    keys = (arena[begin + a.SIZE_BYTES : end] for begin, end in pairwise(begins))
    offset_map.offsets.update(zip(keys, packed.last_offsets.tolist(), strict=True))


@dataclass(slots=True)
class KeyTable(OffsetMap):
    """The offset map in arrays."""

    round_state: a.Int64s = field(default_factory=lambda: np.zeros(d.STATE_SIZE, np.int64))
    staged: a.Int64s = field(default_factory=lambda: np.zeros((1 << 12, a.STAGED_SIZE), np.int64))
    _slots: a.Int64s = field(default_factory=lambda: np.zeros(1 << 15, np.int64))
    _keys: a.Int64s = field(default_factory=lambda: np.zeros((1 << 14, d.KEY_COLUMNS), np.int64))
    _arena: a.Bytes = field(default_factory=lambda: np.zeros(1 << 21, np.uint8))
    _open: a.Int64s = field(default_factory=lambda: np.zeros(2 * d.MOST_OPEN, np.int64))

    def __post_init__(self) -> None:
        self.round_state[d.SEED] = secrets.randbits(61)

    @property
    def arrays(self) -> tuple[a.Int64s, a.Int64s, a.Int64s, a.Bytes]:
        """What all kernels are given."""
        return self.round_state, self._slots, self._keys, self._arena

    def get(self, key: bytes) -> int:
        """The offset of a key, −1 without one."""
        return int(table.get_one(*self.arrays, np.frombuffer(key, np.uint8)))

    def put(self, key: bytes, offset: int) -> bool:
        """It takes any number of keys."""
        while table.put_one(*self.arrays, np.frombuffer(key, np.uint8), offset) == d.NEEDS_ROOM:
            self._grow()
        self.latest = offset
        return True

    def packed(self) -> PackedKeys:
        """All keys. They share the memory of this one."""
        round_state = self.round_state
        rows = self._keys[: int(round_state[d.KEYS])]
        begins = np.append(rows[:, d.KEY_AT] - a.SIZE_BYTES, round_state[d.ARENA_USED])
        return PackedKeys(self._arena[: int(round_state[d.ARENA_USED])], begins, rows[:, d.LAST_OFFSET])

    def fill(self, packed: PackedKeys) -> None:
        """Take in keys that are all different; nothing was put before."""
        count = len(packed.last_offsets)
        self._keys = np.zeros((max(count, len(self._keys)), d.KEY_COLUMNS), np.int64)
        self._keys[:count, d.KEY_AT] = packed.begins[:-1] + a.SIZE_BYTES
        self._keys[:count, d.LAST_OFFSET] = packed.last_offsets
        self._arena = np.concatenate([packed.arena, np.zeros(1 << 21, np.uint8)])
        self._slots = np.zeros(max(1 << (2 * count).bit_length(), len(self._slots)), np.int64)
        self.round_state[d.KEYS], self.round_state[d.ARENA_USED] = count, len(packed.arena)
        table.rehash(*self.arrays)

    def sieve(self, retention: Retention, transactions: Transactions, writer: SegmentWriter, file: LogFile) -> Sieve:
        """What does pass 2 of a segment in bulk."""
        return Sieve(self, retention, transactions, writer, file)

    def tell_open(self, transactions: Transactions) -> None:
        """Let kernels know of transactions; with too many of them they take no data of any."""
        committed, aborted = transactions.committed, transactions.aborted
        round_state = self.round_state
        are_few = max(len(committed), len(aborted)) < d.MOST_OPEN
        round_state[d.NEXT_ABORTED] = transactions.next_aborted if are_few else d.NEVER_BEFORE
        if are_few:
            round_state[d.COMMITTED], round_state[d.ABORTED] = len(committed), len(aborted)
            self._open[: len(committed)] = [*committed]
            self._open[d.MOST_OPEN : d.MOST_OPEN + len(aborted)] = [*aborted]

    def learn_open(self, transactions: Transactions) -> None:
        """What a kernel has met of them."""
        if self.round_state[d.NEXT_ABORTED] != d.NEVER_BEFORE:
            transactions.committed = set(self._open[: self.round_state[d.COMMITTED]].tolist())

    def enter(
        self,
        file: LogFile,
        position: int,
        first_dirty: int,
        transactions: Transactions,
        batch: FileBatch | None = None,
    ) -> int:
        """Enter a run of plain batches from a position on, or the one given; where it ends."""
        if batch is not None and (plain := unpacked(batch)) is not None:
            is_done = self._enter(np.frombuffer(plain, np.uint8), 0, len(plain), first_dirty, allowed_at=0) == len(
                plain
            )
            return batch.end if is_done else position
        self.tell_open(transactions)
        end, allowed_at = (file.size_bytes, -1) if batch is None else (batch.end, position)
        reached = self._enter(bytes_of(file), position, end, first_dirty, allowed_at=allowed_at)
        self.learn_open(transactions)
        return reached

    def _enter(self, data: a.Bytes, position: int, end: int, first_dirty: int, *, allowed_at: int) -> int:
        round_state = self.round_state
        round_state[d.POSITION], round_state[d.END], round_state[d.ALLOWED_AT] = position, end, allowed_at
        round_state[d.FIRST_DIRTY], round_state[d.LATEST] = first_dirty, self.latest
        while (why := kernels.enter(*self.arrays, self._open, data, self.staged)) != d.FINISHED:
            if why == d.NEEDS_ROOM:
                self._grow()
            elif why == d.SLOW_PATH or not self.more_records():
                break
        self.latest = int(round_state[d.LATEST])
        return int(round_state[d.POSITION])

    def sift(self, data: a.Bytes, producers: a.Int64s, out: a.Bytes, due: a.Int64s) -> int:
        """Run the kernel of pass 2; why it came back."""
        return int(kernels.sift(*self.arrays, self._open, data, self.staged, producers, out, due))

    def more_records(self) -> bool:
        """Room for the records of a larger batch; False if there is enough."""
        if len(self.staged) >= MOST_STAGED:
            return False
        self.staged = np.zeros((4 * len(self.staged), a.STAGED_SIZE), np.int64)
        return True

    def _grow(self) -> None:
        self._slots = np.zeros(2 * len(self._slots), np.int64)
        self._keys = np.concatenate([self._keys, np.zeros_like(self._keys)])
        self._arena = np.concatenate([self._arena, np.zeros_like(self._arena)])
        table.rehash(*self.arrays)


@dataclass(slots=True)
class Sieve:
    """Pass 2 of one segment."""

    map: KeyTable
    retention: Retention
    transactions: Transactions
    writer: SegmentWriter
    file: LogFile
    _data: a.Bytes = field(init=False)
    _producers: a.Int64s = field(init=False)
    _out: a.Bytes = field(default_factory=lambda: np.zeros(OUT_BYTES, np.uint8))
    _due: a.Int64s = field(default_factory=lambda: np.zeros((DUE_ENTRIES, d.DUE_COLUMNS), np.int64))

    def __post_init__(self) -> None:
        settings, round_state = self.retention.settings, self.map.round_state
        self._data = bytes_of(self.file)
        self._producers = np.array([*self.retention.producers], np.int64)
        round_state[d.RECORDS_READ] = 0
        round_state[d.KEPT_LATEST : d.FIRST_HORIZON] = 0
        round_state[d.FIRST_HORIZON] = d.NO_HORIZON
        round_state[d.BASE_OFFSET], round_state[d.INTERVAL] = (
            self.writer.base_offset,
            self.writer.indexing.interval_bytes,
        )
        round_state[d.NOW], round_state[d.NEW_HORIZON] = settings.now_ms, settings.now_ms + settings.delete_retention_ms
        is_kept = settings.rules.keeps_last_batch
        round_state[d.LAST_BATCH_OFFSET] = self.retention.first_uncleanable if is_kept else d.NO_BATCH
        round_state[d.PRODUCERS] = len(self._producers)
        round_state[d.OUT_USED] = round_state[d.DUE] = 0

    def sift(self, position: int, batch: FileBatch | None = None) -> int:
        """Write what is kept of a run of plain batches from a position on, or of the one given; where it ends."""
        if batch is not None and (plain := unpacked(batch)) is not None:
            return batch.end if self._sift_packed(batch, plain) else position
        round_state, indexing = self.map.round_state, self.writer.indexing
        round_state[d.POSITION], round_state[d.END] = position, self.file.size_bytes if batch is None else batch.end
        round_state[d.ALLOWED_AT] = -1 if batch is None else position
        round_state[d.SIZE], round_state[d.INDEXED_AT] = self.writer.size_bytes, indexing.indexed_at
        round_state[d.LATEST_TIME], round_state[d.LATEST_TIME_OFFSET] = indexing.latest
        self.map.tell_open(self.transactions)
        while self._run(self._data):
            self._drain()
        self._drain()
        self.map.learn_open(self.transactions)
        return int(round_state[d.POSITION])

    def _sift_packed(self, batch: FileBatch, plain: bytes) -> bool:
        """One compressed batch; False, and nothing is done, if it is not plain inside."""
        round_state = self.map.round_state
        round_state[d.POSITION], round_state[d.END], round_state[d.ALLOWED_AT] = 0, len(plain), 0
        round_state[d.SIZE] = round_state[d.INDEXED_AT] = 0
        before = round_state[d.KEPT_LATEST : d.FIRST_HORIZON].copy()
        while self._run(np.frombuffer(plain, np.uint8)):
            pass
        kept = self._out[: round_state[d.OUT_USED]].tobytes()
        round_state[d.OUT_USED] = round_state[d.DUE] = 0
        if round_state[d.POSITION] != len(plain):
            return False
        if kept == plain:
            self.writer.copy(batch)
            size_bytes = batch.size_bytes
        elif kept:
            made = repacked(kept, batch)
            self.writer.write(made.raw, batch.last_offset, made.max_timestamp_ms)
            size_bytes = len(made.raw)
        if kept:  # what was counted are bytes that are not compressed
            (reason,) = np.flatnonzero(round_state[d.KEPT_LATEST : d.FIRST_HORIZON : 3] - before[::3])
            round_state[d.KEPT_LATEST + 3 * reason + 2] += size_bytes - len(kept)
        return True

    def _run(self, data: a.Bytes) -> bool:
        """Run the kernel, with room for what it makes; whether it has to go on."""
        self.map.round_state[d.LATEST] = self.map.latest
        why = self.map.sift(data, self._producers, self._out, self._due)
        if why == d.NEEDS_ROOM and not self.map.round_state[d.OUT_USED]:
            self._out = np.zeros(2 * len(self._out), np.uint8)
        return why == d.NEEDS_ROOM or (why == d.NEEDS_RECORDS and self.map.more_records())

    def tell(self, kept: Kept) -> None:
        """Add what was counted."""
        round_state = self.map.round_state
        kept.records_read += int(round_state[d.RECORDS_READ])
        for reason, at in REASONS.items():
            batches, records, size_bytes = map(int, round_state[at : at + 3])
            until_ms = int(round_state[d.FIRST_HORIZON]) if reason == TOMBSTONES else d.NO_HORIZON
            if batches:
                kept.count(reason, size_bytes, records, None if until_ms == d.NO_HORIZON else until_ms, batches)

    def _drain(self) -> None:
        """Hand over what was written."""
        round_state = self.map.round_state
        used, due = int(round_state[d.OUT_USED]), int(round_state[d.DUE])
        if used:
            latest = int(round_state[d.LATEST_TIME]), int(round_state[d.LATEST_TIME_OFFSET])
            entries = self._due[:due].tolist()
            self.writer.write_run(self._out[:used].tobytes(), entries, latest, int(round_state[d.INDEXED_AT]))
        round_state[d.OUT_USED] = round_state[d.DUE] = 0
