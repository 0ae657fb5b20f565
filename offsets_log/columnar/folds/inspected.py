"""Logs replayed by the rules of many releases in one reading, and inspected on the way.

What records do to offsets differs by few rules only, those of `profile.WAYS`; and without producers by none. So one
state reads the log. At the first batch with a producer it is copied for each other way to read
(`InspectedState.split`), and from there on each of these states does what the first one did: a call of the kernel
later, over the bytes that it has just read. What is read on the slow path, all of them get at once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence

from offsets_log.columnar import arrays as a
from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.folds import transactions
from offsets_log.columnar.folds.known import Release, rules_of
from offsets_log.columnar.folds.replay import Piece
from offsets_log.columnar.folds.state import ColumnarState
from offsets_log.columnar.jit.records import places
from offsets_log.events import Event, LogEvent, Until
from offsets_log.log_format.batch import NO_PRODUCER_ID, RecordBatch
from offsets_log.messages.registry import CoordinatorRecord
from offsets_log.replay.fold import replay_into
from offsets_log.replay.profile import Profile, way_of

_S = a.ScanState
_PLACE_IN_SCAN_STATE = places(
    _S.at, _S.last_offset, _S.checked, _S.checked_size, _S.in_window, _S.window_next, _S.segment, _S.base_offset,
    _S.following, _S.until_offset, _S.until_time, _S.pause, _S.window_count,
)  # fmt: skip


class InspectedState(ColumnarState):
    """The effects of a run of records, by every way to read it, and what was seen.

    Args:
        profiles: the rules of the releases that are asked about.
        most_bytes: size of the largest batch that kernels read; larger ones are read on the slow path.
        until, release: what they are in `ColumnarState`.

    Attributes:
        ways: the different ones among them. This state is that of the first.
        others: the states of the other rules, once there was a producer.
    """

    def __init__(self, profiles: Sequence[Profile], most_bytes: int, *, until: Until, release: Release | None) -> None:
        self.ways = tuple(dict.fromkeys(map(way_of, profiles)))
        super().__init__(self.ways[0], until=until, release=release, with_newer=True)
        self.others: list[ColumnarState] = []
        self._numbers: dict[str, int] = {}
        scan_state = self.arrays.scan_state
        scan_state.is_inspected = a.ALONE if len(self.ways) > 1 else a.WITH_OTHERS
        scan_state.most_bytes = most_bytes
        scan_state.newest_ms = -1

    def add_topic_name(self, topic_id: bytes, name: str, record_offset: int) -> None:
        """Do nothing: nobody asks for names."""

    def split(self) -> None:
        """Give the other ways states of their own from here on."""
        if self.arrays.scan_state.is_inspected == a.ALONE:
            self.others = [_OtherState(self, way) for way in self.ways[1:]]
            self.arrays.scan_state.is_inspected = a.WITH_OTHERS

    def of_way(self, profile: Profile) -> ColumnarState:
        """Return the state of a profile's way."""
        return [self, *self.others][self.ways.index(way_of(profile)) if self.others else 0]

    def group_number(self, name: str) -> int:
        """Return what `ColumnarState.group_number` does; a name is looked up once."""
        if name not in self._numbers:
            self._numbers[name] = super().group_number(name)
        return self._numbers[name]

    def replay_on_slow_path(self, events: Sequence[LogEvent]) -> None:
        """Replay what was read on the slow path; damage is told otherwise, and what ends a load too."""
        replay_into(self, events, on_damage=lambda damage: None)
        self.problems.clear()
        of_offsets = [event for event in events if not _is_of_group(event)] if self.others else []
        for state in self.others:
            replay_into(state, of_offsets, on_damage=lambda damage: None)
            state.problems.clear()

    def open_transaction(self, producer_id: int, record_offset: int, timestamp_ms: int, batch_at: int) -> None:
        """Note a transaction's data record that was read on the slow path, and where its batch begins in the log."""
        s = self.arrays
        while not transactions.add_one(s.all, producer_id, record_offset, timestamp_ms, batch_at):
            self.grow()

    def end_transaction(self, producer_id: int) -> None:
        """Note a marker that was read on the slow path."""
        while not transactions.end_one(self.arrays.all, producer_id):
            self.grow()

    def merge(self, right: ColumnarState) -> ColumnarState:
        """Implement `ColumnarState.merge`."""
        assert isinstance(right, InspectedState)
        if right.others:
            self.split()
        if self.others:
            right.split()
        ours, theirs = self.arrays.scan_state, right.arrays.scan_state
        _take_firsts(
            ours.inspected, (ours.inspected_first, ours.inspected_at), (theirs.inspected_first, theirs.inspected_at)
        )
        ours.inspected[:] += theirs.inspected
        _take_firsts(ours.formats, (ours.formats_at,), (theirs.formats_at,))
        ours.formats[:] += theirs.formats
        ours.read_bytes += theirs.read_bytes
        ours.newest_ms = max(ours.newest_ms, theirs.newest_ms)
        super().merge(right)
        transactions.join(self.arrays.all, right.arrays.all)
        for state, other in zip(self.others, right.others, strict=True):
            state.merge(other)
        return self


