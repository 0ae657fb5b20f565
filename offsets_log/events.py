"""What is met in the log of an offsets partition: batches, records with what they say, tails, damage, missing log.

`pipeline.iter_events` gives them in log order, up to a bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from offsets_log.errors import Damage, OffsetsLogError
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.completeness import Missing
from offsets_log.log_format.control_record import ControlRecord, decode_control_record
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.log_format.record import Record, first_offset, iter_records
from offsets_log.log_format.segment import Tail
from offsets_log.messages.mirror_maker import MirrorMakerRecord
from offsets_log.messages.registry import CoordinatorRecord, decode_coordinator_record
from offsets_log.messages.repeated import RepeatedRecords
from offsets_log.messages.state_topics import StateRecord, decode_topic_record


@dataclass(frozen=True, slots=True)
class Until:
    """Where a replay stops.

    Attributes:
        record_offset: only records below it; None reads to the end.
        time_ms: only batches up to the first whose max timestamp is beyond it.
    """

    record_offset: int | None = None
    time_ms: int | None = None

    def stops_before(self, batch: RecordBatch) -> bool:
        """Whether neither this batch nor any later one is read; one that does not tell where it begins is read."""
        if self.time_ms is not None and batch.max_timestamp_ms > self.time_ms:
            return True
        if self.record_offset is None or batch.last_offset < self.record_offset:
            return False
        try:
            return (batch.base_offset if batch.magic == 2 else first_offset(batch)) >= self.record_offset
        except OffsetsLogError:
            return False

    def cuts(self, record: Record) -> bool:
        """Whether this record is beyond."""
        return self.record_offset is not None and record.offset >= self.record_offset


EVERYTHING = Until()


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One record with its batch, decoded.

    Attributes:
        batch_base_offset: of the batch, or of the first message inside a compressed one of magic 0 and 1.
        control: set for a control record.
        decoded: set for a data record that was decoded.
        topic, state: of a log of another internal topic, its name, and what was decoded.
        damage: set for one that could not: why, and its raw key and value in ``record``.
    """

    segment: Segment
    offsets_partition: int | None
    batch: RecordBatch
    batch_base_offset: int
    record: Record
    control: ControlRecord | None = None
    decoded: CoordinatorRecord | None = None
    topic: str | None = None
    state: StateRecord | MirrorMakerRecord | None = None
    damage: Damage | None = None


@dataclass(frozen=True, slots=True)
class BatchStart:
    """A batch begins; its records follow. ``base_offset`` as in `Event`; of an empty batch, its own."""

    segment: Segment
    batch: RecordBatch
    base_offset: int


@dataclass(frozen=True, slots=True)
class BatchEnd:
    """A batch has been read whole; ``read_until`` is the offset the log goes on at."""

    segment: Segment
    batch: RecordBatch
    read_until: int


@dataclass(frozen=True, slots=True)
class TailFound:
    """The file goes on behind its last whole batch, as a partition's last segment may.

    Attributes:
        lost: how many offsets are known to have been there, or behind; 0 is normal.
    """

    segment: Segment
    tail: Tail
    lost: int = 0

    @property
    def is_blank(self) -> bool:
        """Whether nothing shows that records were there: it is zeros, at the end of a log that goes no further."""
        return self.tail.kind == "zeros" and not self.lost and not self.segment.is_of_broken


@dataclass(frozen=True, slots=True)
class LogEnd:
    """All of a partition was read. An active segment without records still tells where the log goes on."""

    end_offset: int


class Passed(NamedTuple):
    """Records of which none was asked for, from the first to behind the last one: whole batches, or in `BareBatches`.

    Attributes:
        has_holes: whether offsets between them are left out.
    """

    first_offset: int
    next_offset: int
    has_holes: bool


class BareRecord(NamedTuple):
    """No more of a record of data than this, what was passed by before it, and where its batch is; as in `Record`.

    Attributes:
        since: offset of the first record of a run that was passed by and ends before it; its own without one.
        has_holes: whether offsets between that and its own are left out.
        batch_begin, batch_end: the place of its batch in the segment.
    """

    offset: int
    timestamp_ms: int
    key: bytes
    value: bytes | None
    since: int
    has_holes: bool
    batch_begin: int
    batch_end: int


