"""What becomes of a partition on a broker: does it start, does the load end, and what is served then.

The records are replayed by the rules of `replay`, which order them by record offset. A damaged log may have offsets
that do not rise, and a coordinator takes records as they come: so a record is numbered by its place where its own
offset would not be behind the one before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice

from offsets_log.broker.batches import FileBatch
from offsets_log.broker.failures import BrokerError
from offsets_log.broker.reading import Reading
from offsets_log.broker.recovery import OpenLog, open_log
from offsets_log.broker.written_offsets import WrittenOffsets
from offsets_log.errors import Damage
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.log_format.record import Record, iter_records
from offsets_log.pipeline import EVERYTHING, BatchEnd, BatchStart, LogEvent, Until, decode_event, replay_into
from offsets_log.replay.coordinator_state import CoordinatorState, finish
from offsets_log.replay.partial import OffsetAndMetadata, PartialState
from offsets_log.replay.problem import Problem
from offsets_log.replay.profile import Profile

NOT_COORDINATOR = "not_coordinator"
EMPTY = "empty"
UNKNOWN_SERVER_ERROR = "unknown_server_error"
LOAD_IN_PROGRESS = "coordinator_load_in_progress"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One partition on one release, after one way of stopping.

    Attributes:
        opened: the log after recovery; the broker does not start if it has a ``refusal``.
        ends: false if the load never ends (``D-7``), and all loads behind it wait.
        failure: what ends the load early; None if it ends with the log.
        file, position: of what ends it or keeps the broker from starting, where it is not a record that tells.
        state: what is held after it.
        answers: what clients get for every group of the partition in place of its offsets; None for these.
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
        """False: this partition keeps the broker from starting (``D-8``)."""
        return self.opened.refusal is None

    @property
    def is_loaded(self) -> bool:
        """Whether there is a coordinator for its groups."""
        return self.starts and self.ends and self.failure is None and self.answers is None


def on_broker(
    log: PartitionLog,
    profile: Profile,
    *,
    stopped_cleanly: bool,
    until: Until = EVERYTHING,
    release: tuple[int, int] | None = None,
) -> Outcome:
    """Start a broker over a partition and load it.

    Args:
        until: what of the open log is loaded.
        release: that wrote the log, where layouts share a version number.
    """
    opened = open_log(log, stopped_cleanly=stopped_cleanly, finds_by_base_offset=profile.finds_by_base_offset)
    if opened.refusal is not None:
        return _outcome(_Loading(log, opened, profile, until, release), PartialState(profile), opened.refusal)
    loading, partial = _load(log, opened, profile, until, release)
    written = loading.written
    if written is None or until != EVERYTHING or written.answered_batches in (None, written.batches):
        return _outcome(loading, partial, loading.error)
    _, answered = _load(log, opened, profile, until, release, batches=written.answered_batches)
    return _outcome(loading, answered, loading.error)


def _load(
    log: PartitionLog,
    opened: OpenLog,
    profile: Profile,
    until: Until,
    release: tuple[int, int] | None,
    batches: int | None = None,
) -> tuple[_Loading, PartialState]:
    """Replay an open log, or so many batches of it."""
    loading, partial = _Loading(log, opened, profile, until, release), PartialState(profile)
    replay_into(partial, loading.events(batches), on_damage=lambda damage: None)
    return loading, partial


def _outcome(loading: _Loading, partial: PartialState, error: BrokerError | None) -> Outcome:
    opened, profile, ends = loading.opened, loading.profile, loading.reading.ends
    state = loading.in_log_offsets(finish(partial))
    failure = state.failure
    if error is not None and (failure is None or failure.is_served):
        failure = Problem(error.record_offset or loading.reading.next_offset, error.rule, error.problem)
    answers = _answers(profile, failure, starts=opened.refusal is None, ends=ends)
    if answers is None and loading.written is not None and loading.written.answered_batches is None:
        answers = UNKNOWN_SERVER_ERROR
    if answers is not None:
        state = replace(state, groups={}, committed=(), pending=())
    file, position = (error.file, error.position) if error is not None else (None, None)
    return Outcome(opened, ends, failure, state, answers, file, position)


def _answers(profile: Profile, failure: Problem | None, *, starts: bool, ends: bool) -> str | None:
    if not starts:
        return NOT_COORDINATOR
    if not ends:
        return LOAD_IN_PROGRESS
    if failure is None or failure.is_served:
        return None
    return NOT_COORDINATOR if profile.is_unavailable_after_failure else EMPTY


@dataclass(slots=True)
class _Loading:
    """The events of a load, with record offsets that rise.

    Attributes:
        error: what ended it, if it was no record that the replay refuses.
        moved: record offset that was given → the record's own.
    """

    log: PartitionLog
    opened: OpenLog
    profile: Profile
    until: Until
    release: tuple[int, int] | None
    error: BrokerError | None = None
    moved: dict[int, int] = field(default_factory=dict)
    written: WrittenOffsets | None = None
    reading: Reading = field(init=False)
    _last: int = -1

    def __post_init__(self) -> None:
        if self.profile.counts_written_offsets:
            self.written = WrittenOffsets(self.opened.end_offset or 0, self.profile.commit_interval_offsets)
        self.reading = Reading(self.opened, self.written)

    def events(self, batches: int | None = None) -> Iterator[LogEvent]:
        """In the order of the load; of so many batches, or all."""
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
        for record in iter_records(batch, as_loaded=True):
            if isinstance(record, Damage):
                raise found.invalid(record.error.problem)
            if self.until.cuts(record):
                return
            yield decode_event(self.log, segment, batch, self._numbered(record), self.release)
        yield BatchEnd(segment, batch, batch.next_offset)

    def _numbered(self, record: Record) -> Record:
        if record.offset > self._last:
            self._last = record.offset
            return record
        self._last += 1
        self.moved[self._last] = record.offset
        return replace(record, offset=self._last)

    def in_log_offsets(self, state: CoordinatorState) -> CoordinatorState:
        """The state with the records' own offsets."""

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
