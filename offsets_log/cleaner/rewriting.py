"""The bytes of a batch that loses records, or that is told when its tombstones may go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from offsets_log.broker.batches import FileBatch
from offsets_log.cleaner.failures import CleaningError
from offsets_log.cleaner.settings import Rules
from offsets_log.log_format import batch as b
from offsets_log.log_format.batch import RecordBatch, encode_batch
from offsets_log.log_format.building import empty_batch, encode_records, rebuild_batch
from offsets_log.log_format.compression import CODEC_MASK
from offsets_log.log_format.record import Record, has_other_magics_inside

MAX_INT32 = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class Written:
    """A batch to be written.

    Attributes:
        largest_offset: the highest offset of its records; the last offset of a batch that is copied or empty.
    """

    raw: bytes
    last_offset: int
    max_timestamp_ms: int
    largest_offset: int


def must_be_rewritten(batch: FileBatch, rules: Rules) -> bool:
    """Return whether a batch is rewritten even if it keeps all records: those of magic 0 and 1 (``CL-33``)."""
    if not batch.is_legacy:
        return False
    return rules.makes_magic_2 or has_other_magics_inside(batch.whole())


def emptied(batch: FileBatch) -> Written:
    """Return a batch without its records (``CL-32``).

    Raises:
        CleaningError: magic 0 and 1 have no such (``CL-24``).
    """
    if batch.is_legacy:
        raise _refused(batch, "an empty batch of magic 0 or 1")
    return Written(empty_batch(batch.whole()), batch.last_offset, batch.max_timestamp_ms, batch.last_offset)


def rewritten(batch: FileBatch, kept: Sequence[Record], horizon_ms: int, rules: Rules) -> Written:
    """Return a batch with the records that are kept.

    Args:
        kept: the records that stay, at least one.
        horizon_ms: negative for none.

    Raises:
        CleaningError: what Kafka's builder refuses.
    """
    original = batch.whole()
    records = [replace(record, attributes=0) for record in kept]
    _check(batch, original, records)
    if batch.is_legacy and not rules.makes_magic_2:
        made = _legacy(original, records)
    else:
        made = _magic_2(original, records, horizon_ms)
    return Written(made.raw, made.last_offset, made.max_timestamp_ms, records[-1].offset)


def _magic_2(original: RecordBatch, records: list[Record], horizon_ms: int) -> RecordBatch:
    """Write the records as a batch of magic 2 (``CL-28``–``CL-31``, ``CL-33``)."""
    is_legacy = original.magic < 2
    has_horizon = horizon_ms >= 0
    base_timestamp_ms = horizon_ms if has_horizon else records[0].timestamp_ms
    kept_bits = CODEC_MASK | (0 if original.magic == 0 else b.TIMESTAMP_TYPE_MASK)
    if not is_legacy:
        kept_bits |= b.TRANSACTIONAL_MASK | b.CONTROL_MASK
    batch = replace(
        original,
        magic=2,
        attributes=original.attributes & kept_bits | (b.DELETE_HORIZON_MASK if has_horizon else 0),
        base_offset=records[0].offset if is_legacy else original.base_offset,
        last_offset=records[-1].offset if is_legacy else original.last_offset,
        base_timestamp_ms=base_timestamp_ms,
        max_timestamp_ms=_max_timestamp(original, records),
        records_count=len(records),
    )
    moved = [replace(record, timestamp_delta=record.timestamp_ms - base_timestamp_ms) for record in records]
    return replace(batch, raw=encode_batch(batch, encode_records(batch, moved)))


def _legacy(original: RecordBatch, records: list[Record]) -> RecordBatch:
    """Write the records in the batch's own format, as releases before 4.0 do (``CL-33``)."""
    known_bits = CODEC_MASK | (b.TIMESTAMP_TYPE_MASK if original.magic else 0)
    batch = replace(
        original,
        attributes=original.attributes & known_bits,
        last_offset=records[-1].offset,
        max_timestamp_ms=_max_timestamp(original, records),
    )
    return replace(batch, raw=rebuild_batch(batch, records))


def _max_timestamp(original: RecordBatch, records: list[Record]) -> int:
    """Return the batch's largest timestamp (``CL-30``)."""
    if original.timestamp_type == "log_append":
        return original.max_timestamp_ms
    return max(b.NO_TIMESTAMP, *(record.timestamp_ms for record in records))


def _check(batch: FileBatch, original: RecordBatch, records: list[Record]) -> None:
    """Raise for what `MemoryRecordsBuilder` refuses to write."""
    before = None
    base_offset = records[0].offset if batch.is_legacy else original.base_offset
    for record in records:
        if before is not None and record.offset <= before:
            raise _refused(batch, f"offset {record.offset} behind offset {before}")
        if record.timestamp_ms < b.NO_TIMESTAMP:
            raise _refused(batch, f"the timestamp {record.timestamp_ms}")
        if record.offset - base_offset > MAX_INT32:
            raise _refused(batch, f"offset {record.offset} in a batch from {base_offset} on")
        before = record.offset
    _check_producer(batch, original)


def _check_producer(batch: FileBatch, original: RecordBatch) -> None:
    if original.producer_id == b.NO_PRODUCER_ID:
        if original.is_transactional:
            raise _refused(batch, "a transaction without a producer")
    elif original.producer_epoch == b.NO_PRODUCER_EPOCH:
        raise _refused(batch, "a producer without an epoch")
    elif original.base_sequence < 0 and not original.is_control:
        raise _refused(batch, "a producer without a sequence number")


def _refused(batch: FileBatch, what: str) -> CleaningError:
    return CleaningError(
        f"the cleaner cannot write {what}", file=batch.file, position=batch.position, record_offset=batch.offset
    )
