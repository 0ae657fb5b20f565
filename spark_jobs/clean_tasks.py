"""Tasks of a cleaner's round: each gets a value with all that it needs, with files but without their bytes.

A task holds the distinct keys of the segment, or the group of segments, that it reads. Of the new segment it holds the
indexes, and those bytes that are not copied from a file.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from offsets_log.broker.bulk import Follower
from offsets_log.broker.indexes import AbortedTransaction, Indexing
from offsets_log.broker.producers import Producers
from offsets_log.broker.recovery import OpenLog
from offsets_log.broker.segment_writer import SegmentWriter
from offsets_log.cleaner.bounds import Bounds
from offsets_log.cleaner.bulk import PackedKeys, fill, packed
from offsets_log.cleaner.folder import FolderFile, new_files, segment_files
from offsets_log.cleaner.kept import Kept
from offsets_log.cleaner.offset_map import enter_segment
from offsets_log.cleaner.result import records_in
from offsets_log.cleaner.round import GroupCleaning, NewSegment, clean, new_offset_map
from offsets_log.cleaner.settings import Settings
from offsets_log.cleaner.steps import Begins, Steps, steps_of
from offsets_log.cleaner.transactions import Transactions
from offsets_log.errors import OffsetsLogError
from spark_jobs.places import TaskPlace
from spark_jobs.stored import Recovered, StoredFile, recovered

if TYPE_CHECKING:
    from collections.abc import Container

LEAST_OFFSET = -(1 << 63)
"""Below any offset."""
KEYS_SCHEMA = "unit int, key binary, last bigint, work binary"
MADE_SCHEMA = "unit int, made binary"
_KEYS = pa.schema([("unit", pa.int32()), ("key", pa.binary()), ("last", pa.int64()), ("work", pa.binary())])
_MADE = pa.schema([("unit", pa.int32()), ("made", pa.binary())])


class Folder(NamedTuple):
    """A partition's folder that is being made; a dry run has none."""

    place: TaskPlace
    name: str

    def write(self, file: FolderFile) -> str:
        """Write a file; return its name."""
        self.place.write(f"{self.name}/{file.name}", file.pieces, file.modified_ms)
        return file.name


class RecoveryWork(NamedTuple):
    """A segment that a broker would recover."""

    file: StoredFile
    index_interval_bytes: int
    in_bulk: bool

    def run(self) -> Recovered | None:
        """Return what `stored.recovered` returns."""
        return recovered(self.file, self.index_interval_bytes, in_bulk=self.in_bulk)


class StepsWork(NamedTuple):
    """A segment from a position on, with the places where aborted transactions begin."""

    file: StoredFile
    start: int
    begins: Begins
    in_bulk: bool

    def run(self) -> Steps:
        """Return what `steps_of` returns."""
        indexing = Indexing.of(self.file.base_offset, self.file.size_bytes)
        follower = Follower(self.file, indexing, checks=False) if self.in_bulk else None
        return steps_of(self.file, self.start, self.begins, follower)


class CopyWork(NamedTuple):
    """A segment that stays, and the folder for its copy; None if it is only counted.

    Attributes:
        beside: names of the files beside it.
    """

    file: StoredFile
    folder: Folder | None
    beside: Container[str]
    in_bulk: bool

    def run(self) -> tuple[int, list[str]]:
        """Copy the segment; return how many records it has, and the names of its files."""
        names = []
        if self.folder is not None:
            names = [self.folder.write(file) for file in segment_files(self.file, self.beside)]
        return records_in(self.file, in_bulk=self.in_bulk), names


@dataclass(frozen=True, slots=True)
class KeysWork:
    """The keys of one segment.

    Attributes:
        unit: the number of its group.
        number: its own number among all segments.
        start: position from which pass 1 reads it; None if it is clean.
        transactions: the transactions that pass 1 knows there; if some abort, more keys are looked up than entered.
    """

    file: StoredFile
    unit: int
    number: int
    start: int | None
    first_dirty: int
    transactions: Transactions
    meets_aborted: bool
    settings: Settings
    in_bulk: bool

    def tables(self) -> Iterator[pa.Table]:
        """Yield the keys: those entered, with their last offsets, and the others; or the error that ends pass 1."""
        if self.start == 0 and not self.meets_aborted:
            keys, error = self._entered(0, LEAST_OFFSET)
            if error is not None:
                yield self._failed(error)
            elif keys.last_offsets.min(initial=self.first_dirty) >= self.first_dirty:
                yield self._table(keys, with_offsets=True)
                return
        if self.start is not None:
            keys, error = self._entered(self.start, self.first_dirty)
            if error is not None:
                yield self._failed(error)
            yield self._table(keys, with_offsets=True)
        everything = replace(self, transactions=Transactions())
        keys, _ = everything._entered(0, LEAST_OFFSET)  # pass 2 ends at what cannot be read
        yield self._table(keys, with_offsets=False)

    def _entered(self, start: int, first_dirty: int) -> tuple[PackedKeys, OffsetsLogError | None]:
        """Return the segment's keys from a position on, up to where an error ends the pass."""
        transactions = pickle.loads(pickle.dumps(self.transactions))
        with closing(new_offset_map(self.settings, in_bulk=self.in_bulk)) as found:
            try:
                enter_segment(self.file, start, first_dirty, found, transactions)
            except OffsetsLogError as error:
                return packed(found), error
            return packed(found), None

    def _failed(self, error: OffsetsLogError) -> pa.Table:
        row = {"unit": -1, "key": None, "last": self.number, "work": pickle.dumps(error)}
        return pa.Table.from_pylist([row], _KEYS)

    def _table(self, keys: PackedKeys, *, with_offsets: bool) -> pa.Table:
        count = len(keys.last_offsets)
        ends = pa.py_buffer(np.ascontiguousarray(keys.begins, np.int32))
        column = pa.Array.from_buffers(pa.binary(), count, [None, ends, pa.py_buffer(np.ascontiguousarray(keys.arena))])
        last = pa.array(np.ascontiguousarray(keys.last_offsets)) if with_offsets else pa.nulls(count, pa.int64())
        unit = pa.repeat(pa.scalar(self.unit, pa.int32()), count)
        return pa.table([unit, column, last, pa.nulls(count, pa.binary())], schema=_KEYS)


