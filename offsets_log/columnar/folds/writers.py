"""Who writes a log, in bulk: the counts of `top` by kernels, and on the slow path what is not plain (`tally`).

Pieces, threads and what is read on the slow path are those of a replay; only what becomes of a record is another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.folds import naming as nm
from offsets_log.columnar.folds import tally, tally_merge
from offsets_log.columnar.folds.counting import Counting
from offsets_log.columnar.folds.replay import Piece, Replay, cuts_at
from offsets_log.columnar.folds.state import SUMS, ColumnarState, canonical_key
from offsets_log.columnar.jit.records import places
from offsets_log.columnar.scan.layout import Scanner
from offsets_log.columnar.scan.reading import ONE_THREAD, Cursor, Note, ScanOrder, ScanPlace, Threads
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

FIRST_SHARE = 0.6
"""Of a log that two threads count by `HELD`: the second learns what happened in the first piece, in a third of the time
that counting it takes, and then counts the rest."""


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
            total = sum(self.order.layout.sizes)
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
