"""Where share groups are in each partition, as rows: the states of their coordinator's log with names, ends and status.

References: ``ShareGroupCommand.java``, ``GroupCoordinatorService.java`` (``describeShareGroupOffsets``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from offsets_log.data_directory.checkpoints import TopicPartition
from offsets_log.data_directory.copied_logs import CopiedLogs
from offsets_log.data_directory.lag import GROUP_LAG_COLUMNS
from offsets_log.data_directory.share_groups import (
    ACKNOWLEDGED,
    ARCHIVED,
    UNINITIALIZED,
    UNKNOWN_COUNT,
    SharePartition,
    ShareState,
    ShareStates,
)
from offsets_log.events import BareRecord, Event, LogEvent
from offsets_log.log_format.primitives import Uuid
from offsets_log.log_format.record import Record
from offsets_log.messages.registry import CoordinatorRecord, record_type_of
from offsets_log.messages.share_group_state import DELIVERY_STATES
from offsets_log.rows.tables import GROUP_COLUMN, TOPIC_PARTITION_COLUMNS, Column, Row, with_raw_texts

STATE_PARTITION_METADATA = 15
"""The record type that says which partitions a share group has states of."""

INITIALIZED, INITIALIZING, DELETING, ORPHAN = "initialized", "initializing", "deleting", "orphan"

AVAILABLE = 0

_START_COLUMNS = (
    Column(
        "start_offset",
        "bigint",
        "first record that is not completely processed; null until share.auto.offset.reset has set it",
    ),
    Column(
        "delivery_complete_count",
        "int",
        "how many records from start_offset on are completely processed; null if unknown",
    ),
)
_DELIVERY_COLUMNS = (
    Column("available", "bigint", "records from start_offset on that were released and will be delivered again"),
    Column("acknowledged", "bigint", "records from start_offset on that were accepted"),
    Column("archived", "bigint", "records from start_offset on that were rejected or delivered too often"),
    Column("leader_epoch", "int", "epoch of the partition's leader that wrote the state; null if none did"),
    Column("state_epoch", "int", "epoch of the group when this state was first written"),
    Column("snapshot_epoch", "int", "number of snapshots before this one"),
)
STATE_COLUMNS = (*_START_COLUMNS, *_DELIVERY_COLUMNS)
TOPIC_ID_COLUMN = Column(
    "topic_id", "string", "id by which the coordinator knows the topic; topic is null if nothing names it"
)

SHARE_OFFSET_COLUMNS = (
    GROUP_COLUMN,
    *TOPIC_PARTITION_COLUMNS,
    TOPIC_ID_COLUMN,
    *_START_COLUMNS,
    Column(
        "lag",
        "bigint",
        "records up to the log's end that are not completely processed; null without a copy of the partition",
    ),
    *_DELIVERY_COLUMNS,
    Column(
        "status",
        "string",
        "initialized, initializing, deleting, or orphan if the group's record has the partition in none of these",
    ),
    Column("write_timestamp_ms", "bigint", "time of the last snapshot"),
    Column("record_offset", "bigint", "offset of the last record in the state partition"),
    Column("state_partition", "int", "partition of __share_group_state"),
)


@dataclass(slots=True)
class ShareGroupTopics:
    """What the groups' own records say of their states.

    Attributes:
        status: group → topic id → partition → status; partition −1 for all of a topic.
        names: topic id → name.
    """

    status: dict[str, dict[bytes, dict[int, str]]] = field(default_factory=dict)
    names: dict[bytes, str] = field(default_factory=dict)

    def add(self, events: Iterable[LogEvent]) -> None:
        """Add the events of an offsets partition; of each group the last record counts."""
        for event in events:
            if isinstance(event, Event) and event.decoded is not None:
                self.take(event.decoded)

    def take(self, record: CoordinatorRecord) -> None:
        """Take the next record of a partition."""
        if record.record_type != STATE_PARTITION_METADATA:
            return
        value: Mapping[str, Sequence[Mapping[str, object]]] | None = record.value
        found: dict[bytes, dict[int, str]] = {}
        for name, status in (
            ("initialized_topics", INITIALIZED),
            ("initializing_topics", INITIALIZING),
            ("deleting_topics", DELETING),
        ):
            for row in (value or {}).get(name, ()):
                topic_id, partitions = row["topic_id"], row.get("partitions", [-1])
                assert isinstance(topic_id, bytes)
                assert isinstance(partitions, list)
                self.names[topic_id] = str(row["topic_name"])
                found.setdefault(topic_id, {}).update(dict.fromkeys(partitions, status))
        self.status[record.group] = found

    def of(self, key: SharePartition, *, is_whole: bool) -> str | None:
        """Return the status of a state; None if its group has no record here, but may have in another partition.

        Args:
            is_whole: whether all offsets partitions were read.
        """
        if key.group not in self.status and not is_whole:
            return None
        partitions = self.status.get(key.group, {}).get(bytes(key.topic_id), {})
        return partitions.get(key.partition) or partitions.get(-1) or ORPHAN


def is_of_states(record: Record | BareRecord) -> bool:
    """Whether a record says which states a group has."""
    return record_type_of(record.key) == STATE_PARTITION_METADATA


@dataclass(frozen=True, slots=True)
class ShareOffsets:
    """The states that are asked for.

    Attributes:
        names: topic id → name.
        logs: tell the ends of partitions; None where these are not asked for.
        is_whole: whether all offsets partitions were read.
    """

    states: ShareStates
    topics: ShareGroupTopics
    names: Mapping[bytes, str]
    logs: CopiedLogs | None
    is_whole: bool
    shows_group: Callable[[str], bool]
    shows_topic: Callable[[str], bool]

    def shown(self) -> Iterator[tuple[Row, ShareState]]:
        """Return `SHARE_OFFSET_COLUMNS` of every state, by group, topic and partition."""
        found = [(self._row(key, state), state) for key, state in self.states.by_key.items()]
        shown = (item for item in found if self.shows_group(item[0]["group"]) and self.shows_topic(_topic(item[0])))
        return iter(sorted(shown, key=lambda item: (item[0]["group"], _topic(item[0]), item[0]["partition"])))

    def rows(self) -> list[Row]:
        """Return the rows of `shown` without the states."""
        return [row for row, _ in self.shown()]

    def _row(self, key: SharePartition, state: ShareState) -> Row:
        topic_id = bytes(key.topic_id)
        topic = self.names.get(topic_id, self.topics.names.get(topic_id))
        ends = (
            None if self.logs is None or topic is None else self.logs.ends_for(topic, key.partition, str(key.topic_id))
        )
        told: Row = state_cells(state) | {
            "group": key.group,
            "topic": topic,
            "partition": key.partition,
            "topic_id": str(key.topic_id),
            "lag": None if ends is None else state.lag(ends.end_offset),
            "status": self.topics.of(key, is_whole=self.is_whole),
            "write_timestamp_ms": None if state.write_timestamp_ms < 0 else state.write_timestamp_ms,
            "record_offset": state.record_offset,
            "state_partition": state.state_partition,
        }
        row = {column.name: told[column.name] for column in SHARE_OFFSET_COLUMNS}
        return with_raw_texts(row, ("group",))

    def plan_rows(self) -> Iterator[Row]:
        """Yield rows with what a restore needs: states of delivery, the log's bounds, the first record's time."""
        shown = list(self.shown())
        rows = with_log_ends([row for row, _ in shown], self.logs)
        for row, (_, state) in zip(rows, shown, strict=True):
            yield row | {
                "redelivered": [
                    {
                        "first_offset": batch.first_offset,
                        "last_offset": batch.last_offset,
                        "delivery_state": DELIVERY_STATES[batch.delivery_state],
                        "delivery_count": batch.delivery_count,
                    }
                    for batch in state.redelivered()
                ],
            }


def initialized_share_offsets(topics: ShareGroupTopics, rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Share group → rows of the partitions that it has states of, as brokers answer for them.

    A partition is answered for as soon as it is initialized, and its columns are null until a state of it is known.
    """
    known = {(row["group"], row["topic_id"], row["partition"]): row for row in rows}
    found: dict[str, list[Row]] = {}
    for group, by_topic in topics.status.items():
        for raw_id, partitions in by_topic.items():
            topic_id, topic = str(Uuid(raw_id)), topics.names[raw_id]
            for number in sorted(number for number, status in partitions.items() if status == INITIALIZED):
                empty = {column.name: None for column in SHARE_OFFSET_COLUMNS}
                row = known.get((group, topic_id, number), empty)
                key = {"group": group, "topic": topic, "topic_id": topic_id, "partition": number}
                found.setdefault(group, []).append(row | key)
    return found


