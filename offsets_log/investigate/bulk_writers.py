"""Turn the counts of `columnar.writers` to `writers.Writers`: numbers to names, runs of commits to busiest minutes."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar.folds import naming as nm
from offsets_log.columnar.folds import tally
from offsets_log.columnar.folds.counting import Counting, summed
from offsets_log.columnar.folds.writers import HELD
from offsets_log.investigate.writers import HOUR_MS, MINUTE_MS, Writer, Writers, begin_ms, nobody
from offsets_log.rows.shown import ALL, Shown

SUMS = ("records", "commits", "tombstones", "noop_commits", "bytes", "garbage_bytes")
"""Of a writer, as kernels count it and as `writers.Tally` has it."""
COUNTS = [getattr(tally.Writer, name) for name in (*SUMS, "timed", "first_ms", "last_ms")]

NameOf = Callable[[int], bytes]
"""The number of a writer → its name."""


class BulkWriters:
    """Collect what was counted in bulk, log by log.

    Args:
        shown: with what logs were counted.

    Attributes:
        writers: the result; `finish` adds the busiest minutes.
    """

    def __init__(self, per: str, shown: Shown = ALL) -> None:
        self.writers = Writers(per)
        self._shown = shown
        self._numbers: dict[Writer, int] = {}
        self._runs = [np.zeros((0, tally.RUN_SIZE), np.int64)]

    def add(self, state: Counting, offsets_partition: int | None) -> None:
        """Add one offsets partition."""
        runs = state.runs().copy()
        if self._shown.is_all:
            state.writers[nm.NOBODY].bytes += state.empty_bytes
        numbers = np.full(state.writers_count, a.NOTHING, np.int64)
        counted = state.counted
        for number, counts in zip(counted, state.writers.columns(*COUNTS)[counted].tolist(), strict=True):
            writer = self._writer(number, state.writer_name, offsets_partition)
            numbers[number] = self._numbers.setdefault(writer, len(self._numbers))
            self._add(writer, counts)
        runs[:, 0] = numbers[runs[:, 0]]
        self._runs.append(runs)

    def _writer(self, number: int, name_of: NameOf, offsets_partition: int | None) -> Writer:
        """Return the writer of a number."""
        per, name = self.writers.per, name_of(number)
        if number == nm.NOBODY:
            return nobody(per, offsets_partition)
        if per in HELD:
            return _held(name, per)
        if per == "hour":
            return (begin_ms(int.from_bytes(name, signed=True), HOUR_MS),)
        if per == "partition":
            return name[2:-4].decode(), int.from_bytes(name[-4:], signed=True)
        return (name.decode(),)

    def _add(self, writer: Writer, counts: list[int]) -> None:
        found = self.writers.of(writer)
        *sums, is_timed, first_ms, last_ms = counts
        for name, count in zip(SUMS, sums, strict=True):
            setattr(found, name, getattr(found, name) + count)
        if is_timed:
            found.saw_time(first_ms)
            found.saw_time(last_ms)

    def finish(self) -> Writers:
        """Return all that was counted."""
        runs = summed(np.concatenate(self._runs))
        begins = np.flatnonzero(np.diff(runs[:, 0], prepend=a.NOTHING))
        most = np.maximum.reduceat(runs[:, 2], begins) if len(begins) else begins
        busiest = runs[runs[:, 2] == np.repeat(most, np.diff(begins, append=len(runs)))]
        _, first = np.unique(busiest[:, 0], return_index=True)
        writers = list(self._numbers)
        for number, minute, commits in busiest[first].tolist():
            self.writers.of(writers[number]).peak = commits, begin_ms(minute, MINUTE_MS)
        return self.writers


def _held(name: bytes, per: str) -> Writer:
    """Return somebody who held a partition; a group's name alone stands for a member that is not known."""
    if name.startswith(nm.NOBODYS_NAME):
        return tuple(json.loads(name[len(nm.NOBODYS_NAME) :]))
    return name.decode(), *nobody(per, None)[1:]
