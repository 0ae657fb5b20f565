"""Where the log of a user partition begins and ends, by its files alone: headers are read, no records.

References: ``data-dir.md`` §3; ``LocalLog.java``, ``LogSegment.readNextOffset``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from offsets_log.broker.batches import FileBatch, entry_at
from offsets_log.broker.failures import BrokerError
from offsets_log.data_directory.offset_index import OffsetIndex
from offsets_log.errors import CorruptBatchError, CorruptRecordError, Damage, OffsetsLogError
from offsets_log.log_format.batch import (
    BATCH_HEADER_SIZE,
    NO_PARTITION_LEADER_EPOCH,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_MASK,
)
from offsets_log.log_format.compression import codec_of
from offsets_log.log_format.record import Record, iter_deltas, iter_records
from offsets_log.log_format.segment import NO_PIECES, Pieces, pieces_of

INDEX_INTERVAL = 4096
"""A segment no longer than this, in bytes, is walked through without its index."""

_OFFSETS_END = 1 << 63


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

    def open_segment(self, base_offset: int) -> AbstractContextManager[Pieces]:
        """The records of a segment, of which only pieces are read. Raises InputError."""
        ...

    def open_index(self, base_offset: int) -> AbstractContextManager[Pieces]:
        """Its index likewise; one that is not there has no bytes. Raises InputError."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEnds:
    """Where a log begins and ends.

    Attributes:
        log_start_offset: the first offset that a client can read.
        log_end_offset: behind the last whole batch in the files.
        high_watermark: what the broker had noted last; None where no checkpoint tells.
        newest_timestamp_ms: of the last batch; None without one.
        leader_epoch: of the last batch; −1 without one and before magic 2.
        is_clean: whether the broker had stopped in order, so that what it noted was its last word.
        directory: which copy this is of.
        problem: what about its last segment could not be read.
        first_timestamps: of offsets that were asked about, the time of the first record at or behind each; None
            where there is none, it has no time, or is not read.
    """

    log_start_offset: int
    log_end_offset: int
    high_watermark: int | None = None
    newest_timestamp_ms: int | None = None
    leader_epoch: int = NO_PARTITION_LEADER_EPOCH
    is_clean: bool = False
    directory: str = ""
    problem: str | None = None
    first_timestamps: Mapping[int, int | None] = field(default_factory=dict)

    @property
    def is_short(self) -> bool:
        """Whether the copy lacks log that was there when the broker noted its high watermark."""
        return self.high_watermark is not None and self.high_watermark > self.log_end_offset

    @property
    def is_by_high_watermark(self) -> bool:
        """Whether consumers' end is the high watermark: after an orderly stop, or if the copy ends before it.

        While a broker runs it notes the high watermark every five seconds, and what is behind that is read by consumers
        long before: then the end of the log is nearer to the truth.
        """
        is_noted = self.high_watermark is not None and self.high_watermark >= self.log_start_offset
        return is_noted and (self.is_clean or self.is_short)

    @property
    def end_offset(self) -> int:
        """What ``ListOffsets`` answers for the latest, and ``kafka-consumer-groups`` shows as LOG-END-OFFSET."""
        if self.is_by_high_watermark:
            assert self.high_watermark is not None
            return self.high_watermark
        return self.log_end_offset


def find_log_ends(
    files: PartitionFiles,
    *,
    log_start_offset: int | None = None,
    high_watermark: int | None = None,
    is_clean: bool = False,
    dating: Iterable[int] = (),
) -> LogEnds | None:
    """The ends of a partition's log; None where it has no segment.

    Args:
        log_start_offset, high_watermark: by the checkpoints of the data directory.
        is_clean: whether it says that the broker had stopped in order.
        dating: offsets of which the next record's time is asked for. A batch is decoded for each, once for all in it.

    Raises:
        InputError: a file cannot be read.
    """
    bases = files.base_offsets()
    if not bases:
        return None
    with _open_batches(files, bases[-1]) as batches:
        end = _end_of(files, bases, batches)
        return LogEnds(
            log_start_offset=max(bases[0], bases[0] if log_start_offset is None else log_start_offset),
            log_end_offset=end.offset,
            high_watermark=high_watermark,
            newest_timestamp_ms=end.newest_timestamp_ms,
            leader_epoch=end.leader_epoch,
            is_clean=is_clean,
            directory=files.shown_path,
            problem=end.problem,
            first_timestamps=_first_timestamps(files, bases, batches, end, sorted(set(dating))),
        )


@contextmanager
def _open_batches(files: PartitionFiles, base_offset: int) -> Iterator[_Batches]:
    with files.open_segment(base_offset) as log:
        has_index = log.size_bytes > INDEX_INTERVAL
        with files.open_index(base_offset) if has_index else nullcontext(NO_PIECES) as index:
            file = f"{files.shown_path}/{base_offset:020}.log"
            yield _Batches(file, base_offset, log, OffsetIndex(index.read_at))


class _End(NamedTuple):
    """Where a log goes on, the time and the leader epoch of its last batch, and what is wrong there."""

    offset: int
    newest_timestamp_ms: int | None
    leader_epoch: int
    problem: str | None


