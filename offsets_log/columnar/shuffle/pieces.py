"""Read one piece of a log separately, with only its files: the unit of work of a cluster.

A piece begins at a place that the log's other pieces know too, and is read up to the first batch at or after its end.
It depends on what is before it by one number only, the last offset there, which must be below its first batch's. A
piece that ends elsewhere than it should, or not below the next one's beginning, raises an error, because then the next
one has begun in the wrong place.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from offsets_log.columnar.events.export import EventReading
from offsets_log.columnar.events.tables import TableChunk
from offsets_log.columnar.folds.replay import Replay
from offsets_log.columnar.folds.state import ColumnarState
from offsets_log.columnar.scan.layout import Layout, Scanner
from offsets_log.columnar.scan.reading import Cursor, Note, ScanOrder, ScanPlace
from offsets_log.errors import InputError
from offsets_log.events import Until
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.rows.shown import Shown

SPLIT = "Read with the option split=false, which takes each log in one piece"


@dataclass(frozen=True, slots=True)
class Bounds:
    """Where a piece begins and should end, in a log whose segments in between are open.

    Attributes:
        last_offset: the last offset before it, which is below the first batch's, whatever that is.
        next_first_offset: least offset after the end; None at the end of the log.
    """

    begin: ScanPlace
    last_offset: int
    end: ScanPlace
    next_first_offset: int | None

    @property
    def are_of_whole_log(self) -> bool:
        """Whether there are no other pieces."""
        return self.last_offset < 0 and self.next_first_offset is None

    @property
    def cursor(self) -> Cursor:
        """The cursor where reading begins."""
        return Cursor(self.begin, self.last_offset, self.last_offset + 1)


def replay_piece(replay: Replay, bounds: Bounds, note: Note) -> tuple[Layout, ColumnarState, Cursor]:
    """Return the layout, the state and the last cursor of a piece of the log that ``replay`` reads.

    Raises:
        InputError: the next piece does not fit after it, or the order of its records is not that of their offsets.
    """
    order, cursor = replay.order, bounds.cursor
    state = replay.new_state(with_newer=False)  # rows of partial states have no place for what `newer` keeps
    with Scanner() as scanner:
        replay.piece(order, cursor, scanner, note, state).run(bounds.end, lambda size_bytes: None)
    check_reach(order.log, bounds, cursor)
    if state.is_out_of_place and not bounds.are_of_whole_log:
        raise InputError(f"a message has an offset of batches around it. {SPLIT}", file=_file(order.log, bounds))
    return order.layout, state, cursor


def iter_event_tables(
    log: PartitionLog, bounds: Bounds, shown: Shown, until: Until, release: tuple[int, int] | None, note: Note
) -> Iterator[pa.Table]:
    """Yield the records of a piece as `events.tables.SCHEMA`; each table is valid until the next is asked for.

    Raises:
        InputError: the next piece does not fit after it.
    """
    cursor = bounds.cursor
    with Scanner() as scanner:
        reading = EventReading(
            ScanOrder(log, until, release), cursor, scanner, note, chunk=TableChunk(release), shown=shown
        )
        yield from reading.made(bounds.end, lambda size_bytes: None)
    check_reach(log, bounds, cursor)


def check_reach(log: PartitionLog, bounds: Bounds, reach: Cursor) -> None:
    """Raise InputError if the next piece does not fit after this one."""
    if reach.is_stopped or bounds.next_first_offset is None:
        return
    if reach.place != bounds.end or reach.last_offset >= bounds.next_first_offset:
        raise InputError(
            f"what follows does not fit behind offset {reach.last_offset}: segments overlap, or lengths are damaged. "
            f"{SPLIT}",
            file=_file(log, bounds),
        )


def _file(log: PartitionLog, bounds: Bounds) -> str:
    return log.segments[bounds.begin.segment_index].file
