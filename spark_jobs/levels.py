"""The levels that a read may have, and their columns: names and types of the commands' tables.

A time ``X_ms`` of a command is here ``X``, a timestamp; ``X_ms`` stands beside it, for times that microseconds of 64
bits cannot hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from offsets_log.columnar.events.rows import EVENT_COLUMNS
from offsets_log.columnar.shuffle.records import HEADERS, RECORD_COLUMNS
from offsets_log.coordinator_document import MEMORY_COLUMNS
from offsets_log.data_directory.open_transactions import TRANSACTION_COLUMNS
from offsets_log.errors import InputError
from offsets_log.investigate.groups import GROUPS_COLUMNS
from offsets_log.investigate.history_rows import HISTORY_COLUMNS
from offsets_log.questions import groups
from offsets_log.questions.offsets_asked import DOUBTFUL, UNSTABLE
from offsets_log.rows.problems import PROBLEM_COLUMNS
from offsets_log.rows.tables import (
    COMPACT_COLUMNS,
    OFFSETS_PARTITION_COLUMN,
    PENDING_COLUMNS,
    Column,
)
from offsets_log.table import is_moment, with_moments
from spark_jobs.options import SourceOptions

ROWS_IN_BATCH = 1 << 16
AGES = frozenset({"age_ms", "log_age_ms", "commit_age_ms"})
"""Columns that no level has: the clock, and other partitions, change them."""
LEVELS = {
    level: tuple(column for column in columns if column.name not in AGES)
    for level, columns in {
        "offsets": (*COMPACT_COLUMNS, UNSTABLE, DOUBTFUL),
        "pending": PENDING_COLUMNS,
        "groups": (*GROUPS_COLUMNS, groups.DOUBTFUL),
        "members": MEMORY_COLUMNS["members"],
        "transactions": TRANSACTION_COLUMNS,
        "history": HISTORY_COLUMNS,
        "problems": PROBLEM_COLUMNS,
        "records": EVENT_COLUMNS,
        "raw_records": RECORD_COLUMNS,
        "growth": (OFFSETS_PARTITION_COLUMN, Column("size_bytes", "bigint", "bytes of whole batches that are new")),
    }.items()
}
"""Level → its columns, as the library's tables have them, but for `AGES`."""


def timed(columns: Sequence[Column]) -> Iterator[Column]:
    """Yield columns, each time before its milliseconds."""
    for column in columns:
        if is_moment(column.name):
            yield Column(column.name.removesuffix("_ms"), "timestamp", column.doc)
        yield column


def columns_of(reading: SourceOptions) -> tuple[Column, ...]:
    """Return the columns of a read. Raises InputError: some are asked for that are not there."""
    left_out = {HEADERS.name} if not reading.include_headers else set()
    left_out |= {UNSTABLE.name} if not reading.unstable else set()
    level = {column.name: column for column in timed(LEVELS[reading.level]) if column.name not in left_out}
    for name in reading.columns:
        if name not in level:
            raise InputError(f"the level {reading.level} has no column {name!r}; it has {', '.join(level)}")
    return tuple(level[name] for name in reading.columns or level)


def as_read(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return a level's rows with the columns of a read, of which some may be times of others."""
    return with_moments(table).select(schema.names).cast(schema)


def batches(tables: Iterable[pa.Table], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the same in batches as Spark takes them."""
    for table in tables:
        yield from as_read(table, schema).combine_chunks().to_batches(max_chunksize=ROWS_IN_BATCH)
