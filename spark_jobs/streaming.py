"""Read a log that grows as a stream: the driver says how far it goes, tasks read slices of it.

``spark.readStream.format("offsets_log")`` over directories, stores or a cluster. A stream's offsets are places in the
logs, one of each offsets partition (`growing`, `fetching`): a batch between two of them is the same after a restart,
and a log that is not the one it was any more is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    SupportsTriggerAvailableNow,
)

from offsets_log.columnar.materialize.arrow import schema_of
from offsets_log.columnar.scan.layout import Scanner
from offsets_log.columnar.scan.reading import ScanPlace, Seen
from offsets_log.columnar.shuffle.pieces import Bounds, iter_event_tables
from offsets_log.columnar.shuffle.records import iter_record_tables
from offsets_log.errors import InputError
from offsets_log.events import EVERYTHING
from offsets_log.following.growth import GrownPiece
from offsets_log.rows.shown import Shown
from spark_jobs.effects import effect_table
from spark_jobs.growing import GrowingFiles, Offsets
from spark_jobs.growing_folders import open_folders
from spark_jobs.options import STREAMED, SourceOptions, matcher
from spark_jobs.pieces import columns_of

TASK_BYTES = 1 << 22
"""Small slices are read by one task, up to about so many bytes."""
ROWS_IN_BATCH = 1 << 16
ONLY_AT_ONCE = ("until_offset", "until_time", "push_filters", "pieces", "piece_bytes")
"""Options that make no sense for a stream."""


class Slice(Protocol):
    """Batches of one partition that a task reads."""

    @property
    def size_bytes(self) -> int:
        """How many bytes they have, about."""

    def pieces(self) -> Iterator[GrownPiece]:
        """Read them. Raises InputError: they are not there any more."""


class Grown(Protocol):
    """Logs that grow."""

    def latest(self, start: Offsets, most_bytes: int | None) -> Offsets:
        """Return how far they go, or as far as about so many bytes go."""

    def slices(self, start: Offsets, end: Offsets) -> Sequence[Slice]:
        """Return what stands between two places of each."""

    def freeze(self) -> None:
        """Go no further than what is there now."""

    def close(self) -> None:
        """Give back what is open."""


@dataclass
class SlicesPartition(InputPartition):
    """What one task reads."""

    slices: tuple[Slice, ...]


class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans batches at the driver, reads them in tasks.

    Raises:
        InputError: an option does not go with a stream.
    """

    def __init__(self, reading: SourceOptions) -> None:
        if reading.level not in STREAMED:
            raise InputError(f"a stream has the levels {' and '.join(STREAMED[:2])}, not {reading.level}")
        for name in ONLY_AT_ONCE:
            if getattr(reading, name) != getattr(_DEFAULTS, name):
                raise InputError(f"the option {name} does not go with a stream")
        self.reading = reading

    @cached_property
    def _grown(self) -> Grown:
        reading = self.reading
        if reading.client:
            from spark_jobs.fetching import GrowingCluster

            return GrowingCluster(reading.client, reading.offsets_partition)
        look = open_folders(
            reading.paths,
            as_partition=reading.as_partition,
            partitions=reading.offsets_partition,
            options=reading.storage_options,
        )
        return GrowingFiles(look)

    def initialOffset(self) -> Offsets:
        """Begin at the begin of every log."""
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return what ``maxBytesPerTrigger`` says."""
        return ReadAllAvailable() if self.reading.max_bytes is None else ReadMaxBytes(self.reading.max_bytes)

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:
        """Return how far the logs go, or as far as the limit allows."""
        return self._grown.latest(start, limit.max_bytes if isinstance(limit, ReadMaxBytes) else None)

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
        schema = schema_of(columns_of(self.reading))
        read = READERS[self.reading.level]
        pieces = (piece for one in partition.slices for piece in one.pieces())
        for table in (table for piece in pieces for table in read(piece, self.reading)):
            shown = table.select(schema.names).cast(schema)
            yield from shown.combine_chunks().to_batches(max_chunksize=ROWS_IN_BATCH)

    def stop(self) -> None:
        """Give back what is open."""
        if "_grown" in self.__dict__:
            self._grown.close()


_DEFAULTS = SourceOptions(paths=())


def _records(piece: GrownPiece, reading: SourceOptions) -> Iterator[pa.Table]:
    for table in iter_record_tables(piece.log, _bounds(piece), EVERYTHING, reading.kafka, note=_pass):
        yield _in_place(table, piece)


def _events(piece: GrownPiece, reading: SourceOptions) -> Iterator[pa.Table]:
    shown = Shown(matcher(reading.group), matcher(reading.topic))
    for table in iter_event_tables(piece.log, _bounds(piece), shown, EVERYTHING, reading.kafka, note=_pass):
        yield _in_place(table, piece)


def _effects(piece: GrownPiece, reading: SourceOptions) -> Iterator[pa.Table]:
    with Scanner() as scanner:
        yield effect_table(piece, scanner, reading)


def _bounds(piece: GrownPiece) -> Bounds:
    end = ScanPlace(len(piece.log.segments), 0)
    return Bounds(piece.cursor.place, piece.cursor.last_offset, end, next_first_offset=None)


def _pass(seen: Seen) -> None:
    """Tell nothing of what could not be read: rows have no place for it."""


def _in_place(table: pa.Table, piece: GrownPiece) -> pa.Table:
    """Return rows with the positions that they have in their file."""
    at = table.schema.get_field_index("position")
    return table.set_column(at, table.schema.field(at), pc.add(table["position"], piece.position))


READERS: dict[str, Callable[[GrownPiece, SourceOptions], Iterator[pa.Table]]] = {
    "records": _records,
    "events": _events,
    "effects": _effects,
}
