"""The batches of a segment as their headers show them, found by its index: of a partition's log only what is looked at.

References: ``LogSegment.java``, ``OffsetIndex.java``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import NamedTuple, Protocol

from offsets_log.broker.batches import FileBatch, entry_at
from offsets_log.broker.failures import BrokerError
from offsets_log.broker.indexes import INDEX_INTERVAL_BYTES
from offsets_log.data_directory.offset_index import OffsetIndex
from offsets_log.errors import CorruptBatchError, CorruptRecordError, Damage, OffsetsLogError
from offsets_log.log_format.batch import BATCH_HEADER_SIZE, TIMESTAMP_TYPE_MASK, time_of
from offsets_log.log_format.compression import codec_of
from offsets_log.log_format.record import Record, as_int64, iter_deltas, iter_records
from offsets_log.log_format.segment import NO_PIECES, Pieces, pieces_of

OFFSETS_END = 1 << 63
"""Every offset is below."""


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
        """Return the base offsets of its segments, rising. Raises InputError."""
        ...

    def open_segment(self, base_offset: int) -> AbstractContextManager[Pieces]:
        """Open the records of a segment, of which only pieces are read. Raises InputError."""
        ...

    def open_index(self, base_offset: int) -> AbstractContextManager[Pieces]:
        """Open a segment's index likewise; one that is not there has no bytes. Raises InputError."""
        ...


@contextmanager
def open_batches(files: PartitionFiles, base_offset: int) -> Iterator[SegmentBatches]:
    """Open a segment, for as long as the context lasts. Raises InputError."""
    with files.open_segment(base_offset) as log:
        has_index = log.size_bytes > INDEX_INTERVAL_BYTES  # a shorter one is walked through
        with files.open_index(base_offset) if has_index else nullcontext(NO_PIECES) as index:
            file = f"{files.shown_path}/{base_offset:020}.log"
            yield SegmentBatches(file, base_offset, log, OffsetIndex(index.read_at))


class PlacedBatch(NamedTuple):
    """A batch of which the header alone was read, where it lies, and its last offset.

    The batch's own positions count from where it lies.
    """

    position: int
    batch: FileBatch
    last_offset: int

    @property
    def end(self) -> int:
        """Where the next one begins."""
        return self.position + self.batch.size_bytes


