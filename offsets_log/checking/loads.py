"""What each release makes of a partition: the dry run of its load, and the findings that follow from it.

`dry_run` takes the events once, in pieces: every distinct set of rules replays each piece and joins it to what it has,
until it meets the record that ends the load.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from offsets_log.checking.findings import CHECK_COLUMNS, DOUBT, FAILS, NOTE, VERDICT_COLUMNS, Finding, counted
from offsets_log.checking.places import NOWHERE, Place, find_places
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.pipeline import BatchEnd, BatchStart, LogEvent, replay
from offsets_log.replay.coordinator_state import CoordinatorState, finish
from offsets_log.replay.partial import PartialState
from offsets_log.replay.problem import Problem
from offsets_log.replay.profile import Profile
from offsets_log.replay.releases import Release
from offsets_log.tables import Row

LOAD_BUFFER_BYTES = 5_242_880
"""``offsets.load.buffer.size``."""

PIECE = 4096
"""Events that are held at a time."""


@dataclass(frozen=True, slots=True)
class Load:
    """What a release makes of a partition.

    Attributes:
        failure: what ends the load.
        place: of the failure; its group is that of the record where the failure names none.
    """

    release: Release
    failure: Problem | None = None
    place: Place = NOWHERE

    @property
    def served(self) -> str:
        """``all``; ``nothing`` (``L-42``, ``J-3``); or, up to 0.10.0, the ``part`` before the record (``L-10``)."""
        if self.failure is None or self.failure.is_served:
            return "all"
        return "part" if self.release.serves_what_it_read else "nothing"

    def skips(self, record_type: int, record_offset: int) -> bool:
        """Whether it comes to a record of this type and passes over it (``records:Y3``)."""
        profile = self.release.profile
        if record_type in profile.known_types or not profile.skips_unknown_types:
            return False
        return self.failure is None or self.failure.record_offset > record_offset

    def row(self, offsets_partition: int | None) -> Row:
        """One row of `CHECK_COLUMNS`."""
        return dict.fromkeys(CHECK_COLUMNS) | {
            "kind": "load",
            "offsets_partition": offsets_partition,
            "severity": FAILS if self.failure else None,
            "releases": [self.release.name],
            "ok": self.failure is None,
            "served": self.served,
            "rule": self.failure.rule if self.failure else None,
            "problem": self.failure.problem if self.failure else None,
            **self.place.cells(),
            "detail": {"answers": self._answers()} if self.served == "nothing" else None,
        }

    def _answers(self) -> str:
        """To whoever asks for a group of the partition: an error, or that there is nothing (``L-42``, ``J-3``)."""
        return "not_coordinator" if self.release.profile.is_unavailable_after_failure else "empty"


def verdict_in(row: Row) -> Row:
    """Of the row of a load, whether it loads, and where not."""
    return {name: row[name] for name in VERDICT_COLUMNS}


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
class DryRun:
    """One partition on several releases.

    Attributes:
        states: rules → what a coordinator holds at the end of the load.
        places: record offset → where it is; of failures and orphans.
    """

    loads: tuple[Load, ...]
    states: dict[Profile, CoordinatorState]
    places: dict[int, Place]
    large_batches: tuple[LargeBatch, ...]

    def failures(self) -> Iterator[Finding]:
        """Every record that ends a load, once for all releases that it ends it on."""
        releases: dict[tuple[Problem, Place], list[str]] = {}
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
        """Offsets that a release loads and serves to nobody (``J-15``), by group."""
        releases: dict[tuple[str, int, int], list[str]] = {}
        for load in self.loads:
            if load.served == "all":
                record_offsets: dict[str, list[int]] = {}
                for value in self.states[load.release.profile].iter_orphans():
                    record_offsets.setdefault(value.group, []).append(value.record_offset)
                for group, found in record_offsets.items():
                    releases.setdefault((group, len(found), min(found)), []).append(load.release.name)
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
        """Batches that are larger than the load buffer."""
        for batch in self.large_batches:
            yield Finding(
                severity=NOTE,
                rule="L-6",
                problem=f"{batch}: from 2.0 on the buffer grows, before it was never loaded",
                place=Place(batch.file, batch.position, batch.base_offset),
                detail={"size_bytes": batch.size_bytes},
            )


def dry_run(log: PartitionLog, events: Iterable[list[LogEvent]], releases: Sequence[Release]) -> DryRun:
    """Load a partition by the rules of every release.

    Args:
        events: of this log, as far as it is to be read, in `pieces`.
    """
    running = {release.profile: PartialState(release.profile) for release in releases}
    large_batches: list[LargeBatch] = []
    for piece in events:
        large_batches += _large_batches(piece)
        for profile, state in running.items():
            if not state.problems:  # what follows the record that ends a load changes nothing
                state.merge(replay(piece, profile, on_damage=lambda damage: None))
    states = {profile: finish(state) for profile, state in running.items()}
    failures = {release: _failure(release, states[release.profile], large_batches) for release in releases}
    wanted = {failure.record_offset for failure in failures.values() if failure is not None}
    wanted |= {value.record_offset for state in states.values() for value in state.iter_orphans()}
    places = find_places(log, wanted)
    loads = tuple(_load(release, failure, places) for release, failure in failures.items())
    return DryRun(loads, states, places, tuple(large_batches))


def pieces(events: Iterable[LogEvent]) -> Iterator[list[LogEvent]]:
    """Runs of events that end between two batches."""
    piece: list[LogEvent] = []
    for event in events:
        piece.append(event)
        if len(piece) >= PIECE and isinstance(event, BatchEnd):
            yield piece
            piece = []
    if piece:
        yield piece


def _large_batches(events: Iterable[LogEvent]) -> Iterator[LargeBatch]:
    for event in events:
        if isinstance(event, BatchStart) and event.batch.size_bytes > LOAD_BUFFER_BYTES:
            yield LargeBatch(event.segment.file, event.batch.position, event.base_offset, event.batch.size_bytes)


def _failure(release: Release, state: CoordinatorState, large_batches: Sequence[LargeBatch]) -> Problem | None:
    """The first of what ends the load; an old release never gets past a large batch."""
    found = [state.failure] if state.failure is not None else []
    if large_batches and not release.reads_large_batches:
        first = large_batches[0]
        found.insert(0, Problem(first.base_offset, "L-6", f"{first}: the load never gets past it"))
    return min(found, key=lambda problem: problem.record_offset, default=None)


def _load(release: Release, failure: Problem | None, places: dict[int, Place]) -> Load:
    if failure is None:
        return Load(release)
    place = places.get(failure.record_offset, Place(record_offset=failure.record_offset))
    return Load(release, failure, place if failure.group is None else replace(place, group=failure.group))
