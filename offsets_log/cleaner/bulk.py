"""Both passes by kernels, over runs of plain batches: the others stay to be read one by one, in their places.

Compressed batches are decompressed many a call; those that lose records are compressed again when they are handed over.
"""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from offsets_log.broker.batches import FileBatch
from offsets_log.broker.bulk import bytes_of, index_run
from offsets_log.broker.log_file import LogFile
from offsets_log.broker.segment_writer import SegmentWriter
from offsets_log.cleaner.bulk_transactions import OpenTransactions
from offsets_log.cleaner.kept import BEYOND_MAP, LATEST, MARKERS_WITH_DATA, TOMBSTONES, Kept
from offsets_log.cleaner.offset_map import OffsetMap
from offsets_log.cleaner.repacking import repacked
from offsets_log.cleaner.retention import Retention
from offsets_log.cleaner.settings import Settings
from offsets_log.cleaner.transactions import Transactions
from offsets_log.columnar import arrays as a
from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.cleaning import entering, sifting, table
from offsets_log.columnar.cleaning import round_state as d
from offsets_log.columnar.jit.records import Table
from offsets_log.columnar.scan.layout import Scanner

MOST_STAGED = 1 << 20
"""Records of a batch; one with more is read on the slow path."""
MOST_RUNS = 1 << 16
"""Of batches, of which it is remembered that a kernel has entered them."""
OUT_BYTES = 1 << 22
PACKS = 1 << 12
REASONS = {
    LATEST: d.KEPT_LATEST,
    TOMBSTONES: d.KEPT_TOMBSTONES,
    BEYOND_MAP: d.KEPT_BEYOND,
    MARKERS_WITH_DATA: d.KEPT_MARKERS,
}


def takes_bulk(settings: Settings) -> bool:
    """Return whether kernels know a round's rules: a map of any size, and indexes of each batch."""
    return (
        settings.dedupe_buffer_bytes is None
        and settings.rules.indexes_each_batch
        and 0 <= settings.now_ms + settings.delete_retention_ms < d.NO_HORIZON
    )


