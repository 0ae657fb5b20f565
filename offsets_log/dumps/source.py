"""Turn a dump's contents to log segments: the only way by which text and tables reach code that reads logs.

A reader of one format yields `SourceBatch`es, and `Damage` for what it cannot read. `SegmentBuilder` of
`segment_builder` writes the batches as Kafka would, so that decoding, replay and all commands treat them like files.
Values that a source does not have are written as Kafka's own "none"; their columns are named in ``missing_columns``,
and rows have null there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from offsets_log.dumps.positions import DecodedBatch
from offsets_log.errors import CorruptRecordError, Damage
from offsets_log.log_format import batch as b
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.compression import CODEC_NAMED
from offsets_log.log_format.partition_log import BYTES
from offsets_log.log_format.record import Record
from offsets_log.log_format.segment import Buffer
from offsets_log.messages.internal_topics import OFFSETS_TOPIC

SEGMENT_NAME = re.compile(
    r"(?:^|/)(?:(?P<topic>[^/]+)-(?P<partition>[0-9]{1,9})/)?(?P<base_offset>[0-9]{20})\.log[^/]*$"
)
LEAST_CHUNK_BYTES, CHUNK_BYTES = 1 << 13, 1 << 20
MAX_LINE_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class SegmentPlace:
    """The segment a batch belongs to, as far as the source says.

    Attributes:
        file: the segment's name in the source; "" if there is none.
        offsets_partition, base_offset: None if unknown.
        log_line: line at which a log begins whose files have names that stood there before; 0 for the first.
    """

    file: str = ""
    offsets_partition: int | None = None
    base_offset: int | None = None
    log_line: int = 0

    def is_named_like(self, other: SegmentPlace) -> bool:
        """Return whether the source has the same name for both."""
        return replace(self, log_line=other.log_line) == other


@dataclass(frozen=True, slots=True)
class SourceBatch:
    """One batch.

    Attributes:
        batch: its header; ``position`` is its line in the source, ``raw`` is empty.
        records: its records; ``position`` is their line in the source.
        missing_columns: columns of rows that the source does not have.
        size_bytes: size in the file it was read from; None if the source does not have it.
        positions: of the first and the last of the records in that file; None if the source does not have them.
    """

    place: SegmentPlace
    batch: RecordBatch
    records: tuple[Record, ...]
    missing_columns: frozenset[str] = frozenset()
    size_bytes: int | None = None
    positions: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class SegmentPiece:
    """Whole batches of a segment, as bytes.

    Attributes:
        lines: pairs of int64, record offset and line, in ascending order of lines. A negative line is that of a batch:
            it counts for the batch's base offset unless a record has that offset.
        missing_columns: columns of rows that the source does not have.
        decoded: where they were in the file, if rows of ``decode`` are the source.
        has_markers: whether control batches are among them; told with `decoded` only.
    """

    place: SegmentPlace
    data: bytes
    lines: bytes = b""
    missing_columns: frozenset[str] = frozenset({BYTES})
    decoded: tuple[DecodedBatch, ...] = ()
    has_markers: bool = False


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