def _end_of(files: PartitionFiles, bases: list[int], batches: _Batches) -> _End:
    """An empty last segment tells the end by its name; the last batch is in the one before.

    Args:
        batches: of the last segment.
    """
    last = batches.last()
    problem = batches.problem
    if last is not None:
        return _End(last.next_offset, _time_of(last), last.partition_leader_epoch, problem)
    for base in bases[-2:-1]:
        with _open_batches(files, base) as before:
            last = before.last()
            problem = problem or before.problem
            if last is not None:
                end = max(bases[-1], last.next_offset)
                return _End(end, _time_of(last), last.partition_leader_epoch, problem)
    return _End(bases[-1], None, NO_PARTITION_LEADER_EPOCH, problem)


def _time_of(batch: FileBatch) -> int | None:
    try:
        time_ms = batch.max_timestamp_ms
    except OffsetsLogError:
        return None
    return None if time_ms == NO_TIMESTAMP else time_ms


def _first_timestamps(
    files: PartitionFiles, bases: list[int], last: _Batches, end: _End, offsets: list[int]
) -> dict[int, int | None]:
    """Offset → the time of the first record at or behind it; those behind the last record are left out.

    Args:
        last: the batches of the last segment.
        offsets: rising.
    """
    found: dict[int, int | None] = {}
    left = deque(offset for offset in offsets if offset < end.offset or end.problem)
    for base, following in zip(bases, [*bases[1:], _OFFSETS_END], strict=True):
        if not left or left[0] >= following:
            continue
        if base == bases[-1]:
            last.date(left, following, found)
            continue
        with _open_batches(files, base) as batches:
            batches.date(left, following, found)
    return found


class _Placed(NamedTuple):
    """A batch of which the header alone was read, where it lies, and its last offset.

    The batch's own positions count from where it lies.
    """

    position: int
    batch: FileBatch
    last_offset: int


def _times(placed: _Placed, log: Pieces) -> Iterator[tuple[int, int]]:
    """Offset and timestamp of each data record of a batch; consumers do not get control records.

    Of one that is not compressed only the heads of records are read, as far as they are asked for.

    Raises:
        OffsetsLogError: one cannot be read: what is behind it is not the first.
    """
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
        yield offset, base_ms + delta_ms if fixed_ms is None else fixed_ms
        least = offset + 1


def _times_of_messages(batch: FileBatch) -> Iterator[tuple[int, int]]:
    """The same of magic 0 and 1: a message is one record, or records that are compressed together."""
    for item in iter_records(batch.whole()):
        if isinstance(item, Damage):
            raise item.error
        if isinstance(item, Record):
            yield item.offset, item.timestamp_ms


class _Batches:
    """The batches of one segment, found by its index where that fits the log. Only headers are read."""

    def __init__(self, file: str, base_offset: int, log: Pieces, index: OffsetIndex) -> None:
        self.problem: str | None = None
        self._base_offset = base_offset
        self._file = file
        self._log = log
        self._index = index
        self._read: _Placed | None = None

    def last(self) -> FileBatch | None:
        """The last batch that is whole by its size, as a broker finds it that opens a log without recovery."""
        for start in (self._position(self._index.count - 1), 0):
            last: FileBatch | None = None
            for placed in self._from(start):
                last = placed.batch
            if last is not None or start == 0:
                break
        return last

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
            for placed in self._from(start):
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

    def _date_in(self, placed: _Placed, left: deque[int], found: dict[int, int | None]) -> None:
        try:
            for offset, time_ms in _times(placed, self._log):
                while left and left[0] <= offset:
                    found[left.popleft()] = None if time_ms == NO_TIMESTAMP else time_ms
                if not left:
                    return
        except OffsetsLogError:
            while left and left[0] <= placed.last_offset:
                found[left.popleft()] = None

    def _from(self, start: int) -> Iterator[_Placed]:
        """Whole batches with rising offsets, from a position on."""
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
            if not next_offset <= offset <= last < _OFFSETS_END - 1:
                self._note(f"offset {offset} where {next_offset} or a later one is expected", position)
                return
            yield placed
            position, next_offset = position + placed.batch.size_bytes, last + 1

    def _batch_at(self, position: int) -> _Placed | None:
        """The batch at a position, without its records; None if no whole one ends within the file.

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
            self._read = _Placed(position, batch, batch.last_offset)
        return self._read

    def _note(self, problem: str, position: int) -> None:
        if any(self._log.read_at(position, BATCH_HEADER_SIZE)):  # zeros are room that was made beforehand
            self.problem = f"{self._file}, position {position}: {problem}"

    def _position(self, slot: int, asked: int | None = None) -> int:
        """Where to begin, 0 unless a batch of this segment, not behind what is asked, stands where the index says."""
        if slot < 0:
            return 0
        relative, position = self._index.entry(slot)
        if not 0 < position < self._log.size_bytes:
            return 0
        try:
            placed = self._batch_at(position)
        except BrokerError:
            return 0
        if placed is None or relative < 0 or not self._base_offset <= placed.batch.offset <= placed.last_offset:
            return 0
        return position if asked is None or placed.batch.offset <= asked else 0
