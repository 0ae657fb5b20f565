"""A broker's start over files that tasks read: the driver holds their indexes, and opens few of them.

If a starting broker would recover a segment, it must be read from its beginning. Tasks do that beforehand
(`recovered`): for a whole segment they return its indexes, leader epochs and producers' batches, and the driver notes
these in the log's order (`StoredStart`). The driver itself reads what is not so plain.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from offsets_log.broker.batches import HEADER_UP_TO_MAGIC, FileBatch
from offsets_log.broker.bulk import take_many
from offsets_log.broker.indexes import INDEX_INTERVAL_BYTES, OffsetIndex, TimeIndex, TransactionIndex
from offsets_log.broker.leader_epochs import LeaderEpochs, assign
from offsets_log.broker.log_file import LogFile
from offsets_log.broker.producers import Completed, ProducerState, Snapshots
from offsets_log.broker.recovery import OpenLog, Start
from offsets_log.broker.segment_recovery import SegmentRecovery
from offsets_log.columnar import arrays as a
from offsets_log.columnar.cleaning import producers as pr
from offsets_log.columnar.jit.records import Table
from offsets_log.errors import OffsetsLogError
from offsets_log.log_format import batch as b
from offsets_log.log_format.partition_log import PartitionLog, Segment
from spark_jobs.files import FoundFile

FILES_OPEN = 2
"""How many files of a network store a process keeps open: each is as large as a segment."""


@lru_cache(maxsize=FILES_OPEN)
def _contents(found: FoundFile) -> memoryview:
    return memoryview(found.open(ExitStack()))


@lru_cache(maxsize=FILES_OPEN)
def _part(found: FoundFile, start: int, length: int) -> memoryview:
    return _contents(found)[start : start + length]


class StoredFile(LogFile):
    """A segment that is opened only when it is read, and pickled without its contents.

    Attributes:
        found: the file that holds its bytes.
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
        """All bytes of the segment."""
        return _part(self.found, self.start, self.length) if self.length else memoryview(b"")

    @view.setter
    def view(self, view: memoryview) -> None:
        pass

    def bare(self) -> StoredFile:
        """Return it without its indexes, for code that reads it from the beginning to the end."""
        made = StoredFile(self, self.found, self.start, self.length)
        made.index, made.times = OffsetIndex(self.base_offset), TimeIndex(self.base_offset)
        made.aborted = TransactionIndex()
        return made

    def read_next_offset(self) -> int:
        """Return what `LogFile.read_next_offset` returns; of a network store's file only the end is read."""
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
    """The result of a task that recovered a segment.

    Attributes:
        next_offset: the offset after its last batch that counts; −1 without one.
        batches: headers of the batches with a producer, of control batches all bytes, behind each other.
        sizes: of each of these.
    """

    valid_bytes: int
    index: OffsetIndex
    times: TimeIndex
    leader_epochs: LeaderEpochs
    next_offset: int
    batches: bytes
    sizes: a.Int64s


@dataclass(slots=True)
class _Noting(ProducerState):
    """A producer state that only notes batches."""

    batches: list[bytes] = field(default_factory=list)
    sizes: list[a.Int64s] = field(default_factory=lambda: [np.zeros(0, np.int64)])

    def append(self, batch: FileBatch) -> Completed | None:
        end = batch.end if batch.is_control else batch.position + b.BATCH_HEADER_SIZE
        self._note(bytes(batch.view[batch.position : end]), np.array([end - batch.position]))
        return None

    def append_all(self, file: LogFile, noted: Table[pr.Noted]) -> None:
        """Append whole batches of a file."""
        data, at, kinds = np.frombuffer(file.view, np.uint8), noted.rows["position"], noted.rows["kind"]
        is_data = (kinds == pr.DATA) | (kinds == pr.TRANSACTIONAL_DATA)
        sizes = np.where(is_data, b.BATCH_HEADER_SIZE, noted.rows["size"])
        ends = np.cumsum(sizes)
        self._note(data[np.repeat(at - (ends - sizes), sizes) + np.arange(ends[-1])].tobytes(), sizes)

    def _note(self, raw: bytes, sizes: a.Int64s) -> None:
        self.batches.append(raw)
        self.sizes.append(sizes)


