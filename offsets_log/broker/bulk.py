"""Check, count and index runs of plain batches by a kernel, in the form they have in a segment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from offsets_log.broker.indexes import AbortedTransaction, Indexing
from offsets_log.broker.log_file import LogFile
from offsets_log.broker.producers import ProducerEntry, ProducerState
from offsets_log.columnar import arrays as a
from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.cleaning import counting
from offsets_log.columnar.cleaning import indexing as ix
from offsets_log.columnar.cleaning import producers as pr
from offsets_log.columnar.cleaning import round_state as d
from offsets_log.columnar.jit.records import Rows, Table
from offsets_log.columnar.scan.layout import Scanner
from offsets_log.log_format.batch import MAX_OFFSETS_IN_SEGMENT
from offsets_log.log_format.record import INT64_MAX
from offsets_log.log_format.segment import Buffer

DUE_ENTRIES = 1 << 12
ANY_EPOCH = 1 << 31
MOST_PRODUCERS = 1 << 8
"""Of how many producers kernels follow the batches; with more, batches are read one by one."""
ENDED_AT_ONCE = 1 << 10
FEW_ENTRIES = 16


class ProducerTable:
    """Lends what is known of producers to kernels, and takes it back.

    Args:
        state: what is known; None where batches of producers end a run.

    Attributes:
        arrays: what kernels are given.
    """

    def __init__(self, state: ProducerState | None) -> None:
        self._state = state
        rows = Table(pr.Producer, 0 if state is None else MOST_PRODUCERS)
        self.arrays = pr.Told(), rows, Table(pr.Ended, ENDED_AT_ONCE)
        self.arrays[0].count = pr.CLOSED
        self._is_lent = state is None

    def lend(self) -> None:
        """Tell kernels what is known, unless they were told."""
        if self._is_lent:
            return
        assert self._state is not None
        self._is_lent = True
        (told, rows, _), entries = self.arrays, self._state.entries
        told.count = len(entries) if self._can_be_lent(self._state) else pr.CLOSED
        if told.count > 0:
            rows.rows[: len(entries)] = [(producer_id, *entry) for producer_id, entry in entries.items()]

    @staticmethod
    def _can_be_lent(state: ProducerState) -> bool:
        """Whether all is in the entries, of which there are few: no open transactions share their first offset."""
        if len(state.entries) > MOST_PRODUCERS:
            return False
        return len(state.ongoing) == sum(one.first_offset >= 0 for one in state.entries.values()) and all(
            state.entries[producer_id].first_offset == first for first, producer_id in state.ongoing.items()
        )

    def take_ended(self) -> list[AbortedTransaction]:
        """Return the aborted ones among the transactions that ended since the last call."""
        told, _, ended = self.arrays
        found = ended.rows[: told.ended]
        told.ended = 0
        if self._state is not None and len(found):
            self._state.completed.update(found[["first_offset", "last_offset"]].tolist())
        aborted = found[found["is_aborted"] != 0]
        return [AbortedTransaction(0, *facts) for *facts, _ in aborted.tolist()]

    def give_back(self) -> None:
        """Write what kernels found back into the producers' state; call it before reading that."""
        told, rows, _ = self.arrays
        state = self._state
        if state is None or not self._is_lent:
            return
        self._is_lent = False
        if told.count >= 0:
            facts = rows.rows[: told.count].tolist()
            state.entries = {producer_id: ProducerEntry(*entry) for producer_id, *entry in facts}
            state.ongoing = {
                entry.first_offset: producer_id
                for producer_id, entry in state.entries.items()
                if entry.first_offset >= 0
            }


def take_many(producers: ProducerState, file: LogFile, data: a.Bytes, begins: a.Int64s, first: int) -> int:
    """Tell producers of batches, from a number on, and a file of transactions that they abort.

    Args:
        data: the headers of the batches, and all of control batches.
        begins: where each begins.

    Returns:
        The number of the first that is not plain.
    """
    table = ProducerTable(producers)
    table.lend()
    told, _, ended = table.arrays
    while True:
        first = int(pr.take_many(*table.arrays, data, begins, first))
        is_full = told.ended == len(ended)
        for aborted in table.take_ended():
            file.aborted.append(aborted)
        if not is_full:
            break
    table.give_back()
    return first


