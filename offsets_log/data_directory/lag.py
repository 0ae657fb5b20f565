"""How far behind the end of its partition a committed offset is, by a copy of the brokers' data directories."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from offsets_log.data_directory.checkpoints import (
    TopicPartition,
)
from offsets_log.data_directory.copied_logs import CopiedLogs
from offsets_log.data_directory.log_ends import LogEnds
from offsets_log.replay.coordinator_state import CoordinatorState
from offsets_log.replay.partial import OffsetAndMetadata
from offsets_log.rows.tables import Column, Row

LAG_COLUMNS = (
    Column("log_start_offset", "bigint", "the first offset that can be read in the copy of the partition's log"),
    Column("log_end_offset", "bigint", "the offset at which consumers see the log end"),
    Column("lag", "bigint", "log_end_offset minus committed_offset, as kafka-consumer-groups counts it"),
    Column("behind_ms", "bigint", "age of the first record not yet read; 0 if all was read"),
    Column(
        "lag_from",
        "string",
        "which end the lag is counted to: high watermark (noted at a clean stop, or pulled) or log end",
    ),
)
"""All null where no copy of the partition was given, or one of another topic of that name."""

GROUP_LAG_COLUMNS = (
    Column(
        "lag", "bigint", "sum over the partitions that have a copy here; one whose offset is beyond the end counts as 0"
    ),
    Column("max_lag", "bigint", "largest lag of a single partition"),
    Column("partitions_without_lag", "int", "number of partitions with a committed offset and without a copy"),
)

NO_LAG = {"lag": None, "max_lag": None, "partitions_without_lag": 0}
"""`GROUP_LAG_COLUMNS` of a group without offsets."""

NO_LOGS = "--lag: no other topic's partition lies beside these: give the broker's whole data directory"
BOUNDED = "lag is counted to where the copied logs end, not to where they ended at the bound"

HIGH_WATERMARK = "high watermark"
LOG_END = "log end"


_INT64 = 1 << 63


def lag_of(logs: CopiedLogs, row: Mapping[str, Any], now_ms: int | None) -> Row:
    """Return the values of `LAG_COLUMNS` for a row of `compact`; its offset must have been given to `logs.look_at`."""
    ends = logs.ends_for(row["topic"], row["partition"], row.get("topic_id"), row.get("commit_timestamp_ms"))
    if ends is None:
        return dict.fromkeys(column.name for column in LAG_COLUMNS)
    return {
        "log_start_offset": ends.log_start_offset,
        "log_end_offset": ends.end_offset,
        "lag": in_int64(ends.end_offset - row["committed_offset"]),
        "behind_ms": behind_ms(ends, row["committed_offset"], now_ms),
        "lag_from": from_what(ends),
    }


def from_what(ends: LogEnds) -> str:
    """Return what the column ``lag_from`` says: by which end of the log the lag is counted."""
    return HIGH_WATERMARK if ends.is_by_high_watermark else LOG_END


def with_lag(logs: CopiedLogs, rows: Sequence[Row], now_ms: int | None) -> Iterator[Row]:
    """Yield rows of `compact`, with `LAG_COLUMNS` behind their own.

    Args:
        now_ms: until when ages are counted; None for the time of the newest record of all these logs.
    """
    asked: dict[TopicPartition, set[int]] = {}
    for row in filter(_is_told, rows):
        asked.setdefault((row["topic"], row["partition"]), set()).add(row["committed_offset"])
    logs.look_at(asked)
    if now_ms is None:
        now_ms = logs.newest_timestamp_ms
    for row in rows:
        yield row | (lag_of(logs, row, now_ms) if _is_told(row) else {column.name: None for column in LAG_COLUMNS})


def _is_told(row: Row) -> bool:
    """Whether an offset is told; a text may not tell it."""
    return row["committed_offset"] is not None


def behind_ms(ends: LogEnds, committed_offset: int, now_ms: int | None) -> int | None:
    """Return how old the first record from an offset on is; 0 at the end of the log and behind it."""
    if committed_offset >= ends.end_offset:
        return 0
    time_ms = ends.first_timestamps.get(committed_offset)
    return None if time_ms is None or now_ms is None else in_int64(now_ms - time_ms)


def in_int64(number: int) -> int | None:
    """Return the number; None where no column holds it, as of hostile offsets and times."""
    return number if -_INT64 <= number < _INT64 else None


def group_lags(logs: CopiedLogs, offsets: Iterable[OffsetAndMetadata]) -> dict[str, Row]:
    """Group → `GROUP_LAG_COLUMNS`, from its committed offsets."""
    found: dict[str, Row] = {}
    offsets = list(offsets)
    logs.find((value.topic, value.partition) for value in offsets)
    for value in offsets:
        of_group = found.setdefault(value.group, dict(NO_LAG))
        ends = logs.ends_for(value.topic, value.partition, value.topic_id, value.commit_timestamp_ms)
        if ends is None:
            of_group["partitions_without_lag"] += 1
            continue
        lag = max(ends.end_offset - value.committed_offset, 0)
        of_group["lag"] = lag + (of_group["lag"] or 0)
        of_group["max_lag"] = max(lag, of_group["max_lag"] or 0)
    return found


def with_lags(logs: CopiedLogs | None, state: CoordinatorState, rows: Iterable[Row]) -> Iterator[Row]:
    """Yield rows of `groups` with `GROUP_LAG_COLUMNS`; without these where no logs are given.

    Args:
        state: whose groups they are.
    """
    lags = {} if logs is None else group_lags(logs, state.iter_served())
    for row in rows:
        yield row if logs is None else row | lags.get(row["group"], NO_LAG)
