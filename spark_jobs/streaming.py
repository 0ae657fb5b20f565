"""Read a log that grows as a stream: the driver says how far it goes, tasks read slices of it.

``spark.readStream.format("offsets_log")`` over directories or stores. A stream's offsets are places in the logs, one of
each offsets partition (`growing`): a batch between two of them is the same after a restart, and a log that is not the
one it was any more is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from offsets_log.columnar.materialize.arrow import schema_of
from offsets_log.errors import InputError
from offsets_log.following.growth import SegmentFile
from spark_jobs.answers import OFFSET_OF, OneLog, Told
from spark_jobs.growing import Advance, Folder, Slice, open_folders, place_of, told_of
from spark_jobs.levels import LEVELS, batches, columns_of
from spark_jobs.options import STREAMED, SourceOptions

try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, SupportsTriggerAvailableNow
except ImportError:  # releases before 4.2 have none of them, and ask for no limit
    ReadAllAvailable = ReadLimit = ReadMaxBytes = SupportsTriggerAvailableNow = type("Unknown", (), {})  # type: ignore[assignment, misc]

TASK_BYTES = 1 << 22
"""Small slices are read by one task, up to about so many bytes."""
NO_FILE = SegmentFile(-1, "", 0)
Offsets = dict[str, Any]
"""Name of the offsets partition → its place, as Spark keeps it in a checkpoint."""
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
            if getattr(reading, name) not in ((), None):
                raise InputError(f"the option {name} does not go with a stream")
        self.schema = schema
        self.reading = replace(reading, columns=tuple(schema.names))
        columns_of(self.reading)

        self._frozen: dict[str, SegmentFile] | None = None
        self._planned: tuple[Offsets, Offsets, list[Slice]] | None = None

    @cached_property
    def _look(self) -> Callable[[], list[Folder]]:
        return open_folders(self.reading)

    def _folders(self, start: Offsets) -> list[Folder]:
        folders = self._look()
        for name in start.keys() - {folder.name for folder in folders}:
            raise InputError(f"offsets partition {name}, of which records were read, is not there any more")
        return folders

    def initialOffset(self) -> Offsets:
        """Begin at the begin of every log."""
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return what ``maxBytesPerTrigger`` says."""
        return (
            ReadAllAvailable()
            if self.reading.max_bytes_per_trigger is None
            else ReadMaxBytes(self.reading.max_bytes_per_trigger)
        )

    def prepareForTriggerAvailableNow(self) -> None:
        """Go no further than what is there now."""
        self._frozen = {folder.name: max(folder.files(), default=NO_FILE) for folder in self._look()}

    def latestOffset(self, start: Offsets | None = None, limit: ReadLimit | None = None) -> Offsets:
        """Return how far the logs go, or as far as the limit allows, of which each gets its part by what is new in it.

        Releases before 4.2 tell neither a start nor a limit.
        """
        start, grown = start or {}, list[Advance]()
        for folder in self._folders(start):
            last = None if self._frozen is None else self._frozen.get(folder.name, NO_FILE)
            grown.append(Advance.begin(folder, place_of(start.get(folder.name)), last))
        new_bytes = max(sum(one.new_bytes for one in grown), 1)
        for one in grown:
            one.run(max(limit.max_bytes * one.new_bytes // new_bytes, 1) if isinstance(limit, ReadMaxBytes) else None)
        end = start | {one.folder.name: told_of(one.place) for one in grown if one.place is not None}
        self._planned = start, end, [made for one in grown for made in one.slices]
        return end

    def slices(self, start: Offsets, end: Offsets) -> list[Slice]:
        """Return what stands between two places of each log: the same as when the second was told."""
        if self._planned is not None and self._planned[:2] == (start, end):
            return self._planned[2]
        slices: list[Slice] = []
        for folder in self._folders(end):
            upto = place_of(end.get(folder.name))
            if upto is not None and start.get(folder.name) != end[folder.name]:
                here = Advance.begin(folder, upto).place or upto
                last = SegmentFile(here.base_offset, "", here.position)
                made = Advance.begin(folder, place_of(start.get(folder.name)), last)
                made.run()
                slices += made.slices
        return slices

    def partitions(self, start: Offsets, end: Offsets) -> Sequence[InputPartition]:
        """Return a partition for each large slice, and for several small ones."""
        made: list[list[Slice]] = []
        size_bytes = TASK_BYTES
        for one in self.slices(start, end):
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
            rows = [[one.folder.number for one in partition.slices], [one.size_bytes for one in partition.slices]]
            tables: Iterator[pa.Table] = iter([pa.table(rows, schema_of(LEVELS[STREAMED[-1]]))])
        else:
            tables = (table for one in partition.slices for table in _rows(one, self.reading))
        yield from batches(tables, self.schema)


def _rows(one: Slice, reading: SourceOptions) -> Iterator[pa.Table]:
    """Yield the records of a slice that are not in the log before it, with their positions in the file."""
    offset = OFFSET_OF[reading.level]
    with ExitStack() as stack:
        for table in OneLog(one.read(), reading, Told(), stack).tables(reading.level):
            at = table.schema.get_field_index("position")
            moved = table.set_column(at, table.schema.field(at), pc.add(table["position"], one.start.position))
            yield moved.filter(pc.greater(moved[offset], one.start.last_offset))
