"""``--engine spark``: an engine whose logs a cluster reads and joins, with the same answers as on this machine.

It needs the extra ``spark`` and Java. Commands use the states, counts and writers as they use those of this machine;
damage, missing log and tails come with the rows, and are reported in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import count, groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import click

from cli.account import Account
from cli.clean_rounds import Rounds
from cli.engine import Engine, Loaded, Surveyed, finished
from cli.inputs import Inputs
from cli.options import ReadOptions
from offsets_log.checking.bulk_answers import partition_check
from offsets_log.columnar.events.chunk import Chunk
from offsets_log.columnar.folds.overviews import OverviewReplay, OverviewState
from offsets_log.columnar.folds.replay import Replayed
from offsets_log.columnar.folds.writers import PER
from offsets_log.columnar.materialize.arrow import SORTED_BY
from offsets_log.columnar.scan.reading import ScanOrder
from offsets_log.columnar.shuffle.partials import NAMES_BASE64
from offsets_log.disk.folders import DiskPlace
from offsets_log.events import LogEnd, Until, Wants
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.rows.shown import ALL, Shown
from offsets_log.rows.survey import Survey
from offsets_log.rows.tables import COMPACT_COLUMNS, Row, partition_name
from offsets_log.words import to_install

if TYPE_CHECKING:
    import pyarrow as pa

    from cli.decide import Open
    from offsets_log.checking.partition_check import PartitionCheck
    from offsets_log.cleaner.settings import Settings
    from offsets_log.columnar.choose.selection import Selection
    from offsets_log.columnar.events.export import Destination
    from offsets_log.columnar.folds.writers import WritersState
    from offsets_log.columnar.scan.reading import Seen
    from offsets_log.columnar.scan.time_bound import Stop
    from offsets_log.disk.folders import Place
    from offsets_log.disk.translating import Made as Answered
    from offsets_log.disk.translating import Question
    from offsets_log.events import LogEvent
    from offsets_log.replay.coordinator_state import CoordinatorState
    from offsets_log.replay.profile import Profile
    from offsets_log.replay.releases import Release
    from spark_jobs.joined import JoinedLog
    from spark_jobs.planning import PieceFiles
    from spark_jobs.tasks import Work

try:
    from cli.spark_rounds import RoundsOnCluster
    from spark_jobs.beside import markers_of
    from spark_jobs.clean_cluster import SparkCluster
    from spark_jobs.cleaning import Rounds as CleaningRounds
    from spark_jobs.joined import joined_logs
    from spark_jobs.options import SourceOptions as SparkReading
    from spark_jobs.options import matcher
    from spark_jobs.places import SharedPlace, new_in_store
    from spark_jobs.run import joined_table, open_spark
    from spark_jobs.source import register
    from spark_jobs.stores import is_parquet, path_here
    from spark_jobs.tasks import (
        Made,
        check,
        choose,
        chosen_events,
        export,
        fold,
        in_order,
        joined,
        joined_check,
        joined_stop,
        plan,
        time_bound,
    )
except ImportError as error:
    raise click.UsageError(f"--engine spark needs an extra ({error}): {to_install('spark')}") from None

WITH_PARQUET = ("compact",)
"""Commands for which Spark also reads Parquet of `decode`: records whose batches are not known."""


def check_usage(reading: ReadOptions) -> None:
    """Raise UsageError for what only one machine can read."""
    context = click.get_current_context()
    if context.params.get("as_broker"):
        raise click.UsageError("--as-broker reads files beside the segments, which --engine spark does not")
    if reading.input_format not in (None, "segments"):
        raise click.UsageError(f"--engine spark reads segments, not --input-format {reading.input_format}")
    if is_parquet(reading.paths) and context.command.name not in WITH_PARQUET:
        raise click.UsageError(f"--engine spark reads Parquet for {', '.join(WITH_PARQUET)} only: give the segments")


class SparkAccount(Account):
    """The account of logs that a cluster reads."""

    def finish(self, words: str, found: int | None = None, names: Iterable[str] = ()) -> None:
        """Finish as `Account.finish`; a broker's view of damage needs files, and those of a store are not here."""
        for log in self.inputs.logs:
            if id(log) in self.damaged_logs and log.size_bytes and not log.bytes_to_read:
                self.damaged_logs.remove(id(log))
                name = partition_name(log.offsets_partition)
                self.say(f"offsets partition {name}: what a broker makes of damaged files in a store is not told")
        super().finish(words, found, names)


