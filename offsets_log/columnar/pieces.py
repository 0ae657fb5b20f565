"""One piece of a log read apart from the others, by whoever has only its files: the unit of work of a cluster.

A piece begins at a place that its log's other pieces know too, and reads up to the first batch at or behind its end. It
depends on what is before it by one number only, the last offset read there, which must be below its first batch's: a
piece that ends elsewhere than it should, or not below the next one's begin, says so, because then the next one has
begun in the wrong place.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from offsets_log.columnar import events as ev
from offsets_log.columnar import replay
from offsets_log.columnar.layout import Layout, Scanner
from offsets_log.columnar.replay import Note, Place
from offsets_log.columnar.state import ColumnarState
from offsets_log.errors import InputError
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.pipeline import Until
from offsets_log.replay.profile import Profile


@dataclass(frozen=True, slots=True)
class Bounds:
    """Where a piece begins and should end in a log of which the segments in between are open.

    Attributes:
        last_offset: before the begin; below the first batch's, whatever it is.
        next_first_offset: least offset behind the end; None at the end of the log.
    """

    begin: Place
    last_offset: int
    end: Place
    next_first_offset: int | None


@dataclass(frozen=True, slots=True)
class Reach:
    """How far a piece was read."""

    place: Place
    last_offset: int
    next_offset: int
    is_stopped: bool


def replay_piece(
    log: PartitionLog, bounds: Bounds, profile: Profile, until: Until, release: tuple[int, int] | None, note: Note
) -> tuple[Layout, ColumnarState, Reach]:
    """The state of a piece.

    Raises:
        InputError: the next piece does not fit behind it.
    """
    layout = Layout(log)
    piece = replay._Piece(layout, profile, until, release, bounds.begin, bounds.last_offset, threading.Event())
    with Scanner() as scanner:
        piece.run(bounds.end, scanner, note, lambda size_bytes: None)
    reach = Reach(piece.place, piece.last_offset, piece.next_offset, piece.is_stopped)
    check_reach(log, bounds, reach)
    return layout, piece.state, reach


def iter_event_tables(
    log: PartitionLog, bounds: Bounds, shown: ev.Shown, until: Until, release: tuple[int, int] | None, note: Note
) -> Iterator[pa.Table]:
    """The records of a piece by `events.SCHEMA`; each table is good until the next is asked for.

    Raises:
        InputError: the next piece does not fit behind it.
    """
    job = ev._Job(log, until, release, shown)
    cursor = ev._Cursor(bounds.begin, bounds.last_offset, bounds.last_offset + 1)
    chunk = ev._Chunk()
    chunk.begin()
    with Scanner() as scanner:
        yield from ev._Reader(job, chunk, cursor, scanner, note).tables(bounds.end, lambda size_bytes: None)
    check_reach(log, bounds, Reach(cursor.place, cursor.last_offset, cursor.next_offset, cursor.is_stopped))


def check_reach(log: PartitionLog, bounds: Bounds, reach: Reach) -> None:
    """Raises InputError if the next piece does not fit behind this one."""
    if reach.is_stopped or bounds.next_first_offset is None:
        return
    if reach.place != bounds.end or reach.last_offset >= bounds.next_first_offset:
        raise InputError(
            f"what follows does not fit behind offset {reach.last_offset}: segments overlap, or lengths are damaged. "
            "Read with the option split=false, which takes each log in one piece",
            file=log.segments[bounds.begin.segment_index].file,
        )
