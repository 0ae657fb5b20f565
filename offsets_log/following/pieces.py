"""Read the pieces of a growing log: record by record, or by kernels where a piece is so large that it pays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from offsets_log.columnar.choose.selected import events_of, items_of_piece
from offsets_log.columnar.choose.selection import Selection
from offsets_log.columnar.folds.ledgers import LedgerPiece, LedgerState
from offsets_log.columnar.folds.offsets import scan
from offsets_log.columnar.folds.replay import Piece
from offsets_log.columnar.folds.state import ColumnarState
from offsets_log.columnar.jit.compiled import Kernel, is_kept
from offsets_log.columnar.jit.modes import IS_PYTHON
from offsets_log.columnar.materialize.partial import partial_state
from offsets_log.columnar.scan.layout import Scanner
from offsets_log.columnar.scan.reading import Note, ScanOrder
from offsets_log.errors import Damage
from offsets_log.events import EVERYTHING, Event, LogEvent, Wants, batch_events
from offsets_log.following.growth import GrownPiece, moved
from offsets_log.investigate.growing_history import GrowingHistory
from offsets_log.investigate.writer_counts import WriterCounts
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.java_text import plain
from offsets_log.log_format.partition_log import LogWalk
from offsets_log.pipeline import replay
from offsets_log.replay.partial import PartialState
from offsets_log.replay.profile import Profile
from offsets_log.rows.activity import Activity
from offsets_log.rows.batch_bytes import counted

BULK_FROM_BYTES = 1 << 20
"""A piece of so many bytes is read by kernels, and smaller ones once so many bytes were read."""
WORTH_BYTES = 1 << 13
"""A smaller piece is never worth it."""


class Written(Activity):
    """What each group wrote in what was read, but for groups that were forgotten.

    Attributes:
        records, bytes: group → its records, and their shares of their batches' bytes.
    """

    def __init__(self) -> None:
        super().__init__()
        self.records: dict[str, int] = {}
        self.bytes: dict[str, int] = {}

    def watch(self, events: Iterable[LogEvent]) -> Iterator[LogEvent]:
        """Note times and sizes of records while passing events on to a replay."""
        return counted(super().watch(events), self._count)

    def _count(self, event: Event | None, size_bytes: int) -> None:
        if event is not None and event.decoded is not None:
            self.add(plain(event.decoded.group), 1, size_bytes)

    def add(self, group: str, records: int, size_bytes: int) -> None:
        """Add what a group wrote."""
        self.records[group] = self.records.get(group, 0) + records
        self.bytes[group] = self.bytes.get(group, 0) + size_bytes

    def add_counted(self, counts: WriterCounts, last_ms: Mapping[str, int]) -> None:
        """Add what kernels counted of groups, and when these last wrote."""
        for group, time_ms in last_ms.items():
            self.saw(group, time_ms)
        for _, name, tally in counts.tallies:
            if name is not None:
                self.add(str(name[0]), tally.records, tally.bytes)

    def forget(self, groups: Iterable[str]) -> None:
        """Keep nothing of some groups: what they wrote from here on is counted again."""
        for group in groups:
            for of_groups in (self.last_ms, self.records, self.bytes):
                of_groups.pop(group, None)


@dataclass(slots=True)
class PieceReader:
    """How pieces are read.

    Args:
        scanner: the buffers of kernels, entered.
        release: the Kafka release that wrote the log, where layouts share a version number.
        bulk_from: a piece of so many bytes is read by kernels; smaller ones only where these are compiled already, so
            that no line waits for it, and once so much was read that linking them is worth it.
    """

    scanner: Scanner
    release: tuple[int, int] | None = None
    bulk_from: int = BULK_FROM_BYTES
    _read_bytes: int = 0

    def is_bulk(self, piece: GrownPiece) -> bool:
        """Whether a piece is read by kernels; asked once of each."""
        size_bytes = piece.log.bytes_to_read
        self._read_bytes += size_bytes
        if size_bytes >= self.bulk_from:
            return True
        return size_bytes >= WORTH_BYTES and self._read_bytes >= self.bulk_from and is_kept(scan)

    def events(self, piece: GrownPiece, wants: Wants | None = None) -> Iterator[LogEvent]:
        """Yield all events of a piece; ``wants`` as in `pipeline.iter_events`."""
        log, cursor = piece.log, piece.cursor
        segment = log.segments[0]
        for item, last_offset in LogWalk(log).items(0, 0, cursor.last_offset):
            match item:
                case Damage():
                    cursor.is_broken = True
                    yield moved(item, piece.position)
                case RecordBatch():
                    cursor.last_offset, cursor.next_offset, cursor.is_broken = last_offset, item.next_offset, False
                    for event in batch_events(log, segment, item, EVERYTHING, self.release, wants):
                        yield _in_place(event, piece)

    def chosen(self, piece: GrownPiece, selection: Selection) -> Iterator[LogEvent]:
        """Yield the events that a question about few records needs, as `selected_events` does."""
        if not self.is_bulk(piece):
            yield from self.events(piece)
            return
        order = self._order(piece)
        for item in items_of_piece(order, piece.cursor, order.end, self.scanner, selection):
            for event in events_of(order, item):
                yield _in_place(event, piece)

    def effect(self, piece: GrownPiece, profile: Profile, note: Note, written: Written | None = None) -> PartialState:
        """Return what the records of a piece do.

        Args:
            written: where it is noted what groups wrote, if that is asked for.
        """
        if not self.is_bulk(piece):
            events = self.events(piece)
            return replay(events if written is None else written.watch(events), profile, on_damage=note)
        order, moving = self._order(piece), _moving(note, piece.position)
        if written is None:
            state = ColumnarState(profile, release=self.release)
            Piece(order, piece.cursor, self.scanner, moving, state).run(order.end, lambda size_bytes: None)
            return partial_state(order.layout, state, self.scanner)
        counts = WriterCounts("group")
        counted_in = LedgerState(profile, counts, release=self.release)
        counted_in.arrays.scan_state.notes_activity = 1
        LedgerPiece(order, piece.cursor, self.scanner, moving, counted_in).run(order.end, lambda size_bytes: None)
        counted_in.finish()
        written.add_counted(counts, counted_in.last_activity())
        return partial_state(order.layout, counted_in, self.scanner)

    def _order(self, piece: GrownPiece) -> ScanOrder:
        return ScanOrder(piece.log, EVERYTHING, self.release)

    def history(self, piece: GrownPiece, history: GrowingHistory, note: Note) -> None:
        """Read a piece into a history by kernels, small ones too. Raises BeyondError if these cannot."""
        history.take(self._order(piece), piece.cursor, self.scanner, _moving(note, piece.position))

    def has_kernels(self, piece: GrownPiece, *largest: Kernel[Any]) -> bool:
        """Whether kernels read all pieces from a first one on: it is large, or the largest are compiled already."""
        is_quick = self.bulk_from <= BULK_FROM_BYTES and not IS_PYTHON and all(map(is_kept, largest))
        return is_quick or piece.log.bytes_to_read >= self.bulk_from


def _in_place(event: LogEvent, piece: GrownPiece) -> LogEvent:
    damage = event.damage if isinstance(event, Event) else event
    if isinstance(damage, Damage):
        moved(damage, piece.position)
    return event


def _moving(note: Note, position: int) -> Note:
    return lambda seen: note(moved(seen, position) if isinstance(seen, Damage) else seen)
