"""Which versions of requests are served, and what the newest of them ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from offsets_log.kafka_releases import NEWEST, row_of
from offsets_log.protocol.api_names import NAMES
from offsets_log.protocol.registry import APIS
from offsets_log.serving.answers import NotServedError, respond, versions_of
from offsets_log.serving.log_reader import ServedLogs
from offsets_log.serving.state import Answered, Cluster, Served
from tests.serving.client import (
    ADDRESS,
    API_VERSIONS,
    CONSUMER_GROUPS,
    GROUP_ID_NOT_FOUND,
    INVALID_GROUP_ID,
    SHARE_GROUPS,
    SHARE_OFFSETS,
    STREAMS_GROUPS,
    Json,
    ask,
    frame_of,
    moments,
)

STORED, SILENT = "streams-desert", "streams-silent-desert"
DESCRIBE_CONFIGS = 32
NOBODY: Json = {"cluster_id": None, "node_id": -1}


@pytest.fixture
def served(recording: Callable[[str], Path]) -> Iterator[Served]:
    with moments(recording("kafka-4.4-modern-groups") / "log") as (asked, session):
        yield asked.load(session)


def changed(served: Served, **changes: Any) -> Served:
    """A state that was not asked yet."""
    return replace(served, answered=Answered(), **changes)


def described(served: Served, *groups: str, is_asked: bool = True, version: int | None = None) -> list[Json]:
    body = {"group_ids": list(groups), "include_topology_description": is_asked}
    rows: list[Json] = ask(served, STREAMS_GROUPS, body, version)["groups"]
    return rows


def test_a_topologys_description_is_told_to_be_out_of_reach_or_not_stored(served: Served) -> None:
    said: list[str] = []
    served = changed(served, logs=ServedLogs(tell=said.append))
    assert [row["topology_description_status"] for row in described(served, STORED, SILENT)] == [2, 1]
    assert [row["topology_description"] for row in described(served, STORED, SILENT)] == [None, None]
    assert said == [f"the description of the topology of '{STORED}' is kept by its brokers' plugin, not here"]
    assert [row["topology_description_status"] for row in described(served, STORED, is_asked=False)] == [0]
    group = served.groups[STORED]
    assert group.topology is not None
    for other in (replace(group, topology=group.topology | {"epoch": 7}), replace(group, topology=None)):
        rows = described(changed(served, groups={STORED: other}), STORED)
        assert [row["topology_description_status"] for row in rows] == [1]


def test_the_assignor_is_that_of_the_next_assignment(served: Served) -> None:
    configured = changed(served, group_configs={STORED: {"streams.assignor.name": "mine"}})
    assert [row["assignor_name"] for row in described(configured, STORED, SILENT, "none")] == ["mine", "sticky", None]
    assert "assignor_name" not in described(configured, STORED, version=0)[0]
    resource = {"resource_type": 32, "resource_name": STORED, "configuration_keys": None}
    (told,) = ask(configured, DESCRIBE_CONFIGS, {"resources": [resource]})["results"]
    assert [(row["name"], row["value"], row["config_source"]) for row in told["configs"]] == [
        ("streams.assignor.name", "mine", 8)
    ]
    (told,) = ask(configured, DESCRIBE_CONFIGS, {"resources": [resource | {"resource_name": "none"}]})["results"]
    assert (told["error_code"], told["configs"]) == (0, [])


@pytest.mark.parametrize("key", [CONSUMER_GROUPS, SHARE_GROUPS, STREAMS_GROUPS])
def test_a_group_without_a_name_is_refused(served: Served, key: int) -> None:
    rows = ask(served, key, {"group_ids": ["", "none"]})["groups"]
    assert [(row["group_id"], row["error_code"]) for row in rows] == [
        ("", INVALID_GROUP_ID),
        ("none", GROUP_ID_NOT_FOUND),
    ]


def test_partitions_of_share_groups_are_told_without_their_states(served: Served) -> None:
    (row,) = ask(served, SHARE_OFFSETS, {"groups": [{"group_id": "share-desert", "topics": None}]})["groups"]
    told = {topic["topic_name"]: topic["partitions"] for topic in row["topics"]}
    assert {topic: len(partitions) for topic, partitions in told.items()} == {"desert-in": 6, "desert-more": 9}
    assert {(one["start_offset"], one["lag"], one["error_code"]) for rows in told.values() for one in rows} == {
        (-1, -1, 0)
    }


@pytest.mark.parametrize(
    ("cluster_id", "node_id", "error"),
    [(None, -1, 0), ("mine", 4, 0), ("mine", 5, 129), ("other", 4, 129), (None, 5, 0)],
)
def test_a_client_that_means_another_broker_is_to_begin_anew(
    served: Served, cluster_id: str | None, node_id: int, error: int
) -> None:
    named = changed(served, cluster=Cluster(node_id=4, cluster_id="mine"))
    answer = ask(named, API_VERSIONS, {"cluster_id": cluster_id, "node_id": node_id})
    assert (answer["error_code"], not answer["api_keys"]) == (error, bool(error))


@pytest.mark.parametrize(("profile", "release"), [("modern", NEWEST.line), ("modern-3.7", (3, 7)), ("classic", (3, 9))])
def test_no_version_is_told_that_brokers_of_the_release_do_not_have(
    profile: str, release: tuple[int, int], recording: Callable[[str], Path]
) -> None:
    with moments(recording("kafka-1.1") / "log", profile=profile) as (asked, session):
        served = asked.load(session)
        told = {
            row["api_key"]: (row["min_version"], row["max_version"])
            for row in ask(served, API_VERSIONS, NOBODY)["api_keys"]
        }
        assert told == {key: (span[0], span[-1]) for key in told if (span := versions_of(key, release))}
        newest = row_of(release).apis
        assert all(last <= newest[APIS[key].name] for key, (_, last) in told.items())
        assert (STREAMS_GROUPS in told, CONSUMER_GROUPS in told) == (profile == "modern", True)
        if profile != "modern":
            words = "version 0 of StreamsGroupDescribe is not served, as brokers of 3.. do not know it"
            with pytest.raises(NotServedError, match=words):
                respond(served, frame_of(STREAMS_GROUPS, 0, {}), ADDRESS)


@pytest.mark.parametrize(
    ("key", "version", "name"),
    [
        (28, 6, "TxnOffsetCommit"),
        (42, 3, "DeleteGroups"),
        (88, 1, "StreamsGroupHeartbeat"),
        (93, 0, "StreamsGroupTopologyDescriptionUpdate"),
        (94, 0, "UnregisterController"),
        (len(NAMES), 0, f"API {len(NAMES)}"),
    ],
)
def test_what_writes_is_refused_by_its_name(served: Served, key: int, version: int, name: str) -> None:
    frame = key.to_bytes(2) + version.to_bytes(2) + frame_of(API_VERSIONS, 0, {})[4:]
    with pytest.raises(NotServedError, match=f"^{name} is not served: only what reads is$"):
        respond(served, frame, ADDRESS)
