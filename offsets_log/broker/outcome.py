"""Decide what becomes of a partition on a broker: whether it starts, whether the load ends, and what is served then."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from offsets_log.broker.failures import StartError
from offsets_log.broker.loading import Loading, ReplayedLoad, ReplayInBulk, Way, replay_all
from offsets_log.broker.recovery import OpenLog, has_other_versions, open_log
from offsets_log.events import EVERYTHING, Until
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.replay.coordinator_state import CoordinatorState
from offsets_log.replay.partial import GroupTopicPartition
from offsets_log.replay.problem import NOT_LOADED, SERVED, Problem
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
        at_start: what the broker meets at its start, before it opens the log.
        answers: what clients get for every group of the partition instead of its offsets; None if they get the offsets.
        profile, loading, replayed: the rules of the release, its load, and the replay of the load, which may be shared
            with others that read the same.
    """

    opened: OpenLog
    ends: bool
    failure: Problem | None
    answers: str | None
    profile: Profile
    loading: Loading = field(compare=False, repr=False)
    replayed: ReplayedLoad = field(compare=False, repr=False)
    file: str | None = None
    position: int | None = None
    at_start: StartError | None = None

    @property
    def starts(self) -> bool:
        """Whether the broker starts; False if this partition (``D-8``) or its data directory prevents it."""
        return self.opened.refusal is None and (self.at_start is None or self.at_start.starts)

    @property
    def without_data(self) -> Problem | None:
        """Where nothing more can be read, though the log goes on (``L-4``); None if the load ends elsewhere."""
        reading, end_offset = self.loading.reading, self.end_offset
        is_read = self.starts and self.at_start is None and (self.failure is None or self.failure.is_served)
        if not (is_read and reading.found_nothing):
            return None
        problem = f"the log ends at {end_offset}, and from {reading.next_offset} on nothing can be read"
        return Problem(reading.next_offset, "L-4", f"{problem}: the load never ends")

    @property
    def end_offset(self) -> int | None:
        """The partition's next offset; None if the broker does not start."""
        return None if not self.starts else 0 if self.at_start is not None else self.opened.end_offset

    @property
    def why_short(self) -> str | None:
        """Why the partition ends before what can be read, in words."""
        return self.at_start.problem if self.at_start is not None and self.starts else self.opened.index_beyond

    @property
    def ok(self) -> bool:
        """Whether the broker starts and the load ends with the log."""
        return self.starts and self.ends and self.failure is None

    @property
    def state(self) -> CoordinatorState:
        """What is held after the load."""
        state = self.loading.in_log_offsets(self.replayed.finished(self.profile))
        return state if self.answers is None else state.emptied()

    def served(self) -> Mapping[GroupTopicPartition, int]:
        """Return the committed offsets that clients get."""
        return self.replayed.served(self.profile) if self.answers is None else {}

    def in_words(self) -> str:
        """Describe what a broker does, as the rest of a sentence."""
        why = f": {self.failure.rule}: {self.failure.problem}" if self.failure is not None else ""
        at = f" ({self.file}, position {self.position})" if self.file is not None else ""
        if not self.starts:
            return f"does not start over these files{why}{at}"
        if not self.ends:
            return "loads this partition for ever, and none behind it (D-7)"
        if self.failure is not None:
            what = SERVED if self.failure.is_served else NOT_LOADED
            return f"{what}: record offset {self.failure.record_offset}{why}{at}"
        if self.answers is not None:
            return f"loads it and answers every request for its groups with {self.answers} (D-13)"
        if (beyond := self.opened.index_beyond) is not None:
            return f"would serve nothing from offset {self.opened.end_offset} on: {beyond}"
        return f"loads what it can use of it, up to offset {self.opened.end_offset}"

    def holds(self, read: CoordinatorState) -> bool:
        """Whether the broker holds what was read from the files, to the same end offset.

        It does if the only damage is a torn tail.
        """
        if not self.starts or not self.ends or self.answers is not None:
            return False
        refused = self.loading.refusal(self.replayed.failure(self.profile))
        if refused != read.failure or self.loading.end_offset not in (None, read.end_offset):
            return False
        mine, others = (
            (it.end_offset, it.groups.keys(), set(it.committed), set(it.pending)) for it in (self.state, read)
        )
        return mine == others

    def equals(self, other: Outcome) -> bool:
        """Whether clients see no difference between the two."""
        mine, others = ((it.starts, it.ends, it.failure, it.answers, it.end_offset) for it in (self, other))
        return mine == others and self._serves_as(other)

    def _serves_as(self, other: Outcome) -> bool:
        if self.replayed is other.replayed and self.profile == other.profile:
            return True
        return set(self.state.iter_served()) == set(other.state.iter_served())


