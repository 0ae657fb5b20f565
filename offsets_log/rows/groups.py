"""Show groups and members as rows: the forms of the coordinators' own answers, for `rebuild`.

An assignment is a sorted list of ``[topic, partition]``; for a streams group, of ``[kind, subtopology, partition]``.
Columns that do not apply to a kind of group are null.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from offsets_log.errors import OffsetsLogError
from offsets_log.messages.consumer_protocol import decode_assignment, decode_subscription
from offsets_log.messages.embedded import expand_assignment, expand_subscription
from offsets_log.messages.schema import camel_case
from offsets_log.protocol.streams_group_describe import AVAILABLE, NOT_STORED
from offsets_log.replay.group import CLASSIC, CONSUMER, SHARE, STREAMS, Group, Member
from offsets_log.replay.profile import Profile
from offsets_log.replay.topic_names import TopicNames
from offsets_log.rows.missing_columns import without_missing_columns
from offsets_log.rows.tables import (
    GROUP_COLUMN,
    OFFSETS_PARTITION_COLUMN,
    Column,
    Row,
    to_base64,
)

DEFAULT_ASSIGNOR = {CONSUMER: "uniform", SHARE: "simple"}
"""Kind → the broker's default assignor, used where no member names one (``B-16``); it is not in the log."""

DEFAULT_TASK_ASSIGNOR = "sticky"
"""A streams group's, where neither its own configuration nor the broker's names one (``K44-51``)."""

TASK_KINDS = ("active", "standby", "warmup")

GROUP_COLUMNS = (
    GROUP_COLUMN,
    Column("type", "string", "classic, consumer, share or streams"),
    Column("state", "string", "state, as the coordinator names it after the load"),
    Column("protocol_type", "string", "consumer, connect ...; of other groups than classic ones their type"),
    Column("protocol", "string", "protocol that the members voted for, or the assignor that most of them chose"),
    Column("leader", "string", "member id of a classic group's leader"),
    Column("generation", "int", "generation of a classic group"),
    Column("group_epoch", "int", "group epoch of the others"),
    Column("assignment_epoch", "int", "group epoch for which the target assignment was made"),
    Column("current_state_timestamp_ms", "bigint", "when a classic group came into its state"),
    Column("topology_epoch", "int", "epoch of a streams group's topology"),
    OFFSETS_PARTITION_COLUMN,
)
"""In the document the members follow."""
MEMBERS_COUNT = Column("members", "int", "how many members it has")
"""Follows in rows of groups."""

_PLACES = "array<struct<topic:string,partition:int,kind:string,subtopology:string>>"
"""An assignment; topics are those of streams groups' subtopologies, which no member's record names, so null there."""

MEMBER_COLUMNS = (
    GROUP_COLUMN,
    Column("member_id", "string", "id of the member"),
    Column("group_instance_id", "string", "group.instance.id of a static member; null for others"),
    Column("client_id", "string", "client.id"),
    Column("host", "string", "address of the client, as stored"),
    Column("rack_id", "string", "client.rack; null if it has none"),
    Column("member_epoch", "int", "epoch of a member of other groups than classic ones"),
    Column("session_timeout_ms", "int", "session timeout of a classic member"),
    Column("rebalance_timeout_ms", "int", "rebalance timeout"),
    Column("subscribed_topics", "array<string>", "names of topics"),
    Column("subscribed_regex", "string", "pattern of topics, for the broker"),
    Column(
        "assignment",
        _PLACES,
        "each partition; of a streams group each task. JSON and CSV have [topic, partition], and [kind, subtopology, "
        "partition]",
    ),
    Column("target_assignment", _PLACES, "what the coordinator wants the member to have, in the same form"),
    Column(
        "unresolved",
        "array<struct<topic_id:string,partition:int>>",
        "partitions of topics whose id has no known name; JSON and CSV have [topic id, partition]",
    ),
)
MEMBER_KIND_COLUMNS = (
    Column("subscription_base64", "string", "the subscription of a classic member, as stored"),
    Column("assignment_base64", "string", "the assignment of a classic member, as stored"),
    Column(
        "member_type", "int", "of a consumer group: 0 for a member that speaks the classic protocol, 1 for all others"
    ),
    Column("inferred", "array<string>", "those of the topics' names that nothing but elimination tells"),
    Column("topology_epoch", "int", "epoch of the topology that a streams member knows"),
    Column("process_id", "string", "process of a streams member"),
)
"""Columns that only members of some kinds of groups have; null for others."""
EXPANDED_COLUMNS = (
    Column("subscription", "json", "what else the subscription of a classic member contains"),
    Column("expanded_assignment", "json", "what else its assignment contains"),
)
"""Columns that follow where these are asked for."""


