"""The levels that a read may have, and their columns: names and types of the commands' tables.

A time ``X_ms`` of a command is here ``X``, a timestamp; ``X_ms`` stands beside it, for times that microseconds of 64
bits cannot hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from offsets_log.columnar.events.rows import EVENT_COLUMNS
from offsets_log.columnar.materialize.arrow import schema_of
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

GROWTH_COLUMNS = (
    OFFSETS_PARTITION_COLUMN,
    Column("size_bytes", "bigint", "bytes of whole batches that are new"),
)
"""Of streams: which partitions grew."""
AGES = frozenset({"age_ms", "log_age_ms", "commit_age_ms"})
"""Columns that no level has: the clock, and other partitions, change them."""
TIMELESS_COLUMNS = tuple(column for column in TRANSACTION_COLUMNS if column.name not in AGES)
SETTLED_COLUMNS = tuple(column for column in GROUPS_COLUMNS if column.name not in AGES)
LEVELS = {
    "offsets": (*COMPACT_COLUMNS, UNSTABLE, DOUBTFUL),
    "pending": PENDING_COLUMNS,
    "groups": (*SETTLED_COLUMNS, groups.DOUBTFUL),
    "members": MEMORY_COLUMNS["members"],
    "transactions": TIMELESS_COLUMNS,
    "history": HISTORY_COLUMNS,
    "problems": PROBLEM_COLUMNS,
    "records": EVENT_COLUMNS,
    "raw_records": RECORD_COLUMNS,
    "growth": GROWTH_COLUMNS,
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
    return tuple(chosen(level, reading.columns or tuple(level), reading.level))


def chosen(level: dict[str, Column], names: Sequence[str], of: str) -> Iterator[Column]:
    """Yield columns by their names. Raises InputError."""
    for name in names:
        if name not in level:
            raise InputError(f"the level {of} has no column {name!r}; it has {', '.join(level)}")
        yield level[name]


def as_read(table: pa.Table, names: Sequence[str], schema: pa.Schema) -> pa.Table:
    """Return a level's rows with the columns of a read, of which some may be times of others.

    Args:
        names: those of the read.
        schema: its types.
    """
    return with_moments(table).select(names).cast(schema)


def plain_schema(level: str) -> pa.Schema:
    """Return the schema of a level's rows before `as_read`."""
    return schema_of(LEVELS[level])