Notes = Callable[[Table[pr.Noted]], None]
"""Takes what is noted of batches."""


class ProducerNotes(ProducerTable):
    """Lets kernels pass over batches of producers, and tells what these are."""

    def __init__(self, notes: Notes) -> None:
        super().__init__(None)
        self.arrays[0].count = pr.NOTED
        self._notes = notes

    def take_ended(self) -> list[AbortedTransaction]:
        """Tell of the batches since the last call."""
        told, _, ended = self.arrays
        if told.ended:
            self._notes(Table(pr.Noted, ended.numbers[: told.ended].copy().view(pr.Noted.dtype)[:, 0]))
        told.ended = 0
        return []


@dataclass(slots=True)
class Follower:
    """Follows the batches of a segment.

    Attributes:
        takes: what does not end a run, see `indexing.follow`.
        producers: what is known of producers, told of their batches (call `give_back` before looking at it); None where
            batches of producers end a run.
        notes: takes the batches of producers in the place of these.
        begin: how many bytes the segment has before the file's view.
        until_offset: a batch that holds it or a later one ends a run.
        next_offset: the offset after the last batch of the runs so far; None before the first.
        next_newest: the offset after the last batch of magic 2 of the last run; None without one.
        last_at: where the last batch of the last run begins.
        records: number of records that the runs declare.
    """

    file: LogFile
    indexing: Indexing
    takes: int
    producers: ProducerState | None = None
    notes: Notes | None = None
    begin: int = 0
    until_offset: int = INT64_MAX
    next_offset: int | None = None
    next_newest: int | None = None
    last_at: int = 0
    records: int = 0
    _round_state: d.RoundState = field(default_factory=d.RoundState)
    _due: Table[d.Due] = field(default_factory=lambda: Table(d.Due, DUE_ENTRIES))
    _data: a.Bytes = field(init=False)
    _table: ProducerTable = field(init=False)

    def __post_init__(self) -> None:
        self._data = bytes_of(self.file)
        self._table = ProducerTable(self.producers) if self.notes is None else ProducerNotes(self.notes)

    def give_back(self) -> None:
        """Write what the runs so far did to producers back into their state."""
        self._table.give_back()

    def follow(self, position: int, leader_epoch: int = ANY_EPOCH, last_offset: int | None = None) -> int:
        """Process a run from a position on; return where it ends.

        Args:
            leader_epoch: a batch of a later epoch ends the run.
            last_offset: a batch that begins there or before ends the run; without it, one that begins before the end
                of the runs so far.

        Raises:
            BrokerError: an index cannot hold an entry that is due.
        """
        round_state, indexing = self._round_state, self.indexing
        self._table.lend()
        round_state.position, round_state.size = position, self.begin + position
        round_state.end, round_state.base_offset = self.file.size_bytes, self.file.base_offset
        round_state.interval, round_state.indexed_at = indexing.interval_bytes, indexing.indexed_at
        round_state.latest_time, round_state.latest_time_offset = indexing.latest
        round_state.records_read, round_state.epoch = 0, leader_epoch
        round_state.until_offset, round_state.last_newest = self.until_offset, d.NEVER_BEFORE
        round_state.latest = (self.next_offset or 0) - 1 if last_offset is None else last_offset
        while True:
            round_state.due = 0
            why = ix.follow(round_state, self._data, self._due, *self._table.arrays, self.takes)
            latest = int(round_state.latest_time), int(round_state.latest_time_offset)
            take_run(indexing, self._due.rows[: round_state.due], latest, int(round_state.indexed_at))
            for aborted in self._table.take_ended():
                self.file.aborted.append(aborted)
            if why != oc.NEEDS_ROOM:
                break
        if round_state.position > position:
            self.next_offset, self.last_at = int(round_state.latest) + 1, int(round_state.last_at)
        newest = int(round_state.last_newest)
        self.next_newest = None if newest == d.NEVER_BEFORE else newest + 1
        self.records += int(round_state.records_read)
        return int(round_state.position)


