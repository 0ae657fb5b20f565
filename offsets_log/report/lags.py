"""How far each group is behind, in offsets and in time: rows of the report's table, bars of its plot."""

from __future__ import annotations

from collections.abc import Iterable

from offsets_log.data_directory.copied_logs import CopiedLogs
from offsets_log.data_directory.lag import group_lags, with_lag
from offsets_log.replay.partial import OffsetAndMetadata
from offsets_log.rows.tables import Row

LAG_TABLE_COLUMNS = ("group", "lag", "max_lag", "max_behind_ms", "partitions_with_lag", "partitions_without_lag")

_KEYS = ("group", "topic", "partition", "topic_id", "commit_timestamp_ms", "committed_offset")


def lag_rows(
    logs: CopiedLogs, offsets: Iterable[OffsetAndMetadata]
) -> tuple[list[Row], dict[tuple[str, str, int], int | None]]:
    """Return rows of `LAG_TABLE_COLUMNS`, the group that is furthest behind first, and the lag of each key."""
    values = list(offsets)
    keys = [{name: getattr(value, name) for name in _KEYS} for value in values]
    ages: dict[str, list[int]] = {}
    behind: dict[str, int] = {}
    lags: dict[tuple[str, str, int], int | None] = {}
    for row in with_lag(logs, keys, None):
        if row["behind_ms"] is not None:
            ages.setdefault(row["group"], []).append(row["behind_ms"])
        lags[row["group"], row["topic"], row["partition"]] = row["lag"]
        behind[row["group"]] = behind.get(row["group"], 0) + ((row["lag"] or 0) > 0)
    rows = [
        {"group": group, **sums, "max_behind_ms": max(ages.get(group, ()), default=None)}
        | {"partitions_with_lag": behind[group]}
        for group, sums in group_lags(logs, values).items()
    ]
    return sorted(rows, key=lambda row: (-(row["lag"] or 0), row["group"])), lags
