"""Check logs in bulk: kernels read and inspect what is plain; everything else takes the slow path."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from offsets_log.broker.reading import LOAD_BUFFER_BYTES
from offsets_log.checking.loads import LargeBatch, large_batches
from offsets_log.checking.places import FindingPlace
from offsets_log.checking.watched import Watched
from offsets_log.columnar import arrays as a
from offsets_log.columnar.folds.inspected import InspectedPiece, InspectedState
from offsets_log.columnar.folds.replay import Replay, Replayed, replay_logs
from offsets_log.columnar.folds.state import ColumnarState
from offsets_log.columnar.scan.reading import ONE_THREAD, Note, Seen, Threads
from offsets_log.columnar.wire.batches import NEWEST_MAGIC
from offsets_log.columnar.wire.programs import NO_PLACE
from offsets_log.errors import Damage, OffsetsLogError
from offsets_log.events import EVERYTHING, BatchEnd, BatchStart, Event, LogEvent, TailFound, Until
from offsets_log.log_format.batch import MAX_OFFSETS_IN_SEGMENT, NO_PRODUCER_ID, RecordBatch
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.log_format.record import first_offset
from offsets_log.log_format.segment import iter_batches
from offsets_log.messages.registry import CoordinatorRecord
from offsets_log.replay import refusal
from offsets_log.replay.fold import FoundProblems, replay_into
from offsets_log.replay.problem import Problem
from offsets_log.replay.profile import Profile
from offsets_log.replay.releases import Release

_Kind = refusal.Kind | str
"""That of a record; or the compression of a batch."""


@dataclass(slots=True)
class _Offsets:
    """Groups that commit under type 0 keys, in records that were read on the slow path."""

    groups: set[str] = field(default_factory=set)

    def saw_offset(self, record: CoordinatorRecord, place: FindingPlace) -> None:
        """Note an offset commit or its tombstone."""
        if record.record_type == 0:
            self.groups.add(record.key["group"])


@dataclass(slots=True)
class _Transactions:
    """Records transactions read on the slow path in the kernels' arrays.

    Attributes:
        batch_at: where the batch begins in the log; None if the kernel reads the record too.
    """

    state: CheckedState
    batch_at: int | None = None

    def saw_record(self, event: Event, place: FindingPlace) -> None:
        """Note a data record."""
        if event.batch.is_transactional and self.batch_at is not None:
            self.state.open_transaction(
                event.batch.producer_id, event.record.offset, event.record.timestamp_ms, self.batch_at
            )

    def saw_marker(self, producer_id: int) -> None:
        """Note a marker, which ends the producer's transaction."""
        self.state.end_transaction(producer_id)