def group_row(
    group: Group,
    profile: Profile,
    names: TopicNames,
    offsets_partition: int | None,
    missing_columns: frozenset[str] = frozenset(),
    *,
    expand: bool = False,
) -> Row:
    """Return the row of a group with its members.

    Args:
        missing_columns: columns that the log's source does not have.
        expand: show also what else classic members' bytes contain besides assignments (Connect, Streams …).
    """
    is_classic = group.kind == CLASSIC
    row = {
        "group": group.group_id,
        "type": group.kind,
        "state": group.state(profile),
        "protocol_type": (group.protocol_type or None) if is_classic else group.kind,
        "protocol": _protocol(group) if is_classic else assignor_of(group),
        "leader": group.leader,
        "generation": group.generation if is_classic else None,
        "group_epoch": None if is_classic else group.group_epoch,
        "assignment_epoch": None if is_classic else group.assignment_epoch,
        "current_state_timestamp_ms": group.current_state_timestamp_ms,
        "topology_epoch": group.topology["epoch"] if group.topology else None,
        "topology": _in_camel_case(described_topology(group.topology)) if group.topology else None,
        **dict.fromkeys(STREAMS_NAMES),
        **(_of_streams(group) if group.kind == STREAMS else {}),
        "offsets_partition": offsets_partition,
        "members": [
            without_missing_columns(
                _classic_member(group, member, profile, expand=expand)
                if is_classic
                else _newer_member(group, member, names),
                missing_columns,
            )
            for _, member in sorted(group.members.items())
        ],
    }
    return without_missing_columns(row, missing_columns)


STREAMS_NAMES = (
    "assignor", "topology_description_status", "stored_description_topology_epoch",
    "failed_description_topology_epoch",
)  # fmt: skip


def _of_streams(group: Group) -> Row:
    """Return what only streams groups have, by `STREAMS_NAMES`."""
    return {
        "assignor": DEFAULT_TASK_ASSIGNOR,
        "topology_description_status": AVAILABLE if group.has_description else NOT_STORED,
        "stored_description_topology_epoch": group.stored_description_topology_epoch,
        "failed_description_topology_epoch": group.failed_description_topology_epoch,
    }


def members_count(row: Row) -> int | None:
    """Return how many members a row of `group_row` has; None if its source does not have them."""
    return None if row["members"] is None else len(row["members"])


def nested_member(row: Row) -> Row:
    """Return a member's row with structures in place of the lists ``[topic, partition]`` and their like."""
    named = {
        name: None if row[name] is None else [dict(zip(_FIELDS[name, len(one)], one, strict=True)) for one in row[name]]
        for name in ("assignment", "target_assignment", "unresolved")
    }
    return row | named


_OF_TOPICS, _OF_TASKS = ("topic", "partition"), ("kind", "subtopology", "partition")
_FIELDS = {
    ("assignment", 2): _OF_TOPICS,
    ("assignment", 3): _OF_TASKS,
    ("target_assignment", 2): _OF_TOPICS,
    ("target_assignment", 3): _OF_TASKS,
    ("unresolved", 2): ("topic_id", "partition"),
}
"""Column and length of a list → what its parts are."""


def _protocol(group: Group) -> str | None:
    """Return the protocol of a classic group with members; DescribeGroups names it only for a Stable one."""
    return group.protocol or None if group.members else None


def assignor_of(group: Group) -> str | None:
    """Return the assignor that most members of a newer group chose; the first by name of several (``B-16``)."""
    chosen = [member.metadata.get("server_assignor") for member in group.members.values()]
    named = sorted({name for name in chosen if name}, key=lambda name: (-chosen.count(name), name))
    return named[0] if named else DEFAULT_ASSIGNOR.get(group.kind)


def described_topology(topology: Mapping[str, Any]) -> Row:
    """Return a topology as in StreamsGroupDescribe: lists in the order of names, partition counts as stored."""
    return {
        "epoch": topology["epoch"],
        "subtopologies": [
            {
                "subtopology_id": row["subtopology_id"],
                "source_topics": sorted(row["source_topics"]),
                "repartition_sink_topics": sorted(row["repartition_sink_topics"]),
                "state_changelog_topics": _internal_topics(row["state_changelog_topics"]),
                "repartition_source_topics": _internal_topics(row["repartition_source_topics"]),
            }
            for row in sorted(topology["subtopologies"], key=lambda row: str(row["subtopology_id"]))
        ],
    }


