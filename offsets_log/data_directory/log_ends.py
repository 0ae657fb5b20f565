"""Where the log of a user partition begins and ends, by its files alone: headers are read, no records.

References: ``data-dir.md`` §3; ``LocalLog.java``, ``LogSegment.readNextOffset``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from offsets_log.broker.batches import FileBatch, entry_at
from offsets_log.broker.failures import BrokerError
from offsets_log.data_directory.offset_index import OffsetIndex, ReadAt
from offsets_log.errors import CorruptRecordError, Damage, OffsetsLogError
from offsets_log.log_format.batch import (
    BATCH_HEADER_SIZE,
    NO_PARTITION_LEADER_EPOCH,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_MASK,
)
from offsets_log.log_format.compression import codec_of
from offsets_log.log_format.record import Record, iter_deltas, iter_records
from offsets_log.log_format.segment import Buffer

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
            first_timestamps=_first_timestamps(files, bases, batches, sorted(set(dating))),
        )


@contextmanager
def _open_batches(files: PartitionFiles, base_offset: int) -> Iterator[_Batches]:
    with _open_log(files, base_offset) as (log, fetch):
        opened = files.open_index(base_offset) if len(log) > INDEX_INTERVAL else nullcontext(_read_nothing)
        with opened as read_index:
            file = f"{files.shown_path}/{base_offset:020}.log"
            yield _Batches(file, base_offset, log, OffsetIndex(read_index), fetch)


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
    files: PartitionFiles, bases: list[int], last: _Batches, offsets: list[int]
) -> dict[int, int | None]:
    """Offset → the time of the first record at or behind it; those behind the last record are left out.

    Args:
        last: the batches of the last segment.
        offsets: rising.
    """
    found: dict[int, int | None] = {}
    left = deque(offsets)
    for base, following in zip(bases, [*bases[1:], _OFFSETS_END], strict=True):
        if not left or left[0] >= following:
            continue
        if base == bases[-1]:
            last.date(left, following, found)
            continue
        with _open_batches(files, base) as batches:
            batches.date(left, following, found)
    return found


def _times(batch: FileBatch) -> Iterator[tuple[int, int]]:
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


class _Batches:
    """The batches of one segment, found by its index where that fits the log."""

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
            for batch in self._from(start):
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
            for batch in self._from(start):
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
            for offset, time_ms in _times(batch):
                while left and left[0] <= offset:
                    found[left.popleft()] = None if time_ms == NO_TIMESTAMP else time_ms
                if not left:
                    return
        except OffsetsLogError:
            while left and left[0] <= batch.last_offset:
                found[left.popleft()] = None

    def _before(self, end: int) -> FileBatch | None:
        found = None
        for batch in self._from(0):
            if batch.end > end:
                return found
            found = batch
        return found

    def _from(self, start: int) -> Iterator[FileBatch]:
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
            if not next_offset <= batch.offset <= last < _OFFSETS_END - 1:
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
        if not 0 < position < len(self._log):
            return 0
        self._fetch(position, BATCH_HEADER_SIZE)
        try:
            batch = entry_at(self._file, self._log, position, len(self._log))
            if batch is None or relative < 0 or not self._base_offset <= batch.offset <= batch.last_offset:
                return 0
        except BrokerError:
            return 0
        return position if asked is None or batch.offset <= asked else 0