def _take_firsts(counts: a.Int64s, ours: Sequence[a.Int64s], theirs: Sequence[a.Int64s]) -> None:
    """Take over what the run that follows knows of the first of each kind that was not counted yet."""
    for mine, other in zip(ours, theirs, strict=True):
        mine[counts == 0] = other[counts == 0]


def _is_of_group(event: LogEvent) -> bool:
    """Return whether an event is a record that does nothing to offsets."""
    return isinstance(event, Event) and event.decoded is not None and not event.decoded.is_offset_commit


class _OtherState(ColumnarState):
    """The effects of the same records by other rules, without groups."""

    def __init__(self, first: InspectedState, way: Profile) -> None:
        self.profile = way
        self.until, self.release = first.until, first.release
        self.newer, self.group_records = {}, []
        self.arrays = first.arrays.copy()
        self.values = list(first.values)
        self.events = {}
        self.problems = []
        self.names = []
        scan_state = self.arrays.scan_state
        scan_state.rules, scan_state.by_bit, scan_state.is_inspected = (
            rules_of(way),
            way.transactions_by_bit,
            0,
        )
        scan_state.is_read_again = 1

    def add_group_record(self, record: CoordinatorRecord, record_offset: int) -> None:
        """Do nothing: the first state has the groups."""

    def add_topic_name(self, topic_id: bytes, name: str, record_offset: int) -> None:
        """Do nothing: nobody asks for names."""


class _Follower(Piece):
    """Does with another state what was done with the first."""

    def follow(self, begin: a.Int64s, stop: int, index: int, data: a.Bytes) -> None:
        """Read plain batches again.

        Args:
            begin: the first state's scan state as it was at the beginning.
            stop: the end.
        """
        scan_state = self.scan_state
        scan_state.numbers[_PLACE_IN_SCAN_STATE] = begin
        scan_state.stop = stop
        while scan_state.at < stop:
            match self.scan(index, data):
                case oc.FINISHED | oc.PAUSED:
                    pass
                case oc.NEEDS_RECORDS:
                    self.scanner.more_records(int(scan_state.needed))
                case outcome:
                    raise AssertionError(f"a batch was plain and is not ({outcome})")

    def pass_over(self, events: Iterator[LogEvent]) -> None:
        """Do nothing: it has been reported."""


class InspectedPiece(Piece):
    """One run of batches on its way, inspected."""

    state: InspectedState

    def scan(self, index: int, data: a.Bytes) -> int:
        begin = self.scan_state.numbers[_PLACE_IN_SCAN_STATE]
        outcome = super().scan(index, data)
        if outcome == oc.NEEDS_OTHERS:
            self.state.split()
            begin = self.scan_state.numbers[_PLACE_IN_SCAN_STATE]
            outcome = super().scan(index, data)
        for state in self.state.others:
            other = _Follower(self.order, self.cursor, self.scanner, self.note, state)
            other.follow(begin, int(self.scan_state.at), index, data)
        if self.scan_state.last_offset > self.cursor.last_offset:
            self.reached(index, int(self.scan_state.last_offset) + 1)
        return outcome

    def take(self, index: int, batch: RecordBatch) -> None:
        if batch.is_control or batch.is_transactional or batch.producer_id != NO_PRODUCER_ID:
            self.state.split()
        events = list(self.counted(self.events(index, batch)))
        self.state.replay_on_slow_path(events)
        self.saw(events, self.order.layout.begins[index] + batch.position)

    @abstractmethod
    def reached(self, index: int, next_offset: int) -> None:
        """Note that plain batches of a segment were read up to an offset."""

    @abstractmethod
    def saw(self, events: Sequence[LogEvent], batch_at: int) -> None:
        """Note the events of a batch that was read on the slow path, and where it begins in the log."""
