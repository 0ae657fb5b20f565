"""A round of the cleaner on a cluster: tasks for parts of a log write the same bytes as one machine.

    segments ─► recovered if a broker would ─► opened at the driver: indexes, producers ─► bounds, groups
             ─► what each does to transactions (`cleaner/steps.py`) ─► transactions known where each begins
             ─► parts: runs of groups, a task each
             ─► pass 1: keys of each part ─► shuffled: the last offset of each, to every part that has it
             ─► pass 2: new segments of each part, written to their final place
             ─► segments that stay: copied by a task each

The driver holds the indexes of the log, and the transactions that are open or aborted. A group, which becomes one
segment, is at most ``segment.bytes`` large. Some rounds run as one task: those of small logs, those whose offset map
has a limited size, which fills up in the log's order, and those over offsets that do not rise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

from offsets_log.broker.indexes import AbortedTransaction, OffsetIndex
from offsets_log.broker.log_file import LogFile
from offsets_log.broker.producers import files_between
from offsets_log.broker.recovery import OpenLog
from offsets_log.cleaner.bounds import Bounds
from offsets_log.cleaner.failures import SegmentOverflowError
from offsets_log.cleaner.folder import files_beside, segment_files, segments_kept
from offsets_log.cleaner.group_cleaning import ends_of
from offsets_log.cleaner.grouping import groups_of
from offsets_log.cleaner.kept import Kept
from offsets_log.cleaner.opening import open_for_cleaning, was_stopped_cleanly
from offsets_log.cleaner.result import kept_with, not_replaced
from offsets_log.cleaner.round import (
    ABORTED,
    CLEANED,
    FAILED,
    Round,
    active_producers,
    old_tombstones_until,
)
from offsets_log.cleaner.settings import Settings
from offsets_log.cleaner.steps import Steps, begins_in, begins_of, take_steps
from offsets_log.cleaner.transactions import Transactions, aborted_between
from offsets_log.errors import OffsetsLogError
from offsets_log.log_format.partition_log import PartitionLog
from spark_jobs.clean_tasks import (
    CopyWork,
    Folder,
    GroupMade,
    GroupsWork,
    KeysWork,
    RecoveryWork,
    RoundMade,
    RoundWork,
    StepsWork,
)
from spark_jobs.files import FoundFile
from spark_jobs.stored import Recovered, StoredFile, StoredStart, all_stored, stored_file, to_recover

ONE_TASK_BELOW_BYTES = 4 << 20
"""Logs smaller than this are not worth a shuffle."""

MOST_PART_BYTES = 1 << 29
"""About so much of a log a task of a pass has at most, for it holds the keys in it."""

Part = Sequence[Sequence[StoredFile]]
"""Groups of segments that one task has."""


class Work(Protocol):
    """The work of a task."""

    def run(self) -> Any:
        """Do it."""


class Cluster(Protocol):
    """A cluster that runs tasks."""

    def run(self, works: Sequence[Work]) -> list[Any]:
        """Run each work in a task; return the results in their order."""

    @property
    def pieces(self) -> int:
        """How many tasks a stage has at most, unless they would be large."""

    def meet(self, keys: Sequence[KeysWork], groups: Sequence[GroupsWork]) -> list[GroupMade]:
        """Run both passes over all parts of a log: tell each where its keys stand last in all; return groups' results.

        Raises:
            OffsetsLogError: pass 1 cannot read a part; the error is that of the first one in the log.
        """


@dataclass(slots=True)
class Rounds:
    """The rounds of a run."""

    cluster: Cluster
    settings: Settings

    def open(self, log: PartitionLog, stopped_cleanly: bool | None, *, in_bulk: bool) -> OpenLog:
        """Start a broker over a log's files, as `open_for_cleaning`."""
        found = {segment.file: FoundFile.of(log, segment) for segment in log.segments}
        is_clean = was_stopped_cleanly(log) if stopped_cleanly is None else stopped_cleanly
        known = self._recovered(log, found, is_clean, in_bulk)

        def kind(log: PartitionLog, **how: Any) -> StoredStart:
            return StoredStart(log, found=found, recovered=known, **how)

        opened = open_for_cleaning(log, self.settings, stopped_cleanly=is_clean, in_bulk=in_bulk, kind=kind)
        all_stored(opened, found)
        return opened

    def _recovered(
        self, log: PartitionLog, found: Mapping[str, FoundFile], stopped_cleanly: bool, in_bulk: bool
    ) -> dict[int, Recovered]:
        bases = {*to_recover(log, stopped_cleanly=stopped_cleanly)}
        works = []
        for segment in log.segments:
            if (segment.base_offset or 0) in bases:
                file = stored_file(_bare_file(segment.base_offset or 0, segment.file), segment, found[segment.file])
                works.append(RecoveryWork(file, self.settings.index_interval_bytes, in_bulk))
        made = self.cluster.run(works)
        return {work.file.base_offset: each for work, each in zip(works, made, strict=True) if each is not None}

    def clean(
        self, log: PartitionLog, opened: OpenLog, bounds: Bounds, folder: Folder | None, *, in_bulk: bool
    ) -> tuple[Round, Kept]:
        """Clean one partition and write its folder; return the round, and why each byte is kept."""
        done = Round(opened, bounds, self.settings, end_offset=bounds.first_dirty)
        names: list[str] = []
        if bounds.cleanable_bytes:
            _OneRound(self.cluster, done, folder, in_bulk, names).run()
        copied = {file.base_offset for file in segments_kept(done) if isinstance(file, StoredFile)}
        beside = frozenset(name for name in log.beside if name.endswith(".txnindex"))
        works = [
            CopyWork(file, folder if file.base_offset in copied else None, beside, in_bulk)
            for file in map(_stored, not_replaced(done))
        ]
        made = self.cluster.run(works)
        counts = {work.file.base_offset: count for work, (count, _) in zip(works, made, strict=True)}
        if folder is not None:
            names += (name for _, written in made for name in written)
            for file in done.parts:
                names += map(folder.write, segment_files(file, log.beside))
            names += map(folder.write, files_beside(log, done))
            folder.place.keep(folder.name, names)
        return done, kept_with(done, counts)


