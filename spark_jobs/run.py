"""Run the jobs as programs: ``python -m spark_jobs compact --input … --output … --master …``, or under spark-submit.

The session is the one spark-submit prepares, or one made here. Outputs appear whole or not at all; data that could not
be read is counted on standard error, kept in ``--quarantine``, and shown by the exit status as in the command line.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from offsets_log.columnar.shuffle.partials import PARTIAL_COLUMNS, table_of
from offsets_log.errors import InputError, MissingLogError, OffsetsLogError
from offsets_log.log_format.completeness import Missing
from offsets_log.rows.survey import describe_tail
from offsets_log.rows.tables import Row, partition_name
from offsets_log.words import counted
from spark_jobs import jobs
from spark_jobs.fold import memory
from spark_jobs.options import SourceOptions
from spark_jobs.pieces import tail_of
from spark_jobs.records import partials_of
from spark_jobs.source import register, schema_text
from spark_jobs.stores import holds_parquet
from spark_jobs.writing import write_parquet

DAMAGE_SHOWN = 5
SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
"""Setting of the number of shuffle partitions; by default a few for each core, since little is shuffled."""
GATEWAY = "PYSPARK_GATEWAY_PORT"
"""Environment variable that is set for programs run by spark-submit."""
QUARANTINE = "file string, position bigint, record_offset bigint, field string, kind string, problem string"
_OWN_ERROR = re.compile(r"offsets_log\.errors\.\w+: (.*)")


@contextmanager
def open_spark(master: str | None = None, *, default: str | None = None) -> Iterator[SparkSession]:
    """Open a session that knows the data source; it is stopped at the end only if it was started here.

    Args:
        default: where it runs if neither ``master`` nor spark-submit says.

    Raises:
        OffsetsLogError: what the data source raised, without Spark's text around it.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    was_active = SparkSession.getActiveSession()
    if master is None and GATEWAY not in os.environ:
        master = default
    builder = SparkSession.builder.appName("offsets-log")
    builder = builder.config("spark.ui.showConsoleProgress", str(sys.stderr.isatty()).lower())
    spark = was_active or (builder if master is None else builder.master(master)).getOrCreate()
    try:
        if was_active is None:
            spark.sparkContext.setLogLevel("ERROR")
        register(spark)
        if was_active is None and SHUFFLE_PARTITIONS not in dict(spark.sparkContext.getConf().getAll()):
            spark.conf.set(SHUFFLE_PARTITIONS, str(jobs.PIECES_PER_CORE * spark.sparkContext.defaultParallelism))
        yield spark
    except PySparkException as error:
        if (own := own_error(error)) is None:
            raise
        raise own from None
    finally:
        if was_active is None:
            spark.stop()


def own_error(error: PySparkException) -> InputError | None:
    """Return what code of this package raised, without Spark's text around it; None if Spark itself has raised."""
    found = _OWN_ERROR.findall(str(error))
    return InputError(found[-1]) if found else None


@dataclass(slots=True)
class Account:
    """The report about a run, besides its answer.

    Attributes:
        words: notes and tails, one sentence each.
        lost: log that is missing without explanation.
        damages: facts of the first few pieces that could not be read.
    """

    records: int = 0
    partitions: int = 0
    corrupt: int = 0
    unsupported: int = 0
    words: list[str] = field(default_factory=list)
    lost: list[Missing] = field(default_factory=list)
    damages: list[dict[str, Any]] = field(default_factory=list)

    @property
    def is_damaged(self) -> bool:
        """Whether something could not be read."""
        return bool(self.corrupt or self.unsupported)

    def lines(self) -> Iterator[str]:
        """Yield the lines for standard error."""
        yield from self.words
        yield from (f"missing: {missing.in_words()}" for missing in self.lost)
        for facts in self.damages[:DAMAGE_SHOWN]:
            yield f"{facts['kind']}: {damage_error(facts)}"
        if self.is_damaged:
            yield f"not everything could be read: {self.corrupt} corrupt, {self.unsupported} unsupported"


def damage_error(facts: dict[str, Any]) -> OffsetsLogError:
    """Return the error of a damaged piece from its facts."""
    place = {name: facts[name] for name in ("file", "position", "record_offset", "field")}
    return OffsetsLogError(facts["problem"], **place)


def account_of(rows: DataFrame) -> Account:
    """Return the account of `fold.memory`'s rows, which should be persisted."""
    found = rows.where(f.col("kind").isin("piece", "tail", "missing")).select("kind", "log", "piece", "facts").collect()
    account = Account(partitions=len({row["log"] for row in found}))
    for row in sorted(found, key=lambda row: (row["log"] or 0, row["piece"] or 0)):
        facts = json.loads(row["facts"])
        match row["kind"]:
            case "piece":
                account.records += facts["records"]
                account.corrupt += facts["corrupt"]
                account.unsupported += facts["unsupported"]
                account.words += facts["notes"]
            case "tail":
                account.words.append(f"{facts['file']}: {describe_tail(tail_of(facts))}")
            case "missing":
                account.lost += (missing for missing in (Missing(**facts),) if missing.is_lost)
    if account.is_damaged:
        shown = rows.where(f.col("kind") == "damage").select("facts").limit(DAMAGE_SHOWN).collect()
        account.damages = [json.loads(row["facts"]) for row in shown]
    return account


