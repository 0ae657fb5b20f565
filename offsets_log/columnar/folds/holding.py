"""Ledgers of those who ask who held partitions: with the records that say it, and with topic ids of commits.

Of a replay only the keys are kept. Records of groups, and commits that name a topic id first, wait in the kernel until
the rows are taken: Python reads them then.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.folds import offsets as fold
from offsets_log.columnar.folds.ledgers import LedgerPiece, LedgerReplay, LedgerState
from offsets_log.columnar.folds.state import canonical_key
from offsets_log.columnar.jit.compiled import U, inlined, kernel, part
from offsets_log.columnar.jit.kinds import Bytes
from offsets_log.columnar.ledger.columns import FIRST, USED, LedgerArrays
from offsets_log.columnar.ledger.kernels import emit_one, is_full
from offsets_log.columnar.ledger.ledger import Batch, Question, own_topic_id, says_who_holds
from offsets_log.columnar.scan import staging as sc
from offsets_log.columnar.scan.interner import has_room, intern_group
from offsets_log.columnar.scan.waiting import Waiting, new_waiting, taken, wait
from offsets_log.columnar.wire.primitives import be64
from offsets_log.events import Event
from offsets_log.log_format.java_text import plain
from offsets_log.messages.registry import CoordinatorRecord
from offsets_log.messages.repeated import RepeatedRecords
from offsets_log.replay.fold import TakesNothing
from offsets_log.replay.groups import GROUP_METADATA
from offsets_log.replay.profile import Profile

TOPIC_ID_SIZE = 16


@inlined
def _topic_id(arrays: a.Arrays, source: Any, id_at: Any) -> Any:
    """Return the number of a topic id and one more, 0 of none; NEEDS_ROOM without room."""
    if be64(source, id_at) == 0 and be64(source, id_at + 8) == 0:
        return np.int64(0)
    if not has_room(arrays, TOPIC_ID_SIZE):
        return np.int64(oc.NEEDS_ROOM)
    return np.int64(intern_group(arrays, source, id_at, np.int64(TOPIC_ID_SIZE)) + 1)


@part
def _take(arrays: a.Arrays, waiting: Waiting, records: a.Records, ledger: LedgerArrays, number: Any, place: Any) -> Any:
    """Write the row of a staged record, and put it aside if it says who holds what: FINISHED, or why not."""
    staged, source, i = records.staged, records.source, U(number)
    topic_id = np.int64(0)
    if staged[i].kind <= a.TOMBSTONE:
        row = np.int64(fold.row_of(arrays, staged, source, number, place, np.int64(a.IS_GROUP)))
        if row < 0:
            return row
        says = arrays.rows[row].target == a.IS_GROUP
        if staged[i].kind == a.VALUE and staged[i].topic_id_at >= 0:
            topic_id = np.int64(_topic_id(arrays, source, staged[i].topic_id_at))
            if topic_id < 0:
                return topic_id
            says = topic_id > 0 and arrays.groups[topic_id - 1].is_named == 0
        if says and not wait(waiting, records, i, ledger.counts[FIRST] + ledger.counts[USED]):
            return np.int64(oc.FULL)
        if topic_id > 0:
            arrays.groups[topic_id - 1].is_named = 1
        staged[i].row = row
    emit_one(ledger, arrays, records, arrays.scan_state.staged, number, topic_id)
    return np.int64(oc.FINISHED)


@part
def _flush(arrays: a.Arrays, waiting: Waiting, records: a.Records, ledger: LedgerArrays) -> Any:
    """Write the rows of what is staged, from where it was left; as `fold.flush`."""
    scan_state = arrays.scan_state
    while scan_state.flushed < scan_state.staged:
        first = scan_state.flushed
        last = min(first + a.BLOCK, scan_state.staged)
        fold.prepare(arrays, records.source, records.staged, first, last)
        for number in range(first, last):
            scan_state.flushed = number
            taken_as = np.int64(_take(arrays, waiting, records, ledger, np.int64(number), np.int64(number - first)))
            if taken_as != oc.FINISHED:
                return taken_as
        scan_state.flushed = last
    scan_state.staged = 0
    scan_state.flushed = 0
    return np.int64(oc.FINISHED)


@kernel
def scan(waiting: Waiting, arrays: a.Arrays, buffers: a.Buffers, data: Bytes, ledger: LedgerArrays) -> Any:
    """Write the rows of a segment from ``scan_state.at`` on; as `offsets.scan`, or FULL where no more records wait."""
    scan_state = arrays.scan_state
    begin = scan_state.at
    outcome = np.int64(oc.GO_ON)
    while outcome == oc.GO_ON:
        outcome = np.int64(sc.stage(arrays, buffers, data, begin))
        if is_full(ledger, scan_state.staged - scan_state.flushed):
            return np.int64(oc.NEEDS_ROOM)
        source = buffers.window if scan_state.in_window else data
        flushed = _flush(arrays, waiting, a.Records(buffers.staged, source, data), ledger)
        if flushed != oc.FINISHED:
            return flushed
        outcome = sc.outcome_of(scan_state, begin, outcome)
    return outcome


@kernel
def number_topic_id(arrays: a.Arrays, topic_id: Bytes) -> Any:
    """Return what `_topic_id` does, of an id that was read on the slow path and has its name there."""
    found = np.int64(_topic_id(arrays, topic_id, np.int64(0)))
    if found > 0:
        arrays.groups[found - 1].is_named = 1
    return found


class HeldState(TakesNothing, LedgerState):
    """A ledger with the records that say who holds what, and with topic ids."""

    def __init__(self, profile: Profile, question: Question, **how: Any) -> None:
        self.waiting = new_waiting()
        self._records: list[tuple[int, CoordinatorRecord]] = []
        super().__init__(profile, question, **how)
        self._decode = RepeatedRecords(self.release).decode

    def read_waiting(self) -> int:
        """Read the records that wait; return how many they were."""
        found = taken(self.waiting)
        self._records += ((one.group, self._decode(one.key, one.value)) for one in found)
        return len(found)

    def more_waiting(self) -> None:
        """Have records wait; where none does, make room for a larger one."""
        if not self.read_waiting():
            self.waiting = self.waiting._replace(data=np.zeros(2 * len(self.waiting.data), np.uint8))

    def _take(self, batch: Batch) -> None:
        self.read_waiting()
        records, self._records = self._records, []
        super()._take(batch._replace(records=records))

    def count(self, event: Event | None, size_bytes: int) -> None:
        """Add the row of a record as `LedgerState.count` does, behind those that wait."""
        if event is not None and (record := event.decoded) is not None and says_who_holds(record):
            self.read_waiting()
            row = self.rows.make_ready()  # first: it may have all records taken
            self._records.append((row, record))
        super().count(event, size_bytes)

    def row_of(self, event: Event, record: CoordinatorRecord) -> int:
        """Return the row of the raw key; that of a newer group's record is a key of its group."""
        if record.record_type < a.KEY_TYPES:
            return super().row_of(event, record)
        assert event.record.key is not None
        return self.raw_row(event.record.key, canonical_key(GROUP_METADATA, (plain(record.group),)))

    def topic_id_of(self, record: CoordinatorRecord) -> int:
        topic_id = np.frombuffer(own_topic_id(record), np.uint8)
        while (number := number_topic_id(self.arrays.all, topic_id)) < 0:
            self.grow()
        return int(number)


class HeldPiece(LedgerPiece):
    """A log on its way into a ledger with the records that say who holds what."""

    state: HeldState

    def scan_on(self, data: Bytes) -> int:
        state = self.state
        while True:
            outcome = int(scan(state.waiting, state.arrays.all, self.scanner.buffers, data, state.ledger))
            if outcome != oc.FULL:
                return outcome
            state.more_waiting()


class HeldReplay(LedgerReplay):
    """One log, read with a ledger for those who ask who held partitions."""

    piece = HeldPiece
    kind = HeldState
