"""Records of consumer, share and streams groups, one round of a group each: made with the schema tables, patched later.

A group writes its epoch, what it assigned, and of three members what they are, shall get and have; one of the members
is replaced from time to time.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from offsets_log.log_format.primitives import Uuid
from offsets_log.messages.registry import RECORD_TYPES, CoordinatorRecord, encode_coordinator_record
from offsets_log.messages.schema import Message, Scalar, Struct

MEMBERS = 3
LIFE = "aaaaaaaa"
"""End of the id of a member that is replaced."""
MARKS = dict.fromkeys(("epoch", "assignment_epoch", "member_epoch"), 0x5A5A0001) | {"previous_member_epoch": 0x5A5A0002}
"""Stand for epochs in templates."""

TYPES = {
    "consumer": {"group": (3, 16, 6), "member": 5, "target": 7, "current": 8},
    "share": {"group": (11, 15, 12), "member": 10, "target": 13, "current": 14},
    "streams": {"group": (17, 23, 20), "member": 19, "target": 21, "current": 22},
}
KINDS = ("consumer", "consumer", "share", "streams")


@dataclass(frozen=True, slots=True)
class NewerRecord:
    """A template.

    Attributes:
        facts: places of the epochs in the value and of the life in the key, −1 for none; whether it ends a life.
    """

    key: bytes
    value: bytes | None
    facts: tuple[int, int, int, int]


def newer_records(group: str, topics: Sequence[str], partitions: int, number: int) -> Iterator[NewerRecord]:
    """One round of a group; its number tells its kind. Share groups commit no offsets, so they have other names."""
    kind = KINDS[number % len(KINDS)]
    types: dict[str, Any] = TYPES[kind]
    group += "-share" if kind == "share" else ""
    ids = [uuid.uuid5(uuid.NAMESPACE_DNS, topic).bytes for topic in topics]
    members = [f"{uuid.uuid5(uuid.NAMESPACE_DNS, f'{group}{i}')}" for i in range(MEMBERS)]
    members[-1] += LIFE
    for name in ("current", "target", "member"):
        yield _record(types[name], {"group_id": group, "member_id": members[-1]}, None, is_leaving=True)
    for record_type in types["group"]:
        more = {"regular_expression": "orders.*"} if record_type == 16 else {}
        yield _record(record_type, {"group_id": group} | more, _value(record_type, group, topics, ids, [], 0))
    for name in ("member", "target", "current"):
        for i, member_id in enumerate(members):
            key = {"group_id": group, "member_id": member_id}
            assigned = list(range(i, partitions, MEMBERS))
            yield _record(types[name], key, _value(types[name], group, topics, ids, assigned, i))


def _record(
    record_type: int, key: dict[str, Any], value: dict[str, Any] | None, *, is_leaving: bool = False
) -> NewerRecord:
    layout = next(RECORD_TYPES[record_type].layouts(0))
    version = None if value is None else 0
    raw_key, raw_value = encode_coordinator_record(
        CoordinatorRecord(record_type=record_type, key=key, value_version=version, value=value, layout=layout)
    )
    places = [(raw_value or b"").find(struct.pack(">i", MARKS[name])) for name in ("epoch", "previous_member_epoch")]
    life = len(raw_key) - len(LIFE) if raw_key.endswith(LIFE.encode()) else -1
    return NewerRecord(raw_key, raw_value, (places[0], places[1], life, int(is_leaving)))


def _value(
    record_type: int, group: str, topics: Sequence[str], ids: Sequence[bytes], assigned: list[int], member: int
) -> dict[str, Any]:
    """A value with what there is to say of the fields that it has."""
    layout: Message = next(RECORD_TYPES[record_type].layouts(0))
    facts: dict[str, Any] = MARKS | {
        "client_id": f"{group}-{member}",
        "client_host": f"/10.1.{member}.7",
        "subscribed_topic_names": list(topics),
        "rebalance_timeout_ms": 300_000,
        "server_assignor": "uniform",
        "metadata_hash": 0x1122334455667788,
        "assignment_timestamp": 1_790_000_000_000,
        "process_id": f"process-{member}",
        "user_endpoint": {"host": "10.1.0.1", "port": 8080},
        "topics": list(topics),
        "version": 7,
        "timestamp": 1_790_000_000_000,
    }
    partitions = [{"topic_id": Uuid(raw), "partitions": assigned, "assignment_epochs": []} for raw in ids]
    tasks = [{"subtopology_id": str(i), "partitions": assigned, "assignment_epochs": []} for i in range(2)]
    facts |= {"topic_partitions": partitions, "assigned_partitions": partitions, "active_tasks": tasks}
    facts["initialized_topics"] = [
        {"topic_id": Uuid(raw), "topic_name": name, "partitions": [0, 1]} for raw, name in zip(ids, topics, strict=True)
    ]
    if record_type == 23:
        facts["epoch"] = 1
        facts["subtopologies"] = [_subtopology(str(i), topics) for i in range(2)]
    full = layout.from_json({}, 0)
    zeros = layout.zeros(0)
    for row in layout.fields:
        if row.tag is None and not row.nullable:
            full[row.name] = zeros[row.name]
    return full | {row.name: facts[row.name] for row in layout.fields if row.name in facts}


def _subtopology(name: str, topics: Sequence[str]) -> dict[str, Any]:
    (array,) = (row.type for row in next(RECORD_TYPES[23].layouts(0)).fields if row.name == "subtopologies")
    element = array.element  # type: ignore[union-attr]
    assert isinstance(element, Struct)
    empty: dict[str, Any] = {row.name: "" if row.type == Scalar("string") else [] for row in element.fields}
    return empty | {"subtopology_id": name, "source_topics": list(topics)}
