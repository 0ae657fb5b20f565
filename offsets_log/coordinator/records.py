"""The records that a coordinator writes of its own decisions, and the batches that hold them.

Reference: ``GroupCoordinatorRecordHelpers.java``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from offsets_log.coordinator.config import Writes
from offsets_log.log_format.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from offsets_log.log_format.building import build_batch
from offsets_log.log_format.primitives import ZERO_UUID, Uuid
from offsets_log.log_format.record import Record
from offsets_log.messages.offset_commit import OFFSET_COMMIT_VALUE
from offsets_log.messages.registry import CoordinatorRecord, encode_coordinator_record
from offsets_log.messages.schema import default_of
from offsets_log.replay.expiry import GROUP_TOMBSTONES
from offsets_log.replay.group import CLASSIC, SHARE, Group
from offsets_log.replay.partial import GroupTopicPartition

NO_LEADER_EPOCH = -1
EXPLICIT_RETENTION_VERSION = 1
"""The only value version with an expire timestamp."""

TOMBSTONES = GROUP_TOMBSTONES | {SHARE: (12, 15, 11)}
"""Kind → record types whose tombstones remove a group without members, in an order that loads (``J-17``)."""


@dataclass(frozen=True, slots=True)
class OffsetCommit:
    """An offset that a client commits for one partition; only the length of its metadata is checked (``W-9``).

    Attributes:
        metadata: the client's text; None is stored as "" (``W-8``).
        topic_id: kept only by 4.1 and later, and not for transactional commits (``records:W5``). The caller looks it
            up where 4.3 would.
    """

    committed_offset: int
    metadata: str | None = ""
    leader_epoch: int | None = None
    topic_id: Uuid = ZERO_UUID


@dataclass(frozen=True, slots=True)
class Producer:
    """The producer whose transaction a batch belongs to."""

    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH

    @property
    def is_transactional(self) -> bool:
        """Whether there is a producer with a transaction at all."""
        return self.producer_id >= 0


NO_PRODUCER = Producer()


def offset_record(
    writes: Writes, key: GroupTopicPartition, commit: OffsetCommit, now_ms: int, expire_timestamp_ms: int | None
) -> CoordinatorRecord:
    """Return the record of a commit in the version that the release writes: 1 if it has an expire timestamp."""
    version = writes.offset_value_version
    if version > 0 and expire_timestamp_ms is not None:
        version = EXPLICIT_RETENTION_VERSION
    value: dict[str, Any] = {field.name: default_of(field) for field in OFFSET_COMMIT_VALUE.fields} | {
        "offset": commit.committed_offset,
        "leader_epoch": NO_LEADER_EPOCH if commit.leader_epoch is None else commit.leader_epoch,
        "metadata": commit.metadata or "",
        "commit_timestamp": now_ms,
        "expire_timestamp": -1 if expire_timestamp_ms is None else expire_timestamp_ms,
        "topic_id": commit.topic_id,
    }
    return CoordinatorRecord(record_type=writes.key_type, key=offset_key(key), value_version=version, value=value)


def offset_tombstone(writes: Writes, key: GroupTopicPartition) -> CoordinatorRecord:
    """Return an offset's tombstone: of type 1, whatever type its key had (``E-18``), but of type 0 in 0.8.2."""
    return CoordinatorRecord(record_type=writes.key_type, key=offset_key(key))


def offset_key(key: GroupTopicPartition) -> dict[str, Any]:
    """Return an offset's key; a malformed name is written as it was read, with U+FFFD (``B-7``)."""
    group, topic, partition = key
    return {"group": str(group), "topic": str(topic), "partition": partition}


def group_tombstones(group: Group) -> list[CoordinatorRecord]:
    """Return the tombstones that remove a group without members."""
    name = str(group.group_id)
    if group.kind == CLASSIC:
        return [CoordinatorRecord(record_type=2, key={"group": name})]
    return [
        CoordinatorRecord(record_type=record_type, key={"group_id": name} | more)
        for record_type in TOMBSTONES[group.kind]
        for more in (
            [{"regular_expression": str(each)} for each in sorted(group.regular_expressions)]
            if record_type == 16
            else [{}]
        )
    ]


def batch_of(
    records: Sequence[CoordinatorRecord],
    writes: Writes,
    *,
    compression: str,
    now_ms: int,
    leader_epoch: int,
    producer: Producer = NO_PRODUCER,
) -> bytes:
    """Write the records as one batch at base offset 0, with CreateTime now (``W-1``–``W-3``).

    Raises:
        CorruptRecordError: a value does not fit its field.
    """
    encoded = [encode_coordinator_record(record) for record in records]
    return build_batch(
        [
            Record(offset=offset, timestamp_ms=now_ms if writes.magic else -1, key=key, value=value)
            for offset, (key, value) in enumerate(encoded)
        ],
        magic=writes.magic,
        compression=compression,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        base_sequence=0,
        is_transactional=producer.is_transactional,
        partition_leader_epoch=leader_epoch,
    )
