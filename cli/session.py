"""One run of a command: opens what was given, counts and keeps what could not be read, and says so at the end."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import ExitStack, contextmanager, suppress
from copy import copy
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

import click

from cli.options import Output, ReadOptions
from cli.output import visible
from cli.progress import progress
from offsets_log.disk.folder import OFFSETS_TOPIC, DirectoryName
from offsets_log.disk.reader import DiskLogs, open_logs
from offsets_log.disk.writer import atomic_output, output_errors
from offsets_log.errors import Damage, InputError, MissingLogError, OffsetsLogError
from offsets_log.log_format.batch import NO_TIMESTAMP, RecordBatch
from offsets_log.log_format.completeness import Missing
from offsets_log.log_format.partition_log import BYTES, POSITION, PartitionLog, iter_log
from offsets_log.log_format.primitives import Uuid
from offsets_log.log_format.record import Record
from offsets_log.messages.other_topic import is_of_another_topic
from offsets_log.pipeline import BatchEnd, Event, LogEvent, TailFound, Until, iter_events, replay
from offsets_log.replay.coordinator_state import CoordinatorState, Holdings, finish
from offsets_log.replay.profile import Profile
from offsets_log.rows.survey import Survey, describe_tail
from offsets_log.rows.tables import Row, damage_row, partition_name, problem_row, to_json

if TYPE_CHECKING:
    from cli.clean_rounds import Rounds
    from offsets_log.checking.partition_check import PartitionCheck
    from offsets_log.cleaner.settings import Settings
    from offsets_log.columnar.choose.selection import Selection
    from offsets_log.columnar.events.export import Write
    from offsets_log.columnar.folds.overviews import OverviewState
    from offsets_log.columnar.folds.replay import Replay, Replayed
    from offsets_log.columnar.folds.writers import WritersState
    from offsets_log.columnar.jit.compiled import Kernel
    from offsets_log.disk.folders import Place
    from offsets_log.replay.releases import Release

UNTOLD_IN_BULK = frozenset({POSITION, BYTES, "assignment_base64"})
"""Columns that a source need not tell to be read in bulk: rows of records have none of them, or null of themselves."""
EXIT_ERROR = 1
EXIT_DAMAGED = 3
DAMAGE_SHOWN = 5
MAX_DAMAGES_KEPT = 100_000
BULK_FROM_BYTES = 4 << 20
"""From here on compiled kernels are worth their start."""


Loaded = tuple[PartitionLog, CoordinatorState, Survey]
"""A log, what is held of it, and what was seen in it."""

Surveyed = tuple[PartitionLog, Survey, Holdings]
"""A log, what was seen in it, and how much of it a load makes."""


class Watcher(Protocol):
    """Whoever notes something of the events that pass by."""

    def watch(self, events: Iterable[LogEvent]) -> Iterator[LogEvent]:
        """The same events."""


class Session:
    """The opened logs and the account of a run. Use `open_session`.

    Attributes:
        advance: to be called with a number of bytes read, from any thread.
        partitions: how many were read.
        damaged_logs: by ``id``, those that hold something other than whole batches and records.
        absent: partitions that the data directory knows and that have no segment.
        lost: log that is missing and that nothing explains, `absent` ones too.
        is_wrong: whether a command found something wrong that is no damage, for the exit status.
        tells_brokers: whether a command says itself what brokers make of damage.
        is_here: whether this process may read the logs itself.
    """

    is_here = True

    def __init__(self, reading: ReadOptions, opened: DiskLogs, stack: ExitStack) -> None:
        self.reading = reading
        self.logs = opened.logs
        self.files = opened.files
        self.damaged_logs: set[int] = set()
        self.damages: list[Row] = []
        self.absent = opened.absent
        self.lost: list[Missing] = []
        self._opened = opened
        self.corrupt = 0
        self.unsupported = 0
        self.is_wrong = False
        self.tells_brokers = False
        self.partitions = len(opened.logs)
        self.shows_group = matcher(reading.group)
        self.shows_topic = matcher(reading.topic)
        self._quarantine = (
            stack.enter_context(atomic_output(reading.quarantine, inputs=self.files)) if reading.quarantine else None
        )
        total_bytes = sum(log.bytes_to_read for log in self.logs)
        shown = progress(total_bytes, say, is_wanted=reading.progress, is_quiet=reading.quiet)
        self.advance = stack.enter_context(shown)

    @property
    def topic_ids(self) -> dict[bytes, str]:
        """Topic id → name, from the folders of other topics beside the partitions."""
        return self._opened.topic_ids

    @property
    def notes(self) -> tuple[str, ...]:
        """What is told of the inputs before they are read, one sentence each."""
        return (*self._opened.notes, *(note for log in self.logs for note in log.notes))

    @property
    def missing_columns(self) -> frozenset[str]:
        """Columns that one log or another does not tell."""
        return frozenset().union(*(log.missing_columns for log in self.logs))

    def say(self, words: str) -> None:
        """A line on standard error, unless it was asked for quiet."""
        if not self.reading.quiet:
            say(words)

    def say_of_timeless(self) -> None:
        """Tell of logs that begin with records without a time, which no time bounds."""
        for log in self.logs:
            first = next((item for _, item in iter_log(log) if isinstance(item, RecordBatch)), None)
            if first is not None and first.max_timestamp_ms == NO_TIMESTAMP:
                self.say(
                    f"offsets partition {partition_name(log.offsets_partition)} has records without a time (before "
                    "Kafka 0.10), which are read whatever time is asked for: bound them by record offset"
                )

    def until(self, log: PartitionLog) -> Until:
        """Where the replay of this partition stops."""
        offsets = [
            offset
            for partition, offset in self.reading.until_offset
            if partition is None or partition == log.offsets_partition
        ]
        return Until(min(offsets, default=None), self.reading.until_time)

    def bounded(self, until_offset: tuple[tuple[int | None, int], ...] = (), until_time: int | None = None) -> Session:
        """The same logs with other bounds; what is told and counted here is not told and counted by this run."""
        other = copy(self)
        other.reading = replace(self.reading, until_offset=until_offset, until_time=until_time, quiet=True)
        other.damages, other.lost, other._quarantine = [], [], None
        other.advance = lambda size_bytes: None
        return other

    def events(
        self, log: PartitionLog, start: int = 0, wants: Callable[[Record], bool] | None = None
    ) -> Iterator[LogEvent]:
        """The events of one partition within the bounds, from a record offset on; tails are told on the way.

        ``wants`` as `iter_events`.
        """
        events = iter_events(log, start=start, until=self.until(log), release=self.reading.kafka, wants=wants)
        return self._told(log, events, self.advance)

    def selected(
        self,
        log: PartitionLog,
        selection: Selection,
        wants: Callable[[Record], bool] | None = None,
        start: int | None = None,
    ) -> Iterator[LogEvent]:
        """The same of a question about few records: of bulk, batches that hold none of them are passed by.

        Args:
            start: given where this log alone is asked, and no other by the same selection.
        """
        if not self.is_bulk:
            return self.events(log, start or 0, wants)
        from offsets_log.columnar.choose.choice import choose
        from offsets_log.columnar.choose.selected import selected_events

        self.compile_first(choose)
        until, release = self.until(log), self.reading.kafka
        events = selected_events(
            log, selection, start=start or 0, until=until, release=release, wants=wants, advance=self.advance
        )
        return self._told(log, events, lambda size_bytes: None)

    def _told(
        self, log: PartitionLog, events: Iterable[LogEvent], advance: Callable[[int], None]
    ) -> Iterator[LogEvent]:
        for event in events:
            match event:
                case BatchEnd(batch=batch):
                    advance(batch.size_bytes)
                case Damage():
                    self.damaged_logs.add(id(log))
                case TailFound():
                    self._tell_tail(log, event)
                case Missing():
                    self.tell(event)
            yield event

    def drain(self, events: Iterable[LogEvent]) -> None:
        """Read events to their end for what others note on the way; damage is told."""
        for event in events:
            damage = event.damage if isinstance(event, Event) else event
            if isinstance(damage, Damage):
                self.on_damage(damage)

    def _tell_tail(self, log: PartitionLog, seen: TailFound) -> None:
        """A tail; zeros that an orderly stop would have cut off are wrong (``D-8``)."""
        self.damaged_logs.add(id(log))
        self.tell(seen)
        if seen.tail.kind == "zeros" and log.checkpoints.stopped_cleanly:
            self.is_wrong = True
            self.say(f"{seen.segment.file}: after a clean stop, as here, no broker starts over such zeros")

    def tell(self, seen: TailFound | Missing) -> None:
        """Say what was seen that is no damage; under --strict, raise an error for log that is lost."""
        if isinstance(seen, TailFound):
            self.say(f"{seen.segment.file}: {describe_tail(seen)}")
        elif seen.is_lost:
            if self.reading.strict:
                raise MissingLogError(seen.in_words())
            self.lost.append(seen)
            self.say(f"missing: {seen.in_words()}")

    def load(self, log: PartitionLog, profile: Profile, found: Watcher) -> CoordinatorState:
        """A coordinator's memory after loading the partition up to the bounds, as far as filters show it.

        Args:
            found: notes what passes by.
        """
        return self._load(log, profile, found).showing(self.shows_group, self.shows_topic)

    def _load(self, log: PartitionLog, profile: Profile, found: Watcher) -> CoordinatorState:
        events = found.watch(self.events(log))
        return replace(finish(replay(events, profile, on_damage=self.on_damage)), missing_columns=log.missing_columns)

    @property
    def is_bulk(self) -> bool:
        """Whether there is so much to read that it is done by `offsets_log.columnar`."""
        is_whole = not any(log.missing_columns - UNTOLD_IN_BULK for log in self.logs)
        return is_whole and sum(log.bytes_to_read for log in self.logs) >= BULK_FROM_BYTES

    def compile_first(self, largest: Kernel[Any]) -> None:
        """Tell of the wait where a kernel is not kept from another run, and compile the smaller ones beside it."""
        from offsets_log.columnar.jit.compiled import compile_beside, is_kept

        if not is_kept(largest):
            self.say("compiling for this machine, once: about ten seconds; for other commands in the background")
            compile_beside(but=largest)

    def replay_in_bulk(
        self,
        profile: Profile,
        found: Mapping[int, Survey] | None = None,
        *,
        replay: Callable[..., Replay] | None = None,
        largest: Kernel[Any] | None = None,
    ) -> Iterator[Replayed]:
        """All partitions replayed up to the bounds, in their order.

        Args:
            found: by ``id`` of the log, what was seen in it.
            replay: makes another kind of replays.
            largest: the largest kernel that these need.
        """
        from offsets_log.columnar.folds.offsets import scan
        from offsets_log.columnar.folds.replay import Replay, replay_logs

        self.compile_first(largest or scan)
        return replay_logs(
            self.logs,
            profile,
            note=lambda log: self.noting(log, None if found is None else found[id(log)]),
            until=self.until,
            release=self.reading.kafka,
            threads=self.reading.threads or processors(),
            advance=self.advance,
            replay=replay or Replay,
        )

    def count_in_bulk(self, log: PartitionLog, per: str, *, is_filtered: bool = False, **how: Any) -> WritersState:
        """The records of one partition up to the bounds, counted for who wrote them: see `writers.count_log`.

        Args:
            how: more for it.
        """
        from offsets_log.columnar.folds.tally import scan
        from offsets_log.columnar.folds.writers import count_log

        self.compile_first(scan)
        return count_log(
            log,
            per,
            is_filtered=is_filtered,
            note=self.noting(log),
            until=self.until(log),
            release=self.reading.kafka,
            threads=self.reading.threads or processors(),
            advance=self.advance,
            **how,
        )

    def check_in_bulk(self, releases: Sequence[Release], shutdown: str | None) -> Iterator[PartitionCheck]:
        """All partitions up to the bounds loaded by the rules of releases, in their order."""
        from offsets_log.checking.bulk import check_logs
        from offsets_log.checking.bulk_answers import partition_check
        from offsets_log.columnar.folds.offsets import scan

        self.compile_first(scan)
        checked = check_logs(
            self.logs,
            releases,
            note=self.noting,
            until=self.until,
            release=self.reading.kafka,
            threads=self.reading.threads or processors(),
            advance=self.advance,
        )
        for replayed, state in checked:
            until = self.until(replayed.log)
            yield partition_check(replayed, state, releases, until=until, release=self.reading.kafka, shutdown=shutdown)

    def export_in_bulk(self, write: Write, *, is_filtered: bool = False, **how: Any) -> int:
        """All records up to the bounds as Arrow tables or otherwise, in parts; how many there are.

        Args:
            write: takes what is made of a part.
            is_filtered: only records of the groups and topics that are shown; markers belong to none.
            how: more for `Export`.
        """
        from offsets_log.columnar.events.export import Export
        from offsets_log.columnar.events.kernels import fill
        from offsets_log.columnar.events.rows import ALL, Shown

        self.compile_first(fill)
        group = self.shows_group if self.reading.group else None
        topic = self.shows_topic if self.reading.topic else None
        export = Export(
            write,
            note=self.noting,
            shown=Shown(group, topic) if is_filtered else ALL,
            until=self.until,
            release=self.reading.kafka,
            threads=self.reading.threads or processors(),
            advance=self.advance,
            **how,
        )
        return export.run(self.logs)

    def rounds(self, settings: Settings) -> Rounds:
        """Who opens and cleans partitions."""
        from cli.clean_rounds import Rounds

        return Rounds(settings, self.advance)

    def place(self, to: str, stack: ExitStack) -> Place:
        """A new directory for partition folders, outside of what is read, which appears whole or not at all.

        Args:
            stack: at its end it appears.
        """
        from offsets_log.disk.folders import DiskPlace, refuse_inside_inputs
        from offsets_log.disk.writer import atomic_directory, left_beside

        refuse_inside_inputs(to, self.reading.paths, self.files)
        for left in left_beside(to):
            self.say(f"{left} is of a run that was killed, or that is still at work; it is left as it is")
        return DiskPlace(str(stack.enter_context(atomic_directory(to))))

    def noting(self, log: PartitionLog, found: Survey | None = None) -> Callable[[Damage | TailFound | Missing], None]:
        """What to do with what was seen in a log in bulk."""

        def note(seen: Damage | TailFound | Missing) -> None:
            if isinstance(seen, Damage):
                if not seen.is_of_content:
                    self.damaged_logs.add(id(log))
                self.on_damage(seen)
                return
            if isinstance(seen, TailFound):
                self._tell_tail(log, seen)
            else:
                self.tell(seen)
            if found is not None:
                found.saw(seen)

        return note

    def load_all(self, profile: Profile, *, whole_groups: bool = True) -> Iterator[Loaded]:
        """Every partition as `load` has it, and what was seen in it; of bulk only what `rebuild` tells.

        Args:
            whole_groups: with the members of classic groups.
        """
        for log, state, found in self.load_whole(profile, whole_groups=whole_groups):
            yield log, state.showing(self.shows_group, self.shows_topic), found

    def load_whole(self, profile: Profile, *, whole_groups: bool) -> Iterator[Loaded]:
        """The same with all groups and topics, whichever are asked for."""
        if not self.is_bulk:
            for log in self.logs:
                found = Survey.of(log)
                yield log, self._load(log, profile, found), found
            return
        seen = {id(log): Survey.of(log) for log in self.logs}
        for replayed in self.replay_in_bulk(profile, seen):
            yield finished(replayed, seen[id(replayed.log)], whole_groups=whole_groups)

    def overview_all(self, profile: Profile) -> Iterator[tuple[PartitionLog, CoordinatorState, Survey, OverviewState]]:
        """In bulk, every partition as `load_all` has it, and what else was noted of its records on the way."""
        from offsets_log.columnar.folds.overview import scan
        from offsets_log.columnar.folds.overviews import OverviewReplay, OverviewState

        kind = partial(
            OverviewReplay,
            shows_group=self.shows_group if self.reading.group else None,
            shows_topic=self.shows_topic if self.reading.topic else None,
        )
        seen = {id(log): Survey.of(log) for log in self.logs}
        for replayed in self.replay_in_bulk(profile, seen, replay=kind, largest=scan):
            assert isinstance(replayed.state, OverviewState)
            log, state, found = finished(replayed, seen[id(replayed.log)], whole_groups=True)
            yield log, state.showing(self.shows_group, self.shows_topic), found, replayed.state

    def survey_all(self, profile: Profile) -> Iterator[Surveyed]:
        """What every partition holds, and how much of it a load makes."""
        if not self.is_bulk:
            for log in self.logs:
                found = Survey.of(log)
                yield log, found, self.load(log, profile, found).holdings()
            return
        from offsets_log.columnar.folds.surveys import SurveyingReplay

        seen = {id(log): Survey.of(log) for log in self.logs}
        for replayed in self.replay_in_bulk(profile, seen, replay=SurveyingReplay):
            from offsets_log.columnar.materialize.values import holdings
            from offsets_log.columnar.scan.layout import Scanner

            with Scanner() as scanner:
                held = holdings(
                    replayed.layout,
                    replayed.state,
                    scanner,
                    shows_group=self.shows_group,
                    shows_topic=self.shows_topic if self.reading.topic else None,
                )
            found = seen[id(replayed.log)]
            replayed.state.tell(found)
            yield replayed.log, found, held

    def locate(self, damage: Damage) -> None:
        """Set the position of damage in a dump to its line there."""
        self._opened.locate(damage)

    def on_damage(self, damage: Damage) -> None:
        """Count, keep and tell a piece that could not be read; under --strict, raise its error."""
        self.locate(damage)
        if self.reading.strict:
            raise damage.error
        if damage.is_unsupported:
            self.unsupported += 1
        else:
            self.corrupt += 1
        self.keep(damage)
        if len(self.damages) < MAX_DAMAGES_KEPT:
            self.damages.append(problem_row(damage))
        count = self.corrupt + self.unsupported
        if self.reading.verbose or count <= DAMAGE_SHOWN:
            kind = "unsupported" if damage.is_unsupported else "corrupt"
            self.say(f"{kind}: {damage.error}")
        elif count == DAMAGE_SHOWN + 1:
            self.say("more pieces could not be read; -v names them all")

    def keep(self, damage: Damage) -> None:
        """Write a piece where what could not be read is kept, if that was asked for."""
        if self._quarantine is not None:
            with output_errors(str(self.reading.quarantine)):
                self._quarantine.write(to_json(damage_row(damage)).encode() + b"\n")

    def finish(self, words: str) -> None:
        """Say the result, and what it lacks."""
        self.say(words)
        if self.lost:
            count = sum(missing.count for missing in self.lost)
            self.say(f"not all of the log is there: {count} offsets are missing, and nothing explains it")
        if self.corrupt or self.unsupported:
            self.say(
                f"not everything could be read: {self.corrupt} corrupt, {self.unsupported} unsupported"
                + ("" if self.reading.quarantine else "; --quarantine FILE keeps the pieces")
            )
        if self.damaged_logs and not self.tells_brokers:
            self.say("a broker that starts over these files may serve less, or not start: see offsets-log check")

    @property
    def exit_status(self) -> int:
        """0, or 3 if something was damaged, unsupported, lost or wrong."""
        return EXIT_DAMAGED if self.corrupt or self.unsupported or self.lost or self.is_wrong else 0


def finished(replayed: Replayed, found: Survey, *, whole_groups: bool) -> Loaded:
    """What a load makes of a replay in bulk, with all groups and topics.

    Args:
        whole_groups: with the members of classic groups.
    """
    from offsets_log.columnar.materialize.values import finish as finish_bulk
    from offsets_log.columnar.scan.layout import Scanner

    with Scanner() as scanner:
        state = finish_bulk(replayed.layout, replayed.state, scanner, whole_groups=whole_groups)
    replayed.state.tell(found)
    return replayed.log, replace(state, missing_columns=replayed.log.missing_columns), found


def processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def open_session(
    reading: ReadOptions, output: Output | None = None, *, needs: Set[str] = frozenset()
) -> Iterator[Session]:
    """Open what was given. At the end the process exits with the run's status; errors end it with one line.

    Args:
        needs: columns without which the answer would be guessed; a dump that does not tell them is refused.
    """
    if reading.quarantine is not None and output is not None and output.to == reading.quarantine:
        raise click.UsageError("--to and --quarantine name the same file")
    _tell_of_lost_pages()
    try:
        with ExitStack() as stack:
            kind, opened = _opened(reading, stack)
            session = kind(reading, stack.enter_context(opened), stack)
            if missing := sorted((needs | _needs_of(reading)) & session.missing_columns):
                raise InputError(f"this source does not tell {', '.join(missing)}, which would have to be guessed here")
            _check_topics(session)
            _check_bounds(session)
            for note in session.notes:
                session.say(note)
            for damage in opened.damages:
                session.on_damage(damage)
            for absent in opened.absent:
                session.tell(absent)
            yield session
    except OffsetsLogError as error:
        fail(error)
    sys.exit(session.exit_status)


def _opened(reading: ReadOptions, stack: ExitStack) -> tuple[type[Session], DiskLogs]:
    """What is read, and the kind of run that the engine makes of it."""
    if reading.engine == "spark":
        from cli.spark import SparkSession, check_usage, open_found

        check_usage(reading)
        return SparkSession, open_found(reading, stack)
    if reading.master is not None:
        raise click.UsageError("--master is Spark's: say --engine spark too")
    return Session, open_logs(
        reading.paths,
        as_partition=reading.as_partition,
        partitions=reading.offsets_partition,
        input_format=reading.input_format,
    )


_HANDLERS: list[Any] = []


def _tell_of_lost_pages() -> None:
    """A mapped file that is cut off while it is read ends the process; with words, and not as a crash."""
    import ctypes

    def tell(number: int) -> None:
        os.write(2, b"offsets-log: error: a file was cut off while it was read: copy it, and read the copy\n")
        os._exit(EXIT_ERROR)

    if not _HANDLERS and hasattr(signal, "SIGBUS"):
        _HANDLERS.append(ctypes.CFUNCTYPE(None, ctypes.c_int)(tell))
        ctypes.CDLL(None).signal(signal.SIGBUS, _HANDLERS[0])


def _needs_of(reading: ReadOptions) -> set[str]:
    """Columns without which bounds would bound nothing."""
    bounds = {"timestamp_ms": reading.until_time is not None, "record_offset": bool(reading.until_offset)}
    return {name for name, is_given in bounds.items() if is_given}


def _check_topics(session: Session) -> None:
    """Refuse a log that no directory's name says to be of `__consumer_offsets`, and that is not.

    Raises:
        InputError: names the first one.
    """
    told = session.reading.as_partition  # by the user, who may have meant another file
    for log in session.logs:
        if log.offsets_partition not in (None, told) or log.missing_columns:
            continue
        file = log.segments[0].file
        topic = DirectoryName.parse(re.split("[/!]", f"/{file}")[-2]).topic
        is_empty = not any(len(segment.buffer) for segment in log.segments)
        if is_of_another_topic(log) or (is_empty and topic.startswith("__")):
            raise InputError(
                (f"this is another topic, {topic}" if topic else f"this does not look like {OFFSETS_TOPIC}")
                + ": no group coordinator wrote its records. Give a broker's data directory (log.dirs), or of its "
                f"directories those named {OFFSETS_TOPIC}-N",
                file=file,
            )


def _check_bounds(session: Session) -> None:
    """Tell of bounds that bound nothing: for partitions that are not there, of records without a time."""
    found = {log.offsets_partition for log in session.logs}
    for partition, offset in session.reading.until_offset:
        if partition is not None and partition not in found:
            session.say(f"--until-offset {partition}:{offset} bounds nothing: no such offsets partition was found")
    if session.reading.until_time is not None:
        session.say_of_timeless()


def read_topic_ids(file: str | None) -> dict[bytes, str]:
    """The file of --topic-ids: a JSON object topic id → name.

    Raises:
        InputError: if it is anything else.
    """
    if file is None:
        return {}
    try:
        names = json.loads(Path(file).read_bytes())
        return {Uuid.from_text(topic_id): str(name) for topic_id, name in names.items()}
    except (OSError, ValueError, AttributeError) as error:
        raise InputError(f"it is not a JSON object topic id -> name: {error}", file=file) from None


def say(words: str) -> None:
    """A line on standard error; where that is closed or full the answer matters more than the words."""
    with suppress(OSError, AttributeError):
        click.echo(visible(words), err=True)


def fail(error: OffsetsLogError) -> NoReturn:
    """One line, exit status 1."""
    say(f"offsets-log: error: {error}")
    sys.exit(EXIT_ERROR)


def matcher(globs: tuple[str, ...]) -> Callable[[str], bool]:
    """Whether a name fits one of the globs, or there are none."""
    if not globs:
        return lambda name: True
    return lambda name: any(fnmatchcase(name, glob) for glob in globs)
