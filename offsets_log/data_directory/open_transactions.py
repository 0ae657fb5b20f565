"""Open transactions of an offsets partition: of whom, since when, what they hold up, and what ends them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile

from offsets_log.data_directory.decisions import Outcomes, first_batches
from offsets_log.data_directory.transactions import OUTCOME_COLUMNS
from offsets_log.events import EVERYTHING, Until
from offsets_log.log_format.batch import NO_PRODUCER_ID, NO_TIMESTAMP, RecordBatch, time_of
from offsets_log.log_format.partition_log import PartitionLog, batches_of, beginnings
from offsets_log.replay.partial import OffsetAndMetadata
from offsets_log.rows.missing_columns import with_following, without_missing_columns
from offsets_log.rows.survey import Survey
from offsets_log.rows.tables import OFFSETS_PARTITION_COLUMN, Column, Row

TRANSACTION_COLUMNS = (
    OFFSETS_PARTITION_COLUMN,
    Column("producer_id", "bigint", "id of the producer"),
    Column("producer_epoch", "int", "epoch of the producer when it began"),
    Column("groups", "array<string>", "groups that have offsets in it"),
    Column("offsets", "bigint", "how many offsets it commits, if it is committed"),
    Column("records", "bigint", "how many records of offsets it has; null for a producer without transactions"),
    Column(
        "first_offset",
        "bigint",
        "record offset with which its first batch begins, as --start-offset takes it; null where offsets are pending "
        "of a producer without transactions, which hold up nobody else",
    ),
    Column("first_record_offset", "bigint", "offset of its first offset's record in the offsets partition"),
    Column("first_timestamp_ms", "bigint", "time of that record; without one, of the first batch"),
    Column("age_ms", "bigint", "how long before the time of --now that is"),
    Column("log_age_ms", "bigint", "how long before the newest record of all partitions read that is"),
    Column(
        "pins_last_stable_offset",
        "boolean",
        "whether it is the partition's oldest: clients that read committed records, and the cleaner, stop at it",
    ),
    Column(
        "kept_bytes",
        "bigint",
        "size of the segments that no cleaner touches while it is open: from its first batch to the active one, which "
        "is never cleaned; null for a text, and where reading ends before the log does",
    ),
    *OUTCOME_COLUMNS,
)
"""A row for each transaction and offsets partition."""

FOLLOWING = {
    "record_offset": ("first_offset", "first_record_offset", "pins_last_stable_offset", "abort_command"),
    "timestamp_ms": ("first_timestamp_ms", "age_ms", "log_age_ms"),
    "committed_offset": ("groups", "offsets", "records"),
}
"""A column of other commands that a source may lack → the columns here that depend on it."""


def transaction_rows(
    log: PartitionLog,
    found: Survey,
    pending: Sequence[OffsetAndMetadata],
    outcomes: Outcomes | None = None,
    until: Until = EVERYTHING,
) -> list[Row]:
    """Return `TRANSACTION_COLUMNS` of what is open in a log, by the offset where it begins; ages are null.

    Args:
        found: the survey of the log.
        pending: the offsets of all open transactions, whatever filters show.
        outcomes: tells what becomes of them; None if nothing does.
        until: where reading ends.
    """
    held: dict[int, list[OffsetAndMetadata]] = {}
    for value in pending:
        held.setdefault(value.producer_id, []).append(value)
    is_sound = until == EVERYTHING and not found.kinds.corrupt
    batches = beginnings(log) if is_sound else takewhile(lambda one: not until.stops_before(one), batches_of(log))
    first = first_batches(batches)
    told = {} if outcomes is None else outcomes.cells(log, pending)
    producers = {one for one in (*first, *found.open_transactions, *held) if one > NO_PRODUCER_ID}
    rows = [
        _whose(log, producer_id, first.get(producer_id), held.get(producer_id, ()))
        | _since(found.open_transactions.get(producer_id), first.get(producer_id), held.get(producer_id, ()))
        | {"kept_bytes": None if until != EVERYTHING else kept_bytes(log, first.get(producer_id))}
        | told.get(producer_id, dict.fromkeys(column.name for column in OUTCOME_COLUMNS))
        for producer_id in producers
    ]
    rows.sort(key=lambda row: (row["first_offset"] is None, row["first_offset"], row["producer_id"]))
    missing = with_following(log.missing_columns, FOLLOWING)
    for row in rows:
        row["pins_last_stable_offset"] = row["first_offset"] == rows[0]["first_offset"] is not None
    names = [column.name for column in TRANSACTION_COLUMNS]
    return [without_missing_columns({name: row.get(name) for name in names}, missing) for row in rows]


def with_ages(row: Row, now_ms: int, newest_ms: int | None) -> Row:
    """Return a row with both ages; null where a time is not known.

    Args:
        newest_ms: time of the newest record.
    """
    since = row["first_timestamp_ms"]
    ends = {"age_ms": now_ms, "log_age_ms": newest_ms}
    ages = {name: None if None in (since, end) else max(0, end - since) for name, end in ends.items()}
    return row | ages


def kept_bytes(log: PartitionLog, first: RecordBatch | None) -> int | None:
    """Return how many bytes a transaction keeps from being cleaned; None where files do not tell.

    A round ends before the segment that holds the first record of an open transaction, and before the active segment
    (``CL-3``, ``CL-4``).
    """
    if any(segment.base_offset is None or segment.lines for segment in log.segments):
        return None
    return 0 if first is None else sum(segment.size_bytes for segment in log.since(first.base_offset).segments[:-1])


def _whose(log: PartitionLog, producer_id: int, first: RecordBatch | None, pending: Iterable[OffsetAndMetadata]) -> Row:
    values = list(pending)
    epochs = [*([] if first is None else [first.producer_epoch]), *(value.producer_epoch for value in values)]
    return {
        "offsets_partition": log.offsets_partition,
        "producer_id": producer_id,
        "producer_epoch": epochs[0] if epochs else None,
        "groups": sorted({value.group for value in values}),
        "offsets": len(values),
    }


def _since(
    surveyed: tuple[int, int, int] | None, first: RecordBatch | None, pending: Sequence[OffsetAndMetadata]
) -> Row:
    """Return since when a transaction is open.

    Args:
        surveyed: offset and time of its first record of an offset, and how many it has.
    """
    offset: int | None
    count: int | None
    offset, time, count = surveyed or (None, NO_TIMESTAMP if first is None else first.base_timestamp_ms, 0)
    if first is None and surveyed is None:
        oldest = min(pending, key=lambda value: value.record_offset)
        offset, time, count = oldest.record_offset, oldest.commit_timestamp_ms, None
    return {
        "first_offset": None if first is None else first.base_offset,
        "first_record_offset": offset,
        "first_timestamp_ms": time_of(time),
        "records": count,
    }