class CheckedState(InspectedState):
    """What a run of records did by the rules of every release, and what was seen in it.

    Attributes:
        seen: what was read on the slow path.
        first_problems: rules → the first problem on the slow path that ends the load.
        first_types: record type → its first record: an offset if a kernel has read it, else its place.
        passed: record type → its first record whose key alone was read on the slow path.
        unusual_batches: number of batches read on the slow path that a recovery might not take as they are.
        unordered_batches: number of those whose records' offsets go back.
        judged: kinds of what was read on the slow path → whose verdict on more of a kind is open, a bit each.
        asked: record type → rules by which a value in the kernel's layout is read in another one (``B-9``).
    """

    def __init__(self, profiles: Sequence[Profile], **how: Any) -> None:
        super().__init__(profiles, LOAD_BUFFER_BYTES, **how)
        self.profiles = tuple(profiles)
        self.transactions, self.offsets = _Transactions(self), _Offsets()
        self.seen = Watched(self.transactions, self.offsets)
        self.first_problems: dict[Profile, Problem] = {}
        self.first_types: dict[int, int | FindingPlace] = {}
        self.passed: dict[int, FindingPlace] = {}
        self.large_batches: list[LargeBatch] = []
        self.unusual_batches = self.unordered_batches = 0
        self.judged: dict[_Kind, int] = {}
        self.asked: dict[int, list[Profile]] = {}
        for number, layout in self.newer.items():
            record = CoordinatorRecord(record_type=number, key={}, layout=layout)
            self.asked[number] = [profile for profile in profiles if not refusal.is_told_by_kind(record, profile)]
        self._ask_less()

    def saw(self, events: Sequence[LogEvent], note: Note, batch_at: int) -> None:
        """Note a batch that was read on the slow path and replayed."""
        self.note_types()
        self.transactions.batch_at = batch_at
        self._see(events, note)
        self.large_batches += large_batches(events)
        for number, (place, _) in self.seen.names.types.items():
            self.first_types.setdefault(number, place)
        records = (event.decoded for event in events if isinstance(event, Event))
        for group in {record.group for record in records if record is not None}:
            self._first_on_slow_path(group)

    def saw_passed(self, events: Sequence[LogEvent], note: Note) -> None:
        """Note a record whose key was read on the slow path; the kernel reads the rest of its batch."""
        known = dict(self.seen.names.types)
        self.transactions.batch_at = None
        self._see(events, note)
        for number, (place, _) in self.seen.names.types.items():
            if number not in known:
                self.passed.setdefault(number, place)

    def _see(self, events: Sequence[LogEvent], note: Note) -> None:
        for event in events:
            self.seen.saw(event, note)
        asked = 0
        for event in events:
            asked |= self._asked_of(event)
        for number, profile in enumerate(self.profiles):
            if asked >> number & 1:
                self._first_problem(profile, events)
        self._ask_less()

    def _ask_less(self) -> None:
        """Have the kernel read values in one layout only, where nobody asks for the other or its loads have failed."""
        last_offset = self.arrays.scan_state.last_offset
        failed = {profile for profile, problem in self.first_problems.items() if problem.record_offset <= last_offset}
        for number, profiles in self.asked.items():
            if failed.issuperset(profiles):
                self.arrays.scan_state.other_programs[number] = NO_PLACE

    def _asked_of(self, event: LogEvent) -> int:
        """Return whose verdict on an event is open, a bit each: all for the first of a kind, then few or none."""
        everybody = (1 << len(self.profiles)) - 1
        if isinstance(event, BatchEnd):
            return 0
        kind = _kind_of(event)
        if kind is None:
            return everybody
        if kind not in self.judged:
            record = event.decoded if isinstance(event, Event) else None
            self.judged[kind] = sum(
                1 << number
                for number, profile in enumerate(self.profiles)
                if record is not None and not refusal.is_told_by_kind(record, profile)
            )
            return everybody
        return self.judged[kind]

    def _first_problem(self, profile: Profile, events: Sequence[LogEvent]) -> None:
        first, found = self.first_problems.get(profile), FoundProblems(profile)
        if first is not None and _begin_behind(events, first.record_offset):
            return
        replay_into(found, events, on_damage=lambda damage: None)
        problems = [*([first] if first is not None else []), *found.problems]
        if problems:
            self.first_problems[profile] = min(problems, key=lambda problem: problem.record_offset)

    def _first_on_slow_path(self, group: str) -> None:
        number = self.group_number(group)  # first: it may exchange the arrays
        if self.arrays.groups[number].first_offset == a.NEVER:
            self.arrays.groups[number].first_offset = a.SLOW_PATH

    def note_types(self) -> None:
        """Take over the first records of types that the kernel has found since the last call."""
        counts, firsts = self.arrays.scan_state.inspected, self.arrays.scan_state.inspected_first
        for number in {*np.flatnonzero(counts.sum(axis=1)).tolist(), *self.passed} - self.first_types.keys():
            met: list[int | FindingPlace] = [int(first) for first in firsts[number][counts[number] > 0]]
            if number in self.passed:
                met.append(self.passed[number])
            self.first_types[number] = min(met, key=lambda it: it if isinstance(it, int) else it.record_offset or 0)
        self.passed.clear()

    def merge(self, right: ColumnarState) -> ColumnarState:
        """Merge as `ColumnarState.merge` does."""
        assert isinstance(right, CheckedState)
        for state in (self, right):
            state.note_types()
        super().merge(right)
        for number, first in right.first_types.items():
            self.first_types.setdefault(number, first)
        for profile, problem in right.first_problems.items():
            ours = self.first_problems.setdefault(profile, problem)
            self.first_problems[profile] = min(ours, problem, key=lambda problem: problem.record_offset)
        self.large_batches += right.large_batches
        self.unusual_batches += right.unusual_batches
        self.unordered_batches += right.unordered_batches
        self.offsets.groups |= right.offsets.groups
        self._join_seen(right.seen)
        return self

    def _join_seen(self, right: Watched) -> None:
        ours, theirs = self.seen.names, right.names
        for number, (place, count) in theirs.types.items():
            first, before = ours.types.get(number, (place, 0))
            ours.types[number] = first, before + count
        for group, first_place in theirs.groups.items():
            ours.groups.setdefault(group, first_place)
        self.seen.newest_ms = max(self.seen.newest_ms, right.newest_ms)
        layout, other = self.seen.layout, right.layout
        layout.size_bytes += other.size_bytes
        layout.ends |= other.ends
        layout.damaged_files |= other.damaged_files
        layout.damages += other.damages


