"""Turn the counts of `columnar.writers` to `writers.Writers`: numbers to names, runs of commits to busiest minutes."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np

from offsets_log.columnar.folds import naming as nm
from offsets_log.columnar.folds import tally
from offsets_log.columnar.folds.writers import HELD, Counting, summed
from offsets_log.investigate.writers import HOUR_MS, MINUTE_MS, Writer, Writers, begin_ms, nobody

HIDDEN = -1

SUMS = ("records", "commits", "tombstones", "noop_commits", "bytes", "garbage_bytes")
"""Of a writer, as kernels count it and as `writers.Tally` has it."""
COUNTS = [getattr(tally.Writer, name) for name in (*SUMS, "timed", "first_ms", "last_ms")]

Shows = Callable[[str, str | None], bool]
"""Whether records of a group, and of a topic for offset commits, are asked for."""
NameOf = Callable[[int], bytes]
"""The number of a writer → its name."""


class BulkWriters:
    """Collect what was counted in bulk, log by log.

    Args:
        shows: None for all; else logs must be counted with ``is_filtered``.

    Attributes:
        writers: the result; `finish` adds the busiest minutes.
    """

    def __init__(self, per: str, shows: Shows | None = None) -> None:
        self.writers = Writers(per)
        self._shows = shows
        self._numbers: dict[Writer, int] = {}
        self._runs = [np.zeros((0, tally.RUN_SIZE), np.int64)]

    def add(self, state: Counting, offsets_partition: int | None) -> None:
        """Add one offsets partition."""
        runs = state.runs().copy()
        state.writers[nm.NOBODY].bytes += state.empty_bytes
        numbers = np.full(state.writers_count, HIDDEN, np.int64)
        counted = state.counted
        for number, counts in zip(counted, state.writers.columns(*COUNTS)[counted].tolist(), strict=True):
            writer = self._writer(number, state.writer_name, offsets_partition)
            if writer is not None:
                numbers[number] = self._numbers.setdefault(writer, len(self._numbers))
                self._add(writer, counts)
        runs[:, 0] = numbers[runs[:, 0]]
        self._runs.append(runs[runs[:, 0] != HIDDEN])

    def _writer(self, number: int, name_of: NameOf, offsets_partition: int | None) -> Writer | None:
        """Return the writer of a number; None if it is not asked for."""
        per, name = self.writers.per, name_of(number)
        if self._shows is not None:
            return None if number == nm.NOBODY else self._shown_writer(name, name_of, offsets_partition, self._shows)
        if number == nm.NOBODY:
            return nobody(per, offsets_partition)
        if per in HELD:
            return _held(name, per)
        if per == "hour":
            return (begin_ms(int.from_bytes(name, signed=True), HOUR_MS),)
        if per == "partition":
            return name[2:-4].decode(), int.from_bytes(name[-4:], signed=True)
        return (name.decode(),)

    def _shown_writer(self, name: bytes, name_of: NameOf, offsets_partition: int | None, shows: Shows) -> Writer | None:
        """Return the writer from a key's names (`naming.put_names`), which follow the hour or the holder if counted."""
        per = self.writers.per
        size = nm.NUMBER_SIZE if per == "hour" or per in HELD else 0
        number, name = int.from_bytes(name[:size], signed=True), name[size:]
        group, name = _named(name)
        topic, name = _named(name) if name else (None, b"")
        if not shows(group, topic):
            return None
        if per == "group":
            return (group,)
        if per in HELD:
            return nobody(per, offsets_partition) if number == nm.NOBODY else _held(name_of(number), per)
        if per == "hour":
            return (None if number == nm.NO_HOUR else begin_ms(number, HOUR_MS),)
        if per == "offsets_partition" or topic is None:
            return nobody(per, offsets_partition)
        return (topic, int.from_bytes(name, signed=True)) if per == "partition" else (topic,)

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
        begins = np.flatnonzero(np.diff(runs[:, 0], prepend=HIDDEN))
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


def _named(text: bytes) -> tuple[str, bytes]:
    """Return a name with its size before it, and the bytes after it."""
    end = 2 + int.from_bytes(text[:2])
    return text[2:end].decode(), text[end:]
