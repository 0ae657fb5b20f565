"""Tasks of a cleaner's round: each gets a value with all that it needs, with files but without their bytes.

A task of either pass holds the distinct keys of a part of the log, which begins and ends where groups of segments do.
Of the new segment it holds the indexes, and those bytes that are not copied from a file.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from offsets_log.broker.bulk import Follower
from offsets_log.broker.indexes import AbortedTransaction, Indexing
from offsets_log.broker.producers import Producers
from offsets_log.broker.recovery import OpenLog
from offsets_log.broker.segment_writer import SegmentWriter
from offsets_log.cleaner.bounds import Bounds
from offsets_log.cleaner.bulk import KeyTable, fill, packed
from offsets_log.cleaner.bulk_steps import StepNotes
from offsets_log.cleaner.folder import FolderFile, new_files, segment_files
from offsets_log.cleaner.group_cleaning import GroupCleaning, NewSegment
from offsets_log.cleaner.kept import Kept
from offsets_log.cleaner.offset_map import NOT_ENTERED, enter_segment
from offsets_log.cleaner.result import records_in
from offsets_log.cleaner.round import clean, new_offset_map
from offsets_log.cleaner.settings import Settings
from offsets_log.cleaner.steps import Begins, Steps, steps_of
from offsets_log.cleaner.transactions import Transactions
from offsets_log.columnar import arrays as a
from offsets_log.columnar.cleaning import table
from offsets_log.columnar.cleaning.indexing import UNCHECKED
from offsets_log.columnar.cleaning.table import PackedKeys
from offsets_log.errors import OffsetsLogError
from spark_jobs.places import TaskPlace
from spark_jobs.stored import Recovered, StoredFile, recovered

if TYPE_CHECKING:
    from collections.abc import Container


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
        notes = StepNotes(self.begins)
        follower = Follower(self.file, indexing, UNCHECKED, notes=notes.take) if self.in_bulk else None
        return steps_of(self.file, self.start, self.begins, follower, notes.positions)


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
    """The keys of a part of the log.

    Attributes:
        number: of the part.
        segments: with the position from which pass 1 reads each; None of those that are clean.
        transactions: the transactions that pass 1 knows where it begins.
    """

    number: int
    segments: Sequence[tuple[StoredFile, int | None]]
    first_dirty: int
    transactions: Transactions
    settings: Settings
    in_bulk: bool

    @property
    def size_bytes(self) -> int:
        """Size of the segments."""
        return sum(file.size_bytes for file, _ in self.segments)

    def found(self) -> Iterator[PackedKeys | Entered | Failed]:
        """Yield all keys: those entered with their last offsets, the others at `NOT_ENTERED`.

        Then the runs of batches that were entered in bulk, or the error that ends pass 1.
        """
        transactions = self.transactions.copy()
        with closing(new_offset_map(self.settings, in_bulk=self.in_bulk)) as found:
            found.notes_others = True
            try:
                for file, start in self.segments:
                    if start is not None:
                        enter_segment(file, start, self.first_dirty, found, transactions)
                    if start != 0:
                        found.note_all(file)
            except OffsetsLogError as error:
                yield Failed(self.number, error)
                return
            yield packed(found)
            yield Entered(found.entered if isinstance(found, KeyTable) else ())


class Entered(NamedTuple):
    """Runs of batches of which pass 2 need not read those without the last record of a key; see `KeyTable.trust`."""

    runs: Sequence[tuple[int, int, int]] = ()


class Failed(NamedTuple):
    """The error that ends pass 1, and the number of the part of which it cannot read something."""

    number: int
    error: OffsetsLogError


class Share(NamedTuple):
    """Keys of a part that are in one bucket, or runs of batches for the part."""

    number: int
    found: PackedKeys | Entered


def keys_of(raw: bytes, buckets: int) -> Iterator[tuple[int, Share | Failed]]:
    """Turn a pickled `KeysWork` to what each bucket gets of its keys; runs and an error are in the first one."""
    work: KeysWork = pickle.loads(raw)
    for found in work.found():
        if not isinstance(found, PackedKeys):
            yield 0, found if isinstance(found, Failed) else Share(work.number, found)
            continue
        places = np.zeros(len(found.last_offsets), np.int64)
        table.spread(found.arena, np.ascontiguousarray(found.begins), places, buckets)
        some = _divided(found, np.arange(len(places)), places)
        yield from ((bucket, Share(work.number, keys)) for bucket, keys in some)


def standing(items: Iterable[Share | Failed]) -> Iterator[tuple[int, PackedKeys | Entered | Failed]]:
    """Return for each key of a bucket the last offset at which it stands, to each part that has it.

    Keys that are entered nowhere are left out. Runs are passed on to their part, an error to the first one.
    """
    numbers_of, some = [], []
    for item in items:
        if isinstance(item, Failed):
            yield 0, item
        elif isinstance(item.found, Entered):
            yield item.number, item.found
        else:
            numbers_of.append(item.number)
            some.append(item.found)
    keys = joined(some)
    codes = _column(keys).dictionary_encode().indices.to_numpy().astype(np.int64)
    last = np.full(codes.max(initial=0) + 1, NOT_ENTERED)
    np.maximum.at(last, codes, keys.last_offsets)
    numbers = np.repeat(numbers_of, [len(each.last_offsets) for each in some])
    rows = np.flatnonzero(last[codes] > NOT_ENTERED)
    yield from _divided(keys._replace(last_offsets=last[codes]), rows, numbers[rows])


def joined(some: Sequence[PackedKeys]) -> PackedKeys:
    """Return several packs of keys as one."""
    ends = np.cumsum([0, *(int(keys.begins[-1] - keys.begins[0]) for keys in some)])
    begins = [keys.begins[:-1] - keys.begins[0] + end for keys, end in zip(some, ends, strict=False)]
    return PackedKeys(
        np.concatenate([np.zeros(0, np.uint8), *(keys.arena[keys.begins[0] : keys.begins[-1]] for keys in some)]),
        np.concatenate([*begins, ends[-1:]]),
        np.concatenate([np.zeros(0, np.int64), *(keys.last_offsets for keys in some)]),
    )


def _divided(keys: PackedKeys, rows: a.Int64s, places: a.Int64s) -> Iterator[tuple[int, PackedKeys]]:
    """Yield for each place, in their order, the keys in those of the rows that are to go there."""
    order = np.argsort(places, kind="stable")
    found, begins = np.unique(places[order], return_index=True)
    for place, some in zip(found.tolist(), np.split(rows[order], begins[1:]), strict=False):
        yield place, _taken(keys, some)


def _taken(keys: PackedKeys, rows: a.Int64s) -> PackedKeys:
    """Return the keys in these rows."""
    _, ends, data = (found := _column(keys).take(pa.array(rows))).buffers()
    begins = np.frombuffer(ends, np.int64, len(found) + 1)
    arena = np.frombuffer(b"" if data is None else data, np.uint8)
    return PackedKeys(arena[: begins[-1]], begins, keys.last_offsets[rows])


def _column(keys: PackedKeys) -> pa.Array:
    """Return the keys in Arrow, in the same memory."""
    ends, data = (pa.py_buffer(np.ascontiguousarray(each)) for each in (keys.begins, keys.arena))
    return pa.Array.from_buffers(pa.large_binary(), len(keys.last_offsets), [None, ends, data])


class GroupMade(NamedTuple):
    """The result of a group: its new segment without contents, why bytes are kept, names of files; or the error."""

    new: NewSegment | None
    kept: Kept
    names: Sequence[str]
    problem: OffsetsLogError | None = None


@dataclass(frozen=True, slots=True)
class GroupsWork:
    """A part of the log: groups of segments, each of which becomes one.

    Attributes:
        transactions: the transactions known where it begins.
        expected: for each segment the aborted transactions with data in it; None if its end cannot be read.
        latest: the last offset that the offset map covers.
    """

    groups: Sequence[Sequence[StoredFile]]
    transactions: Transactions
    expected: Mapping[int, list[AbortedTransaction] | None]
    producers: Producers
    first_dirty: int
    keeps_empty_at: int | None
    latest: int
    old_tombstones_until: int
    settings: Settings
    folder: Folder | None
    in_bulk: bool

    def run(self, keys: PackedKeys, runs: Iterable[tuple[int, int, int]] = ()) -> list[GroupMade]:
        """Run pass 2, with the part's keys and runs of its batches that were entered in bulk, up to an error."""
        made = []
        with closing(new_offset_map(self.settings, in_bulk=self.in_bulk)) as offset_map:
            fill(offset_map, keys)
            if isinstance(offset_map, KeyTable):
                offset_map.trust(runs, self.first_dirty)
            offset_map.latest = self.latest
            cleaning = GroupCleaning(
                offset_map, self.producers, self.keeps_empty_at, self.settings, self.old_tombstones_until,
                self.transactions, lambda file, end: self.expected[file.base_offset] or [], _no_advance,
            )  # fmt: skip
            for group in self.groups:
                try:
                    new, kept = cleaning.clean(group)
                except OffsetsLogError as error:
                    made.append(GroupMade(None, Kept(), (), error))
                    break
                made.append(GroupMade(_bare(new), kept, _written(new, self.folder)))
        return made


def clean_groups(items: Iterable[bytes | PackedKeys | Entered | Failed]) -> list[GroupMade | Failed]:
    """Run a pickled `GroupsWork` with what was found for the part; if pass 1 has failed, return only its errors."""
    given = [*items]
    failed = [item for item in given if isinstance(item, Failed)]
    if failed:
        return [*failed]
    (work,) = (pickle.loads(item) for item in given if isinstance(item, bytes))
    runs = (run for item in given if isinstance(item, Entered) for run in item.runs)
    return [*work.run(joined([item for item in given if isinstance(item, PackedKeys)]), runs)]


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
