"""Find what each release makes of a partition: the dry run of its load, and the findings that follow from it.

`dry_run` reads the events once, in pieces: every distinct set of rules replays each piece and joins it to its state,
until it reaches the record that ends the load. If something is damaged, what was read differs from what a broker reads:
then `judged` asks `broker` what each release would make of the files.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from offsets_log.broker.outcome import LOAD_IN_PROGRESS, Outcome, answer_after_failure
from offsets_log.broker.reading import LOAD_BUFFER_BYTES
from offsets_log.checking.findings import CHECK_NAMES, DOUBT, FAILS, NOTE, VERDICT_COLUMNS, Finding
from offsets_log.checking.places import NOWHERE, FindingPlace, find_places
from offsets_log.events import BatchEnd, BatchStart, LogEnd, LogEvent
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.pipeline import replay
from offsets_log.replay.coordinator_state import CoordinatorState, finish
from offsets_log.replay.partial import GroupTopicPartition, OffsetAndMetadata, PartialState
from offsets_log.replay.problem import Problem
from offsets_log.replay.profile import Profile
from offsets_log.replay.releases import Release
from offsets_log.rows.tables import Row
from offsets_log.words import counted

ALL, SOME, NOTHING = "all", "some", "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What a release makes of a partition.

    Attributes:
        failure: what ends the load, or keeps the broker from starting.
        place: place of the failure; its group is the record's if the failure names none.
        served: ``all`` that can be read here, ``some`` of it or other values, or ``nothing``.
        answers: what clients get instead of offsets; None if they get the offsets.
        starts: false if this partition keeps the broker from starting (``D-8``).
        ends: false if the load never ends and holds up all others (``D-7``, ``L-4``, ``L-6``).
        log_end_offset: where the log continues after recovery; None if the broker does not start.
        shutdown: the kind of shutdown before, ``clean`` or ``unclean``; None if it makes no difference.
        why_short: why the log that is opened ends before what can be read, in words.
        short_by: the rule that says so; None without one.
    """

    release: Release
    failure: Problem | None = None
    place: FindingPlace = NOWHERE
    served: str = ALL
    answers: str | None = None
    starts: bool = True
    ends: bool = True
    log_end_offset: int | None = None
    shutdown: str | None = None
    why_short: str | None = None
    short_by: str | None = None

    @property
    def ok(self) -> bool:
        """Whether the broker starts and the load ends with the log."""
        return self.starts and self.ends and self.failure is None

    def skips(self, record_type: int, record_offset: int) -> bool:
        """Whether it reaches a record of this type and skips it (``records:Y3``)."""
        if not self.release.profile.skips(record_type):
            return False
        return self.failure is None or self.failure.record_offset > record_offset

    def row(self, offsets_partition: int | None) -> Row:
        """Return one row of `CHECK_COLUMNS`."""
        return dict.fromkeys(CHECK_NAMES) | {
            "kind": "load",
            "offsets_partition": offsets_partition,
            "severity": None if self.ok else FAILS,
            "releases": [self.release.name],
            "ok": self.ok,
            "served": self.served,
            "starts": self.starts,
            "ends": self.ends,
            "log_end_offset": self.log_end_offset,
            "shutdown": self.shutdown,
            "rule": self.failure.rule if self.failure else self.short_by,
            "problem": self.failure.problem if self.failure else self.why_short,
            **self.place.cells(),
            "detail": {"answers": self.answers} if self.answers else None,
        }


def verdict_in(row: Row) -> Row:
    """Return from a load's row whether it loads, and where not."""
    return {column.name: row[column.name] for column in VERDICT_COLUMNS}


# ----------------------------------------------------------------------------------------- the dry run


@dataclass(frozen=True, slots=True)
class LargeBatch:
    """A batch that is larger than the load buffer (``L-6``)."""

    file: str
    position: int
    base_offset: int
    size_bytes: int

    def __str__(self) -> str:
        return f"the batch of {self.size_bytes} bytes is larger than offsets.load.buffer.size {LOAD_BUFFER_BYTES}"


@dataclass(frozen=True, slots=True)
class Held:
    """What a coordinator holds at the end of a load, as far as the check needs it.

    Attributes:
        failure: the record that ends the load; all others are replayed here all the same.
        end_offset: the log's next offset.
        orphans: group that does not exist → number of its offsets, and the first one's record offset.
        pending: producer id → the group of each offset in its open transaction.
        opened: returns the offsets of open transactions whole.
        served: returns the served offsets by key.
        negative: returns the committed offsets below zero.
        values: returns the served offsets whole; None if records after one that ends the load were not replayed.
    """

    failure: Problem | None
    end_offset: int
    orphans: Mapping[str, tuple[int, int]]
    pending: Mapping[int, Sequence[str]]
    opened: Callable[[], Sequence[OffsetAndMetadata]]
    served: Callable[[], Mapping[GroupTopicPartition, int]]
    negative: Callable[[], Iterable[OffsetAndMetadata]]
    values: Callable[[], Iterator[OffsetAndMetadata]] | None


