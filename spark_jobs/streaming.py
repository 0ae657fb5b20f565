"""Read a log that grows as a stream: the driver says how far it goes, tasks read slices of it.

``spark.readStream.format("offsets_log")`` over directories or stores. A stream's offsets are places in the logs, one of
each offsets partition (`growing`): a batch between two of them is the same after a restart, and a log that is not the
one it was any more is an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from offsets_log.columnar.scan.reading import ScanOrder
from offsets_log.errors import InputError
from offsets_log.events import EVERYTHING
from offsets_log.following.growth import GrownPiece
from spark_jobs.growing import GrowingFiles, Offsets, Slice
from spark_jobs.growing_folders import open_folders
from spark_jobs.levels import as_read, columns_of, plain_schema
from spark_jobs.moved import ReadAllAvailable, ReadLimit, ReadMaxBytes, SupportsTriggerAvailableNow
from spark_jobs.options import STREAMED, SourceOptions
from spark_jobs.rows import RECORDS

TASK_BYTES = 1 << 22
"""Small slices are read by one task, up to about so many bytes."""
ROWS_IN_BATCH = 1 << 16
ONLY_AT_ONCE = ("until_offset", "until_time")
"""Options that make no sense for a stream."""


@dataclass
class SlicesPartition(InputPartition):
    """What one task reads."""

    slices: tuple[Slice, ...]


class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans batches at the driver, reads them in tasks.

    Raises:
        InputError: an option does not go with a stream.
    """

    def __init__(self, reading: SourceOptions, schema: pa.Schema) -> None:
        if reading.level not in STREAMED:
            raise InputError(f"a stream has the levels {' and '.join(STREAMED)}, not {reading.level}")
        for name in ONLY_AT_ONCE:
            if getattr(reading, name) != getattr(_DEFAULTS, name):
                raise InputError(f"the option {name} does not go with a stream")
        self.schema = schema
        self.reading = replace(reading, columns=tuple(schema.names))
        columns_of(self.reading)

    @cached_property
    def _grown(self) -> GrowingFiles:
        return GrowingFiles(open_folders(self.reading))

    def initialOffset(self) -> Offsets:
        """Begin at the begin of every log."""
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return what ``maxBytesPerTrigger`` says."""
        return ReadAllAvailable() if self.reading.max_bytes is None else ReadMaxBytes(self.reading.max_bytes)

    def latestOffset(self, start: Offsets | None = None, limit: ReadLimit | None = None) -> Offsets:
        """Return how far the logs go, or as far as the limit allows; releases before 4.2 tell neither."""
        return self._grown.latest(start or {}, limit.max_bytes if isinstance(limit, ReadMaxBytes) else None)

    def prepareForTriggerAvailableNow(self) -> None:
        """Go no further than what is there now."""
        self._grown.freeze()

    def partitions(self, start: Offsets, end: Offsets) -> Sequence[InputPartition]:
        """Return a partition for each large slice, and for several small ones."""
        made: list[list[Slice]] = []
        size_bytes = TASK_BYTES
        for one in self._grown.slices(start, end):
            if size_bytes + one.size_bytes > TASK_BYTES:
                made.append([])
                size_bytes = 0
            made[-1].append(one)
            size_bytes += one.size_bytes
        return [SlicesPartition(tuple(slices)) for slices in made]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of some slices."""
        assert isinstance(partition, SlicesPartition)
        if self.reading.level == STREAMED[-1]:
            rows = [[one.offsets_partition for one in partition.slices], [one.size_bytes for one in partition.slices]]
            tables: Iterator[pa.Table] = iter([pa.table(rows, plain_schema(STREAMED[-1]))])
        else:
            tables = (table for one in partition.slices for table in _rows(one.read(), self.reading))
        for table in tables:
            shown = as_read(table, self.reading.columns, self.schema)
            yield from shown.combine_chunks().to_batches(max_chunksize=ROWS_IN_BATCH)


_DEFAULTS = SourceOptions(paths=())


def _rows(piece: GrownPiece, reading: SourceOptions) -> Iterator[pa.Table]:
    """Yield the records of a piece, with the positions that they have in their file."""
    order = ScanOrder(piece.log, EVERYTHING, reading.kafka)
    for table in RECORDS[reading.level](order, piece.cursor, order.end, reading):
        at = table.schema.get_field_index("position")
        yield table.set_column(at, table.schema.field(at), pc.add(table["position"], piece.position))
