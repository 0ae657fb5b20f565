"""A copy of a partition as rows of its whole batches, and the bytes between them that are none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from offsets_log.broker.leader_epochs import LeaderEpochs
from offsets_log.broker.leader_lines import EpochEntry, Line, line_of
from offsets_log.columnar.jit.records import Table
from offsets_log.columnar.scan.batch_rows import BatchRow, batch_rows
from offsets_log.errors import Damage
from offsets_log.log_format.batch import RecordBatch, decode_batch_header
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.log_format.segment import Tail

Rows = Table[BatchRow]
Longs = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Copy:
    """One of several copies of a partition.

    Places are bytes from the start of its first segment on, as if all segments were one file: with the zeros that
    nobody wrote, but for those at the end of the last one.

    Attributes:
        rows: its whole batches that are in their place.
        told_epochs: what its ``leader-epoch-checkpoint`` says; empty if that cannot be read.
    """

    log: PartitionLog
    rows: Rows
    told_epochs: LeaderEpochs

    @classmethod
    def of(cls, log: PartitionLog, told_epochs: LeaderEpochs, *, in_bulk: bool) -> Copy:
        """Read a copy; ``in_bulk`` as of `batch_rows`."""
        found = [rows for rows in batch_rows(log, in_bulk=in_bulk) if not isinstance(rows, Damage | Tail)]
        numbers = np.concatenate([Table(BatchRow, 0).numbers, *(rows.numbers for rows in found)])
        return cls(log, Table.of_numbers(BatchRow, numbers), told_epochs)

    def without(self, numbers: list[int]) -> Copy:
        """Return the copy with some batches counted as damaged."""
        kept = np.ones(len(self.rows), np.bool_)
        kept[numbers] = False
        return Copy(self.log, self.rows.of(kept), self.told_epochs)

    @cached_property
    def segment_begins(self) -> Longs:
        """The place of each segment, and the end of the last one."""
        *others, last = self.log.segments
        return np.cumsum([0, *(segment.size_bytes for segment in others), last.length], dtype=np.int64)

    @cached_property
    def begins(self) -> Longs:
        """The place of each batch, and the end of the copy."""
        at = self.segment_begins[self.rows.column(BatchRow.segment)] + self.rows.column(BatchRow.position)
        return np.append(at, self.segment_begins[-1])

    @cached_property
    def ends(self) -> Longs:
        """The begin of the copy, and the end of each batch: the batch of a number begins at or behind it."""
        return np.concatenate([[0], self.begins[:-1] + self.rows.column(BatchRow.size_bytes)])

    @cached_property
    def is_broken(self) -> npt.NDArray[np.bool_]:
        """Whether bytes that are no batch stand before each batch, and behind the last one."""
        broken: npt.NDArray[np.bool_] = self.begins > self.ends
        return broken

    @cached_property
    def begin_offset(self) -> int:
        """Where the copy begins, by its first file's name, else by its first batch."""
        named = self.log.segments[0].base_offset
        return named if named is not None else (int(self.rows[0].base_offset) if len(self.rows) else 0)

    def is_absent_before(self, number: int) -> bool:
        """Whether the copy has no file for offsets between a batch and the one before it, if any are missing there."""
        if number == len(self.rows):
            return True
        if number == 0:
            return self.begin_offset > 0
        before, behind = self.rows[number - 1], self.rows[number]
        named = self.log.segments[int(behind.segment)].base_offset
        is_boundary = named is not None and before.segment != behind.segment
        return is_boundary and int(named or 0) > int(before.last_offset) + 1

    def first_offset_behind(self, number: int) -> int:
        """Return the least offset that damaged bytes before a batch may have: 0, or that in the name of their file."""
        at = int(self.ends[number])
        segment = int(self.segment_begins.searchsorted(at, "right")) - 1
        is_file = segment < len(self.log.segments) and int(self.segment_begins[segment]) == at
        return (self.log.segments[segment].base_offset or 0) if is_file else 0

    def pieces(self, begin: int, end: int) -> Iterator[tuple[int, int, int]]:
        """Yield the segments that a range of places lies in, each with the range there."""
        first = int(self.segment_begins.searchsorted(begin, "right")) - 1
        for number in range(first, len(self.log.segments)):
            start, stop = int(self.segment_begins[number]), int(self.segment_begins[number + 1])
            if start >= end:
                break
            if begin < stop:
                yield number, max(begin, start) - start, min(end, stop) - start

    def segment_of(self, number: int) -> Segment:
        """Return the segment of a batch."""
        return self.log.segments[int(self.rows[number].segment)]

    def batch(self, number: int) -> RecordBatch:
        """Return a batch."""
        row = self.rows[number]
        begin = int(row.position)
        raw = bytes(memoryview(self.segment_of(number).buffer)[begin : begin + int(row.size_bytes)])
        return decode_batch_header(raw, begin)

    def place(self, number: int) -> str:
        """Return where a batch stands, in words."""
        return f"position {int(self.rows[number].position)} of {self.segment_of(number).file}"

    @cached_property
    def line(self) -> Line:
        """Its leader epochs."""
        epochs, count = self.rows.column(BatchRow.leader_epoch), len(self.rows)
        bounds = [0, *(np.flatnonzero(epochs[1:] != epochs[:-1]) + 1).tolist(), count] if count else []
        runs = [
            EpochEntry(int(epochs[first]), int(self.rows[first].base_offset), int(self.rows[behind - 1].last_offset))
            for first, behind in pairwise(bounds)
        ]
        return line_of(runs, self.told_epochs, int(self.rows[-1].last_offset) + 1 if count else 0)