@dataclass(slots=True)
class KeyTable(OffsetMap):
    """The offset map in arrays."""

    is_bulk: ClassVar[bool] = True
    round_state: d.RoundState = field(default_factory=d.RoundState)
    _scanner: Scanner = field(default_factory=Scanner)
    _file: LogFile | None = None
    _data: a.Bytes = field(default_factory=lambda: np.zeros(0, np.uint8))
    _slots: a.Int64s = field(default_factory=lambda: np.zeros(1 << 15, np.int64))
    _keys: Table[d.Key] = field(default_factory=lambda: Table(d.Key, 1 << 14))
    _arena: a.Bytes = field(default_factory=lambda: np.zeros(1 << 21, np.uint8))
    _entered: list[tuple[int, int, int]] = field(default_factory=list)
    _lasts: a.Int64s | None = None
    begin: int = d.NEVER_BEFORE
    open: OpenTransactions = field(init=False)

    def __post_init__(self) -> None:
        self.open = OpenTransactions(self.round_state)
        self.round_state.seed = secrets.randbits(61)
        self.round_state.last_put = d.NEVER_BEFORE

    @property
    def arrays(self) -> d.RoundArrays:
        """The arrays that all kernels take."""
        return d.RoundArrays(self.round_state, self._slots, self._keys, self._arena, *self.open.arrays)

    def get(self, key: bytes) -> int:
        """Return the offset of a key; −1 if it is not known."""
        return int(table.get_one(self.arrays, np.frombuffer(key, np.uint8)))

    def put(self, key: bytes, offset: int) -> bool:
        """Put a key; there is always room."""
        while table.put_one(self.arrays, np.frombuffer(key, np.uint8), offset) == oc.NEEDS_ROOM:
            self._grow()
        self.latest = offset
        return True

    def note(self, key: bytes) -> None:
        """Implement `OffsetMap.note`."""
        while table.put_one(self.arrays, np.frombuffer(key, np.uint8), d.NOT_ENTERED) == oc.NEEDS_ROOM:
            self._grow()

    def note_run(self, file: LogFile, position: int) -> int:
        """Note the keys of a run of plain batches, whatever transactions they are of; where it ends."""
        self.round_state.notes = d.NOTES_ALL
        self.open.lend(Transactions())
        return self._run(file, position, 0)

    def beside(self, begin: int) -> KeyTable:
        """Return an empty table for what begins at an offset, behind what is entered here; see `take_in`."""
        made = KeyTable()
        made.round_state.last_put = made.begin = begin - 1
        return made

    def take_in(self, other: KeyTable) -> None:
        """Enter what a table holds that this one has returned; what that was read from follows."""
        round_state = self.round_state
        is_unsure = round_state.is_unsure or other.round_state.is_unsure or int(round_state.last_put > other.begin)
        keys, at = other._keys.up_to(other.round_state.keys), 0
        while (at := int(table.take_in(self.arrays, keys, other._arena, at))) < len(keys):
            self._grow()
        round_state.is_unsure, round_state.last_put = is_unsure, other.round_state.last_put
        self._entered += other._entered
        self.begins |= other.begins
        self.latest = other.latest

    def reader(self) -> KeyTable:
        """Return the same table for another thread; nothing is put any more."""
        made = KeyTable(latest=self.latest)
        made.round_state.numbers[:] = self.round_state.numbers
        made._slots, made._keys, made._arena = self._slots, self._keys, self._arena
        made._entered, made._lasts = self._entered, self.lasts
        return made

    def close(self) -> None:
        """Free what the decompressors work in."""
        self._scanner.__exit__(None, None, None)

    def enter(
        self,
        file: LogFile,
        position: int,
        first_dirty: int,
        transactions: Transactions,
        batch: FileBatch | None = None,
    ) -> int:
        """Enter a run of plain batches from a position on, or the one given; where it ends."""
        self.round_state.notes = d.NOTES_OTHERS if self.notes_others else d.NOTES_NONE
        self.open.lend(transactions)
        reached = self._run(file, position, first_dirty, batch)
        self.latest = int(self.round_state.latest)
        self.open.take_back(transactions)
        if reached > position and len(self._entered) < MOST_RUNS:
            self._entered.append((file.base_offset, position, reached))
        return reached

    def _run(self, file: LogFile, position: int, first_dirty: int, batch: FileBatch | None = None) -> int:
        """Run the kernel of pass 1 from a position on, or over the batch given; where it ends."""
        self.read(file)
        round_state = self.round_state
        round_state.position, round_state.end = position, file.size_bytes if batch is None else batch.end
        round_state.allowed_at = -1 if batch is None else position
        round_state.first_dirty, round_state.latest = first_dirty, self.latest
        while self._enter() != oc.FINISHED:
            pass
        return int(round_state.position)

    @property
    def entered(self) -> list[tuple[int, int, int]]:
        """The runs of batches that kernels have entered, by segment, begin and end; none if that says nothing."""
        return [] if self.round_state.is_unsure else self._entered

    def trust(self, runs: Iterable[tuple[int, int, int]], first_dirty: int) -> None:
        """Take it that runs were entered, whose keys this table was filled with, by tables that say so."""
        self._entered = sorted(runs)
        self.round_state.first_dirty = first_dirty

    def known_until(self, file: LogFile, position: int) -> int:
        """Return where the run of batches ends that a kernel entered, if it began at or before a position; else 0."""
        at = bisect_right(self._entered, (file.base_offset, position, file.size_bytes)) - 1
        if at < 0 or self.round_state.is_unsure or self._entered[at][0] != file.base_offset:
            return 0
        return self._entered[at][2]

    @property
    def lasts(self) -> a.Int64s:
        """Where keys stand last, in order; nothing is put any more."""
        if self._lasts is None:
            self._lasts = np.sort(self._keys.up_to(self.round_state.keys).column(d.Key.last_offset))
        return self._lasts

    def _enter(self) -> int:
        """Run the kernel of pass 1; FINISHED if it has nothing more to do here."""
        why = int(entering.enter(self.arrays, self._data, self._scanner.buffers))
        if why == oc.NEEDS_ROOM:
            self._grow()
        return why if why == oc.NEEDS_ROOM or self.provides(why) else oc.FINISHED

    def read(self, file: LogFile) -> None:
        """Make a segment the one that kernels read."""
        if file is not self._file:
            self._file, self._data = file, bytes_of(file)
            self.round_state.window_count = 0

    def sift(self, sieve: d.Sieve) -> int:
        """Run the kernel of pass 2; why it came back."""
        return int(sifting.sift(self.arrays, self._data, self._scanner.buffers, sieve))

    def provides(self, why: int) -> bool:
        """Provide what a kernel needs: the next compressed batches, or more room; return whether it may go on."""
        round_state, scanner = self.round_state, self._scanner
        if why == oc.NEEDS_WINDOW:
            position, end = int(round_state.position), int(round_state.end)
            round_state.window_count = scanner.fill_window(self._data, position, end)
            round_state.window_next = 0
            return True
        if why != oc.NEEDS_RECORDS or len(scanner.staged) >= MOST_STAGED:
            return False
        scanner.more_records(2 * len(scanner.staged))
        return True

    def _grow(self) -> None:
        self._slots = np.zeros(2 * len(self._slots), np.int64)
        self._keys = self._keys.grown(2 * len(self._keys))
        self._arena = np.concatenate([self._arena, np.zeros_like(self._arena)])
        table.rehash(self.arrays)