@dataclass(frozen=True, slots=True)
class DryRun:
    """One partition on several releases.

    Attributes:
        held: what coordinators hold, by rules.
        places: record offset → its place, for failures and orphans.
    """

    loads: tuple[Load, ...]
    held: Mapping[Profile, Held]
    places: dict[int, FindingPlace]
    large_batches: tuple[LargeBatch, ...]

    def opened(self) -> list[OffsetAndMetadata]:
        """Return the offsets of open transactions by the rules of any release."""
        by_offset = {one.record_offset: one for held in self.held.values() for one in held.opened()}
        return [one for _, one in sorted(by_offset.items())]

    def failures(self) -> Iterator[Finding]:
        """Yield every record that ends a load, once for all releases whose load it ends."""
        releases: dict[tuple[Problem, FindingPlace], list[str]] = {}
        for load in self.loads:
            if load.failure is not None:
                releases.setdefault((load.failure, load.place), []).append(load.release.name)
        for (failure, place), names in sorted(releases.items(), key=lambda item: item[0][0].record_offset):
            yield Finding(
                severity=FAILS,
                rule=failure.rule,
                problem=failure.problem,
                place=place,
                releases=tuple(names),
                detail={"served": "all"} if failure.is_served else None,
            )

    def orphans(self) -> Iterator[Finding]:
        """Yield offsets that a release loads but serves to nobody (``J-15``), by group in order of appearance."""
        releases: dict[tuple[str, int, int], list[str]] = {}
        for load in self.loads:
            if load.served == ALL and load.release.profile in self.held:
                orphans = self.held[load.release.profile].orphans
                for group, (count, first) in sorted(orphans.items(), key=lambda item: item[1][1]):
                    releases.setdefault((group, count, first), []).append(load.release.name)
        for (group, count, first), names in releases.items():
            yield Finding(
                severity=DOUBT,
                rule="J-15",
                problem=f"{counted(count, 'offset')} of a group that does not exist: not served",
                place=replace(self.places.get(first, NOWHERE), record_offset=first, group=group),
                releases=tuple(names),
                detail={"offsets": count},
            )

    def beyond_buffer(self) -> Iterator[Finding]:
        """Yield batches that are larger than the load buffer."""
        for batch in self.large_batches:
            yield Finding(
                severity=NOTE,
                rule="L-6",
                problem=f"{batch}: from 2.0 on the buffer grows, before it was never loaded",
                place=FindingPlace(batch.file, batch.position, batch.base_offset),
                detail={"size_bytes": batch.size_bytes},
            )


def dry_run(log: PartitionLog, events: Iterable[list[LogEvent]], releases: Sequence[Release]) -> DryRun:
    """Load a partition by the rules of every release.

    Args:
        events: events of this log, as far as it is to be read, in `pieces`.
    """
    running = {release.profile: PartialState(release.profile) for release in releases}
    large: list[LargeBatch] = []
    end_offset = 0
    for piece in events:
        large += large_batches(piece)
        end_offset = max(end_offset, _end_of(piece))
        for profile, state in running.items():
            if not state.problems:  # records after the one that ends a load change nothing
                state.merge(replay(piece, profile, on_damage=lambda damage: None))
    held = {
        profile: _held(finish(state), end_offset, is_whole=not state.problems) for profile, state in running.items()
    }
    return concluded(releases, held, large, lambda record_offsets: find_places(log, record_offsets))


def _end_of(piece: Iterable[LogEvent]) -> int:
    ends = [0]
    for event in piece:
        match event:
            case BatchEnd(read_until=end_offset) | LogEnd(end_offset):
                ends.append(end_offset)
    return max(ends)


def _held(state: CoordinatorState, end_offset: int, *, is_whole: bool) -> Held:
    record_offsets: dict[str, list[int]] = {}
    for value in state.iter_orphans():
        record_offsets.setdefault(value.group, []).append(value.record_offset)
    pending: dict[int, list[str]] = {}
    for value in state.pending:
        pending.setdefault(value.producer_id, []).append(value.group)
    return Held(
        failure=state.failure,
        end_offset=end_offset,
        orphans={group: (len(found), min(found)) for group, found in record_offsets.items()},
        pending=pending,
        opened=lambda: state.pending,
        served=lambda: {value.key: value.committed_offset for value in state.iter_served()},
        negative=lambda: (value for value in state.committed if value.committed_offset < 0),
        values=state.iter_served if is_whole else None,
    )


def concluded(
    releases: Sequence[Release],
    held: Mapping[Profile, Held],
    large: Sequence[LargeBatch],
    find: Callable[[Collection[int]], dict[int, FindingPlace]],
) -> DryRun:
    """Return the loads that follow from what coordinators hold.

    Args:
        find: returns the places of records, by their offsets.
    """
    failures = {release: _failure(release, held[release.profile], large) for release in releases}
    wanted = {failure.record_offset for failure in failures.values() if failure is not None}
    wanted |= {first for it in held.values() for _, first in it.orphans.values()}
    places = find(wanted)
    loads = tuple(
        _load(release, failure, places, held[release.profile].end_offset) for release, failure in failures.items()
    )
    return DryRun(loads, held, places, tuple(large))


