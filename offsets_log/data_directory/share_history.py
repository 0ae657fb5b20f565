"""What became of share groups' offsets in time, as rows: each record of their coordinator's log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from offsets_log.data_directory.share_groups import (
    UNINITIALIZED,
    ShareChange,
    ShareState,
    ShareStates,
    iter_share_changes,
)
from offsets_log.data_directory.share_offsets import STATE_COLUMNS, TOPIC_ID_COLUMN, state_cells
from offsets_log.log_format.batch import time_of
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.rows.tables import GROUP_COLUMN, TOPIC_PARTITION_COLUMNS, Column, Row, with_raw_texts

SHARE_HISTORY_COLUMNS = (
    GROUP_COLUMN,
    *TOPIC_PARTITION_COLUMNS,
    TOPIC_ID_COLUMN,
    Column("event", "string", "snapshot, update or tombstone: the kind of record"),
    Column("record_offset", "bigint", "offset of the record in the state partition"),
    Column("timestamp_ms", "bigint", "time of the record; null if it has none"),
    *STATE_COLUMNS,
    Column(
        "change",
        "string",
        "how the start offset changed: new, advanced, rewound, same, deleted; null if there is none yet",
    ),
    Column("state_partition", "int", "partition of __share_group_state"),
)
"""`STATE_COLUMNS` are those of the state behind the record, null where there is none."""

REWOUND = "rewound"

NO_STATE = dict.fromkeys(column.name for column in STATE_COLUMNS)


def iter_share_history(
    logs: Iterable[PartitionLog],
    states: ShareStates,
    names: Mapping[bytes, str],
    shows: Callable[[str, str, int], bool],
) -> Iterator[Row]:
    """Yield `SHARE_HISTORY_COLUMNS` of each record that is shown, log by log.

    Args:
        states: empty; at the end those behind the logs, and what could not be read.
        names: topic id → name.
        shows: whether a group, a topic ("" where nothing names it) and a partition are shown.
    """
    for log in logs:
        for change in iter_share_changes(log, states):
            topic = names.get(bytes(change.key.topic_id))
            if shows(change.key.group, topic or "", change.key.partition):
                yield _row(change, topic, log.offsets_partition)


def _row(change: ShareChange, topic: str | None, state_partition: int | None) -> Row:
    row: Row = {
        "group": change.key.group,
        "topic": topic,
        "partition": change.key.partition,
        "topic_id": str(change.key.topic_id),
        "event": change.event,
        "record_offset": change.record.offset,
        "timestamp_ms": time_of(change.record.timestamp_ms),
        **(NO_STATE if change.after is None else state_cells(change.after)),
        "change": moved(_start(change.before), _start(change.after)),
        "state_partition": state_partition,
    }
    return with_raw_texts(row, ("group",))


def _start(state: ShareState | None) -> int | None:
    return None if state is None or state.start_offset == UNINITIALIZED else state.start_offset


def moved(before: int | None, after: int | None) -> str | None:
    """Return the name of a move; None where there is no start offset before and behind it."""
    if before is None or after is None:
        return None if before == after else "new" if before is None else "deleted"
    return "same" if after == before else "advanced" if after > before else REWOUND
