"""Sample offsets and generations over time, and give all logs' samples as lines with names.

In bulk a log is sampled while the kernels read it (`columnar.folds.overview`); otherwise here, event by event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from offsets_log.columnar.arrays import NOTHING
from offsets_log.columnar.folds import samples as t
from offsets_log.columnar.folds import sampling as s
from offsets_log.columnar.folds.overviews import OverviewState
from offsets_log.columnar.jit.records import Table
from offsets_log.events import Event, LogEvent
from offsets_log.log_format.java_text import plain
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.replay.partial import EndTransactionMarker, PartialState
from offsets_log.replay.profile import Profile

Numbers = npt.NDArray[Any]
Shows = Callable[[str], bool]
Name = tuple[Any, ...]
"""Name of a line: group, topic and partition (commits only), offsets partition."""


@dataclass(frozen=True, slots=True)
class Lines:
    """Samples of one kind.

    Attributes:
        names: names of the lines, in order.
        samples: the samples, by line and record offset; see `sampling`.
    """

    names: list[Name]
    samples: t.Samples


@dataclass(frozen=True, slots=True)
class Sampled:
    """Samples of all logs.

    Attributes:
        commits: samples of commits; a tombstone has a null.
        generations: samples of generations; a tombstone has a null.
        untimed: number of commits without any known time, which are not among the samples.
    """

    commits: Lines
    generations: Lines
    untimed: int


class Samples:
    """Collect samples of all logs: `add` their states, then `finish`.

    Args:
        shows_group, shows_topic: whether a group or topic is asked for, by its name.
    """

    def __init__(
        self, profile: Profile, *, shows_group: Shows = lambda name: True, shows_topic: Shows = lambda name: True
    ) -> None:
        self.profile = profile
        self._shows = (shows_group, shows_topic)
        self._untimed = 0
        self._numbers: dict[int, dict[Name, int]] = {kind: {} for kind in t.MOST}
        self._samples: dict[int, list[t.Samples]] = {kind: [] for kind in t.MOST}
        self._shifts = dict.fromkeys(t.MOST, 0)

    def state(self) -> SampledState:
        """Return the state into which a log's events are replayed, after its `SampledState.watch`."""
        return SampledState(self.profile, self._is_shown)

    def add(self, log: PartitionLog, state: SampledState | OverviewState) -> None:
        """Add a log that was sampled while it was read; its samples must not be used afterwards."""
        untimed = state.untimed_commits()
        lines = np.flatnonzero(untimed)
        names = state.line_names(s.COMMITS, lines)
        self._untimed += int(untimed[lines][[self._is_shown(name) for name in names]].sum()) if names else 0
        for kind, most in t.MOST.items():
            self._samples[kind].append(self._named(kind, state, log.offsets_partition))
            self._shifts[kind] = max(self._shifts[kind], int(state.book.counts[kind + s.SHIFT]))
            if sum(map(len, self._samples[kind])) > most:
                self._thin(kind)

    def _named(self, kind: int, state: SampledState | OverviewState, offsets_partition: int | None) -> t.Samples:
        """Return a log's samples that are asked for, with the line numbers they have here."""
        samples, known = state.book.settled(kind), self._numbers[kind]
        lines = np.flatnonzero(np.bincount(t.lines_of(samples), minlength=1))
        numbers = np.full(int(lines[-1]) + 1 if len(lines) else 1, NOTHING, np.int64)
        for line, name in zip(lines.tolist(), state.line_names(kind, lines), strict=True):
            if self._is_shown(name):
                numbers[line] = known.setdefault((*name, offsets_partition), len(known))
        is_shown = numbers[t.lines_of(samples)] >= 0
        found: t.Samples = samples if is_shown.all() else samples[is_shown]
        t.set_lines(found, numbers)
        return found

    def _is_shown(self, name: Name) -> bool:
        return all(shows(text) for shows, text in zip(self._shows, name, strict=False))

    def _thin(self, kind: int) -> t.Samples:
        parts = self._samples[kind]
        whole = parts[0] if len(parts) == 1 else np.concatenate([np.zeros((0, s.COLUMNS), np.int64), *parts])
        count, self._shifts[kind] = t.thin(whole, self._shifts[kind], t.MOST[kind])
        self._samples[kind] = [whole[:count]]
        return self._samples[kind][0]

    def finish(self) -> Sampled:
        """Return all samples."""
        return Sampled(self._lines(s.COMMITS), self._lines(s.GENERATIONS), self._untimed)

    def _lines(self, kind: int) -> Lines:
        """Return the lines in order of their names."""
        names = sorted(self._numbers[kind], key=lambda name: (*name[:-1], -1 if name[-1] is None else name[-1]))
        ranks = np.zeros(max(1, len(names)), np.int64)
        ranks[[self._numbers[kind][name] for name in names]] = np.arange(len(names))
        for samples in self._samples[kind]:
            t.set_lines(samples, ranks)
        return Lines(names, t.by_record(self._thin(kind)))


