"""Replay what coordinators read when they load an open log, once for all loads that read the same.

The records are replayed by the rules of `replay`, which order them by record offset. Offsets in a damaged log may go
back, but a coordinator takes records in file order. So a record whose offset would go back gets the next higher number
for the replay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import NamedTuple, Protocol

from offsets_log.broker.batches import FileBatch
from offsets_log.broker.failures import BrokerError
from offsets_log.broker.reading import LoadReading
from offsets_log.broker.recovery import OpenLog
from offsets_log.broker.written_offsets import WrittenOffsets
from offsets_log.errors import Damage, OffsetsLogError
from offsets_log.events import EVERYTHING, BatchEnd, BatchStart, Event, LogEvent, Until, decode_event, pieces
from offsets_log.log_format.batch import BATCH_HEADER_SIZE, RecordBatch
from offsets_log.log_format.control_record import ControlRecord, control_type
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.log_format.record import Record, iter_records
from offsets_log.messages.registry import CoordinatorRecord
from offsets_log.replay.coordinator_state import CoordinatorState, finish
from offsets_log.replay.fold import FoundProblems, replay_into
from offsets_log.replay.partial import GroupTopicPartition, OffsetAndMetadata, PartialState
from offsets_log.replay.problem import Problem
from offsets_log.replay.profile import RELEASES, Profile, way_of
from offsets_log.replay.refusal import Kind, is_told_by_kind, kind_of


class Way(NamedTuple):
    """How a release reads a log; the attributes are those of `Profile`."""

    finds_by_base_offset: bool
    reads_txnindex_as_message: bool
    counts_written_offsets: bool
    commit_interval_offsets: int | None
    reads_first_control_record_only: bool

    @classmethod
    def of(cls, profile: Profile, *, has_other: bool = True) -> Way:
        """Return the way of a release; ``has_other`` is that of `has_other_versions` about the log."""
        way = cls(*(getattr(profile, name) for name in cls._fields))
        return way if has_other else way._replace(reads_txnindex_as_message=False)

    @property
    def opening(self) -> tuple[bool, bool]:
        """What of it the opening of the log goes by."""
        return self.finds_by_base_offset, self.reads_txnindex_as_message


def _with_control_type(event: Event) -> Event:
    """Return a control record's event as a load reads it: the contents of a marker's value do not matter."""
    try:
        return replace(event, control=ControlRecord(control_type(event.record), None), damage=None)
    except OffsetsLogError:
        return event


def _has_more_control_records(batch: FileBatch) -> bool:
    """Whether not all releases read all records of a batch."""
    has_header = not batch.is_legacy and batch.size_bytes >= BATCH_HEADER_SIZE
    return has_header and batch.is_control and batch.records_count > 1


@dataclass(slots=True)
class Loading:
    """The events of a load, with ascending record offsets.

    Attributes:
        profiles: those of the releases that load in this way.
        error: what ended it, if it was not a record that the replay refuses.
        moved: record offset that was assigned → the record's own.
    """

    log: PartitionLog
    opened: OpenLog
    way: Way
    until: Until
    release: tuple[int, int] | None
    profiles: tuple[Profile, ...]
    error: BrokerError | None = field(init=False)
    moved: dict[int, int] = field(init=False)
    written: WrittenOffsets | None = field(init=False)
    reading: LoadReading = field(init=False)
    _last: int = field(init=False)

    def __post_init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Read from the begin, and forget what was read before."""
        self.error, self.moved, self.written, self._last = None, {}, None, -1
        if self.way.counts_written_offsets:
            self.written = WrittenOffsets(self.opened.end_offset or 0, self.way.commit_interval_offsets)
        self.reading = LoadReading(self.opened, self.written)

    def batches(self) -> Iterator[FileBatch]:
        """Yield the batches that are read; none if the broker does not start."""
        return iter(()) if self.opened.refusal is not None else self.reading.batches()

    @property
    def answered_batches(self) -> int | None:
        """How many batches the coordinator's answers reflect, if these are fewer than it has replayed; else None."""
        if self.written is None or self.until != EVERYTHING:
            return None
        answered = self.written.answered_batches
        return answered if answered is not None and answered < self.written.batches else None

    def reads_alike(self, other: Loading, batch: FileBatch, theirs: FileBatch | None) -> bool:
        """Whether another load reads the same records next as this one, which reads a batch."""
        if theirs is None or (batch.file, batch.position, batch.size_bytes) != (
            theirs.file, theirs.position, theirs.size_bytes,
        ):  # fmt: skip
            return False
        if batch.view[batch.position : batch.end] != theirs.view[theirs.position : theirs.end]:
            return False  # a segment that was split in one of them
        same_control = self.way.reads_first_control_record_only == other.way.reads_first_control_record_only
        return same_control or not _has_more_control_records(batch)

    def events(self, batches: Iterable[FileBatch]) -> Iterator[LogEvent]:
        """Yield the events of batches until something ends the load."""
        segments = {segment.file: segment for segment in self.log.segments}
        for batch in batches:
            try:
                yield from self._batch_events(segments[batch.file], batch)
            except BrokerError as error:
                self.error = error
                return

    def _batch_events(self, segment: Segment, found: FileBatch) -> Iterator[LogEvent]:
        batch = found.whole()
        if self.until.stops_before(batch):
            return
        yield BatchStart(segment, batch, batch.base_offset)
        base_offset: int | None = None
        for record in self._records(batch):
            if isinstance(record, Damage):
                raise found.invalid(record.error.problem, "D-5")
            if self.until.cuts(record):
                return
            numbered = self._numbered(record)
            base_offset = numbered.offset if base_offset is None else base_offset
            event = decode_event(self.log, segment, batch, numbered, self.release, batch_base_offset=base_offset)
            yield _with_control_type(event) if batch.is_control else event
        yield BatchEnd(segment, batch, batch.next_offset)

    def _records(self, batch: RecordBatch) -> Iterator[Record | Damage]:
        """Yield a batch's records as far as they are read: those after the first of a control batch may be damaged."""
        records = iter_records(batch, as_loaded=True)
        if batch.is_control and self.way.reads_first_control_record_only and batch.records_count > 1:
            return islice(records, 1)
        return records

    def _numbered(self, record: Record) -> Record:
        if record.offset > self._last:
            self._last = record.offset
            return record
        self._last += 1
        self.moved[self._last] = record.offset
        return replace(record, offset=self._last)

    @property
    def end_offset(self) -> int | None:
        """The offset where the log that is loaded ends; None if only the replay tells."""
        return (self.opened.end_offset or 0) if self.until.record_offset is None else None

    def refusal(self, problem: Problem | None) -> Problem | None:
        """Return a problem of the replay with the record's own offset."""
        return None if problem is None else self._in_log(problem)

    def _in_log(self, problem: Problem) -> Problem:
        return replace(problem, record_offset=self.moved.get(problem.record_offset, problem.record_offset))

    def in_log_offsets(self, state: CoordinatorState) -> CoordinatorState:
        """Return the state with the records' own offsets."""

        def moved_back(values: tuple[OffsetAndMetadata, ...]) -> tuple[OffsetAndMetadata, ...]:
            return tuple(
                value._replace(record_offset=self.moved.get(value.record_offset, value.record_offset))
                for value in values
            )

        if self.moved:
            state = replace(
                state,
                committed=moved_back(state.committed),
                pending=moved_back(state.pending),
                problems=tuple(map(self._in_log, state.problems)),
            )
        return replace(state, end_offset=state.end_offset if self.end_offset is None else self.end_offset)


