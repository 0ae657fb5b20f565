"""The one function that the data source and the programs share: the rows of a piece of a log at a level.

A piece is a whole log, but for records of large ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pyarrow as pa

from offsets_log.columnar.events.export import EventReading
from offsets_log.columnar.events.tables import TableChunk
from offsets_log.columnar.folds.replay import cuts_at
from offsets_log.columnar.scan.layout import Scanner
from offsets_log.columnar.scan.reading import Cursor, ScanOrder, ScanPlace
from offsets_log.columnar.shuffle.records import iter_record_tables
from offsets_log.errors import InputError
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.rows.shown import Shown
from spark_jobs.answers import NOTHING_TOLD, OneLog, Told
from spark_jobs.files import LogFiles
from spark_jobs.options import SourceOptions, matcher


@dataclass(frozen=True, slots=True)
class Piece:
    """What a task reads: one of so many pieces of a log."""

    files: LogFiles
    number: int = 0
    count: int = 1


def rows(piece: Piece, reading: SourceOptions, told: Told = NOTHING_TOLD) -> Iterator[pa.Table]:
    """Yield the rows of a piece at the reading's level, with all columns of `levels.LEVELS`.

    Raises:
        InputError: a file cannot be read.
    """
    level = reading.level
    with ExitStack() as stack:
        log = piece.files.open(stack)
        if piece.count > 1:
            yield from RECORDS[level](log, piece, reading)
        else:
            yield from OneLog(log, reading, told, stack).tables(level)


# ------------------------------------------------------------------------------------------------ records


def _records(log: PartitionLog, piece: Piece, reading: SourceOptions) -> Iterator[pa.Table]:
    shown = Shown(matcher(reading.group), matcher(reading.topic))
    order, cursor, end = _bounds(log, piece, reading)
    yield from event_tables(order, cursor, end, shown)
    _check_end(order, cursor, end)


def event_tables(order: ScanOrder, cursor: Cursor, end: ScanPlace, shown: Shown) -> Iterator[pa.Table]:
    """Yield decoded records by kernels; each table is valid until the next is asked for."""
    with Scanner() as scanner:
        reading = EventReading(order, cursor, scanner, _pass, chunk=TableChunk(order.release), shown=shown)
        yield from reading.made(end, lambda size_bytes: None)


def _raw_records(log: PartitionLog, piece: Piece, reading: SourceOptions) -> Iterator[pa.Table]:
    order, cursor, end = _bounds(log, piece, reading)
    yield from iter_record_tables(order, cursor, end, _pass)
    _check_end(order, cursor, end)


RECORDS = {"records": _records, "raw_records": _raw_records}
"""Level whose pieces need not be joined → what reads a piece of several."""


def _pass(seen: object) -> None:
    """Tell nothing of what could not be read: `problems` has it."""


def _bounds(log: PartitionLog, piece: Piece, reading: SourceOptions) -> tuple[ScanOrder, Cursor, ScanPlace]:
    """Return where a piece is read from, and where it should end. Raises InputError: no batch is found there."""
    order = ScanOrder(log, reading.until(log.offsets_partition), reading.kafka)
    total = sum(order.layout.sizes)
    cuts = [*cuts_at(order.layout, [total * i // piece.count for i in range(1, piece.count)]), order.end]
    if piece.number + 1 >= len(cuts):
        return order, Cursor(order.end, -1, 0), order.end
    cursor = order.begin(cuts[piece.number])
    if cursor is None:
        raise _cannot_be_cut(log, cuts[piece.number])
    return order, cursor, cuts[piece.number + 1]


def _check_end(order: ScanOrder, cursor: Cursor, end: ScanPlace) -> None:
    """Raise InputError if the next piece does not begin where this one has ended."""
    if cursor.is_stopped or end == order.end:
        return
    following = order.begin(end)
    if following is None or not order.fits(cursor, following.place):
        raise _cannot_be_cut(order.log, end)


def _cannot_be_cut(log: PartitionLog, place: ScanPlace) -> InputError:
    return InputError(
        "the log cannot be cut here, where lengths are damaged or segments overlap: give the option cut_bytes more "
        "than the log's size",
        file=log.segments[place.segment_index].file,
        position=place.position,
    )
