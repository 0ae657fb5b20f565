"""Export all records of a log, one row each, as Arrow tables or otherwise: `pipeline.iter_events` in bulk.

Rows and damage equal those of the construct path, which reads everything that is not plain, in its place. Logs are cut
into parts that threads read in parallel; a part whose predecessor ended elsewhere is read again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count, islice, pairwise
from typing import Any

from offsets_log.columnar import arrays as a
from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.events.chunk import Chunk
from offsets_log.columnar.events.kernels import fill
from offsets_log.columnar.scan.layout import Scanner
from offsets_log.columnar.scan.reading import (
    ONE_THREAD,
    Advance,
    Cursor,
    Note,
    Reading,
    ScanOrder,
    ScanPlace,
    Seen,
    Threads,
)
from offsets_log.errors import Damage
from offsets_log.events import EVERYTHING, Event, LogEvent, TailFound, Until
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.rows.shown import ALL, Shown

PART_BYTES = 1 << 27


class EventReading(Reading):
    """A reading that turns batches to rows."""

    def __init__(
        self, order: ScanOrder, cursor: Cursor, scanner: Scanner, note: Note, *, chunk: Chunk, shown: Shown
    ) -> None:
        super().__init__(order, cursor, scanner, note)
        self.chunk = chunk
        self.shown = shown
        self._file: int | None = None

    @property
    def scan_state(self) -> a.ScanState:
        return self.chunk.scan_state

    def made(self, end: ScanPlace, advance: Advance) -> Iterator[Any]:
        """Yield what the chunk makes of the rows up to the first batch at or after ``end``, many at a time.

        Each result is valid until the next is asked for.
        """
        for outcome in self.steps(end, advance):
            if outcome == oc.FULL and not self.chunk.rows:
                self.chunk.widen(1 + int(self.scan_state.needed))
            elif outcome == oc.FULL or self.chunk.is_full:
                yield from self._flushed()
        yield from self._flushed()

    def _flushed(self) -> Iterator[Any]:
        made = self.chunk.made(self.order.log.offsets_partition, self.shown) if len(self.chunk) else ()
        if len(made):
            yield made
        self.chunk.clear()

    def scan(self, index: int, data: a.Bytes) -> int:
        chunk, scanner = self.chunk, self.scanner
        if index != self._file:
            chunk.begin_segment(self.order.log.segments[index])
            self._file = index
        while True:
            outcome: int = fill(chunk.scan_state, chunk.arrays, scanner.buffers, data)
            if outcome != oc.NEEDS_ROOM:
                return outcome
            if chunk.rows and chunk.has_many_entries:
                return oc.FULL
            chunk.grow()

    def take(self, index: int, batch: RecordBatch) -> None:
        for event in self.events(index, batch):
            if isinstance(event, Damage):
                self.note(event)
            elif isinstance(event, Event) and event.damage is not None:
                self.note(event.damage)
            self._keep(event)
        self.chunk.add_on_slow_path((), batch.size_bytes)

    def lose(self, damage: Damage) -> None:
        super().lose(damage)
        self._keep(damage)

    def end(self, found: TailFound) -> None:
        super().end(found)
        self._keep(found)

    def _keep(self, event: LogEvent) -> None:
        row = self.chunk.row(event, self.shown)
        if row is not None:
            self.chunk.add_on_slow_path((row,), 0)


# -------------------------------------------------------------------------------------------- all logs

Write = Callable[[PartitionLog, int, Iterator[Any]], int]
"""Processes what the chunk makes of a part, given the part's number; returns the number of rows.

