"""The choice of what stays of a log: batch by batch, by ascending offset, what a broker's recovery accepts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from offsets_log.broker.batches import FileBatch, entry_at
from offsets_log.broker.failures import BrokerError
from offsets_log.broker.indexes import AbortedTransaction
from offsets_log.broker.producers import ProducerState, Snapshots
from offsets_log.cleaner.failures import CleaningError
from offsets_log.cleaner.rewriting import Written, emptied, rewritten
from offsets_log.cleaner.settings import Rules
from offsets_log.errors import CorruptBatchError, Damage, OffsetsLogError, ReplayError
from offsets_log.log_format import batch as b
from offsets_log.log_format.batch import MAX_OFFSETS_IN_SEGMENT, RecordBatch, decode_batch_header
from offsets_log.log_format.completeness import Missing, missing_before, missing_behind, missing_between
from offsets_log.log_format.control_record import decode_control_record
from offsets_log.log_format.partition_log import PartitionLog, Segment, iter_log
from offsets_log.log_format.record import Record, iter_records
from offsets_log.log_format.segment import MAX_QUARANTINED_BYTES, Tail
from offsets_log.repairing.left_out import (
    CHECKSUM,
    MARKER,
    MISPLACED,
    NO_BATCH,
    OVERLAP,
    REFUSED,
    TORN,
    UNLOADABLE,
    UNREADABLE,
    LeftOut,
)
from offsets_log.repairing.picked import LAST_OFFSET, Picked, Run
from offsets_log.repairing.unloadable import NOTHING, Unloadable

KEEPS_MAGIC = Rules.of((3, 9))
"""Rules by which batches of magic 0 and 1 keep their magic when they lose messages (``CL-33``)."""


class _LeavesOutError(Exception):
    """A batch does not stay."""

    def __init__(self, reason: str, problem: str) -> None:
        super().__init__(problem)
        self.reason, self.problem = reason, problem


@dataclass(slots=True)
class Picking:
    """A walk over a log; iterate `items` to the end.

    Attributes:
        producers: what a broker knows of producers after the batches picked so far.
        next_offset: the offset after the batches picked so far.
        end_offset: the end of the whole log, even if its last batches are left out: a leader goes on writing there.
        segment: the segment of the last batch picked.
        leader_epoch: the latest one, set by the code that takes the batches.
    """

    log: PartitionLog
    unloadable: Unloadable = NOTHING
    producers: ProducerState = field(default_factory=lambda: ProducerState(Snapshots({})))
    next_offset: int = 0
    end_offset: int = 0
    segment: Segment | None = None
    leader_epoch: int = -1

    def __post_init__(self) -> None:
        last = self.log.segments[-1].base_offset or 0
        self.end_offset = min(last, LAST_OFFSET)  # the name of an empty segment alone tells it (``CL-55``)

    def items(self) -> Iterator[Picked | Run | LeftOut | Missing]:
        """Yield what stays, what is left out, and what is missing, in log order."""
        yield from missing_before(self.log)
        entered, read_until, is_broken = self.log.segments[0], self.log.segments[0].base_offset or 0, False
        for segment, item in iter_log(self.log):
            if segment is not entered:
                yield from missing_between(self.log, segment, read_until, is_broken=is_broken)
                entered = segment
            match item:
                case RecordBatch():
                    read_until, is_broken = item.next_offset, False
                    yield from self.take(segment, item)
                case Damage():
                    is_broken = True
                    yield from self.lose(item)
                case Tail():
                    yield from self.end(segment, item)
        if (last := self.log.segments[-1]) is not entered:
            yield from missing_between(self.log, last, read_until, is_broken=is_broken)
        yield from missing_behind(self.log, read_until, is_broken=is_broken)

    def lose(self, damage: Damage) -> Iterator[LeftOut]:
        """Leave out bytes that are no batch."""
        yield LeftOut(self._reason(damage), damage, len(damage.raw))

    def end(self, segment: Segment, tail: Tail) -> Iterator[LeftOut]:
        """Leave out what follows the last batch of a segment."""
        if tail.kind == "torn":
            yield _torn(segment, tail)

    def pass_to(self, next_offset: int) -> None:
        """Keep the batches up to an offset."""
        self.next_offset = next_offset
        self.end_offset = max(self.end_offset, next_offset)

    def _reason(self, damage: Damage) -> str:
        error = damage.error
        if error.field == "base_offset":
            return OVERLAP if (error.record_offset or 0) < self.next_offset else MISPLACED
        return CHECKSUM if error.field == "crc" else NO_BATCH

    def take(self, segment: Segment, header: RecordBatch) -> Iterator[Picked | LeftOut]:
        """Take the next batch that was read whole."""
        batch = entry_at(segment.file, memoryview(segment.buffer), header.position, segment.length)
        assert batch is not None
        try:
            picked, left_out = self._pick(segment, batch, header)
        except _LeavesOutError as error:
            problem = CorruptBatchError(
                error.problem,
                file=segment.file,
                position=header.position,
                record_offset=header.base_offset,
                field="batch",
            )
            if error.reason != MISPLACED:
                self.end_offset = max(self.end_offset, header.next_offset)
            count = sum(isinstance(item, Record) for item in iter_records(header))
            yield LeftOut(error.reason, Damage(problem, header.raw), header.size_bytes, count)
            return
        yield from left_out
        self.pass_to(header.next_offset)
        self.segment = segment
        yield picked

    def _pick(self, segment: Segment, batch: FileBatch, header: RecordBatch) -> tuple[Picked, list[LeftOut]]:
        if header.last_offset > LAST_OFFSET:
            raise _LeavesOutError(MISPLACED, f"no offset follows {header.last_offset}")
        if (problem := self.unloadable.of_batch(header)) is not None:
            raise _LeavesOutError(UNLOADABLE, f"{problem.rule}: {problem.problem}")
        records, left_out = self._records(segment, header)
        written = self._rewritten(batch, header, records, left_out) if left_out else None
        first_offset = records[0].offset if header.magic < b.NEWEST_MAGIC else header.base_offset
        if header.last_offset - first_offset >= MAX_OFFSETS_IN_SEGMENT:
            raise _LeavesOutError(MISPLACED, f"offsets {first_offset} to {header.last_offset} fit into no segment")
        if written is not None:
            batch = _as_written(batch, written)
            left_out = _with_sizes(left_out, header.size_bytes - batch.size_bytes)
        producer = self.producers.entries.get(batch.producer_id)
        aborted = self._tell_producers(batch)
        return Picked(segment, batch, header, first_offset, records, written, aborted, producer), left_out

    def _records(self, segment: Segment, header: RecordBatch) -> tuple[list[Record], list[LeftOut]]:
        """Return the records that stay, and what is left out of the batch."""
        least = max(self.next_offset, segment.base_offset or 0)
        records: list[Record] = []
        left_out: list[LeftOut] = []
        for item in iter_records(header):
            if isinstance(item, Damage):
                item.error.at(file=segment.file)
                left_out.append(LeftOut(UNREADABLE, item, 0))
            elif (taken := self._why_not(item, least, header.last_offset)) is not None:
                reason, error = taken
                error.at(file=segment.file, position=item.position, record_offset=item.offset)
                left_out.append(LeftOut(reason, Damage(error, (item.key or b"") + (item.value or b"")), 0, 1))
            else:
                records.append(item)
        if header.is_control:
            _check_markers(records, left_out)
        return records, left_out

    def _why_not(self, record: Record, least: int, most: int) -> tuple[str, OffsetsLogError] | None:
        if not least <= record.offset <= most:  # inside a message of magic 0 or 1: a load would look for it forever
            problem = f"offset {record.offset} in a message that may hold {least} to {most}"
            return (OVERLAP if record.offset < least else MISPLACED), CorruptBatchError(problem, field="base_offset")
        refused = self.unloadable.problems.get(record.offset)
        if refused is None:
            return None
        return UNLOADABLE, ReplayError(f"{refused.rule}: {refused.problem}", rule=refused.rule)

    def _rewritten(
        self, batch: FileBatch, header: RecordBatch, records: list[Record], left_out: list[LeftOut]
    ) -> Written:
        """Write a batch with the records that stay; a producer's batch may be empty, for its sequence (``CL-21``)."""
        first = left_out[0]
        if not records and (header.magic < b.NEWEST_MAGIC or header.producer_id < 0):
            raise _LeavesOutError(first.reason, first.damage.error.problem)
        horizon_ms = header.delete_horizon_ms
        try:
            written = (
                rewritten(batch, records, b.NO_TIMESTAMP if horizon_ms is None else horizon_ms, KEEPS_MAGIC)
                if records
                else emptied(batch)
            )
        except CleaningError as error:
            raise _LeavesOutError(first.reason, f"{first.damage.error.problem}; {error.problem}") from None
        made = decode_batch_header(written.raw)
        is_moved = made.last_offset != header.last_offset and not batch.is_legacy
        if is_moved or any(isinstance(item, Damage) for item in iter_records(made)):
            raise _LeavesOutError(first.reason, f"{first.damage.error.problem}; what is left makes no batch")
        return written

    def _tell_producers(self, batch: FileBatch) -> AbortedTransaction | None:
        """Note the batch's producer as recovery does (``CL-58``); return the due entry of ``.txnindex`` (``CL-43``)."""
        if batch.is_legacy or batch.producer_id < 0:
            return None
        try:
            completed = self.producers.append(batch)
        except BrokerError as error:
            raise _LeavesOutError(REFUSED, error.problem) from None
        if completed is None:
            return None
        entry = self.producers.aborted_entry(completed) if completed.is_aborted else None
        self.producers.complete(completed)
        self.producers.completed.clear()
        return entry


