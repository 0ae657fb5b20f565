"""Records as files by offsets partition and day, as Spark finds partitions of tables: ``offsets_partition=3/day=…``."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from tempfile import TemporaryFile
from typing import IO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from offsets_log.columnar.events.rows import EVENT_COLUMNS
from offsets_log.columnar.materialize.arrow import schema_of
from offsets_log.table import with_moments
from spark_jobs.places import COMPRESSION, OutputPlace

IN_FOLDERS = ("offsets_partition",)
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""Spark's name for null in a folder's name."""
SCHEMA = schema_of(column for column in EVENT_COLUMNS if column.name not in IN_FOLDERS)
MOST_OPEN = 64
AT_ONCE = 8 << 20


def write_days(place: OutputPlace, tables: Iterable[pa.Table], offsets_partition: int | None, name: str) -> int:
    """Write the records of a piece, and return how many there are.

    Args:
        name: part of the files' names, of this piece alone.
    """
    folder = f"offsets_partition={NO_VALUE if offsets_partition is None else offsets_partition}"
    days = _Days(place, folder, name)
    with days.stack:
        written = 0
        for table in tables:
            written += len(table)
            day = pc.strftime(with_moments(table.select(["timestamp_ms"]))["timestamp"], format="%Y-%m-%d").fill_null(
                NO_VALUE
            )
            for one in pc.unique(day).to_pylist():
                days.add(one, table.filter(pc.equal(day, one)).select(SCHEMA.names))
        days.finish()
    return written


class _Days:
    """Files that are being written, one a day; they grow on a disk of this machine."""

    def __init__(self, place: OutputPlace, folder: str, name: str) -> None:
        self.stack = ExitStack()
        self._place, self._folder, self._name = place, folder, name
        self._open: dict[str, tuple[IO[bytes], pq.ParquetWriter]] = {}
        self._count = 0

    def add(self, day: str, table: pa.Table) -> None:
        """Add rows of a day."""
        if day not in self._open:
            if len(self._open) == MOST_OPEN:
                self._put(next(iter(self._open)))
            file = self.stack.enter_context(TemporaryFile())  # noqa: SIM115
            self._open[day] = file, pq.ParquetWriter(file, SCHEMA, compression=COMPRESSION)
        self._open[day][1].write_table(table.cast(SCHEMA))

    def finish(self) -> None:
        """Put all files into their places."""
        for day in list(self._open):
            self._put(day)

    def _put(self, day: str) -> None:
        file, writer = self._open.pop(day)
        writer.close()
        file.seek(0)

        def copy(to: IO[bytes]) -> None:
            while data := file.read(AT_ONCE):
                to.write(data)

        self._place.put(f"{self._folder}/day={day}/part-{self._name}-{self._count:03}.parquet", copy)
        self._count += 1
        file.close()