def on_brokers(
    log: PartitionLog,
    profiles: Collection[Profile],
    stops: Collection[bool],
    *,
    until: Until = EVERYTHING,
    release: tuple[int, int] | None = None,
    in_bulk: ReplayInBulk | None = None,
) -> dict[bool, dict[Profile, Outcome]]:
    """Start brokers of several releases over a partition after several kinds of shutdown, and load it.

    Loads that read the same batches share one replay.

    Args:
        stops: for each kind whether the broker was stopped cleanly.
        until: how much of the open log is loaded.
        release: the release that wrote the log; decides where layouts share a version number.
        in_bulk: replays plain loads with kernels, which recover plain batches too then.

    Returns:
        The outcomes by stop and rules.
    """
    has_other, alike = has_other_versions(log), dict[Way, list[Profile]]()
    for profile in profiles:
        alike.setdefault(Way.of(profile, has_other=has_other), []).append(profile)
    opened = {
        (stop, finds, as_message): open_log(
            log,
            stopped_cleanly=stop,
            finds_by_base_offset=finds,
            reads_txnindex_as_message=as_message,
            in_bulk=in_bulk is not None,
        )
        for stop in stops
        for finds, as_message in {way.opening for way in alike}
    }
    loadings = {
        (stop, way): Loading(log, opened[stop, *way.opening], way, until, release, tuple(some))
        for stop in stops
        for way, some in alike.items()
    }
    held = dict(zip(loadings, replay_all(list(loadings.values()), in_bulk), strict=True))
    outcomes: dict[bool, dict[Profile, Outcome]] = {stop: {} for stop in stops}
    for (stop, way), loading in loadings.items():
        for profile in loading.profiles:
            outcomes[stop][profile] = _outcome(loading, profile, held[stop, way])
    return outcomes


def _outcome(loading: Loading, profile: Profile, replayed: ReplayedLoad) -> Outcome:
    opened = loading.opened
    if (at_start := start_error(loading.log, profile)) is not None:
        return _at_start(loading, profile, replayed, at_start)
    failure, error = loading.refusal(replayed.failure(profile)), opened.refusal or loading.error
    ends = loading.reading.ends or (failure is not None and not failure.is_served)
    if error is not None and (failure is None or failure.is_served):
        failure = Problem(error.record_offset or loading.reading.next_offset, error.rule, error.problem)
    answers = _answers(profile, failure, starts=opened.refusal is None, ends=ends)
    if answers is None and loading.written is not None and loading.written.answered_batches is None:
        answers = UNKNOWN_SERVER_ERROR
    file, position = (error.file, error.position) if error is not None else (None, None)
    return Outcome(
        opened=opened,
        ends=ends,
        failure=failure,
        answers=answers,
        profile=profile,
        loading=loading,
        replayed=replayed,
        file=file,
        position=position,
    )


def start_error(log: PartitionLog, profile: Profile, *, asks_metadata: bool = True) -> StartError | None:
    """Return why a broker's start over the data directory leads to an empty partition, or to no broker."""
    error = None if log.at_start is None else log.at_start(profile.release, asks_metadata)
    assert error is None or isinstance(error, StartError)
    return error


def _at_start(loading: Loading, profile: Profile, replayed: ReplayedLoad, error: StartError) -> Outcome:
    return Outcome(
        opened=loading.opened,
        ends=True,
        failure=None if error.starts else Problem(loading.reading.next_offset, error.rule, error.problem),
        answers=EMPTY if error.starts else NOT_COORDINATOR,
        profile=profile,
        loading=loading,
        replayed=replayed,
        file=error.file,
        at_start=error,
    )


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
