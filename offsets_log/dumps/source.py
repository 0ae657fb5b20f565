"""Turn a dump's contents to log segments: the only way by which text and tables reach code that reads logs.

A reader of one format yields `SourceBatch`es, and `Damage` for what it cannot read. `SegmentBuilder` writes the batches
as Kafka would, so that decoding, replay and all commands treat them like files. Values that a source does not have are
written as Kafka's own "none"; their columns are named in ``missing_columns``, and rows have null there.
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Protocol

from offsets_log.errors import CorruptRecordError, Damage, OffsetsLogError
from offsets_log.log_format import batch as b
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.building import rebuild_batch
from offsets_log.log_format.compression import CODEC_NAMED
from offsets_log.log_format.partition_log import BYTES, POSITION, PartitionLog, Segment
from offsets_log.log_format.record import Record, as_int64
from offsets_log.log_format.segment import Buffer
from offsets_log.messages.internal_topics import OFFSETS_TOPIC

SEGMENT_NAME = re.compile(
    r"(?:^|/)(?:(?P<topic>[^/]+)-(?P<partition>[0-9]{1,9})/)?(?P<base_offset>[0-9]{20})\.log[^/]*$"
)
LEAST_CHUNK_BYTES, CHUNK_BYTES = 1 << 13, 1 << 20
MAX_LINE_BYTES = 64 << 20
MOST_TIMES = 9  # that a text is seen to be pasted

PRINTED = "a dump holds what was printed"
"""Why nothing is reported missing around its records."""


@dataclass(frozen=True, slots=True)
class SegmentPlace:
    """The segment a batch belongs to, as far as the source says.

    Attributes:
        file: the segment's name in the source; "" if there is none.
        offsets_partition, base_offset: None if unknown.
    """

    file: str = ""
    offsets_partition: int | None = None
    base_offset: int | None = None


@dataclass(frozen=True, slots=True)
class SourceBatch:
    """One batch.

    Attributes:
        batch: its header; ``position`` is its line in the source, ``raw`` is empty.
        records: its records; ``position`` is their line in the source.
        missing_columns: columns of rows that the source does not have.
        size_bytes: size in the file it was read from; None if the source does not have it.
    """

    place: SegmentPlace
    batch: RecordBatch
    records: tuple[Record, ...]
    missing_columns: frozenset[str] = frozenset()
    size_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class SegmentPiece:
    """Whole batches of a segment, as bytes.

    Attributes:
        lines: pairs of int64, record offset and line, in ascending order of lines. A negative line is that of a batch:
            it counts for the batch's base offset unless a record has that offset.
        missing_columns: columns of rows that the source does not have.
    """

    place: SegmentPlace
    data: bytes
    lines: bytes = b""
    missing_columns: frozenset[str] = frozenset({BYTES})


@dataclass(frozen=True, slots=True)
class Remark:
    """A sentence to say once about a source."""

    words: str


@dataclass(frozen=True, slots=True)
class Untold:
    """Columns that a source lacks in all batches of a segment, which is known only at its end."""

    place: SegmentPlace
    columns: frozenset[str]


SourcePiece = SourceBatch | SegmentPiece | Damage | Remark | Untold


def place_of(file: str) -> SegmentPlace | None:
    """Return the place in a segment file's name; None for a partition of another topic."""
    match = SEGMENT_NAME.search(file)
    if match is None:
        return SegmentPlace(file)
    if match["topic"] not in (None, OFFSETS_TOPIC):
        return None
    return SegmentPlace(
        file, None if match["partition"] is None else int(match["partition"]), int(match["base_offset"])
    )


