"""Decide what becomes of a partition on a broker: whether it starts, whether the load ends, and what is served then.

The records are replayed by the rules of `replay`, which order them by record offset. Offsets in a damaged log may go
back, but a coordinator takes records in file order. So a record whose offset would go back gets the next higher number
for the replay.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import NamedTuple

from offsets_log.broker.batches import FileBatch
from offsets_log.broker.failures import BrokerError
from offsets_log.broker.reading import LoadReading
from offsets_log.broker.recovery import OpenLog, open_log
from offsets_log.broker.written_offsets import WrittenOffsets
from offsets_log.errors import Damage, OffsetsLogError
from offsets_log.events import EVERYTHING, BatchEnd, BatchStart, Event, LogEvent, Until, decode_event, pieces
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.control_record import ControlRecord, control_type
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.log_format.record import Record, iter_records
from offsets_log.replay.coordinator_state import CoordinatorState, finish
from offsets_log.replay.fold import replay_into
from offsets_log.replay.partial import OffsetAndMetadata, PartialState
from offsets_log.replay.problem import Problem
from offsets_log.replay.profile import Profile

NOT_COORDINATOR = "not_coordinator"
EMPTY = "empty"
UNKNOWN_SERVER_ERROR = "unknown_server_error"
LOAD_IN_PROGRESS = "coordinator_load_in_progress"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One partition on one release, after one kind of shutdown.

    Attributes:
        opened: the log after recovery; the broker does not start if it has a ``refusal``.
        ends: false if the load never ends (``D-7``), and all loads after it wait.
        failure: what ends the load early; None if it ends with the log.
        file, position: where the cause lies that ends the load or keeps the broker from starting, if it is not a
            record.
        state: what is held after the load.
        answers: what clients get for every group of the partition instead of its offsets; None if they get the offsets.
    """

    opened: OpenLog
    ends: bool
    failure: Problem | None
    state: CoordinatorState
    answers: str | None
    file: str | None = None
    position: int | None = None

    @property
    def starts(self) -> bool:
        """Whether the broker starts; False if this partition prevents it (``D-8``)."""
        return self.opened.refusal is None

    @property
    def ok(self) -> bool:
        """Whether the broker starts and the load ends with the log."""
        return self.starts and self.ends and self.failure is None

    def in_words(self) -> str:
        """Describe what a broker does, as the rest of a sentence."""
        why = f": {self.failure.rule}: {self.failure.problem}" if self.failure is not None else ""
        at = f" ({self.file}, position {self.position})" if self.file is not None else ""
        if not self.starts:
            return f"does not start over these files{why}{at}"
        if not self.ends:
            return "loads this partition for ever, and none behind it (D-7)"
        if self.failure is not None:
            return f"would not load it: record offset {self.failure.record_offset}{why}{at}"
        if self.answers is not None:
            return f"loads it and answers every request for its groups with {self.answers} (D-13)"
        return f"loads what it can use of it, up to offset {self.opened.end_offset}"

    def holds(self, read: CoordinatorState) -> bool:
        """Whether the broker holds what was read from the files, to the same end offset.

        It does if the only damage is a torn tail.
        """
        mine, others = (
            (it.failure, it.end_offset, it.groups.keys(), set(it.committed), set(it.pending))
            for it in (self.state, read)
        )
        return self.starts and self.ends and self.answers is None and mine == others

    def equals(self, other: Outcome) -> bool:
        """Whether clients see no difference between the two."""
        mine, others = (
            (it.starts, it.ends, it.failure, it.answers, it.opened.end_offset, set(it.state.iter_served()))
            for it in (self, other)
        )
        return mine == others


def on_broker(
    log: PartitionLog,
    profiles: Collection[Profile],
    *,
    stopped_cleanly: bool,
    until: Until = EVERYTHING,
    release: tuple[int, int] | None = None,
) -> dict[Profile, Outcome]:
    """Start brokers of several releases over a partition and load it.

    Releases that read a log in the same way share one reading of it.

    Args:
        until: how much of the open log is loaded.
        release: the release that wrote the log; decides where layouts share a version number.
    """
    alike: dict[Way, list[Profile]] = {}
    for profile in profiles:
        alike.setdefault(Way.of(profile), []).append(profile)
    opened = {
        finds: open_log(log, stopped_cleanly=stopped_cleanly, finds_by_base_offset=finds)
        for finds in {way.finds_by_base_offset for way in alike}
    }
    outcomes: dict[Profile, Outcome] = {}
    for way, some in alike.items():
        outcomes |= _load(_Loading(log, opened[way.finds_by_base_offset], way, until, release), some)
    return outcomes


class Way(NamedTuple):
    """How a release reads a log; the attributes are those of `Profile`."""

    finds_by_base_offset: bool
    counts_written_offsets: bool
    commit_interval_offsets: int | None
    reads_first_control_record_only: bool

    @classmethod
    def of(cls, profile: Profile) -> Way:
        """Return the way of a release."""
        return cls(*(getattr(profile, name) for name in cls._fields))


