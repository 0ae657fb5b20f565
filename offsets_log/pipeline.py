"""Start reading here: the whole way from bytes to answers, on one screen.

    bytes ─► segments ─► batches ─► records ─► typed keys and values ─► partial states ─► what the broker would serve
    disk     log_format.partition_log  …record     messages.registry        replay.partial      replay.coordinator_state

`iter_events` walks one offsets partition and gives every record with all that is known of it; `replay` folds the same
events into a partial state, which `finish` turns into the coordinator's memory. What cannot be read comes out
of both as a `Damage`, in its place, and the rest goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Protocol

from offsets_log.errors import Damage, OffsetsLogError
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.completeness import Missing, missing_before, missing_behind, missing_between
from offsets_log.log_format.partition_log import PartitionLog, Segment, iter_log
from offsets_log.log_format.record import ControlRecord, Record, decode_control_record, iter_records
from offsets_log.log_format.segment import Tail
from offsets_log.messages.registry import CoordinatorRecord, decode_coordinator_record
from offsets_log.replay.partial import (
    EndTransactionMarker,
    GroupTopicPartition,
    OffsetAndMetadata,
    PartialState,
    offset_and_metadata,
)
from offsets_log.replay.problem import Problem
from offsets_log.replay.profile import Profile
from offsets_log.replay.refusal import Verdict, refusal_of_batch, verdict_on
from offsets_log.replay.topic_names import topic_names_in


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
        """Whether neither this batch nor any later one is read."""
        if self.time_ms is not None and batch.max_timestamp_ms > self.time_ms:
            return True
        return self.record_offset is not None and batch.magic == 2 and batch.base_offset >= self.record_offset

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
        damage: set for one that could not: why, and its raw key and value in ``record``.
    """

    segment: Segment
    offsets_partition: int | None
    batch: RecordBatch
    batch_base_offset: int
    record: Record
    control: ControlRecord | None = None
    decoded: CoordinatorRecord | None = None
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


@dataclass(frozen=True, slots=True)
class LogEnd:
    """All of a partition was read. An active segment without records still tells where the log goes on."""

    end_offset: int


@dataclass(frozen=True, slots=True)
class Passed:
    """Whole batches of which no record was asked for, from the first record to behind the last one.

    Attributes:
        has_holes: whether offsets between them are left out.
    """

    first_offset: int
    next_offset: int
    has_holes: bool


@dataclass(frozen=True, slots=True)
class BareBatch:
    """A whole batch of which no more was asked for than its records, of which nothing is damaged.

    Attributes:
        records: each with what it says, None of one that is not wanted; to be read once. Of a record only offset, time,
            key and value are told.
    """

    offsets_partition: int | None
    records: Iterator[tuple[Record, CoordinatorRecord | None]]


LogEvent = Event | BatchStart | BatchEnd | Passed | BareBatch | Damage | Missing | TailFound | LogEnd


def iter_events(
    log: PartitionLog,
    *,
    start: int = 0,
    until: Until = EVERYTHING,
    release: tuple[int, int] | None = None,
    wants: Callable[[Record], bool] | None = None,
) -> Iterator[LogEvent]:
    """Everything in one offsets partition, in log order.

    Args:
        start: only batches that reach this record offset.
        until: where to stop.
        release: the Kafka release that wrote the log, where layouts share a version number.
        wants: whether to decode a data record; one that is not wanted comes undecoded, right or wrong.
    """
    reading = log.since(start) if start else log
    entered = reading.segments[0] if reading.segments else None
    next_offset, is_broken = (entered and entered.base_offset) or 0, False
    if not start:
        yield from missing_before(log, until.record_offset)
    for segment, item in iter_log(reading):
        if segment is not entered:
            yield from missing_between(
                reading, segment, next_offset, is_broken=is_broken, until_offset=until.record_offset
            )
            entered = segment
        match item:
            case Damage():
                is_broken = True
                yield item
            case Tail():
                yield tail_found(log, segment, item, next_offset, until)
            case RecordBatch():
                if until.stops_before(item):
                    return
                next_offset, is_broken = item.next_offset, False
                if next_offset > start:
                    yield from batch_events(log, segment, item, until, release, wants)
    if entered is not None:
        yield from log_end(reading, entered, next_offset, until, is_broken=is_broken)


