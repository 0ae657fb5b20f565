"""Logs replayed in bulk: kernels for what is plain, `pipeline` for what is not, pieces for threads.

Every piece of a log is a run of batches with a `ColumnarState` of its own. A kernel takes batches until one is not
plain; that one is read and replayed by hand, exactly as `pipeline.replay` does, and the kernel goes on behind it.
Pieces are joined in log order, if the left one has really ended where the right one began; else the right one's work
is thrown away and done again from there.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar import batches as bt
from offsets_log.columnar import scan as sc
from offsets_log.columnar.compiled import kernel
from offsets_log.columnar.layout import Layout, Scanner
from offsets_log.columnar.state import ColumnarState
from offsets_log.columnar.wire import be32
from offsets_log.errors import Damage, OffsetsLogError
from offsets_log.log_format.batch import RecordBatch, decode_batch_header
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.log_format.segment import Tail
from offsets_log.messages.registry import decode_key
from offsets_log.pipeline import (
    EVERYTHING,
    BatchStart,
    Event,
    GapFound,
    LogEnd,
    LogEvent,
    TailFound,
    Until,
    batch_events,
    replay_into,
)
from offsets_log.replay.profile import Profile

PAUSE = 1 << 24
"""Bytes between two signs of life."""
LEAST_PIECE = 1 << 24
NO_BOUND = np.iinfo(np.int64).max

Seen = Damage | TailFound | GapFound
Note = Callable[[Seen], None]
Advance = Callable[[int], None]


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A position in a segment."""

    segment_index: int
    position: int


