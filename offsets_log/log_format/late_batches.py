"""The last batches of a log that are sound: what tells when it ended and who wrote it, whatever stands behind them."""

from __future__ import annotations

from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.partition_log import LogWalk, PartitionLog

WINDOWS = tuple(1 << shift for shift in (14, 16, 18, 20, 22))
"""So many bytes before a segment's end are looked at, one after the other, until enough batches are found in them."""
ENOUGH = 1 << 18
"""In so many bytes one batch is enough; so large a segment of a store is not fetched."""


def late_batches(log: PartitionLog, most: int) -> list[RecordBatch]:
    """Return the last batches of a log, in its order; fewer than asked for where they are large, or in a store.

    Raises:
        OffsetsLogError: a file cannot be read.
    """
    found: list[RecordBatch] = []
    for number in reversed(range(len(log.segments))):
        segment = log.segments[number]
        if segment.is_fetched and segment.length > ENOUGH:
            return found
        found = [*_late_in(log, number, most - len(found)), *found]
        if len(found) == most or (found and segment.length > ENOUGH):
            return found
    return found


def _late_in(log: PartitionLog, number: int, most: int) -> list[RecordBatch]:
    """Return late batches of a segment."""
    length, found = log.segments[number].length, list[RecordBatch]()
    for window in WINDOWS:
        start = max(0, length - window)
        found = [item for item, _ in LogWalk(log).items(number, start, -1) if isinstance(item, RecordBatch)][-most:]
        if len(found) == most or start == 0 or (found and window >= ENOUGH):
            break
    return found
