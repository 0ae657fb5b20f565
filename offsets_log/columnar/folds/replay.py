"""Logs replayed in bulk: kernels for what is plain, `pipeline` for what is not, pieces for threads.

Every piece of a log is a run of batches with a `ColumnarState` of its own. A kernel takes batches until one is not
plain; that one is read and replayed on the slow path, exactly as `pipeline.replay` does, and the kernel goes on behind
it. Pieces are joined in log order, if the left one has really ended where the right one began, and no record had an
offset out of its place; else the right one's work is thrown away and done again from there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

from offsets_log.columnar import arrays as a
from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.folds import offsets
from offsets_log.columnar.folds.state import ColumnarState
from offsets_log.columnar.scan.layout import Layout, Scanner
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
from offsets_log.columnar.wire import batches as bt
from offsets_log.errors import OffsetsLogError
from offsets_log.events import EVERYTHING, BatchStart, Event, LogEvent, Until
from offsets_log.log_format.batch import RecordBatch, decode_batch_header
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.messages.registry import decode_key
from offsets_log.replay.fold import place_of, replay_into
from offsets_log.replay.profile import Profile

LEAST_PIECE = 1 << 24
"""Bytes of log that are worth a piece of their own."""


class Piece(Reading):
    """One run of batches on its way into a state."""

    def __init__(self, order: ScanOrder, cursor: Cursor, scanner: Scanner, note: Note, state: ColumnarState) -> None:
        super().__init__(order, cursor, scanner, note)
        self.state = state

    @property
    def scan_state(self) -> a.ScanState:
        return self.state.arrays.scan_state

    def run(self, end: ScanPlace, advance: Advance) -> None:
        """Replay up to the first batch at or behind ``end``, or to the end of the log."""
        for _ in self.steps(end, advance):
            pass

    def scan(self, index: int, data: a.Bytes) -> int:
        while (outcome := self.scan_on(data)) in (oc.KEY_NOT_PLAIN, oc.NEEDS_ROOM):
            if outcome == oc.NEEDS_ROOM:
                self.state.grow()
            else:
                self._key_on_slow_path(index)
        return outcome

    def scan_on(self, data: a.Bytes) -> int:
        """Call the kernel where the scan state says."""
        state = self.state
        return offsets.scan(state.arrays.all, self.scanner.buffers, data, state.ledger)  # type: ignore[no-any-return]

    def take(self, index: int, batch: RecordBatch) -> None:
        replay_into(self.state, self.counted(self.events(index, batch)), on_damage=self.note)

    def counted(self, events: Iterator[LogEvent]) -> Iterator[LogEvent]:
        """Pass on the events of a batch that was read on the slow path, and tell them to the state."""
        for event in events:
            if isinstance(event, BatchStart):
                self.state.saw_batch(event.base_offset)
            elif isinstance(event, Event):
                self.scan_state.records += 1
                self.state.is_out_of_place |= place_of(self.state, event) != event.record.offset
                if self.scan_state.notes_activity:
                    self.state.note_activity(event)
            yield event

    def _key_on_slow_path(self, index: int) -> None:
        """Register a key that the kernel could not read, or note the damage and pass its record over."""
        data = self.order.layout.data[index]
        staged = self.scanner.staged[self.scan_state.flushed]
        source = self.scanner.window if self.scan_state.in_window else data
        raw_key = staged.raw_key(source)
        try:
            row, fields, _ = decode_key(raw_key)
        except OffsetsLogError:
            staged.kind = a.PASSED
            at = int(staged.batch) - self.order.layout.begins[index]
            size = self.int32_at(index, at + bt.LENGTH) + bt.LOG_OVERHEAD
            batch = decode_batch_header(data[at : at + size].tobytes(), at)
            events = (event for event in self.events(index, batch) if isinstance(event, Event))
            self.pass_over(islice(events, int(staged.index), int(staged.index) + 1))
        else:
            self.state.register(raw_key, row.number, fields, int(staged.offset))

    def pass_over(self, events: Iterator[LogEvent]) -> None:
        """Take a record of which only the key was read on the slow path, and found wanting."""
        replay_into(self.state, events, on_damage=self.lose)


# ------------------------------------------------------------------------------------------------ pieces


class Replay:
    """One log, cut into pieces that threads replay.

    Args:
        log: its segments must stay open.
        pieces: how many; fewer where the log is short.
        notes_activity: whether states are to know when groups last wrote.

    Attributes:
        piece: the kind of pieces.
    """

    piece: type[Piece] = Piece

    def __init__(
        self,
        log: PartitionLog,
        profile: Profile,
        *,
        until: Until = EVERYTHING,
        release: tuple[int, int] | None = None,
        pieces: int = 1,
        notes_activity: bool = False,
    ) -> None:
        self.order = ScanOrder(log, until, release)
        self.profile, self.notes_activity = profile, notes_activity
        self.how: dict[str, Any] = {"until": until, "release": release}
        total = sum(self.order.layout.sizes)
        self.cuts = cuts_at(self.order.layout, [total * i // pieces for i in range(1, pieces)])

    def start(self, pool: ThreadPoolExecutor, advance: Advance) -> list[Future[Part]]:
        """Begin with all pieces."""
        return [
            pool.submit(self.replay_piece, cut, end, advance) for cut, end in zip(self.cuts, self.ends, strict=True)
        ]

    def new_state(self, *, with_newer: bool = True) -> ColumnarState:
        """Return the state that a piece begins with.

        Args:
            with_newer: what it is in `ColumnarState`, if that kind of state has it.
        """
        state = ColumnarState(self.profile, **self.how, with_newer=with_newer)
        state.arrays.scan_state.notes_activity = self.notes_activity
        return state

    def prepare(self, state: ColumnarState, begin: ScanPlace, scanner: Scanner) -> bool:
        """Have the state of a piece know what it must of those before it; return whether it can."""
        return True

    @property
    def ends(self) -> list[ScanPlace]:
        """Where each piece should end."""
        return [*self.cuts[1:], self.order.end]

    def replay_piece(self, cut: ScanPlace, end: ScanPlace, advance: Advance) -> Part:
        """Return what becomes of one piece, whatever was before it."""
        cursor = self.order.begin(cut)
        if cursor is None:
            return Part(end)
        begin, notes, state = cursor.place, list[Seen](), self.new_state()
        with Scanner() as scanner:
            if not self.prepare(state, begin, scanner):
                return Part(end)
            self.piece(self.order, cursor, scanner, notes.append, state).run(end, advance)
        return Part(end, begin, cursor, state, notes)

    def cancel(self, parts: Sequence[Future[Part]]) -> None:
        """End the work on pieces nobody waits for."""
        self.order.is_cancelled.set()
        for part in parts:
            part.cancel()

    def join(self, parts: Sequence[Waited], note: Note) -> ColumnarState:
        """Wait for the pieces and put them together, telling what was seen in log order."""
        order = self.order
        first, *others = parts
        cursor, whole = first.result().cursor, first.result().state
        assert cursor is not None
        assert whole is not None
        order.note_begin(note)
        for seen in first.result().notes:
            note(seen)
        for other in others:
            part = other.result()
            if cursor.is_stopped:
                break
            if (
                part.cursor is not None
                and part.state is not None
                and order.fits(cursor, part.begin)
                and not (whole.is_out_of_place or part.state.is_out_of_place)
            ):
                order.note_gap_before(cursor.place, cursor, note)
                for seen in part.notes:
                    note(seen)
                whole.merge(part.state)
                cursor = part.cursor
            else:
                with Scanner() as scanner:
                    self.piece(order, cursor, scanner, note, whole).run(part.end, lambda size_bytes: None)
        replay_into(whole, order.note_end(cursor, note), on_damage=note)
        return whole


class Waited(Protocol):
    """A piece that is on its way."""

    def result(self) -> Part:
        """Return what became of it."""


@dataclass(frozen=True, slots=True)
class Part:
    """The result of a piece: where it should end and where it began, where it ended, what was seen."""

    end: ScanPlace
    begin: ScanPlace | None = None
    cursor: Cursor | None = None
    state: ColumnarState | None = None
    notes: Sequence[Seen] = ()


def cuts_at(layout: Layout, places: Sequence[int]) -> list[ScanPlace]:
    """Return where pieces begin, approximately: at the beginning of a segment if one is near.

    Args:
        places: bytes of the log before each piece but the first, ascending.
    """
    total = sum(layout.sizes)
    cuts = [ScanPlace(0, 0)]
    for at in places if total else ():
        index = max(n for n, begin in enumerate(layout.begins) if begin <= at)
        inside = at - layout.begins[index]
        size = layout.sizes[index]
        if min(inside, size - inside) * 20 * (len(places) + 1) <= total:
            place = ScanPlace(index, 0) if 2 * inside < size else ScanPlace(index + 1, 0)
        else:
            place = ScanPlace(index, inside)
        if cuts[-1] < place:
            cuts.append(place)
    return cuts


@dataclass(frozen=True, slots=True)
class Replayed:
    """A log and what its records did.

    Attributes:
        scanner: makes what looks values up that the state refers to.
    """

    log: PartitionLog
    layout: Layout
    state: ColumnarState
    scanner: Callable[[], Scanner] = Scanner


def replay_logs(
    logs: Sequence[PartitionLog],
    profile: Profile,
    *,
    note: Callable[[PartitionLog], Note],
    until: Callable[[PartitionLog], Until] = lambda log: EVERYTHING,
    release: tuple[int, int] | None = None,
    threads: Threads = ONE_THREAD,
    replay: Callable[..., Replay] = Replay,
) -> Iterator[Replayed]:
    """Replay all logs one after the other: a log of a thread's share or more is cut to pieces.

    The work begins at once; what is given must be read to its end or closed.

    Args:
        note: log → what to do with what could not be read, with tails and gaps; called in log order.
        replay: makes a kind of replays.
    """
    total = sum(log.bytes_to_read for log in logs) or 1

    def replays() -> Iterator[Replay]:
        for log in logs:
            most = log.bytes_to_read // LEAST_PIECE
            share = threads.pieces or min(round(threads.count * log.bytes_to_read / total), most)
            yield replay(log, profile, until=until(log), release=release, pieces=max(1, share))

    pool = ThreadPoolExecutor(threads.count)
    queue = _Queue(replays(), pool, threads)
    queue.fill()
    return _results(queue, pool, note)


class _Queue:
    """Replays at work, in order: as many as keep all threads busy."""

    def __init__(self, replays: Iterator[Replay], pool: ThreadPoolExecutor, threads: Threads) -> None:
        self.replays = replays
        self.pool = pool
        self.threads = threads
        self.working: deque[tuple[Replay, list[Future[Part]]]] = deque()

    def fill(self) -> None:
        while sum(len(parts) for _, parts in self.working) <= self.threads.count:
            replay = next(self.replays, None)
            if replay is None:
                return
            self.working.append((replay, replay.start(self.pool, self.threads.advance)))


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


def _joined(replay: Replay, parts: list[Future[Part]], note: Callable[[PartitionLog], Note]) -> Replayed:
    try:
        return Replayed(replay.order.log, replay.order.layout, replay.join(parts, note(replay.order.log)))
    finally:
        replay.cancel(parts)