class _Piece:
    """One run of batches on its way.

    Attributes:
        place: where it goes on.
        state: what the records did so far.
        is_stopped: whether a bound ended it.
    """

    def __init__(
        self,
        layout: Layout,
        profile: Profile,
        until: Until,
        release: tuple[int, int] | None,
        place: Place,
        last_offset: int,
        is_cancelled: threading.Event,
    ) -> None:
        self.is_cancelled = is_cancelled
        self.layout = layout
        self.until = until
        self.release = release
        self.place = place
        self.state = ColumnarState(profile)
        self.state.arrays.desk[a.LAST_OFFSET] = last_offset
        self.next_offset = last_offset + 1
        self.entered: int | None = None
        self.ordered: int | None = None
        self.is_stopped = False

    @property
    def last_offset(self) -> int:
        """Of the last batch accepted."""
        return int(self.state.arrays.desk[a.LAST_OFFSET])

    def run(self, end: Place, scanner: Scanner, note: Note, advance: Advance) -> None:
        """Replay up to the first batch at or behind ``end``, or to the end of the log."""
        segments = self.layout.log.segments
        while self.place < end and self.place.segment_index < len(segments) and not self.is_stopped:
            if self.is_cancelled.is_set():
                return
            index = self.place.segment_index
            size = len(segments[index].buffer)
            if self.place.position >= size:
                self.place = Place(index + 1, 0)
                continue
            self._enter(index, note)
            stop = end.position if end.segment_index == index else size
            before = self.place.position
            self._run_segment(index, stop, scanner, note, advance)
            advance(0 if self.place.segment_index != index else self.place.position - before)

    def _enter(self, index: int, note: Note) -> None:
        """Tell of offsets missing between segments."""
        if self.entered is not None and self.entered != index:
            note_gap(self.layout.log, index, self.next_offset, note)
        self.entered = index

    def _run_segment(self, index: int, stop: int, scanner: Scanner, note: Note, advance: Advance) -> None:
        """A call of the kernel, and what it came back for. At the end nothing is staged."""
        data = self.layout.data[index]
        desk = self.state.arrays.desk
        self._order(index, stop)
        while (outcome := self._scan(data, scanner)) in (sc.DOUBTFUL_KEY, sc.NEEDS_ROOM):
            if outcome == sc.NEEDS_ROOM:
                self.state.grow()
            else:
                self._key_by_hand(index, scanner, note)
        position = int(desk[a.AT])
        self.place = Place(index, position)
        self.next_offset = self.last_offset + 1
        match outcome:
            case sc.DOUBTFUL:
                self._by_hand(index, note)
            case sc.NEEDS_WINDOW:
                desk[a.WINDOW_COUNT] = scanner.fill_window(data, position, stop)
                desk[a.WINDOW_NEXT] = 0
            case sc.NEEDS_RECORDS:
                scanner.more_records(int32_at(data, position + bt.RECORDS_COUNT))
            case sc.STOPPED:
                self.is_stopped = True

    def _scan(self, data: a.Bytes, scanner: Scanner) -> int:
        s = self.state.arrays
        return sc.scan(  # type: ignore[no-any-return]
            s.desk, s.slots, s.rows, s.groups, s.arena, s.cold, scanner.staged, data, scanner.window, scanner.table
        )

    def _order(self, index: int, stop: int) -> None:
        """What the desk must say before a scan."""
        desk = self.state.arrays.desk
        if index != self.ordered:
            desk[a.CHECKED] = a.NOTHING
            desk[a.WINDOW_COUNT] = 0
            self.ordered = index
        base_offset = self.layout.log.segments[index].base_offset
        following = self.layout.walk.following_base_offset(index)
        desk[a.AT] = self.place.position
        desk[a.STOP] = stop
        desk[a.SEGMENT] = self.layout.begins[index]
        desk[a.BASE_OFFSET] = a.NOTHING if base_offset is None else base_offset
        desk[a.FOLLOWING] = a.NOTHING if following is None else following
        desk[a.UNTIL_OFFSET] = NO_BOUND if self.until.record_offset is None else self.until.record_offset
        desk[a.UNTIL_TIME] = NO_BOUND if self.until.time_ms is None else self.until.time_ms
        desk[a.PAUSE] = PAUSE

    def _by_hand(self, index: int, note: Note) -> None:
        """Read on with `log_format` until a batch was replayed."""
        segment = self.layout.log.segments[index]
        for item, last_offset in self.layout.walk.items(index, self.place.position, self.last_offset):
            match item:
                case Damage():
                    note(item)
                case Tail():
                    note(TailFound(segment, item))
                case RecordBatch():
                    if self.until.stops_before(item):
                        self.is_stopped = True
                        return
                    replay_into(self.state, self._counted(self._events(index, item)), on_damage=note)
                    self.state.arrays.desk[a.LAST_OFFSET] = last_offset
                    self.next_offset = item.next_offset
                    self.place = Place(index, item.position + item.size_bytes)
                    return
        self.place = Place(index + 1, 0)

    def _counted(self, events: Iterator[LogEvent]) -> Iterator[LogEvent]:
        for event in events:
            if isinstance(event, BatchStart):
                self.state.saw_batch(event.base_offset, event.batch.records_count)
            yield event

    def _events(self, index: int, batch: RecordBatch) -> Iterator[LogEvent]:
        log = self.layout.log
        return batch_events(log, log.segments[index], batch, self.until, self.release)

    def _key_by_hand(self, index: int, scanner: Scanner, note: Note) -> None:
        """Register a key that the kernel could not read, or note the damage and pass its record over."""
        desk = self.state.arrays.desk
        staged = scanner.staged[desk[a.FLUSHED]]
        source = scanner.window if desk[a.IN_WINDOW] else self.layout.data[index]
        start = int(staged[a.KEY])
        raw_key = source[start : start + int(staged[a.KEY_SIZE])].tobytes()
        try:
            row, fields, _ = decode_key(raw_key)
        except OffsetsLogError:
            at = int(staged[a.STAGED_BATCH]) - self.layout.begins[index]
            size = int32_at(self.layout.data[index], at + bt.LENGTH) + bt.LOG_OVERHEAD
            batch = decode_batch_header(self.layout.data[index][at : at + size].tobytes(), at)
            events = (event for event in self._events(index, batch) if isinstance(event, Event))
            only = islice(events, int(staged[a.STAGED_INDEX]), int(staged[a.STAGED_INDEX]) + 1)
            replay_into(self.state, only, on_damage=note)
            staged[a.KIND] = a.PASSED
        else:
            self.state.register(raw_key, row.number, fields)


def int32_at(data: a.Bytes, at: int) -> int:
    """A signed 32-bit integer of a segment."""
    return int.from_bytes(data[at : at + 4].tobytes(), signed=True)


