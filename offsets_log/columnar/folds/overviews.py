"""Logs replayed for a page: states that take what one scan notes (`overview`), and the same of records read on the slow
path."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from offsets_log.columnar import arrays as a
from offsets_log.columnar.folds import naming as nm
from offsets_log.columnar.folds import overview, sampling, tally, tally_merge
from offsets_log.columnar.folds.counting import Counting
from offsets_log.columnar.folds.replay import Replay
from offsets_log.columnar.folds.samples import Book, Marks, offset_of, told
from offsets_log.columnar.folds.state import ColumnarState, canonical_key
from offsets_log.columnar.folds.writers import CountedPiece
from offsets_log.columnar.jit.records import Table
from offsets_log.columnar.overflow import Producer, Unended
from offsets_log.columnar.scan.layout import Scanner
from offsets_log.events import Event, LogEvent
from offsets_log.log_format.java_text import plain
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.messages.registry import CoordinatorRecord
from offsets_log.replay.partial import EndTransactionMarker
from offsets_log.replay.profile import Profile

ShowsName = Callable[[str], bool]


class OverviewState(Counting):
    """The effects of a run of records, its writers, and samples of it.

    Attributes:
        latest: what `tally` knows of a key, by row.
        others: what it knows of keys that no row can stand for, which are in ``other_keys``.
        book: commits by the rows of their keys, generations by the numbers of their writers.

    Args:
        shows_group, shows_topic: whether samples of a name are asked for; None for all.
    """

    def __init__(
        self,
        profile: Profile,
        *,
        shows_group: ShowsName | None = None,
        shows_topic: ShowsName | None = None,
        **how: Any,
    ) -> None:
        super().__init__(profile, nm.PER_GROUP, **how)
        self.shows = {"group": shows_group or _all, "topic": shows_topic or _all}
        is_all = shows_group is None and shows_topic is None
        self.book = Book(None if is_all else self._are_shown)
        self.latest = Table(a.Row, 0)
        self.others = _unknown_keys(a.LEAST_KEYS, self.latest)
        self.other_keys: dict[bytes, int] = {}
        self._fit()

    # ------------------------------------------------------------------------------------ by kernel

    def scan(self, data: a.Bytes, scanner: Scanner) -> int:
        """Implement `Counting.scan`."""
        s = self.arrays
        before = int(s.scan_state.at)
        outcome = overview.scan(self.counters, s.all, scanner.buffers, data, self.latest, self.book.arrays)
        self.accepted_bytes += int(s.scan_state.at) - before
        return int(outcome)

    def grow(self) -> None:
        """Make room for what has none."""
        count = int(self.arrays.scan_state.staged) or 1
        if self.counts[tally.RUNS] + count > len(self.minutes):
            self._grow_minutes(count)
        elif not self.book.has_room(count):
            self.book.make_room(count, self._marks, self._waiting)
        else:
            super().grow()
            self._fit()

    def _fit(self) -> None:
        """Make room for all rows and writers that the arrays have room for."""
        s = self.arrays
        self.latest = _unknown_keys(len(s.rows), self.latest)
        self._grow_writers(len(s.groups) + 1)

    @property
    def _marks(self) -> Marks:
        return {
            sampling.COMMITS: self.latest.column(a.Row.last_sample),
            sampling.GENERATIONS: self.writers.column(tally.Writer.last_sample),
        }

    @property
    def _waiting(self) -> a.Int64s:
        return self.arrays.region(Unended).column(Unended.waiting)

    # -------------------------------------------------------------------------------------- on the slow path

    def watch(self, events: Iterator[LogEvent]) -> Iterator[LogEvent]:
        """Sample the records of a batch that was read on the slow path."""
        for event in events:
            if isinstance(event, Event) and not event.batch.is_control:
                self._sample(event)
            yield event

    def _sample(self, event: Event) -> None:
        found = told(event)
        if found is None:
            return
        kind, time_ms, value = found
        record = event.decoded
        assert record is not None
        owner, producer = 0, a.NOTHING
        if kind == sampling.COMMITS:
            line = self._row(1, tuple(record.key.values()))
            if self.profile.is_transactional(event.batch):
                owner = self._waiting_of(event.batch.producer_id)
                producer = (owner - int(overview.waiting_at(self.arrays.scan_state, 0))) // overview.EACH
        else:
            line = self.group_number(record.group) + 1
        while not self.book.has_room(1):
            self.book.make_room(1, self._marks, self._waiting)
        known = self.latest[line] if kind == sampling.COMMITS else self.writers[line]
        sample = sampling.Sample(line, producer, offset_of(event), time_ms, value or 0, value is None)
        sampling.add(self.book.counts, kind, self.book.samples[kind], known, self.arrays.overflow, owner, sample)

    def _waiting_of(self, producer_id: int) -> int:
        s = self.arrays
        while (place := overview.waiting_of(s.all, producer_id)) < 0:
            self.grow()
        return int(place)

    def add_marker(self, producer_id: int, marker: EndTransactionMarker) -> None:
        """Implement `PartialState.add_marker`."""
        super().add_marker(producer_id, marker)
        waiting = self._waiting_of(producer_id)
        sampling.settle(self.book.samples[sampling.COMMITS], self.arrays.overflow, waiting, marker.commit)

    def row_of(self, event: Event, record: CoordinatorRecord) -> int:
        """Return the row of a key as `Counting.row_of`; for one of `others` −2 minus its place there."""
        raw_key, number = event.record.key, record.record_type
        assert raw_key is not None
        if number < a.KEY_TYPES:
            fields = tuple(map(plain, record.key.values()))
            return self.raw_row(raw_key, canonical_key(max(number, 1), fields))
        if number in self.newer and raw_key == canonical_key(number, tuple(map(plain, record.key.values()))):
            return self._newer_row(raw_key)
        place = self.other_keys.setdefault(raw_key, len(self.other_keys))
        if place >= len(self.others):
            self.others = _unknown_keys(2 * len(self.others), self.others)
        return -2 - place

    def _newer_row(self, key: bytes) -> int:
        s, data = self.arrays, np.frombuffer(key, np.uint8)
        while (row := overview.newer_row(s.all, data)) < 0:
            self.grow()
        return int(row)

    def _count(self, record: CoordinatorRecord | None, row: int, kind: int, offset: int, size: int, time: int) -> bool:
        writer = nm.NOBODY if record is None else self.group_number(record.group) + 1
        known, row = (self.others, -2 - row) if row < a.NOTHING else (self.latest, row)
        return bool(tally.count_record(self.counters, known, row, writer, kind, offset, size, time))

    # -------------------------------------------------------------------------------------- joining

    def merge(self, right: ColumnarState) -> ColumnarState:
        """Join with the run that follows."""
        assert isinstance(right, OverviewState)
        numbers = self.number(right)
        writers = np.concatenate([[nm.NOBODY], numbers[1] + 1])
        self._join_writers(right, writers)
        known = right.latest.up_to(right.arrays.scan_state.row_count)
        tally_merge.join_rows(self.latest, self.writers, known, right.known_firsts(known), numbers[0], writers)
        self._join_others(right, writers)
        self._join_samples(right, numbers, writers)
        self.join(right, numbers)
        return self

    def _join_others(self, right: OverviewState, writers: a.Int64s) -> None:
        places = np.array([self.other_keys.setdefault(key, len(self.other_keys)) for key in right.other_keys], np.int64)
        self.others = _unknown_keys(max(len(self.others), len(self.other_keys)), self.others)
        others = right.others.up_to(len(places))
        tally_merge.join_rows(self.others, self.writers, others, right.known_firsts(others), places, writers)

    def _join_samples(self, right: OverviewState, numbers: a.Int64s, writers: a.Int64s) -> None:
        """Join samples; the first marker of each producer there ends what waits here."""
        s, commits = self.arrays, self.book.samples[sampling.COMMITS]
        heads = right.arrays.region(Producer).up_to(right.arrays.scan_state.producer_count)
        for producer in np.flatnonzero(heads.column(Producer.head_offset) != a.NOTHING).tolist():
            owner = int(overview.waiting_at(s.scan_state, int(numbers[2, producer])))
            sampling.settle(commits, s.overflow, owner, bool(heads[producer].head_commits))
        lines = {sampling.COMMITS: numbers[0], sampling.GENERATIONS: writers}
        self.book.append(right.book, lines, numbers[2], self._marks, self._waiting)
        untimed = right.untimed_commits()
        self.latest.column(a.Row.untimed)[numbers[0, : len(untimed)]] += untimed

    # -------------------------------------------------------------------------------------- answers

    @property
    def writers_count(self) -> int:
        """How many writers there are."""
        return int(self.arrays.scan_state.group_count) + 1

    def writer_name(self, number: int) -> bytes:
        """Implement `Counting.writer_name`."""
        return self.arrays.text_at(int(self.arrays.groups[number - 1].name_at)) if number else nm.NOBODYS_NAME

    def line_names(self, kind: int, lines: npt.NDArray[np.int64]) -> list[tuple[Any, ...]]:
        """Return the groups of lines, and topics and partitions of lines of commits."""
        s = self.arrays
        if kind == sampling.GENERATIONS:
            return [(s.text_at(at).decode(),) for at in s.groups.column(a.Group.name_at)[lines - 1].tolist()]
        return [key_names(s.text_at(at)) for at in s.rows.column(a.Row.key_at)[lines].tolist()]

    def untimed_commits(self) -> npt.NDArray[np.int64]:
        """Return how many commits without a time each line has."""
        found: a.Int64s = self.latest.up_to(self.arrays.scan_state.row_count).column(a.Row.untimed)
        return found

    def _are_shown(self, kind: int, lines: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        known, places = np.unique(lines, return_inverse=True)
        names = self.line_names(kind, known)
        found: npt.NDArray[np.bool_] = np.array([self.is_shown(name) for name in names], bool)[places]
        return found

    def is_shown(self, names: tuple[Any, ...]) -> bool:
        """Return whether a line is asked for."""
        return self.shows["group"](names[0]) and (len(names) == 1 or self.shows["topic"](names[1]))


def key_names(key: bytes) -> tuple[str, str, int]:
    """Group, topic and partition of a key of an offset as kernels keep it."""
    group_end = 4 + int.from_bytes(key[2:4])
    topic_end = group_end + 2 + int.from_bytes(key[group_end : group_end + 2])
    partition = int.from_bytes(key[topic_end : topic_end + 4], signed=True)
    return key[4:group_end].decode(), key[group_end + 2 : topic_end].decode(), partition


def _all(name: str) -> bool:
    return True


def _unknown_keys(count: int, known: Table[a.Row]) -> Table[a.Row]:
    """Return the keys that are known, and behind them others of which `tally` has seen no record."""
    made, unknown = a.new_rows(count, known), slice(len(known), None)
    made.numbers[unknown] = a.NOTHING
    made.column(a.Row.last_sample)[unknown] = made.column(a.Row.untimed)[unknown] = 0
    return made


# ------------------------------------------------------------------------------------------------ pieces


class _OverviewPiece(CountedPiece):
    """One run of batches on its way."""

    state: OverviewState

    def counted(self, events: Iterator[LogEvent]) -> Iterator[LogEvent]:
        return super().counted(self.state.watch(events))


class OverviewReplay(Replay):
    """One log, cut into pieces that threads replay, count and sample.

    Args:
        shows_group, shows_topic: what they are in `OverviewState`.
    """

    piece = _OverviewPiece

    def __init__(
        self,
        log: PartitionLog,
        profile: Profile,
        *,
        shows_group: ShowsName | None = None,
        shows_topic: ShowsName | None = None,
        **how: Any,
    ) -> None:
        super().__init__(log, profile, **how)
        self.how |= {"shows_group": shows_group, "shows_topic": shows_topic}

    def new_state(self, *, with_newer: bool = True) -> ColumnarState:
        return OverviewState(self.profile, **self.how, with_newer=with_newer)
