"""Batches of a log as rows: where each is and what its bytes are, not what its records hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.jit.compiled import U, kernel
from offsets_log.columnar.jit.kinds import Bytes
from offsets_log.columnar.jit.records import Long, Record, Table
from offsets_log.columnar.scan import staging as sc
from offsets_log.columnar.scan.layout import Scanner
from offsets_log.columnar.scan.reading import Cursor, Reading, ScanOrder, ScanPlace
from offsets_log.columnar.wire import batches as bt
from offsets_log.columnar.wire.primitives import be32, be64
from offsets_log.errors import Damage
from offsets_log.events import EVERYTHING, TailFound, Until
from offsets_log.log_format import batch as b
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.partition_log import PartitionLog, iter_log
from offsets_log.log_format.segment import Tail

ROWS = 1 << 16
"""Rows of a table at most, where a kernel makes it."""
HORIZON = b.DELETE_HORIZON_MASK
UNCOUNTED = -1
"""Of how many records a compressed message of magic 0 or 1 is, no header says."""


class BatchRow(Record):
    """A batch. Two of the same first offset, size and checksum hold the same, whatever their leader epochs."""

    base_offset: Long
    size_bytes: Long
    checksum: Long
    last_offset: Long
    leader_epoch: Long  # NO_PARTITION_LEADER_EPOCH before magic 2
    records_count: Long  # or UNCOUNTED
    delete_horizon: Long  # not 0: a cleaner wrote the batch again, which may have lost no record by that
    max_timestamp_ms: Long  # or NO_TIMESTAMP
    segment: Long  # the number of its segment in the log
    position: Long  # in that segment


@kernel
def _note(scan_state: a.ScanState, rows: Table[BatchRow], data: Bytes) -> Any:
    """Note the batches of a segment from ``scan_state.at`` on; ``scan_state.batches`` is how many there are."""
    begin = scan_state.at
    scan_state.batches = 0
    while scan_state.at < scan_state.stop:
        if scan_state.at - begin >= scan_state.pause or scan_state.batches >= len(rows):
            return oc.PAUSED
        at = scan_state.at
        size = bt.next_batch_at(scan_state, data, at, np.int64(len(data)))
        refused = sc.refusal(scan_state, data, at, size)
        if refused != oc.FINISHED:
            return refused
        row = rows[U(scan_state.batches)]
        row.base_offset = be64(data, at)
        row.size_bytes = size
        row.checksum = bt.checksum_of(data, at)
        row.last_offset = bt.last_offset(data, at)
        row.leader_epoch = bt.leader_epoch(data, at)
        row.max_timestamp_ms = bt.max_timestamp(data, at)
        row.position = at
        attributes = bt.attributes_of(data, at)
        if bt.is_older(data, at):
            row.records_count = 1 if attributes & bt.CODEC_MASK == 0 else UNCOUNTED
            row.delete_horizon = 0
        else:
            row.records_count = be32(data, at + bt.RECORDS_COUNT)
            row.delete_horizon = attributes & HORIZON
        scan_state.last_offset = row.last_offset
        scan_state.batches += 1
        scan_state.at = at + size
    return oc.FINISHED


Found = Table[BatchRow] | Damage | Tail


class _Noting(Reading):
    """The way of a log into rows: ``found`` has what the last step met."""

    def __init__(self, order: ScanOrder, cursor: Cursor, scanner: Scanner) -> None:
        super().__init__(order, cursor, scanner, lambda seen: None)
        self._scan_state = a.new_scan_state(np.zeros(0, np.int64), seed=0)
        self._rows = Table(BatchRow, ROWS)
        self.found: list[Found] = []

    @property
    def scan_state(self) -> a.ScanState:
        return self._scan_state

    def scan(self, index: int, data: a.Bytes) -> int:
        outcome = int(_note(self._scan_state, self._rows, data))
        if noted := self._scan_state.batches:
            rows = self._rows.up_to(noted).copy()
            rows.column(BatchRow.segment)[:] = index
            self.found.append(rows)
        return outcome

    def take(self, index: int, batch: RecordBatch) -> None:
        self.found.append(_rows_of([(index, batch)]))

    def lose(self, damage: Damage) -> None:
        self.found.append(damage)

    def end(self, found: TailFound) -> None:
        self.found.append(found.tail)


def rows_of_piece(order: ScanOrder, cursor: Cursor, end: ScanPlace, scanner: Scanner) -> Iterator[Found]:
    """Yield what a kernel finds from a cursor on, as `batch_rows`."""
    reading = _Noting(order, cursor, scanner)
    for _ in reading.steps(end, lambda size_bytes: None):
        yield from reading.found
        reading.found.clear()
    yield from reading.found  # zeros behind the last batch take no step


def batch_rows(log: PartitionLog, until: Until = EVERYTHING, *, in_bulk: bool) -> Iterator[Found]:
    """Yield the batches, damaged pieces and the tail of a log as `iter_log` has them, batches some at a time.

    Args:
        until: where to stop.
        in_bulk: whether a kernel reads them, which is worth its start for a large log.
    """
    if not in_bulk:
        batches: list[tuple[int, RecordBatch]] = []
        numbers = {id(segment): number for number, segment in enumerate(log.segments)}
        for segment, item in iter_log(log):
            if isinstance(item, RecordBatch):
                if until.stops_before(item):
                    break
                batches.append((numbers[id(segment)], item))
            else:
                yield _rows_of(batches)
                yield item
                batches = []
        yield _rows_of(batches)
        return
    order = ScanOrder(log, until, None)
    cursor = order.begin(ScanPlace(0, 0)) or Cursor(ScanPlace(0, 0), -1, 0, entered=0)
    with Scanner() as scanner:
        yield from rows_of_piece(order, cursor, order.end, scanner)


def _rows_of(batches: Sequence[tuple[int, RecordBatch]]) -> Table[BatchRow]:
    rows = Table(BatchRow, len(batches))
    for row, (segment, batch) in zip(rows, batches, strict=True):
        row.segment, row.position = segment, batch.position
        row.base_offset, row.last_offset = batch.base_offset, batch.last_offset
        row.size_bytes, row.checksum = batch.size_bytes, batch.crc
        row.leader_epoch, row.max_timestamp_ms = batch.partition_leader_epoch, batch.max_timestamp_ms
        is_wrapper = batch.magic < b.NEWEST_MAGIC and batch.attributes & bt.CODEC_MASK
        row.records_count = UNCOUNTED if is_wrapper else batch.records_count
        row.delete_horizon = 0 if batch.magic < b.NEWEST_MAGIC else batch.attributes & HORIZON
    return rows