class ReplayedLoad(Protocol):
    """What a load has replayed, by the rules of every release that reads the same."""

    def failure(self, profile: Profile) -> Problem | None:
        """Return the first problem, which ends the load of a release."""

    def served(self, profile: Profile) -> Mapping[GroupTopicPartition, int]:
        """Return the committed offsets of groups that exist."""

    def finished(self, profile: Profile) -> CoordinatorState:
        """Return what coordinators hold by the rules of a release, with problems as far as its load came."""


ReplayInBulk = Callable[[Sequence[Loading]], Mapping[int, ReplayedLoad]]
"""Replays loads with kernels, and returns the replays by ``id`` of the load; none of a load that is not plain."""


class HeldByProfiles:
    """What coordinators of several releases hold; those whose rules do the same with offsets share a state."""

    def __init__(self, profiles: Iterable[Profile]) -> None:
        self._problems = {profile: FoundProblems(profile) for profile in profiles}
        self._states = {way: PartialState(way) for way in map(way_of, self._problems)}
        self._told: dict[Kind, bool] = {}
        self._finished: dict[Profile, CoordinatorState] = {}

    def replay(self, events: Iterable[LogEvent]) -> None:
        """Replay the events of a load, in pieces: records after the one that ends a load change nothing."""
        for piece in pieces(events):
            loading = [profile for profile, found in self._problems.items() if not found.problems]
            telling = list(self._telling(piece))
            for profile in loading:
                replay_into(self._problems[profile], telling, on_damage=lambda damage: None)
            for way in dict.fromkeys(map(way_of, loading)):
                replay_into(self._states[way], piece, on_damage=lambda damage: None)
                self._states[way].problems.clear()

    def _telling(self, piece: Iterable[LogEvent]) -> Iterator[LogEvent]:
        """Yield the events among which are all first problems: of records of one kind, the first one.

        All batches are among them, for their offsets may go back, and the lowest one is told.
        """
        for event in piece:
            record = event.decoded if isinstance(event, Event) and event.damage is None else None
            if record is None or not self._is_told(record):
                yield event

    def _is_told(self, record: CoordinatorRecord) -> bool:
        """Whether a record of its kind was met before, which has told what every release does with this one."""
        kind = kind_of(record)
        if kind in self._told:
            return self._told[kind]
        self._told[kind] = all(is_told_by_kind(record, profile) for profile in RELEASES.values())
        return False

    def fail_as(self, whole: HeldByProfiles) -> None:
        """Take over what a load leaves that went on behind this one, where something ended it there."""
        failed = (profile for profile in self._problems if whole.failure(profile) is not None)
        self._finished |= {profile: whole.finished(profile) for profile in failed}

    def failure(self, profile: Profile) -> Problem | None:
        """Return the first problem, which ends the load of a release."""
        return self.finished(profile).failure

    def served(self, profile: Profile) -> dict[GroupTopicPartition, int]:
        """Return the committed offsets of groups that exist."""
        return {value.key: value.committed_offset for value in self.finished(profile).iter_served()}

    def finished(self, profile: Profile) -> CoordinatorState:
        """Return what coordinators hold by the rules of a release, with problems as far as its load came."""
        if profile not in self._finished:
            shared, state = self._states[way_of(profile)], PartialState(profile)
            state.keys, state.producers, state.topic_names = shared.keys, shared.producers, shared.topic_names
            state.timelines = shared.timelines
            state.problems, state.end_offset = self._problems[profile].problems, shared.end_offset
            self._finished[profile] = finish(state)
        return self._finished[profile]