Wants = Callable[[Record | BareRecord], bool]
"""Says whether to decode a record of data."""


class BareBatches(NamedTuple):
    """Whole batches of which no more was asked for than some records, and nothing is damaged.

    Attributes:
        seen: their records, and what was passed by behind the last one of a batch; to be read once.
        decoder: says what records say, none of which is damaged.
        read: reads the batch of a record.
    """

    offsets_partition: int | None
    segment: Segment
    seen: Iterator[BareRecord | Passed]
    decoder: RepeatedRecords
    read: Callable[[BareRecord], RecordBatch]


LogEvent = Event | BatchStart | BatchEnd | Passed | BareBatches | Damage | Missing | TailFound | LogEnd
PIECE = 4096
"""Events that are held at a time."""


def pieces(events: Iterable[LogEvent]) -> Iterator[list[LogEvent]]:
    """Yield runs of events that end between two batches."""
    piece: list[LogEvent] = []
    for event in events:
        piece.append(event)
        if len(piece) >= PIECE and isinstance(event, BatchEnd):
            yield piece
            piece = []
    if piece:
        yield piece


def batch_events(
    log: PartitionLog,
    segment: Segment,
    batch: RecordBatch,
    until: Until,
    release: tuple[int, int] | None,
    wants: Wants | None = None,
) -> Iterator[LogEvent]:
    """Yield the events of one batch that is in its place and within the bounds."""
    records = iter_records(batch)
    base_offset = batch.base_offset
    if batch.magic < 2:
        # Only its first message tells where a compressed message of magic 0 or 1 begins.
        records, first = _peek(records)
        base_offset = first.offset if isinstance(first, Record) else base_offset
    yield BatchStart(segment, batch, base_offset)
    for record in records:
        if isinstance(record, Damage):
            record.error.at(file=segment.file)
            yield record
            continue
        if until.cuts(record):
            return
        yield decode_event(log, segment, batch, record, release, batch_base_offset=base_offset, wants=wants)
    end = batch.next_offset if until.record_offset is None else min(batch.next_offset, until.record_offset)
    yield BatchEnd(segment, batch, end)


def decode_event(
    log: PartitionLog,
    segment: Segment,
    batch: RecordBatch,
    record: Record,
    release: tuple[int, int] | None,
    *,
    batch_base_offset: int | None = None,
    wants: Wants | None = None,
) -> Event:
    """Decode a record's key and value; neither of data that is not wanted."""
    if wants is None or batch.is_control or wants(record):
        control, decoded, damage = _decode(log.topic, segment, batch, record, release)
    else:
        control = decoded = damage = None
    return Event(
        segment=segment,
        offsets_partition=log.offsets_partition,
        batch=batch,
        batch_base_offset=batch.base_offset if batch_base_offset is None else batch_base_offset,
        record=record,
        control=control,
        decoded=decoded if isinstance(decoded, CoordinatorRecord) else None,
        topic=log.topic,
        state=decoded if isinstance(decoded, StateRecord | MirrorMakerRecord) else None,
        damage=damage,
    )


def _peek(records: Iterator[Record | Damage]) -> tuple[Iterator[Record | Damage], Record | Damage | None]:
    first = next(records, None)
    return (records, None) if first is None else (chain((first,), records), first)


def _decode(
    topic: str | None, segment: Segment, batch: RecordBatch, record: Record, release: tuple[int, int] | None
) -> tuple[ControlRecord | None, CoordinatorRecord | StateRecord | MirrorMakerRecord | None, Damage | None]:
    try:
        if batch.is_control:
            return decode_control_record(record), None, None
        if topic is not None:
            return None, decode_topic_record(topic, record.key, record.value), None
        return None, decode_coordinator_record(record.key, record.value, release), None
    except OffsetsLogError as error:
        error.at(file=segment.file, position=record.position, record_offset=record.offset)
        return None, None, Damage(error, (record.key or b"") + (record.value or b""))
