"""Provide the Python data source ``offsets_log``: files of ``__consumer_offsets`` as DataFrames.

``spark.read.format("offsets_log").option("level", …).load(path)``; `options.SourceOptions` describes the options.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, EqualTo, Filter, In, InputPartition

from offsets_log.errors import InputError
from offsets_log.rows.asked_names import literal
from offsets_log.rows.tables import Column
from spark_jobs.files import find_logs
from spark_jobs.options import SourceOptions, parse
from spark_jobs.pieces import LEVELS, columns_of, iter_tables
from spark_jobs.planning import FoundLog, PieceFiles, plan
from spark_jobs.streaming import LogStreamReader

FORMAT = "offsets_log"
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
ROWS_IN_BATCH = 1 << 16
MOST_PIECE_BYTES = 1 << 30
"""Approximate maximum size of a piece, if the reading gives the number of pieces."""


def schema_text(columns: Sequence[Column]) -> str:
    """Return columns as Spark's DDL."""
    return ", ".join(
        f"`{column.name}` {'string' if column.sql_type == 'json' else column.sql_type}" for column in columns
    )


class OffsetsLogSource(DataSource):
    """The data source registered under `FORMAT`."""

    @classmethod
    def name(cls) -> str:
        """Return the name that ``format`` takes."""
        return FORMAT

    def schema(self) -> str:
        """Return the schema of the level's columns."""
        return schema_text(columns_of(parse(self.options)))

    def reader(self, schema: Any) -> OffsetsLogReader:
        """Return a reader that takes no filters."""
        return OffsetsLogReader(parse(self.options))

    def streamReader(self, schema: Any) -> LogStreamReader:
        """Return a reader of what is yet to come, too."""
        return LogStreamReader(parse(self.options))


class FilteringOffsetsLogSource(OffsetsLogSource):
    """The data source for sessions where Spark hands filters over; elsewhere Spark refuses a reader that takes them."""

    def reader(self, schema: Any) -> OffsetsLogReader:
        """Return a reader that takes filters, if the options ask for one."""
        reading = parse(self.options)
        return (FilteringOffsetsLogReader if reading.push_filters else OffsetsLogReader)(reading)


@dataclass
class PiecePartition(InputPartition):
    """One piece of a log; None where there is none to read."""

    piece: PieceFiles | None


class OffsetsLogReader(DataSourceReader):
    """Plans pieces at the driver, reads them in tasks."""

    def __init__(self, reading: SourceOptions) -> None:
        self.reading = reading

    def partitions(self) -> list[InputPartition]:
        """Return one partition for each piece."""
        return [PiecePartition(piece) for piece in plan_reading(self.reading)] or [PiecePartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a piece."""
        assert isinstance(partition, PiecePartition)
        if partition.piece is not None:
            for table in iter_tables(partition.piece, self.reading):
                yield from table.combine_chunks().to_batches(max_chunksize=ROWS_IN_BATCH)


class FilteringOffsetsLogReader(OffsetsLogReader):
    """Takes over ``column = value`` and ``column IN (…)`` of `PUSHED`, so that other logs and rows are not read.

    It returns all filters: Spark applies them too, to the remaining rows.
    """

    def __init__(self, reading: SourceOptions) -> None:
        super().__init__(reading)
        self.wanted: set[Any] | None = None

    def pushFilters(self, filters: list[Filter]) -> Iterator[Filter]:
        """Narrow the reading by filters, and yield all of them."""
        for given in filters:
            match given:
                case EqualTo(attribute=(name,), value=value):
                    self._narrow(name, (value,))
                case In(attribute=(name,), value=several):
                    self._narrow(name, tuple(several))
            yield given

    def _narrow(self, name: str, values: tuple[Any, ...]) -> None:
        option = PUSHED[self.reading.level].get(name)
        if option == "offsets_partition":
            self.wanted = set(values) if self.wanted is None else self.wanted & set(values)
        elif option == "group" and not self.reading.group:
            self.reading = replace(self.reading, group=tuple(map(literal, values)))

    def partitions(self) -> list[InputPartition]:
        """Return one partition for each piece of a wanted offsets partition."""
        pieces = plan_reading(self.reading)
        chosen = [piece for piece in pieces if self.wanted is None or piece.offsets_partition in self.wanted]
        return [PiecePartition(piece) for piece in chosen] or [PiecePartition(None)]


PUSHED = {
    "records": {"partition": "offsets_partition"},
    "events": {"offsets_partition": "offsets_partition", "group": "group"},
    "partials": {"offsets_partition": "offsets_partition"},
}
"""Level → column → the option that does the same. Rows of partials without a group belong to every group."""


def plan_reading(reading: SourceOptions) -> list[PieceFiles]:
    """Return the pieces of what was asked for.

    Raises:
        InputError: nothing was found, or something cannot be read.
    """
    if reading.client or reading.level not in LEVELS:
        raise InputError("this is for readStream")
    with ExitStack() as stack:
        found = find_logs(
            reading.paths,
            stack,
            as_partition=reading.as_partition,
            partitions=reading.offsets_partition,
            options=reading.storage_options,
        )
        logs = [replace(log, notes=(*found.notes, *log.notes)) if i == 0 else log for i, log in enumerate(found.logs)]
        piece_bytes = reading.piece_bytes
        if reading.pieces is not None:
            total = sum(log.size_bytes for log in logs)
            piece_bytes = min(max(total // reading.pieces, 1), MOST_PIECE_BYTES)
        pieces = plan([*map(FoundLog.of, logs)], piece_bytes=piece_bytes, split=reading.split)
        return [replace(piece, absent=tuple(found.absent)) if i == 0 else piece for i, piece in enumerate(pieces)]


def register(spark: SparkSession | None = None) -> None:
    """Make ``format("offsets_log")`` known to a session; by default to the active one.

    Call it again after `PUSHDOWN` was changed: Spark refuses readers that take filters where it is off.

    Raises:
        RuntimeError: there is no session.
    """
    session = spark or SparkSession.getActiveSession()
    if session is None:
        raise RuntimeError("there is no Spark session yet: spark_jobs.register(spark) after making one")
    takes_filters = session.conf.get(PUSHDOWN, "false") == "true"
    session.dataSource.register(FilteringOffsetsLogSource if takes_filters else OffsetsLogSource)