def replay_all(loadings: Sequence[Loading], in_bulk: ReplayInBulk | None = None) -> list[ReplayedLoad]:
    """Replay loads, and return for each what it leaves; loads that read the same have one replay in common."""
    held: dict[int, ReplayedLoad] = {}
    if in_bulk is not None:
        held |= in_bulk(loadings)
    left = [loading for loading in loadings if id(loading) not in held]
    while left:
        found, alike = _replay_together(left)
        held |= {id(loading): _as_answered(loading, found) for loading in alike}
        left = [loading for loading in left if id(loading) not in held]
    return [held[id(loading)] for loading in loadings]


def _replay_together(loadings: Sequence[Loading]) -> tuple[HeldByProfiles, list[Loading]]:
    """Replay the first load, and return what it leaves and all loads that have read the same to their ends."""
    for loading in loadings:
        loading.begin()
    leader, *followers = loadings
    held = HeldByProfiles(profile for loading in loadings for profile in loading.profiles)
    held.replay(leader.events(_batches_of_all(leader, followers)))
    alike = [leader, *followers]
    error = leader.error
    for loading in alike:
        loading.error, loading.moved = error or loading.reading.failure, leader.moved
    return held, alike


def _batches_of_all(leader: Loading, followers: list[Loading]) -> Iterator[FileBatch]:
    """Yield the batches of a load; remove from the others each that reads something else, or is not at its end then."""
    reading = [(loading, loading.batches()) for loading in followers]
    for batch in leader.batches():
        reading = [(other, rest) for other, rest in reading if leader.reads_alike(other, batch, next(rest, None))]
        followers[:] = [other for other, _ in reading]
        yield batch
    followers[:] = [other for other, rest in reading if next(rest, None) is None]


def _as_answered(loading: Loading, held: HeldByProfiles) -> HeldByProfiles:
    """Return what a load leaves as the coordinator's answers show it: they may end before what it has replayed."""
    answered = loading.answered_batches
    if answered is None:
        return held
    again, shown = replace(loading), HeldByProfiles(loading.profiles)
    shown.replay(again.events(islice(again.batches(), answered)))
    shown.fail_as(held)
    return shown