def note_gap(log: PartitionLog, index: int, next_offset: int, note: Note) -> None:
    """Tell of offsets that no segment holds before one begins."""
    base_offset = log.segments[index].base_offset or 0
    if base_offset > next_offset:
        note(GapFound(log.segments[index], next_offset, base_offset - 1))


# ------------------------------------------------------------------------------------------------ pieces


class Replay:
    """One log, cut into pieces that threads replay.

    Args:
        log: its segments must stay open.
        pieces: how many; fewer where the log is short.
    """

    def __init__(
        self,
        log: PartitionLog,
        profile: Profile,
        *,
        until: Until = EVERYTHING,
        release: tuple[int, int] | None = None,
        pieces: int = 1,
    ) -> None:
        self.log = log
        self.layout = Layout(log)
        self.profile = profile
        self.until = until
        self.release = release
        self.cuts = _cuts(self.layout, pieces)
        self.is_cancelled = threading.Event()

    def start(self, pool: ThreadPoolExecutor, advance: Advance) -> list[Future[_Part]]:
        """Begin with all pieces."""
        ends = [*self.cuts[1:], Place(len(self.layout.log.segments), 0)]
        return [pool.submit(self._replay_piece, cut, end, advance) for cut, end in zip(self.cuts, ends, strict=True)]

    def _replay_piece(self, cut: Place, end: Place, advance: Advance) -> _Part:
        begin = first_batch(self.layout, cut)
        if begin is None:
            return _Part(None, end, [])
        place, last_offset = begin
        piece = self._piece(place, last_offset)
        notes: list[Seen] = []
        with Scanner() as scanner:
            piece.run(end, scanner, notes.append, advance)
        return _Part(piece, end, notes, place)

    def _piece(self, place: Place, last_offset: int) -> _Piece:
        return _Piece(self.layout, self.profile, self.until, self.release, place, last_offset, self.is_cancelled)

    def cancel(self, parts: Sequence[Future[_Part]]) -> None:
        """End the work on pieces nobody waits for."""
        self.is_cancelled.set()
        for part in parts:
            part.cancel()

    def join(self, parts: Sequence[Future[_Part]], note: Note) -> ColumnarState:
        """Wait for the pieces and put them together, telling what was seen in log order."""
        first, *others = parts
        whole = first.result().piece
        assert whole is not None
        for seen in first.result().notes:
            note(seen)
        for other in others:
            part = other.result()
            if whole.is_stopped:
                break
            if (
                part.piece is not None
                and part.begin == whole.place
                and is_batch_at(self.layout, whole.place, whole.last_offset)
            ):
                self._join(whole, part, note)
            else:
                with Scanner() as scanner:
                    whole.run(part.end, scanner, note, lambda size_bytes: None)
        if not whole.is_stopped and self.until.record_offset is None:
            segments = self.layout.log.segments
            replay_into(whole.state, [LogEnd(segments[-1].base_offset or 0)] if segments else [], on_damage=note)
        return whole.state

    def _join(self, whole: _Piece, part: _Part, note: Note) -> None:
        assert part.piece is not None
        if part.begin is not None and part.begin.position == 0:
            note_gap(self.layout.log, part.begin.segment_index, whole.next_offset, note)
        for seen in part.notes:
            note(seen)
        whole.state.merge(part.piece.state)
        whole.place = part.piece.place
        whole.next_offset = part.piece.next_offset
        whole.is_stopped = part.piece.is_stopped
        whole.entered = part.piece.entered


@dataclass(frozen=True, slots=True)
class _Part:
    """What became of a piece: where it began and should end, and what was seen on the way."""

    piece: _Piece | None
    end: Place
    notes: list[Seen]
    begin: Place | None = None