def _kind_of(event: LogEvent) -> _Kind | None:
    """Return what a batch or a record has in common with others; None if it is judged alone.

    Of magic 0 and 1 the first one of a kind need not have the lowest offset.
    """
    match event:
        case BatchStart(batch=batch) if batch.magic == NEWEST_MAGIC:
            return batch.compression
        case Event(damage=None, decoded=record) if record is not None and event.batch.magic == NEWEST_MAGIC:
            return refusal.kind_of(record)
    return None


def _begin_behind(events: Sequence[LogEvent], record_offset: int) -> bool:
    """Whether a whole batch lies behind a record; for magic 0 and 1 this is unknown, since inner offsets may be any."""
    first = events[0] if events else None
    return isinstance(first, BatchStart) and first.batch.magic == 2 and first.batch.base_offset > record_offset


def _is_usual(events: Sequence[LogEvent], before: int) -> bool:
    """Whether the events are those of a batch that is nothing unusual, as defined in `recovery.has_nothing_beside`.

    Args:
        before: the last offset of the batch before it.
    """
    first = events[0] if events else None
    if not isinstance(first, BatchStart) or first.batch.magic != NEWEST_MAGIC or first.batch.is_control:
        return False
    batch, base_offset = first.batch, first.segment.base_offset or 0
    is_near = (
        max(base_offset, before + 1) <= batch.base_offset <= batch.last_offset < base_offset + MAX_OFFSETS_IN_SEGMENT
    )
    return is_near and batch.producer_id == NO_PRODUCER_ID and not batch.is_transactional


class _CheckedPiece(InspectedPiece):
    """A run of batches that is being checked."""

    state: CheckedState

    def reached(self, index: int, next_offset: int) -> None:
        self.state.seen.layout.ends[self.order.log.segments[index].file] = next_offset

    def saw(self, events: Sequence[LogEvent], batch_at: int) -> None:
        self.state.saw(events, self.note, batch_at)
        self.state.unusual_batches += not _is_usual(events, self.cursor.last_offset)
        offsets = (event.record.offset for event in events if isinstance(event, Event))
        self.state.unordered_batches += any(
            one >= other for one, other in pairwise((self.cursor.last_offset, *offsets))
        )

    def pass_over(self, events: Iterator[LogEvent]) -> None:
        self.state.saw_passed(list(events), self.note)

    def lose(self, damage: Damage) -> None:
        self.state.seen.layout.saw_damage(damage)
        super().lose(damage)


