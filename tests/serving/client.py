"""A client in the tests' own words: requests as frames, and what all of them together tell, in a recording's form."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from kio.index import UnknownEntity, api_key_map, load_entity_schema
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType

from offsets_log.log_format.primitives import Uuid
from offsets_log.messages.consumer_protocol import decode_assignment
from offsets_log.protocol.api import SIZE_BYTES, Header
from offsets_log.protocol.registry import APIS
from offsets_log.protocol.streams_group_describe import AVAILABLE, FAILED
from offsets_log.replay.profile import PROFILES
from offsets_log.serving.answers import respond, versions_of
from offsets_log.serving.state import Served
from offsets_log.session.moments import Moments
from offsets_log.session.session import Session
from offsets_log_cli.options import ReadOptions
from offsets_log_cli.session import open_session

Json = dict[str, Any]
ADDRESS = ("127.0.0.1", 9092)
CORRELATION = 77

LIST_OFFSETS, METADATA, OFFSET_FETCH, FIND_COORDINATOR, DESCRIBE_GROUPS, LIST_GROUPS = 2, 3, 9, 10, 15, 16
API_VERSIONS, CONSUMER_GROUPS, DESCRIBE_TOPICS, SHARE_GROUPS, STREAMS_GROUPS, SHARE_OFFSETS = 18, 69, 75, 77, 89, 90
DESCRIBING = {"classic": DESCRIBE_GROUPS, "consumer": CONSUMER_GROUPS, "share": SHARE_GROUPS, "streams": STREAMS_GROUPS}
INVALID_GROUP_ID, GROUP_ID_NOT_FOUND, UNSTABLE = 24, 69, 88
WITH_NOT_FOUND = 6
"""The first version of DescribeGroups with an error for groups that are not there."""


@contextmanager
def moments(
    *paths: Path | str, profile: str = "modern", topics: Json | None = None, ends: str = "data-dir"
) -> Iterator[tuple[Moments, Session]]:
    """Open a copy as ``serve`` does."""
    names = {bytes(Uuid.from_text(topic["id"])): name for name, topic in (topics or {}).items() if "id" in topic}
    reading = ReadOptions(paths=tuple(map(str, paths)), quiet=True)
    with pytest.raises(SystemExit), open_session(reading) as session:
        yield Moments(session, PROFILES[profile], names, ends), session


def frame_of(key: int, version: int, body: Json, correlation: int = CORRELATION) -> bytes:
    """A request without its size; what the body leaves out is zero or empty."""
    zeros = APIS[key].request.zeros(version)
    return APIS[key].encode_request(Header(key, version, correlation, "test"), zeros | body)[SIZE_BYTES:]


def ask(served: Served, key: int, body: Json, version: int | None = None) -> Json:
    """The body of the answer in the newest version, or another."""
    asked = versions_of(key, served.profile.release)[-1] if version is None else version
    answered = respond(served, frame_of(key, asked, body), ADDRESS)
    assert int.from_bytes(answered[:SIZE_BYTES]) == len(answered) - SIZE_BYTES
    correlation, answer = APIS[key].decode_response(asked, answered[SIZE_BYTES:])
    assert correlation == CORRELATION
    require_same_bytes(key, asked, answered[SIZE_BYTES:])
    return answer


def require_same_bytes(key: int, version: int, frame: bytes) -> None:
    """Kafka's own description of the response reads the frame, and writes it again, if kio has that version."""
    try:
        schema = load_entity_schema(api_key_map[key], version, EntityType.response)
    except UnknownEntity:
        return
    header, at = entity_reader(schema.__header_schema__)(frame, 0)
    found, size = entity_reader(schema)(frame, at)
    assert at + size == len(frame)
    out = io.BytesIO()
    entity_writer(schema.__header_schema__)(out, header)
    entity_writer(schema)(out, found)
    assert out.getvalue() == frame


def offsets_of(served: Served, group: str, topics: list[Json] | None = None, stable: bool = False) -> list[Json]:
    """Rows of OffsetFetch of one group: all, or of topics."""
    asked = {"group_id": group, "member_id": None, "member_epoch": -1, "topics": topics}
    (row,) = ask(served, OFFSET_FETCH, {"groups": [asked], "require_stable": stable})["groups"]
    assert row["error_code"] == 0
    return [{"topic": topic["name"]} | partition for topic in row["topics"] for partition in topic["partitions"]]


def told(served: Served) -> Json:
    """All groups and offsets, in the form of a recording's answers."""
    listed = ask(served, LIST_GROUPS, {})["groups"]
    return {
        "groups": [_group(served, row) for row in listed],
        "offsets": [
            {
                "group": row["group_id"],
                "topic": offset["topic"],
                "partition": offset["partition_index"],
                "committed_offset": offset["committed_offset"],
                "leader_epoch": None if offset["committed_leader_epoch"] == -1 else offset["committed_leader_epoch"],
                "metadata": offset["metadata"],
            }
            for row in listed
            for offset in offsets_of(served, row["group_id"])
        ],
    }


