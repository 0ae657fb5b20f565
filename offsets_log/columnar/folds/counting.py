"""Counts for writers as Python holds them: the arrays that kernels count in (`tally`), grown, joined and read."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar.folds import naming as nm
from offsets_log.columnar.folds import tally, tally_merge
from offsets_log.columnar.folds.state import ColumnarState
from offsets_log.columnar.jit.records import Table
from offsets_log.columnar.scan.layout import Scanner
from offsets_log.columnar.scan.waiting import new_waiting
from offsets_log.events import Event
from offsets_log.messages.registry import CoordinatorRecord
from offsets_log.replay.profile import Profile

LEAST_RUNS = 1 << 18


class Counting(ColumnarState):
    """Counts for each writer of a run of records.

    Attributes:
        counts, writers, minutes, firsts, waiting, asked: see `tally`.
        accepted_bytes: size of the batches that the kernel took.
    """

    def __init__(self, profile: Profile, per: int, **how: Any) -> None:
        super().__init__(profile, **how)
        self.counts = np.zeros(tally.COUNTS, np.int64)
        self.counts[nm.PER] = per
        self.writers = Table(tally.Writer, a.LEAST_KEYS)
        self.minutes = np.zeros((LEAST_RUNS, tally.RUN_SIZE), np.int64)
        self.firsts = np.zeros((a.LEAST_KEYS, tally.FIRST_SIZE), np.int64)
        self.waiting = new_waiting()
        self.asked = np.zeros((a.BLOCK, tally.ASKED_SIZE), np.int64)
        self.accepted_bytes = 0
        self.arrays.scan_state.notes_activity = per == nm.PER_GROUP

    # ------------------------------------------------------------------------------------ counting

    @property
    def counters(self) -> tally.Counters:
        """What is counted in, as kernels take it."""
        return tally.Counters(self.counts, self.writers, self.minutes, self.firsts, self.waiting, self.asked)

    @abstractmethod
    def scan(self, data: a.Bytes, scanner: Scanner) -> int:
        """Call the kernel."""

    @abstractmethod
    def row_of(self, event: Event, record: CoordinatorRecord) -> int:
        """Return the row of the raw key of a record that was read on the slow path."""

    @abstractmethod
    def _count(self, record: CoordinatorRecord | None, row: int, kind: int, offset: int, size: int, time: int) -> bool:
        """Count a record that was read on the slow path; False without room."""

    @property
    @abstractmethod
    def writers_count(self) -> int:
        """How many there are."""

    @abstractmethod
    def writer_name(self, number: int) -> bytes:
        """Return the name of a writer; the first is nobody's."""

    @property
    def counted(self) -> list[int]:
        """The numbers of writers of whom something was counted."""
        known = self.writers.up_to(self.writers_count).columns(tally.Writer.records, tally.Writer.bytes)
        return np.flatnonzero(known.any(axis=1)).tolist()

    def count(self, event: Event | None, size_bytes: int) -> None:
        """Count a record that was read on the slow path; None for a batch without records."""
        if event is None:
            self.writers[nm.NOBODY].bytes += size_bytes
            return
        record, row, kind, offset = event.decoded, a.NOTHING, a.PASSED, 0
        if record is not None:
            row = self.row_of(event, record)
            kind = a.TOMBSTONE if record.is_tombstone else a.VALUE if record.is_offset_commit else a.PASSED
            offset = record.value["offset"] if kind == a.VALUE and record.value is not None else 0
        while not self._count(record, row, kind, offset, size_bytes, event.record.timestamp_ms):
            self.grow()

    def _grow_minutes(self, count: int = 1) -> None:
        """Add up the runs of one writer and minute; make it twice as long where it is still half full with more."""
        runs = summed(self.minutes[: self.counts[tally.RUNS]])
        if 2 * (len(runs) + count) > len(self.minutes):
            self.minutes = np.zeros((2 * (len(self.minutes) + count), tally.RUN_SIZE), np.int64)
        self.minutes[: len(runs)] = runs
        self.counts[tally.RUNS] = len(runs)

    def _grow_writers(self, room: int) -> None:
        self.writers = self.writers.grown(max(room, len(self.writers)))

    def known_firsts(self, rows: Table[a.Row]) -> a.Int64s:
        """Return the first record of each of these keys of which one was counted, as `tally.Counters` has it."""
        if self.counts[nm.PER] >= nm.PER_CLIENT:
            return self.firsts[: self.counts[tally.FIRSTS]]
        counted = np.flatnonzero(rows.column(a.Row.last) >= 0)
        return np.column_stack([counted, rows.columns(a.Row.first, a.Row.first_committed)[counted]])

    def _join_writers(self, right: Counting, numbers: a.Int64s) -> None:
        """Count what the run that follows counted.

        Args:
            numbers: its writers' numbers here.
        """
        self._grow_writers(self.writers_count)
        runs = right.runs().copy()
        runs[:, 0] = numbers[runs[:, 0]]
        self.minutes = np.concatenate([self.runs(), runs])
        self.counts[tally.RUNS] += len(runs)
        tally_merge.join_writers(self.writers, right.writers.up_to(right.writers_count), numbers)
        self.counts[tally.COUNTED_BYTES] += right.counts[tally.COUNTED_BYTES]
        self.accepted_bytes += right.accepted_bytes

    # ------------------------------------------------------------------------------------- answers

    def written(self) -> dict[str, tuple[int, int]]:
        """Group → how many records and bytes it wrote, where groups are counted."""
        counts = self.writers.up_to(self.writers_count).columns(tally.Writer.records, tally.Writer.bytes).tolist()
        names = map(self.writer_name, range(len(counts)))
        pairs = zip(names, counts, strict=True)
        return {raw.decode(): (records, size) for raw, (records, size) in pairs if raw != nm.NOBODYS_NAME}

    @property
    def empty_bytes(self) -> int:
        """Bytes of batches without records that the kernel took."""
        return self.accepted_bytes - int(self.counts[tally.COUNTED_BYTES])

    def runs(self) -> a.Int64s:
        """Return all runs of commits; none is open afterwards."""
        while not tally.end_minutes(self.counters._replace(writers=self.writers.up_to(self.writers_count))):
            self._grow_minutes()
        return self.minutes[: self.counts[tally.RUNS]]


def summed(runs: a.Int64s) -> a.Int64s:
    """Return runs of commits, joined to one for each writer and minute, in their order."""
    if not len(runs):
        return runs
    writers, minutes, commits = runs.T
    low, high = writers.astype(np.uint16), (writers >> 16).astype(np.uint16)  # NumPy sorts these by digits
    order = np.lexsort((minutes, low, high))
    writers, minutes, commits = writers[order], minutes[order], commits[order]
    is_first = (np.diff(writers, prepend=-1) != 0) | (np.diff(minutes, prepend=0) != 0)
    begins = np.flatnonzero(is_first)
    found = runs[order[begins]]
    found[:, 2] = np.add.reduceat(commits, begins)
    return found
