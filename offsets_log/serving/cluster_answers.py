"""Answers about the cluster: one broker that leads every partition and coordinates every group.

A topic that offsets were committed in is answered even if it was deleted: tools that describe a group ask about all of
its topics and fail at the first that is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from offsets_log.errors import OffsetsLogError
from offsets_log.log_format.primitives import ZERO_UUID, Uuid
from offsets_log.protocol.describe_configs import GROUP as GROUP_CONFIG
from offsets_log.protocol.describe_configs import TOPIC
from offsets_log.protocol.error_codes import (
    INVALID_REQUEST,
    LEADER_NOT_AVAILABLE,
    NO_ERROR,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from offsets_log.protocol.find_coordinator import GROUP
from offsets_log.serving.asked import NOT_ASKED, Asked, Body
from offsets_log.serving.state import Served, Topic

LEADER_EPOCH = 0
NO_LEADER = -1
MOST_PARTITIONS = 2000
"""How many partitions an answer to DescribeTopicPartitions has at most, as in a broker's default configuration."""
BROKERS = 1
"""Endpoint type of DescribeCluster."""
SOURCES, OF_STRING = {TOPIC: 1, GROUP_CONFIG: 8}, 2
"""Type of a resource → source of configurations that were set for one; their type."""


def _broker(served: Served, asked: Asked, id_name: str = "node_id") -> Body:
    return {id_name: served.cluster.node_id, "host": asked.host, "port": asked.port, "rack": None, "is_fenced": False}


def metadata(served: Served, body: Body, asked: Asked) -> Body:
    """Answer Metadata: null stands for all topics; in version 0 none does, too."""
    topics = body["topics"]
    is_all = topics is None or (asked.version == 0 and not topics)
    found = [_topic(served, topic) for topic in served.topics.values()] if is_all else _asked_topics(served, topics)
    return {
        "throttle_time_ms": 0,
        "brokers": [_broker(served, asked)],
        "cluster_id": served.cluster.cluster_id,
        "controller_id": served.cluster.node_id,
        "topics": found,
        "cluster_authorized_operations": NOT_ASKED,
        "error_code": NO_ERROR,
    }


def _asked_topics(served: Served, topics: Sequence[Body]) -> list[Body]:
    asked = dict.fromkeys((topic["name"], bytes(topic.get("topic_id", ZERO_UUID))) for topic in topics)
    is_by_id = any(name is None for name, _ in asked)
    by_id = {bytes(topic.topic_id): topic for topic in served.topics.values()} if is_by_id else {}
    by_id.pop(ZERO_UUID, None)
    found = []
    for name, topic_id in asked:
        topic = by_id.get(topic_id) if name is None else served.topics.get(name)
        if topic is not None:
            found.append(_topic(served, topic))
        elif name is None:
            found.append(_no_topic("", UNKNOWN_TOPIC_ID) | {"name": None, "topic_id": Uuid(topic_id)})
        else:
            found.append(_no_topic(name, UNKNOWN_TOPIC_OR_PARTITION))
    return found


def _no_topic(name: str, error_code: int) -> Body:
    return {
        "error_code": error_code,
        "name": name,
        "topic_id": ZERO_UUID,
        "is_internal": False,
        "partitions": [],
        "topic_authorized_operations": NOT_ASKED,
    }


def _topic(served: Served, topic: Topic) -> Body:
    return _no_topic(topic.name, NO_ERROR) | {
        "topic_id": topic.topic_id,
        "is_internal": topic.is_internal,
        "partitions": [_partition(served, topic, number) for number in topic.partitions],
    }


def _partition(served: Served, topic: Topic, number: int) -> Body:
    ends, nodes = topic.ends.get(number), [served.cluster.node_id]
    return {
        "error_code": NO_ERROR,
        "partition_index": number,
        "leader_id": served.cluster.node_id,
        "leader_epoch": LEADER_EPOCH if ends is None else max(ends.leader_epoch, LEADER_EPOCH),
        "replica_nodes": nodes,
        "isr_nodes": nodes,
        "eligible_leader_replicas": [],
        "last_known_elr": [],
        "offline_replicas": [],
    }


def describe_topic_partitions(served: Served, body: Body, _: Asked) -> Body:
    """Answer DescribeTopicPartitions; a partition has no leader where its end is not known.

    A tool that finds no leader shows the end as unknown; one that asks Metadata would wait for a leader to come.
    """
    limit = min(max(body["response_partition_limit"], 1), MOST_PARTITIONS)
    names = sorted({topic["name"] for topic in body["topics"]}) or list(served.topics)
    cursor = body["cursor"]
    first = ("", 0) if cursor is None else (cursor["topic_name"], cursor["partition_index"])
    topics: dict[str, Body] = {}
    following = None
    for name, number in islice(_pages(served, names, first), limit + 1):
        if number is not None and limit == 0:
            following = {"topic_name": name, "partition_index": number}
            break
        topic = served.topics.get(name)
        if topic is None:
            topics[name] = _no_topic(name, UNKNOWN_TOPIC_OR_PARTITION)
            continue
        row = topics.setdefault(name, _topic(served, topic) | {"partitions": []})
        if number is not None:
            limit -= 1
            row["partitions"].append(_led_partition(served, topic, number))
    return {"throttle_time_ms": 0, "topics": list(topics.values()), "next_cursor": following}


