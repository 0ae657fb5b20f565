"""The counts of `columnar.writers` as `writers.Writers`: numbers become names, runs of commits the busiest minutes."""

from __future__ import annotations

import numpy as np

from offsets_log.columnar.folds import tally
from offsets_log.columnar.folds.writers import WritersState, summed
from offsets_log.investigate.writers import HOUR_MS, MINUTE_MS, Writer, Writers, nobody


class BulkWriters:
    """What was counted in bulk, log by log.

    Attributes:
        writers: what it comes to; `finish` puts in the busiest minutes.
    """

    def __init__(self, per: str) -> None:
        self.writers = Writers(per)
        self._numbers: dict[Writer, int] = {}
        self._runs = [np.zeros((0, tally.RUN_SIZE), np.int64)]

    def add(self, state: WritersState, offsets_partition: int | None) -> None:
        """One offsets partition."""
        runs = state.runs().copy()
        state.writers[tally.NOBODY, tally.BYTES] += state.empty_bytes
        names = state.writer_names()
        numbers = np.zeros(len(names), np.int64)
        counted = np.flatnonzero(state.writers[: len(names), [tally.RECORDS, tally.BYTES]].any(axis=1))
        for number in counted.tolist():
            writer = self._writer(number, names[number], offsets_partition)
            numbers[number] = self._numbers.setdefault(writer, len(self._numbers))
            self._add(writer, state.writers[number].tolist())
        runs[:, 0] = numbers[runs[:, 0]]
        self._runs.append(runs)

    def _writer(self, number: int, name: bytes, offsets_partition: int | None) -> Writer:
        per = self.writers.per
        if number == tally.NOBODY:
            return nobody(per, offsets_partition)
        if per == "hour":
            return (int.from_bytes(name, signed=True) * HOUR_MS,)
        if per == "partition":
            return name[2:-4].decode(), int.from_bytes(name[-4:], signed=True)
        return (name.decode(),)

    def _add(self, writer: Writer, counts: list[int]) -> None:
        found = self.writers.of(writer)
        found.records += counts[tally.RECORDS]
        found.commits += counts[tally.COMMITS]
        found.tombstones += counts[tally.TOMBSTONES]
        found.noop_commits += counts[tally.NOOP_COMMITS]
        found.bytes += counts[tally.BYTES]
        found.garbage_bytes += counts[tally.GARBAGE_BYTES]
        if counts[tally.TIMED]:
            found.saw_time(counts[tally.FIRST_MS])
            found.saw_time(counts[tally.LAST_MS])

    def finish(self) -> Writers:
        """All that was counted."""
        runs = summed(np.concatenate(self._runs))
        order = np.lexsort((runs[:, 1], -runs[:, 2], runs[:, 0]))
        _, first = np.unique(runs[order, 0], return_index=True)
        writers = list(self._numbers)
        for number, minute, commits in runs[order[first]].tolist():
            self.writers.of(writers[number]).peak = commits, minute * MINUTE_MS
        return self.writers
