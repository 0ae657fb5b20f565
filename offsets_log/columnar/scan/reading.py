"""Read a log in order, also from its middle on: by a kernel where batches are plain, otherwise on the slow path.

A log is read in parts in parallel. A part begins with the batch that seems to be there; whether it is one is known when
the part before it has ended.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from bisect import bisect_right, insort
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.jit.compiled import kernel
from offsets_log.columnar.jit.kinds import Bytes, Number
from offsets_log.columnar.scan.layout import Layout, Scanner
from offsets_log.columnar.wire import batches as bt
from offsets_log.errors import Damage, OffsetsLogError
from offsets_log.events import LogEnd, LogEvent, TailFound, Until, batch_events
from offsets_log.log_format.batch import RecordBatch, decode_batch_header
from offsets_log.log_format.completeness import Missing, missing_before, missing_between
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.log_format.record import first_offset
from offsets_log.log_format.segment import Tail
from offsets_log.messages.repeated import RepeatedRecords
from offsets_log.pipeline import log_end, tail_found

PAUSE = 1 << 24
"""Bytes between two reports of progress."""
NO_BOUND = int(np.iinfo(np.int64).max)

Seen = Damage | TailFound | Missing
Note = Callable[[Seen], None]
Advance = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Threads:
    """By how many threads logs are read.

    Attributes:
        pieces: that each log is cut into, whatever its size; None for as many as suit the threads.
        advance: called with the number of bytes read since the last call, from any thread.
    """

    count: int = 1
    pieces: int | None = None
    advance: Advance = lambda size_bytes: None


ONE_THREAD = Threads()


@dataclass(frozen=True, slots=True, order=True)
class ScanPlace:
    """A position in a segment."""

    segment_index: int
    position: int


@dataclass(slots=True)
class Cursor:
    """Where reading continues.

    Attributes:
        last_offset: last offset of the last accepted batch.
        next_offset: the offset after everything that was read.
        entered: the segment that was last begun; None where nothing is known of what precedes it.
        is_broken: whether something after the last batch could not be read.
        is_stopped: whether a bound ended the reading.
    """

    place: ScanPlace
    last_offset: int
    next_offset: int
    entered: int | None = None
    is_broken: bool = False
    is_stopped: bool = False


class ScanOrder:
    """A log and the bounds of its reading.

    Attributes:
        decoder: says what its plain records say.
    """

    def __init__(self, log: PartitionLog, until: Until, release: tuple[int, int] | None) -> None:
        self.log = log
        self.layout = Layout(log)
        self.until = until
        self.release = release
        self.is_cancelled = threading.Event()
        self.decoder = RepeatedRecords(release)
        self._reached: dict[int, list[int]] = {}

    @property
    def end(self) -> ScanPlace:
        """The place after the last segment."""
        return ScanPlace(len(self.log.segments), 0)

    def begin(self, cut: ScanPlace) -> Cursor | None:
        """Return a cursor at the first batch of a segment at or after a cut; None if the way there is doubtful."""
        if cut == ScanPlace(0, 0):
            base_offset = self.log.segments[0].base_offset if self.log.segments else None
            return Cursor(cut, -1, base_offset or 0, entered=0)
        data = self.layout.data[cut.segment_index]
        position = self._step_to(cut)
        if position < 0:
            position = int(_seek(data, cut.position))
        if position < 0:
            return None
        base_offset = _first_offset(_batch_at(data, position))
        if base_offset is None:
            return None
        return Cursor(ScanPlace(cut.segment_index, position), base_offset - 1, base_offset)

    def _step_to(self, cut: ScanPlace) -> int:
        """Do what the kernel does, from the nearest known place before the cut, so that no part is walked twice."""
        reached = self._reached.setdefault(cut.segment_index, [0])
        begin = reached[bisect_right(reached, cut.position) - 1]
        position = int(_step_to(self.layout.data[cut.segment_index], begin, cut.position))
        insort(reached, max(position, ~position))
        return position

    def fits(self, cursor: Cursor, begin: ScanPlace | None) -> bool:
        """Return whether what was read from ``begin`` on really continues at a cursor."""
        if cursor.is_stopped or begin != cursor.place:
            return False
        items = self.layout.walk.items(begin.segment_index, begin.position, cursor.last_offset)
        item, _ = next(items, (None, 0))
        if not isinstance(item, RecordBatch) or item.position != begin.position:
            return False
        base_offset = _first_offset(item)
        return base_offset is not None and base_offset > cursor.last_offset

    def note_begin(self, note: Note) -> None:
        """Note offsets that are missing before the log."""
        for missing in missing_before(self.log, self.until.record_offset):
            note(missing)

    def note_gap(self, index: int, before: Cursor, note: Note) -> None:
        """Note offsets that no segment holds before one begins."""
        segment, until_offset = self.log.segments[index], self.until.record_offset
        for missing in missing_between(
            self.log, segment, before.next_offset, is_broken=before.is_broken, until_offset=until_offset
        ):
            note(missing)

    def note_gap_before(self, begin: ScanPlace, before: Cursor, note: Note) -> None:
        """Note the gap before a place where another part continues."""
        if begin.position == 0:
            self.note_gap(begin.segment_index, before, note)

    def note_end(self, reach: Cursor, note: Note) -> Iterator[LogEnd]:
        """Note offsets that are missing after a cursor at the end of the log, unless a bound ended the reading."""
        if reach.is_stopped or not self.log.segments:
            return
        entered = self.log.segments[reach.entered or 0]
        for seen in log_end(self.log, entered, reach.next_offset, self.until, is_broken=reach.is_broken):
            if isinstance(seen, Missing):
                note(seen)
            else:
                yield seen


class Reading(ABC):
    """One run of batches that is read.

    Args:
        note: called with what could not be read, with tails and gaps.
    """

    def __init__(self, order: ScanOrder, cursor: Cursor, scanner: Scanner, note: Note) -> None:
        self.order = order
        self.cursor = cursor
        self.scanner = scanner
        self.note = note
        self._index: int | None = None

    @property
    @abstractmethod
    def scan_state(self) -> a.ScanState:
        """The scan state that tells the kernel what to do."""

    @abstractmethod
    def scan(self, index: int, data: a.Bytes) -> int:
        """Call the kernel as the scan state says; leave nothing staged.

        Returns:
            One of `staging`'s outcomes, or one of its own.
        """

    @abstractmethod
    def take(self, index: int, batch: RecordBatch) -> None:
        """Take a batch that was read on the slow path."""

    def steps(self, end: ScanPlace, advance: Advance) -> Iterator[int]:
        """Read up to the first batch at or after ``end``, and yield the outcome of each call of the kernel."""
        cursor, sizes = self.cursor, self.order.layout.sizes
        while cursor.place < end and cursor.place.segment_index < len(sizes) and not cursor.is_stopped:
            if self.order.is_cancelled.is_set():
                return
            index, before = cursor.place.segment_index, cursor.place.position
            if before >= sizes[index]:
                self._slow_path(index)  # zeros may follow that are not in the buffer
                continue
            if cursor.entered is not None and cursor.entered != index:
                self.order.note_gap(index, cursor, self.note)
            cursor.entered = index
            outcome = self._step(index, end.position if end.segment_index == index else sizes[index])
            after = sizes[index] if cursor.place.segment_index != index else cursor.place.position
            self.order.log.segments[index].release(before, after)
            advance(after - before)
            yield outcome

    def _step(self, index: int, stop: int) -> int:
        """Call the kernel, and do what it returned for."""
        data, scan_state, cursor = self.order.layout.data[index], self.scan_state, self.cursor
        self._tell(index, stop)
        outcome = self.scan(index, data)
        position = int(scan_state.at)
        cursor.place = ScanPlace(index, position)
        last_offset = int(scan_state.last_offset)
        if last_offset > cursor.last_offset:
            cursor.last_offset, cursor.next_offset, cursor.is_broken = last_offset, last_offset + 1, False
        match outcome:
            case oc.NOT_PLAIN:
                self._slow_path(index)
            case oc.NEEDS_WINDOW:
                scan_state.window_count = self.scanner.fill_window(data, position, stop)
                scan_state.window_next = 0
            case oc.NEEDS_RECORDS:
                self.scanner.more_records(int(scan_state.needed))
            case oc.STOPPED:
                cursor.is_stopped = True
        return outcome

    def _tell(self, index: int, stop: int) -> None:
        """Set what the scan state must hold before a scan."""
        scan_state, until = self.scan_state, self.order.until
        if index != self._index:
            scan_state.checked = a.NOTHING
            scan_state.window_count = 0
            self._index = index
        base_offset = self.order.log.segments[index].base_offset
        following = self.order.layout.walk.following_base_offset(index)
        scan_state.at = self.cursor.place.position
        scan_state.stop = stop
        scan_state.last_offset = self.cursor.last_offset
        scan_state.segment = self.order.layout.begins[index]
        scan_state.base_offset = a.NOTHING if base_offset is None else base_offset
        scan_state.following = a.NOTHING if following is None else following
        scan_state.until_offset = _bound(until.record_offset)
        scan_state.until_time = _bound(until.time_ms)
        scan_state.pause = PAUSE

    def _slow_path(self, index: int) -> None:
        """Read with `log_format` until a batch was taken, or one follows damage, which the kernel may read."""
        cursor, segment = self.cursor, self.order.log.segments[index]
        begin = cursor.place.position
        for item, last_offset in self.order.layout.walk.items(index, cursor.place.position, cursor.last_offset):
            match item:
                case Damage():
                    cursor.is_broken = True
                    self.lose(item)
                case Tail():
                    self.end(tail_found(self.order.log, segment, item, cursor.next_offset, self.order.until))
                case RecordBatch() if item.position > begin:
                    cursor.place = ScanPlace(index, item.position)
                    return
                case RecordBatch():
                    if self.order.until.stops_before(item):
                        cursor.is_stopped = True
                        return
                    self.take(index, item)
                    cursor.last_offset = self.scan_state.last_offset = last_offset
                    cursor.next_offset, cursor.is_broken = item.next_offset, False
                    cursor.place = ScanPlace(index, item.position + item.size_bytes)
                    return
        cursor.place = ScanPlace(index + 1, 0)

    def lose(self, damage: Damage) -> None:
        """Note what is no batch, or a record of which only the key was read on the slow path."""
        self.note(damage)

    def end(self, found: TailFound) -> None:
        """Note what follows the last batch of a segment."""
        self.note(found)

    def events(self, index: int, batch: RecordBatch) -> Iterator[LogEvent]:
        """Return what the construct path says of a batch."""
        order = self.order
        return batch_events(order.log, order.log.segments[index], batch, order.until, order.release)

    def int32_at(self, index: int, at: int) -> int:
        """Return a signed 32-bit integer of a segment."""
        return int.from_bytes(self.order.layout.data[index][at : at + 4].tobytes(), signed=True)


def _first_offset(batch: RecordBatch) -> int | None:
    """Return the least offset of a batch; None if only a message inside of it tells that, and cannot be read."""
    if batch.magic == bt.NEWEST_MAGIC:
        return batch.base_offset
    try:
        return min(first_offset(batch), batch.base_offset)
    except OffsetsLogError:
        return None


def _batch_at(data: a.Bytes, position: int) -> RecordBatch:
    """Return the whole batch at a position."""
    size = int.from_bytes(data[position + bt.LENGTH : position + bt.LOG_OVERHEAD].tobytes(), signed=True)
    return decode_batch_header(data[position : position + bt.LOG_OVERHEAD + size].tobytes(), position)


def _bound(given: int | None) -> int:
    """Return a bound limited to 64 bits."""
    return NO_BOUND if given is None else max(-NO_BOUND, min(given, NO_BOUND))


MOST_SOUGHT = 1 << 20
"""Maximum size in bytes of a batch that is searched."""


@kernel
def _seek(data: Bytes, least: Number) -> Any:
    """Return the first place at or after a position that looks like a batch; −1 if there is none near."""
    left, at = np.int64(PAUSE), np.int64(least)
    while left > 0 and at < len(data):
        size = bt.size_at(data, at, np.int64(len(data)))
        if 0 <= size <= MOST_SOUGHT:
            if bt.batch_at(data, at, np.int64(len(data))) > 0:
                return at
            left -= size
        left -= 1
        at += 1
    return np.int64(-1)


@kernel
def _step_to(data: Bytes, begin: Number, least: Number) -> Any:
    """Return the first batch at or after a position, stepping from length to length; ~ of the place of a doubt.

    Args:
        begin: where a batch begins that the same steps have reached, or 0.
    """
    at = np.int64(begin)
    while at < least:
        if len(data) - at < bt.LOG_OVERHEAD:
            return ~at
        size = bt.size_of(data, at)
        if size < bt.LOG_OVERHEAD or size > len(data) - at:
            return ~at
        at += size
    return at if bt.batch_at(data, at, np.int64(len(data))) > 0 else ~at