def tail_found(log: PartitionLog, segment: Segment, tail: Tail, next_offset: int, until: Until) -> TailFound:
    """A tail behind the offset where the log goes on, if it does."""
    behind = missing_behind(log, next_offset, until_offset=until.record_offset)
    return TailFound(segment, tail, sum(missing.count for missing in behind if missing.is_lost))


def log_end(
    log: PartitionLog, entered: Segment, next_offset: int, until: Until, *, is_broken: bool
) -> Iterator[Missing | LogEnd]:
    """What is to be told where all batches of a partition were read.

    Args:
        entered: the last segment that holds anything.
        next_offset, is_broken: as of `missing_between`.
    """
    last, until_offset = log.segments[-1], until.record_offset
    if last is not entered:
        yield from missing_between(log, last, next_offset, is_broken=is_broken, until_offset=until_offset)
    yield from missing_behind(log, next_offset, is_broken=is_broken, until_offset=until_offset)
    if until_offset is None:
        yield LogEnd(last.base_offset or 0)


def batch_events(
    log: PartitionLog,
    segment: Segment,
    batch: RecordBatch,
    until: Until,
    release: tuple[int, int] | None,
    wants: Callable[[Record], bool] | None = None,
) -> Iterator[LogEvent]:
    """The events of one batch that is in its place and within the bounds."""
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
    wants: Callable[[Record], bool] | None = None,
) -> Event:
    """A record with what its key and value say; with neither if it is data that is not wanted."""
    if wants is None or batch.is_control or wants(record):
        control, decoded, damage = _decode(segment, batch, record, release)
    else:
        control = decoded = damage = None
    return Event(
        segment=segment,
        offsets_partition=log.offsets_partition,
        batch=batch,
        batch_base_offset=batch.base_offset if batch_base_offset is None else batch_base_offset,
        record=record,
        control=control,
        decoded=decoded,
        damage=damage,
    )


def _peek(records: Iterator[Record | Damage]) -> tuple[Iterator[Record | Damage], Record | Damage | None]:
    first = next(records, None)
    return (records, None) if first is None else (chain((first,), records), first)


def _decode(
    segment: Segment, batch: RecordBatch, record: Record, release: tuple[int, int] | None
) -> tuple[ControlRecord | None, CoordinatorRecord | None, Damage | None]:
    try:
        if batch.is_control:
            return decode_control_record(record), None, None
        return None, decode_coordinator_record(record.key, record.value, release), None
    except OffsetsLogError as error:
        error.at(file=segment.file, position=record.position, record_offset=record.offset)
        return None, None, Damage(error, (record.key or b"") + (record.value or b""))


PIECE = 4096
"""Events that are held at a time."""


def pieces(events: Iterable[LogEvent]) -> Iterator[list[LogEvent]]:
    """Runs of events that end between two batches."""
    piece: list[LogEvent] = []
    for event in events:
        piece.append(event)
        if len(piece) >= PIECE and isinstance(event, BatchEnd):
            yield piece
            piece = []
    if piece:
        yield piece


# ---------------------------------------------------------------------------------------------- replay

OnDamage = Callable[[Damage], None]
"""What to do with a piece that could not be read: count it, keep it, or raise its error."""


class State(Protocol):
    """What records are replayed into: `PartialState`, or its like for bulk."""

    profile: Profile
    problems: list[Problem]
    end_offset: int

    def add_offset(self, value: OffsetAndMetadata, transactional: bool) -> None:
        """A type 0 or 1 record with a value."""

    def add_tombstone(
        self, key: GroupTopicPartition, record_offset: int, producer_id: int, transactional: bool
    ) -> None:
        """A type 0 or 1 record without a value."""

    def add_marker(self, producer_id: int, marker: EndTransactionMarker) -> None:
        """The end of a transaction."""

    def add_group_record(self, record: CoordinatorRecord, record_offset: int) -> None:
        """A record of any other type."""

    def add_topic_name(self, topic_id: bytes, name: str, record_offset: int) -> None:
        """What a record tells of a topic id."""


