"""Caches over logs in memory, a clock to turn, and memory as something to compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from offsets_log.coordinator.cache import GroupCoordinatorCache
from offsets_log.coordinator.config import OffsetConfig
from offsets_log.coordinator.log import MemoryLog
from offsets_log.coordinator.records import Producer
from offsets_log.events import Event
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.building import build_batch
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.log_format.record import Record
from offsets_log.messages.registry import CoordinatorRecord, encode_coordinator_record
from offsets_log.pipeline import iter_events
from offsets_log.replay.coordinator_state import CoordinatorState

NOW = 1_700_000_000_000
HOUR_MS = 3_600_000
PARTITIONS = 4
SMALL = OffsetConfig(offsets_topic_num_partitions=PARTITIONS)
JAVA_AND_SCALA = ("4.3", "3.9")

FIRST, SECOND = Producer(7, 0), Producer(0, 0)


class Clock:
    """A clock that stands still until it is turned."""

    def __init__(self, now_ms: int = NOW) -> None:
        self.now_ms = now_ms

    def __call__(self) -> int:
        return self.now_ms


def started(
    release: str = "4.3", log: MemoryLog | None = None, *, clock: Clock | None = None, config: OffsetConfig = SMALL
) -> GroupCoordinatorCache:
    """A cache that leads every partition of a log."""
    cache = GroupCoordinatorCache(log or MemoryLog(), clock or Clock(), release=release, offset_config=config)
    cache.startup()
    for partition in range(config.offsets_topic_num_partitions):
        cache.on_election(partition, leader_epoch=1)
    return cache


def with_log(release: str = "4.3", **options: Any) -> tuple[GroupCoordinatorCache, MemoryLog]:
    """A cache and its empty log."""
    log = MemoryLog()
    return started(release, log, **options), log


def memory(state: CoordinatorState) -> dict[str, Any]:
    """All of a partition's memory, by value and in a fixed order."""
    return {
        "groups": {group_id: asdict(group) for group_id, group in sorted(state.groups.items())},
        "committed": sorted((value._asdict() for value in state.committed), key=_place),
        "pending": sorted((value._asdict() for value in state.pending), key=_place),
        "topic_names": dict(state.topic_names),
        "end_offset": state.end_offset,
    }


def _place(row: dict[str, Any]) -> tuple[str, str, int, int]:
    return row["group"], row["topic"], row["partition"], row["producer_id"]


def memories(cache: GroupCoordinatorCache, partitions: int = PARTITIONS) -> list[dict[str, Any]]:
    """The memory of every partition."""
    return [memory(cache.state(partition)) for partition in range(partitions)]


def put(log: MemoryLog, partition: int, *records: CoordinatorRecord, **batch: Any) -> None:
    """Write records as some earlier broker did."""
    encoded = [encode_coordinator_record(record) for record in records]
    log.append(
        partition,
        build_batch(
            [Record(offset=at, timestamp_ms=NOW, key=key, value=value) for at, (key, value) in enumerate(encoded)],
            **batch,
        ),
    )


def written(log: MemoryLog, partition: int) -> list[Event]:
    """What is in a partition, record by record."""
    return [event for event in iter_events(log.read(partition)) if isinstance(event, Event)]


def batches(log: MemoryLog, partition: int) -> list[RecordBatch]:
    """The batches of a partition."""
    found: dict[int, RecordBatch] = {event.batch.base_offset: event.batch for event in written(log, partition)}
    return list(found.values())


def member_row(member_id: str, *topics: str, instance_id: str | None = None) -> dict[str, Any]:
    """A member of a type 2 record, subscribed to topics with version 0 of the protocol."""
    names = b"".join(len(topic.encode()).to_bytes(2) + topic.encode() for topic in topics)
    return {
        "member_id": member_id,
        "group_instance_id": instance_id,
        "client_id": "client",
        "client_host": "/127.0.0.1",
        "rebalance_timeout": 300_000,
        "session_timeout": 45_000,
        "subscription": b"\0\0" + len(topics).to_bytes(4) + names + b"\xff\xff\xff\xff",
        "assignment": b"",
    }


def classic_group(
    group: str, members: Sequence[dict[str, Any]] = (), *, kind: str = "consumer", version: int = 3, generation: int = 3
) -> CoordinatorRecord:
    """A type 2 record."""
    value = {
        "protocol_type": kind,
        "generation": generation,
        "protocol": "range" if members else None,
        "leader": members[0]["member_id"] if members else None,
        "current_state_timestamp": NOW,
        "members": list(members),
    }
    return CoordinatorRecord(record_type=2, key={"group": group}, value_version=version, value=value)


def newer_group(
    group: str, *, kind: str = "consumer", member_id: str | None = None, epoch: int = 5
) -> list[CoordinatorRecord]:
    """A consumer, share or streams group, with a member or Empty."""
    types = {"consumer": (3, 5, 8), "share": (11, 10, 14), "streams": (17, 19, 22)}
    group_type, member_type, current_type = types[kind]
    records = [_record(group_type, {"group_id": group}, {"epoch": epoch, "metadata_hash": 0})]
    if kind == "streams":
        records[0].value.update(validated_topology_epoch=-1, last_assignment_configs=[])  # type: ignore[union-attr]
    if member_id is not None:
        assert kind == "consumer"
        key = {"group_id": group, "member_id": member_id}
        value = {
            "instance_id": None, "rack_id": None, "client_id": "c", "client_host": "/h", "rebalance_timeout_ms": 1,
            "subscribed_topic_names": ["read"], "subscribed_topic_regex": None, "server_assignor": None,
            "classic_member_metadata": None,
        }  # fmt: skip
        current = {
            "member_epoch": epoch, "previous_member_epoch": epoch - 1, "state": 0, "assigned_partitions": [],
            "partitions_pending_revocation": [],
        }  # fmt: skip
        records += [_record(member_type, key, value), _record(current_type, key, current)]
    return records


def _record(record_type: int, key: dict[str, Any], value: dict[str, Any]) -> CoordinatorRecord:
    return CoordinatorRecord(record_type=record_type, key=key, value_version=0, value=value)


class OneLog:
    """A log that is only read."""

    def __init__(self, partitions: dict[int, PartitionLog]) -> None:
        self.partitions = partitions

    def read(self, partition: int) -> PartitionLog:
        return self.partitions[partition]

    def append(self, partition: int, batch: bytes) -> int:
        raise AssertionError("nothing is to be written")
