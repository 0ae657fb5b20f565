"""The logs of a copy as consumers ask for them: raw batches from an offset on, and where a time is.

Batches are found by their headers and the indexes beside them. One whose checksum is wrong is given as a broker gives
it, for whoever reads the records checks it; it is told all the same.

References: ``LocalLog.read``, ``LogSegment.findOffsetByTimestamp``, ``UnifiedLog.fetchOffsetByTimestamp``.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import NamedTuple, Protocol

from offsets_log.broker.batches import FileBatch
from offsets_log.broker.failures import BrokerError
from offsets_log.broker.indexes import TIME_ENTRY
from offsets_log.cleaner.transactions import control_kind
from offsets_log.data_directory.copied_logs import CopiedLogs
from offsets_log.data_directory.log_ends import LogEnds, find_log_ends
from offsets_log.data_directory.segment_batches import PartitionFiles, PlacedBatch, SegmentBatches, open_batches
from offsets_log.errors import CorruptBatchError
from offsets_log.log_format.batch import NO_TIMESTAMP
from offsets_log.log_format.late_batches import late_batches
from offsets_log.log_format.partition_log import PartitionLog, Segment, batches_of
from offsets_log.log_format.segment import Pieces, pieces_of
from offsets_log.messages.internal_topics import OFFSETS_TOPIC

AHEAD_MS = 900_000
"""How far beyond the logs' end a record's time may be; ages up to ``transaction.max.timeout.ms`` stay what they are."""
FIRST_MS = 1_293_840_000_000
"""2011, when Kafka was published: what is older is in another unit, or was set by nobody."""
LATE = 8
"""So many of a log's last batches are looked at for one of a time to believe."""
MOST_PLACES = 256
"""So many ends of answers are remembered of a log: the next request begins there."""


class ReadableFiles(PartitionFiles, Protocol):
    """The directory of a partition, with small files beside its segments."""

    @property
    def dated_from(self) -> int:
        """The offset from which on all of the log is here; an archive that is unpacked on the way gives only ends."""
        ...

    def read(self, name: str) -> bytes | None:
        """Read a small file; None if there is none. Raises InputError."""
        ...


class TimedRecord(NamedTuple):
    """A record: its offset and timestamp, and the leader epoch of its batch, −1 before magic 2."""

    offset: int
    timestamp_ms: int
    leader_epoch: int


class AbortedTransaction(NamedTuple):
    """A transaction that was aborted: its first offset, and that of its marker."""

    producer_id: int
    first_offset: int
    last_offset: int