It is called from several threads, and once more for a part that is read again; the earlier result is then void.
"""


@dataclass(frozen=True, slots=True)
class _Part:
    """What became of a part: where it began and should end, what was seen while reading, where it ended."""

    order: ScanOrder
    number: int
    end: ScanPlace
    begin: ScanPlace | None = None
    cursor: Cursor | None = None
    notes: Sequence[Seen] = ()
    rows: int = 0


@dataclass(frozen=True, slots=True)
class Destination:
    """Where the rows of parts go. Parts are numbered in log order, including those without rows.

    Attributes:
        write: takes what is made of one part.
        part_bytes: approximate size of the log in a part.
    """

    write: Write
    part_bytes: int = PART_BYTES


class Export:
    """All records of logs, in parts that are read and written in parallel.

    Args:
        chunk: creates a chunk for the records of a release; each thread has its own.
        note: log → what to do with what could not be read, with tails and gaps; called in log order.
        threads: logs are cut by the size of parts, not into so many pieces.
    """

    def __init__(
        self,
        to: Destination,
        *,
        chunk: Callable[[tuple[int, int] | None], Chunk],
        note: Callable[[PartitionLog], Note],
        shown: Shown = ALL,
        until: Callable[[PartitionLog], Until] = lambda log: EVERYTHING,
        release: tuple[int, int] | None = None,
        threads: Threads = ONE_THREAD,
    ) -> None:
        self.to = to
        self.chunk = chunk
        self.note = note
        self.shown = shown
        self.until = until
        self.release = release
        self.threads = threads
        self._chunks: list[Chunk] = []

    def parts(self, logs: Sequence[PartitionLog]) -> Iterator[tuple[int, int]]:
        """Export the logs; yield the number of each part in log order, once it will not be read again, and its rows.

        Threads read ahead, but no more than two parts each: while nothing is asked for, nothing more is read.
        """
        waiting: deque[tuple[ScanOrder, Future[_Part]]] = deque()
        cursor: Cursor | None = None
        with ThreadPoolExecutor(self.threads.count) as pool:
            try:
                parts = self._parts(logs)
                while True:
                    for order, number, cut, end in islice(parts, 2 * self.threads.count - len(waiting)):
                        waiting.append((order, pool.submit(self._read, order, number, cut, end)))
                    if not waiting:
                        return
                    _, future = waiting.popleft()
                    part = future.result()
                    cursor, rows = self._joined(part, None if part.begin == ScanPlace(0, 0) else cursor)
                    yield part.number, rows
            finally:
                for order, future in waiting:
                    order.is_cancelled.set()
                    future.cancel()

    def _parts(self, logs: Sequence[PartitionLog]) -> Iterator[tuple[ScanOrder, int, ScanPlace, ScanPlace]]:
        number = count()
        for log in logs:
            order = ScanOrder(log, self.until(log), self.release)
            for cut, end in pairwise([*_cuts(order, self.to.part_bytes), order.end]):
                yield order, next(number), cut, end

    def _read(self, order: ScanOrder, number: int, cut: ScanPlace, end: ScanPlace) -> _Part:
        """Read a part from where it seems to begin."""
        cursor = order.begin(cut)
        if cursor is None:
            return _Part(order, number, end)
        begin = cursor.place
        notes: list[Seen] = []
        rows = self._write(order, number, cursor, end, notes.append, self.threads.advance)
        return _Part(order, number, end, begin, cursor, notes, rows)

    def _write(
        self, order: ScanOrder, number: int, cursor: Cursor, end: ScanPlace, note: Note, advance: Advance
    ) -> int:
        chunk = self._chunks.pop() if self._chunks else self.chunk(self.release)
        chunk.begin()
        with Scanner() as scanner:
            reading = EventReading(order, cursor, scanner, note, chunk=chunk, shown=self.shown)
            rows = self.to.write(order.log, number, reading.made(end, advance))
        self._chunks.append(chunk)
        return rows

    def _joined(self, part: _Part, before: Cursor | None) -> tuple[Cursor, int]:
        """Join a part to what was before it in its log; return where it ends then, and its rows."""
        order, cursor, note = part.order, part.cursor, self.note(part.order.log)
        if before is None or (cursor is not None and order.fits(before, part.begin)):
            assert cursor is not None
            assert part.begin is not None
            if before is None:
                order.note_begin(note)
            else:
                order.note_gap_before(part.begin, before, note)
            for seen in part.notes:
                note(seen)
            rows = part.rows
        else:
            cursor = before
            rows = self._write(order, part.number, cursor, part.end, note, lambda size_bytes: None)
        if cursor.is_stopped:
            order.is_cancelled.set()
        if part.end == order.end:
            for _ in order.note_end(cursor, note):
                pass
        return cursor, rows


def _cuts(order: ScanOrder, part_bytes: int) -> Iterator[ScanPlace]:
    """Yield approximate beginnings of parts: small segments together, large ones cut."""
    yield ScanPlace(0, 0)
    held = 0
    for index, size in enumerate(order.layout.sizes):
        if held and held + size > part_bytes:
            yield ScanPlace(index, 0)
            held = 0
        pieces = max(1, round(size / part_bytes))
        yield from (ScanPlace(index, size * i // pieces) for i in range(1, pieces))
        held += size if pieces == 1 else size // pieces
