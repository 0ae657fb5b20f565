"""Run the jobs as programs: ``python -m spark_jobs compact --input … --output … --master …``, or under spark-submit.

The session is the one spark-submit prepares, or one made here. Outputs appear whole or not at all; data that could not
be read is counted on standard error, kept in ``--quarantine``, and shown by the exit status as in the command line.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from offsets_log.data_directory.decisions import BOUNDED, NO_STATES
from offsets_log.data_directory.lag import BOUNDED as LAG_BOUNDED
from offsets_log.data_directory.lag import NO_LOGS
from offsets_log.disk.beside import Beside
from offsets_log.disk.reader import DiskLogs
from offsets_log.errors import Damage, InputError, MissingLogError
from offsets_log.messages.internal_topics import SHARE_GROUP_STATE
from offsets_log.rows.tables import partition_name
from offsets_log.words import counted
from spark_jobs import jobs
from spark_jobs.account import Account, account_of, damage_error, quarantine_of
from spark_jobs.beside import (
    markers_of,
    open_found,
    share_offsets,
    with_lag,
    with_markers,
    with_outcomes,
)
from spark_jobs.files import is_parquet
from spark_jobs.fold import memory
from spark_jobs.options import SourceOptions
from spark_jobs.records import partials_of
from spark_jobs.session import GATEWAY, Opening, session
from spark_jobs.writing import write_parquet

SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
"""Setting of the number of shuffle partitions; by default a few for each core, since little is shuffled."""


@contextmanager
def open_spark(
    master: str | None = None, *, default: str | None = None, registers: bool = True
) -> Iterator[SparkSession]:
    """Open a session that knows the data source; it is stopped at the end only if it was started here.

    Args:
        default: where it runs if neither ``master`` nor spark-submit says.
        registers: False if the caller registers the data source when it is needed, for that takes seconds.

    Raises:
        OffsetsLogError: what the data source raised, without Spark's text around it.
    """
    opening = Opening(master if GATEWAY in os.environ else master or default)
    with session(opening, registers=registers) as spark:
        if opening.was_active is None and SHUFFLE_PARTITIONS not in dict(spark.sparkContext.getConf().getAll()):
            spark.conf.set(SHUFFLE_PARTITIONS, str(jobs.PIECES_PER_CORE * spark.sparkContext.defaultParallelism))
        yield spark


# ------------------------------------------------------------------------------------------------ the jobs


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOptions:
    """The options of a job, the same for all jobs.

    Attributes:
        output, quarantine: directories to make, with one table each; `rebuild` makes one below for each of its tables.
        strict: write nothing if something could not be read.
        lag: whether to tell lag; None if the data directories tell it.
        now_ms: the time to which ages count, and by when transactions would have timed out.
        decide: whether to end transactions whose outcome is certain.
    """

    reading: SourceOptions
    output: str
    quarantine: str | None = None
    strict: bool = False
    orphans: bool = False
    unstable: bool = False
    as_broker: bool = False
    lag: bool | None = None
    now_ms: int | None = None
    decide: bool = False
    topic_ids: dict[bytes, str] = field(default_factory=dict)


def _partials(spark: SparkSession, order: JobOptions, members: bool) -> DataFrame:
    reading = order.reading
    if is_parquet(reading.paths, reading.storage_options):
        return partials_of(spark.read.parquet(*reading.paths), reading.profile)
    return jobs.read_partials(spark, replace(reading, members=members))


def _begun(rows: DataFrame, order: JobOptions) -> Account:
    account = account_of(rows)
    if order.strict and account.is_damaged:
        raise damage_error(account.damages[0])
    if order.strict and account.lost:
        raise MissingLogError(account.lost[0].in_words())
    return account


class _Directories:
    """The data directories that are read, and what they tell beside the offsets topic; use `_directories`."""

    def __init__(self, spark: SparkSession, order: JobOptions, opened: DiskLogs) -> None:
        """Raises:
        InputError: less than the whole log is read, and transactions are to be decided at its end.
        """
        self._spark = spark
        self._order = order
        self._opened = opened
        self.beside = Beside(opened)
        reading = order.reading
        self._is_bounded = bool(reading.until_offset) or reading.until_time is not None
        if order.decide and self._is_bounded:
            raise InputError(BOUNDED)
        is_told = order.lag is not False and bool(self.beside.copied_logs)
        self.logs = self.beside.copied_logs if is_told else None
        self.outcomes = None if self._is_bounded else self.beside.outcomes(order.now_ms)

    def partials(self, stack: ExitStack, *, members: bool) -> DataFrame:
        """Return the partial states of what is read, with markers if transactions are decided."""
        order, reading = self._order, self._order.reading
        if not order.decide or self.outcomes is None:
            return _partials(self._spark, order, members)
        whole = replace(reading, group=(), topic=())
        partials = _partials(self._spark, replace(order, reading=whole), members).persist()
        stack.callback(partials.unpersist)
        decide = partial(markers_of, outcomes=self.outcomes, logs=self.beside.logs)
        return with_markers(self._spark, partials, reading.profile, decide)

    def with_lag(self, offsets: DataFrame) -> DataFrame:
        """Append the columns of lag, if they are told."""
        return offsets if self.logs is None else with_lag(self._spark, offsets, self.logs, self._order.now_ms)

    def with_outcomes(self, pending: DataFrame, whole: DataFrame) -> DataFrame:
        """Append the columns of outcomes, if they are told.

        Args:
            whole: as of `beside.with_outcomes`.
        """
        if self.outcomes is None:
            return pending
        return with_outcomes(self._spark, pending, whole, self.outcomes, self.beside.logs)

    def share_offsets(self, reading: SourceOptions) -> dict[str, DataFrame]:
        """Return the table of share groups' offsets by its name; none if these are not told.

        Args:
            reading: with the filters of what is shown.
        """
        if self._is_bounded:
            return {}
        found = share_offsets(self._spark, self.beside, reading, self.logs)
        return {} if found is None else {"share_offsets": found}

    def tell(self, account: Account) -> None:
        """Add what was said of these directories. Raises OffsetsLogError for damage, if that is to end the run."""
        account.words += [note for note in self._opened.notes if note not in account.words]
        account.words += self.beside.clusters.notes
        opened = self._opened
        account.is_wrong = self.beside.clusters.are_mixed or opened.has_broken_files or opened.copies_in_doubt
        damages = [*self._opened.damages, *self._damages()]
        if self.logs is not None:
            account.words += [*([LAG_BOUNDED] if self._is_bounded else []), *self.logs.in_words()]
        elif self._order.lag:
            account.words.append(NO_LOGS)
        if self._order.decide:
            account.words += [NO_STATES] if self.outcomes is None else self.outcomes.in_words()
        if self._order.strict and damages:
            raise damages[0].error
        for damage in damages:
            account.on_damage(damage)

    def _damages(self) -> Iterator[Damage]:
        if self.logs is not None:
            yield from self.logs.damages
        if self.outcomes is not None:
            yield from self.beside.transaction_states.damages
        if not self._is_bounded and self.beside.copied_logs.partition_count(SHARE_GROUP_STATE):
            yield from self.beside.share_states.damages


def _directories(spark: SparkSession, order: JobOptions, stack: ExitStack) -> _Directories:
    reading = order.reading
    opened = open_found(
        reading.paths,
        stack,
        as_partition=reading.as_partition,
        partitions=reading.offsets_partition,
        options=reading.storage_options,
    )
    return _Directories(spark, order, opened)


def run_compact(spark: SparkSession, order: JobOptions) -> tuple[str, Account]:
    """Run `compact`; return the summary and the account."""
    reading = order.reading
    with ExitStack() as stack:
        directories = _directories(spark, order, stack)
        partials = directories.partials(stack, members=False)
        rows = memory(partials, reading.profile, topic=reading.topic, group=reading.group).persist()
        stack.callback(rows.unpersist)
        account = _begun(rows, order)
        offsets = directories.with_lag(jobs.compact_rows(rows, orphans=order.orphans, unstable=order.unstable))
        ordered = offsets.orderBy("group", "topic", "partition", "offsets_partition")
        directories.tell(account)
        _keep(spark, rows, account, order)
        write_parquet(spark, {"": ordered}, order.output)
        count = offsets.count()
    return f"{counted(count, 'offset')}, {counted(account.partitions, 'partition')}; profile {reading.profile}", account


def run_rebuild(spark: SparkSession, order: JobOptions) -> tuple[str, Account]:
    """Run `rebuild`; return the summary and the account."""
    reading = order.reading
    reading_all = replace(reading, group=())  # a group that is not shown may end the load too
    with ExitStack() as stack:
        directories = _directories(spark, replace(order, reading=reading_all), stack)
        partials = directories.partials(stack, members=True)
        rows = memory(partials, reading.profile, topic=reading.topic, group=reading.group).persist()
        stack.callback(rows.unpersist)
        account = _begun(rows, order)
        names = directories.beside.topic_ids | order.topic_ids
        tables = jobs.rebuilt(rows, reading.profile, names, as_broker=order.as_broker).tables()
        tables["offsets"] = directories.with_lag(tables["offsets"])
        whole = rows if not (reading.group or reading.topic) else memory(partials, reading.profile)
        tables["pending"] = directories.with_outcomes(tables["pending"], whole)
        tables |= directories.share_offsets(reading)
        directories.tell(account)
        _keep(spark, rows, account, order)
        write_parquet(spark, tables, order.output)
        counts = ", ".join(f"{tables[name].count()} {name}" for name in ("groups", "offsets", "pending"))
        for load in tables["loads"].where("not ok").collect():
            account.words.append(
                f"offsets partition {partition_name(load['offsets_partition'])}: a {reading.profile} coordinator would "
                f"not load it: record offset {load['record_offset']}, {load['rule']}: {load['problem']}"
            )
    return f"{counts}, {counted(account.partitions, 'partition')}; profile {reading.profile}", account


def run_replay(spark: SparkSession, order: JobOptions) -> tuple[str, Account]:
    """Write all records as a table by offsets partition and day; return the summary and the account."""
    reading = order.reading
    whole = replace(reading, group=(), topic=(), columns=())
    rows = memory(jobs.read_partials(spark, replace(whole, members=False)), reading.profile).persist()
    try:
        account = _begun(rows, order)
        _keep(spark, rows, account, order)
        events = jobs.replay(jobs.read(spark, replace(reading, level="events")))
        write_parquet(spark, {"": events}, order.output, partition_by=("offsets_partition", "day"))
    finally:
        rows.unpersist()
    return f"{counted(account.records, 'record')}, {counted(account.partitions, 'partition')}", account


def _keep(spark: SparkSession, rows: DataFrame, account: Account, order: JobOptions) -> None:
    if order.quarantine is not None:
        write_parquet(spark, {"": quarantine_of(spark, rows, account.beside)}, order.quarantine)


JOBS = {"compact": run_compact, "rebuild": run_rebuild, "replay": run_replay}