def iter_lines(buffer: Buffer) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a text, numbered from 1, without their ends (``\\n`` or ``\\r\\n``).

    A line of more than `MAX_LINE_BYTES` comes in pieces of about that size.
    """
    for _, number, line in iter_placed_lines(buffer):
        yield number, line


def iter_placed_lines(buffer: Buffer, at: int = 0, number: int = 1) -> Iterator[tuple[int, int, bytes]]:
    """Yield lines from a position on: where each begins, its number, and the line.

    Args:
        at: position of the beginning of a line.
        number: that line's number.
    """
    view, rest, held, begin = memoryview(buffer), b"", at, at
    size = LEAST_CHUNK_BYTES
    while held < len(view):
        *lines, rest = (rest + view[held : held + size].tobytes()).split(b"\n")
        held += size
        size = min(2 * size, CHUNK_BYTES)
        if len(rest) > MAX_LINE_BYTES:
            lines, rest = [*lines, rest], b""
        for line in lines:
            yield begin, number, line.removesuffix(b"\r")
            number += 1
            begin += len(line) + 1
    if rest:
        yield begin, number, rest.removesuffix(b"\r")


def damaged_line(line: int, raw: bytes, problem: str) -> Damage:
    """Return the damage of a line that cannot be read."""
    return Damage(CorruptRecordError(problem, position=line), raw)


def header(  # noqa: PLR0913 - the fields of a header by their names
    records: tuple[Record, ...],
    *,
    line: int,
    magic: int = 2,
    compression: str = "none",
    timestamp_type: str = "create",
    base_offset: int | None = None,
    last_offset: int | None = None,
    max_timestamp_ms: int | None = None,
    delete_horizon_ms: int | None = None,
    is_transactional: bool = False,
    is_control: bool = False,
    producer_id: int = b.NO_PRODUCER_ID,
    producer_epoch: int = b.NO_PRODUCER_EPOCH,
    base_sequence: int = b.NO_SEQUENCE,
    partition_leader_epoch: int = b.NO_PARTITION_LEADER_EPOCH,
) -> RecordBatch:
    """Build the header of a batch of these records; what is not given follows from them.

    Raises:
        CorruptRecordError: there is neither a record nor a base offset.
    """
    if not records and base_offset is None:
        raise CorruptRecordError("a batch without records and offset")
    first = records[0].offset if records else 0
    codec = CODEC_NAMED.get(compression, CODEC_NAMED["none"])
    flags = (
        (b.TIMESTAMP_TYPE_MASK, timestamp_type == "log_append" and magic > 0),
        (b.TRANSACTIONAL_MASK, is_transactional and magic == 2),
        (b.CONTROL_MASK, is_control and magic == 2),
        (b.DELETE_HORIZON_MASK, delete_horizon_ms is not None and magic == 2),
    )
    base_timestamp = records[0].timestamp_ms if records else b.NO_TIMESTAMP
    latest = max((record.timestamp_ms for record in records), default=b.NO_TIMESTAMP)
    return RecordBatch(
        position=line,
        raw=b"",
        magic=magic,
        crc=0,
        attributes=(codec.id if magic == 2 or codec.name != "zstd" else 0)
        | sum(mask for mask, is_set in flags if is_set),
        base_offset=first if base_offset is None else base_offset,
        last_offset=(records[-1].offset if records else first) if last_offset is None else last_offset,
        partition_leader_epoch=partition_leader_epoch,
        base_timestamp_ms=base_timestamp if delete_horizon_ms is None else delete_horizon_ms,
        max_timestamp_ms=latest if max_timestamp_ms is None else max_timestamp_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        records_count=len(records),
    )


class Store(Protocol):
    """Bytes that can be appended to, wherever they are kept."""

    def append(self, data: bytes) -> None:
        """Append bytes."""

    def buffer(self) -> Buffer:
        """Return all bytes; none may be appended afterwards."""


class InMemory:
    """A `Store` in memory."""

    def __init__(self) -> None:
        self._data = bytearray()

    def append(self, data: bytes) -> None:
        """Append bytes."""
        self._data += data

    def buffer(self) -> Buffer:
        """Return all bytes."""
        return memoryview(self._data).toreadonly()


class LinesOfOffsets(Mapping[int, int]):
    """Record offset → line of a source, kept as pairs of numbers; binary search is used while offsets ascend.

    Args:
        store: holds pairs of int64, see `SegmentPiece`.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._last: int | None = None
        self._rises = True
        self._count = 0
        self._pairs: memoryview | None = None

    def add(self, pairs: bytes) -> None:
        """Append pairs."""
        offsets = memoryview(pairs).cast("q")[::2]
        if self._rises and len(offsets):
            told = [*offsets] if self._last is None else [self._last, *offsets]
            self._rises = all(one <= other for one, other in pairwise(told))
            self._last = told[-1]
        self._count += len(offsets)
        self._store.append(pairs)

    def __getitem__(self, record_offset: int) -> int:
        """Return the last record's line, or that of the first batch that begins there. Raises KeyError."""
        pairs = self._pairs = memoryview(self._store.buffer()).cast("q") if self._pairs is None else self._pairs
        offsets, lines = pairs[::2], pairs[1::2]
        begin = bisect_left(offsets, record_offset) if self._rises else 0
        of_batch = None
        of_record = None
        for i in range(begin, self._count):
            if offsets[i] == record_offset:
                if lines[i] > 0:
                    of_record = lines[i]
                elif of_batch is None and of_record is None:
                    of_batch = -lines[i]
            elif self._rises:
                break
        if of_record is None and of_batch is None:
            raise KeyError(record_offset)
        return of_record or of_batch or 0

    def __iter__(self) -> Iterator[int]:
        return iter({*memoryview(self._store.buffer()).cast("q")[::2]})

    def __len__(self) -> int:
        return self._count


