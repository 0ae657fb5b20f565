"""Answers about groups: which there are, and what their members hold, as the coordinator of 4.4 says it.

Groups that are asked for twice are answered once, so that no answer is longer than what there is.

References: ``GroupMetadataManager.describeGroups``, ``consumerGroupDescribe``, ``ConsumerGroupMember``,
``ShareGroupMember``, ``StreamsGroupMember``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from offsets_log.protocol.error_codes import GROUP_ID_NOT_FOUND, INVALID_GROUP_ID, NO_ERROR
from offsets_log.protocol.streams_group_describe import FAILED, NOT_REQUESTED, NOT_STORED
from offsets_log.replay.group import CLASSIC, CONSUMER, SHARE, STREAMS, Group, Member
from offsets_log.rows.groups import DEFAULT_TASK_ASSIGNOR, TASK_KINDS, assignor_of, described_topology
from offsets_log.serving.asked import NOT_ASKED, Asked, Body
from offsets_log.serving.state import Served

DEAD = "Dead"
CONSUMER_MEMBER, CLASSIC_MEMBER = 1, 0


def list_groups(served: Served, body: Body, _: Asked) -> Body:
    """Answer ListGroups; states and types are compared in any case."""
    states, types = ({name.strip().lower() for name in body.get(f"{what}_filter", ())} for what in ("states", "types"))
    rows = [
        {
            "group_id": group.group_id,
            "protocol_type": _protocol_type(group),
            "group_state": group.state(served.profile),
            "group_type": group.kind,
        }
        for group in served.groups.values()
        if not types or group.kind in types
    ]
    found = [row for row in rows if not states or row["group_state"].lower() in states]
    return {"throttle_time_ms": 0, "error_code": NO_ERROR, "groups": found}


def _protocol_type(group: Group) -> str:
    return group.protocol_type or "" if group.kind == CLASSIC else group.kind


def describe_groups(served: Served, body: Body, asked: Asked) -> Body:
    """Answer DescribeGroups: classic groups; a group that there is not is dead, from version 6 on with an error."""
    found = [_classic(served, group_id, asked) for group_id in dict.fromkeys(body["groups"])]
    return {"throttle_time_ms": 0, "groups": found}


def _classic(served: Served, group_id: str, asked: Asked) -> Body:
    group = served.groups.get(group_id)
    row: Body = {
        "error_code": NO_ERROR,
        "error_message": None,
        "group_id": group_id,
        "group_state": DEAD,
        "protocol_type": "",
        "protocol_data": "",
        "members": [],
        "authorized_operations": NOT_ASKED,
    }
    if refusal := served.refusal(group_id):
        return row | refusal
    if group is None or group.kind != CLASSIC:
        return row | (_not_found(group, group_id, CLASSIC) if asked.version >= 6 else {})
    is_stable = bool(group.members)
    return row | {
        "group_state": group.state(served.profile),
        "protocol_type": group.protocol_type or "",
        "protocol_data": group.protocol or "" if is_stable else "",
        "members": [_classic_member(member, is_stable) for _, member in sorted(group.members.items())],
    }


def _classic_member(member: Member, is_stable: bool) -> Body:
    fields = member.metadata
    return {
        "member_id": member.member_id,
        "group_instance_id": fields.get("group_instance_id"),
        "client_id": fields.get("client_id") or "",
        "client_host": fields.get("client_host") or "",
        "member_metadata": (fields.get("subscription") or b"") if is_stable else b"",
        "member_assignment": (fields.get("assignment") or b"") if is_stable else b"",
    }


_KIND_NAMES = {CLASSIC: "classic", CONSUMER: "consumer", SHARE: "share", STREAMS: "streams"}


def _not_found(group: Group | None, group_id: str, kind: str) -> Body:
    named = f"Group {group_id} "
    message = f"{named}not found." if group is None else f"{named}is not a {_KIND_NAMES[kind]} group."
    return {"error_code": GROUP_ID_NOT_FOUND, "error_message": message}


def consumer_groups(served: Served, body: Body, _: Asked) -> Body:
    """Answer ConsumerGroupDescribe; of a group of another kind GROUP_ID_NOT_FOUND."""
    return _described(served, body, CONSUMER, _consumer_member, _of_consumers)


def share_groups(served: Served, body: Body, _: Asked) -> Body:
    """Answer ShareGroupDescribe."""
    return _described(served, body, SHARE, _share_member, _of_consumers)


def streams_groups(served: Served, body: Body, _: Asked) -> Body:
    """Answer StreamsGroupDescribe; the description of a topology is not in the log, and never told."""
    return _described(served, body, STREAMS, _streams_member, _of_streams)


MemberOf = Callable[[Served, Group, Member], Body]
OwnOf = Callable[[Served, Group, Body], Body]
"""What only groups of one kind have, by the request."""


def _described(served: Served, body: Body, kind: str, member_of: MemberOf, own_of: OwnOf) -> Body:
    rows = []
    for group_id in dict.fromkeys(body["group_ids"]):
        row, group = _not_described(group_id, kind), served.groups.get(group_id)
        if group is None or group.kind != kind:
            refusal = served.refusal(group_id) or _not_found(group, group_id, kind)
            rows.append(row | (refusal if group_id else {"error_code": INVALID_GROUP_ID}))
            continue
        members = [member_of(served, group, member) for _, member in sorted(group.members.items())]
        rows.append(row | _newer(served, group) | own_of(served, group, body) | {"members": members})
    return {"throttle_time_ms": 0, "groups": rows}


def _not_described(group_id: str, kind: str) -> Body:
    return {
        "error_code": NO_ERROR,
        "error_message": None,
        "group_id": group_id,
        "group_state": "",
        "group_epoch": 0,
        "assignment_epoch": 0,
        "assignor_name": None if kind == STREAMS else "",
        "topology": None,
        "members": [],
        "authorized_operations": NOT_ASKED,
        "topology_description": None,
        "topology_description_status": NOT_REQUESTED,
    }


def _newer(served: Served, group: Group) -> Body:
    return {
        "group_state": group.state(served.profile),
        "group_epoch": group.group_epoch,
        "assignment_epoch": group.assignment_epoch,
    }


def _of_consumers(_: Served, group: Group, __: Body) -> Body:
    return {"assignor_name": assignor_of(group) or ""}


def _of_streams(served: Served, group: Group, body: Body) -> Body:
    """Return topology and assignor, which is that of the next assignment (``K44-51``)."""
    is_asked = body.get("include_topology_description", False)
    return {
        "topology": None if group.topology is None else described_topology(group.topology),
        "topology_description_status": _description_status(served, group) if is_asked else NOT_REQUESTED,
        "assignor_name": served.group_configs.get(group.group_id, {}).get(ASSIGNOR_CONFIG, DEFAULT_TASK_ASSIGNOR),
    }


ASSIGNOR_CONFIG = "streams.assignor.name"


def _description_status(served: Served, group: Group) -> int:
    """Return what a broker says whose plugin does not answer (``K44-51``, ``attachTopologyDescriptions``)."""
    if not group.has_description:
        return NOT_STORED
    served.logs.tell(f"the description of the topology of {group.group_id!r} is kept by its brokers' plugin, not here")
    return FAILED


def _of_member(member: Member) -> Body:
    """Return what members of all newer kinds have."""
    fields = member.metadata
    return {
        "member_id": member.member_id,
        "instance_id": fields.get("instance_id"),
        "rack_id": fields.get("rack_id"),
        "member_epoch": member.member_epoch,
        "client_id": fields.get("client_id") or "",
        "client_host": fields.get("client_host") or "",
        "subscribed_topic_names": sorted(fields.get("subscribed_topic_names") or ()),
    }


def _consumer_member(served: Served, group: Group, member: Member) -> Body:
    row = _of_member(member)
    subscribed = row["subscribed_topic_names"]
    held = [{"topic_id": topic_id, "partitions": [partition]} for topic_id, partition in sorted(member.owned)]
    target = group.targets.get(member.member_id) or {}
    is_classic = member.metadata.get("classic_member_metadata") is not None
    return row | {
        "subscribed_topic_regex": member.metadata.get("subscribed_topic_regex"),
        "assignment": _assignment(served, held, subscribed),
        "target_assignment": _assignment(served, target.get("topic_partitions", ()), subscribed),
        "member_type": CLASSIC_MEMBER if is_classic else CONSUMER_MEMBER,
    }


def _share_member(served: Served, group: Group, member: Member) -> Body:
    row = _of_member(member)
    assigned = member.current.get("assigned_partitions", ())
    return row | {"assignment": _assignment(served, assigned, row["subscribed_topic_names"])}


def _assignment(served: Served, rows: Sequence[Mapping[str, Any]], subscribed: list[str]) -> Body:
    """Name the topics of an assignment; partitions of topics without a name are left out, as those of deleted ones."""
    resolved = served.names.resolve([dict(row) for row in rows], subscribed)
    ids = {served.names.names.get(bytes(row["topic_id"])): row["topic_id"] for row in rows}
    found: dict[str, list[int]] = {}
    for topic, partition in resolved.partitions:
        found.setdefault(topic, []).append(partition)
    return {
        "topic_partitions": [
            {"topic_id": ids.get(topic, ids.get(None)), "topic_name": topic, "partitions": partitions}
            for topic, partitions in found.items()
        ]
    }


def _streams_member(served: Served, group: Group, member: Member) -> Body:
    fields = member.metadata
    return _of_member(member) | {
        "topology_epoch": fields.get("topology_epoch") or 0,
        "process_id": fields.get("process_id") or "",
        "user_endpoint": fields.get("user_endpoint"),
        "client_tags": [dict(tag) for tag in fields.get("client_tags") or ()],
        "task_offsets": [],
        "task_end_offsets": [],
        "assignment": _tasks(member.current),
        "target_assignment": _tasks(group.targets.get(member.member_id) or {}),
        "is_classic": False,
    }


def _tasks(value: Mapping[str, Any]) -> Body:
    return {
        f"{kind}_tasks": [
            {"subtopology_id": row["subtopology_id"], "partitions": sorted(row["partitions"])}
            for row in sorted(value.get(f"{kind}_tasks") or (), key=lambda row: str(row["subtopology_id"]))
        ]
        for kind in TASK_KINDS
    }
