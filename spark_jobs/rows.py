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
from spark_jobs.answers import OneLog, Told
from spark_jobs.files import LogFiles
from spark_jobs.options import SourceOptions, matcher


@dataclass(frozen=True, slots=True)
class Piece:
    """What a task reads: one of so many pieces of a log."""

    files: LogFiles
    number: int = 0
    count: int = 1


def rows(piece: Piece, reading: SourceOptions, told: Told) -> Iterator[pa.Table]:
    """Yield the rows of a piece at the reading's level, with all columns of `levels.LEVELS`.

    Raises:
        InputError: a file cannot be read.
    """
    with ExitStack() as stack:
        log = piece.files.open(stack)
        if piece.count > 1:
            yield from _of_records(log, piece, reading)
        else:
            yield from OneLog(log, reading, told, stack).tables(reading.level)


# ------------------------------------------------------------------------------------------------ records


def _events(order: ScanOrder, cursor: Cursor, end: ScanPlace, reading: SourceOptions) -> Iterator[pa.Table]:
    """Yield decoded records by kernels; each table is valid until the next is asked for."""
    shown = Shown(matcher(reading.group), matcher(reading.topic))
    with Scanner() as scanner:
        events = EventReading(order, cursor, scanner, _pass, chunk=TableChunk(order.release), shown=shown)
        yield from events.made(end, lambda size_bytes: None)


def _raw_records(order: ScanOrder, cursor: Cursor, end: ScanPlace, reading: SourceOptions) -> Iterator[pa.Table]:
    yield from iter_record_tables(order, cursor, end, _pass)


RECORDS = {"records": _events, "raw_records": _raw_records}
"""Level whose pieces need not be joined → what reads from a cursor to an end."""


def _pass(seen: object) -> None:
    """Tell nothing of what could not be read: `problems` has it."""


def _of_records(log: PartitionLog, piece: Piece, reading: SourceOptions) -> Iterator[pa.Table]:
    """Yield the rows of a piece. Raises InputError: no batch is found where it begins, or ends."""
    order = ScanOrder(log, reading.until(log.offsets_partition), reading.kafka)
    total = sum(order.layout.sizes)
    cuts = [*cuts_at(order.layout, [total * i // piece.count for i in range(1, piece.count)]), order.end]
    if piece.number + 1 >= len(cuts):
        return
    begin, end = cuts[piece.number : piece.number + 2]
    cursor = order.begin(begin)
    if cursor is None:
        raise _cannot_be_cut(log, begin)
    yield from RECORDS[reading.level](order, cursor, end, reading)
    if not (cursor.is_stopped or end == order.end):
        following = order.begin(end)
        if following is None or not order.fits(cursor, following.place):
            raise _cannot_be_cut(log, end)


def _cannot_be_cut(log: PartitionLog, place: ScanPlace) -> InputError:
    return InputError(
        "the log cannot be cut here, where lengths are damaged or segments overlap: give the option cut_bytes more "
        "than the log's size",
        file=log.segments[place.segment_index].file,
        position=place.position,
    )