def quarantine_of(rows: DataFrame) -> DataFrame:
    """Return pieces that could not be read, in the form of the command line's quarantine."""
    damaged = rows.where(f.col("kind") == "damage")
    raw = f.regexp_replace(f.base64("value"), r"\s", "").alias("raw_base64")  # Spark breaks it into lines
    return damaged.select(f.from_json("facts", QUARANTINE).alias("facts"), raw).select("facts.*", "raw_base64")


# ------------------------------------------------------------------------------------------------ the jobs


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOptions:
    """The options of a job, the same for all jobs.

    Attributes:
        output, quarantine: directories to make, with one table each; `rebuild` makes one below for each of its tables.
        strict: write nothing if something could not be read.
    """

    reading: SourceOptions
    output: str
    quarantine: str | None = None
    strict: bool = False
    orphans: bool = False
    unstable: bool = False
    as_broker: bool = False
    topic_ids: dict[bytes, str] = field(default_factory=dict)


def is_parquet(reading: SourceOptions) -> bool:
    """Return whether the input is Parquet written by ``decode -o parquet``."""
    return all(holds_parquet(path, reading.storage_options) for path in reading.paths)


def _partials(spark: SparkSession, order: JobOptions, members: bool) -> DataFrame:
    reading = order.reading
    if is_parquet(reading):
        return partials_of(spark.read.parquet(*reading.paths), reading.profile)
    return jobs.read_partials(spark, replace(reading, members=members))


def _begun(rows: DataFrame, order: JobOptions) -> Account:
    account = account_of(rows)
    if order.strict and account.is_damaged:
        raise damage_error(account.damages[0])
    if order.strict and account.lost:
        raise MissingLogError(account.lost[0].in_words())
    return account


def joined_table(
    spark: SparkSession, reading: SourceOptions, decide: Callable[[pa.Table], list[Row]] | None = None
) -> pa.Table:
    """Return all rows of `fold.memory`, in this process.

    Args:
        decide: takes the rows of all groups and topics as they are read, and returns markers to put behind their logs
            (`joined.JoinedLog.decided`).
    """
    order = JobOptions(reading=reading if decide is None else replace(reading, group=(), topic=()), output="")
    partials = _partials(spark, order, reading.members)
    if decide is not None:
        partials = partials.persist()
    try:
        if decide is not None and (markers := decide(memory(partials, reading.profile).toArrow())):
            rows = spark.createDataFrame(table_of(markers), schema_text(PARTIAL_COLUMNS))
            return _joined(partials.unionByName(rows), reading)
        return _joined(partials, reading)
    finally:
        partials.unpersist()


def _joined(partials: DataFrame, reading: SourceOptions) -> pa.Table:
    return memory(partials, reading.profile, topic=reading.topic, group=reading.group).toArrow()


def run_compact(spark: SparkSession, order: JobOptions) -> tuple[str, Account]:
    """Run `compact`; return the summary and the account."""
    reading = order.reading
    rows = memory(_partials(spark, order, False), reading.profile, topic=reading.topic, group=reading.group).persist()
    try:
        account = _begun(rows, order)
        offsets = jobs.compact_rows(rows, orphans=order.orphans, unstable=order.unstable)
        ordered = offsets.orderBy("group", "topic", "partition", "offsets_partition")
        _keep(spark, rows, order)
        write_parquet(spark, {"": ordered}, order.output)
        count = offsets.count()
    finally:
        rows.unpersist()
    return f"{counted(count, 'offset')}, {counted(account.partitions, 'partition')}; profile {reading.profile}", account


def run_rebuild(spark: SparkSession, order: JobOptions) -> tuple[str, Account]:
    """Run `rebuild`; return the summary and the account."""
    reading = order.reading
    reading_all = replace(reading, group=())  # a group that is not shown may end the load too
    rows = memory(
        _partials(spark, replace(order, reading=reading_all), True),
        reading.profile,
        topic=reading.topic,
        group=reading.group,
    ).persist()
    try:
        account = _begun(rows, order)
        tables = jobs.rebuilt(rows, reading.profile, order.topic_ids, as_broker=order.as_broker).tables()
        _keep(spark, rows, order)
        write_parquet(spark, tables, order.output)
        counts = ", ".join(f"{tables[name].count()} {name}" for name in ("groups", "offsets", "pending"))
        for load in tables["loads"].where("not ok").collect():
            account.words.append(
                f"offsets partition {partition_name(load['offsets_partition'])}: a {reading.profile} coordinator would "
                f"not load it: record offset {load['record_offset']}, {load['rule']}: {load['problem']}"
            )
    finally:
        rows.unpersist()
    return f"{counts}, {counted(account.partitions, 'partition')}; profile {reading.profile}", account


def run_replay(spark: SparkSession, order: JobOptions) -> tuple[str, Account]:
    """Write all records as a table by offsets partition and day; return the summary and the account."""
    reading = order.reading
    whole = replace(reading, group=(), topic=(), columns=())
    rows = memory(jobs.read_partials(spark, replace(whole, members=False)), reading.profile).persist()
    try:
        account = _begun(rows, order)
        _keep(spark, rows, order)
        events = jobs.replay(jobs.read(spark, replace(reading, level="events")))
        write_parquet(spark, {"": events}, order.output, partition_by=("offsets_partition", "day"))
    finally:
        rows.unpersist()
    return f"{counted(account.records, 'record')}, {counted(account.partitions, 'partition')}", account


def _keep(spark: SparkSession, rows: DataFrame, order: JobOptions) -> None:
    if order.quarantine is not None:
        write_parquet(spark, {"": quarantine_of(rows)}, order.quarantine)


JOBS = {"compact": run_compact, "rebuild": run_rebuild, "replay": run_replay}
