"""What generated records are made of: names, keys and values as bytes, laid out by hand.

Not with the project's own schema tables: that they read these bytes says something that way. Only the records of newer
groups are (`generator_newer`).
"""

from __future__ import annotations

import random
import struct
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.generator_kernels import NEWER_COLUMNS, Content
from benchmarks.generator_newer import newer_records

TEAMS = ("billing", "checkout", "search", "fraud", "shipping", "mail", "reports", "inventory", "pricing", "audit")
JOBS = ("indexer", "consumer", "projection", "stream-app", "sink", "enricher", "archiver")
EVENTS = ("orders", "payments", "customers", "clicks", "stock-levels", "parcels", "sessions")
MEMBERS = 3
NO_LEADER_EPOCH = -1


@dataclass(frozen=True, slots=True)
class Group:
    """A group's name, its topics, and whether its commits carry metadata."""

    name: str
    topics: tuple[str, ...]
    has_metadata: bool


def groups(count: int, topics: int, with_metadata: float) -> list[Group]:
    """Groups, each with topics out of a pool that they share; ``with_metadata`` is their share."""
    return [
        Group(
            name=f"{TEAMS[g % len(TEAMS)]}-{JOBS[g // 3 % len(JOBS)]}-{g:05}",
            topics=tuple(f"{EVENTS[t % len(EVENTS)]}.{TEAMS[t // 7 % len(TEAMS)]}.v{t}" for t in _topics(g, topics)),
            has_metadata=(g * 0.618034) % 1 < with_metadata,
        )
        for g in range(count)
    ]


def _topics(group: int, count: int) -> range:
    return range(group * 3 % 97, group * 3 % 97 + count)


def content(members: Sequence[Group], partitions: int, value_version: int, seed: int, *, newer: bool) -> Content:
    """All bytes of these groups' records."""
    choice = random.Random(seed)
    data = bytearray()

    def append(part: bytes) -> tuple[int, int]:
        data.extend(part)
        return len(data) - len(part), len(data)

    keys, values, group_rows = [0], [], []
    for group in members:
        for topic in group.topics:
            head = struct.pack(">h", 1) + string(group.name) + string(topic)
            keys += [append(head + struct.pack(">i", partition))[1] for partition in range(partitions)]
    for group in members:
        for topic in group.topics:
            metadata = f"AgAAAZ{choice.getrandbits(48):012x}" if group.has_metadata else ""
            epoch = choice.choice((NO_LEADER_EPOCH, 0, 3, 12))
            value, timestamp_at = commit_value(value_version, epoch, metadata, _topic_id(topic))
            values.append((*append(value), timestamp_at))
        value, generation_at, state_timestamp_at = group_value(group, partitions, choice)
        key = struct.pack(">h", 2) + string(group.name)
        group_rows.append((*append(key), *append(value), generation_at, state_timestamp_at))
    newer_rows, newer_begins, numbers = [], [0], [i for i in range(len(members)) if newer and i % 2]
    for number in numbers:
        group = members[number]
        for record in newer_records(group.name, group.topics, partitions, number // 2):
            newer_rows.append((*append(record.key), *append(record.value or b""), *record.facts))
            if record.value is None:
                newer_rows[-1] = (*newer_rows[-1][:2], 0, -1, *record.facts)
        newer_begins.append(len(newer_rows))
    return Content(
        data=np.frombuffer(bytes(data), np.uint8),
        keys=np.array(keys, np.int64),
        values=np.array(values, np.int64),
        groups=np.array(group_rows, np.int64),
        group_size=len(members[0].topics) * partitions,
        topic_size=partitions,
        newer=np.array(newer_rows, np.int64).reshape(-1, NEWER_COLUMNS),
        newer_begins=np.array(newer_begins, np.int64),
        newer_of=np.array([min(i // 2, len(numbers) - 1) for i in range(len(members)) if numbers], np.int64),
        is_newer=np.array([i in set(numbers) for i in range(len(members))], np.int64),
    )


# -------------------------------------------------------------------------------------------- values


def string(text: str) -> bytes:
    """int16 length and UTF-8."""
    encoded = text.encode()
    return struct.pack(">h", len(encoded)) + encoded


def _sized(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def _topic_id(topic: str) -> bytes:
    return uuid.uuid5(uuid.NAMESPACE_DNS, topic).bytes


def commit_value(version: int, leader_epoch: int, metadata: str, topic_id: bytes) -> tuple[bytes, int]:
    """An OffsetCommitValue with committed offset and timestamp 0, and the place of the timestamp."""
    head = struct.pack(">hq", version, 0)
    if version >= 3:
        head += struct.pack(">i", leader_epoch)
    if version < 4:
        head += string(metadata)
    else:  # compact: a uvarint with the length + 1, one byte for texts as short as these
        head += bytes((len(metadata) + 1,)) + metadata.encode()
    tail = {1: struct.pack(">q", -1), 4: bytes((1, 0, len(topic_id))) + topic_id}.get(version, b"")
    return head + bytes(8) + tail, len(head)


def group_value(group: Group, partitions: int, choice: random.Random) -> tuple[bytes, int, int]:
    """A GroupMetadataValue v3 of a stable group with three members; places of generation and timestamp."""
    ids = [f"{group.name}-{m}-{uuid.UUID(int=choice.getrandbits(128), version=4)}" for m in range(MEMBERS)]
    head = struct.pack(">h", 3) + string("consumer")
    middle = head + bytes(4) + string("range") + string(ids[0])
    topic = string(group.topics[0])
    members = b""
    for number, member_id in enumerate(ids):
        # consumer protocol 1: no user data, no owned partitions
        subscription = struct.pack(">hi", 1, 1) + topic + struct.pack(">ii", -1, 0)
        assigned = range(number, partitions, MEMBERS)[:2]
        assignment = struct.pack(">hi", 1, 1) + topic + struct.pack(f">i{len(assigned)}i", len(assigned), *assigned)
        members += (
            string(member_id)
            + struct.pack(">h", -1)  # no group.instance.id
            + string(f"{group.name}-{number}")
            + string(f"/10.1.{number}.{choice.randrange(256)}")
            + struct.pack(">ii", 300_000, 45_000)
            + _sized(subscription)
            + _sized(assignment + struct.pack(">i", -1))
        )
    return middle + bytes(8) + struct.pack(">i", MEMBERS) + members, len(head), len(middle)