def _group(served: Served, listed: Json) -> Json:
    kind = listed["group_type"] if "group_type" in listed else _kind_of(served, listed["group_id"])
    named = {"groups" if kind == "classic" else "group_ids": [listed["group_id"]], "include_topology_description": True}
    (row,) = ask(served, DESCRIBING[kind], named)["groups"]
    assert row["error_code"] == 0
    assert row["group_state"] == listed["group_state"]
    for other, key in DESCRIBING.items():
        if other != kind and versions_of(key, served.profile.release):
            (wrong,) = ask(served, key, {"groups" if other == "classic" else "group_ids": [listed["group_id"]]})[
                "groups"
            ]
            is_dead = other == "classic" and WITH_NOT_FOUND not in versions_of(key, served.profile.release)
            has_no_name = not listed["group_id"] and other != "classic"
            expected = 0 if is_dead else INVALID_GROUP_ID if has_no_name else GROUP_ID_NOT_FOUND
            assert (wrong["error_code"], is_dead and wrong["group_state"]) == (expected, is_dead and "Dead")
    told = row.get("topology_description_status")
    return {
        "group": row["group_id"],
        "type": kind,
        "state": row["group_state"],
        "protocol_type": listed["protocol_type"],
        "protocol": None if kind == "streams" else row.get("protocol_data", row.get("assignor_name")),
        "assignor": row["assignor_name"] if kind == "streams" else None,
        "topology_description_status": AVAILABLE if told == FAILED else told,  # there was a plugin that has it
        "group_epoch": row.get("group_epoch"),
        "assignment_epoch": row.get("assignment_epoch"),
        "topology_epoch": (row.get("topology") or {}).get("epoch"),
        "topology": _topology(row.get("topology")),
        "members": [_MEMBERS[kind](member) for member in row["members"]],
    }


def _kind_of(served: Served, group_id: str) -> str:
    """What a client takes a group for where ListGroups does not tell: of 3.7, which had two kinds."""
    (row,) = ask(served, CONSUMER_GROUPS, {"group_ids": [group_id]})["groups"]
    return "classic" if row["error_code"] else "consumer"


def _topology(topology: Json | None) -> Json | None:
    return (
        None
        if topology is None
        else {
            "epoch": topology["epoch"],
            "subtopologies": [
                {
                    "subtopologyId": row["subtopology_id"],
                    "sourceTopics": row["source_topics"],
                    "repartitionSinkTopics": row["repartition_sink_topics"],
                    "stateChangelogTopics": _topics(row["state_changelog_topics"]),
                    "repartitionSourceTopics": _topics(row["repartition_source_topics"]),
                }
                for row in topology["subtopologies"]
            ],
        }
    )


def _topics(rows: list[Json]) -> list[Json]:
    names = {"name": "name", "partitions": "partitions", "replication_factor": "replicationFactor"}
    return [
        {theirs: row[ours] for ours, theirs in names.items()}
        | {"topicConfigs": [dict(config) for config in row["topic_configs"]]}
        for row in rows
    ]


def _member(row: Json) -> Json:
    return {"member_id": row["member_id"], "client_id": row["client_id"], "host": row["client_host"]}


def _classic(row: Json) -> Json:
    try:
        assigned = decode_assignment(row["member_assignment"]).fields["assigned_partitions"]
    except Exception:  # noqa: BLE001 - of another protocol
        assigned = []
    return _member(row) | {
        "group_instance_id": row["group_instance_id"],
        "assignment": sorted([topic["topic"], number] for topic in assigned for number in topic["partitions"]),
        "subscription_base64": base64.b64encode(row["member_metadata"]).decode(),
        "assignment_base64": base64.b64encode(row["member_assignment"]).decode(),
    }


def _pairs(assignment: Json) -> list[list[Any]]:
    rows = assignment["topic_partitions"]
    return sorted([row["topic_name"], partition] for row in rows for partition in row["partitions"])


def _newer(row: Json) -> Json:
    return _member(row) | {
        "group_instance_id": row.get("instance_id"),
        "rack_id": row["rack_id"],
        "member_epoch": row["member_epoch"],
        "member_type": row.get("member_type"),
        "subscribed_topics": row["subscribed_topic_names"],
        "subscribed_regex": row.get("subscribed_topic_regex"),
        "assignment": _pairs(row["assignment"]),
        "target_assignment": _pairs(row["target_assignment"]) if "target_assignment" in row else None,
    }


def _tasks(assignment: Json) -> list[list[Any]]:
    return sorted(
        [kind, row["subtopology_id"], partition]
        for kind in ("active", "standby", "warmup")
        for row in assignment[f"{kind}_tasks"]
        for partition in row["partitions"]
    )


def _streams(row: Json) -> Json:
    return _member(row) | {
        "group_instance_id": row["instance_id"],
        "rack_id": row["rack_id"],
        "member_epoch": row["member_epoch"],
        "topology_epoch": row["topology_epoch"],
        "process_id": row["process_id"],
        "assignment": _tasks(row["assignment"]),
        "target_assignment": _tasks(row["target_assignment"]),
    }


_MEMBERS = {"classic": _classic, "consumer": _newer, "share": _newer, "streams": _streams}
