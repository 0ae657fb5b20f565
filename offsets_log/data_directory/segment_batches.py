"""The batches of a segment as its headers show them, found by its index: of a partition's log only what is looked at.

References: ``LogSegment.java``, ``OffsetIndex.java``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol

from offsets_log.broker.batches import FileBatch, entry_at
from offsets_log.broker.failures import BrokerError
from offsets_log.data_directory.offset_index import OffsetIndex, ReadAt
from offsets_log.errors import CorruptRecordError, Damage, OffsetsLogError
from offsets_log.log_format.batch import BATCH_HEADER_SIZE, NO_TIMESTAMP, TIMESTAMP_TYPE_MASK
from offsets_log.log_format.compression import codec_of
from offsets_log.log_format.record import Record, iter_deltas, iter_records
from offsets_log.log_format.segment import Buffer

INDEX_INTERVAL = 4096
"""A segment no longer than this, in bytes, is walked through without its index."""

OFFSETS_END = 1 << 63


class PartitionFiles(Protocol):
    """The directory of a partition.

    Attributes:
        topic, partition: by its name.
        shown_path: to show.
    """

    @property
    def topic(self) -> str: ...

    @property
    def partition(self) -> int: ...

    @property
    def shown_path(self) -> str: ...

    def base_offsets(self) -> list[int]:
        """Those of its segments, rising. Raises InputError."""
        ...

    def open_log(self, base_offset: int) -> AbstractContextManager[Buffer]:
        """The records of a segment. Raises InputError."""
        ...

    def open_index(self, base_offset: int) -> AbstractContextManager[ReadAt]:
        """How to read its index, in pieces; nothing is read of one that is not there. Raises InputError."""
        ...


Fetch = Callable[[int, int], None]
"""Position and size of bytes that will be looked at."""


class FilesElsewhere(ABC):
    """A `PartitionFiles` on another machine: of its segments only what is looked at comes here."""

    @abstractmethod
    def open_room(self, base_offset: int) -> AbstractContextManager[tuple[Buffer, Fetch]]:
        """Zeros in place of the records of a segment, and what brings some of them there. Raises InputError."""


@contextmanager
def open_batches(files: PartitionFiles, base_offset: int) -> Iterator[SegmentBatches]:
    """Open a segment, for as long as the context lasts. Raises InputError."""
    with _open_log(files, base_offset) as (log, fetch):
        opened = files.open_index(base_offset) if len(log) > INDEX_INTERVAL else nullcontext(_read_nothing)
        with opened as read_index:
            file = f"{files.shown_path}/{base_offset:020}.log"
            yield SegmentBatches(file, base_offset, log, OffsetIndex(read_index), fetch)


@contextmanager
def _open_log(files: PartitionFiles, base_offset: int) -> Iterator[tuple[Buffer, Fetch]]:
    if isinstance(files, FilesElsewhere):
        with files.open_room(base_offset) as opened:
            yield opened
        return
    with files.open_log(base_offset) as log:
        yield log, _fetch_nothing


def _fetch_nothing(position: int, size_bytes: int) -> None:
    pass


def _read_nothing(position: int, size_bytes: int) -> bytes:
    return b""


def times_of(batch: FileBatch) -> Iterator[tuple[int, int]]:
    """Offset and timestamp of each data record of a batch; consumers do not get control records.

    Raises:
        OffsetsLogError: one cannot be read: what is behind it is not the first.
    """
    if batch.is_control:
        return
    if batch.is_legacy:
        yield from _times_of_messages(batch)
        return
    codec = codec_of(batch.attributes)
    body = batch.view[batch.position + BATCH_HEADER_SIZE : batch.end]
    fixed_ms = batch.max_timestamp_ms if batch.attributes & TIMESTAMP_TYPE_MASK else None
    least = base = batch.offset
    base_ms, last = batch.base_timestamp_ms, batch.last_offset
    for offset_delta, delta_ms in iter_deltas(
        codec.decompress(bytes(body), batch.magic) if codec.id else body, batch.records_count
    ):
        offset = base + offset_delta
        if not least <= offset <= last:
            raise CorruptRecordError(f"offset {offset} where {least} to {last} are to come", field="offset_delta")
        yield offset, base_ms + delta_ms if fixed_ms is None else fixed_ms
        least = offset + 1


def _times_of_messages(batch: FileBatch) -> Iterator[tuple[int, int]]:
    """The same of magic 0 and 1, which are few and read whole."""
    for item in iter_records(batch.whole()):
        if isinstance(item, Damage):
            raise item.error
        if isinstance(item, Record):
            yield item.offset, item.timestamp_ms


class SegmentBatches:
    """The batches of one segment, found by its index where that fits the log.

    Attributes:
        problem: what about them could not be read, as far as they were gone through.
    """

    def __init__(self, file: str, base_offset: int, log: Buffer, index: OffsetIndex, fetch: Fetch) -> None:
        self.problem: str | None = None
        self._base_offset = base_offset
        self._file = file
        self._log = memoryview(log)
        self._index = index
        self._fetch = fetch

    def last(self) -> FileBatch | None:
        """The last whole batch whose checksum is right, as a broker keeps it that recovers the log."""
        last: FileBatch | None = None
        for start in (self._position(self._index.count - 1), 0):
            for batch in self.walk(start):
                last = batch
            if last is not None or start == 0:
                break
        while last is not None:
            self._fetch(last.position, last.size_bytes)
            try:
                last.ensure_valid()
                return last
            except BrokerError as error:
                self.problem = f"{self._file}: {error.problem}"
            last = self._before(last.position)
        return None

    def since(self, offset: int, hint: int = 0) -> Iterator[FileBatch]:
        """Yield the batches that end at an offset or behind it.

        Args:
            hint: a position where a batch at or before the offset may begin.
        """
        slot = self._index.slot(offset - self._base_offset)
        start = self._position(slot, offset)
        if hint > start and self._is_batch(hint, offset):
            start = hint
        for batch in self.walk(start):
            if batch.last_offset >= offset:
                yield batch

    def raw(self, start: int, end: int) -> bytes:
        """Return the bytes from one position to another."""
        self._fetch(start, end - start)
        return bytes(self._log[start:end])

    def date(self, left: deque[int], end: int, found: dict[int, int | None]) -> None:
        """Take offsets from the left for as long as this segment tells the time of the first record from each on.

        Args:
            left: rising.
            end: where the next segment begins. An offset below that which no record here follows is left.
            found: offset → time, or None where it cannot be read.
        """
        reached = 0
        while left and left[0] < end:
            asked = left[0]
            start = max(reached, self._position(self._index.slot(asked - self._base_offset), asked))
            for batch in self.walk(start):
                if batch.last_offset < asked:
                    continue
                reached = batch.position
                self._fetch(reached, batch.size_bytes)
                self._date_in(batch, left, found)
                if not left or left[0] > batch.last_offset:
                    break
            else:
                if not self.problem:
                    return
                while left and left[0] < end:
                    found[left.popleft()] = None

    @staticmethod
    def _date_in(batch: FileBatch, left: deque[int], found: dict[int, int | None]) -> None:
        try:
            for offset, time_ms in times_of(batch):
                while left and left[0] <= offset:
                    found[left.popleft()] = None if time_ms == NO_TIMESTAMP else time_ms
                if not left:
                    return
        except OffsetsLogError:
            while left and left[0] <= batch.last_offset:
                found[left.popleft()] = None

    def _before(self, end: int) -> FileBatch | None:
        found = None
        for batch in self.walk(0):
            if batch.end > end:
                return found
            found = batch
        return found

    def walk(self, start: int = 0) -> Iterator[FileBatch]:
        """Whole batches with rising offsets, from a position on."""
        position, next_offset, size = start, self._base_offset, len(self._log)
        while True:
            self._fetch(position, BATCH_HEADER_SIZE)
            try:
                batch = entry_at(self._file, self._log, position, size)
                if batch is None:
                    return
                last = batch.last_offset
            except BrokerError as error:
                self._note(error.problem, position)
                return
            if not next_offset <= batch.offset <= last < OFFSETS_END - 1:
                self._note(f"offset {batch.offset} where {next_offset} or a later one is expected", position)
                return
            yield batch
            position, next_offset = position + batch.size_bytes, last + 1

    def _note(self, problem: str, position: int) -> None:
        self._fetch(position, 64)
        if any(self._log[position : position + 64]):  # zeros are room that was made beforehand
            self.problem = f"{self._file}, position {position}: {problem}"

    def _position(self, slot: int, asked: int | None = None) -> int:
        """Where to begin, 0 unless a batch of this segment, not behind what is asked, stands where the index says."""
        if slot < 0:
            return 0
        relative, position = self._index.entry(slot)
        return position if relative >= 0 and self._is_batch(position, asked) else 0

    def _is_batch(self, position: int, asked: int | None) -> bool:
        """Whether a batch of this segment, not behind what is asked, stands at a position."""
        if not 0 < position < len(self._log):
            return False
        self._fetch(position, BATCH_HEADER_SIZE)
        try:
            batch = entry_at(self._file, self._log, position, len(self._log))
            if batch is None or not self._base_offset <= batch.offset <= batch.last_offset:
                return False
        except BrokerError:
            return False
        return asked is None or batch.offset <= asked
