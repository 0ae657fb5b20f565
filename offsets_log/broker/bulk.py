"""Check, count and index runs of plain batches by a kernel, in the form they have in a segment."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from offsets_log.broker.indexes import Indexing
from offsets_log.broker.log_file import LogFile
from offsets_log.columnar import arrays as a
from offsets_log.columnar.cleaning import indexing as ix
from offsets_log.columnar.cleaning import round_state as d
from offsets_log.log_format.segment import Buffer

DUE_ENTRIES = 1 << 12
MET_ENTRIES = 1 << 12
ANY_EPOCH = 1 << 31
NO_BOUND = (1 << 63) - 1


@dataclass(slots=True)
class Follower:
    """Follows the batches of a segment.

    Attributes:
        checks: whether a wrong checksum ends a run.
        begin: how many bytes the segment has before the file's view.
        until_offset: a batch that holds it or a later one ends a run.
        next_offset: the offset after the last batch of the runs so far; None before the first.
        last_at: where the last batch of the last run begins.
        takes_producers: whether batches with a producer are taken too; else the first of them ends a run.
        with_producers: where such batches begin, of the last run.
        records: number of records that the runs declare.
    """

    file: LogFile
    indexing: Indexing
    checks: bool
    begin: int = 0
    until_offset: int = NO_BOUND
    next_offset: int | None = None
    last_at: int = 0
    takes_producers: bool = False
    with_producers: list[int] = field(default_factory=list)
    records: int = 0
    _round_state: a.Int64s = field(default_factory=lambda: np.zeros(d.STATE_SIZE, np.int64))
    _due: a.Int64s = field(default_factory=lambda: np.zeros((DUE_ENTRIES, d.DUE_COLUMNS), np.int64))
    _met: a.Int64s = field(init=False)
    _data: a.Bytes = field(init=False)

    def __post_init__(self) -> None:
        self._data = bytes_of(self.file)
        self._met = np.zeros(MET_ENTRIES if self.takes_producers else 0, np.int64)

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
        round_state[d.POSITION], round_state[d.SIZE] = position, self.begin + position
        round_state[d.END], round_state[d.BASE_OFFSET] = self.file.size_bytes, self.file.base_offset
        round_state[d.INTERVAL], round_state[d.INDEXED_AT] = indexing.interval_bytes, indexing.indexed_at
        round_state[d.LATEST_TIME], round_state[d.LATEST_TIME_OFFSET] = indexing.latest
        round_state[d.RECORDS_READ], round_state[d.EPOCH] = 0, leader_epoch
        round_state[d.UNTIL_OFFSET] = self.until_offset
        round_state[d.LATEST] = (self.next_offset or 0) - 1 if last_offset is None else last_offset
        self.with_producers = []
        while True:
            round_state[d.DUE] = round_state[d.PRODUCERS] = 0
            why = ix.follow(round_state, self._data, self._due, self._met, self.checks)
            self.with_producers += self._met[: int(round_state[d.PRODUCERS])].tolist()
            latest = int(round_state[d.LATEST_TIME]), int(round_state[d.LATEST_TIME_OFFSET])
            indexing.take_run(self._due[: int(round_state[d.DUE])].tolist(), latest, int(round_state[d.INDEXED_AT]))
            if why != d.NEEDS_ROOM:
                break
        if round_state[d.POSITION] > position:
            self.next_offset, self.last_at = int(round_state[d.LATEST]) + 1, int(round_state[d.LAST_AT])
        self.records += int(round_state[d.RECORDS_READ])
        return int(round_state[d.POSITION])


def index_run(indexing: Indexing, size_bytes: int, buffer: Buffer, begin: int, end: int) -> None:
    """Note in a segment's indexes whole batches of magic 2 that are written behind so many bytes.

    Args:
        buffer: holds them from ``begin`` to ``end``.

    Raises:
        BrokerError: an index cannot hold an entry that is due.
    """
    round_state = np.zeros(d.STATE_SIZE, np.int64)
    due = np.zeros((DUE_ENTRIES, d.DUE_COLUMNS), np.int64)
    round_state[d.INTERVAL], round_state[d.INDEXED_AT] = indexing.interval_bytes, indexing.indexed_at
    round_state[d.LATEST_TIME], round_state[d.LATEST_TIME_OFFSET] = indexing.latest
    round_state[d.SIZE] = size_bytes
    data = np.frombuffer(buffer, np.uint8, end - begin, begin)
    at = 0
    while at < len(data):
        round_state[d.DUE] = 0
        at = int(ix.index(round_state, data, due, at))
        latest = int(round_state[d.LATEST_TIME]), int(round_state[d.LATEST_TIME_OFFSET])
        indexing.take_run(due[: round_state[d.DUE]].tolist(), latest, int(round_state[d.INDEXED_AT]))


def bytes_of(file: LogFile) -> a.Bytes:
    """Return a segment as a read-only array."""
    data = np.frombuffer(file.view, np.uint8).view()
    data.flags.writeable = False
    return data
