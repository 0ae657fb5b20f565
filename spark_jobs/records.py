"""Tables of DataFrames of records: from Kafka's source, the levels ``records`` and ``raw_records``, Parquet of decode.

The columns tell which it is. A task has the records of an offsets partition, and makes a log of them, as the library
does of a dump: files are read much faster.

Kafka's source shows neither producer ids nor transaction markers: commits in a transaction, ended or not, cannot be
distinguished from other commits.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from offsets_log.columnar.events.rows import TOLD
from offsets_log.columnar.materialize.arrow import schema_of
from offsets_log.dumps.formats import PARQUET, build_segments
from offsets_log.errors import Damage, InputError
from offsets_log.log_format.batch import NO_TIMESTAMP
from offsets_log.log_format.partition_log import PartitionLog, Segment
from spark_jobs.answers import OneLog, Told
from spark_jobs.levels import as_read, columns_of
from spark_jobs.options import LEVELS, SourceOptions
from spark_jobs.source import schema_text

KAFKA_COLUMNS = frozenset({"key", "value", "partition", "offset"})
EVENT_COLUMNS = frozenset({"record_type", "committed_offset", "record_offset", "offsets_partition"})
BATCH_FACTS = {
    "producerId": ("producer_id", -1),
    "producerEpoch": ("producer_epoch", -1),
    "isTransactional": ("is_transactional", False),
    "isControl": ("is_control", False),
}
"""Column that Kafka's source does not have → its name in `decode`, and the value used instead."""
RECORD_NAMES = tuple(
    dict.fromkeys(
        (*sorted(EVENT_COLUMNS), "group", "topic", "partition", *TOLD.values(), "producer_id", "producer_epoch",
         "is_transactional", "is_control", "value_version", "is_tombstone", "key", "value", "timestamp_ms")
    )
)  # fmt: skip
"""Columns of `decode` from which a record and its batch are made."""
OF_TAGS = frozenset(column for field, column in TOLD.items() if field.tag is not None)
"""Columns that tables which are older than the tagged field do not have."""
OF_STATES = tuple(level for level in LEVELS if level not in ("history", "transactions", "records", "raw_records"))
UNDECIDED = (
    "this DataFrame has no isTransactional column, as Kafka's source has none: whether an offset was committed in a "
    "transaction, and whether that ended, cannot be told; all commits are taken as plain ones"
)


class UndecidedWarning(UserWarning):
    """Warns that transactions cannot be resolved."""


def table_of(frame: DataFrame, level: str = "offsets", *, profile: str = "modern", **options: Any) -> DataFrame:
    """Return a level of a DataFrame of records, as `format("offsets_log")` has it of files.

    Of ``offsets`` there is the column ``unstable`` too: null where the records do not tell transactions.

    Args:
        options: further attributes of `SourceOptions`, such as ``group=("billing-*",)``.

    Raises:
        InputError: the frame has other columns, or there is no such level of records.
    """
    if level not in OF_STATES:
        raise InputError(f"records lead to the levels {', '.join(OF_STATES)}, not {level}")
    reading = SourceOptions(paths=(), level=level, profile=profile, unstable=level == "offsets", **options)
    columns = columns_of(reading)
    schema, told = schema_of(columns), Told(reading.ids)
    records = _records_of(frame)
    missing = {"is_transactional"} if {"isTransactional", "is_transactional"}.isdisjoint(frame.columns) else set()
    if missing:
        warnings.warn(UNDECIDED, UndecidedWarning, stacklevel=2)

    def answer(key: tuple[Any, ...], table: pa.Table) -> pa.Table:
        log, damages = _log_of(table, key[0].as_py(), missing)
        with ExitStack() as stack:
            one = OneLog(log, reading, told, stack, damages=damages)
            return as_read(one.table(level), schema)

    return records.groupBy("offsets_partition").applyInArrow(answer, schema_text(columns))


def _records_of(frame: DataFrame) -> DataFrame:
    """Return the columns of `decode` that a frame has. Raises InputError."""
    names = set(frame.columns)
    if names >= EVENT_COLUMNS:
        return frame.select(*(name for name in RECORD_NAMES if name in names or name not in OF_TAGS))
    if names >= KAFKA_COLUMNS:
        facts = [
            (f.col(name) if name in names else f.lit(default)).alias(ours)
            for name, (ours, default) in BATCH_FACTS.items()
        ]
        time_ms = f.unix_millis("timestamp") if "timestamp" in names else f.lit(None)
        return frame.select(
            f.col("partition").alias("offsets_partition"), f.col("offset").alias("record_offset"), "key", "value",
            f.lit(None).cast("int").alias("record_type"), time_ms.cast("bigint").alias("timestamp_ms"), *facts,
        )  # fmt: skip
    raise InputError(
        "the DataFrame has none of the columns that are read: those of Kafka's source (key, value, partition, "
        "offset), or of the levels records and raw_records of format offsets_log"
    )


SELECTION = "records hold what was put into them"
"""Why nothing is reported missing around them."""


def _log_of(table: pa.Table, number: int | None, missing: set[str]) -> tuple[PartitionLog, Sequence[Damage]]:
    """Return the log of some records, each in a batch of its own, and what of them is no record."""
    ordered = table.sort_by("record_offset")
    is_first = np.diff(ordered["record_offset"].to_numpy(), prepend=-1) > 0  # one that comes twice counts once
    rows = ordered.filter(pa.array(is_first))
    times = pc.fill_null(rows["timestamp_ms"], NO_TIMESTAMP)
    rows = rows.set_column(rows.column_names.index("timestamp_ms"), "timestamp_ms", times)
    of_batch = {"batch_base_offset": rows["record_offset"], "file": "", "timestamp_type": "create", "magic": 2}
    for name, value in of_batch.items():
        rows = rows.append_column(name, value if isinstance(value, pa.ChunkedArray) else pa.repeat(value, len(rows)))
    rows = rows.append_column("error", pa.nulls(len(rows), pa.string()))
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, compression="none")
    built = build_segments("records", sink.getvalue().to_pybytes(), PARQUET)
    segments = [segment for log in built.logs() for segment in log.segments] or [Segment("", None, b"")]
    untold = [replace(one, missing_columns=one.missing_columns | missing) for one in segments]
    return PartitionLog(number, tuple(untold), selection=SELECTION), built.damages
