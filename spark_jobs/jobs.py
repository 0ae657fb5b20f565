"""Provide the jobs as functions from DataFrames to DataFrames: `compact`, `rebuild`, `replay`.

They take the partial states of the data source (level ``partials``), or a DataFrame of records: from Spark's Kafka
source, from the levels ``records`` and ``events``, from Parquet written by ``decode -o parquet``. Nothing runs before
an action, except where `rebuild` has to know the names of topic ids.
"""

from __future__ import annotations

import json
import pickle
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from offsets_log.columnar.events.rows import EVENT_COLUMNS
from offsets_log.columnar.materialize.arrow import schema_of
from offsets_log.log_format.primitives import Uuid
from offsets_log.replay.profile import PROFILES, Profile
from offsets_log.replay.topic_names import TopicNames
from offsets_log.rows.groups import GROUP_NAMES, MEMBER_NAMES, group_row
from offsets_log.rows.tables import COMPACT_COLUMNS, PENDING_NAMES, Column, Row
from spark_jobs.fold import memory
from spark_jobs.options import SourceOptions, as_options
from spark_jobs.records import knows_transactions, partials_of
from spark_jobs.source import FORMAT, schema_text

UNDECIDED = (
    "this DataFrame has no isTransactional column, as Kafka's source has none: whether an offset was committed in a "
    "transaction, and whether that ended, cannot be told; all commits are taken as plain ones"
)
PIECES_PER_CORE = 2


class UndecidedWarning(UserWarning):
    """Warns that transactions cannot be resolved."""


def read_partials(spark: SparkSession, reading: SourceOptions) -> DataFrame:
    """Return the partial states of files, in a few pieces for each core."""
    return read_evenly(spark, replace(reading, level="partials"))


def read_evenly(spark: SparkSession, reading: SourceOptions) -> DataFrame:
    """Return any level of files, in a few pieces for each core unless the reading says otherwise."""
    return read(spark, evenly(spark, reading))


def evenly(spark: SparkSession, reading: SourceOptions) -> SourceOptions:
    """Return the reading with a few pieces for each core unless it says otherwise."""
    if reading.pieces is not None or reading.piece_bytes is not None or not reading.split:
        return reading
    return replace(reading, pieces=PIECES_PER_CORE * spark.sparkContext.defaultParallelism)


def read(spark: SparkSession, reading: SourceOptions) -> DataFrame:
    """Return any level of files."""
    return spark.read.format(FORMAT).options(**as_options(reading)).load()


# ------------------------------------------------------------------------------------------------ compact


def compact(frame: DataFrame, *, profile: str = "modern", orphans: bool = False, unstable: bool = False) -> DataFrame:
    """Return the latest served offset of every GroupTopicPartition, as `tables.COMPACT_COLUMNS`, in no order.

    For a DataFrame of records there is one more column, ``undecided``: true for a pending offset of a transaction
    without a marker, null where transactions cannot be distinguished from other commits (`UndecidedWarning`).

    Args:
        frame: partials, read with the same profile; or records.
        orphans: include offsets whose group does not exist.
        unstable: add a column that marks offsets under an open transaction.
    """
    known = knows_transactions(frame)
    if not known:
        warnings.warn(UNDECIDED, UndecidedWarning, stacklevel=2)
    rows = memory(partials_of(frame, profile), profile)
    is_raw = "offset" in frame.columns
    return compact_rows(rows, orphans=orphans, unstable=unstable, undecided=known if is_raw else None)


def compact_rows(
    rows: DataFrame, *, orphans: bool = False, unstable: bool = False, undecided: bool | None = None
) -> DataFrame:
    """Return `compact` of what `fold.memory` returned.

    Args:
        undecided: None for no such column; else whether transactions are known.
    """
    kinds = ["served"] + ["orphan"] * orphans + ["open"] * bool(undecided)
    more: list[Expression] = [f.col("unstable")] if unstable else []
    if undecided is not None:
        flag = f.col("kind") == "open" if undecided else f.lit(None).cast("boolean")
        more.append(flag.alias("undecided"))
    return rows.where(f.col("kind").isin(kinds)).select(*(f.col(column.name) for column in COMPACT_COLUMNS), *more)


# ------------------------------------------------------------------------------------------------ rebuild

