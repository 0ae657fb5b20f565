"""Who writes a log, in bulk: the counts of `top` by kernels, and on the slow path what is not plain (`tally`).

Pieces, threads and what is read on the slow path are those of a replay; only what becomes of a record is another.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.folds import naming as nm
from offsets_log.columnar.folds import tally, tally_merge
from offsets_log.columnar.folds.replay import Piece, Replay, cuts_at
from offsets_log.columnar.folds.state import SUMS, ColumnarState, canonical_key
from offsets_log.columnar.jit.records import Table, places
from offsets_log.columnar.scan.layout import Scanner
from offsets_log.columnar.scan.reading import ONE_THREAD, Cursor, Note, ScanOrder, ScanPlace, Threads
from offsets_log.columnar.scan.waiting import new_waiting
from offsets_log.events import EVERYTHING, Event, LogEvent, Until
from offsets_log.log_format.java_text import plain
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.messages.registry import CoordinatorRecord
from offsets_log.messages.repeated import RepeatedRecords
from offsets_log.replay.fold import TakesNothing
from offsets_log.replay.groups import GROUP_METADATA
from offsets_log.replay.profile import MODERN, Profile
from offsets_log.rows.batch_bytes import counted
from offsets_log.rows.shown import ALL, Shown

PER = {
    "group": nm.PER_GROUP,
    "topic": nm.PER_TOPIC,
    "partition": nm.PER_PARTITION,
    "offsets_partition": nm.PER_LOG,
    "hour": nm.PER_HOUR,
    "client": nm.PER_CLIENT,
    "member": nm.PER_MEMBER,
}
"""``--per`` → how kernels name a writer."""
HELD = frozenset({"client", "member"})
"""Those that are known from groups: they need a `WritersState` that answers."""

LEAST_RUNS = 1 << 18
FIRST_SHARE = 0.6
"""Of a log that two threads count by `HELD`: the second learns what happened in the first piece, in a third of the time
that counting it takes, and then counts the rest."""


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


class WritersState(TakesNothing, Counting):
    """Counts for each writer of a run of records; of a replay it keeps only the keys.

    Attributes:
        decode: decodes a record that kernels have found valid.
        shown: which records count.
    """

    decode: Callable[[bytes, bytes | None], CoordinatorRecord]

    def __init__(self, profile: Profile, per: int, *, shown: Shown = ALL, **how: Any) -> None:
        super().__init__(profile, per, **how)
        self.shown = shown
        self.counts[nm.BY_GROUP], self.counts[nm.BY_TOPIC] = shown.group is not None, shown.topic is not None
        self.text = np.zeros(nm.MOST_NUMBERS * nm.NUMBER_SIZE, np.uint8)
        self.numbers_of([nm.NOBODYS_NAME])

    def scan(self, data: a.Bytes, scanner: Scanner) -> int:
        """Implement `Counting.scan`."""
        s = self.arrays
        before = int(s.scan_state.at)
        outcome = tally.scan(self.counters, s.all, scanner.buffers, data, self.text)
        self.accepted_bytes += int(s.scan_state.at) - before
        return int(outcome)

    def numbers_of(self, names: Sequence[bytes]) -> list[int]:
        """Return the numbers of names, new or known."""
        if not names:
            return []
        data = np.frombuffer(b"".join(names), np.uint8)
        ends, numbers = np.cumsum([len(name) for name in names]), np.zeros(len(names), np.int64)
        while not nm.number(self.arrays.all, data, ends, numbers):
            self.grow()
        return numbers.tolist()

    @contextmanager
    def learning(self) -> Iterator[None]:
        """Only note who holds what of the records that are read meanwhile; afterwards nothing is counted yet."""
        scan_state = self.arrays.scan_state
        before = scan_state.numbers[OF_RUN].copy()
        self.counts[nm.IS_LEARNING] = True
        yield
        self.counts[nm.IS_LEARNING] = False
        scan_state.numbers[OF_RUN] = before
        self.accepted_bytes = 0

    def decide(self) -> None:
        """Say of names that the kernel asks for whether they are asked for."""
        groups = self.arrays.groups
        for name, role in self.asked[: self.counts[nm.ASKED_NAMES]].tolist():
            text = self.arrays.text_at(int(groups[name].name_at)).decode()
            is_shown = self.shown.shows_group(text) if role == nm.AS_GROUP else self.shown.shows_topic(text)
            groups[name].verdicts ^= (nm.IS_ASKED ^ (nm.SHOWN if is_shown else nm.HIDDEN)) << role
        self.counts[nm.ASKED_NAMES] = 0

    def decided(self, role: int) -> list[str]:
        """Return the names of which it was asked in a role."""
        verdicts = self.arrays.groups.up_to(self.writers_count).column(a.Group.verdicts)
        found = np.flatnonzero(verdicts >> role & nm.VERDICT_MASK).tolist()
        return [self.writer_name(name).decode() for name in found]

    def count(self, event: Event | None, size_bytes: int) -> None:
        """Implement `Counting.count`: what belongs to no group is not counted where some are asked for."""
        if self.shown.shows_record(None if event is None else event.decoded):
            super().count(event, size_bytes)

    def answer(self, key: bytes, value: bytes | None) -> None:
        """Say what the kernel asks in ``counts`` before it counts a record."""
        raise NotImplementedError

    def _count(self, record: CoordinatorRecord | None, row: int, kind: int, offset: int, size: int, time: int) -> bool:
        s = self.arrays
        return bool(tally.count_one(self.counters, s.all, self.text, row, kind, offset, size, time))

    def row_of(self, event: Event, record: CoordinatorRecord) -> int:
        """Return the row of the raw key; that of a newer group's record is a key of its group."""
        raw_key = event.record.key
        assert raw_key is not None
        if record.is_offset_commit:
            return self.raw_row(raw_key, canonical_key(1, tuple(map(plain, record.key.values()))))
        return self.raw_row(raw_key, canonical_key(GROUP_METADATA, (plain(record.group),)))

    def grow(self) -> None:
        """Make room for what has none."""
        if self.counts[tally.RUNS] >= len(self.minutes):
            self._grow_minutes()
        elif self.arrays.scan_state.group_count >= len(self.writers):
            self._grow_writers(2 * len(self.writers))
        elif self.counts[tally.FIRSTS] >= len(self.firsts):
            self.firsts = np.concatenate([self.firsts, np.zeros_like(self.firsts)])
        else:
            super().grow()

    def merge(self, right: ColumnarState) -> ColumnarState:
        """Join with the run that follows."""
        assert isinstance(right, WritersState)
        numbers = self.number(right)
        self._join_writers(right, numbers[1])
        rows = right.arrays.rows.up_to(right.arrays.scan_state.row_count)
        tally_merge.join_rows(self.arrays.rows, self.writers, rows, right.known_firsts(rows), numbers[0], numbers[1])
        self.join_activity(right, numbers[1])
        self.join_counts(right.arrays.scan_state)
        theirs = right.arrays.groups.up_to(right.writers_count).column(a.Group.verdicts)
        self.arrays.groups.column(a.Group.verdicts)[numbers[1][: len(theirs)]] |= theirs
        return self

    @property
    def writers_count(self) -> int:
        """How many writers there are."""
        return int(self.arrays.scan_state.group_count)

    def writer_name(self, number: int) -> bytes:
        """Implement `Counting.writer_name`."""
        return self.arrays.text_at(int(self.arrays.groups[number].name_at))


