"""Give `partition_check` what a bulk check has found: where it is, and what coordinators hold at the end."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from offsets_log.broker.loading import ReplayInBulk
from offsets_log.checking.bulk import CheckedState, is_sound
from offsets_log.checking.bulk_newer import NewerGroups
from offsets_log.checking.bulk_offsets import HeldOffsets, ServedOffsets
from offsets_log.checking.bulk_places import Finder
from offsets_log.checking.loads import Held, concluded
from offsets_log.checking.names import Names
from offsets_log.checking.offsets import BuriedOffsets, OpenTransactions
from offsets_log.checking.partition_check import PartitionCheck
from offsets_log.checking.places import FindingPlace, place_of
from offsets_log.columnar import arrays as a
from offsets_log.columnar.folds.replay import Replayed
from offsets_log.columnar.folds.state import ColumnarState, Pointer
from offsets_log.columnar.materialize import timelines as tl
from offsets_log.columnar.materialize import values as vl
from offsets_log.columnar.overflow import Unended
from offsets_log.columnar.scan.layout import Scanner
from offsets_log.events import EVERYTHING, Event, Until
from offsets_log.log_format.java_text import REPLACEMENT
from offsets_log.messages.registry import RECORD_TYPES, CoordinatorRecord
from offsets_log.replay.coordinator_state import in_order, settle_groups
from offsets_log.replay.group import Group
from offsets_log.replay.partial import GroupTopicPartition, OffsetAndMetadata
from offsets_log.replay.problem import Problem
from offsets_log.replay.profile import Profile, groups_way_of
from offsets_log.replay.refusal import refusal_of_batch, verdict_on
from offsets_log.replay.releases import Release
from offsets_log.replay.timeline import GroupEvent, Timeline

Settled = tuple[dict[str, Group], list[Problem]]
"""The groups at the end of a load, and the problems that it has met with them."""


# --------------------------------------------------------------------------------------- what was seen


@dataclass(frozen=True, slots=True)
class Findings:
    """What was found in a log besides what its state holds.

    Attributes:
        first_records: the first record of each kind that kernels have read.
    """

    transactions: OpenTransactions
    buried: BuriedOffsets
    first_records: Sequence[Event]


def complete(state: CheckedState, finder: Finder) -> Findings:
    """Look up what kernels have found, and complete the names in the state."""
    firsts = _first_records(state, finder)
    transactions, buried, other_names = OpenTransactions(), BuriedOffsets(), Names()
    for event in _open_transactions(state, finder):
        transactions.saw_record(event, place_of(event))
    names = tl.group_names(state)
    under_type_0 = state.offsets.groups | {names[number] for number in _groups_under_type_0(state).tolist()}
    looked_at = under_type_0 | {name for name in names if REPLACEMENT in name}
    for event in finder.of_groups(looked_at) if looked_at else ():
        assert event.decoded is not None
        place = place_of(event)
        other_names.saw_record(event, place)
        if event.decoded.is_offset_commit and event.decoded.group in under_type_0:
            buried.saw_offset(event.decoded, place)
    _complete_types(state, firsts)
    _complete_groups(state, names, other_names, finder)
    return Findings(transactions, buried, firsts)


def _first_records(state: CheckedState, finder: Finder) -> list[Event]:
    scan_state = state.arrays.scan_state
    return [
        finder.record_at(int(scan_state.inspected_at[kind]), int(scan_state.inspected_first[kind]))
        for kind in zip(*np.nonzero(scan_state.inspected), strict=True)
    ]


def _open_transactions(state: CheckedState, finder: Finder) -> Iterator[Event]:
    """Yield the first record of each transaction without a marker."""
    for seen in state.arrays.region(Unended).up_to(state.arrays.scan_state.producer_count):
        if seen.count != 0:
            yield finder.record_at(int(seen.batch), int(seen.offset))


def _groups_under_type_0(state: CheckedState) -> a.Int64s:
    """Return the numbers of the groups that kernels have found in keys of type 0."""
    s = state.arrays
    rows = s.rows.up_to(s.scan_state.row_count)
    is_type_0 = (s.arena[rows.column(a.Row.key_at)] == 0) & (s.arena[rows.column(a.Row.key_at) + 1] == 0)
    numbers: a.Int64s = np.unique(rows.column(a.Row.group)[is_type_0])
    return numbers


def _complete_types(state: CheckedState, firsts: Sequence[Event]) -> None:
    places = {event.record.offset: place_of(event) for event in firsts}
    slow_path, by_kernel = state.seen.names.types, state.arrays.scan_state.inspected
    counts = {number: count for number, (_, count) in slow_path.items()}
    for number, count in enumerate(by_kernel.sum(axis=1).tolist()):
        counts[number] = counts.get(number, 0) + count
    state.seen.names.types = {
        number: (places[first] if isinstance(first, int) else first, counts[number])
        for number, first in state.first_types.items()
    }


def _complete_groups(state: CheckedState, names: Sequence[str], other: Names, finder: Finder) -> None:
    """Complete all groups that a record names, in the order of their first records."""
    slow_path, seen = state.seen.names.groups, state.seen.names
    firsts = state.arrays.groups.up_to(len(names)).column(a.Group.first_offset).tolist()
    unusual = {str(name): (name, place) for name, place in other.groups.items() if REPLACEMENT in name}
    groups: dict[str, FindingPlace | None] = {}
    offsets: dict[str, int] = {}
    for name, first in zip(names, firsts, strict=True):
        if name in unusual:
            unusual_name, groups_place = unusual[name]
            groups[unusual_name] = groups_place
        elif first == a.SLOW_PATH:
            groups[name] = slow_path[name]
        elif first != a.NEVER:
            groups[name] = None
            offsets[name] = first
    seen.groups, seen.raw_names = groups, other.raw_names

    def find(wanted: Collection[str]) -> dict[str, FindingPlace]:
        places = finder.places({offsets[name] for name in wanted})
        return {name: places[offsets[name]] for name in wanted}

    seen.find = find


# ------------------------------------------------------------------------------ what coordinators hold


class Coordinators:
    """What coordinators hold at the end of a load of one log, by the rules of each release."""

    def __init__(
        self, replayed: Replayed, state: CheckedState, scanner: Scanner, finder: Finder, firsts: Sequence[Event]
    ) -> None:
        self.layout = replayed.layout
        self.state = state
        self.finder = finder
        self.firsts = firsts
        self.names = tl.group_names(state)
        self._number_of = {name: number for number, name in enumerate(self.names)}
        self._offsets: dict[int, HeldOffsets] = {}
        self._settled_groups: dict[tuple[Profile, frozenset[str], frozenset[str]], Settled] = {}
        self._committed: dict[int, dict[GroupTopicPartition, int]] = {}
        self._newer = NewerGroups(state, len(self.names))
        self._timelines = dict(self._mixed_timelines(scanner)) | self._read_again(scanner)
        self._shapes, self._shape_of = self._plain_timelines()

    def held(self, profile: Profile) -> Held:
        """Return what is held by the rules of a release."""
        offsets = self._offsets_of(profile)
        exists, failures = self._settled(profile, offsets)
        orphans = np.flatnonzero((offsets.counts > 0) & ~exists).tolist()
        pending: dict[int, list[str]] = {}
        for producer_id, group in offsets.open:
            pending.setdefault(producer_id, []).append(self.names[group])
        problems = in_order([*self._refusals(profile), *failures])
        return Held(
            failure=problems[0] if problems else None,
            end_offset=self.state.end_offset,
            orphans={self.names[i]: (int(offsets.counts[i]), int(offsets.firsts[i])) for i in orphans},
            pending=pending,
            opened=lambda: self._opened(offsets.state),
            served=lambda: ServedOffsets(
                offsets.count_of(exists), lambda: self._committed_of(offsets.state), lambda: self._existing(exists)
            ),
            negative=lambda: self._negative(offsets.state),
            values=lambda: self._served(offsets.state, exists),
        )

    def _offsets_of(self, profile: Profile) -> HeldOffsets:
        state = self.state.of_way(profile)
        if id(state) not in self._offsets:
            self._offsets[id(state)] = HeldOffsets.of(state, self._number_of)
        return self._offsets[id(state)]

    def _committed_of(self, state: ColumnarState) -> dict[GroupTopicPartition, int]:
        """Return all committed offsets of a state."""
        if id(state) not in self._committed:
            self._committed[id(state)] = {value.key: value.committed_offset for value in self._values(state)}
        return self._committed[id(state)]

    def _values(self, state: ColumnarState) -> Iterator[OffsetAndMetadata]:
        with Scanner() as scanner:
            yield from vl.offsets_at(self.layout, state, scanner, vl.committed_places(state, vl.find(state)))

    def _opened(self, state: ColumnarState) -> list[OffsetAndMetadata]:
        with Scanner() as scanner:
            return list(vl.open_offsets(self.layout, state, scanner))

    def _negative(self, state: ColumnarState) -> list[OffsetAndMetadata]:
        with Scanner() as scanner:
            return list(vl.negative_offsets(self.layout, state, scanner))

    def _existing(self, exists: npt.NDArray[np.bool_]) -> set[str]:
        """Return the names of groups that exist."""
        return {self.names[number] for number in np.flatnonzero(exists).tolist()}

    def _served(self, state: ColumnarState, exists: npt.NDArray[np.bool_]) -> Iterator[OffsetAndMetadata]:
        groups = self._existing(exists)
        return (value for value in self._values(state) if value.group in groups)

    # ------------------------------------------------------------------------------ what ends a load

    def _refusals(self, profile: Profile) -> Iterator[Problem]:
        """Yield problems of batches and records: the first of each kind in kernels, and the first on the slow path."""
        scan_state = self.state.arrays.scan_state
        for kind in np.flatnonzero(scan_state.formats).tolist():
            _, batch = self.finder.batch_at(int(scan_state.formats_at[kind]))
            if (refused := refusal_of_batch(batch, profile)) is not None:
                yield refused
        for event in self.firsts:
            verdict = verdict_on(event.record, event.decoded, None, profile)
            if isinstance(verdict, Problem):
                yield verdict
        if profile in self.state.first_problems:
            yield self.state.first_problems[profile]

    # ---------------------------------------------------------------------------------------- groups

    def _mixed_timelines(self, scanner: Scanner) -> Iterator[tuple[str, Timeline]]:
        """Yield the timelines of groups with records that were read on the slow path."""
        events = {number: [*before, *self.state.latest_events(number)] for number, before in self.state.events.items()}
        pointers = [event for of_group in events.values() for event in of_group if isinstance(event, Pointer)]
        records = tl.records_at(self.layout, scanner, pointers, True)
        for number, of_group in events.items():
            timeline = [next(records) if isinstance(event, Pointer) else event for event in of_group]
            yield self.names[number], Timeline(timeline)

    def _read_again(self, scanner: Scanner) -> dict[str, Timeline]:
        """Return the whole timelines of newer groups that are in doubt, or end somebody's load first."""
        numbers = set(np.flatnonzero(self._newer.doubtful).tolist())
        for profile in self.state.profiles:
            if (first := self._newer.first_failing(profile)) is not None:
                numbers.add(first)
        return tl.read_again(self.layout, self.state, scanner, [self.names[number] for number in sorted(numbers)])

    def _plain_timelines(self) -> tuple[list[Timeline], a.Int64s]:
        """Return the few timelines that other groups can have, and the number of each group's timeline."""
        groups = self.state.arrays.groups.up_to(len(self.names))
        has_record = groups.column(a.Group.metadata_offset) != a.NEVER
        is_removed = has_record & (groups.column(a.Group.is_tombstone) != 0)
        has_offset = groups.column(a.Group.value_offset) > groups.column(a.Group.metadata_offset)
        numbers = has_record.astype(np.int64) + is_removed + 3 * has_offset
        numbers[[self._number_of[name] for name in self._timelines]] = 0
        value = RECORD_TYPES[2].values[0].zeros(0)
        made = [
            CoordinatorRecord(record_type=2, key=RECORD_TYPES[2].key.zeros(0), value=value if is_there else None)
            for is_there in (True, False)
        ]
        before = [[], *([GroupEvent(0, record)] for record in made)]
        behind = [[], [GroupEvent(1, None)]]
        shapes = [Timeline([*first, *last]) for last in behind for first in before]
        return [*shapes, *self._newer.shapes], numbers

    def _settled(self, profile: Profile, offsets: HeldOffsets) -> tuple[npt.NDArray[np.bool_], list[Problem]]:
        """Return whether each group exists, and the problems a load would have met."""
        exists, fails = self._settled_plain(profile, offsets)
        timelines = dict(self._timelines)
        mixed = [self._number_of[name] for name in timelines]
        fails[mixed] = False
        doubtful = [*np.flatnonzero(fails).tolist(), *mixed]
        for number in doubtful[: len(doubtful) - len(mixed)]:
            timelines[self.names[number]] = self._shapes[self._shape_of[number]]
        committed = frozenset(self.names[number] for number in doubtful if offsets.committed[number])
        pending = frozenset(self.names[number] for number in doubtful if offsets.pending[number])
        alike = groups_way_of(profile), committed, pending
        if alike not in self._settled_groups:
            self._settled_groups[alike] = settle_groups(
                profile, timelines, committed=committed, pending=pending, end_offset=self.state.end_offset
            )
        groups, problems = self._settled_groups[alike]
        exists[mixed] = [self.names[number] in groups for number in mixed]
        return exists, self._by_first_record(profile, problems)

    def _settled_plain(
        self, profile: Profile, offsets: HeldOffsets
    ) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Return for groups whose timelines are among the few whether each exists, and whether a load fails on it.

        Of groups of newer kinds only those fail that are read again, for a load ends at the first.
        """
        first_newer = len(self._shapes) - len(self._newer.shapes)
        shapes = self._newer.shape_of(profile, self._shape_of, first_newer)
        cases = shapes * 4 + offsets.committed * 2 + offsets.pending
        there_are = np.unique(cases).tolist()
        timelines = {str(case): self._shapes[case // 4] for case in there_are if self._shapes[case // 4].events}
        groups, problems = settle_groups(
            profile,
            timelines,
            committed={str(case) for case in there_are if case & 2},
            pending={str(case) for case in there_are if case & 1},
            end_offset=0,
        )
        failing = {problem.group for problem in problems}
        exists, fails = (np.zeros(4 * len(self._shapes), np.bool_) for _ in range(2))
        for case in there_are:
            exists[case], fails[case] = str(case) in groups, str(case) in failing
        return exists[cases], fails[cases] & (shapes < first_newer)

    def _by_first_record(self, profile: Profile, problems: list[Problem]) -> list[Problem]:
        """Sort problems that only the end shows by the first records that created their groups."""
        at_end = {problem.group for problem in problems if problem.is_served and problem.group is not None}
        if len(at_end) < 2:
            return problems
        order: dict[str, int] = {}
        for event in self.finder.of_groups(at_end):
            record = event.decoded
            assert record is not None
            is_told = not record.is_tombstone if record.is_offset_commit else True
            if is_told and not profile.skips(record.record_type):
                order.setdefault(record.group, len(order))
        return sorted(problems, key=lambda problem: order.get(problem.group or "", 0))


# ---------------------------------------------------------------------------------- all of it together


def partition_check(
    replayed: Replayed,
    state: CheckedState,
    releases: Sequence[Release],
    *,
    until: Until = EVERYTHING,
    release: tuple[int, int] | None = None,
    shutdown: str | None = None,
    in_bulk: ReplayInBulk | None = None,
) -> PartitionCheck:
    """Return the check of a log that was read in bulk.

    Args:
        until, release, shutdown: see `PartitionCheck.read`.
        in_bulk: replays what brokers load, see `broker.outcome.on_brokers`.
    """
    log, layout = replayed.log, state.seen.layout
    is_whole = not (layout.damaged_files or layout.tails)
    finder = Finder(log, replayed.layout, is_whole=is_whole, until=until, release=release)
    found = complete(state, finder)
    held = _held(replayed, state, finder, found.first_records)
    check = PartitionCheck(log, releases, in_bulk=in_bulk)
    check.conclude(
        concluded(releases, held, state.large_batches, finder.places),
        state.seen,
        found.transactions,
        found.buried,
        is_sound=is_sound(log, state, until),
        until=until,
        release=release,
        shutdown=shutdown,
    )
    return check


def held_by_profiles(replayed: Replayed, state: CheckedState, release: tuple[int, int] | None) -> dict[Profile, Held]:
    """Return what coordinators hold at the end of a load of a whole log, by the rules of each release."""
    finder = Finder(replayed.log, replayed.layout, is_whole=True, until=EVERYTHING, release=release)
    return _held(replayed, state, finder, _first_records(state, finder))


def _held(replayed: Replayed, state: CheckedState, finder: Finder, firsts: Sequence[Event]) -> dict[Profile, Held]:
    with Scanner() as scanner:
        coordinators = Coordinators(replayed, state, scanner, finder, firsts)
    return {profile: coordinators.held(profile) for profile in state.profiles}
