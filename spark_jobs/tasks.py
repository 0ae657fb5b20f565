"""Let tasks make something of the pieces of logs, and pass it on in log order at the driver.

This is for results about records instead of keys, or about a piece as a whole. All pieces are read in parallel; the
results stay on the executors' disks until the driver reads them, so that neither has to hold them in memory. What a
task passes on is pickled at once, because it may refer to memory that is reused.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import cramjam
from pyspark import StorageLevel
from pyspark.sql import SparkSession

from offsets_log.checking.bulk import CheckedState, check_piece, complete, profiles_of
from offsets_log.columnar.choose.selected import Item, Taken, events_of, items_of_piece
from offsets_log.columnar.choose.selection import Selection
from offsets_log.columnar.events.chunk import Chunk
from offsets_log.columnar.events.export import EventReading
from offsets_log.columnar.folds.replay import Replay
from offsets_log.columnar.folds.state import ColumnarState
from offsets_log.columnar.scan.layout import Scanner
from offsets_log.columnar.scan.reading import Cursor, Note, ScanOrder, ScanPlace, Seen
from offsets_log.columnar.scan.time_bound import Stop, TimeBound, note_piece
from offsets_log.columnar.shuffle.pieces import check_reach
from offsets_log.columnar.sinks.lines import Lines
from offsets_log.errors import Damage
from offsets_log.events import LogEnd, LogEvent, TailFound, Wants
from offsets_log.log_format.completeness import Missing
from offsets_log.replay.fold import replay_into
from offsets_log.replay.releases import Release
from offsets_log.rows.shown import Shown
from offsets_log.rows.tables import Row
from spark_jobs.jobs import evenly
from spark_jobs.joined import SEEN
from spark_jobs.options import SourceOptions
from spark_jobs.pieces import open_piece, seen_row
from spark_jobs.planning import PieceFiles
from spark_jobs.source import plan_reading

RUN_ITEMS, RUN_BYTES = 1 << 12, 1 << 20
"""Number of items, and of bytes, of batches that are passed on at once."""
MOST_PIECE_BYTES = 1 << 27
"""Maximum size of a piece, since its result comes to the driver as a whole."""
FAST = 1
"""Level of zstd: most results are texts, and tables with unused room."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A piece as its task has it.

    Attributes:
        order: the order of the piece alone, with its own segments.
        cursor: how far it is read; whoever reads it moves this one.
        end: where it should end.
        note: called with what could not be read, tails and gaps.
    """

    piece: PieceFiles
    order: ScanOrder
    cursor: Cursor
    end: ScanPlace
    scanner: Scanner
    note: Note


Work = Callable[[Opened], Iterable[Any]]
"""Makes something of a piece in a task; it reads the piece to its end."""


@dataclass(frozen=True, slots=True)
class Reach:
    """The place up to which a piece was read; ``seen`` are rows of what was noted while reading."""

    cursor: Cursor
    seen: Sequence[Row]


def named(pieces: Iterable[PieceFiles], names: Mapping[str, str]) -> list[PieceFiles]:
    """Return the pieces with the names that the user gave their files, by their paths."""
    return [
        replace(piece, files=tuple(replace(file, name=names.get(file.path)) for file in piece.files))
        for piece in pieces
    ]


class Made:
    """The results of tasks for each piece, in log order; a context manager.

    Args:
        reading: the reading, whose bounds hold.
        pieces: see `source.plan_reading`.
    """

    def __init__(self, spark: SparkSession, reading: SourceOptions, pieces: Sequence[PieceFiles], work: Work) -> None:
        self._pieces = pieces
        numbered = spark.sparkContext.parallelize(list(enumerate(pieces)), max(1, len(pieces)))
        self._rows = numbered.flatMap(_task(reading, work)).persist(StorageLevel.DISK_ONLY)
        self._logs: Iterator[tuple[int, Iterator[tuple[PieceFiles, Any]]]] = iter(())
        self._next: tuple[int, Iterator[tuple[PieceFiles, Any]]] | None = None
        self._asked: int | None = None
        self._rows.count()  # all in parallel; `toLocalIterator` alone would read one after the other

    def close(self) -> None:
        """Drop all results."""
        self._rows.unpersist()

    def of_log(self, number: int) -> Iterator[tuple[PieceFiles, Any]]:
        """Yield what was made of one log's pieces, each followed by its `Reach`.

        Asking for logs in their order is fastest.
        """
        if self._asked is None or self._asked >= number:
            self._logs = groupby(self._read(), key=lambda item: item[0].log)
            self._next = next(self._logs, None)
        self._asked = number
        while self._next is not None and self._next[0] < number:
            self._next = next(self._logs, None)
        return self._next[1] if self._next is not None and self._next[0] == number else iter(())

    def _read(self) -> Iterator[tuple[PieceFiles, Any]]:
        for number, data in self._rows.toLocalIterator(prefetchPartitions=True):
            yield self._pieces[number], pickle.loads(cramjam.zstd.decompress(data))


def _task(reading: SourceOptions, work: Work) -> Callable[[tuple[int, PieceFiles]], Iterator[tuple[int, bytes]]]:
    """Return the function that tasks run."""

    def run(numbered: tuple[int, PieceFiles]) -> Iterator[tuple[int, bytes]]:
        number, piece = numbered
        for made in _made(piece, reading, work):
            yield number, bytes(cramjam.zstd.compress(pickle.dumps(made, pickle.HIGHEST_PROTOCOL), FAST))

    return run


def _made(piece: PieceFiles, reading: SourceOptions, work: Work) -> Iterator[Any]:
    seen: list[Seen] = []
    with ExitStack() as stack:
        log, bounds = open_piece(piece, stack)
        order, cursor = ScanOrder(log, reading.until(piece.offsets_partition), reading.kafka), bounds.cursor
        scanner = stack.enter_context(Scanner())
        yield from work(Opened(piece, order, cursor, bounds.end, scanner, seen.append))
        check_reach(log, bounds, cursor)
        entered = piece.index + (cursor.entered or 0)
        place = ScanPlace(piece.index + cursor.place.segment_index, cursor.place.position)
        yield Reach(replace(cursor, place=place, entered=entered), [seen_row(item, i) for i, item in enumerate(seen)])


def seen_of(row: Row) -> Seen:
    """Return what `pieces.seen_row` made a row of."""
    return SEEN[row["kind"]](json.loads(row["facts"]), row.get("value"))


# ---------------------------------------------------------------------------------------- at the driver


def in_order(order: ScanOrder, made: Iterable[tuple[PieceFiles, Any]], note: Note) -> Iterator[tuple[PieceFiles, Any]]:
    """Yield what was made of the pieces of a log up to a bound; note what was seen, and what is missing around them.

    The last item is the `LogEnd`, if the log was read to its end.
    """
    before: Cursor | None = None
    last: PieceFiles | None = None
    for piece, item in made:
        if before is not None and before.is_stopped:
            return
        if piece is not last:
            _note_begin(order, piece, before, note)
            last = piece
        if isinstance(item, Reach):
            before = item.cursor
            for row in item.seen:
                note(seen_of(row))
        else:
            yield piece, item
    if last is not None and before is not None:
        for end in order.note_end(before, note):
            yield last, end


def _note_begin(order: ScanOrder, piece: PieceFiles, before: Cursor | None, note: Note) -> None:
    if piece.number == 0:
        order.note_begin(note)
    elif before is not None:
        order.note_gap_before(ScanPlace(piece.index, piece.position), before, note)


def choose(selection: Selection | None) -> Work:
    """Yield the batches that are asked for, as runs of items of `choose.selected`, with what was seen among them."""

    def work(opened: Opened) -> Iterator[list[Item | Row]]:
        run: list[Item | Row] = []
        size_bytes = 0
        for item in items_of_piece(opened.order, opened.cursor, opened.end, opened.scanner, selection):
            match item:
                case Taken(index, batch, is_whole):
                    run.append(Taken(opened.piece.index + index, batch, is_whole))
                    size_bytes += batch.size_bytes
                case Damage() | TailFound() | Missing():
                    run.append(seen_row(item, 0))
                case _:
                    run.append(item)
            if size_bytes >= RUN_BYTES or len(run) >= RUN_ITEMS:
                yield run
                run, size_bytes = [], 0
        if run:
            yield run

    return work


def export(chunk: Callable[[tuple[int, int] | None], Chunk], shown: Shown) -> Work:
    """Yield what a chunk makes of all records that are shown."""

    def work(opened: Opened) -> Iterator[Any]:
        for made in _rows(opened, chunk(opened.order.release), shown):
            yield from made.copies() if isinstance(made, Lines) else (made,)

    return work


def _rows(opened: Opened, chunk: Chunk, shown: Shown) -> Iterator[Any]:
    chunk.begin()
    order, cursor, scanner = opened.order, opened.cursor, opened.scanner
    reading = EventReading(order, cursor, scanner, opened.note, chunk=chunk, shown=shown)
    return reading.made(opened.end, lambda size_bytes: None)


def check(releases: Sequence[Release], begins: Sequence[Sequence[int]]) -> Work:
    """Yield the state of each piece by the rules of releases; ``begins`` as in `fold`."""

    def work(opened: Opened) -> Iterator[CheckedState]:
        opened.order.layout.stand_behind(begins[opened.piece.log][opened.piece.index])
        yield check_piece(releases, opened.order, opened.cursor, opened.end, opened.scanner, opened.note)

    return work


def fold(replay: Callable[..., Replay], begins: Sequence[Sequence[int]]) -> Work:
    """Yield the state of each piece.

    Args:
        replay: creates the replay of a log ``until`` a bound.
        begins: for each log, where its segments begin in it.
    """

    def work(opened: Opened) -> Iterator[ColumnarState]:
        order = opened.order
        order.layout.stand_behind(begins[opened.piece.log][opened.piece.index])
        made = replay(order.log, until=order.until)
        state = made.new_state()
        made.piece(order, opened.cursor, opened.scanner, opened.note, state).run(opened.end, lambda size_bytes: None)
        yield state

    return work


def time_bound(time_ms: int) -> Work:
    """Yield what the headers of each piece say of a bound by time."""

    def work(opened: Opened) -> Iterator[TimeBound]:
        yield note_piece(opened.order, opened.cursor, opened.end, opened.scanner, time_ms)

    return work


def joined_stop(order: ScanOrder, made: Iterable[tuple[PieceFiles, Any]]) -> Stop | None:
    """Return where a bound by time ends a log, as `find_stop` does, by what `time_bound` has made of it."""
    whole: TimeBound | None = None
    for _, item in in_order(order, made, lambda seen: None):
        if whole is None:
            whole = item
        elif isinstance(item, TimeBound):
            whole.join(item)
    return None if whole is None else whole.stop


def joined(order: ScanOrder, made: Iterable[tuple[PieceFiles, Any]], note: Note) -> ColumnarState | None:
    """Return the states of all pieces of a log joined; None if there are none."""
    whole: ColumnarState | None = None
    for _, item in in_order(order, made, note):
        if isinstance(item, LogEnd):
            assert whole is not None
            replay_into(whole, (item,), on_damage=note)
        elif whole is None:
            whole = item
        else:
            whole.merge(item)
    return whole


def joined_check(
    releases: Sequence[Release], order: ScanOrder, made: Iterable[tuple[PieceFiles, Any]], note: Note
) -> CheckedState:  # fmt: skip
    """Return the states of all pieces of a log joined."""
    seen: list[Seen] = []

    def noted(item: Seen) -> None:
        seen.append(item)
        note(item)

    whole = joined(order, made, noted) or CheckedState(profiles_of(releases), until=order.until, release=order.release)
    assert isinstance(whole, CheckedState)
    complete(whole, seen)
    return whole


def chosen_events(
    order: ScanOrder, made: Iterable[tuple[PieceFiles, Any]], wants: Wants | None
) -> Iterator[LogEvent]:  # fmt: skip
    """Yield the events of what `choose` has made of a log; ``wants`` as in `iter_events`."""
    noted: list[Seen] = []
    for _, run in in_order(order, made, noted.append):
        yield from noted
        noted.clear()
        if isinstance(run, LogEnd):
            yield run
        else:
            for item in run:
                yield from events_of(order, seen_of(item) if isinstance(item, dict) else item, wants)
    yield from noted


def plan(spark: SparkSession, reading: SourceOptions, names: Mapping[str, str]) -> list[PieceFiles]:
    """Return the pieces of what is to be read, a few for each core, with their files' names."""
    return named(plan_reading(evenly(spark, reading), most_bytes=MOST_PIECE_BYTES), names)