OF_RUN = [*SUMS, *places(a.ScanState.first_offset, a.ScanState.last_offset, a.ScanState.end_offset)]
"""Places in the scan state of what is known of a run of records as a whole."""

NewState = Callable[..., WritersState]
"""A state for a profile, how kernels name a writer, and more of `ColumnarState`."""


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


# ------------------------------------------------------------------------------------------------ pieces


class CountedPiece(Piece):
    """One run of batches on its way, counted."""

    state: Counting

    def scan_on(self, data: a.Bytes) -> int:
        return self.state.scan(data, self.scanner)

    def counted(self, events: Iterator[LogEvent]) -> Iterator[LogEvent]:
        return counted(super().counted(events), self.state.count)


class _WrittenPiece(CountedPiece):
    """A piece in which the kernel may ask who wrote a record."""

    state: WritersState

    def __init__(self, order: ScanOrder, cursor: Cursor, scanner: Scanner, note: Note, state: WritersState) -> None:
        super().__init__(order, cursor, scanner, note, state)
        state.decode = RepeatedRecords(order.release).decode

    def scan(self, index: int, data: a.Bytes) -> int:
        while (outcome := super().scan(index, data)) == oc.NEEDS_ANSWER:
            self._answer(data)
        return outcome

    def _answer(self, data: a.Bytes) -> None:
        """Have the state say what the kernel asks, of names or of a staged record."""
        if self.state.counts[nm.WHY] == nm.OF_NAMES:
            self.state.decide()
            return
        staged = self.scanner.staged[self.scan_state.flushed]
        source = self.scanner.window if self.scan_state.in_window else data
        self.state.answer(staged.raw_key(source), staged.raw_value(source))


