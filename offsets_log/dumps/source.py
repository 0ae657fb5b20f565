"""What a dump tells, as log segments: the one door by which text and tables come to everything that reads logs.

A reader of one format gives `SourceBatch`es, and `Damage` for what it cannot read. `SegmentBuilder` writes the batches
as Kafka would, so that decoding, replay and all commands take them as they take files. What a source does not tell
stands in the bytes as Kafka's own "none" and in ``untold`` by the name of its column; rows have null there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from offsets_log.errors import CorruptRecordError, Damage, OffsetsLogError
from offsets_log.log_format import batch as b
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.compression import CODEC_NAMED
from offsets_log.log_format.partition_log import BYTES, POSITION, PartitionLog, Segment
from offsets_log.log_format.record import Record, rebuild_batch
from offsets_log.log_format.segment import Buffer

SEGMENT_NAME = re.compile(
    r"(?:^|/)(?:(?P<topic>[^/]+)-(?P<partition>[0-9]{1,9})/)?(?P<base_offset>[0-9]{20})\.log[^/]*$"
)
OFFSETS_TOPIC = "__consumer_offsets"
CHUNK_BYTES = 1 << 20
MAX_LINE_BYTES = 64 << 20

PRINTED = "a dump holds what was printed"
"""Why nothing is missing around its records."""


@dataclass(frozen=True, slots=True)
class Place:
    """The segment a batch belongs to, as far as the source tells it.

    Attributes:
        file: the segment's own name there; "" if none is told.
        offsets_partition, base_offset: None if not told.
    """

    file: str = ""
    offsets_partition: int | None = None
    base_offset: int | None = None


@dataclass(frozen=True, slots=True)
class SourceBatch:
    """One batch.

    Attributes:
        batch: its header; ``position`` is its line in the source, ``raw`` is empty.
        records: their ``position`` is their line in the source.
        untold: columns of rows that the source does not tell.
        size_bytes: in the file it was read of; None if the source does not tell it.
    """

    place: Place
    batch: RecordBatch
    records: tuple[Record, ...]
    untold: frozenset[str] = frozenset()
    size_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class SegmentPiece:
    """Whole batches of a segment, as bytes."""

    place: Place
    data: bytes


@dataclass(frozen=True, slots=True)
class Remark:
    """Something to say once of a source, in words."""

    words: str


@dataclass(frozen=True, slots=True)
class Untold:
    """Columns that a source does not tell in any of the batches of a segment, as its end shows."""

    place: Place
    columns: frozenset[str]


Piece = SourceBatch | SegmentPiece | Damage | Remark | Untold


def place_of(file: str) -> Place | None:
    """The place a segment file's name tells; None for a partition of another topic."""
    match = SEGMENT_NAME.search(file)
    if match is None:
        return Place(file)
    if match["topic"] not in (None, OFFSETS_TOPIC):
        return None
    return Place(file, None if match["partition"] is None else int(match["partition"]), int(match["base_offset"]))


def iter_lines(buffer: Buffer) -> Iterator[tuple[int, bytes]]:
    """The lines of a text, numbered from 1, without their ends (``\\n`` or ``\\r\\n``).

    A line of more than `MAX_LINE_BYTES` comes in pieces of about that size.
    """
    view, number, rest = memoryview(buffer), 0, b""
    for start in range(0, len(view), CHUNK_BYTES):
        *lines, rest = (rest + view[start : start + CHUNK_BYTES].tobytes()).split(b"\n")
        if len(rest) > MAX_LINE_BYTES:
            lines, rest = [*lines, rest], b""
        for line in lines:
            number += 1
            yield number, line.removesuffix(b"\r")
    if rest:
        yield number + 1, rest.removesuffix(b"\r")


def damaged_line(line: int, raw: bytes, problem: str) -> Damage:
    """A line that cannot be read."""
    return Damage(CorruptRecordError(problem, position=line), raw)


def header(
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
    """The header of a batch of these records; what is not given follows from them.

    Raises:
        CorruptRecordError: neither a record nor a base offset.
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


@dataclass(slots=True)
class _Growing:
    """A segment being written."""

    place: Place
    data: bytearray = field(default_factory=bytearray)
    lines: dict[int, int] = field(default_factory=dict)
    untold: set[str] = field(default_factory=set)


class SegmentBuilder:
    """Takes the pieces of one source.

    Attributes:
        damages: what could not be read; the position is the line.
        remarks: what there is to say of the source, once each.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.damages: list[Damage] = []
        self.remarks: list[str] = []
        self._segments: dict[Place, _Growing] = {}

    def add(self, piece: Piece) -> None:
        """The next piece."""
        match piece:
            case Remark(words):
                self._remark(words)
            case Damage(error):
                error.at(file=self.name)
                self.damages.append(piece)
            case SegmentPiece(place, data):
                growing = self._growing(place)
                growing.data += data
                growing.untold.add(BYTES)
            case Untold(place, columns):
                if place in self._segments:
                    self._segments[place].untold |= columns
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
        growing.data += data
        growing.lines |= {record.offset: record.position for record in piece.records}
        growing.lines.setdefault(piece.batch.base_offset, piece.batch.position)
        growing.untold |= piece.untold
        if piece.size_bytes != len(data):
            growing.untold.add(BYTES)

    def _growing(self, place: Place) -> _Growing:
        return self._segments.setdefault(place, _Growing(place))

    def _remark(self, words: str) -> None:
        if words not in self.remarks:
            self.remarks.append(words)

    def logs(self) -> list[PartitionLog]:
        """Each segment as a log of its own, in the order of the source."""
        return [
            PartitionLog(growing.place.offsets_partition, (self._segment(growing),), selection=PRINTED)
            for growing in self._segments.values()
        ]

    def _segment(self, growing: _Growing) -> Segment:
        inner = growing.place.file
        return Segment(
            f"{self.name}!{inner}" if inner else self.name,
            growing.place.base_offset,
            memoryview(growing.data).toreadonly(),
            untold=frozenset({POSITION, *growing.untold}),
            lines=growing.lines,
        )


def _encode(batch: RecordBatch, records: tuple[Record, ...]) -> bytes:
    if batch.magic == 2 or (records and batch.codec.id):
        return rebuild_batch(batch, records)
    return b"".join(rebuild_batch(replace(batch, base_offset=record.offset), (record,)) for record in records)