class LogReader:
    """The log of a partition, which does not change."""

    def __init__(self, files: ReadableFiles, tell: Callable[[str], None] = lambda words: None) -> None:
        """Args:
        tell: takes what is wrong with batches that are given all the same, as a broker gives them.
        """
        self._files = files
        self._tell = tell
        self._bases = files.base_offsets()
        self._first_here = files.dated_from
        self._places: dict[int, tuple[int, int]] = {}
        self._decided: tuple[int, tuple[list[AbortedTransaction], list[int]]] = -1, ([], [])

    @property
    def directory(self) -> str:
        """The data directory that the log lies in."""
        return self._files.shown_path.rpartition("/")[0]

    @cached_property
    def size_bytes(self) -> int | None:
        """All its segments together; None where an archive gives only the end. Raises InputError."""
        if self._first_here > (self._bases[0] if self._bases else 0):
            return None
        total = 0
        for base in self._bases:
            with self._files.open_segment(base) as segment:
                total += segment.size_bytes
        return total

    def read(self, offset: int, end_offset: int, most_bytes: int, *, is_first: bool) -> bytes:
        """Return whole batches of one segment, from that of an offset on, or the next where it is gone.

        Args:
            end_offset: batches that go on behind it are left out.
            is_first: whether the first batch is returned however large it is.

        Raises:
            InputError: a file cannot be read.
            CorruptBatchError: something stands there that is no batch, or it is not here.
        """
        self._require(offset)
        hint_base, hint = self._places.get(offset, (-1, 0))
        for base in self._from(offset):
            with open_batches(self._files, base) as batches:
                start = stop = following = -1
                taken: list[PlacedBatch] = []
                for placed in batches.since(offset, hint if base == hint_base else 0):
                    size_bytes = placed.end - (placed.position if start < 0 else start)
                    is_too_much = size_bytes > most_bytes and not (is_first and start < 0)
                    if placed.last_offset >= end_offset or is_too_much:
                        break
                    start = placed.position if start < 0 else start
                    stop, following = placed.end, placed.last_offset + 1
                    taken.append(placed)
                else:
                    if start < 0:
                        if batches.problem:
                            raise CorruptBatchError(batches.problem)
                        continue
                if start < 0:
                    return b""
                self._remember(following, base, stop)
                raw = batches.raw(start, stop)
                self._check_sums(base, taken, raw)
                return raw
        if offset < end_offset and self._end < end_offset:
            raise CorruptBatchError(
                f"the log ends at offset {self._end}: what should follow is not in this copy",
                file=self._files.shown_path,
            )
        return b""

    @cached_property
    def _end(self) -> int:
        """The offset behind the last whole batch in the files; that of the name of a last segment without one."""
        ends = find_log_ends(self._files)
        return 0 if ends is None else ends.log_end_offset

    def _check_sums(self, base: int, taken: Sequence[PlacedBatch], raw: bytes) -> None:
        """Tell of batches that do not fit their checksum."""
        view, start = memoryview(raw), taken[0].position
        for position, batch, _ in taken:
            begin = position - start
            try:
                batch._replace(view=view[begin : begin + batch.size_bytes]).ensure_valid()
            except BrokerError as error:
                self._tell(f"{self._files.shown_path}/{base:020}.log, position {position}: {error.problem}")

    def _remember(self, offset: int, base: int, position: int) -> None:
        self._places[offset] = base, position
        if len(self._places) > MOST_PLACES:
            del self._places[next(iter(self._places))]

    def _require(self, offset: int) -> None:
        """Raise CorruptBatchError if the log is not here from an offset on: what follows it is not known."""
        if self._bases and max(offset, self._bases[0]) < self._first_here:
            raise CorruptBatchError(f"only what follows offset {self._first_here} is here", file=self._files.shown_path)

    def _from(self, offset: int) -> list[int]:
        """Return the base offsets of the segments that may hold an offset or what follows it."""
        return self._bases[max(bisect_right(self._bases, offset) - 1, 0) :]

    # ------------------------------------------------------------------------------------- times

    def at_time(self, timestamp_ms: int, start: int, end: int) -> TimedRecord | None:
        """Return the first record between two offsets that is as late as a time; None if none is.

        Raises:
            OffsetsLogError: a file or a batch cannot be read.
        """
        self._require(start)
        for base in self._from(start):
            with open_batches(self._files, base) as batches:
                for placed in batches.since(max(start, self._earlier_than(timestamp_ms, base))):
                    if placed.batch.offset >= end:
                        return None
                    if placed.batch.max_timestamp_ms < timestamp_ms:
                        continue
                    for place in _places_in(batches, placed):
                        if place.timestamp_ms >= timestamp_ms and place.offset >= start:
                            return place if place.offset < end else None
                if batches.problem:
                    raise CorruptBatchError(batches.problem)
        return None

    def at_largest_time(self, start: int, end: int) -> TimedRecord | None:
        """Return the first record with the largest timestamp; None without records. Raises OffsetsLogError."""
        self._require(start)
        largest: TimedRecord | None = None
        for base in self._from(start):
            with open_batches(self._files, base) as batches:
                for placed in batches.since(start):
                    if placed.last_offset >= end:
                        return largest
                    if largest is None or placed.batch.max_timestamp_ms > largest.timestamp_ms:
                        some = [place for place in _places_in(batches, placed) if place.offset >= start]
                        largest = max([*([largest] if largest else []), *some], key=_time, default=None)
                if batches.problem:
                    raise CorruptBatchError(batches.problem)
        return largest

    def _earlier_than(self, timestamp_ms: int, base: int) -> int:
        """Return an offset of a segment before which, by its time index, nothing is as late as a time."""
        entries = TIME_ENTRY.iter_unpack(self._time_index(base))
        times = [(time, base + relative) for time, relative in entries if time > 0]
        slot = bisect_left(times, (timestamp_ms, 0)) - 1
        return times[slot][1] if slot >= 0 and times == sorted(times) else base

    def _time_index(self, base: int) -> bytes:
        raw = self._files.read(f"{base:020}.timeindex") or b""
        return raw[: len(raw) // TIME_ENTRY.size * TIME_ENTRY.size]

    # ------------------------------------------------------------------------------------- transactions

    def _transactions(self, end_offset: int) -> tuple[list[AbortedTransaction], list[int]]:
        """Return the transactions that are aborted before an offset, and the first offsets of those open there.

        The index of aborted transactions would not tell which are open: every batch header is looked at, once for each
        end.
        """
        self._require(0)
        if self._decided[0] != end_offset:
            aborted: list[AbortedTransaction] = []
            opened: dict[int, int] = {}
            for batch in self._transactional(end_offset):
                if not batch.is_control:
                    opened.setdefault(batch.producer_id, batch.offset)
                    continue
                kind = control_kind(batch)
                first = None if kind is None else opened.pop(batch.producer_id, None)  # an empty one ends nothing
                if first is not None and kind == "ABORT":
                    aborted.append(AbortedTransaction(batch.producer_id, first, batch.last_offset))
            self._decided = end_offset, (aborted, list(opened.values()))
        return self._decided[1]

    def _transactional(self, end_offset: int) -> Iterator[FileBatch]:
        """Yield the batches of transactions before an offset; of data only headers are read."""
        for base in self._bases:
            with open_batches(self._files, base) as batches:
                for placed in batches.walk():
                    if placed.last_offset >= end_offset:
                        return
                    if placed.batch.is_transactional:
                        yield batches.whole(placed) if placed.batch.is_control else placed.batch

    def last_stable_offset(self, end_offset: int) -> int:
        """Return where the first transaction begins that is open at an end, or that end. Raises OffsetsLogError."""
        return min([end_offset, *self._transactions(end_offset)[1]])

    def aborted(self, start: int, stable_offset: int, end_offset: int) -> list[AbortedTransaction]:
        """Return the aborted transactions between two offsets of a log with an end. Raises OffsetsLogError."""
        found = self._transactions(end_offset)[0]
        return [one for one in found if one.last_offset >= start and one.first_offset < stable_offset]


def _time(place: TimedRecord) -> tuple[int, int]:
    return place.timestamp_ms, -place.offset


def _places_in(batches: SegmentBatches, placed: PlacedBatch) -> Iterator[TimedRecord]:
    """Yield the records of a batch; that of a control batch stands for its timestamp."""
    batch = placed.batch
    times: Iterable[tuple[int, int]] = batches.times(placed)
    if batch.is_control:
        times = [(placed.last_offset, batch.max_timestamp_ms)]
    return (TimedRecord(offset, time_ms, batch.partition_leader_epoch) for offset, time_ms in times)


@dataclass(frozen=True)
class OffsetsFiles:
    """The log of an offsets partition; see `ReadableFiles`."""

    log: PartitionLog
    dated_from = 0

    @property
    def topic(self) -> str:
        """Always the same."""
        return OFFSETS_TOPIC

    @property
    def partition(self) -> int:
        """Its number."""
        return self.log.offsets_partition or 0

    @property
    def shown_path(self) -> str:
        """To show."""
        return self.log.segments[0].file.rpartition("/")[0]

    @cached_property
    def _segments(self) -> Mapping[int, Segment]:
        return {segment.base_offset or 0: segment for segment in self.log.segments}

    def base_offsets(self) -> list[int]:
        """Return the base offsets of its segments, rising."""
        return sorted(self._segments)

    def open_segment(self, base_offset: int) -> AbstractContextManager[Pieces]:
        """Open the records of a segment."""
        return nullcontext(pieces_of(self._segments[base_offset].buffer))

    def open_index(self, base_offset: int) -> AbstractContextManager[Pieces]:
        """Open the index of a segment."""
        return nullcontext(pieces_of(self.read(f"{base_offset:020}.index") or b""))

    def read(self, name: str) -> bytes | None:
        """Read a small file beside the segments."""
        return bytes(self.log.beside[name]()) if name in self.log.beside else None


def ends_of(logs: Iterable[PartitionLog]) -> Iterator[LogEnds | None]:
    """Yield where each log ends. Raises OffsetsLogError if a file cannot be read."""
    return (find_log_ends(OffsetsFiles(log)) for log in logs)


def times_of(logs: Sequence[PartitionLog], now_ms: int) -> tuple[int, int] | None:
    """Return the times of the first and the last batch of logs; None where they have none that can be believed.

    The first is `NO_TIMESTAMP` where a log begins with records of magic 0.

    Raises:
        OffsetsLogError: a file cannot be read.
    """
    first = [batch.max_timestamp_ms for log in logs for batch in islice(batches_of(log), 1)]
    last = [time_ms for log in logs if (time_ms := _last_time_of(log, now_ms)) is not None]
    return (min(first), max(last)) if first and last else None


def _last_time_of(log: PartitionLog, now_ms: int) -> int | None:
    """Return the time of the last sound batch that no wrong clock wrote, as far as that shows: it is not to come."""
    times: list[int | None] = [batch.max_timestamp_ms for batch in late_batches(log, LATE)]
    if not times and any(segment.is_fetched for segment in log.segments):
        ends = find_log_ends(OffsetsFiles(log))
        times = [] if ends is None else [ends.newest_timestamp_ms]
    past = [time_ms for time_ms in times if time_ms is not None and NO_TIMESTAMP < time_ms <= now_ms + AHEAD_MS]
    of_kafka = [time_ms for time_ms in past if time_ms >= FIRST_MS]
    return next(reversed(of_kafka or past), None)


class ServedLogs:
    """The logs of a copy, each opened when it is asked for.

    Attributes:
        told: what was told of them.
    """

    MOST_TOLD = 1000
    """So many different things are told."""

    def __init__(
        self,
        copied: CopiedLogs | None = None,
        offsets_logs: Iterable[PartitionLog] = (),
        tell: Callable[[str], None] = lambda words: None,
    ) -> None:
        """Args:
        copied: logs of other topics.
        offsets_logs: logs of the offsets topic.
        tell: takes what of the logs could not be served, each only once.
        """
        self._tell = tell
        self.told: set[str] = set()
        self._copied = copied
        self._offsets_logs = {log.offsets_partition: log for log in offsets_logs if log.segments}
        self._readers: dict[tuple[str, int], LogReader | None] = {}

    def of(self, topic: str, partition: int) -> LogReader | None:
        """Return a partition's log; None without one. Raises InputError."""
        key = topic, partition
        if key not in self._readers:
            files = self._files(topic, partition)
            self._readers[key] = None if files is None else LogReader(files, self.tell)
        return self._readers[key]

    def tell(self, words: str) -> None:
        """Say what of a log could not be served, or is given as it is."""
        if words not in self.told and len(self.told) < self.MOST_TOLD:
            self.told.add(words)
            self._tell(words)

    def _files(self, topic: str, partition: int) -> ReadableFiles | None:
        if topic == OFFSETS_TOPIC:
            log = self._offsets_logs.get(partition)
            return None if log is None else OffsetsFiles(log)
        return None if self._copied is None else self._copied.copy_that_counts(topic, partition)