def _pages(served: Served, names: Sequence[str], first: tuple[str, int]) -> Iterator[tuple[str, int | None]]:
    """Yield topics and their partitions from a place on; one without partitions has None."""
    for name in names:
        if name < first[0]:
            continue
        topic = served.topics.get(name)
        if topic is None or not topic.partitions:
            yield name, None
            continue
        start = first[1] if name == first[0] else 0
        yield from ((name, number) for number in topic.partitions if number >= start)


def _led_partition(served: Served, topic: Topic, number: int) -> Body:
    row = _partition(served, topic, number)
    return row if number in topic.ends else row | {"error_code": LEADER_NOT_AVAILABLE, "leader_id": NO_LEADER}


def describe_cluster(served: Served, body: Body, asked: Asked) -> Body:
    """Answer DescribeCluster about brokers; there is no controller to ask about."""
    endpoint_type = body.get("endpoint_type", BROKERS)
    is_known = endpoint_type == BROKERS
    return {
        "throttle_time_ms": 0,
        "error_code": NO_ERROR if is_known else INVALID_REQUEST,
        "error_message": None if is_known else "Only brokers are told.",
        "endpoint_type": endpoint_type,
        "cluster_id": served.cluster.cluster_id,
        "controller_id": served.cluster.node_id,
        "brokers": [_broker(served, asked, "broker_id")] if is_known else [],
        "cluster_authorized_operations": NOT_ASKED,
    }


def find_coordinator(served: Served, body: Body, asked: Asked) -> Body:
    """Answer FindCoordinator: this broker for groups; of others none, in a way that is not asked again and again."""
    found = _broker(served, asked) | {"error_code": NO_ERROR, "error_message": None}
    is_group = body.get("key_type", GROUP) == GROUP

    def coordinator(key: str) -> Body:
        refusal = served.refusal(key) if is_group else _NO_OTHERS
        return found if refusal is None else refusal | {"node_id": -1, "host": "", "port": -1}

    rows = [coordinator(key) | {"key": key} for key in dict.fromkeys(body.get("coordinator_keys", ()))]
    return coordinator(body.get("key", "")) | {"throttle_time_ms": 0, "coordinators": rows}


_NO_OTHERS: Body = {"error_code": INVALID_REQUEST, "error_message": "Only groups have a coordinator here."}


def describe_configs(served: Served, body: Body, _: Asked) -> Body:
    """Answer DescribeConfigs: what was set for topics and groups, by the copy's metadata; of others nothing."""
    asked = {(row["resource_type"], row["resource_name"]): row["configuration_keys"] for row in body["resources"]}
    return {
        "throttle_time_ms": 0,
        "results": [_configs(served, *resource, keys) for resource, keys in asked.items()],
    }


def _configs(served: Served, resource_type: int, name: str, keys: Sequence[str] | None) -> Body:
    topic = served.topics.get(name) if resource_type == TOPIC else None
    is_unknown = resource_type == TOPIC and topic is None
    of_group = served.group_configs.get(name, {}) if resource_type == GROUP_CONFIG else {}
    configs = of_group if topic is None else topic.configs
    return {
        "error_code": UNKNOWN_TOPIC_OR_PARTITION if is_unknown else NO_ERROR,
        "error_message": None,
        "resource_type": resource_type,
        "resource_name": name,
        "configs": [
            {
                "name": key,
                "value": value,
                "read_only": False,
                "config_source": SOURCES[resource_type],
                "is_sensitive": False,
                "synonyms": [],
                "config_type": OF_STRING,
                "documentation": None,
            }
            for key, value in sorted(configs.items())
            if keys is None or key in keys
        ],
    }


def describe_log_dirs(served: Served, body: Body, _: Asked) -> Body:
    """Answer DescribeLogDirs: the copy's directories, and how large the logs in them are; volumes are not told."""
    topics = body["topics"]
    asked = None if topics is None else {(row["topic"], number) for row in topics for number in row["partitions"]}
    found: dict[str, dict[str, list[Body]]] = {served.cluster.directory: {}}
    for topic in served.topics.values():
        for number in topic.partitions:
            if asked is not None and (topic.name, number) not in asked:
                continue
            if (size := _log_size(served, topic.name, number)) is not None:
                found.setdefault(size[0], {}).setdefault(topic.name, []).append(
                    {"partition_index": number, "partition_size": size[1], "offset_lag": 0, "is_future_key": False}
                )
    volumes = {"error_code": NO_ERROR, "total_bytes": -1, "usable_bytes": -1, "is_cordoned": False}
    results = [
        volumes | {"log_dir": directory, "topics": [{"name": name, "partitions": rows} for name, rows in logs.items()]}
        for directory, logs in found.items()
    ]
    return {"throttle_time_ms": 0, "error_code": NO_ERROR, "results": results}


def _log_size(served: Served, topic: str, number: int) -> tuple[str, int] | None:
    """Return the directory and the bytes of a log; None where they cannot be told."""
    try:
        log = served.logs.of(topic, number)
        size_bytes = None if log is None else log.size_bytes
    except OffsetsLogError as error:
        served.logs.tell(f"{topic}-{number} has no size: {error}")
        return None
    return None if log is None or size_bytes is None else (log.directory or served.cluster.directory, size_bytes)
