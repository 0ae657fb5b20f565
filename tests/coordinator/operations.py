"""Random work for a cache: what clients, transaction coordinators, administrators and time do to it."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

from offsets_log.coordinator.answers import TopicPartition
from offsets_log.coordinator.cache import GroupCoordinatorCache
from offsets_log.coordinator.errors import CoordinatorError
from offsets_log.coordinator.records import OffsetCommit, Producer
from offsets_log.coordinator.validation import NOBODY, MemberIdentity
from tests.coordinator.caches import HOUR_MS, Clock


@dataclass(frozen=True)
class Commit:
    group: str
    offsets: dict[TopicPartition, OffsetCommit]
    who: MemberIdentity = NOBODY
    retention_ms: int | None = None


@dataclass(frozen=True)
class TransactionalCommit:
    group: str
    producer: Producer
    offsets: dict[TopicPartition, OffsetCommit]


@dataclass(frozen=True)
class EndTransaction:
    producer: Producer
    commit: bool


@dataclass(frozen=True)
class DeleteOffsets:
    group: str
    partitions: Sequence[TopicPartition]


@dataclass(frozen=True)
class DeleteGroup:
    group: str


@dataclass(frozen=True)
class Wait:
    """Time passes, then the expiry task has its turn."""

    hours: int


Operation = Commit | TransactionalCommit | EndTransaction | DeleteOffsets | DeleteGroup | Wait


def perform(cache: GroupCoordinatorCache, clock: Clock, operation: Operation) -> None:
    """Do it; what the coordinator refuses changes nothing."""
    with contextlib.suppress(CoordinatorError):
        match operation:
            case Commit(group, offsets, who, retention_ms):
                cache.commit_offsets(group, offsets, who=who, retention_ms=retention_ms)
            case TransactionalCommit(group, producer, offsets):
                cache.commit_transactional_offsets(group, producer, offsets)
            case EndTransaction(producer, commit):
                cache.write_txn_marker(producer, commit=commit)
            case DeleteOffsets(group, partitions):
                cache.delete_offsets(group, partitions)
            case DeleteGroup(group):
                cache.delete_group(group)
            case Wait(hours):
                clock.now_ms += hours * HOUR_MS
                cache.tick()