class SparkEngine(Engine):
    """An engine for which a cluster reads the logs."""

    is_here = False

    def __init__(self, inputs: Inputs, account: Account, stack: ExitStack) -> None:
        super().__init__(inputs, account)
        self._stack = stack
        self._spark: Any = None
        self._writers: dict[tuple[str, bool], list[JoinedLog]] = {}
        self._chosen: dict[Selection | None, Made] = {}
        self._here = {
            str(Path(file).absolute()): file for log in inputs.logs for file in (s.file for s in log.segments)
        }

    @property
    def is_bulk(self) -> bool:
        """Always true."""
        return True

    def of(self, inputs: Inputs, account: Account) -> Self:
        """Return an engine as `Engine.of` does; Spark's session is the same."""
        self._begun()
        other = super().of(inputs, account)
        other._writers, other._chosen = {}, {}
        return other

    def _begun(self) -> Any:
        """Return Spark's session, which may not know the data source."""
        if self._spark is None:
            session = open_spark(self.inputs.reading.master, default="local[*]", registers=False)
            self._spark = self._stack.enter_context(session)
        return self._spark

    def joined(self, **how: Any) -> pa.Table:
        """Return the joined rows of all logs.

        Args:
            how: more options of Spark's reading.
        """
        decide = self._decided if self.decides is not None and "per" not in how else None
        spark = self._begun()
        register(spark)
        return joined_table(spark, self._asked(**how), decide)

    def _decided(self, table: pa.Table) -> list[Row]:
        """Return markers of the open transactions whose outcome is certain, as rows of partials."""
        assert self.decides is not None
        return markers_of(table, self.decides, self.inputs.logs)

    def _asked(self, **how: Any) -> SparkReading:
        reading = self.inputs.reading
        asked = {
            "paths": reading.paths,
            "level": "partials",
            "offsets_partition": reading.offsets_partition,
            "as_partition": reading.as_partition,
            "until_offset": reading.until_offset,
            "until_time": reading.until_time,
            "kafka": reading.kafka,
        }
        return SparkReading(**asked | how)

    def _tell_of(self, log: PartitionLog, joined: JoinedLog, found: Survey | None) -> None:
        """Report what was seen in a log, in its order."""
        note: Callable[[Seen], None] = self.account.noting(log, found)
        for seen in joined.seen(lambda file: self._here.get(file, file)):
            if seen not in self.inputs.absent:
                note(seen)

    def load_whole(self, profile: Profile, *, whole_groups: bool) -> Iterator[Loaded]:
        """Implement `Engine.load_whole`."""
        table = self.joined(profile=profile.name, members=whole_groups)
        for log, joined in zip(self.inputs.logs, joined_logs(table, len(self.inputs.logs)), strict=True):
            found = Survey.of(log)
            self._tell_of(log, joined, found)
            joined.tell(found)
            yield log, joined.state(profile), found

    def survey_all(self, profile: Profile) -> Iterator[Surveyed]:
        """Implement `Engine.survey_all`."""
        reading = self.inputs.reading
        table = self.joined(profile=profile.name, survey=True, group=reading.group, topic=reading.topic)
        for log, joined in zip(self.inputs.logs, joined_logs(table, len(self.inputs.logs)), strict=True):
            found = Survey.of(log)
            self._tell_of(log, joined, found)
            joined.tell(found)
            yield log, found, joined.holdings(shows_all=not reading.group)

    def load_active(self, profile: Profile) -> Iterator[tuple[PartitionLog, CoordinatorState, Mapping[str, int]]]:
        """Implement `Engine.load_active`: who wrote is a shuffle of its own, whose notes are those of the other."""
        reading = self.inputs.reading
        quiet = self.inputs.bounded(reading.until_offset, reading.until_time)
        counting = self.of(quiet, self.account.aside(quiet))
        for log, state, _ in self.load_all(profile):
            yield log, state, counting.count_in_bulk(log, "group").last_activity()

    def count_in_bulk(self, log: PartitionLog, per: str, *, shown: Shown = ALL, **how: Any) -> WritersState:
        """Implement `Engine.count_in_bulk`; the first call counts all logs."""
        asked, reading = (per, shown.is_all), self.inputs.reading
        if asked not in self._writers:
            names = {} if shown.is_all else {"group": reading.group, "topic": reading.topic}
            self._writers[asked] = joined_logs(self.joined(per=PER[per], **names), len(self.inputs.logs))
        joined = self._writers[asked][self.inputs.logs.index(log)]
        self._tell_of(log, joined, None)
        return joined.writers()

    def run_each(self, asked: Sequence[Question[Any]]) -> Iterable[Answered[Any]]:
        """Implement `Engine.run_each`: each question has a task of its own."""
        return SparkCluster(self._begun()).run_each(asked)

    # ----------------------------------------------------------------------------------- rounds of the cleaner

    def find_stops(self, inputs: Inputs, time_ms: int) -> Iterator[tuple[PartitionLog, Stop]]:
        """Implement `cli.inputs.find_stops`: tasks read the headers."""
        bounds = {"until_offset": inputs.reading.until_offset, "until_time": None}
        made = self._made(time_bound(time_ms), self._pieces(**bounds), **bounds)
        for number, log in enumerate(inputs.logs):
            order = ScanOrder(log, Until(inputs.until(log).record_offset), None)
            if (stop := joined_stop(order, made.of_log(number))) is not None:
                yield log, stop

    def rounds(self, settings: Settings) -> Rounds:
        """Implement `Engine.rounds`."""
        url = next((path for path in self.inputs.reading.paths if path_here(path) is None), None)
        return RoundsOnCluster(
            settings, CleaningRounds(SparkCluster(self._begun()), settings, url), in_bulk=self.is_large
        )

    def place(self, to: str, stack: ExitStack) -> Place:
        """Implement `Engine.place`; in a store files appear one by one, README.txt last."""
        here = path_here(to)
        if here is None:
            return stack.enter_context(new_in_store(to, self.inputs.reading.paths))
        made = super().place(here, stack)
        assert isinstance(made, DiskPlace)
        return SharedPlace(made.path)

    # ------------------------------------------------------------------------------- records, in log order

    def _order(self, log: PartitionLog) -> ScanOrder:
        return ScanOrder(log, self.inputs.until(log), self.inputs.reading.kafka)

    def _made(self, work: Work, pieces: Sequence[PieceFiles] | None = None, **how: Any) -> Made:
        """Return what tasks make of all pieces, or of some; ``how`` as of `joined`."""
        spark = self._begun()
        made = Made(spark, self._asked(**how), self._pieces() if pieces is None else pieces, work)
        self._stack.callback(made.close)
        return made

    def _pieces(self, **how: Any) -> list[PieceFiles]:
        names = {path: name for path, name in self._here.items() if path != name}
        return plan(self._begun(), self._asked(**how), names)

    def events(self, log: PartitionLog, start: int = 0, wants: Wants | None = None) -> Iterator[LogEvent]:
        """Implement `Engine.events`; all batches are brought here."""
        return self._events(log, None, wants)

    def selected(
        self,
        log: PartitionLog,
        selection: Selection,
        wants: Wants | None = None,
        start: int | None = None,
    ) -> Iterator[LogEvent]:
        """Implement `Engine.selected`; the first call finds the batches of all logs, which are brought here."""
        return self._events(log, selection, wants, start)

    def _events(
        self,
        log: PartitionLog,
        selection: Selection | None,
        wants: Wants | None,
        start: int | None = None,
    ) -> Iterator[LogEvent]:
        number, order = self.inputs.logs.index(log), self._order(log)
        if start is not None:
            pieces = [piece for piece in self._pieces() if piece.log == number and piece.reaches(start)]
            made = self._made(choose(selection), pieces)
        elif selection in self._chosen:
            made = self._chosen[selection]
        else:
            made = self._chosen[selection] = self._made(choose(selection))
        return self.account.watch(log, chosen_events(order, made.of_log(number), wants), lambda size_bytes: None)

    def export_in_bulk(
        self, to: Destination, *, chunk: Callable[[tuple[int, int] | None], Chunk], is_filtered: bool = False
    ) -> int:
        """Implement `Engine.export_in_bulk`; a part is a piece."""
        made = self._made(export(chunk, self.inputs.shown if is_filtered else ALL))
        rows, numbers = 0, count()
        for log, items in self._by_log(made):
            for _, of_piece in groupby(items, key=lambda item: item[0].number):
                number = next(numbers)
                rows += to.write(log, number, (item for _, item in of_piece))
                to.finish(number)
        return rows

    def overview_all(self, profile: Profile) -> Iterator[tuple[PartitionLog, CoordinatorState, Survey, OverviewState]]:
        """Implement `Engine.overview_all`; places in logs that the states refer to are read here."""
        reading = self.inputs.reading
        replay = partial(
            OverviewReplay,
            profile=profile,
            shows_group=matcher(reading.group),
            shows_topic=matcher(reading.topic),
            release=reading.kafka,
        )
        pieces, orders = self._opened_pieces()
        made = self._made(fold(replay, [order.layout.begins for order in orders]), pieces)
        for number, (log, order) in enumerate(zip(self.inputs.logs, orders, strict=True)):
            found = Survey.of(log)
            whole = joined(order, made.of_log(number), self.account.noting(log, found))
            whole = whole or replay(log, until=order.until).new_state()
            assert isinstance(whole, OverviewState)
            log, state, found = finished(Replayed(log, order.layout, whole), found, whole_groups=True)
            yield log, state.showing(self.inputs.shows_group, self.inputs.shows_topic), found, whole

    def _by_log(self, made: Made) -> Iterator[tuple[PartitionLog, Iterator[tuple[PieceFiles, Any]]]]:
        """Yield what was made of each log, without its end; report what was seen."""
        for number, log in enumerate(self.inputs.logs):
            found = in_order(self._order(log), made.of_log(number), self.account.noting(log))
            yield log, (item for item in found if not isinstance(item[1], LogEnd))

    def check_in_bulk(self, releases: Sequence[Release], shutdown: str | None) -> Iterator[PartitionCheck]:
        """Implement `Engine.check_in_bulk`; what is looked up in a log at the end is read here."""
        pieces, orders = self._opened_pieces()
        made = self._made(check(releases, [order.layout.begins for order in orders]), pieces)
        for number, (log, order) in enumerate(zip(self.inputs.logs, orders, strict=True)):
            state = joined_check(releases, order, made.of_log(number), self.account.noting(log))
            replayed = Replayed(log, order.layout, state)
            until, release = self.inputs.until(log), self.inputs.reading.kafka
            yield partition_check(replayed, state, releases, until=until, release=release, shutdown=shutdown)

    def _opened_pieces(self) -> tuple[list[PieceFiles], list[ScanOrder]]:
        """Return all pieces, and the logs with their bytes."""
        pieces = self._pieces()
        self.inputs.logs = [self._with_bytes(log, number, pieces) for number, log in enumerate(self.inputs.logs)]
        return pieces, [self._order(log) for log in self.inputs.logs]

    def _with_bytes(self, log: PartitionLog, number: int, pieces: Sequence[PieceFiles]) -> PartitionLog:
        """Return a log with its bytes; those in a store are brought here."""
        if log.bytes_to_read or not log.size_bytes:
            return log
        files = {file.path: file for piece in pieces if piece.log == number for file in piece.files}
        opened = (Segment(path, file.base_offset, file.open(self._stack)) for path, file in files.items())
        return replace(log, segments=tuple(opened))

    # ------------------------------------------------------------------------------------------ as a table

    def compact_table(self, profile: str, opened: Open, *, orphans: bool) -> tuple[pa.Table, int]:
        """Return the answer of `compact` as one sorted table with the column ``unstable``, and `count_alone`.

        Args:
            opened: gets the offsets of open transactions.
        """
        reading = self.inputs.reading
        rows = self.joined(profile=profile, members=False, group=reading.group, topic=reading.topic)
        found = joined_logs(rows, len(self.inputs.logs) or None)
        self.inputs.logs = self.inputs.logs or [PartitionLog(joined.offsets_partition, ()) for joined in found]
        self.inputs.partitions = len(found)
        for log, joined in zip(self.inputs.logs, found, strict=True):
            self._tell_of(log, joined, None)
            self.account.note_load(log, next(iter(joined.problems), None))
            opened.append((log, joined.pending()))
        kinds = ["served"] + ["orphan"] * orphans
        table = rows.filter([kind in kinds for kind in rows["kind"].to_pylist()]).sort_by(SORTED_BY)
        raw = [name for name in NAMES_BASE64 if table[name].null_count < len(table)]
        from cli.parquet import count_alone_in

        alone = count_alone_in(table, [value for joined in found for value in joined.pending()])
        return table.select([column.name for column in COMPACT_COLUMNS] + raw + ["unstable"]), alone