class SegmentBatches:
    """The batches of one segment, found by its index where that fits the log. Only headers are read."""

    def __init__(self, file: str, base_offset: int, log: Pieces, index: OffsetIndex) -> None:
        self.problem: str | None = None
        self._base_offset = base_offset
        self._file = file
        self._log = log
        self._index = index
        self._read: PlacedBatch | None = None

    def last(self) -> FileBatch | None:
        """Return the last batch that is whole by its size, as a broker finds it that opens a log without recovery."""
        for start in (self._position(self._index.count - 1), 0):
            last: FileBatch | None = None
            for placed in self.walk(start):
                last = placed.batch
            if last is not None or start == 0:
                break
        return last

    def walk(self, start: int = 0) -> Iterator[PlacedBatch]:
        """Yield whole batches with rising offsets, from a position on."""
        position, next_offset = start, self._base_offset
        while True:
            try:
                placed = self._batch_at(position)
            except BrokerError as error:
                self._note(error.problem, position)
                return
            if placed is None:
                return
            offset, last = placed.batch.offset, placed.last_offset
            if not next_offset <= offset <= last < OFFSETS_END - 1:
                self._note(f"offset {offset} where {next_offset} or a later one is expected", position)
                return
            yield placed
            position, next_offset = placed.end, last + 1

    def since(self, offset: int, hint: int = 0) -> Iterator[PlacedBatch]:
        """Yield the batches that end at an offset or behind it.

        Args:
            hint: a position where a batch at or before the offset may begin.
        """
        slot = self._index.slot(offset - self._base_offset)
        start = self._position(slot, offset)
        if hint > start and self._is_batch(hint, offset):
            start = hint
        for placed in self.walk(start):
            if placed.last_offset >= offset:
                yield placed

    def raw(self, start: int, end: int) -> bytes:
        """Return the bytes from one position to another."""
        return bytes(self._log.read_at(start, end - start))

    def whole(self, placed: PlacedBatch) -> FileBatch:
        """Return a batch with its records."""
        return placed.batch._replace(view=memoryview(self.raw(placed.position, placed.end)))

    def times(self, placed: PlacedBatch) -> Iterator[tuple[int, int]]:
        """Return offset and timestamp of each data record of a batch; consumers do not get control records.

        Of one that is not compressed only the heads of records are read, as far as they are asked for.

        Raises:
            OffsetsLogError: one cannot be read: what is behind it is not the first.
        """
        return _times(placed, self._log)

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
            for placed in self.walk(start):
                if placed.last_offset < asked:
                    continue
                reached = placed.position
                self._date_in(placed, left, found)
                if not left or left[0] > placed.last_offset:
                    break
            else:
                if not self.problem:
                    return
                while left and left[0] < end:
                    found[left.popleft()] = None

    def _date_in(self, placed: PlacedBatch, left: deque[int], found: dict[int, int | None]) -> None:
        try:
            for offset, time_ms in self.times(placed):
                while left and left[0] <= offset:
                    found[left.popleft()] = time_of(time_ms)
                if not left:
                    return
        except OffsetsLogError:
            while left and left[0] <= placed.last_offset:
                found[left.popleft()] = None

    def _batch_at(self, position: int) -> PlacedBatch | None:
        """Return the batch at a position, without its records; None if no whole one ends within the file.

        Raises:
            BrokerError: it is none.
        """
        if self._read is None or self._read.position != position:
            left = self._log.size_bytes - position
            header = self._log.read_at(position, BATCH_HEADER_SIZE) if left > 0 else b""
            if len(header) < min(left, BATCH_HEADER_SIZE):  # cut off since it was opened
                left = len(header)
            batch = entry_at(self._file, memoryview(header), 0, left)
            if batch is None:
                return None
            self._read = PlacedBatch(position, batch, batch.last_offset)
        return self._read

    def _note(self, problem: str, position: int) -> None:
        if any(self._log.read_at(position, BATCH_HEADER_SIZE)):  # zeros are room that was made beforehand
            self.problem = f"{self._file}, position {position}: {problem}"

    def _position(self, slot: int, asked: int | None = None) -> int:
        """Return where to begin: where the index says, if a fitting batch of this segment stands there; else 0."""
        if slot < 0:
            return 0
        relative, position = self._index.entry(slot)
        return position if relative >= 0 and self._is_batch(position, asked) else 0

    def _is_batch(self, position: int, asked: int | None) -> bool:
        """Whether a batch of this segment, not behind what is asked, stands at a position."""
        if not 0 < position < self._log.size_bytes:
            return False
        try:
            placed = self._batch_at(position)
        except BrokerError:
            return False
        if placed is None or not self._base_offset <= placed.batch.offset <= placed.last_offset:
            return False
        return asked is None or placed.batch.offset <= asked


def _times(placed: PlacedBatch, log: Pieces) -> Iterator[tuple[int, int]]:
    """See `SegmentBatches.times`."""
    position, batch, last = placed
    if batch.is_control:
        return
    if batch.is_legacy:
        yield from _times_of_messages(batch._replace(view=memoryview(log.read_at(position, batch.size_bytes))))
        return
    codec = codec_of(batch.attributes)
    read_at, begin, end = log.read_at, position + BATCH_HEADER_SIZE, position + batch.size_bytes
    if begin > end:
        raise CorruptBatchError(f"{batch.size_bytes} bytes are too few for a batch", field="batch_length")
    if codec.id:
        _, read_at = records = pieces_of(codec.decompress(bytes(read_at(begin, end - begin)), batch.magic))
        begin, end = 0, records.size_bytes
    fixed_ms = batch.max_timestamp_ms if batch.attributes & TIMESTAMP_TYPE_MASK else None
    least = base = batch.offset
    base_ms = batch.base_timestamp_ms
    for offset_delta, delta_ms in iter_deltas(read_at, begin, end, batch.records_count):
        offset = base + offset_delta
        if not least <= offset <= last:
            raise CorruptRecordError(f"offset {offset} where {least} to {last} are to come", field="offset_delta")
        yield offset, as_int64(base_ms + delta_ms) if fixed_ms is None else fixed_ms
        least = offset + 1


def _times_of_messages(batch: FileBatch) -> Iterator[tuple[int, int]]:
    """Yield the times of magic 0 and 1: a message is one record, or records that are compressed together."""
    for item in iter_records(batch.whole()):
        if isinstance(item, Damage):
            raise item.error
        if isinstance(item, Record):
            yield item.offset, item.timestamp_ms
