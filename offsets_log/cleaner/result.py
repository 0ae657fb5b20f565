"""The report of a round: a row for each partition, with the reason why each remaining byte is kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

from offsets_log.broker.log_file import LogFile
from offsets_log.broker.recovery import OpenLog
from offsets_log.cleaner.batches import Pass, batches, records
from offsets_log.cleaner.bounds import ACTIVE_SEGMENT, COMPACTION_LAG, HIGH_WATERMARK, OPEN_TRANSACTION
from offsets_log.cleaner.kept import (
    BEYOND_MAP,
    LATEST,
    MARKERS,
    MARKERS_WITH_DATA,
    TOMBSTONES,
    TOMBSTONES_AT_WORK,
    Kept,
)
from offsets_log.cleaner.retention import LAST_OF_PRODUCER, LAST_OF_ROUND
from offsets_log.cleaner.round import CHANGED, CLEANED, NOT_STARTED, Round
from offsets_log.errors import OffsetsLogError
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.rows.tables import OFFSETS_PARTITION_COLUMN, Column, Row

CLEAN_COLUMNS = (
    OFFSETS_PARTITION_COLUMN,
    Column(
        "outcome",
        "string",
        "cleaned; not started: nothing was to be cleaned; failed: the error keeps a broker's cleaner from this "
        "partition until it starts again; aborted: given up, to be tried again; changed: not cleaned, but records were "
        "dropped",
    ),
    Column("first_dirty_offset", "bigint", "where the part begins that no round has cleaned yet"),
    Column("first_uncleanable_offset", "bigint", "where the part begins that cannot be cleaned now; held_by says why"),
    Column("end_offset", "bigint", "up to where the round came: the next first_dirty_offset, not the end of the log"),
    Column(
        "held_by",
        "string",
        "what keeps the cleaner from going on: an open transaction, the high watermark, the compaction lag, or the "
        "active segment; null with --deep, which cleans the whole log: what it keeps of open transactions is in kept",
    ),
    Column("bytes_before", "bigint", "size of the segments before"),
    Column("bytes_after", "bigint", "and after"),
    Column("records_before", "bigint", "records before"),
    Column("records_after", "bigint", "and after"),
    Column(
        "kept",
        "list",
        "why bytes are kept: reason, bytes, records; until_ms, when tombstones and markers may go; which transaction "
        "is open",
    ),
    Column("problem", "string", "the error of a round that failed or was aborted"),
)
CLEAN_ALREADY = "clean already"
ENDED_BEFORE = "the round ended before"
REASONS = (
    LATEST, TOMBSTONES, TOMBSTONES_AT_WORK, MARKERS, MARKERS_WITH_DATA, LAST_OF_PRODUCER, LAST_OF_ROUND, BEYOND_MAP,
    OPEN_TRANSACTION, HIGH_WATERMARK, COMPACTION_LAG, ACTIVE_SEGMENT, CLEAN_ALREADY, ENDED_BEFORE,
)  # fmt: skip
"""Why bytes are kept, in the order in which a row tells it."""


def result_row(
    log: PartitionLog,
    done: Round,
    kept: Kept,
    before: OpenLog | None = None,
    *,
    in_bulk: bool = False,
) -> Row:
    """Return the row of a partition.

    Args:
        log: the log as it was given.
        kept: why the log's bytes are there.
        before: the log as it was opened, from which something was taken before the round.
        in_bulk: whether records are counted by a kernel.
    """
    bounds = done.bounds
    records_before = kept.records_read
    if before is not None:
        records_before = sum(records_in(file, in_bulk=in_bulk) for file in before.files.values())
    bytes_after = sum(counted.size_bytes for counted in kept.reasons.values())
    is_changed = before is not None and bytes_after != sum(file.size_bytes for file in before.files.values())
    return {
        "offsets_partition": log.offsets_partition,
        "outcome": CHANGED if is_changed and done.outcome == NOT_STARTED else done.outcome,
        "first_dirty_offset": bounds.first_dirty,
        "first_uncleanable_offset": bounds.first_uncleanable,
        "end_offset": done.end_offset,
        "log_start_offset": bounds.log_start,
        "log_end_offset": bounds.log_end,
        "held_by": bounds.held_by,
        "bytes_before": log.bytes_to_read or log.size_bytes,
        "bytes_after": bytes_after,
        "records_before": records_before,
        "records_after": kept.records,
        "kept": list(_kept_rows(kept, done)),
        "problem": None if done.problem is None else str(done.problem),
    }


def kept_after(done: Round, *, in_bulk: bool) -> Kept:
    """Return why each byte is kept after a round; ``in_bulk`` is that of `records_in`."""
    return kept_with(done, {file.base_offset: records_in(file, in_bulk=in_bulk) for file in not_replaced(done)})


def not_replaced(done: Round) -> list[LogFile]:
    """Return the segments that the round did not reach, or only split."""
    replaced = {base_offset for new in done.new.values() for base_offset in new.replaced}
    return [file for base_offset, file in done.opened.files.items() if base_offset not in replaced]


def kept_with(done: Round, counts: Mapping[int, int]) -> Kept:
    """Return why each byte is kept after a round.

    Args:
        counts: how many records each segment in `not_replaced` has, by its base offset.
    """
    kept = Kept()
    kept.add(done.kept)
    for file in not_replaced(done):
        counted = counts[file.base_offset]
        kept.records_read += counted
        kept.count(_why_untouched(file, done), file.size_bytes, counted)
    return kept


def refused_row(log: PartitionLog, outcome: str, problem: OffsetsLogError) -> Row:
    """Return the row of a log that no broker opens."""
    nothing = {column.name: None for column in CLEAN_COLUMNS}
    return nothing | {
        "offsets_partition": log.offsets_partition, "outcome": outcome,
        "bytes_before": log.bytes_to_read or log.size_bytes, "kept": [], "problem": str(problem),
    }  # fmt: skip


def _why_untouched(file: LogFile, done: Round) -> str:
    bounds = done.bounds
    if file.base_offset == bounds.active_segment:
        return ACTIVE_SEGMENT
    if bounds.held_by is not None and file.base_offset >= bounds.first_uncleanable:
        return bounds.held_by
    if done.outcome == NOT_STARTED:
        return CLEAN_ALREADY
    return BEYOND_MAP if done.outcome == CLEANED else ENDED_BEFORE


def _kept_rows(kept: Kept, done: Round) -> Iterator[Row]:
    for reason in sorted(kept.reasons, key=REASONS.index):
        counted = kept.reasons[reason]
        row: Row = {
            "reason": reason,
            "bytes": counted.size_bytes,
            "records": counted.records,
        }
        if counted.until_ms is not None:
            row["until_ms"] = counted.until_ms
        if reason == OPEN_TRANSACTION:
            row |= _open_transaction(done)
        yield row


def _open_transaction(done: Round) -> Row:
    """Return the transaction that is open for longest, and since when."""
    producers = done.opened.producers
    first_offset = producers.first_unstable_offset
    if first_offset is None:
        return {}
    row: Row = {"producer_id": producers.ongoing.get(first_offset), "first_offset": first_offset}
    try:
        found = done.opened.find(max(first_offset, done.bounds.log_start))
    except OffsetsLogError:
        found = None
    if found is not None:
        since_ms = found[1].whole().base_timestamp_ms
        row |= {"since_ms": since_ms, "age_ms": done.settings.now_ms - since_ms}
    return row


def records_in(file: LogFile, *, in_bulk: bool) -> int:
    """Return how many records a segment has, as far as it can be read.

    Args:
        in_bulk: whether a kernel counts them.
    """
    if not in_bulk:
        return _records_in(file)
    from offsets_log.broker.bulk import Counter

    with Counter(file) as counter:
        return _records_in(file, counter.count) + counter.records


def _records_in(file: LogFile, passing: Pass = lambda position: position) -> int:
    """Return how many records are in the batches that ``passing`` leaves."""
    count = 0
    with suppress(OffsetsLogError):
        for batch in batches(file, passing=passing):
            is_wrapper = batch.is_legacy and batch.whole().codec.id
            count += len(list(records(batch))) if is_wrapper else batch.records_count
    return count