class SampledState(PartialState):
    """A replay of a log that also samples its events.

    Args:
        is_shown: whether a line is asked for, by its name.

    Attributes:
        book: samples as in `OverviewState`, with lines numbered in order of appearance.
    """

    def __init__(self, profile: Profile, is_shown: Callable[[Name], bool]) -> None:
        super().__init__(profile)
        self.book = t.Book(self._are_shown)
        self._is_shown = is_shown
        self._lines: dict[int, dict[Name, int]] = {kind: {} for kind in t.MOST}
        self._known = {kind: Table(s.Line, t.LEAST_ROOM) for kind in t.MOST}
        self._owners: dict[int, int] = {}
        self._heads = np.zeros(t.LEAST_ROOM, np.int64)

    def watch(self, events: Iterable[LogEvent]) -> Iterator[LogEvent]:
        """Sample each record before it is replayed."""
        for event in events:
            if isinstance(event, Event) and not event.batch.is_control:
                self._sample(event)
            yield event

    def _sample(self, event: Event) -> None:
        told = t.told(event)
        if told is None:
            return
        kind, time_ms, value = told
        assert event.decoded is not None
        name = tuple(map(plain, event.decoded.key.values() if kind == s.COMMITS else [event.decoded.group]))
        line = self._lines[kind].setdefault(name, len(self._lines[kind]))
        if line >= len(self._known[kind]):
            self._known[kind] = self._known[kind].grown(2 * len(self._known[kind]))
        waits = kind == s.COMMITS and self.profile.is_transactional(event.batch)
        producer = self._owner(event.batch.producer_id) if waits else NOTHING
        if not self.book.has_room(1):
            marks = {kind: known.column(s.Line.last_sample) for kind, known in self._known.items()}
            self.book.make_room(1, marks, self._heads)
        sample = s.Sample(line, producer, t.offset_of(event), time_ms, value or 0, value is None)
        s.add(self.book.counts, kind, self.book.samples[kind], self._known[kind][line], self._heads, producer, sample)

    def _owner(self, producer_id: int) -> int:
        owner = self._owners.setdefault(producer_id, len(self._owners))
        if owner >= len(self._heads):
            self._heads = np.concatenate([self._heads, np.zeros_like(self._heads)])
        return owner

    def add_marker(self, producer_id: int, marker: EndTransactionMarker) -> None:
        """Replay a marker as `PartialState.add_marker` does, and settle its samples."""
        super().add_marker(producer_id, marker)
        s.settle(self.book.samples[s.COMMITS], self._heads, self._owner(producer_id), marker.commit)

    def _are_shown(self, kind: int, lines: Numbers) -> npt.NDArray[np.bool_]:
        names = list(self._lines[kind])
        found: npt.NDArray[np.bool_] = np.array([self._is_shown(name) for name in names], bool)[lines]
        return found

    def untimed_commits(self) -> Numbers:
        """Return what `OverviewState.untimed_commits` does."""
        found: Numbers = self._known[s.COMMITS].column(s.Line.untimed)
        return found

    def line_names(self, kind: int, lines: Numbers) -> list[Name]:
        """Return what `OverviewState.line_names` does."""
        names = list(self._lines[kind])
        return [names[line] for line in lines.tolist()]
