"""Turn a log to entries of `history`: by `kernels`, and where it is not plain by `pipeline`, in its place.

The rules are those of `investigate.history.History`.
"""

from __future__ import annotations

from collections.abc import Iterator

from offsets_log.columnar import arrays as a
from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.folds.replay import Piece
from offsets_log.columnar.history import entries as e
from offsets_log.columnar.history.slow_path import BeyondError
from offsets_log.columnar.history.state import HistoryState
from offsets_log.columnar.scan.layout import Scanner
from offsets_log.columnar.scan.reading import Advance, Cursor, Note, ScanOrder, ScanPlace
from offsets_log.events import Event, LogEvent, Until
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.control_record import ControlRecord
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.messages.registry import CoordinatorRecord
from offsets_log.replay.fold import place_of, replay_into
from offsets_log.replay.topic_names import topic_names_in


class HistoryPiece(Piece):
    """A log that is turned to entries."""

    def __init__(self, order: ScanOrder, cursor: Cursor, scanner: Scanner, note: Note, state: HistoryState) -> None:
        super().__init__(order, cursor, scanner, note, state)
        self.history = state
        state.decode = order.decoder.decode

    def scan(self, index: int, data: a.Bytes) -> int:
        while True:
            match self.scan_on(data):
                case oc.KEY_NOT_PLAIN:
                    self._key_on_slow_path(index)
                case oc.NEEDS_GROUP:
                    self._group_record(data)
                case outcome if not self.history.give(outcome):
                    return outcome

    def scan_on(self, data: a.Bytes) -> int:
        return self.history.scan(data, self.scanner)

    def _group_record(self, data: a.Bytes) -> None:
        """Note a record of a group, which the kernel has found valid."""
        history, counts = self.history, self.history.counts
        history.slow_path.note_waiting()
        staged = self.scanner.staged[self.scan_state.flushed]
        source = self.scanner.window if self.scan_state.in_window else data
        record = self.order.decoder.decode(staged.raw_key(source), staged.raw_value(source))
        group, timestamp_ms = counts[[e.OF_GROUP, e.OF_TIME]].tolist()
        for topic_id, name in topic_names_in(record):
            history.add_topic_name(topic_id, name, int(staged.offset))
        if history.lives[group, e.GROUP_SHOWN] == e.WANTED:
            history.slow_path.note(record, int(staged.offset), timestamp_ms, group)
        self.scan_state.flushed += 1

    def take(self, index: int, batch: RecordBatch) -> None:
        self.history.slow_path.note_waiting()
        replay_into(self.state, self._watch(self.events(index, batch)), on_damage=self.note)

    def _watch(self, events: Iterator[LogEvent]) -> Iterator[LogEvent]:
        """Pass each event to a replay, which says whether it would be taken, and note it."""
        history = self.history
        for event in events:
            history.is_replayed = False
            match event:
                case Event(decoded=CoordinatorRecord() as record) if not history.shows_group(record.group):
                    for topic_id, name in topic_names_in(record):
                        history.add_topic_name(topic_id, name, event.record.offset)
                case Event(decoded=CoordinatorRecord() as record) if record.is_offset_commit:
                    if place_of(history, event) != event.record.offset:
                        raise BeyondError
                    yield event
                    history.note_offset(event, record)
                case Event(decoded=CoordinatorRecord() as record):
                    yield event
                    history.slow_path.note(record, event.record.offset, event.record.timestamp_ms)
                case Event(control=ControlRecord() as control):
                    yield event
                    history.note_marker(event, control)
                case _:
                    yield event


def read_history(
    log: PartitionLog,
    state: HistoryState,
    *,
    note: Note,
    until: Until,
    release: tuple[int, int] | None,
    advance: Advance,
) -> None:
    """Read the entries of one log, in its order.

    Args:
        note: called with what could not be read, with tails and gaps.
        advance: called with the number of bytes read since the last call.
    """
    order = ScanOrder(log, until, release)
    order.note_begin(note)
    cursor = order.begin(ScanPlace(0, 0))
    assert cursor is not None
    with Scanner() as scanner:
        HistoryPiece(order, cursor, scanner, note, state).run(order.end, advance)
    state.slow_path.note_waiting()
    for _ in order.note_end(cursor, note):
        pass