def judged(run: DryRun, outcomes: Mapping[str, Mapping[Profile, Outcome]], log: PartitionLog) -> DryRun:
    """Return a dry run in which what brokers make of the files replaces what was read.

    Args:
        outcomes: by the shutdown before, ``clean`` or ``unclean``; only those that are possible.
    """
    loads = [
        _judged(load, outcome, run.held[load.release.profile], shutdown)
        for load in run.loads
        for shutdown, outcome in _differing(
            {shutdown: by_profile[load.release.profile] for shutdown, by_profile in outcomes.items()}
        )
    ]
    wanted = {load.failure.record_offset for load in loads if load.failure is not None and load.place is NOWHERE}
    places = run.places | find_places(log, wanted - run.places.keys())
    return replace(run, loads=tuple(_placed(load, places) for load in loads), places=places)


def _differing(outcomes: Mapping[str, Outcome]) -> Iterator[tuple[str | None, Outcome]]:
    """Yield one outcome for each kind of shutdown, or a single one if it makes no difference."""
    first = next(iter(outcomes.values()))
    if all(outcome.equals(first) for outcome in outcomes.values()):
        yield (None if len(outcomes) > 1 else next(iter(outcomes))), first
    else:
        yield from outcomes.items()


def _judged(load: Load, outcome: Outcome, read: Held, shutdown: str | None) -> Load:
    if not load.ends:  # a large batch, on a release that never gets past it
        return replace(load, shutdown=shutdown)
    if (waiting := outcome.without_data) is not None and not load.release.ends_without_data:
        place = FindingPlace(record_offset=waiting.record_offset)
        end = outcome.end_offset
        return replace(
            load, failure=waiting, place=place, served=NOTHING, answers=LOAD_IN_PROGRESS, ends=False,
            log_end_offset=end, shutdown=shutdown,
        )  # fmt: skip
    place = NOWHERE if outcome.file is None else FindingPlace(outcome.file, outcome.position)
    served = _served(outcome, read)
    if outcome.failure is not None and load.release.serves_what_it_read:
        served = SOME
    return Load(
        release=load.release,
        failure=outcome.failure,
        place=place,
        served=served,
        answers=outcome.answers if served == NOTHING else None,
        starts=outcome.starts,
        ends=outcome.ends,
        log_end_offset=outcome.end_offset,
        why_short=outcome.why_short,
        short_by=outcome.at_start.rule if outcome.at_start is not None else None,
        shutdown=shutdown,
    )


def _served(outcome: Outcome, read: Held) -> str:
    """Return how what the broker answers compares to what can be read."""
    if outcome.answers is not None:
        return NOTHING
    served, readable = outcome.served(), read.served()
    if readable and not served:
        return NOTHING
    return ALL if served == readable else SOME


def _placed(load: Load, places: Mapping[int, FindingPlace]) -> Load:
    if load.failure is None or load.place is not NOWHERE:
        return load
    return replace(load, place=_place(load.failure, places))


def large_batches(events: Iterable[LogEvent]) -> Iterator[LargeBatch]:
    """Yield the batches that are larger than the load buffer."""
    for event in events:
        if isinstance(event, BatchStart) and event.batch.size_bytes > LOAD_BUFFER_BYTES:
            yield LargeBatch(event.segment.file, event.batch.position, event.base_offset, event.batch.size_bytes)


def _failure(release: Release, held: Held, large: Sequence[LargeBatch]) -> Problem | None:
    """Return what ends the load first; an old release never gets past a large batch."""
    found = [held.failure] if held.failure is not None else []
    if large and not release.reads_large_batches:
        first = large[0]
        found.insert(0, Problem(first.base_offset, "L-6", f"{first}: the load never gets past it"))
    return min(found, key=lambda problem: problem.record_offset, default=None)


def _load(release: Release, failure: Problem | None, places: Mapping[int, FindingPlace], end_offset: int) -> Load:
    """Return the load of a log that a broker reads exactly as it was read here (``L-10``, ``L-42``, ``J-3``)."""
    if failure is None:
        return Load(release=release, log_end_offset=end_offset)
    served = ALL if failure.is_served else SOME if release.serves_what_it_read else NOTHING
    return Load(
        release=release,
        failure=failure,
        place=_place(failure, places),
        served=served,
        answers=answer_after_failure(release.profile) if served == NOTHING else None,
        ends=failure.rule != "L-6",
        log_end_offset=end_offset,
    )


def _place(failure: Problem, places: Mapping[int, FindingPlace]) -> FindingPlace:
    place = places.get(failure.record_offset, FindingPlace(record_offset=failure.record_offset))
    return place if failure.group is None else replace(place, group=failure.group)