def recovered(file: LogFile, index_interval_bytes: int, *, in_bulk: bool) -> Recovered | None:
    """Recover a segment; return None if a broker would not simply cut it where it is damaged."""
    producers, epochs = _Noting(Snapshots({}), map_end_offset=-1), LeaderEpochs()
    notes = partial(producers.append_all, file)
    recovery = SegmentRecovery(file, producers, epochs, index_interval_bytes, in_bulk, notes)
    try:
        recovery.run()
    except OffsetsLogError:
        return None
    return Recovered(
        recovery.valid_bytes, file.index, file.times, epochs, producers.map_end_offset, b"".join(producers.batches),
        np.concatenate(producers.sizes),
    )  # fmt: skip


def to_recover(log: PartitionLog, *, stopped_cleanly: bool) -> list[int]:
    """Return base offsets of segments that a start probably reads: without an index, or not flushed (``D-2``)."""
    bases = [segment.base_offset or 0 for segment in log.segments]
    point = log.checkpoints.recovery_point or 0
    floor = max((base for base in bases if base <= point), default=0)
    return [base for base in bases if f"{base:020}.index" not in log.beside or (not stopped_cleanly and base >= floor)]


class StoredStart(Start):
    """A start over files that are opened only when that is necessary.

    Args:
        found: name of a segment in the log → its file.
        recovered: base offset → what a task read of the segment.
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
        """Implement `Start.find`."""
        return stored_file(super().find(replace(segment, contents=b"")), segment, self._stored[segment.file])

    def read(self, file: LogFile, producers: ProducerState) -> int:
        """Implement `Start.read`, by what a task has read if that fits what came before."""
        known = self._recovered_before.get(file.base_offset)
        if known is None or not self._takes(known, file, producers):
            return super().read(file, producers)
        file.index, file.times = known.index, known.times
        for epoch, offset in known.leader_epochs.items():
            assign(self.opened.leader_epochs, epoch, offset)
        return known.valid_bytes

    def _takes(self, known: Recovered, file: LogFile, producers: ProducerState) -> bool:
        """Add the batches to the producers; return False, with the producers unchanged, if one is refused."""
        before = producers.entries.copy(), producers.ongoing.copy(), producers.completed.copy()
        end_offset, aborted = producers.map_end_offset, file.aborted
        telling = SegmentRecovery(file, producers, {})
        file.aborted = TransactionIndex()
        try:
            self._tell(telling, known)
        except OffsetsLogError:
            producers.entries, producers.ongoing, producers.completed = before
            producers.map_end_offset, file.aborted = end_offset, aborted
            return False
        if known.next_offset >= 0:
            producers.map_end_offset = known.next_offset
        return True

    def _tell(self, telling: SegmentRecovery, known: Recovered) -> None:
        """Tell producers of all batches. Raises BrokerError."""
        ends = np.cumsum(known.sizes)
        begins, data, view = ends - known.sizes, np.frombuffer(known.batches, np.uint8), memoryview(known.batches)
        number = 0
        while number < len(begins):
            if self._in_bulk:
                number = take_many(telling.producers, telling.file, data, begins, number)
            if number < len(begins):
                raw = view[begins[number] : ends[number]]
                offset, magic = int.from_bytes(raw[:8], signed=True), raw[HEADER_UP_TO_MAGIC - 1]
                telling.tell_producers(FileBatch(telling.file.file, raw, 0, len(raw), offset, magic, len(raw)))
                number += 1


def stored_file(file: LogFile, segment: Segment, found: FoundFile) -> StoredFile:
    """Return a file as it was found, with its indexes."""
    length = segment.length or segment.zeros_behind
    made = StoredFile(file, found, 0, length)
    made.size_bytes = length
    return made


def all_stored(opened: OpenLog, found: Mapping[str, FoundFile]) -> None:
    """Make files for tasks also of parts of split segments, and of what took the place of a log."""
    ends: dict[str, int] = {}
    for base_offset, file in opened.files.items():
        start = ends.get(file.file, 0)
        ends[file.file] = start + file.size_bytes
        if not isinstance(file, StoredFile):
            opened.files[base_offset] = StoredFile(file, found[file.file], start, file.size_bytes)