def _cuts(layout: Layout, pieces: int) -> list[Place]:
    """Where pieces begin, more or less: at the begin of a segment if one is near."""
    total = sum(map(len, layout.data))
    cuts = [Place(0, 0)]
    for i in range(1, min(pieces, total // LEAST_PIECE) if total else 1):
        at = total * i // pieces
        index = max(n for n, begin in enumerate(layout.begins) if begin <= at)
        inside = at - layout.begins[index]
        size = len(layout.data[index])
        if min(inside, size - inside) * 20 * pieces <= total:
            place = Place(index, 0) if 2 * inside < size else Place(index + 1, 0)
        else:
            place = Place(index, inside)
        if cuts[-1] < place < Place(len(layout.data), 0):
            cuts.append(place)
    return cuts


def first_batch(layout: Layout, cut: Place) -> tuple[Place, int] | None:
    """The first batch of a segment at or behind a cut, and the offset before it; None if the way there is doubtful."""
    if cut == Place(0, 0):
        return cut, -1
    data = layout.data[cut.segment_index]
    position = int(_step_to(data, cut.position))
    if position < 0:
        return None
    return Place(cut.segment_index, position), int.from_bytes(data[position : position + 8].tobytes(), signed=True) - 1


def is_batch_at(layout: Layout, place: Place, last_offset: int) -> bool:
    """Whether the batch there is in its place, which a piece that begins with it could not know."""
    item, _ = next(layout.walk.items(place.segment_index, place.position, last_offset), (None, 0))
    return isinstance(item, RecordBatch) and item.position == place.position


@kernel
def _step_to(data: Any, least: Any) -> Any:
    """The first batch at or behind a position, from length to length; −1 where one of them is doubtful."""
    at = np.int64(0)
    while at < least:
        if len(data) - at < bt.HEADER_SIZE:
            return np.int64(-1)
        size = be32(data, at + bt.LENGTH) + bt.LOG_OVERHEAD
        if size < bt.LOG_OVERHEAD or size > len(data) - at:
            return np.int64(-1)
        at += size
    return at if bt.batch_at(data, at, np.int64(len(data))) > 0 else np.int64(-1)


@dataclass(frozen=True, slots=True)
class Replayed:
    """A log and what its records did."""

    log: PartitionLog
    layout: Layout
    state: ColumnarState


def replay_logs(
    logs: Sequence[PartitionLog],
    profile: Profile,
    *,
    note: Callable[[PartitionLog], Note],
    until: Callable[[PartitionLog], Until] = lambda log: EVERYTHING,
    release: tuple[int, int] | None = None,
    threads: int = 1,
    pieces: int | None = None,
    advance: Advance = lambda size_bytes: None,
) -> Iterator[Replayed]:
    """All logs replayed, one after the other, by so many threads: a log of its share or more is cut into pieces.

    The work begins at once; what is given must be read to its end or closed.

    Args:
        note: log → what to do with what could not be read, with tails and gaps; called in log order.
        advance: called with the number of bytes read since, from any thread.
        pieces: of each log, whatever its size.
    """
    total = sum(log.size_bytes for log in logs) or 1

    def replays() -> Iterator[Replay]:
        for log in logs:
            share = pieces or max(1, round(threads * log.size_bytes / total))
            yield Replay(log, profile, until=until(log), release=release, pieces=share)

    pool = ThreadPoolExecutor(threads)
    queue = _Queue(replays(), pool, threads, advance)
    queue.fill()
    return _results(queue, pool, note)


class _Queue:
    """Replays at work, in order: as many as keep all threads busy."""

    def __init__(self, replays: Iterator[Replay], pool: ThreadPoolExecutor, threads: int, advance: Advance) -> None:
        self.replays = replays
        self.pool = pool
        self.threads = threads
        self.advance = advance
        self.working: deque[tuple[Replay, list[Future[_Part]]]] = deque()

    def fill(self) -> None:
        while sum(len(parts) for _, parts in self.working) <= self.threads:
            replay = next(self.replays, None)
            if replay is None:
                return
            self.working.append((replay, replay.start(self.pool, self.advance)))


def _results(queue: _Queue, pool: ThreadPoolExecutor, note: Callable[[PartitionLog], Note]) -> Iterator[Replayed]:
    with pool:
        try:
            while queue.working:
                replayed = _joined(*queue.working[0], note)
                queue.working.popleft()
                queue.fill()
                yield replayed
        finally:
            for replay, parts in queue.working:
                replay.cancel(parts)


def _joined(replay: Replay, parts: list[Future[_Part]], note: Callable[[PartitionLog], Note]) -> Replayed:
    try:
        return Replayed(replay.log, replay.layout, replay.join(parts, note(replay.log)))
    finally:
        replay.cancel(parts)
