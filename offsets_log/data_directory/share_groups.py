"""``__share_group_state`` replayed: where share groups are in each partition, and what is on its way to members.

References: ``ShareCoordinatorShard.replay``, ``PersisterStateBatchCombiner``.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from offsets_log.data_directory.state_log import iter_state_records
from offsets_log.errors import Damage
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.log_format.primitives import Uuid
from offsets_log.log_format.record import Record
from offsets_log.messages.internal_topics import SHARE_GROUP_STATE
from offsets_log.messages.state_topics import StateRecord

UNINITIALIZED = -1
"""A start offset that ``share.auto.offset.reset`` will decide."""
UNCHANGED = -1
"""A start offset or leader epoch of an update that leaves the one before."""
UNKNOWN_COUNT = -1

ACKNOWLEDGED, ARCHIVED = 2, 4
DONE = frozenset({ACKNOWLEDGED, ARCHIVED})
"""States of records that are not delivered again."""

SNAPSHOT, UPDATE, TOMBSTONE = "snapshot", "update", "tombstone"


class SharePartition(NamedTuple):
    """The key of a state."""

    group: str
    topic_id: Uuid
    partition: int


class StateBatch(NamedTuple):
    """Offsets that are in one state of delivery.

    Attributes:
        first_offset, last_offset: both inclusive.
        delivery_state: of `share_group_state.DELIVERY_STATES`.
        delivery_count: how often they were delivered.
    """

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareState:
    """Where a share group is in a partition.

    Attributes:
        start_offset: all before was delivered or given up; −1 before it was set.
        delivery_complete_count: how many from there on are done; −1 where it is not told.
        batches: what is known of offsets from there on, rising; all others are yet to be delivered.
        create_timestamp_ms, write_timestamp_ms: of the last snapshot; −1 without one.
        record_offset: of the last record.
        state_partition: of ``__share_group_state``.
    """

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: tuple[StateBatch, ...]
    create_timestamp_ms: int
    write_timestamp_ms: int
    record_offset: int
    state_partition: int | None

    def lag(self, end_offset: int) -> int | None:
        """Return what is not done before an end, as ``DescribeShareGroupOffsets`` counts it; None if unknown."""
        if self.start_offset == UNINITIALIZED or self.delivery_complete_count == UNKNOWN_COUNT:
            return None
        return end_offset - self.start_offset - self.delivery_complete_count

    def redelivered(self) -> list[StateBatch]:
        """Return what is delivered again although it was done, where a group goes on from the start offset alone."""
        return [batch for batch in self.batches if batch.delivery_state in DONE]


class ShareChange(NamedTuple):
    """What a record of the log does to a state.

    Attributes:
        event: `SNAPSHOT`, `UPDATE` or `TOMBSTONE`.
        before, after: the state; None where there is none.
    """

    key: SharePartition
    event: str
    record: Record
    before: ShareState | None
    after: ShareState | None


@dataclass(slots=True)
class ShareStates:
    """The states of all share groups.

    Attributes:
        damages: what could not be read.
    """

    by_key: dict[SharePartition, ShareState] = field(default_factory=dict)
    damages: list[Damage] = field(default_factory=list)
    partitions: set[int] = field(default_factory=set)


def replay_share_group_log(logs: Iterable[PartitionLog]) -> ShareStates:
    """Replay copies of ``__share_group_state``, one for each partition of it that there is."""
    states = ShareStates()
    for log in logs:
        if log.offsets_partition is not None:
            states.partitions.add(log.offsets_partition)
        for _ in iter_share_changes(log, states):
            pass
    return states


def iter_share_changes(log: PartitionLog, states: ShareStates) -> Iterator[ShareChange]:
    """Yield what each record of a partition of the log changes.

    Args:
        states: the states before and, at the end, behind it.
    """
    for record, decoded in iter_state_records(log, SHARE_GROUP_STATE, states.damages):
        if decoded is None:
            continue
        key = SharePartition(decoded.key["group_id"], decoded.key["topic_id"], decoded.key["partition"])
        before = states.by_key.get(key)
        _apply(states.by_key, key, decoded, record.offset, log.offsets_partition)
        event = TOMBSTONE if decoded.value is None else UPDATE if decoded.name == "ShareUpdate" else SNAPSHOT
        yield ShareChange(key, event, record, before, states.by_key.get(key))


def _apply(
    by_key: dict[SharePartition, ShareState],
    key: SharePartition,
    decoded: StateRecord,
    record_offset: int,
    state_partition: int | None,
) -> None:
    if decoded.value is None:
        by_key.pop(key, None)
        return
    made = _state_of(decoded.value, record_offset, state_partition)
    before = by_key.get(key)
    is_update = decoded.name == "ShareUpdate"
    by_key[key] = merge_update(before, made) if is_update and before is not None else made


def _state_of(fields: Mapping[str, Any], record_offset: int, state_partition: int | None) -> ShareState:
    """Return a record as it stands; an update has no state epoch and no times."""
    return ShareState(
        snapshot_epoch=fields["snapshot_epoch"],
        state_epoch=fields.get("state_epoch", 0),
        leader_epoch=fields["leader_epoch"],
        start_offset=fields["start_offset"],
        delivery_complete_count=fields["delivery_complete_count"],
        batches=tuple(
            StateBatch(batch["first_offset"], batch["last_offset"], batch["delivery_state"], batch["delivery_count"])
            for batch in fields["state_batches"]
        ),
        create_timestamp_ms=fields.get("create_timestamp", -1),
        write_timestamp_ms=fields.get("write_timestamp", -1),
        record_offset=record_offset,
        state_partition=state_partition,
    )


def merge_update(before: ShareState, update: ShareState) -> ShareState:
    """Join a state and the update behind it: epochs and times of the snapshot stay, its count of what is done goes."""
    start = before.start_offset if update.start_offset == UNCHANGED else update.start_offset
    return replace(
        before,
        leader_epoch=before.leader_epoch if update.leader_epoch == UNCHANGED else update.leader_epoch,
        start_offset=start,
        delivery_complete_count=update.delivery_complete_count,
        batches=tuple(combine([*before.batches, *update.batches], start)),
        record_offset=update.record_offset,
    )


def combine(batches: Sequence[StateBatch], start_offset: int) -> list[StateBatch]:
    """Return batches without overlaps, from a start on.

    Where two have the same offset, the larger count of deliveries wins, then the larger state. Equal neighbours join.
    """
    left = sorted(
        (batch._replace(first_offset=max(batch.first_offset, start_offset)) for batch in batches)
        if start_offset != UNINITIALIZED
        else batches
    )
    left = [batch for batch in left if batch.first_offset <= batch.last_offset]
    combined: list[StateBatch] = []
    waiting: list[tuple[tuple[int, int], StateBatch]] = []  # those that have the offset, the winner first
    at, i = 0, 0
    while i < len(left) or waiting:
        if not waiting:
            at = left[i].first_offset
        while i < len(left) and left[i].first_offset <= at:
            heapq.heappush(waiting, ((-left[i].delivery_count, -left[i].delivery_state), left[i]))
            i += 1
        winner = waiting[0][1]
        if winner.last_offset < at:
            heapq.heappop(waiting)
            continue
        last = winner.last_offset if i == len(left) else min(winner.last_offset, left[i].first_offset - 1)
        _append(combined, winner._replace(first_offset=at, last_offset=last))
        at = last + 1
    return combined


def _append(combined: list[StateBatch], batch: StateBatch) -> None:
    before = combined[-1] if combined else None
    if before is not None and before.last_offset + 1 == batch.first_offset and before[2:] == batch[2:]:
        combined[-1] = before._replace(last_offset=batch.last_offset)
    else:
        combined.append(batch)