LISTS = ("subscribed_topics", "assignment", "target_assignment", "unresolved")
_TYPES = {
    **dict.fromkeys(LISTS, "json"),
    **dict.fromkeys(
        ("generation", "group_epoch", "assignment_epoch", "topology_epoch", "offsets_partition", "member_epoch",
         "session_timeout_ms", "rebalance_timeout_ms"), "int",
    ),
    "current_state_timestamp_ms": "bigint",
}  # fmt: skip
DOCUMENT = Column("document", "json", "all that `rebuild` tells about it")
GROUPS = (
    *(Column(name, _TYPES.get(name, "string"), "as rebuild has it") for name in GROUP_NAMES),
    Column("members", "int", "how many members it has"),
    DOCUMENT,
)
MEMBERS = (*(Column(name, _TYPES.get(name, "string"), "as rebuild has it") for name in MEMBER_NAMES), DOCUMENT)


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A coordinator's memory as DataFrames.

    Attributes:
        groups, members: rows with typed columns, and each row as JSON in ``document``.
        loads: for each offsets partition whether a broker would load it, or else the record and the rule that prevent
            it.
    """

    groups: DataFrame
    members: DataFrame
    offsets: DataFrame
    pending: DataFrame
    orphans: DataFrame
    loads: DataFrame

    def tables(self) -> dict[str, DataFrame]:
        """Return the DataFrames by name."""
        return {name: getattr(self, name) for name in ("groups", "members", "offsets", "pending", "orphans", "loads")}


def rebuild(
    frame: DataFrame, *, profile: str = "modern", topic_ids: Mapping[bytes, str] | None = None, as_broker: bool = False
) -> Rebuilt:
    """Return the groups, members, committed and pending offsets after loading.

    This runs a job to learn the names of topic ids in the records; persist ``frame`` before.

    Args:
        frame: partials with members, read with the same profile; or records.
        topic_ids: topic id → name; these names take precedence over those in the records.
        as_broker: leave out partitions whose load would fail.
    """
    return rebuilt(memory(partials_of(frame, profile), profile), profile, topic_ids or {}, as_broker=as_broker)


def rebuilt(rows: DataFrame, profile: str, topic_ids: Mapping[bytes, str], *, as_broker: bool = False) -> Rebuilt:
    """Return `rebuild` of what `fold.memory` returned."""
    names = TopicNames(topic_ids, *_topic_names(rows))
    loads = _loads(rows)
    if as_broker:
        empty = loads.where(~f.col("ok") & ~f.col("is_served")).select("log")
        rows = rows.join(f.broadcast(empty), "log", "left_anti")
    groups = rows.where(f.col("kind") == "group")
    told = groups.mapInArrow(_teller(PROFILES[profile], names, GROUPS, _group_rows), schema_text(GROUPS))
    members = groups.mapInArrow(_teller(PROFILES[profile], names, MEMBERS, _member_rows), schema_text(MEMBERS))
    return Rebuilt(
        groups=told,
        members=members,
        offsets=compact_rows(rows),
        pending=rows.where(f.col("kind") == "open").select(*PENDING_NAMES),
        orphans=rows.where(f.col("kind") == "orphan").select(*(column.name for column in COMPACT_COLUMNS)),
        loads=loads.drop("log"),
    )


def _topic_names(rows: DataFrame) -> list[dict[bytes, str]]:
    """Return topic id → name for each log; the name in the last piece wins."""
    found = rows.where(f.col("kind") == "topic_name").select("log", "piece", "topic_id", "topic").collect()
    logs: dict[int, dict[bytes, str]] = {}
    for row in sorted(found, key=lambda row: (row["log"], row["piece"])):
        logs.setdefault(row["log"], {})[bytes(Uuid.from_text(row["topic_id"]))] = row["topic"]
    return list(logs.values())


def _loads(rows: DataFrame) -> DataFrame:
    """Return the first problem of each log."""
    facts = "record_offset bigint, rule string, problem string, is_served boolean"
    problems = rows.where(f.col("kind") == "problem").select("log", f.from_json("facts", facts).alias("facts"))
    first = problems.groupBy("log").agg(f.min_by("facts", f.col("facts.record_offset")).alias("facts"))
    logs = rows.where(f.col("kind") == "piece").select("log", "offsets_partition").distinct()
    return logs.join(first, "log", "left").select(
        "log", "offsets_partition", f.col("facts").isNull().alias("ok"), "facts.record_offset", "facts.rule",
        "facts.problem", f.coalesce(f.col("facts.is_served"), f.lit(False)).alias("is_served"),
    )  # fmt: skip


def _teller(
    profile: Profile, names: TopicNames, columns: Sequence[Column], rows_of: Callable[[Row], list[Row]]
) -> Callable[..., Iterator[pa.RecordBatch]]:
    """Return a function from pickled groups to rows."""

    def tell(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows: list[Row] = []
            for row in batch.select(["value", "offsets_partition"]).to_pylist():
                rows += rows_of(group_row(pickle.loads(row["value"]), profile, names, row["offsets_partition"]))
            yield from pa.Table.from_pylist(rows, schema_of(columns)).to_batches()

    return tell


def _group_rows(row: Row) -> list[Row]:
    known = {name: row[name] for name in GROUP_NAMES}
    return [known | {"members": len(row["members"]), "document": _json(row)}]


def _member_rows(row: Row) -> list[Row]:
    rows = []
    for member in ({"group": row["group"]} | member for member in row["members"]):
        known = {name: member.get(name) for name in MEMBER_NAMES}
        lists = {name: None if known[name] is None else _json(known[name]) for name in LISTS}
        rows.append(known | lists | {"document": _json(member)})
    return rows


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


# ------------------------------------------------------------------------------------------------ replay


def replay(frame: DataFrame) -> DataFrame:
    """Return events with the day they were written, by which they are partitioned into files.

    Args:
        frame: level ``events``.
    """
    day = f.to_date(f.timestamp_millis(f.when(f.col("timestamp_ms") >= 0, f.col("timestamp_ms"))))
    return frame.select(*(column.name for column in EVENT_COLUMNS), day.alias("day"))
