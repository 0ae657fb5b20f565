"""What lies beside the offsets topic in data directories, here or in a store: the driver reads it."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from offsets_log.columnar.materialize.arrow import table_of_rows
from offsets_log.columnar.shuffle.partials import PARTIAL_COLUMNS, table_of
from offsets_log.data_directory.copied_logs import CopiedLogs
from offsets_log.data_directory.decisions import Outcomes
from offsets_log.data_directory.lag import LAG_COLUMNS
from offsets_log.data_directory.lag_columns import lag_table
from offsets_log.data_directory.share_offsets import (
    SHARE_OFFSET_COLUMNS,
    STATE_PARTITION_METADATA,
    ShareGroupTopics,
    ShareOffsets,
)
from offsets_log.data_directory.transactions import OUTCOME_COLUMNS
from offsets_log.disk.beside import Beside
from offsets_log.disk.dumps import Dumps
from offsets_log.disk.finder import Finder
from offsets_log.disk.reader import DiskLogs
from offsets_log.errors import OffsetsLogError
from offsets_log.log_format.java_text import MalformedString
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.messages.internal_topics import SHARE_GROUP_STATE
from offsets_log.messages.registry import decode_coordinator_record
from offsets_log.replay.partial import EndTransactionMarker, OffsetAndMetadata
from offsets_log.rows.tables import Column, Row
from spark_jobs.files import find_logs, is_parquet
from spark_jobs.fold import memory
from spark_jobs.jobs import read_evenly
from spark_jobs.options import SourceOptions, matcher
from spark_jobs.source import schema_text


def open_found(paths: Sequence[str], stack: ExitStack, **how: Any) -> DiskLogs:
    """Open logs as `find_logs`, with its arguments; of records in Parquet there is nothing to open.

    Raises:
        InputError: nothing was found, or something cannot be read.
    """
    if is_parquet(paths, how.get("options")):
        return DiskLogs([], Dumps(None), Finder((), stack), stack)
    return find_logs(paths, stack, **how)


# ------------------------------------------------------------------------------------------- lag


def with_lag(spark: SparkSession, offsets: DataFrame, logs: CopiedLogs, now_ms: int | None) -> DataFrame:
    """Append `LAG_COLUMNS` to rows of `compact`; their partitions and offsets come to the driver, each once.

    Args:
        now_ms: as of `lag_table`.
    """
    asked = offsets.select(*_ASKED).distinct().toArrow()
    told = lag_table(logs, asked, now_ms)
    for name in _ASKED:
        told = told.append_column(f"of_{name}", asked[name])
    columns = (*LAG_COLUMNS, *(Column(f"of_{name}", kind, "as asked") for name, kind in _ASKED.items()))
    return _beside(spark, offsets, told, columns, {name: f"of_{name}" for name in _ASKED})


_ASKED = {
    "topic": "string",
    "partition": "int",
    "topic_id": "string",
    "commit_timestamp_ms": "bigint",
    "committed_offset": "bigint",
}
"""Columns that tell how far behind an offset is."""


def _beside(
    spark: SparkSession, rows: DataFrame, told: pa.Table, columns: Sequence[Column], keys: Mapping[str, str]
) -> DataFrame:
    """Append the columns of a small table to the rows with the same keys.

    Args:
        keys: column of the rows → that of the table, which is left out.
    """
    if not told.num_rows:
        empty = [column for column in columns if column.name not in keys.values()]
        return rows.select("*", *(f.lit(None).cast(column.sql_type).alias(column.name) for column in empty))
    small = spark.createDataFrame(told, schema_text(columns))
    same: Expression = f.lit(True)
    for name, of_table in keys.items():
        same = same & rows[name].eqNullSafe(small[of_table])
    return rows.join(f.broadcast(small), same, "left").drop(*keys.values())


# ------------------------------------------------------------------------------------------- transactions

DECIDING = ("log", "piece", "open")
"""Kinds of rows of `fold.memory` that say what is pending in a log."""
PLACE = ("log", "pieces", "offsets_partition")
RAW_NAMES = ("group", "topic", "metadata")
"""Text columns of offsets that may have a column with raw bytes beside them, for text that is not UTF-8."""


@dataclass(slots=True)
class _Markers:
    """Takes markers as columns of partials."""

    end_offset: int
    rows: list[Row] = field(default_factory=list)

    def add_marker(self, producer_id: int, marker: EndTransactionMarker) -> None:
        """Implement `TakesMarkers.add_marker`."""
        self.rows.append({"producer_id": producer_id, "record_offset": marker.record_offset, "commits": marker.commit})


def markers_of(table: pa.Table, outcomes: Outcomes, logs: Sequence[PartitionLog]) -> list[Row]:
    """Return markers of the open transactions whose outcome is certain, as rows of partials.

    Args:
        table: rows of `DECIDING` of all groups and topics.
    """
    rows: list[Row] = []
    for number, log in enumerate(logs):
        of_log = table.filter(pc.equal(table["log"], number))
        facts = json.loads(of_log.filter(pc.equal(of_log["kind"], "log"))["facts"][0].as_py())
        place = of_log.filter(pc.equal(of_log["kind"], "piece")).select(PLACE).to_pylist()[0]
        markers = _Markers(facts["end_offset"])
        outcomes.decide(log, markers, _pending(table, number))
        rows += [place | {"piece": place["pieces"], "kind": "producer"} | row for row in markers.rows]
    return rows


def _pending(table: pa.Table, number: int) -> Iterator[OffsetAndMetadata]:
    """Yield the offsets of open transactions in a log."""
    found = table.filter(pc.and_(pc.equal(table["log"], number), pc.equal(table["kind"], "open")))
    columns = {name: found[name].to_pylist() for name in OffsetAndMetadata._fields}
    for name in RAW_NAMES:
        columns[name] = [
            text if encoded is None else MalformedString(base64.b64decode(encoded))
            for text, encoded in zip(columns[name], found[f"{name}_base64"].to_pylist(), strict=True)
        ]
    yield from map(OffsetAndMetadata, *columns.values())


def with_markers(
    spark: SparkSession, partials: DataFrame, profile: str, decide: Callable[[pa.Table], list[Row]]
) -> DataFrame:
    """Return partials with the markers of decided transactions behind them.

    Args:
        partials: of all groups, which should be persisted.
        decide: returns markers as `markers_of`.
    """
    table = memory(partials, profile).where(f.col("kind").isin(*DECIDING)).toArrow()
    markers = decide(table)
    if not markers:
        return partials
    return partials.unionByName(spark.createDataFrame(table_of(markers), schema_text(PARTIAL_COLUMNS)))


def with_outcomes(
    spark: SparkSession, pending: DataFrame, whole: DataFrame, outcomes: Outcomes, logs: Sequence[PartitionLog]
) -> DataFrame:
    """Append `OUTCOME_COLUMNS` to rows of pending offsets.

    Args:
        whole: rows of `fold.memory` of all groups and topics.
    """
    table = whole.where(f.col("kind").isin(*DECIDING)).toArrow()
    rows: list[Row] = []
    for number, log in enumerate(logs):
        place = {"of_offsets_partition": log.offsets_partition}
        cells = outcomes.cells(log, _pending(table, number))
        rows += (told | place | {"of_producer_id": producer_id} for producer_id, told in cells.items())
    keys = {"offsets_partition": "int", "producer_id": "bigint"}
    columns = (*OUTCOME_COLUMNS, *(Column(f"of_{name}", kind, "as pending") for name, kind in keys.items()))
    return _beside(spark, pending, table_of_rows(rows, columns), columns, {name: f"of_{name}" for name in keys})


# ------------------------------------------------------------------------------------------- share groups


def share_offsets(
    spark: SparkSession, beside: Beside, reading: SourceOptions, logs: CopiedLogs | None
) -> DataFrame | None:
    """Return where share groups are; None without a copy of ``__share_group_state``.

    Args:
        logs: tell the ends of partitions; None if these are not asked for.
    """
    if not beside.copied_logs.partition_count(SHARE_GROUP_STATE):
        return None
    states = beside.share_states
    shows = {"group": matcher(reading.group), "topic": matcher(reading.topic)}
    found = ShareOffsets(
        states,
        _topics(spark, beside, reading, {key.group for key in states.by_key}),
        beside.topic_ids,
        logs,
        is_whole=beside.has_all_partitions,
        shows_group=shows["group"] or _all,
        shows_topic=shows["topic"] or _all,
    )
    return spark.createDataFrame(table_of_rows(found.rows(), SHARE_OFFSET_COLUMNS), schema_text(SHARE_OFFSET_COLUMNS))


def _all(name: str) -> bool:
    return True


def _topics(spark: SparkSession, beside: Beside, reading: SourceOptions, groups: set[str]) -> ShareGroupTopics:
    """Return what records of these groups say of their topics."""
    topics = ShareGroupTopics()
    if not groups:
        return topics
    columns = ("partition", "offset", "key", "value")
    records = read_evenly(spark, replace(reading, level="records", columns=columns, group=(), topic=()))
    of_states = f.substring("key", 1, 2) == f.lit(STATE_PARTITION_METADATA.to_bytes(2, "big"))
    for row in records.where(of_states).sort("partition", "offset").collect():
        with suppress(OffsetsLogError):  # the account has it
            topics.take(decode_coordinator_record(row["key"], row["value"], reading.kafka))
    return topics
