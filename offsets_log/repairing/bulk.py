"""Picking in bulk: a kernel finds runs of whole batches; batches near damage or in transactions are picked singly."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator

import numpy as np

from offsets_log.broker.bulk import ProducerTable
from offsets_log.columnar import arrays as a
from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.cleaning.whole import whole
from offsets_log.columnar.folds.known import new_state
from offsets_log.columnar.scan.layout import Scanner
from offsets_log.columnar.scan.reading import NO_BOUND, Cursor, Reading, ScanOrder, ScanPlace, Seen
from offsets_log.errors import Damage
from offsets_log.events import EVERYTHING, TailFound
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.completeness import Missing
from offsets_log.repairing.left_out import LeftOut
from offsets_log.repairing.picked import LAST_OFFSET, Picked, Run
from offsets_log.repairing.picking import Picking
from offsets_log.replay.profile import MODERN

Found = Picked | Run | LeftOut | Missing

MOST_SEGMENT_BYTES = 1 << 30
"""How large a segment may be that certainly fits into one again, whatever its batches become."""
MOST_DOUBTS = 1 << 10
"""How many batches of a run may be noted as not understood."""


def items_in_bulk(picking: Picking) -> Iterator[Found]:
    """Yield what `Picking.items` yields, with runs of batches in the place of single ones where a kernel tells them."""
    if not picking.unloadable.reads_newest:
        yield from picking.items()
        return
    order = ScanOrder(picking.log, EVERYTHING, None)
    cursor = order.begin(ScanPlace(0, 0)) or Cursor(ScanPlace(0, 0), -1, 0, entered=0)
    found: deque[Found] = deque()
    with Scanner() as scanner:
        reading = _Reading(order, cursor, scanner, picking, found)
        order.note_begin(reading.note)
        for _ in reading.steps(order.end, lambda count: None):
            while found:
                yield found.popleft()
    reading.give_back()
    deque(order.note_end(cursor, reading.note), maxlen=0)
    yield from found


class _Reading(Reading):
    def __init__(
        self, order: ScanOrder, cursor: Cursor, scanner: Scanner, picking: Picking, found: deque[Found]
    ) -> None:
        super().__init__(order, cursor, scanner, self._miss)
        self.found, self._picking = found, picking
        self._scan_state = new_state(MODERN, with_newer=True).scan_state
        self._producers = ProducerTable(picking.producers)
        self._doubts = np.zeros(1 + MOST_DOUBTS, np.int64)
        self.give_back = self._producers.give_back
        self._scan_state.most_bytes = NO_BOUND
        most_bytes = picking.unloadable.most_batch_bytes
        if most_bytes is not None:
            self._scan_state.most_bytes = most_bytes
        self._bounds = sorted({*picking.unloadable.problems, LAST_OFFSET + 1})

    def _miss(self, seen: Seen) -> None:
        """Keep offsets that are in no segment; damage and tails have methods of their own."""
        if isinstance(seen, Missing):
            self.found.append(seen)

    @property
    def scan_state(self) -> a.ScanState:
        return self._scan_state

    def scan(self, index: int, data: a.Bytes) -> int:
        segment, scan_state, scanner = self.order.log.segments[index], self._scan_state, self.scanner
        is_begun = segment is self._picking.segment and segment.base_offset is not None
        if not is_begun or len(data) > MOST_SEGMENT_BYTES:
            return oc.NOT_PLAIN
        begin = int(scan_state.at)
        scan_state.batches = self._doubts[0] = 0
        scan_state.until_offset = self._bound()
        self._producers.lend()
        outcome = whole(
            scan_state, scanner.buffers, data, *self._producers.arrays, self._doubts, self._picking.leader_epoch
        )
        aborted = self._producers.take_ended()
        self._picking.producers.completed.clear()
        if scan_state.at > begin:
            end, last_offset = int(scan_state.at), int(scan_state.last_offset)
            batches, latest_ms = int(scan_state.batches), int(scan_state.newest_ms)
            self._picking.pass_to(last_offset + 1)
            doubts = self._doubts[1 : 1 + self._doubts[0]].tolist()
            self.found.append(Run(segment, begin, end, batches, last_offset, latest_ms, aborted, doubts))
        return int(outcome)

    def _bound(self) -> int:
        """Return the next offset whose batch must be picked singly."""
        return self._bounds[min(bisect_right(self._bounds, self.cursor.last_offset), len(self._bounds) - 1)]

    def take(self, index: int, batch: RecordBatch) -> None:
        self.give_back()
        self.found += self._picking.take(self.order.log.segments[index], batch)

    def lose(self, damage: Damage) -> None:
        self.found += self._picking.lose(damage)

    def end(self, found: TailFound) -> None:
        self.found += self._picking.end(found.segment, found.tail)