def with_log_ends(rows: Sequence[Row], logs: CopiedLogs | None) -> Iterator[Row]:
    """Yield rows with where their logs begin and end, and when the first record was written; null without a copy."""
    starts: dict[TopicPartition, set[int]] = {}
    for row in rows:
        if row["topic"] is not None:
            own = starts.setdefault((row["topic"], row["partition"]), set())
            own |= {row["start_offset"]} - {None}
    if logs is not None:
        logs.look_at(starts)
    for row in rows:
        ends = None
        if logs is not None and row["topic"] is not None:
            ends = logs.ends_for(row["topic"], row["partition"], row["topic_id"])
        yield row | {
            "log_start_offset": None if ends is None else ends.log_start_offset,
            "log_end_offset": None if ends is None else ends.end_offset,
            "start_timestamp_ms": None if ends is None else ends.first_timestamps.get(row["start_offset"]),
        }


def state_cells(state: ShareState) -> Row:
    """Return the cells `STATE_COLUMNS` of a state."""
    counts = dict.fromkeys(DELIVERY_STATES, 0)
    for batch in state.batches:
        counts[batch.delivery_state] = counts.get(batch.delivery_state, 0) + batch.last_offset - batch.first_offset + 1
    done = state.delivery_complete_count
    return {
        "start_offset": None if state.start_offset == UNINITIALIZED else state.start_offset,
        "delivery_complete_count": None if done == UNKNOWN_COUNT else done,
        "available": counts[AVAILABLE],
        "acknowledged": counts[ACKNOWLEDGED],
        "archived": counts[ARCHIVED],
        "leader_epoch": None if state.leader_epoch < 0 else state.leader_epoch,
        "state_epoch": state.state_epoch,
        "snapshot_epoch": state.snapshot_epoch,
    }


def _topic(row: Row) -> str:
    return row["topic"] or ""


def group_share_offsets(rows: Iterable[Row], *, with_lag: bool) -> dict[str, Row]:
    """Share group → its ``offsets`` in `groups`, and `GROUP_LAG_COLUMNS` where these are asked for.

    Args:
        rows: of `ShareOffsets`; those of orphans and without a start offset do not count.
    """
    found: dict[str, Row] = {}
    for row in rows:
        if row["start_offset"] is None or row["status"] == ORPHAN:
            continue
        of_group = found.setdefault(row["group"], {"offsets": 0, "lag": None, "max_lag": None, "without": 0})
        of_group["offsets"] += 1
        if row["lag"] is None:
            of_group["without"] += 1
        else:
            of_group["lag"] = max(row["lag"], 0) + (of_group["lag"] or 0)
            of_group["max_lag"] = max(row["lag"], of_group["max_lag"] or 0)
    names = [column.name for column in GROUP_LAG_COLUMNS]
    lags = {
        group: dict(zip(names, (told["lag"], told["max_lag"], told["without"]), strict=True))
        for group, told in found.items()
    }
    return {group: {"offsets": told["offsets"]} | (lags[group] if with_lag else {}) for group, told in found.items()}