def _load(loading: _Loading, profiles: Sequence[Profile]) -> dict[Profile, Outcome]:
    states = loading.replay(profiles)
    written = loading.written
    answered = None if written is None or loading.until != EVERYTHING else written.answered_batches
    if answered is not None and written is not None and answered < written.batches:
        # The coordinator's answers end before what it has replayed.
        again = replace(loading)
        states = again.replay(profiles, batches=answered)
    return {profile: _outcome(loading, state) for profile, state in states.items()}


def _outcome(loading: _Loading, partial: PartialState) -> Outcome:
    opened, profile = loading.opened, partial.profile
    state = loading.in_log_offsets(finish(partial))
    failure, error = state.failure, opened.refusal or loading.error
    ends = loading.reading.ends or (failure is not None and not failure.is_served)
    if error is not None and (failure is None or failure.is_served):
        failure = Problem(error.record_offset or loading.reading.next_offset, error.rule, error.problem)
    answers = _answers(profile, failure, starts=opened.refusal is None, ends=ends)
    if answers is None and loading.written is not None and loading.written.answered_batches is None:
        answers = UNKNOWN_SERVER_ERROR
    if answers is not None:
        state = state.emptied()
    file, position = (error.file, error.position) if error is not None else (None, None)
    return Outcome(opened, ends, failure, state, answers, file, position)


def answer_after_failure(profile: Profile) -> str:
    """Return what clients get for groups of a partition whose load failed (``L-42``, ``J-3``, ``D-11``)."""
    return NOT_COORDINATOR if profile.is_unavailable_after_failure else EMPTY


def _answers(profile: Profile, failure: Problem | None, *, starts: bool, ends: bool) -> str | None:
    if not starts:
        return NOT_COORDINATOR
    if not ends:
        return LOAD_IN_PROGRESS
    if failure is None or failure.is_served:
        return None
    return answer_after_failure(profile)


def _with_control_type(event: Event) -> Event:
    """Return a control record's event as a load reads it: the contents of a marker's value do not matter."""
    try:
        return replace(event, control=ControlRecord(control_type(event.record), None), damage=None)
    except OffsetsLogError:
        return event


@dataclass(slots=True)
class _Loading:
    """The events of a load, with ascending record offsets.

    Attributes:
        error: what ended it, if it was not a record that the replay refuses.
        moved: record offset that was assigned → the record's own.
    """

    log: PartitionLog
    opened: OpenLog
    way: Way
    until: Until
    release: tuple[int, int] | None
    error: BrokerError | None = field(init=False, default=None)
    moved: dict[int, int] = field(init=False, default_factory=dict)
    written: WrittenOffsets | None = field(init=False, default=None)
    reading: LoadReading = field(init=False)
    _last: int = field(init=False, default=-1)

    def __post_init__(self) -> None:
        if self.way.counts_written_offsets:
            self.written = WrittenOffsets(self.opened.end_offset or 0, self.way.commit_interval_offsets)
        self.reading = LoadReading(self.opened, self.written)

    def replay(self, profiles: Sequence[Profile], batches: int | None = None) -> dict[Profile, PartialState]:
        """Return what coordinators hold after that many batches, or after all."""
        states = {profile: PartialState(profile) for profile in profiles}
        if self.opened.refusal is None:
            for piece in pieces(self._events(batches)):
                for state in states.values():
                    if not state.problems:  # records after the one that ends a load change nothing
                        replay_into(state, piece, on_damage=lambda damage: None)
        return states

    def _events(self, batches: int | None) -> Iterator[LogEvent]:
        segments = {segment.file: segment for segment in self.log.segments}
        for batch in islice(self.reading.batches(), batches):
            try:
                yield from self._batch_events(segments[batch.file], batch)
            except BrokerError as error:
                self.error = error
                return
        self.error = self.reading.failure

    def _batch_events(self, segment: Segment, found: FileBatch) -> Iterator[LogEvent]:
        batch = found.whole()
        if self.until.stops_before(batch):
            return
        yield BatchStart(segment, batch, batch.base_offset)
        for record in self._records(batch):
            if isinstance(record, Damage):
                raise found.invalid(record.error.problem, "D-5")
            if self.until.cuts(record):
                return
            event = decode_event(self.log, segment, batch, self._numbered(record), self.release)
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

    def in_log_offsets(self, state: CoordinatorState) -> CoordinatorState:
        """Return the state with the records' own offsets."""

        def moved_back(values: tuple[OffsetAndMetadata, ...]) -> tuple[OffsetAndMetadata, ...]:
            return tuple(
                replace(value, record_offset=self.moved.get(value.record_offset, value.record_offset))
                for value in values
            )

        end_offset = state.end_offset if self.until.record_offset is not None else self.opened.end_offset
        if self.moved:
            problems = tuple(
                replace(problem, record_offset=self.moved.get(problem.record_offset, problem.record_offset))
                for problem in state.problems
            )
            state = replace(
                state,
                committed=moved_back(state.committed),
                pending=moved_back(state.pending),
                problems=problems,
            )
        return replace(state, end_offset=end_offset or 0)
