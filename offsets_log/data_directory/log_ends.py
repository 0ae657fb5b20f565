"""Where the log of a user partition begins and ends, by its files alone: headers are read, no records.

References: ``data-dir.md`` §3; ``LocalLog.java``, ``LogSegment.readNextOffset``.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Protocol

from offsets_log.broker.batches import FileBatch, entry_at
from offsets_log.broker.failures import BrokerError
from offsets_log.errors import Damage, OffsetsLogError
from offsets_log.log_format.batch import NO_TIMESTAMP
from offsets_log.log_format.record import Record, iter_records
from offsets_log.log_format.segment import Buffer

_INDEX_ENTRY = struct.Struct(">ii")
"""Relative offset, position. A broker makes the file large beforehand: zeros follow the last entry."""

_INDEX_CHUNK = 512 * _INDEX_ENTRY.size
"""So much of an index is read at once."""

MOST_WALKED = 1 << 16
"""Batches that are walked through for one record: more than lie between two entries of an index."""

_OFFSETS_END = 1 << 63


ReadAt = Callable[[int, int], bytes]
"""Position and size → the bytes there, fewer at the end of the file and nothing behind it."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEnds:
    """Where a log begins and ends.

    Attributes:
        log_start_offset: the first offset that a client can read.
        log_end_offset: behind the last whole batch in the files.
        high_watermark: what the broker had noted last; None where no checkpoint tells.
        newest_timestamp_ms: of the last batch; None without one.
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
    is_clean: bool = False
    directory: str = ""
    problem: str | None = None
    first_timestamps: Mapping[int, int | None] = field(default_factory=dict)

    @property
    def is_by_high_watermark(self) -> bool:
        """Whether consumers' end is the high watermark: after an orderly stop, and not more than the log has.

        While a broker runs it notes the high watermark every five seconds, and what is behind that is read by consumers
        long before: then the end of the log is nearer to the truth.
        """
        return self.is_clean and self.high_watermark is not None and self.high_watermark >= self.log_start_offset

    @property
    def end_offset(self) -> int:
        """What ``ListOffsets`` answers for the latest, and ``kafka-consumer-groups`` shows as LOG-END-OFFSET."""
        if self.is_by_high_watermark:
            assert self.high_watermark is not None
            return min(self.high_watermark, self.log_end_offset)
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
        end, newest, problem = _end_of(files, bases, batches)
        return LogEnds(
            log_start_offset=max(bases[0], bases[0] if log_start_offset is None else log_start_offset),
            log_end_offset=end,
            high_watermark=high_watermark,
            newest_timestamp_ms=newest,
            is_clean=is_clean,
            directory=files.shown_path,
            problem=problem,
            first_timestamps=_first_timestamps(files, bases, batches, sorted(set(dating))),
        )


@contextmanager
def _open_batches(files: PartitionFiles, base_offset: int) -> Iterator[_Batches]:
    with files.open_log(base_offset) as log, files.open_index(base_offset) as read_index:
        yield _Batches(files.shown_path, base_offset, log, read_index)


def _end_of(files: PartitionFiles, bases: list[int], batches: _Batches) -> tuple[int, int | None, str | None]:
    """Where the log goes on, the time of its last batch, and what is wrong there.

    An empty last segment tells the end by its name; the time is in the one before.

    Args:
        batches: of the last segment.
    """
    last = batches.last()
    problem = batches.problem
    if last is not None:
        return last.next_offset, _time_of(last), problem
    for base in bases[-2:-1]:
        with _open_batches(files, base) as before:
            last = before.last()
            problem = problem or before.problem
            if last is not None:
                return max(bases[-1], last.next_offset), _time_of(last), problem
    return bases[-1], None, problem


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


def _records(batch: FileBatch) -> Iterator[Record]:
    """The data records of a batch; consumers do not get control records.

    Raises:
        OffsetsLogError: one cannot be read: what is behind it is not the first.
    """
    for item in () if batch.is_control else iter_records(batch.whole()):
        if isinstance(item, Damage):
            raise item.error
        if isinstance(item, Record):
            yield item


class _Batches:
    """The batches of one segment, found by its index where that fits the log."""

    def __init__(self, directory: str, base_offset: int, log: Buffer, read_index: ReadAt) -> None:
        self.problem: str | None = None
        self._base_offset = base_offset
        self._file = f"{directory}/{base_offset:020}.log"
        self._log = memoryview(log)
        self._read_index = read_index
        self._chunks: dict[int, bytes] = {}

    def last(self) -> FileBatch | None:
        """The last whole batch whose checksum is right, as a broker keeps it that recovers the log."""
        last: FileBatch | None = None
        for start in (self._position(self._entry_count() - 1), 0):
            for batch in self._from(start):
                last = batch
            if last is not None or start == 0:
                break
        while last is not None:
            try:
                last.ensure_valid()
                return last
            except BrokerError as error:
                self.problem = f"{self._file}: {error.problem}"
            last = self._before(last.position)
        return None

    def containing(self, offset: int) -> Iterator[FileBatch]:
        """The batches from that on which holds an offset, or the first behind it."""
        for batch in islice(self._from(self._position(self._slot(offset))), MOST_WALKED):
            if batch.last_offset >= offset:
                yield batch

    def date(self, left: deque[int], end: int, found: dict[int, int | None]) -> None:
        """Take offsets from the left for as long as this segment tells the time of the first record from each on.

        Args:
            left: rising.
            end: where the next segment begins. An offset below that which no record here follows is left.
            found: offset → time, or None where it cannot be read.
        """
        while left and left[0] < end:
            for batch in self.containing(left[0]):
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
            for record in _records(batch):
                time_ms = None if record.timestamp_ms == NO_TIMESTAMP else record.timestamp_ms
                while left and left[0] <= record.offset:
                    found[left.popleft()] = time_ms
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
        position, next_offset = start, self._base_offset
        while True:
            try:
                batch = entry_at(self._file, self._log, position, len(self._log))
                if batch is None:
                    return
                is_in_order = next_offset <= batch.offset <= batch.last_offset < _OFFSETS_END - 1
            except BrokerError as error:
                self._note(error.problem, position)
                return
            if not is_in_order:
                self._note(f"offset {batch.offset} where {next_offset} or a later one is expected", position)
                return
            yield batch
            position, next_offset = batch.end, batch.next_offset

    def _note(self, problem: str, position: int) -> None:
        if any(self._log[position : position + 64]):  # zeros are room that was made beforehand
            self.problem = f"{self._file}, position {position}: {problem}"

    def _entry(self, slot: int) -> tuple[int, int]:
        """Zeros behind the last one."""
        number, place = divmod(slot * _INDEX_ENTRY.size, _INDEX_CHUNK)
        if number not in self._chunks:
            self._chunks[number] = self._read_index(number * _INDEX_CHUNK, _INDEX_CHUNK)
        chunk = self._chunks[number]
        if place + _INDEX_ENTRY.size > len(chunk):
            return 0, 0
        relative, position = _INDEX_ENTRY.unpack_from(chunk, place)
        return relative, position

    def _entry_count(self) -> int:
        """How many entries there are before the zeros, which are not gone through: there may be many more of them."""
        high = 1
        while self._entry(high - 1) != (0, 0):
            high *= 2
        low = high // 2
        while low < high:
            middle = (low + high) // 2
            if self._entry(middle) == (0, 0):
                high = middle
            else:
                low = middle + 1
        return low

    def _slot(self, offset: int) -> int:
        """The last entry at or below an offset; −1 without one."""
        low, high = 0, self._entry_count()
        while low < high:
            middle = (low + high) // 2
            if self._base_offset + self._entry(middle)[0] <= offset:
                low = middle + 1
            else:
                high = middle
        return low - 1

    def _position(self, slot: int) -> int:
        """Where to begin, 0 unless a batch of this segment stands where the index says."""
        if slot < 0:
            return 0
        relative, position = self._entry(slot)
        if not 0 < position < len(self._log):
            return 0
        try:
            batch = entry_at(self._file, self._log, position, len(self._log))
        except BrokerError:
            return 0
        fits = batch is not None and batch.offset >= self._base_offset and batch.last_offset >= batch.offset
        return position if fits and relative >= 0 else 0
