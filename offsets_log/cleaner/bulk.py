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
from offsets_log.columnar.cleaning import desk as d
from offsets_log.columnar.cleaning import kernels, table

MOST_STAGED = 1 << 20
"""Records of a batch; one with more is read by hand."""
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

    desk: a.Int64s = field(default_factory=lambda: np.zeros(d.DESK_SIZE, np.int64))
    staged: a.Int64s = field(default_factory=lambda: np.zeros((1 << 12, a.STAGED_SIZE), np.int64))
    _slots: a.Int64s = field(default_factory=lambda: np.zeros(1 << 15, np.int64))
    _keys: a.Int64s = field(default_factory=lambda: np.zeros((1 << 14, d.KEY_COLUMNS), np.int64))
    _arena: a.Bytes = field(default_factory=lambda: np.zeros(1 << 21, np.uint8))
    _open: a.Int64s = field(default_factory=lambda: np.zeros(2 * d.MOST_OPEN, np.int64))

    def __post_init__(self) -> None:
        self.desk[d.SEED] = secrets.randbits(61)

    @property
    def arrays(self) -> tuple[a.Int64s, a.Int64s, a.Int64s, a.Bytes]:
        """What all kernels are given."""
        return self.desk, self._slots, self._keys, self._arena

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
        desk = self.desk
        rows = self._keys[: int(desk[d.KEYS])]
        begins = np.append(rows[:, d.KEY_AT] - a.SIZE_BYTES, desk[d.ARENA_USED])
        return PackedKeys(self._arena[: int(desk[d.ARENA_USED])], begins, rows[:, d.LAST_OFFSET])

    def fill(self, packed: PackedKeys) -> None:
        """Take in keys that are all different; nothing was put before."""
        count = len(packed.last_offsets)
        self._keys = np.zeros((max(count, len(self._keys)), d.KEY_COLUMNS), np.int64)
        self._keys[:count, d.KEY_AT] = packed.begins[:-1] + a.SIZE_BYTES
        self._keys[:count, d.LAST_OFFSET] = packed.last_offsets
        self._arena = np.concatenate([packed.arena, np.zeros(1 << 21, np.uint8)])
        self._slots = np.zeros(max(1 << (2 * count).bit_length(), len(self._slots)), np.int64)
        self.desk[d.KEYS], self.desk[d.ARENA_USED] = count, len(packed.arena)
        table.rehash(*self.arrays)

    def sieve(self, retention: Retention, transactions: Transactions, writer: SegmentWriter, file: LogFile) -> Sieve:
        """What does pass 2 of a segment in bulk."""
        return Sieve(self, retention, transactions, writer, file)

    def tell_open(self, transactions: Transactions) -> None:
        """Let kernels know of transactions; with too many of them they take no data of any."""
        committed, aborted = transactions.committed, transactions.aborted
        desk = self.desk
        are_few = max(len(committed), len(aborted)) < d.MOST_OPEN
        desk[d.NEXT_ABORTED] = transactions.next_aborted if are_few else d.NEVER_BEFORE
        if are_few:
            desk[d.COMMITTED], desk[d.ABORTED] = len(committed), len(aborted)
            self._open[: len(committed)] = [*committed]
            self._open[d.MOST_OPEN : d.MOST_OPEN + len(aborted)] = [*aborted]

    def learn_open(self, transactions: Transactions) -> None:
        """What a kernel has met of them."""
        if self.desk[d.NEXT_ABORTED] != d.NEVER_BEFORE:
            transactions.committed = set(self._open[: self.desk[d.COMMITTED]].tolist())

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
        desk = self.desk
        desk[d.POSITION], desk[d.END], desk[d.ALLOWED_AT] = position, end, allowed_at
        desk[d.FIRST_DIRTY], desk[d.LATEST] = first_dirty, self.latest
        while (why := kernels.enter(*self.arrays, self._open, data, self.staged)) != d.FINISHED:
            if why == d.NEEDS_ROOM:
                self._grow()
            elif why == d.BY_HAND or not self.more_records():
                break
        self.latest = int(desk[d.LATEST])
        return int(desk[d.POSITION])

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
        settings, desk = self.retention.settings, self.map.desk
        self._data = bytes_of(self.file)
        self._producers = np.array([*self.retention.producers], np.int64)
        desk[d.RECORDS_READ] = 0
        desk[d.KEPT_LATEST : d.FIRST_HORIZON] = 0
        desk[d.FIRST_HORIZON] = d.NO_HORIZON
        desk[d.BASE_OFFSET], desk[d.INTERVAL] = self.writer.base_offset, self.writer.indexing.interval_bytes
        desk[d.NOW], desk[d.NEW_HORIZON] = settings.now_ms, settings.now_ms + settings.delete_retention_ms
        is_kept = settings.rules.keeps_last_batch
        desk[d.LAST_BATCH_OFFSET] = self.retention.first_uncleanable if is_kept else d.NO_BATCH
        desk[d.PRODUCERS] = len(self._producers)
        desk[d.OUT_USED] = desk[d.DUE] = 0

    def sift(self, position: int, batch: FileBatch | None = None) -> int:
        """Write what is kept of a run of plain batches from a position on, or of the one given; where it ends."""
        if batch is not None and (plain := unpacked(batch)) is not None:
            return batch.end if self._sift_packed(batch, plain) else position
        desk, indexing = self.map.desk, self.writer.indexing
        desk[d.POSITION], desk[d.END] = position, self.file.size_bytes if batch is None else batch.end
        desk[d.ALLOWED_AT] = -1 if batch is None else position
        desk[d.SIZE], desk[d.INDEXED_AT] = self.writer.size_bytes, indexing.indexed_at
        desk[d.LATEST_TIME], desk[d.LATEST_TIME_OFFSET] = indexing.latest
        self.map.tell_open(self.transactions)
        while self._run(self._data):
            self._drain()
        self._drain()
        self.map.learn_open(self.transactions)
        return int(desk[d.POSITION])

    def _sift_packed(self, batch: FileBatch, plain: bytes) -> bool:
        """One compressed batch; False, and nothing is done, if it is not plain inside."""
        desk = self.map.desk
        desk[d.POSITION], desk[d.END], desk[d.ALLOWED_AT] = 0, len(plain), 0
        desk[d.SIZE] = desk[d.INDEXED_AT] = 0
        before = desk[d.KEPT_LATEST : d.FIRST_HORIZON].copy()
        while self._run(np.frombuffer(plain, np.uint8)):
            pass
        kept = self._out[: desk[d.OUT_USED]].tobytes()
        desk[d.OUT_USED] = desk[d.DUE] = 0
        if desk[d.POSITION] != len(plain):
            return False
        if kept == plain:
            self.writer.copy(batch)
            size_bytes = batch.size_bytes
        elif kept:
            made = repacked(kept, batch)
            self.writer.write(made.raw, batch.last_offset, made.max_timestamp_ms)
            size_bytes = len(made.raw)
        if kept:  # what was counted are bytes that are not compressed
            (reason,) = np.flatnonzero(desk[d.KEPT_LATEST : d.FIRST_HORIZON : 3] - before[::3])
            desk[d.KEPT_LATEST + 3 * reason + 2] += size_bytes - len(kept)
        return True

    def _run(self, data: a.Bytes) -> bool:
        """Run the kernel, with room for what it makes; whether it has to go on."""
        self.map.desk[d.LATEST] = self.map.latest
        why = self.map.sift(data, self._producers, self._out, self._due)
        if why == d.NEEDS_ROOM and not self.map.desk[d.OUT_USED]:
            self._out = np.zeros(2 * len(self._out), np.uint8)
        return why == d.NEEDS_ROOM or (why == d.NEEDS_RECORDS and self.map.more_records())

    def tell(self, kept: Kept) -> None:
        """Add what was counted."""
        desk = self.map.desk
        kept.records_read += int(desk[d.RECORDS_READ])
        for reason, at in REASONS.items():
            batches, records, size_bytes = map(int, desk[at : at + 3])
            until_ms = int(desk[d.FIRST_HORIZON]) if reason == TOMBSTONES else d.NO_HORIZON
            if batches:
                kept.count(reason, size_bytes, records, None if until_ms == d.NO_HORIZON else until_ms, batches)

    def _drain(self) -> None:
        """Hand over what was written."""
        desk = self.map.desk
        used, due = int(desk[d.OUT_USED]), int(desk[d.DUE])
        if used:
            latest = int(desk[d.LATEST_TIME]), int(desk[d.LATEST_TIME_OFFSET])
            entries = self._due[:due].tolist()
            self.writer.write_run(self._out[:used].tobytes(), entries, latest, int(desk[d.INDEXED_AT]))
        desk[d.OUT_USED] = desk[d.DUE] = 0
