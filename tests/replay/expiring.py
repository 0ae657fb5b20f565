"""What tests of expiry share: groups and commits, and what a cycle does with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from offsets_log.messages.consumer_protocol import CONSUMER_PROTOCOL_SUBSCRIPTION, Embedded, encode_embedded
from offsets_log.messages.registry import CoordinatorRecord
from offsets_log.replay.coordinator_state import CoordinatorState, finish
from offsets_log.replay.expiry import (
    ERAS,
    GroupExpiry,
    OffsetExpiry,
    Retention,
    cycle_of,
)
from offsets_log.replay.partial import PartialState, offset_and_metadata
from offsets_log.replay.profile import PROFILES

Json = dict[str, Any]

DAY_MS = 86_400_000


def expiry_of(state: CoordinatorState, now_ms: int, retention: Retention) -> list[OffsetExpiry]:
    """Return what a cycle does with every committed offset of every existing group, by group, topic and partition."""
    return [offset for group in cycle_of(state, now_ms, retention) for offset in group.offsets]


Step = Callable[[PartialState], None]


def at(*steps: Step, era: str = "modern") -> CoordinatorState:
    state = PartialState(PROFILES[ERAS[era].profile])
    for step in steps:
        step(state)
    return finish(state)


def commit(
    topic: str = "t",
    partition: int = 0,
    *,
    group: str = "g",
    at_ms: int = 1000,
    expire_ms: int = -1,
    record_offset: int = 10,
    producer_id: int = -1,
) -> Step:
    record = CoordinatorRecord(
        record_type=1,
        key={"group": group, "topic": topic, "partition": partition},
        value_version=1,
        value={"offset": 7, "metadata": "", "commit_timestamp": at_ms, "expire_timestamp": expire_ms},
    )
    value = offset_and_metadata(record, record_offset, producer_id, 0)
    return lambda state: state.add_offset(value, producer_id != -1)


def record(record_type: int, value: Json | None, *, group: str = "g", record_offset: int = 1, **key: str) -> Step:
    name = "group" if record_type == 2 else "group_id"
    made = CoordinatorRecord(
        record_type=record_type, key={name: group, **key}, value=value, value_version=None if value is None else 0
    )
    return lambda state: state.add_group_record(made, record_offset)


def subscription(*topics: str, version: int = 0, behind: bytes = b"") -> bytes:
    fields = {"topics": list(topics), "user_data": None}
    body = encode_embedded(Embedded(CONSUMER_PROTOCOL_SUBSCRIPTION, 0, fields))
    return version.to_bytes(2) + body[2:] + behind


def classic_group(
    *subscriptions: bytes,
    protocol_type: str = "consumer",
    protocol: str | None = "range",
    generation: int = 1,
    since_ms: int = -1,
    record_offset: int = 1,
) -> Step:
    members = [
        {"member_id": f"m{i}", "session_timeout": 1, "subscription": data, "assignment": b""}
        for i, data in enumerate(subscriptions)
    ]
    value = {
        "protocol_type": protocol_type,
        "generation": generation,
        "protocol": protocol if members else None,
        "leader": None,
        "current_state_timestamp": since_ms,
        "members": members,
    }
    return record(2, value, record_offset=record_offset)


def only(state: CoordinatorState, now_ms: int = 0, era: str = "modern", keep_ms: int = 100) -> OffsetExpiry:
    (found,) = expiry_of(state, now_ms, ERAS[era].retention(keep_ms))
    return found


def group_of(state: CoordinatorState, now_ms: int = 0, era: str = "modern", keep_ms: int = 100) -> GroupExpiry:
    (found,) = cycle_of(state, now_ms, ERAS[era].retention(keep_ms))
    return found


SCALA_BY_STATE = ("2.1", "2.4", "classic")
JAVA = ("modern-3.7", "3.8-java", "4.0.1", "modern")
BY_STATE = (*SCALA_BY_STATE, *JAVA)


def consumer_group(*topics: str, regex_topics: tuple[str, ...] = (), is_empty: bool = False) -> tuple[Step, ...]:
    steps = [record(3, {"epoch": 2})]
    if not is_empty:
        steps.append(
            record(5, {"subscribed_topic_names": list(topics), "subscribed_topic_regex": "u.*"}, member_id="m")
        )
    if regex_topics:
        steps.append(record(16, {"topics": list(regex_topics), "version": 1, "timestamp": 1}, regular_expression="u.*"))
    return tuple(steps)


def topology(*sources: str, repartition: tuple[str, ...] = ()) -> Step:
    row = {"source_topics": list(sources), "repartition_source_topics": [{"name": name} for name in repartition]}
    return record(23, {"epoch": 1, "subtopologies": [row]})
