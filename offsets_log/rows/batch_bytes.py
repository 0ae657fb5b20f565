"""Compute how much of a log each record takes: its share of the bytes of its batch.

A batch's size in the file, with its header and compressed if it is, is divided among its records by the sizes of their
keys and values, plus one each, in whole bytes that add up. So the shares of all records add up to the bytes of all
batches that have records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from offsets_log.events import BatchEnd, BatchStart, Event, LogEvent
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.record import Record, iter_records

Count = Callable[[Event | None, int], None]
"""Called with each record and its bytes; with None and the bytes of a batch that has no records."""


def weight_of(record: Record) -> int:
    """Return the weight of a record when a batch's bytes are divided."""
    return len(record.key or b"") + len(record.value or b"") + 1


def shares(size_bytes: int, weights: list[int], total: int) -> list[int]:
    """Return bytes divided by weights.

    Args:
        weights: weights of the batch's first records, possibly not all of them.
        total: sum of the weights of all records of the batch.
    """
    found, before, sum_ = [], 0, 0
    for weight in weights:
        sum_ += weight
        until = size_bytes * sum_ // total
        found.append(until - before)
        before = until
    return found


def counted(events: Iterable[LogEvent], count: Count) -> Iterator[LogEvent]:
    """Pass events on; count every record with its share before the event after its batch is passed on."""
    batch: RecordBatch | None = None
    records: list[Event] = []
    for event in events:
        match event:
            case BatchStart():
                _count_cut(batch, records, count)
                batch, records = event.batch, []
            case Event():
                records.append(event)
            case BatchEnd() if batch is not None:
                _count_batch(batch, records, sum(weight_of(found.record) for found in records), count)
                batch = None
        yield event
    _count_cut(batch, records, count)


def _count_cut(batch: RecordBatch | None, records: list[Event], count: Count) -> None:
    """Count the records of a batch cut by a bound, with their part of its bytes."""
    if batch is not None and records:
        whole = (record for record in iter_records(batch) if isinstance(record, Record))
        _count_batch(batch, records, sum(map(weight_of, whole)), count)


def _count_batch(batch: RecordBatch, records: list[Event], total: int, count: Count) -> None:
    if not records and batch.records_count == 0:
        count(None, batch.size_bytes)
    parts = shares(batch.size_bytes, [weight_of(event.record) for event in records], total)
    for event, size_bytes in zip(records, parts, strict=True):
        count(event, size_bytes)
