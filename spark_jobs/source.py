"""The Python data source ``offsets_log``: files of ``__consumer_offsets`` as DataFrames.

``spark.read.format("offsets_log").option("level", …).load(path)``; `options.Reading` says which options there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, EqualTo, Filter, In, InputPartition

from offsets_log.tables import Column
from spark_jobs.options import Reading, parse
from spark_jobs.pieces import columns_of, iter_tables
from spark_jobs.planning import Piece, plan
from spark_jobs.stores import find_logs

FORMAT = "offsets_log"
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
ROWS_IN_BATCH = 1 << 16
MOST_PIECE_BYTES = 1 << 30


def schema_text(columns: Sequence[Column]) -> str:
    """Columns as Spark's DDL."""
    return ", ".join(
        f"`{column.name}` {'string' if column.sql_type == 'json' else column.sql_type}" for column in columns
    )


class OffsetsLogSource(DataSource):
    """Registered under `FORMAT`."""

    @classmethod
    def name(cls) -> str:
        """What ``format`` takes."""
        return FORMAT

    def schema(self) -> str:
        """Of the level's columns."""
        return schema_text(columns_of(parse(self.options)))

    def reader(self, schema: Any) -> OffsetsLogReader:
        """A reader without filters of its own."""
        return OffsetsLogReader(parse(self.options))


class FilteringOffsetsLogSource(OffsetsLogSource):
    """The same where Spark hands filters over; elsewhere it refuses a reader that takes them."""

    def reader(self, schema: Any) -> OffsetsLogReader:
        """A reader that takes filters."""
        return FilteringOffsetsLogReader(parse(self.options))


@dataclass
class PiecePartition(InputPartition):
    """One piece of a log; None where there is none to read."""

    piece: Piece | None


class OffsetsLogReader(DataSourceReader):
    """Plans pieces at the driver, reads them in tasks."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading

    def partitions(self) -> list[InputPartition]:
        """One for each piece."""
        return [PiecePartition(piece) for piece in plan_reading(self.reading)] or [PiecePartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a piece."""
        assert isinstance(partition, PiecePartition)
        if partition.piece is not None:
            for table in iter_tables(partition.piece, self.reading):
                yield from table.combine_chunks().to_batches(max_chunksize=ROWS_IN_BATCH)


class FilteringOffsetsLogReader(OffsetsLogReader):
    """Takes over ``column = value`` and ``column IN (…)`` of `PUSHED`, so that other logs and rows are not made."""

    def pushFilters(self, filters: list[Filter]) -> Iterator[Filter]:
        """Gives back all filters: Spark applies them too, to what is left."""
        for given in filters:
            narrowed = self._narrowed(given)
            if narrowed is not None:
                self.reading = narrowed
            yield given

    def _narrowed(self, given: Filter) -> Reading | None:
        match given:
            case EqualTo(attribute=(name,), value=value):
                values: tuple[Any, ...] = (value,)
            case In(attribute=(name,), value=several):
                values = tuple(several)
            case _:
                return None
        attribute = PUSHED[self.reading.level].get(name)
        if attribute == "offsets_partition" and all(isinstance(value, int) for value in values):
            asked = self.reading.offsets_partition
            return replace(self.reading, offsets_partition=tuple(v for v in values if not asked or v in asked) or (-1,))
        if attribute == "group" and not self.reading.group and all(isinstance(value, str) for value in values):
            return replace(self.reading, group=tuple(map(_literal, values)))
        return None


PUSHED = {
    "records": {"partition": "offsets_partition"},
    "events": {"offsets_partition": "offsets_partition", "group": "group"},
    "partials": {"offsets_partition": "offsets_partition"},
}
"""Level → column → the option that does the same. Rows of partials without a group belong to every group."""


def _literal(name: str) -> str:
    """A glob that only this name matches."""
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in name)


def plan_reading(reading: Reading) -> list[Piece]:
    """The pieces of what was asked for. Raises InputError."""
    with ExitStack() as stack:
        found = find_logs(
            reading.paths,
            stack,
            as_partition=reading.as_partition,
            partitions=[p for p in reading.offsets_partition if p >= 0],
            options=reading.storage_options,
        )
        logs = [replace(log, notes=(*found.notes, *log.notes)) if i == 0 else log for i, log in enumerate(found.logs)]
        if -1 in reading.offsets_partition:
            return []
        piece_bytes = reading.piece_bytes
        if reading.pieces is not None:
            total = sum(file.size for log in logs for file in log.files)
            piece_bytes = min(max(total // reading.pieces, 1), MOST_PIECE_BYTES)
        return plan(logs, piece_bytes=piece_bytes, split=reading.split)


def register(spark: SparkSession | None = None) -> None:
    """Make ``format("offsets_log")`` known to a session; by default to the active one.

    Again after `PUSHDOWN` was changed: Spark refuses readers that take filters where that is off.
    """
    session = spark or SparkSession.getActiveSession()
    if session is None:
        raise RuntimeError("there is no Spark session yet: spark_jobs.register(spark) after making one")
    takes_filters = session.conf.get(PUSHDOWN, "false") == "true"
    session.dataSource.register(FilteringOffsetsLogSource if takes_filters else OffsetsLogSource)
