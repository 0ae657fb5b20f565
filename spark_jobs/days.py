"""Records as files by offsets partition and day, as Spark finds partitions of tables: ``offsets_partition=3/day=…``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from offsets_log.columnar.events.rows import EVENT_COLUMNS
from offsets_log.columnar.events.tables import owned
from offsets_log.columnar.materialize.arrow import schema_of
from offsets_log.table import with_moments
from spark_jobs.directories import COMPRESSION, Directory

DAY = pa.field("day", pa.string())
SCHEMA = schema_of(EVENT_COLUMNS).append(DAY)
FOLDERS = ds.partitioning(pa.schema([SCHEMA.field("offsets_partition"), DAY]), flavor="hive")
MOST_OPEN = 64


def write_days(place: Directory, tables: Iterable[pa.Table], name: str) -> int:
    """Write the records of a piece, and return how many there are; files grow on a disk of this machine.

    Args:
        name: part of the files' names, of this piece alone.
    """
    written = 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal written
        for table in tables:
            written += len(table)
            times = with_moments(table.select(["timestamp_ms"]))["timestamp"]
            with_day = owned(table).append_column(DAY, pc.strftime(times, format="%Y-%m-%d"))
            yield from with_day.select(SCHEMA.names).cast(SCHEMA).to_batches()

    with TemporaryDirectory() as here:
        ds.write_dataset(
            batches(),
            here,
            schema=SCHEMA,
            format="parquet",
            partitioning=FOLDERS,
            basename_template=f"part-{name}-{{i}}.parquet",
            file_options=ds.ParquetFileFormat().make_write_options(compression=COMPRESSION),
            max_open_files=MOST_OPEN,
            use_threads=False,
        )
        for path in sorted(Path(here).rglob("*.parquet")):
            with pa.memory_map(str(path)) as file:
                place.write(str(path.relative_to(here)), [file.read_buffer()])
    return written