class _CheckingReplay(Replay):
    """The replay of one log, cut into pieces that threads check."""

    piece = _CheckedPiece
    profiles: tuple[Profile, ...]

    def new_state(self, *, with_newer: bool = True) -> ColumnarState:
        return CheckedState(self.profiles, **self.how)


def check_logs(
    logs: Sequence[PartitionLog],
    rules: Sequence[Profile],
    *,
    note: Callable[[PartitionLog], Note],
    until: Callable[[PartitionLog], Until] = lambda log: EVERYTHING,
    release: tuple[int, int] | None = None,
    threads: Threads = ONE_THREAD,
) -> Iterator[tuple[Replayed, CheckedState]]:
    """Check all logs by rules that differ, reading each once, in order; other arguments as in `replay_logs`."""

    class Checking(_CheckingReplay):
        profiles = tuple(rules)

    seen: dict[int, list[Seen]] = {id(log): [] for log in logs}

    def noting(log: PartitionLog) -> Note:
        told = note(log)

        def tell(item: Seen) -> None:
            seen[id(log)].append(item)
            told(item)

        return tell

    replays = replay_logs(logs, rules[0], note=noting, until=until, release=release, threads=threads, replay=Checking)
    for replayed in replays:
        state = replayed.state
        assert isinstance(state, CheckedState)
        complete(state, seen.pop(id(replayed.log)))
        yield replayed, state


def profiles_of(releases: Sequence[Release]) -> tuple[Profile, ...]:
    """Return the distinct rules of releases."""
    return tuple(dict.fromkeys(release.profile for release in releases))


def complete(state: CheckedState, seen: Sequence[Seen]) -> None:
    """Add to a whole log's state what only the whole log shows."""
    state.note_types()
    scan_state, layout = state.arrays.scan_state, state.seen.layout
    for item in seen:
        if isinstance(item, TailFound):
            layout.saw_tail(item)
        elif not isinstance(item, Damage):
            layout.saw_missing(item)
    layout.size_bytes += int(scan_state.read_bytes)
    layout.batches, layout.records = int(scan_state.batches), int(scan_state.records)
    state.seen.newest_ms = max(state.seen.newest_ms, int(scan_state.newest_ms))


def is_sound(log: PartitionLog, state: CheckedState, until: Until) -> bool:
    """Whether the files hold nothing unusual, as defined in `broker.recovery.has_nothing_beside`."""
    return until == EVERYTHING and not state.unusual_batches and _is_whole(log, state)


def is_loaded_as_read(log: PartitionLog, state: CheckedState) -> bool:
    """Whether a load reads the records of these files as they were read here: with the same offsets and contents.

    A load asks less of control records than a reading does, and gives records new offsets where offsets go back.
    """
    has_bad_control = any(found.rule == "records:C2" for found in state.seen.layout.damages)
    return not state.unordered_batches and not has_bad_control and _is_whole(log, state)


def _is_whole(log: PartitionLog, state: CheckedState) -> bool:
    """Whether the segments hold whole batches only, and each segment begins where the one before ends, or later."""
    layout = state.seen.layout
    if layout.damaged_files or layout.tails:
        return False
    ends = [layout.ends.get(segment.file) for segment in log.segments]
    if not all(map(_begins_in_place, log.segments)):
        return False
    return None not in ends and all(
        end is not None and following.base_offset is not None and end <= following.base_offset
        for end, (_, following) in zip(ends, pairwise(log.segments), strict=False)
    )


def _begins_in_place(segment: Segment) -> bool:
    """Whether the first batch begins no earlier than the segment; for magic 0 and 1 its records must be read."""
    first = next(iter_batches(segment.buffer), None)
    if not isinstance(first, RecordBatch) or first.magic == NEWEST_MAGIC:
        return True
    try:
        return first_offset(first) >= (segment.base_offset or 0)
    except OffsetsLogError:
        return False