def _torn(segment: Segment, tail: Tail) -> LeftOut:
    error = CorruptBatchError("a batch is cut off at the end", file=segment.file, position=tail.position, field="batch")
    raw = bytes(memoryview(segment.buffer)[tail.position :][:MAX_QUARANTINED_BYTES])
    return LeftOut(TORN, Damage(error, raw), tail.size_bytes)


def _check_markers(records: Sequence[Record], left_out: Sequence[LeftOut]) -> None:
    """Check that every record left of a control batch is a marker, whatever its batch counts (``CL-35``).

    Raises:
        _LeavesOutError: no marker can be read, or one has no type.
    """
    if left_out and not records:
        raise _LeavesOutError(MARKER, left_out[0].damage.error.problem)
    try:
        for record in records:
            decode_control_record(record)
    except OffsetsLogError as error:
        raise _LeavesOutError(MARKER, error.problem) from None


def _as_written(batch: FileBatch, written: Written) -> FileBatch:
    made = entry_at(batch.file, memoryview(written.raw), 0, len(written.raw))
    assert made is not None
    return made


def _with_sizes(left_out: Sequence[LeftOut], size_bytes: int) -> list[LeftOut]:
    """Return the pieces with the bytes that the batch lost added to the first of them."""
    first, *others = left_out
    return [LeftOut(first.reason, first.damage, max(size_bytes, 0), first.records), *others]
