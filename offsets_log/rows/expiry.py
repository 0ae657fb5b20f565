"""Columns of rows that say when expiry removes offsets and groups: `expire`."""

from __future__ import annotations

from offsets_log.rows.tables import GROUP_COLUMN, OFFSETS_PARTITION_COLUMN, Column

EXPIRY_COLUMNS = (
    Column("kind", "string", "offset or group; a group comes after its offsets"),
    GROUP_COLUMN,
    Column("topic", "string", "topic that the group consumes; null for a group"),
    Column("partition", "int", "partition of that topic; null for a group"),
    Column("committed_offset", "bigint", "what the group committed; null for a group"),
    Column("commit_timestamp_ms", "bigint", "when it was committed; null for a group"),
    Column("expired", "boolean", "whether an expiry check at the time that is asked for removes it"),
    Column(
        "expires_at_ms",
        "bigint",
        "the first moment at which an expiry check removes it; null if none does while the group stays as it is",
    ),
    Column("rule", "string", "the rule that decides it, for `explain`"),
    Column("reason", "string", "why it goes or stays"),
    OFFSETS_PARTITION_COLUMN,
)
