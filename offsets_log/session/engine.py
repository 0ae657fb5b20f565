"""The engine that reads logs for a run: record by record, or by kernels in bulk where that is faster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from offsets_log.columnar.large import is_large
from offsets_log.columnar.processors import processors
from offsets_log.events import BatchStart, LogEvent, Wants
from offsets_log.log_format.batch import NO_PRODUCER_ID
from offsets_log.log_format.partition_log import BYTES, POSITION, PartitionLog
from offsets_log.pipeline import iter_events, replay
from offsets_log.replay.coordinator_state import CoordinatorState, Holdings, finish
from offsets_log.replay.profile import Profile
from offsets_log.rows.activity import Activity
from offsets_log.rows.shown import ALL
from offsets_log.rows.survey import Survey
from offsets_log.session.account import Account
from offsets_log.session.inputs import Inputs
from offsets_log.words import counted

if TYPE_CHECKING:
    from offsets_log.broker.loading import ReplayInBulk
    from offsets_log.checking.partition_check import PartitionCheck
    from offsets_log.columnar.choose.selection import Selection
    from offsets_log.columnar.events.chunk import Chunk
    from offsets_log.columnar.events.export import Destination
    from offsets_log.columnar.folds.overviews import OverviewState
    from offsets_log.columnar.folds.replay import Replay, Replayed
    from offsets_log.columnar.scan.reading import Note, Threads
    from offsets_log.data_directory.decisions import Outcomes
    from offsets_log.replay.releases import Release

UNTOLD_IN_BULK = frozenset({POSITION, BYTES, "assignment_base64"})
"""Columns that a source may lack and still be read in bulk, because rows do not have them or have null."""

Loaded = tuple[PartitionLog, CoordinatorState, Survey]
"""A log, the state it leads to, and the survey of it."""

Surveyed = tuple[PartitionLog, Survey, Holdings]
"""A log, the survey of it, and how much of it a load makes."""


class Watcher(Protocol):
    """Notes something about events that pass by."""

    def watch(self, events: Iterable[LogEvent]) -> Iterator[LogEvent]:
        """Pass on the events."""


class Engine:
    """Answers from the logs of `inputs`; damage and remarks go to `account`.

    Attributes:
        decides: ends open transactions whose outcome is certain before the replay is used; None to leave them open.
            Only in a log that is read to its end is an outcome certain.
        by_rules: ``id`` of each loaded log of which it depends on the profile what is served: those that hold
            transactions, or offsets of a group that is gone.
        kept: ``id`` of each of these that was read record by record → the whole state it leads to.
    """

    def __init__(self, inputs: Inputs, account: Account) -> None:
        self.inputs = inputs
        self.account = account
        self.decides: Outcomes | None = None
        self.by_rules: set[int] = set()
        self.kept: dict[int, CoordinatorState] = {}

    def events(self, log: PartitionLog, start: int = 0, wants: Wants | None = None) -> Iterator[LogEvent]:
        """Yield the events of one partition within the bounds, from a record offset on; report tails on the way.

        ``wants`` is that of `iter_events`.
        """
        events = iter_events(
            log, start=start, until=self.inputs.until(log), release=self.inputs.scope.kafka, wants=wants
        )
        return self.account.watch(log, events, self.account.advance)

    def selected(
        self,
        log: PartitionLog,
        selection: Selection,
        wants: Wants | None = None,
        start: int | None = None,
    ) -> Iterator[LogEvent]:
        """Yield events for a question about few records: in bulk, batches that hold none of them are skipped.

        Args:
            start: record offset to start at, if only this log is asked by the selection.
        """
        if not self.is_bulk_for("choose.choice.choose"):
            return self.events(log, start or 0, wants)
        from offsets_log.columnar.choose.selected import selected_events

        self.compile_first("choose.choice.choose")
        until, release = self.inputs.until(log), self.inputs.scope.kafka
        events = selected_events(
            log, selection, start=start or 0, until=until, release=release, wants=wants, advance=self.account.advance
        )
        return self.account.watch(log, events, lambda size_bytes: None)

    def load(self, log: PartitionLog, profile: Profile, found: Watcher) -> CoordinatorState:
        """Return a coordinator's memory after it loads the partition up to the bounds, as far as filters show it.

        Args:
            found: notes what passes by.
        """
        return self._load(log, profile, found).showing(self.inputs.shows_group, self.inputs.shows_topic)

    def _load(self, log: PartitionLog, profile: Profile, found: Watcher) -> CoordinatorState:
        events = self._noting_transactions(log, found.watch(self.events(log)))
        state = replay(events, profile, on_damage=self.account.on_damage)
        if self.decides is not None:
            self.decides.decide(log, state, state.iter_pending())
        loaded = finish(state)
        self._note_orphans(log, loaded)
        state_of_log = replace(loaded, missing_columns=log.missing_columns)
        if id(log) in self.by_rules:
            self.kept[id(log)] = state_of_log
        return state_of_log

    def _noting_transactions(self, log: PartitionLog, events: Iterable[LogEvent]) -> Iterator[LogEvent]:
        for event in events:
            if isinstance(event, BatchStart) and event.batch.producer_id != NO_PRODUCER_ID:
                self.by_rules.add(id(log))
            yield event

    def _note_orphans(self, log: PartitionLog, state: CoordinatorState) -> None:
        if any(state.iter_orphans()):
            self.by_rules.add(id(log))

    @property
    def is_bulk(self) -> bool:
        """Whether there is so much to read that kernels (`offsets_log.columnar`) do it."""
        return self.is_bulk_for("folds.offsets.scan")

    def is_bulk_for(self, largest: str) -> bool:
        """Return whether kernels do it; ``largest`` as of `is_large_for`."""
        is_known = not any(log.topic or log.missing_columns - UNTOLD_IN_BULK for log in self.inputs.logs)
        return is_known and self.is_large_for(largest)

    def is_large_for(self, largest: str) -> bool:
        """Return whether there is so much to read that kernels are worth their start; ``largest`` as of `is_large`."""
        return is_large(sum(log.bytes_to_read or log.size_bytes for log in self.inputs.logs), largest)

    def compile_first(self, largest: str, *also: str) -> None:
        """Wait until the kernels that are needed are compiled, if they are not kept, and show how far that is.

        Args:
            largest: the place of the largest kernel that is needed, as in `needs.WITH`.
            also: others that are needed.
        """
        from offsets_log.columnar.jit.making import make
        from offsets_log.columnar.needs import lacking

        if lacked := lacking(largest, *also):
            self.account.say(
                f"compiling {counted(len(lacked), 'kernel')} for this machine, once: some ten seconds; those of other "
                "commands follow when nobody waits"
            )
            with self.account.listener.progress(len(lacked), unit="kernels", long=1, done="compiled") as advance:
                make([of.wanted for of in lacked], advance)

    @property
    def threads(self) -> Threads:
        """Those that read logs, which tell how far they are."""
        from offsets_log.columnar.scan.reading import Threads

        return Threads(self.inputs.scope.threads or processors(), advance=self.account.advance)

    def replay_in_bulk(
        self,
        profile: Profile,
        found: Mapping[int, Survey] | None = None,
        *,
        replay: Callable[..., Replay] | None = None,
        largest: str = "folds.offsets.scan",
        also: Sequence[str] = (),
    ) -> Iterator[Replayed]:
        """Replay all partitions up to the bounds, in their order.

        Args:
            found: ``id`` of each log → the survey of it.
            replay: makes another kind of replays.
            largest: the largest kernel that these replays need, and ``also`` others, as of `compile_first`.
        """
        from offsets_log.columnar.folds.replay import Replay

        self.compile_first(largest, *also)
        surveys = found or {}
        read = self.replays(profile, lambda log: self.account.noting(log, surveys.get(id(log))), replay or Replay)
        replays = map(self._note_producers, read)
        return replays if self.decides is None else map(partial(_decided, self.decides), replays)

    def replays(
        self, profile: Profile, note: Callable[[PartitionLog], Note], replay: Callable[..., Replay]
    ) -> Iterator[Replayed]:
        """Replay all partitions; arguments as of `replay_logs`."""
        from offsets_log.columnar.folds.replay import replay_logs

        how: dict[str, Any] = {"until": self.inputs.until, "release": self.inputs.scope.kafka, "threads": self.threads}
        return replay_logs(self.inputs.logs, profile, note=note, replay=replay, **how)

    def _note_producers(self, replayed: Replayed) -> Replayed:
        if replayed.state.arrays.scan_state.producer_count:
            self.by_rules.add(id(replayed.log))
        return replayed

    def check_in_bulk(self, releases: Sequence[Release], shutdown: str | None) -> Iterator[PartitionCheck]:
        """Load all partitions up to the bounds by the rules of releases, in their order."""
        from offsets_log.checking.bulk import check_logs, profiles_of
        from offsets_log.checking.bulk_answers import partition_check

        self.compile_first("folds.offsets.scan", "folds.inspection.locate")
        checked = check_logs(
            self.inputs.logs,
            profiles_of(releases),
            note=self.account.noting,
            until=self.inputs.until,
            release=self.inputs.scope.kafka,
            threads=self.threads,
        )
        for replayed, state in checked:
            until = self.inputs.until(replayed.log)
            yield partition_check(
                replayed,
                state,
                releases,
                until=until,
                release=self.inputs.scope.kafka,
                shutdown=shutdown,
                in_bulk=self.replay_loads,
            )

    @property
    def replay_loads(self) -> ReplayInBulk | None:
        """Return how to replay what brokers load; None for logs that are too small for kernels."""
        if not self.is_bulk:
            return None
        from offsets_log.checking.bulk_loads import replay_loads

        return replay_loads

    def export_in_bulk(
        self,
        to: Destination,
        *,
        chunk: Callable[[tuple[int, int] | None], Chunk],
        is_filtered: bool = False,
        also: Sequence[str] = (),
    ) -> Iterator[tuple[int, int]]:
        """Write all records up to the bounds in parts, as Arrow tables or otherwise, as `Export.parts`.

        Args:
            chunk: returns, for a release, what turns its records into that.
            is_filtered: only records of the groups and topics that are shown; markers belong to none.
            also: kernels that chunks need.
        """
        from offsets_log.columnar.events.export import Export

        self.compile_first("events.kernels.fill", *also)
        export = Export(
            to,
            chunk=chunk,
            note=self.account.noting,
            shown=self.inputs.shown if is_filtered else ALL,
            until=self.inputs.until,
            release=self.inputs.scope.kafka,
            threads=self.threads,
        )
        return export.parts(self.inputs.logs)

    def load_all(self, profile: Profile, *, whole_groups: bool = True) -> Iterator[Loaded]:
        """Yield every partition as `load` returns it, with what was seen in it; in bulk only what `rebuild` shows.

        Args:
            whole_groups: with the members of classic groups.
        """
        for log, state, found in self.load_whole(profile, whole_groups=whole_groups):
            yield log, state.showing(self.inputs.shows_group, self.inputs.shows_topic), found

    def load_whole(self, profile: Profile, *, whole_groups: bool) -> Iterator[Loaded]:
        """Yield every partition with all groups and topics, whichever are asked for."""
        if not self.is_bulk:
            for log in self.inputs.logs:
                found = Survey.of(log)
                yield log, self._load(log, profile, found), found
            return
        seen = {id(log): Survey.of(log) for log in self.inputs.logs}
        for replayed in self.replay_in_bulk(profile, seen):
            loaded = finished(replayed, seen[id(replayed.log)], whole_groups=whole_groups)
            self._note_orphans(*loaded[:2])
            yield loaded

    def load_active(self, profile: Profile) -> Iterator[tuple[PartitionLog, CoordinatorState, Mapping[str, int]]]:
        """Yield every partition as `load_all` does, and when its groups last wrote, in epoch milliseconds."""
        if not self.is_bulk:
            for log in self.inputs.logs:
                activity = Activity()
                yield log, self.load(log, profile, activity), activity.last_ms
            return
        from offsets_log.columnar.folds.replay import Replay

        for replayed in self.replay_in_bulk(profile, replay=partial(Replay, notes_activity=True)):
            log, state, _ = finished(replayed, Survey.of(replayed.log), whole_groups=True)
            shown = state.showing(self.inputs.shows_group, self.inputs.shows_topic)
            yield log, shown, replayed.state.last_activity()

    def overview_all(self, profile: Profile) -> Iterator[tuple[PartitionLog, CoordinatorState, Survey, OverviewState]]:
        """Yield every partition as `load_all` does, with what else was noted of its records; in bulk only."""
        from offsets_log.columnar.folds.overviews import OverviewReplay, OverviewState
        from offsets_log.investigate.writer_counts import WriterCounts

        state_of = partial(
            OverviewState,
            shows_group=self.inputs.shows_group if self.inputs.scope.group else None,
            shows_topic=self.inputs.shows_topic if self.inputs.scope.topic else None,
        )
        kind = partial(OverviewReplay, question=partial(WriterCounts, "group"), state=state_of)
        seen = {id(log): Survey.of(log) for log in self.inputs.logs}
        for replayed in self.replay_in_bulk(profile, seen, replay=kind, largest="folds.overview.scan"):
            assert isinstance(replayed.state, OverviewState)
            log, state, found = finished(replayed, seen[id(replayed.log)], whole_groups=True)
            yield log, state.showing(self.inputs.shows_group, self.inputs.shows_topic), found, replayed.state

    def survey_all(self, profile: Profile) -> Iterator[Surveyed]:
        """Yield the survey of every partition, and what a load makes of it."""
        from offsets_log.investigate.survey_counts import SurveyCounts, Surveying

        if not self.is_bulk:
            for log in self.inputs.logs:
                found = Survey.of(log)
                yield log, found, self.load(log, profile, Surveying(found)).holdings()
            return
        from offsets_log.columnar.folds.surveys import SurveyedState, SurveyingReplay

        seen = {id(log): Survey.of(log) for log in self.inputs.logs}
        kind = partial(SurveyingReplay, question=SurveyCounts)
        for replayed in self.replay_in_bulk(profile, seen, replay=kind, largest="scan.gather.gather"):
            from offsets_log.columnar.materialize.values import holdings

            with replayed.scanner() as scanner:
                held = holdings(
                    replayed.layout,
                    replayed.state,
                    scanner,
                    shows_group=self.inputs.shows_group,
                    shows_topic=self.inputs.shows_topic if self.inputs.scope.topic else None,
                )
            found = seen[id(replayed.log)]
            assert isinstance(replayed.state, SurveyedState)
            assert isinstance(replayed.state.question, SurveyCounts)
            replayed.state.tell(found)
            replayed.state.question.tell(found)
            yield replayed.log, found, held


def _decided(outcomes: Outcomes, replayed: Replayed) -> Replayed:
    """Return a replay in bulk with the certain outcomes of its open transactions."""
    from offsets_log.columnar.materialize.values import open_offsets

    with replayed.scanner() as scanner:
        outcomes.decide(replayed.log, replayed.state, open_offsets(replayed.layout, replayed.state, scanner))
    return replayed


def finished(replayed: Replayed, found: Survey, *, whole_groups: bool) -> Loaded:
    """Return what a load makes of a replay in bulk, with all groups and topics.

    Args:
        whole_groups: with the members of classic groups.
    """
    from offsets_log.columnar.materialize.values import finish as finish_bulk

    with replayed.scanner() as scanner:
        state = finish_bulk(replayed.layout, replayed.state, scanner, whole_groups=whole_groups)
    replayed.state.tell(found)
    return replayed.log, replace(state, missing_columns=replayed.log.missing_columns), found
