"""Logs replayed for a page: states that take what one scan notes (`overview`), and the same of records read on the slow
path."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from offsets_log.columnar import arrays as a
from offsets_log.columnar.folds import overview, sampling
from offsets_log.columnar.folds.ledgers import LedgerPiece, LedgerReplay, LedgerState
from offsets_log.columnar.folds.samples import Book, Marks, offset_of, told
from offsets_log.columnar.jit.records import Table
from offsets_log.columnar.ledger.ledger import Question
from offsets_log.columnar.overflow import Unended
from offsets_log.events import Event, LogEvent
from offsets_log.replay.partial import EndTransactionMarker
from offsets_log.replay.profile import Profile

ShowsName = Callable[[str], bool]


class OverviewState(LedgerState):
    """The effects of the records of a log, a ledger of it, and samples.

    Attributes:
        lines: what samples know of lines.
        book: commits by the rows of their keys, generations by the numbers of groups.

    Args:
        shows_group, shows_topic: whether samples of a name are asked for; None for all.
    """

    def __init__(
        self,
        profile: Profile,
        question: Question,
        *,
        shows_group: ShowsName | None = None,
        shows_topic: ShowsName | None = None,
        **how: Any,
    ) -> None:
        self.lines = overview.Lines(Table(sampling.Line, 0), Table(sampling.Line, 0))
        super().__init__(profile, question, **how)
        self.arrays.scan_state.notes_activity = 1
        self.shows = {"group": shows_group or _all, "topic": shows_topic or _all}
        is_all = shows_group is None and shows_topic is None
        self.book = Book(None if is_all else self._are_shown)

    # ------------------------------------------------------------------------------------ by kernel

    def grow(self) -> None:
        """Make room for what has none."""
        count = int(self.arrays.scan_state.staged) or 1
        if self.book.has_room(count):
            super().grow()
        else:
            self.book.make_room(count, self._marks, self._waiting)

    def fit(self) -> None:
        """Make room for all rows and groups that the arrays have room for."""
        super().fit()
        commits, generations = self.lines
        self.lines = overview.Lines(commits.grown(len(self.arrays.rows)), generations.grown(len(self.arrays.groups)))

    @property
    def _marks(self) -> Marks:
        return {
            sampling.COMMITS: self.lines.commits.column(sampling.Line.last_sample),
            sampling.GENERATIONS: self.lines.generations.column(sampling.Line.last_sample),
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
            line = self.group_number(record.group)
        while not self.book.has_room(1):
            self.book.make_room(1, self._marks, self._waiting)
        known = self.lines.commits[line] if kind == sampling.COMMITS else self.lines.generations[line]
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

    # -------------------------------------------------------------------------------------- answers

    def line_names(self, kind: int, lines: npt.NDArray[np.int64]) -> list[tuple[Any, ...]]:
        """Return the groups of lines, and topics and partitions of lines of commits."""
        s = self.arrays
        if kind == sampling.GENERATIONS:
            return [(s.text_at(at).decode(),) for at in s.groups.column(a.Group.name_at)[lines].tolist()]
        return [key_names(s.text_at(at)) for at in s.rows.column(a.Row.key_at)[lines].tolist()]

    def untimed_commits(self) -> npt.NDArray[np.int64]:
        """Return how many commits without a time each line has."""
        found: a.Int64s = self.lines.commits.up_to(self.arrays.scan_state.row_count).column(sampling.Line.untimed)
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


# ------------------------------------------------------------------------------------------------ reading


class _OverviewPiece(LedgerPiece):
    """A log on its way."""

    state: OverviewState

    def scan_on(self, data: a.Bytes) -> int:
        state = self.state
        outcome = overview.scan(
            state.arrays.all, self.scanner.buffers, data, state.ledger, state.lines, state.book.arrays
        )
        return int(outcome)

    def counted(self, events: Iterator[LogEvent]) -> Iterator[LogEvent]:
        return super().counted(self.state.watch(events))


class OverviewReplay(LedgerReplay):
    """One log, replayed with a ledger and samples."""

    piece = _OverviewPiece
