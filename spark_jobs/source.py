"""Provide the Python data source ``offsets_log``: files of ``__consumer_offsets`` as tables.

``spark.read.format("offsets_log").option("level", …).load(path)``; `options.SourceOptions` describes the options.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from offsets_log.columnar.materialize.arrow import arrow_type
from offsets_log.errors import InputError
from offsets_log.rows.tables import Column
from spark_jobs.answers import Told, rows
from spark_jobs.driver import Plan, parts_to_read, plan_reading
from spark_jobs.files import LogFiles
from spark_jobs.kernels import kernels_for
from spark_jobs.levels import batches, columns_of
from spark_jobs.options import SourceOptions, parse
from spark_jobs.streaming import LogStreamReader

FORMAT = "offsets_log"


def schema_text(columns: Sequence[Column]) -> str:
    """Return columns as Spark's DDL."""
    return ", ".join(
        f"`{column.name}` {'string' if column.sql_type == 'json' else column.sql_type}" for column in columns
    )


def arrow_schema(schema: Any) -> pa.Schema:
    """Return the Arrow schema of Spark's schema, a user's or a level's. Raises InputError: rows have no such type."""
    fields = []
    for field in schema.fields:
        kind = field.dataType.simpleString()
        try:
            fields.append(pa.field(field.name, arrow_type(kind)))
        except KeyError:
            raise InputError(f"the column {field.name} cannot be read as {kind}") from None
    return pa.schema(fields)


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
        """Return a reader for the columns of a schema, a user's or the level's."""
        return OffsetsLogReader(parse(self.options), arrow_schema(schema))

    def streamReader(self, schema: Any) -> LogStreamReader:
        """Return a reader of what is yet to come, too."""
        return LogStreamReader(parse(self.options), arrow_schema(schema))


@dataclass
class LogPartition(InputPartition):
    """A log or a part of it, and what its task is told."""

    files: LogFiles
    told: Told


class OffsetsLogReader(DataSourceReader):
    """Plans at the driver, reads in tasks."""

    def __init__(self, reading: SourceOptions, schema: pa.Schema) -> None:
        self.schema = schema
        self.reading = replace(reading, columns=tuple(schema.names))
        columns_of(self.reading)

    @cached_property
    def _found(self) -> Plan:
        return plan_reading(self.reading)

    def __getstate__(self) -> dict[str, Any]:
        """Return what tasks get, kernels too: Spark takes it before it asks for partitions."""
        state = {name: value for name, value in self.__dict__.items() if name != "_found"}
        assert self._found  # the kernels are compiled then
        return state | {"kernels": kernels_for(self.reading.level)}

    def partitions(self) -> list[InputPartition]:
        """Return a partition for each offsets partition, for several pieces of it if it is large."""
        found = self._found
        return [LogPartition(files, found.told) for files in parts_to_read(found.logs, self.reading)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a log or a part of it; where there is none, Spark gives another partition."""
        if isinstance(partition, LogPartition):
            yield from batches(rows(partition.files, self.reading, partition.told), self.schema)


def register(spark: SparkSession | None = None) -> None:
    """Make ``format("offsets_log")`` known to a session, by default to the active one, where Spark does not find it.

    Raises:
        PySparkRuntimeError: there is no session.
    """
    (spark or SparkSession.active()).dataSource.register(OffsetsLogSource)