def _bare_file(base_offset: int, name: str) -> LogFile:
    return LogFile(base_offset, name, memoryview(b""), 0, OffsetIndex(base_offset), finds_by_base_offset=False)


def _stored(file: LogFile) -> StoredFile:
    assert isinstance(file, StoredFile)
    return file


@dataclass(slots=True)
class _OneRound:
    """The passes over one partition.

    Attributes:
        names: takes the names of files that are written.
    """

    cluster: Cluster
    done: Round
    folder: Folder | None
    in_bulk: bool
    names: list[str]

    def run(self) -> None:
        """Run the round to its end, or to the error that ends it."""
        done = self.done
        try:
            size_bytes = sum(file.size_bytes for file in done.opened.files.values())
            is_small = size_bytes < ONE_TASK_BELOW_BYTES
            if is_small or done.settings.dedupe_buffer_bytes is not None or not self._in_tasks():
                self._in_one_task()
        except SegmentOverflowError as error:
            done.outcome, done.problem = ABORTED, error
        except OffsetsLogError as error:
            done.outcome, done.problem = FAILED, error

    def _in_one_task(self) -> None:
        done = self.done
        work = RoundWork(done.opened, done.bounds, done.settings, self.folder, self.in_bulk)
        made: RoundMade = self.cluster.run([work])[0]
        for new in made.new:
            done.new[new.writer.base_offset] = new
        done.kept.add(made.kept)
        self.names += made.names
        done.end_offset = made.end_offset
        if isinstance(made.problem, SegmentOverflowError):
            done.split(made.problem)
        if made.problem is not None:
            raise made.problem
        done.outcome = made.outcome

    def _in_tasks(self) -> bool:
        """Run the round in tasks; return False, with nothing done, if offsets do not rise."""
        done, bounds = self.done, self.done.bounds
        dirty = files_between(done.opened.files, bounds.first_dirty, bounds.first_uncleanable)
        cleaned = files_between(done.opened.files, 0, bounds.first_uncleanable)
        starts = {file.base_offset: file.index.lookup(bounds.first_dirty) for file in dirty}
        places = [
            (file.base_offset, start) for file in cleaned for start in sorted({0, starts.get(file.base_offset, 0)})
        ]
        begins = begins_of(entry for file in done.opened.files.values() for entry in file.aborted.entries)
        files = {file.base_offset: _stored(file) for file in cleaned}
        ends = dict(pairwise(files))
        works = [
            StepsWork(
                files[base_offset].bare(), start, begins_in(begins, base_offset, ends.get(base_offset)), self.in_bulk
            )
            for base_offset, start in places
        ]
        steps: dict[tuple[int, int], Steps] = dict(zip(places, self.cluster.run(works), strict=True))
        if not _are_rising([steps[file.base_offset, 0] for file in cleaned]):
            return False
        groups = groups_of(cleaned, bounds.first_uncleanable, done.settings)
        parts = [
            [[files[file.base_offset] for file in group] for group in part]
            for part in parts_of(groups, self.cluster.pieces)
        ]
        self._take(self.cluster.meet(self._keys(parts, starts, steps), self._groups(parts, steps)))
        return True

    def _keys(
        self, parts: Sequence[Part], starts: Mapping[int, int], steps: Mapping[tuple[int, int], Steps]
    ) -> list[KeysWork]:
        """Return the works of pass 1 for each part, with the transactions where it begins (``CL-9``, ``CL-10``)."""
        bounds, opened = self.done.bounds, self.done.opened
        first, end = bounds.first_dirty, bounds.first_uncleanable
        transactions = Transactions()
        transactions.expect(aborted_between(opened.files.values(), bounds.log_start, first, end))
        works = []
        ends = [*(part[0][0].base_offset for part in parts[1:]), end]
        for number, (part, part_end) in enumerate(zip(parts, ends, strict=True)):
            segments = [(file, starts.get(file.base_offset)) for group in part for file in group]
            bare = [(file.bare(), start) for file, start in segments]
            coming = [entry for entry in transactions.coming if entry.first_offset < part_end]
            works.append(
                KeysWork(number, bare, first, transactions.copy(coming), self.done.settings, self.in_bulk)
            )  # fmt: skip
            for file, start in segments:
                if start is not None:
                    take_steps(transactions, file.file, steps[file.base_offset, start])
        return works

    def _groups(self, parts: Sequence[Part], steps: Mapping[tuple[int, int], Steps]) -> list[GroupsWork]:
        """Return the works of pass 2 for each part, with the transactions where it begins."""
        done = self.done
        until, producers = old_tombstones_until(done), active_producers(done)
        transactions = Transactions()
        works = []
        for part in parts:
            at_begin = transactions.copy()
            expected = {}
            for file, end in (item for group in part for item in ends_of(group)):
                entries = expected[file.base_offset] = self._expected(file, end)
                transactions.expect(entries or ())
                take_steps(transactions, file.file, steps[file.base_offset, 0])
            works.append(
                GroupsWork(
                    groups=part,
                    transactions=at_begin,
                    expected=expected,
                    producers=producers,
                    first_dirty=done.bounds.first_dirty,
                    keeps_empty_at=done.bounds.keeps_empty_at(done.settings.rules),
                    latest=done.bounds.first_uncleanable - 1,
                    old_tombstones_until=until,
                    settings=done.settings,
                    folder=self.folder,
                    in_bulk=self.in_bulk,
                )
            )
        return works

    def _expected(self, file: LogFile, end: int | None) -> list[AbortedTransaction] | None:
        """Return the aborted transactions with data in a segment; None if the segment's end cannot be read.

        Then its group fails, and nothing after it is needed.
        """
        files, log_start = self.done.opened.files.values(), self.done.bounds.log_start
        try:
            return aborted_between(files, log_start, file.base_offset, file.read_next_offset() if end is None else end)
        except OffsetsLogError:
            return None

    def _take(self, made: Sequence[GroupMade]) -> None:
        """Take the results up to the first group that failed.

        Raises:
            OffsetsLogError: the error of the group that failed.
        """
        done = self.done
        for group in made:
            if isinstance(group.problem, SegmentOverflowError):
                done.split(group.problem)
            if group.problem is not None:
                raise group.problem
            assert group.new is not None
            done.take(group.new, group.kept)
            self.names += group.names
        done.end_offset, done.outcome = done.bounds.first_uncleanable, CLEANED


def parts_of(groups: Sequence[Sequence[LogFile]], pieces: int) -> list[list[Sequence[LogFile]]]:
    """Cut a log between groups into parts of about the same size: no more than ``pieces``, unless these are large."""
    sizes = [sum(file.size_bytes for file in group) for group in groups]
    total = sum(sizes) or 1
    count = max(pieces, -(-total // MOST_PART_BYTES))
    parts: dict[int, list[Sequence[LogFile]]] = {}
    before = 0
    for group, size_bytes in zip(groups, sizes, strict=True):
        parts.setdefault((before + size_bytes // 2) * count // total, []).append(group)
        before += size_bytes
    return [*parts.values()]


def _are_rising(segments: Sequence[Steps]) -> bool:
    """Return whether the last record of a key is the one with the largest offset: no segments overlap."""
    beside = all(before.last_offset < after.base_offset for before, after in pairwise(segments))
    return beside and all(each.is_rising for each in segments)