def keys_of(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Turn pickled `KeysWork` to rows of keys, for Spark."""
    for batch in batches:
        for raw in batch.column(0).to_pylist():
            work: KeysWork = pickle.loads(raw)
            for table in work.tables():
                yield from table.to_batches(max_chunksize=1 << 16)


def standing(key: tuple[Any, ...], table: pa.Table) -> pa.Table:
    """Return for each key the last offset at which it stands: a row for each group that has it.

    The rows of a key must all be in this table. Keys that are entered nowhere are left out.
    """
    table = table.select(_KEYS.names).cast(_KEYS).combine_chunks()
    codes = table["key"].combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)
    last = np.full(codes.max(initial=0) + 1, LEAST_OFFSET)
    np.maximum.at(last, codes, table["last"].fill_null(LEAST_OFFSET).to_numpy())
    _, rows = np.unique(table["unit"].to_numpy() * len(last) + codes, return_index=True)
    rows = rows[last[codes[rows]] > LEAST_OFFSET]
    at = _KEYS.get_field_index("last")
    return table.take(pa.array(rows)).set_column(at, _KEYS.field(at), pa.array(last[codes[rows]]))


class GroupMade(NamedTuple):
    """The result of a group: its new segment without contents, why bytes are kept, names of files; or the error."""

    new: NewSegment | None
    kept: Kept
    names: Sequence[str]
    problem: OffsetsLogError | None = None


@dataclass(frozen=True, slots=True)
class GroupWork:
    """A group of segments that becomes one.

    Attributes:
        transactions: the transactions known where it begins.
        expected: for each segment the aborted transactions with data in it; None if its end cannot be read.
        latest: the last offset that the offset map covers.
    """

    files: Sequence[StoredFile]
    transactions: Transactions
    expected: Sequence[list[AbortedTransaction] | None]
    producers: Producers
    first_uncleanable: int
    latest: int
    old_tombstones_until: int
    settings: Settings
    folder: Folder | None
    in_bulk: bool

    def run(self, keys: PackedKeys) -> GroupMade:
        """Run pass 2."""
        expected = {file.base_offset: found for file, found in zip(self.files, self.expected, strict=True)}
        kept = Kept()
        with closing(new_offset_map(self.settings, in_bulk=self.in_bulk)) as offset_map:
            fill(offset_map, keys)
            offset_map.latest = self.latest
            group = GroupCleaning(
                offset_map, self.producers, self.first_uncleanable, self.settings, self.old_tombstones_until,
                self.transactions, lambda file, end: expected[file.base_offset] or [], _no_advance,
            )  # fmt: skip
            try:
                new = group.clean(self.files, kept)
            except OffsetsLogError as error:
                return GroupMade(None, kept, (), error)
        return GroupMade(_bare(new), kept, _written(new, self.folder))


def clean_group(key: tuple[Any, ...], table: pa.Table) -> pa.Table:
    """Turn a group's keys and its pickled `GroupWork` to its pickled `GroupMade`, for Spark."""
    work: GroupWork = pickle.loads(table.filter(pc.is_valid(table["work"]))["work"][0].as_py())
    made = work.run(_keys_in(table.filter(pc.is_valid(table["key"]))))
    return pa.Table.from_pylist([{"unit": key[0].as_py(), "made": pickle.dumps(made)}], _MADE)


def _keys_in(table: pa.Table) -> PackedKeys:
    """Return the keys of a table, copied."""
    columns = table.combine_chunks()
    if not len(columns):
        return PackedKeys(np.zeros(0, np.uint8), np.zeros(1, np.int64), np.zeros(0, np.int64))
    keys = columns["key"].chunk(0).cast(pa.large_binary())
    _, ends, data = keys.buffers()
    begins = np.frombuffer(ends, np.int64)[keys.offset : keys.offset + len(keys) + 1]
    arena = np.frombuffer(data, np.uint8)[begins[0] : begins[-1]]
    return PackedKeys(arena, begins - begins[0], columns["last"].chunk(0).to_numpy())


class RoundMade(NamedTuple):
    """The result of a whole round, without contents."""

    outcome: str
    end_offset: int
    new: Sequence[NewSegment]
    kept: Kept
    problem: OffsetsLogError | None
    names: Sequence[str]


class RoundWork(NamedTuple):
    """A round that runs as one task."""

    opened: OpenLog
    bounds: Bounds
    settings: Settings
    folder: Folder | None
    in_bulk: bool

    def run(self) -> RoundMade:
        """Run both passes."""
        names: list[str] = []
        done = clean(
            self.opened, self.bounds, self.settings, lambda new: names.extend(_written(new, self.folder)),
            in_bulk=self.in_bulk,
        )  # fmt: skip
        new = [_bare(each) for each in done.new.values()]
        return RoundMade(done.outcome, done.end_offset, new, done.kept, done.problem, names)


def _written(new: NewSegment, folder: Folder | None) -> list[str]:
    return [] if folder is None else [folder.write(file) for file in new_files(new)]


def _bare(new: NewSegment) -> NewSegment:
    """Return a segment without contents and indexes."""
    base_offset = new.writer.base_offset
    return replace(new, writer=SegmentWriter(base_offset, Indexing.of(base_offset)))


def _no_advance(count: int) -> None:
    pass