class Sifting(ABC):
    """Pass 2 over a segment, whatever is made of what stays.

    Args:
        map: its round state tells the rule.
    """

    def __init__(self, map: KeyTable, file: LogFile, base_offset: int) -> None:
        self.map, self.file = map, file
        self.producers, self.chosen = Table(d.Active, 0), np.zeros(0, np.int64)
        self._out = np.zeros(OUT_BYTES, np.uint8)
        self._packs = Table(d.Pack, PACKS)
        map.read(file)
        round_state = map.round_state
        round_state.rule = d.BY_KEYS
        round_state.until_offset, round_state.last_batch_offset = d.NO_HORIZON, d.NO_BATCH
        round_state.base_offset = base_offset
        round_state.records_read = round_state.out_used = round_state.packs = 0
        round_state.changed = round_state.chosen_at = 0
        round_state.kept[:] = 0
        round_state.first_horizon = d.NO_HORIZON

    @abstractmethod
    def hand_over(self, raw: bytes) -> None:
        """Take batches that were written behind each other; there may be none."""

    def go(self, position: int, end: int) -> int:
        """Write what is kept of a run of plain batches from a position on; where it ends."""
        round_state = self.map.round_state
        round_state.position, round_state.end = position, end
        while self._run():
            pass
        self._drain()
        return int(round_state.position)

    def _run(self) -> bool:
        """Run the kernel, with room for what it makes; whether it has to go on."""
        why = self.map.sift(d.Sieve(self.producers, self.chosen, self._out, self._packs))
        if why != oc.NEEDS_ROOM:
            return self.map.provides(why)
        if not self.map.round_state.out_used:
            self._out = np.zeros(2 * len(self._out), np.uint8)
        self._drain()
        return True

    def tell_kept(self, kept: Kept, reasons: Mapping[str, int]) -> None:
        """Add what was counted of batches that stay.

        Args:
            reasons: what to call them → where they are counted.
        """
        round_state = self.map.round_state
        for reason, at in reasons.items():
            batches, records, size_bytes = map(int, round_state.kept[at])
            until_ms = int(round_state.first_horizon) if reason == TOMBSTONES else d.NO_HORIZON
            if batches:
                kept.count(reason, size_bytes, records, None if until_ms == d.NO_HORIZON else until_ms, batches)

    def _drain(self) -> None:
        raw, round_state = self._written(), self.map.round_state
        round_state.out_used = round_state.packs = 0
        self.hand_over(raw)
        round_state.changed = 0

    def _written(self) -> bytes:
        """Return what the kernel made, with batches compressed as their codec asks."""
        round_state = self.map.round_state
        raw = self._out[: round_state.out_used].tobytes()
        pieces: list[bytes] = []
        at = 0
        for begin, end, reason in self._packs.rows[: round_state.packs].tolist():
            packed = repacked(raw[begin:end])
            pieces += raw[at:begin], packed
            round_state.kept[reason, 2] += len(packed) - (end - begin)
            at = end
        return b"".join((*pieces, raw[at:])) if pieces else raw


class Sieve(Sifting):
    """Pass 2 of one segment."""

    def __init__(self, retention: Retention, transactions: Transactions, writer: SegmentWriter, file: LogFile) -> None:
        map = retention.map
        assert isinstance(map, KeyTable)
        super().__init__(map, file, writer.base_offset)
        self._transactions, self._writer = transactions, writer
        active = sorted((producer_id, entry.last_offset) for producer_id, entry in retention.producers.items())
        self.producers, self.chosen = Table(d.Active, np.array(active, d.Active.dtype)), map.lasts
        settings, round_state = retention.settings, map.round_state
        round_state.now, round_state.new_horizon = settings.now_ms, settings.now_ms + settings.delete_retention_ms
        round_state.makes_newest = settings.rules.makes_magic_2
        round_state.keeps_old_tombstones = retention.keeps_old_tombstones
        if retention.keeps_empty_at is not None:
            round_state.last_batch_offset = retention.keeps_empty_at

    def sift(self, position: int, batch: FileBatch | None = None) -> int:
        """Write what is kept of a run of plain batches from a position on, or of the one given; where it ends."""
        round_state = self.map.round_state
        round_state.allowed_at = -1 if batch is None else position
        round_state.latest, round_state.known_until = self.map.latest, self.map.known_until(self.file, position)
        transactions = self._transactions
        self.map.open.lend(transactions)
        reached = self.go(position, self.file.size_bytes if batch is None else batch.end)
        self.map.open.take_back(transactions)
        return reached

    def tell(self, kept: Kept) -> None:
        """Add what was counted."""
        kept.records_read += int(self.map.round_state.records_read)
        self.tell_kept(kept, REASONS)

    def hand_over(self, raw: bytes) -> None:
        if raw:
            index_run(self._writer.indexing, self._writer.size_bytes, raw, 0, len(raw))
            self._writer.write_run(raw)