class TakesNothing:
    """The records' part of what they are replayed into, where something else is asked of them."""

    def add_offset(self, value: OffsetAndMetadata, transactional: bool) -> None:
        """Nothing."""

    def add_tombstone(
        self, key: GroupTopicPartition, record_offset: int, producer_id: int, transactional: bool
    ) -> None:
        """Nothing."""

    def add_marker(self, producer_id: int, marker: EndTransactionMarker) -> None:
        """Nothing."""

    def add_group_record(self, record: CoordinatorRecord, record_offset: int) -> None:
        """Nothing."""

    def add_topic_name(self, topic_id: bytes, name: str, record_offset: int) -> None:
        """Nothing."""


def replay(events: Iterable[LogEvent], profile: Profile, *, on_damage: OnDamage) -> PartialState:
    """Fold the events of one offsets partition, or of a piece of one, into a partial state.

    Args:
        on_damage: called for every piece that could not be read, in log order.
    """
    state = PartialState(profile)
    replay_into(state, events, on_damage=on_damage)
    return state


def replay_into(state: State, events: Iterable[LogEvent], *, on_damage: OnDamage) -> None:
    """Fold the events that follow into a state."""
    profile = state.profile
    control_batch: RecordBatch | None = None
    for event in events:
        match event:
            case Damage():
                on_damage(event)
            case BatchStart(batch=batch):
                if (refused := refusal_of_batch(batch, profile)) is not None:
                    state.problems.append(refused)
            case BatchEnd(read_until=end_offset) | LogEnd(end_offset):
                state.end_offset = max(state.end_offset, end_offset)
            case Event() if event.batch.is_control:
                is_first = event.batch is not control_batch
                control_batch = event.batch
                if is_first or not profile.reads_first_control_record_only:
                    _replay_control(state, event, on_damage)
            case Event():
                _replay_data(state, event, on_damage)


def _replay_control(state: State, event: Event, on_damage: OnDamage) -> None:
    if event.damage is not None:
        on_damage(event.damage)
        state.problems.append(Problem(event.record.offset, "records:C2", event.damage.error.problem))
        return
    assert event.control is not None
    if event.control.ends_transaction or state.profile.unknown_marker_aborts:
        state.add_marker(
            event.batch.producer_id, EndTransactionMarker(event.control.type == "COMMIT", event.record.offset)
        )


def _replay_data(state: State, event: Event, on_damage: OnDamage) -> None:
    """Replay what can be read, also where a load would end; note where it would."""
    error = None
    if event.damage is not None:
        on_damage(event.damage)
        error = event.damage.error
    verdict = verdict_on(event.record, event.decoded, error, state.profile)
    if isinstance(verdict, Problem):
        state.problems.append(verdict)
    if event.decoded is not None:
        for topic_id, name in topic_names_in(event.decoded):
            state.add_topic_name(topic_id, name, event.record.offset)
        if verdict is not Verdict.SKIP:
            _replay_record(state, event, event.decoded)


def _replay_record(state: State, event: Event, record: CoordinatorRecord) -> None:
    batch, record_offset = event.batch, event.record.offset
    if not record.is_offset_commit:
        state.add_group_record(record, record_offset)
        return
    transactional = state.profile.is_transactional(batch)
    if record.is_tombstone:
        key = (record.key["group"], record.key["topic"], record.key["partition"])
        state.add_tombstone(key, record_offset, batch.producer_id, transactional)
    else:
        value = offset_and_metadata(record, record_offset, batch.producer_id, batch.producer_epoch)
        state.add_offset(value, transactional)