@dataclass(slots=True)
class _Growing:
    """A segment that is being written."""

    place: SegmentPlace
    data: Store
    lines: LinesOfOffsets
    missing_columns: set[str] = field(default_factory=set)


class SegmentBuilder:
    """Build segments from the pieces of one source.

    Attributes:
        damages: what could not be read; the position is the line.
        remarks: remarks about the source, each once.

    Args:
        store: creates the store for the bytes of a segment.
    """

    def __init__(self, name: str, store: Callable[[], Store] = InMemory) -> None:
        self.name = name
        self._store = store
        self.damages: list[Damage] = []
        self.remarks: list[str] = []
        self._segments: dict[SegmentPlace, _Growing] = {}

    def add(self, piece: SourcePiece) -> None:
        """Add the next piece."""
        match piece:
            case Remark(words):
                self._remark(words)
            case Damage(error):
                error.file = self._shown(error.file or "")
                self.damages.append(piece)
            case SegmentPiece(place, data, lines, missing_columns):
                growing = self._growing(place)
                growing.data.append(data)
                growing.lines.add(lines)
                growing.missing_columns |= missing_columns
            case Untold(place, columns):
                if place in self._segments:
                    self._segments[place].missing_columns |= columns
            case SourceBatch():
                try:
                    self._write(piece)
                except OffsetsLogError as error:
                    line = piece.batch.position
                    raw = b"".join((record.key or b"") + (record.value or b"") for record in piece.records)
                    problem = CorruptRecordError(
                        f"it makes no batch: {error}", position=line, record_offset=piece.batch.base_offset
                    )
                    self.add(Damage(problem, raw))

    def _write(self, piece: SourceBatch) -> None:
        data = _encode(piece.batch, piece.records)
        growing = self._growing(piece.place)
        growing.data.append(data)
        growing.lines.add(_lines_of(piece))
        growing.missing_columns |= piece.missing_columns
        if piece.size_bytes != len(data):
            growing.missing_columns.add(BYTES)

    def _growing(self, place: SegmentPlace) -> _Growing:
        if place not in self._segments:
            self._segments[place] = _Growing(place, self._store(), LinesOfOffsets(self._store()))
        return self._segments[place]

    def _remark(self, words: str) -> None:
        if words not in self.remarks:
            self.remarks.append(words)

    def _shown(self, file: str) -> str:
        """Return the name to show of a file in the source; of the source itself if it has none."""
        return f"{self.name}!{file}" if file else self.name

    def logs(self) -> list[PartitionLog]:
        """Return each segment as a log of its own, in the order of the source."""
        return [
            PartitionLog(growing.place.offsets_partition, (self._segment(growing),), selection=PRINTED)
            for growing in self._segments.values()
        ]

    def _segment(self, growing: _Growing) -> Segment:
        file, contents = self._shown(growing.place.file), growing.data.buffer()
        if (times := _times(contents)) > 1:
            self._remark(f"the same text of {file} is in it {times} times, and is read once")
            contents = memoryview(contents)[: len(contents) // times]
        return Segment(
            file,
            growing.place.base_offset,
            contents,
            missing_columns=frozenset({POSITION, *growing.missing_columns}),
            lines=growing.lines,
        )


def _times(contents: Buffer) -> int:
    """Return how many times the same bytes stand there one after the other: record offsets never repeat in a log."""
    view, size = memoryview(contents), len(contents)
    fitting = (times for times in range(MOST_TIMES, 1, -1) if size and size % times == 0)
    return next((times for times in fitting if view[size // times :] == view[: -(size // times)]), 1)


def _lines_of(piece: SourceBatch) -> bytes:
    """Return pairs of record offset and line, for the batch and for its records."""
    pairs = [(piece.batch.base_offset, -piece.batch.position)]
    pairs += [(record.offset, record.position) for record in piece.records]
    return struct.pack(f"={2 * len(pairs)}q", *(number for pair in pairs for number in pair))


def _encode(batch: RecordBatch, records: tuple[Record, ...]) -> bytes:
    if any(as_int64(record.timestamp_ms) != record.timestamp_ms for record in records):
        raise CorruptRecordError("a timestamp has more than 64 bits")
    if batch.magic == 2 or (records and batch.codec.id):
        return rebuild_batch(batch, records)
    return b"".join(rebuild_batch(replace(batch, base_offset=record.offset), (record,)) for record in records)