class Count(Replay):
    """One log, cut into pieces that threads count.

    Args:
        per: how kernels name a writer.
        shown: which records count.
        kind: what a piece is counted in.
        pieces: by `HELD` two are made of more.
    """

    piece = _WrittenPiece

    def __init__(
        self,
        log: PartitionLog,
        per: int,
        *,
        shown: Shown = ALL,
        kind: NewState = WritersState,
        pieces: int = 1,
        **how: Any,
    ) -> None:
        super().__init__(log, MODERN, pieces=pieces, **how)
        self.per, self.shown, self.kind = per, shown, kind
        if per >= nm.PER_CLIENT and pieces > 1:
            total = sum(map(len, self.order.layout.data))
            self.cuts = cuts_at(self.order.layout, [int(total * FIRST_SHARE)])

    def new_state(self, *, with_newer: bool = True) -> ColumnarState:
        """Return a state with nothing counted."""
        return self.kind(self.profile, self.per, shown=self.shown, **self.how, with_newer=with_newer)

    def prepare(self, state: ColumnarState, begin: ScanPlace, scanner: Scanner) -> bool:
        """Have a piece know who holds what where it begins."""
        start = self.order.begin(ScanPlace(0, 0))
        if self.per < nm.PER_CLIENT or start is None or start.place == begin:
            return True
        assert isinstance(state, WritersState)
        with state.learning():
            self.piece(self.order, start, scanner, lambda seen: None, state).run(begin, lambda size_bytes: None)
        return start.place == begin and not state.is_out_of_place


def count_log(
    log: PartitionLog,
    per: str,
    *,
    shown: Shown = ALL,
    note: Note,
    until: Until = EVERYTHING,
    release: tuple[int, int] | None = None,
    threads: Threads = ONE_THREAD,
    kind: NewState = WritersState,
) -> WritersState:
    """Count the records of one log.

    Args:
        per: one of `PER`.
        shown: which records count.
        note: what to do with what could not be read, with tails and gaps; called in log order.
        kind: what it is counted in; of `HELD` one that answers.
    """
    pieces = threads.pieces or threads.count
    count = Count(log, PER[per], shown=shown, kind=kind, pieces=pieces, until=until, release=release)
    with ThreadPoolExecutor(threads.count) as pool:
        parts = count.start(pool, threads.advance)
        try:
            state = count.join(parts, note)
        finally:
            count.cancel(parts)
    assert isinstance(state, WritersState)
    return state