def _internal_topics(rows: Iterable[Mapping[str, Any]]) -> list[Row]:
    return [
        {
            "name": row["name"],
            "partitions": row["partitions"],
            "replication_factor": row["replication_factor"],
            "topic_configs": [{"key": config["key"], "value": config["value"]} for config in row["topic_configs"]],
        }
        for row in sorted(rows, key=lambda row: str(row["name"]))
    ]


def _in_camel_case(answer: Any) -> Any:
    """Return an answer with the names of fields as Kafka's JSON has them."""
    match answer:
        case dict():
            return {camel_case(name): _in_camel_case(value) for name, value in answer.items()}
        case list():
            return [*map(_in_camel_case, answer)]
    return answer


# --------------------------------------------------------------------------------------------- members


def _member(member: Member, **facts: Any) -> Row:
    """Return a member's row with every column, null where ``facts`` does not give a value."""
    row: Row = {
        "member_id": member.member_id,
        "group_instance_id": member.group_instance_id,
        "client_id": member.metadata.get("client_id", ""),
        "host": member.metadata.get("client_host", ""),
        "rack_id": member.metadata.get("rack_id"),
        "member_epoch": None,
        "session_timeout_ms": None,
        "rebalance_timeout_ms": member.metadata.get("rebalance_timeout_ms"),
        "subscribed_topics": None,
        "subscribed_regex": None,
        "assignment": [],
        "target_assignment": None,
        "unresolved": [],
    }
    return row | facts


def _classic_member(group: Group, member: Member, profile: Profile, *, expand: bool) -> Row:
    metadata = member.metadata
    rebalance_timeout = metadata.get("rebalance_timeout")
    if rebalance_timeout is None or (rebalance_timeout == -1 and profile.negative_rebalance_timeout_is_session):
        rebalance_timeout = metadata["session_timeout"]  # L-27
    row = _member(
        member,
        session_timeout_ms=metadata["session_timeout"],
        rebalance_timeout_ms=rebalance_timeout,
        subscription_base64=to_base64(metadata["subscription"]),
        assignment_base64=to_base64(metadata["assignment"]),
    )
    if group.protocol_type == "consumer":
        row |= _consumer_protocol_columns(metadata)
    if expand:
        row["subscription"] = expand_subscription(group.protocol_type, group.protocol, metadata["subscription"])
        row["expanded_assignment"] = expand_assignment(group.protocol_type, group.protocol, metadata["assignment"])
    return row


def _consumer_protocol_columns(metadata: dict[str, Any]) -> Row:
    """Return columns from the consumer protocol's bytes; bytes that do not parse give none (``records:E1``, ``E2``)."""
    columns: Row = {}
    try:
        subscription = decode_subscription(metadata["subscription"]).fields
        columns |= {"subscribed_topics": subscription["topics"], "rack_id": subscription.get("rack_id")}
    except OffsetsLogError:
        pass
    try:
        rows = decode_assignment(metadata["assignment"]).fields["assigned_partitions"]
        columns["assignment"] = sorted([row["topic"], partition] for row in rows for partition in row["partitions"])
    except OffsetsLogError:
        pass
    return columns


def _newer_member(group: Group, member: Member, names: TopicNames) -> Row:
    metadata, target = member.metadata, group.targets.get(member.member_id)
    row = _member(member, member_epoch=member.member_epoch)
    if group.kind == STREAMS:
        return row | {
            "topology_epoch": metadata.get("topology_epoch"),
            "process_id": metadata.get("process_id"),
            "assignment": _tasks(member.current),
            "target_assignment": _tasks(target or {}),
        }
    subscribed = sorted(metadata.get("subscribed_topic_names", []))
    current = names.resolve(member.current.get("assigned_partitions", []), subscribed)
    wanted = names.resolve((target or {}).get("topic_partitions", []), subscribed)
    row |= {
        "subscribed_topics": subscribed,
        "assignment": [list(pair) for pair in current.partitions],
        "target_assignment": [list(pair) for pair in wanted.partitions],
        "unresolved": [list(pair) for pair in sorted({*current.unresolved, *wanted.unresolved})],
    }
    if inferred := sorted({*current.inferred, *wanted.inferred}):
        row["inferred"] = inferred
    if group.kind == CONSUMER:
        classic = metadata.get("classic_member_metadata")
        row |= {
            "subscribed_regex": metadata.get("subscribed_topic_regex"),
            "member_type": 0 if classic is not None else 1,
            "session_timeout_ms": classic["session_timeout_ms"] if classic is not None else None,
        }
    return row


def _tasks(value: dict[str, Any]) -> list[list[Any]]:
    return sorted(
        [kind, row["subtopology_id"], partition]
        for kind in TASK_KINDS
        for row in value.get(f"{kind}_tasks", ())
        for partition in row["partitions"]
    )
