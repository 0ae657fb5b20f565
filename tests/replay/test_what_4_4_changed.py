"""What Kafka 4.4 writes and loads in another way than 4.3, by made logs and its recordings."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from offsets_log.events import Event
from offsets_log.log_format.primitives import ZERO_UUID, build
from offsets_log.messages.internal_topics import TRANSACTION_STATE
from offsets_log.messages.registry import decode_coordinator_record, encode_coordinator_record
from offsets_log.messages.state_topics import STATE_RECORD_TYPES, decode_state_record
from offsets_log.messages.transaction_log import TRANSACTION_STATES
from offsets_log.pipeline import iter_events
from offsets_log.replay.profile import MODERN
from offsets_log.replay.releases import release_named
from offsets_log.replay.topic_names import TopicNames
from offsets_log.rows.dump_log import record_line
from offsets_log.rows.groups import group_row
from tests.builders import LogBuilder, record_bytes
from tests.conftest import read_partitions

Recordings = Callable[[str], Path]

MEMBER = {
    "instance_id": None, "rack_id": None, "client_id": "c", "client_host": "/h", "topology_epoch": 0,
    "process_id": "p", "user_endpoint": None, "client_tags": [],
}  # fmt: skip
TASKS: dict[str, Any] = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}


def streams_group(topology_epoch: int = 0) -> LogBuilder:
    """A streams group with one member, and no record of its own."""
    return (
        LogBuilder()
        .newer(19, MEMBER, member_id="m")
        .newer(23, {"epoch": topology_epoch, "subtopologies": []})
        .newer(20, {"assignment_epoch": 1})
        .newer(21, TASKS, member_id="m")
    )


def metadata(**epochs: int) -> dict[str, Any]:
    return {"epoch": 1, "metadata_hash": 0, "last_assignment_configs": [], **epochs}


@pytest.mark.parametrize(
    ("release", "state"), [("4.3.0", "Reconciling"), ("4.3.1", "Reconciling"), ("4.4.0", "NotReady")]
)
def test_no_topology_is_validated_before_a_record_says_so(release: str, state: str) -> None:
    """Up to 4.3 the epoch 0 counts as validated (``K44-11``)."""
    profile = release_named(release).profile
    assert streams_group().load(profile).groups["g"].state(profile) == state
    validated = streams_group().newer(17, metadata(validated_topology_epoch=0)).load(profile).groups["g"]
    assert validated.state(profile) == "Reconciling"
    assert streams_group(topology_epoch=1).load(profile).groups["g"].state(profile) == "NotReady"


def test_two_epochs_are_new_in_the_record_of_a_streams_group() -> None:
    """Tags 2 and 3, whose defaults are not written (``K44-1``)."""
    value = metadata(validated_topology_epoch=0, stored_description_topology_epoch=7)
    key, raw = record_bytes(17, {"group_id": "g"}, value, 0)
    assert raw is not None
    assert raw.endswith(b"\2\0\4\0\0\0\0\2\4\0\0\0\7")
    record = decode_coordinator_record(key, raw)
    assert record.value is not None
    assert (record.value["failed_description_topology_epoch"], record.unknown_tags()) == (-1, [])
    assert encode_coordinator_record(record) == (key, raw)


@pytest.mark.parametrize(
    ("epochs", "status"),
    [({}, 1), ({"stored": -2}, 1), ({"stored": -2, "failed": 0}, 1), ({"stored": 0}, 3), ({"stored": 1}, 1)],
)
def test_a_description_is_there_if_it_is_the_topologys(epochs: dict[str, int], status: int) -> None:
    """−2 is written before a push, so that a crash is noticed (``K44-2``, ``K44-51``)."""
    value = metadata(**{f"{name}_description_topology_epoch": epoch for name, epoch in epochs.items()})
    group = streams_group().newer(17, value).load(MODERN).groups["g"]
    row = group_row(group, MODERN, TopicNames({}), 0)
    assert (row["assignor"], row["topology_description_status"]) == ("sticky", status)
    assert row["stored_description_topology_epoch"] == epochs.get("stored", -1)
    assert row["failed_description_topology_epoch"] == epochs.get("failed", -1)
    later = streams_group().newer(17, value).newer(17, metadata()).load(MODERN).groups["g"]
    assert later.stored_description_topology_epoch == -1, "a later record without the tag has none"


def commits_of_transactions(folder: Path) -> list[bytes]:
    """The topic ids of all commits in transactions."""
    return [
        event.decoded.value["topic_id"]
        for log in read_partitions(folder / "log").values()
        for event in iter_events(log)
        if isinstance(event, Event) and event.decoded is not None and event.decoded.is_offset_commit
        if event.batch.is_transactional and event.decoded.value is not None and event.decoded.value_version == 4
    ]


@pytest.mark.parametrize(("name", "has_ids"), [("kafka-4.3-mixed", False), ("kafka-4.4-mixed", True)])
def test_commits_of_transactions_have_the_topics_id(name: str, has_ids: bool, recording: Recordings) -> None:
    """``K44-5``."""
    ids = commits_of_transactions(recording(name))
    assert len(ids) > 30
    assert {topic_id != ZERO_UUID for topic_id in ids} == {has_ids}


def test_streams_groups_have_static_members(recording: Recordings) -> None:
    """``K44-7``: one that is away for a while stays, at epoch −2, until it is back under another id."""
    fixed: list[tuple[str, int]] = []
    for log in read_partitions(recording("kafka-4.4-modern-groups") / "log").values():
        for event in iter_events(log):
            decoded = event.decoded if isinstance(event, Event) else None
            if decoded is not None and decoded.record_type == 22 and decoded.value is not None:
                fixed.append((decoded.key["member_id"], decoded.value["member_epoch"]))
    away = [member_id for member_id, epoch in fixed if epoch == -2]
    assert away
    assert all((member_id, 0) not in fixed[fixed.index((member_id, -2)) :] for member_id in away)


@pytest.mark.parametrize("status", [*TRANSACTION_STATES, 99])
def test_lines_of_the_transaction_log_name_the_status(status: int) -> None:
    """``K44-54``; a number that is no status stays one."""
    (row,) = STATE_RECORD_TYPES[TRANSACTION_STATE].values()
    (table,) = row.values
    value = b"\0\1" + build(table.struct(1), table.zeros(1) | {"transaction_status": status}, "value")
    key = b"\0\0\0\1x"
    built = LogBuilder().add((key, value))
    event = next(event for event in iter_events(built.log) if isinstance(event, Event))
    line = record_line(replace(event, decoded=None, state=decode_state_record(TRANSACTION_STATE, key, value)))
    payload = json.loads(line.partition(" payload: ")[2])
    assert payload["data"]["transactionStatus"] == TRANSACTION_STATES.get(status, status)
