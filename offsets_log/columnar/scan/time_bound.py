"""Where a bound by time ends the reading of a log, and which batches behind that place are of times within it again.

A replay up to a time stops at the first batch that is later: what was appended before it is the state of that moment.
Where a clock jumped, or a time is corrupt, that leaves out batches that are not later at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.jit.compiled import inlined, kernel
from offsets_log.columnar.jit.kinds import Bytes
from offsets_log.columnar.jit.records import Long, Record
from offsets_log.columnar.scan import staging as sc
from offsets_log.columnar.scan.layout import Scanner
from offsets_log.columnar.scan.reading import Cursor, Reading, ScanOrder, ScanPlace
from offsets_log.columnar.wire import batches as bt
from offsets_log.columnar.wire.primitives import be64
from offsets_log.events import Until
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.partition_log import PartitionLog, batches_of


@dataclass(frozen=True, slots=True)
class Stop:
    """The batch that ends the reading, and those behind it that are within the bound.

    Attributes:
        record_offset, time_ms: where the batch begins, and its max timestamp.
        batches: how many of those behind it are not later than the bound, usually none.
        end_offset: behind the last of these; without any it is where the batch begins.
    """

    record_offset: int
    time_ms: int
    batches: int
    end_offset: int


class TimeBound(Record):
    """What is known of a run of batches, by their headers."""

    time_ms: Long
    stop_offset: Long  # NOTHING while no batch is later
    stop_time_ms: Long
    within: Long  # batches that are not later
    within_before: Long  # of these, those before the stop
    last_offset: Long  # of the last of them

    @classmethod
    def of(cls, time_ms: int) -> TimeBound:
        """Return what is known before any batch."""
        bound = cls()
        bound.time_ms = max(bt.INT64_MIN, min(time_ms, bt.INT64_MAX))
        bound.stop_offset = a.NOTHING
        return bound

    def join(self, later: TimeBound) -> None:
        """Add what is known of the batches that follow."""
        if self.stop_offset == a.NOTHING and later.stop_offset != a.NOTHING:
            self.stop_offset, self.stop_time_ms = later.stop_offset, later.stop_time_ms
            self.within_before = self.within + later.within_before
        self.within += later.within
        self.last_offset = max(self.last_offset, later.last_offset)

    @property
    def stop(self) -> Stop | None:
        """Where the reading ends; None where no batch is later than the bound."""
        if self.stop_offset == a.NOTHING:
            return None
        batches = int(self.within - self.within_before)
        end_offset = int(self.last_offset) + 1 if batches else int(self.stop_offset)
        return Stop(int(self.stop_offset), int(self.stop_time_ms), batches, end_offset)


@inlined
def _meet(bound: TimeBound, base_offset: Any, last_offset: Any, time_ms: Any) -> None:
    """Note the next batch; one without a time is neither later nor within."""
    if time_ms > bound.time_ms:
        if bound.stop_offset == a.NOTHING:
            bound.stop_offset = base_offset
            bound.stop_time_ms = time_ms
            bound.within_before = bound.within
    elif time_ms != bt.NO_TIME:
        bound.within += 1
        bound.last_offset = last_offset


@kernel
def _note(scan_state: a.ScanState, bound: TimeBound, data: Bytes) -> Any:
    """Note the batches of a segment from ``scan_state.at`` on."""
    begin = scan_state.at
    while scan_state.at < scan_state.stop:
        if scan_state.at - begin >= scan_state.pause:
            return oc.PAUSED
        at = scan_state.at
        size = bt.next_batch_at(scan_state, data, at, np.int64(len(data)))
        refused = sc.refusal(scan_state, data, at, size)
        if refused != oc.FINISHED:
            return refused
        _meet(bound, be64(data, at), bt.last_offset(data, at), bt.max_timestamp(data, at))
        scan_state.last_offset = bt.last_offset(data, at)
        scan_state.at = at + size
    return oc.FINISHED


class _Noting(Reading):
    """The way of a log past its headers; damage is left out."""

    def __init__(self, order: ScanOrder, cursor: Cursor, scanner: Scanner, bound: TimeBound) -> None:
        super().__init__(order, cursor, scanner, lambda seen: None)
        self._scan_state = a.new_scan_state(np.zeros(0, np.int64), seed=0)
        self._bound = bound

    @property
    def scan_state(self) -> a.ScanState:
        return self._scan_state

    def scan(self, index: int, data: a.Bytes) -> int:
        return int(_note(self._scan_state, self._bound, data))

    def take(self, index: int, batch: RecordBatch) -> None:
        _meet(self._bound, batch.base_offset, batch.last_offset, batch.max_timestamp_ms)


def note_piece(order: ScanOrder, cursor: Cursor, end: ScanPlace, scanner: Scanner, time_ms: int) -> TimeBound:
    """Return what is known of the batches from a cursor on; the order itself has no bound by time."""
    bound = TimeBound.of(time_ms)
    for _ in _Noting(order, cursor, scanner, bound).steps(end, lambda size_bytes: None):
        pass
    return bound


def find_stop(log: PartitionLog, time_ms: int, until_offset: int | None = None, *, in_bulk: bool) -> Stop | None:
    """Return where a bound by time ends the reading of a log; None if it does not.

    Damage is left out as it is when records are read.

    Args:
        until_offset: only batches that begin below it are asked about.
        in_bulk: whether a kernel reads the headers, which is worth its start for a large log.
    """
    order = ScanOrder(log, Until(until_offset), None)
    if in_bulk:
        cursor = order.begin(ScanPlace(0, 0)) or Cursor(ScanPlace(0, 0), -1, 0, entered=0)
        with Scanner() as scanner:
            return note_piece(order, cursor, order.end, scanner, time_ms).stop
    bound = TimeBound.of(time_ms)
    for batch in batches_of(log):
        if order.until.stops_before(batch):
            break
        _meet(bound, batch.base_offset, batch.last_offset, batch.max_timestamp_ms)
    return bound.stop
