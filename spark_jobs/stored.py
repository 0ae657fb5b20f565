"""A broker's start over files that tasks read: the driver holds their indexes, and looks into few of them.

What has to be read of a segment from its begin, for a broker that starts would recover it, tasks read beforehand
(`recovered`): where that is whole they hand over its indexes, its leader epochs and its batches of producers, and the
driver notes these in the log's order (`StoredStart`). What is not as plain as that the driver reads itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, ClassVar

from offsets_log.broker.batches import HEADER_UP_TO_MAGIC, FileBatch
from offsets_log.broker.indexes import INDEX_INTERVAL_BYTES, OffsetIndex, TimeIndex, TransactionIndex
from offsets_log.broker.leader_epochs import LeaderEpochs, assign
from offsets_log.broker.log_file import LogFile
from offsets_log.broker.producers import Completed, ProducerState, Snapshots
from offsets_log.broker.recovery import OpenLog, Start
from offsets_log.broker.segment_recovery import SegmentRecovery
from offsets_log.errors import OffsetsLogError
from offsets_log.log_format import batch as b
from offsets_log.log_format.partition_log import PartitionLog, Segment
from spark_jobs.stores import FoundFile

FILES_OPEN = 2
"""Of a store in the network, in one process: each is as large as a segment."""


@lru_cache(maxsize=FILES_OPEN)
def _contents(found: FoundFile) -> memoryview:
    return memoryview(found.open(ExitStack()))


@lru_cache(maxsize=FILES_OPEN)
def _part(found: FoundFile, start: int, length: int) -> memoryview:
    return _contents(found)[start : start + length]


class StoredFile(LogFile):
    """A segment that is opened where it is looked into, and pickled without its contents.

    Attributes:
        found: the file, of which it is so many bytes from a position on.
    """

    __slots__ = ("found", "length", "start")

    def __init__(self, file: LogFile, found: FoundFile, start: int, length: int) -> None:
        self.found, self.start, self.length = replace(found, mapped=None), start, length
        super().__init__(
            file.base_offset, file.file, memoryview(b""), file.size_bytes, file.index, file.finds_by_base_offset,
            file.times, file.aborted, file.modified_ms,
        )  # fmt: skip

    def __reduce__(self) -> tuple[Any, ...]:
        facts = {name: getattr(self, name) for name in PICKLED}
        return _again, (facts, self.found, self.start, self.length)

    @property
    def view(self) -> memoryview:
        """All of it."""
        return _part(self.found, self.start, self.length) if self.length else memoryview(b"")

    @view.setter
    def view(self, view: memoryview) -> None:
        pass

    def bare(self) -> StoredFile:
        """Without its indexes, for those who read it from begin to end."""
        made = StoredFile(self, self.found, self.start, self.length)
        made.index, made.times = OffsetIndex(self.base_offset), TimeIndex(self.base_offset)
        made.aborted = TransactionIndex()
        return made

    def read_next_offset(self) -> int:
        """As `LogFile.read_next_offset`; of a store in the network no more is brought here than its end."""
        if self.found.url is None or self.found.is_packed or not self.index.offsets:
            return super().read_next_offset()
        start = self.index.lookup(self.index.last_offset)
        data = self.found.read_tail(self.found.size - self.start - start)[: self.size_bytes - start]
        end = LogFile(
            self.base_offset, self.file, memoryview(data), len(data), OffsetIndex(self.base_offset),
            self.finds_by_base_offset,
        )  # fmt: skip
        try:
            first = end.translate(self.index.last_offset)
            last = None if first is None else deque(end.batches(first.position), maxlen=1).pop()
        except OffsetsLogError as error:
            error.position = None if error.position is None else error.position + start
            raise
        return self.base_offset if last is None else last.next_offset


PICKLED = ("base_offset", "file", "size_bytes", "index", "finds_by_base_offset", "times", "aborted", "modified_ms")


def _again(facts: dict[str, Any], found: FoundFile, start: int, length: int) -> StoredFile:
    return StoredFile(LogFile(view=memoryview(b""), **facts), found, start, length)


# ------------------------------------------------------------------------------------------ recovered by tasks


@dataclass(slots=True)
class Recovered:
    """What a task has made of a segment that a broker would recover.

    Attributes:
        next_offset: behind its last batch that counts, −1 without one.
        batches: those with a producer: position, offset, and the header; of a control batch all of it.
    """

    valid_bytes: int
    index: OffsetIndex
    times: TimeIndex
    leader_epochs: LeaderEpochs
    next_offset: int
    batches: list[tuple[int, int, bytes]]


@dataclass(slots=True)
class _Noting(ProducerState):
    """Only keeps the batches that producers are told of."""

    can_be_lent: ClassVar[bool] = False
    batches: list[tuple[int, int, bytes]] = field(default_factory=list)

    def append(self, batch: FileBatch) -> Completed | None:
        end = batch.end if batch.is_control else batch.position + b.BATCH_HEADER_SIZE
        self.batches.append((batch.position, batch.offset, bytes(batch.view[batch.position : end])))
        return None


def recovered(file: LogFile, index_interval_bytes: int, *, in_bulk: bool) -> Recovered | None:
    """Read a segment that nothing is known of; None if a broker would not just cut it where it is bad."""
    producers, epochs = _Noting(Snapshots({}), map_end_offset=-1), LeaderEpochs()
    recovery = SegmentRecovery(file, producers, epochs, index_interval_bytes, in_bulk)
    try:
        recovery.run()
    except OffsetsLogError:
        return None
    return Recovered(
        recovery.valid_bytes, file.index, file.times, epochs, producers.map_end_offset, producers.batches
    )  # fmt: skip


def to_recover(log: PartitionLog, *, stopped_cleanly: bool) -> list[int]:
    """Base offsets of the segments that a start is likely to read: without an index, or not flushed (``D-2``)."""
    bases = [segment.base_offset or 0 for segment in log.segments]
    point = log.checkpoints.recovery_point or 0
    floor = max((base for base in bases if base <= point), default=0)
    return [base for base in bases if f"{base:020}.index" not in log.beside or (not stopped_cleanly and base >= floor)]


class StoredStart(Start):
    """A start over files that are looked into only where it has to be.

    Args:
        found: by the name that a segment has in the log, its file.
        recovered: by base offset, what tasks have read.
    """

    def __init__(
        self,
        log: PartitionLog,
        *,
        found: Mapping[str, FoundFile],
        recovered: Mapping[int, Recovered],
        index_interval_bytes: int = INDEX_INTERVAL_BYTES,
        **how: Any,
    ) -> None:
        super().__init__(log, index_interval_bytes=index_interval_bytes, **how)
        self._stored, self._recovered_before = found, recovered

    def find(self, segment: Segment) -> LogFile:
        """As `Start.find`."""
        return stored_file(super().find(segment), segment, self._stored[segment.file])

    def read(self, file: LogFile, producers: ProducerState) -> int:
        """As `Start.read`, from what a task has read if that makes sense behind what came before."""
        known = self._recovered_before.get(file.base_offset)
        if known is None or not self._takes(known, file, producers):
            return super().read(file, producers)
        file.index, file.times = known.index, known.times
        for epoch, offset in known.leader_epochs.items():
            assign(self.opened.leader_epochs, epoch, offset)
        return known.valid_bytes

    @staticmethod
    def _takes(known: Recovered, file: LogFile, producers: ProducerState) -> bool:
        """Tell producers of the batches; False, and they are as before, if they refuse one."""
        before = producers.entries.copy(), producers.ongoing.copy(), producers.completed.copy()
        end_offset, aborted = producers.map_end_offset, file.aborted
        telling = SegmentRecovery(file, producers, {})
        file.aborted = TransactionIndex()
        try:
            for _, offset, raw in known.batches:
                magic = raw[HEADER_UP_TO_MAGIC - 1]
                telling.tell_producers(FileBatch(file.file, memoryview(raw), 0, len(raw), offset, magic, len(raw)))
        except OffsetsLogError:
            producers.entries, producers.ongoing, producers.completed = before
            producers.map_end_offset, file.aborted = end_offset, aborted
            return False
        if known.next_offset >= 0:
            producers.map_end_offset = known.next_offset
        return True


def stored_file(file: LogFile, segment: Segment, found: FoundFile) -> StoredFile:
    """A file as it was found beside its indexes."""
    length = len(segment.buffer) or segment.zeros_behind
    made = StoredFile(file, found, 0, length)
    made.size_bytes = length
    return made


def all_stored(opened: OpenLog, found: Mapping[str, FoundFile]) -> None:
    """Make parts of segments that were split at the start, and what took the place of a log, files of tasks too."""
    ends: dict[str, int] = {}
    for base_offset, file in opened.files.items():
        start = ends.get(file.file, 0)
        ends[file.file] = start + file.size_bytes
        if not isinstance(file, StoredFile):
            opened.files[base_offset] = StoredFile(file, found[file.file], start, file.size_bytes)
