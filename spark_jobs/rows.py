"""The one function that the data source and the programs share: the rows of a piece of a log at a level.

A piece is a whole log, but for records of large ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass

import pyarrow as pa

from offsets_log.columnar.events.export import EventReading
from offsets_log.columnar.events.rows import event_row
from offsets_log.columnar.events.tables import TableChunk
from offsets_log.columnar.events.tables import iter_event_tables as tables_of_rows
from offsets_log.columnar.folds.replay import cuts_at
from offsets_log.columnar.history.slow_path import BeyondError
from offsets_log.columnar.large import is_large
from offsets_log.columnar.scan.layout import Scanner
from offsets_log.columnar.scan.reading import Cursor, ScanOrder, ScanPlace
from offsets_log.columnar.shuffle.records import iter_record_tables, record_row
from offsets_log.disk.scratch import Scratch
from offsets_log.errors import InputError
from offsets_log.events import Event
from offsets_log.investigate.bulk_history import BulkHistory
from offsets_log.investigate.history import History, history_row, in_order_of_time
from offsets_log.investigate.history_tables import HistoryTables, table_of_history
from offsets_log.investigate.holders import TopicIds
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.pipeline import iter_events
from offsets_log.rows.shown import Shown
from spark_jobs.answers import NOTHING_TOLD, Answers, Told, topic_ids_of
from spark_jobs.answers import shows_all as _all
from spark_jobs.files import LogFiles
from spark_jobs.levels import plain_schema
from spark_jobs.options import SourceOptions, matcher

WITH_MEMBERS = ("groups", "members", "documents")
"""Levels for which members of groups are read, and when groups last wrote."""


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
        if level in RECORDS:
            yield from RECORDS[level](log, piece, reading)
        elif level == "history":
            yield from _history(log, reading, told, stack)
        else:
            surveys = level == "transactions"
            yield Answers(log, reading, told, stack, whole=level in WITH_MEMBERS, surveys=surveys).level(level)


# ------------------------------------------------------------------------------------------------ records


def _records(log: PartitionLog, piece: Piece, reading: SourceOptions) -> Iterator[pa.Table]:
    shown = Shown(matcher(reading.group), matcher(reading.topic))
    if piece.count == 1 and not is_large(log.bytes_to_read, "events.kernels.fill"):
        yield from tables_of_rows(row for row in map(event_row, _events(log, reading)) if shown.shows(row))
        return
    order, cursor, end = _bounds(log, piece, reading)
    yield from event_tables(order, cursor, end, shown)
    _check_end(order, cursor, end)


def event_tables(order: ScanOrder, cursor: Cursor, end: ScanPlace, shown: Shown) -> Iterator[pa.Table]:
    """Yield decoded records by kernels; each table is valid until the next is asked for."""
    with Scanner() as scanner:
        reading = EventReading(order, cursor, scanner, _pass, chunk=TableChunk(order.release), shown=shown)
        yield from reading.made(end, lambda size_bytes: None)


def _raw_records(log: PartitionLog, piece: Piece, reading: SourceOptions) -> Iterator[pa.Table]:
    if piece.count == 1 and not is_large(log.bytes_to_read, "shuffle.records.copy_records"):
        yield pa.Table.from_pylist([*map(record_row, _events(log, reading))], plain_schema("raw_records"))
        return
    order, cursor, end = _bounds(log, piece, reading)
    yield from iter_record_tables(order, cursor, end, _pass)
    _check_end(order, cursor, end)


RECORDS = {"records": _records, "raw_records": _raw_records}


def _events(log: PartitionLog, reading: SourceOptions) -> Iterator[Event]:
    events = iter_events(log, until=reading.until(log.offsets_partition), release=reading.kafka)
    return (event for event in events if isinstance(event, Event))


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


# ------------------------------------------------------------------------------------------------ history


def _history(log: PartitionLog, reading: SourceOptions, told: Told, stack: ExitStack) -> Iterator[pa.Table]:
    shows_group, shows_topic = matcher(reading.group) or _all, matcher(reading.topic) or _all
    until = reading.until(log.offsets_partition)
    given = topic_ids_of(reading)
    if is_large(log.bytes_to_read, "history.kernels.scan"):
        history = BulkHistory(
            reading.rules, shows_group, lambda key: shows_topic(key[1]), lambda kind, shape: Scratch(stack, kind, shape)
        )
        with suppress(BeyondError):
            history.read(log, note=_pass, until=until, release=reading.kafka, advance=_pass)
            yield from HistoryTables(history.ordered(given, told.topic_ids), only_rewinds=False, threads=1)
            return
    found = History(reading.rules, shows_group, lambda key: shows_topic(key[1]))
    found.read(iter_events(log, until=until, release=reading.kafka), on_damage=_pass)
    ids = TopicIds(given, told.topic_ids, found.state.topic_names)
    entries = (entry for _, entry in in_order_of_time([found.entries]))
    yield table_of_history(history_row(entry, log.offsets_partition, ids, log.missing_columns) for entry in entries)