class Counter:
    """Counts the records of a segment; a context manager.

    Attributes:
        records: number of records of the runs so far.
    """

    def __init__(self, file: LogFile) -> None:
        self.records = 0
        self._data, self._end = bytes_of(file), file.size_bytes
        self._round_state = d.RoundState()
        self._scanner = Scanner()

    def count(self, position: int) -> int:
        """Count a run of plain entries from a position on; return where it ends."""
        round_state, data, scanner = self._round_state, self._data, self._scanner
        round_state.position, round_state.end, round_state.records_read = position, self._end, 0
        while counting.count(round_state, data, scanner.buffers) == oc.NEEDS_WINDOW:
            round_state.window_count = scanner.fill_window(data, int(round_state.position), self._end)
            round_state.window_next = 0
        self.records += int(round_state.records_read)
        return int(round_state.position)

    def __enter__(self) -> Self:
        self._scanner.__enter__()
        return self

    def __exit__(self, *what: Any) -> None:
        self._scanner.__exit__(*what)


def index_run(indexing: Indexing, size_bytes: int, buffer: Buffer, begin: int, end: int) -> None:
    """Note in a segment's indexes whole batches that are written behind so many bytes.

    Args:
        buffer: holds them from ``begin`` to ``end``.

    Raises:
        BrokerError: an index cannot hold an entry that is due.
    """
    round_state = d.RoundState()
    due = Table(d.Due, DUE_ENTRIES)
    round_state.interval, round_state.indexed_at = indexing.interval_bytes, indexing.indexed_at
    round_state.latest_time, round_state.latest_time_offset = indexing.latest
    round_state.size = size_bytes
    data = np.frombuffer(buffer, np.uint8, end - begin, begin)
    at = 0
    while at < len(data):
        round_state.due = 0
        at = int(ix.index(round_state, data, due, at))
        latest = int(round_state.latest_time), int(round_state.latest_time_offset)
        take_run(indexing, due.rows[: round_state.due], latest, int(round_state.indexed_at))


def bytes_of(file: LogFile) -> a.Bytes:
    """Return a segment as a read-only array."""
    data = np.frombuffer(file.view, np.uint8).view()
    data.flags.writeable = False
    return data


def take_run(indexing: Indexing, due: Rows, latest: tuple[int, int], indexed_at: int) -> None:
    """Do as `Indexing.take_run`, at once where there are many entries, each larger than the last, and room for all."""
    if len(due) < FEW_ENTRIES or not _take_rising(indexing, due):
        indexing.take_run(due.tolist(), latest, indexed_at)
    indexing.latest, indexing.indexed_at = latest, indexed_at


def _take_rising(indexing: Indexing, due: Rows) -> bool:
    """Append entries to both indexes; return False, with nothing done, where one may not be taken."""
    index, times = indexing.index, indexing.times
    base, end = index.base_offset, index.base_offset + MAX_OFFSETS_IN_SEGMENT
    last, last_time = index.last_offset, times.last_timestamp_ms
    last_of_time = times.base_offset + times.offsets[-1] if times.offsets else times.base_offset
    has_room = (
        len(index.offsets) + len(due) <= index.most_entries and len(times.offsets) + len(due) < times.most_entries
    )
    if not has_room or base != times.base_offset or end > INT64_MAX:
        return False
    offsets, positions, moments, their_offsets = (due[name] for name in ("offset", "position", "time", "time_offset"))
    is_rising = (
        (last if index.offsets else base - 1) < offsets[0]
        and last_of_time <= their_offsets[0]
        and last_time <= moments[0]
        and (offsets[:-1] < offsets[1:]).all()
        and (their_offsets[:-1] <= their_offsets[1:]).all()
        and (moments[:-1] <= moments[1:]).all()
    )
    if not is_rising or max(offsets[-1], their_offsets[-1]) >= end or not 0 <= positions[0] <= positions[-1] < 1 << 31:
        return False
    newer = moments > np.concatenate((np.array([last_time], np.int64), moments[:-1]))
    index.offsets.frombytes((offsets - base).astype(np.int32).tobytes())
    index.positions.frombytes(positions.astype(np.int32).tobytes())
    times.timestamps.frombytes(moments[newer].tobytes())
    times.offsets.frombytes((their_offsets[newer] - base).astype(np.int32).tobytes())
    return True
