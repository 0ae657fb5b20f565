"""``--engine spark``: a run whose logs a cluster reads, and hands over joined, as the engine of this machine does.

Needs the extra ``spark`` and Java. What commands make of states, counts and writers is theirs; what could not be read
or is missing, and tails, come with the rows and are told the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from cli.options import BY_SPARK, Reading
from cli.session import Loaded, Session, Surveyed
from offsets_log.columnar.folds.writers import HELD, PER, PER_OF_SOME
from offsets_log.columnar.materialize.arrow import SORTED_BY
from offsets_log.disk.dumps import Dumps
from offsets_log.disk.finder import Finder
from offsets_log.disk.reader import DiskLogs, open_logs
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.rows.survey import Survey
from offsets_log.rows.tables import COMPACT_COLUMNS, partition_name

if TYPE_CHECKING:
    import pyarrow as pa

    from offsets_log.columnar.choose.selection import Selection
    from offsets_log.columnar.folds.writers import WritersState
    from offsets_log.columnar.scan.reading import Seen
    from offsets_log.log_format.record import Record
    from offsets_log.pipeline import LogEvent
    from offsets_log.replay.profile import Profile
    from spark_jobs.joined import JoinedLog

try:
    from spark_jobs.joined import joined_logs
    from spark_jobs.options import Reading as SparkReading
    from spark_jobs.records import events_of
    from spark_jobs.run import joined_table, open_spark, rows_of_groups
    from spark_jobs.stores import find_logs, holds_parquet, path_here
except ImportError as error:
    raise click.UsageError(f"--engine spark needs the extra: pip install 'offsets-log[spark]' ({error})") from None

RAW_NAMES = ("group_base64", "topic_base64", "metadata_base64")
WITH_PARQUET = ("compact",)
"""Commands that read Parquet of `decode` by Spark, too: records of which the batches are not known."""


def check_usage(reading: Reading) -> None:
    """Raises UsageError for what is answered on one machine only."""
    context = click.get_current_context()
    if context.command.name not in BY_SPARK:
        raise click.UsageError(
            f"--engine spark answers {', '.join(BY_SPARK)}; {context.command.name} is answered on this machine only"
        )
    if context.params.get("as_broker"):
        raise click.UsageError("--as-broker reads files beside the segments, which --engine spark does not")
    if reading.input_format not in (None, "segments"):
        raise click.UsageError(f"--engine spark reads segments, not --input-format {reading.input_format}")
    if _is_parquet(reading) and context.command.name not in WITH_PARQUET:
        raise click.UsageError(f"--engine spark reads Parquet for {', '.join(WITH_PARQUET)} only: give the segments")


def _is_parquet(reading: Reading) -> bool:
    return all(holds_parquet(path, {}) for path in reading.paths)


def open_found(reading: Reading, stack: ExitStack) -> DiskLogs:
    """The logs that Spark will read: of this machine open as ever, of a store in the network their names and sizes.

    Raises:
        InputError: nothing was found, or something cannot be read.
    """
    how: dict[str, Any] = {"as_partition": reading.as_partition, "partitions": reading.offsets_partition}
    if _is_parquet(reading):
        return DiskLogs([], Dumps(None), Finder((), stack), stack)
    here = [path for path in map(path_here, reading.paths) if path is not None]
    if len(here) == len(reading.paths):
        return open_logs(here, input_format="segments" if reading.input_format else None, **how)
    found = find_logs(reading.paths, stack, **how)
    opened = DiskLogs([log.unread() for log in found.logs], Dumps(None), Finder((), stack), stack, found.absent)
    opened.notes = list(found.notes)
    opened.topic_ids = found.topic_ids
    return opened


class SparkSession(Session):
    """A run of which a cluster reads the logs."""

    def __init__(self, reading: Reading, opened: DiskLogs, stack: ExitStack) -> None:
        super().__init__(replace(reading, progress=False), opened, stack)
        self._stack = stack
        self._spark: Any = None
        self._writers: dict[int, list[JoinedLog]] = {}
        self._here = {str(Path(file).absolute()): file for log in self.logs for file in (s.file for s in log.segments)}

    @property
    def is_bulk(self) -> bool:
        """Always."""
        return True

    def bounded(self, until_offset: tuple[tuple[int | None, int], ...] = (), until_time: int | None = None) -> Session:
        """As `Session.bounded`; Spark is the same."""
        self._begun()
        other = super().bounded(until_offset, until_time)
        assert isinstance(other, SparkSession)
        other._writers = {}
        return other

    def _begun(self) -> Any:
        """Spark's own session."""
        if self._spark is None:
            self._spark = self._stack.enter_context(open_spark(self.reading.master, default="local[*]"))
        return self._spark

    def joined(self, **how: Any) -> pa.Table:
        """The joined rows of all logs.

        Args:
            how: more for Spark's reading.
        """
        return joined_table(self._begun(), self._asked(**how))

    def _asked(self, **how: Any) -> SparkReading:
        reading = self.reading
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
        """Tell what was seen in a log, in its order."""
        note: Callable[[Seen], None] = self.noting(log, found)
        for seen in joined.seen(lambda file: self._here.get(file, file)):
            if seen not in self.absent:
                note(seen)
        if id(log) in self.damaged_logs and log.size_bytes and not log.bytes_to_read:
            self.damaged_logs.remove(id(log))  # what brokers make of it is asked of its files, which are not here
            name = partition_name(log.offsets_partition)
            self.say(f"offsets partition {name}: what a broker makes of damaged files in a store is not told")

    def load_whole(self, profile: Profile, *, whole_groups: bool) -> Iterator[Loaded]:
        """As `Session.load_whole`."""
        table = self.joined(profile=profile.name, members=whole_groups)
        for log, joined in zip(self.logs, joined_logs(table, len(self.logs)), strict=True):
            found = Survey.of(log)
            self._tell_of(log, joined, found)
            joined.tell(found)
            yield log, joined.state(profile), found

    def survey_all(self, profile: Profile) -> Iterator[Surveyed]:
        """As `Session.survey_all`."""
        reading = self.reading
        table = self.joined(profile=profile.name, survey=True, group=reading.group, topic=reading.topic)
        for log, joined in zip(self.logs, joined_logs(table, len(self.logs)), strict=True):
            found = Survey.of(log)
            self._tell_of(log, joined, found)
            joined.tell(found)
            yield log, found, joined.holdings()

    def count_in_bulk(self, log: PartitionLog, per: str, *, is_filtered: bool = False, **how: Any) -> WritersState:
        """As `Session.count_in_bulk`; all logs are counted at the first. Holders are known to one machine only."""
        if per in HELD:
            self.events(log)
        number = (PER_OF_SOME if is_filtered else PER)[per]
        if number not in self._writers:
            self._writers[number] = joined_logs(self.joined(per=number), len(self.logs))
        joined = self._writers[number][self.logs.index(log)]
        self._tell_of(log, joined, None)
        return joined.writers()

    def events_of_groups(
        self, log: PartitionLog, groups: Set[str], selection: Selection, wants: Callable[[Record], bool], start: int
    ) -> Iterator[LogEvent]:
        """As `Session.events_of_groups`, without others between them."""
        of_log = {} if log.offsets_partition is None else {"offsets_partition": (log.offsets_partition,)}
        files = {segment.file for segment in log.segments}
        rows = rows_of_groups(self._begun(), self._asked(**of_log), groups)
        return events_of(row for row in rows if self._here.get(row["file"], row["file"]) in files)

    def compact_table(self, profile: str, *, orphans: bool) -> pa.Table:
        """The answer of `compact` as one sorted table, with the column ``unstable``."""
        reading = self.reading
        rows = self.joined(profile=profile, members=False, group=reading.group, topic=reading.topic)
        found = joined_logs(rows, len(self.logs) or None)
        self.logs = self.logs or [PartitionLog(joined.offsets_partition, ()) for joined in found]
        self.partitions = len(found)
        for log, joined in zip(self.logs, found, strict=True):
            self._tell_of(log, joined, None)
        kinds = ["served"] + ["orphan"] * orphans
        table = rows.filter([kind in kinds for kind in rows["kind"].to_pylist()]).sort_by(SORTED_BY)
        raw = [name for name in RAW_NAMES if table[name].null_count < len(table)]
        return table.select([column.name for column in COMPACT_COLUMNS] + raw + ["unstable"])

    # -------------------------------------------------------------------------- what only one machine does

    def events(self, log: PartitionLog, *of: Any, **how: Any) -> NoReturn:
        """Not here."""
        raise click.UsageError("--engine spark cannot answer this, which is read record by record on one machine")

    def selected(self, log: PartitionLog, *of: Any, **how: Any) -> NoReturn:
        """Not here."""
        self.events(log)

    def replay_in_bulk(self, *of: Any, **how: Any) -> NoReturn:
        """Not here."""
        self.events(self.logs[0])

    def export_in_bulk(self, *of: Any, **how: Any) -> NoReturn:
        """Not here."""
        self.events(self.logs[0])
