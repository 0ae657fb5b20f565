"""Read group states, committed offsets and log ends of a live cluster, and set offsets, for `offsets_log.restore`.

Commits use OffsetCommit up to version 8 (dpkp/kafka-python, kafka/admin/_groups.py), which carries leader epoch and
metadata; brokers before Kafka 2.1 have no version with the epoch. The commit time is the broker's own.
"""

from __future__ import annotations

import base64
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any
from uuid import UUID

from offsets_log.cluster.connection import Connection, coordinator_errors, in_words
from offsets_log.cluster.properties import client_options
from offsets_log.cluster.share_admin import ShareAdmin
from offsets_log.errors import ClusterError, ClusterLostError
from offsets_log.restore.judging import Denied
from offsets_log.restore.target import NO_GROUP, Committed, Offsets, PartitionNow, TopicPartition


class Cluster:
    """A `Target` on the network; close it after use.

    Raises:
        ClusterError: the cluster cannot be reached, or refuses. Every method raises it too, and ClusterLostError.
    """

    def __init__(self, bootstrap_servers: str, properties: Mapping[str, str]) -> None:
        self._connection = Connection(bootstrap_servers, properties)
        self._admin = self._connection.admin
        self._ask = self._connection.ask
        self._leaders: dict[TopicPartition, int] = {}
        self.share_groups = ShareAdmin(self._connection, self._coordinator, client_options(properties))

    def cluster_id(self) -> str | None:
        """Return the cluster's own id."""
        found: str | None = self._ask(self._admin.describe_cluster).get("cluster_id")
        return found

    def group_states(self) -> dict[str, str]:
        """Return group → state, for all groups."""
        groups: dict[str, str] = {row["group_id"]: row.get("group_state") for row in self._ask(self._admin.list_groups)}
        missing_columns = [group for group, state in groups.items() if not state]  # before Kafka 2.6
        if missing_columns:
            described = self._ask(lambda: self._admin.describe_groups(missing_columns))
            groups |= {group: described[group]["group_state"] or NO_GROUP for group in missing_columns}
        return groups

    def topics(self) -> dict[str, int]:
        """Return topic → number of partitions, for all topics that the user may see."""
        return {row["name"]: len(row["partitions"]) for row in self._ask(self._admin.describe_topics)}

    def partitions(self, wanted: Collection[TopicPartition]) -> dict[TopicPartition, PartitionNow]:
        """Return the present state of partitions, which must exist."""
        from kafka.admin import OffsetSpec
        from kafka.structs import TopicPartition as Key

        if not wanted:
            return {}
        names = sorted({topic for topic, _ in wanted})
        found: dict[TopicPartition, PartitionNow] = {}
        for topic in self._ask(lambda: self._admin.describe_topics(names)):
            for row in topic["partitions"]:
                key = topic["name"], row["partition_index"]
                if key in wanted:
                    epoch = row.get("leader_epoch", -1)
                    found[key] = PartitionNow(
                        leader_epoch=epoch if epoch >= 0 else None, topic_id=_topic_id(topic.get("topic_id"))
                    )
                    self._leaders[key] = row["leader_id"]
        led = [Key(*key) for key in found if self._leaders[key] >= 0]
        for name, spec in (("log_start_offset", OffsetSpec.EARLIEST), ("log_end_offset", OffsetSpec.LATEST)):
            ask = partial(self._admin.list_partition_offsets, dict.fromkeys(led, spec))
            for key, value in (self._ask(ask) if led else {}).items():
                found[key.topic, key.partition] = found[key.topic, key.partition]._replace(**{name: value.offset})
        return found

    def epoch_ends(self, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return where the records of a leader epoch and earlier ones end in each partition (OffsetForLeaderEpoch)."""
        by_leader: dict[int, dict[TopicPartition, int]] = defaultdict(dict)
        for key, epoch in epochs.items():
            if self._leaders.get(key, -1) >= 0:
                by_leader[self._leaders[key]][key] = epoch
        ends: dict[TopicPartition, int] = {}
        for leader, some in by_leader.items():
            response = self._ask(partial(self._send, _epoch_request(some), leader))
            for topic in response.topics:
                for row in topic.partitions:
                    if not row.error_code and row.end_offset >= 0:
                        ends[topic.topic, row.partition] = row.end_offset
        return ends

    def offsets(self, group: str) -> dict[TopicPartition, Committed]:
        """Return what a group has committed."""
        answer = self._ask(lambda: self._admin.list_group_offsets({group: None}), _about(group))[group]
        return {
            (key.topic, key.partition): Committed(
                value.offset, value.leader_epoch if (value.leader_epoch or 0) >= 0 else None, value.metadata or ""
            )
            for key, value in answer.items()
        }

    def denied(self, groups: Sequence[str], topics: Sequence[str]) -> Denied:
        """Return which of these the user may not READ, as the brokers tell; before Kafka 2.3 they do not."""
        from kafka.protocol.admin import DescribeGroupsRequest

        no_topics = [
            row["name"]
            for row in (self._ask(lambda: self._admin.describe_topics(list(topics))) if topics else ())
            if _lacks_read(row)
        ]
        by_node: dict[int, list[str]] = defaultdict(list)
        no_groups = []
        for group in groups:
            try:
                by_node[self._coordinator(group)].append(group)
            except ClusterLostError:
                raise
            except ClusterError:
                no_groups.append(group)
        for node, some in by_node.items():  # version 5 tells of groups that do not exist, too
            request = DescribeGroupsRequest(groups=some, include_authorized_operations=True, max_version=5)
            response = self._ask(partial(self._send, request, node))
            no_groups += [row.group_id for row in response.groups if row.error_code == 30 or _lacks_read(row.to_dict())]
        return Denied(frozenset(no_groups), frozenset(no_topics))

    def _coordinator(self, group: str) -> int:
        manager = self._admin._manager
        found: dict[str, int] = self._ask(
            lambda: manager.run(self._admin._find_coordinator_ids, [group]), _about(group)
        )
        return found[group]

    def commit(self, group: str, offsets: Offsets) -> dict[TopicPartition, str]:
        """Commit offsets for a group without members; return what was refused → why."""
        from kafka.structs import OffsetAndMetadata
        from kafka.structs import TopicPartition as Key

        wanted = {
            Key(*key): OffsetAndMetadata(value.committed_offset, value.metadata, value.leader_epoch)
            for key, value in offsets.items()
        }
        return self._alter(group, lambda: self._admin.alter_group_offsets(group, wanted)) if wanted else {}

    def delete(self, group: str, partitions: Collection[TopicPartition]) -> dict[TopicPartition, str]:
        """Delete offsets of a group (OffsetDelete, Kafka 2.4); return what was refused → why."""
        from kafka.errors import GroupIdNotFoundError
        from kafka.structs import TopicPartition as Key

        def delete() -> Any:
            try:
                return self._admin.delete_group_offsets(group, [Key(*key) for key in partitions])
            except GroupIdNotFoundError:
                return {}  # so it has no offset either

        return self._alter(group, delete) if partitions else {}

    def close(self) -> None:
        """Close the connections."""
        self.share_groups.close()
        self._connection.close()

    def _alter(self, group: str, question: Callable[[], Any]) -> dict[TopicPartition, str]:
        from kafka.errors import NoError

        def asked() -> Any:
            answer = question()
            for error in answer.values():
                if issubclass(error, coordinator_errors()):  # reported for each partition, but it concerns the group
                    raise error()
            return answer

        answer = self._ask(asked, _about(group))
        return {(key.topic, key.partition): in_words(error) for key, error in answer.items() if error is not NoError}

    def _send(self, request: Any, node_id: int) -> Any:
        manager = self._admin._manager

        async def send() -> Any:
            return await manager.send(request, node_id=node_id)

        return manager.run(send)


READ = 3
"""The number of the operation in Kafka's ``AclOperation``."""
UNTOLD = 31
"""The bit of an answer that does not tell what a user may do."""


def _lacks_read(row: Mapping[str, Any]) -> bool:
    """Whether a description tells what the user may do, as numbers or names, and READ is not among it."""
    told = {str(operation) for operation in row.get("authorized_operations") or ()}
    return bool(told) and not told & {"READ", str(READ), str(UNTOLD)}


def _epoch_request(epochs: Mapping[TopicPartition, int]) -> Any:
    from kafka.protocol.consumer.offsets import OffsetForLeaderEpochRequest as Request

    topics: dict[str, list[Any]] = defaultdict(list)
    for (topic, partition), epoch in epochs.items():
        one = Request.OffsetForLeaderTopic.OffsetForLeaderPartition(
            partition=partition, current_leader_epoch=-1, leader_epoch=epoch
        )
        topics[topic].append(one)
    rows: Iterable[Any] = (Request.OffsetForLeaderTopic(topic=topic, partitions=some) for topic, some in topics.items())
    return Request(replica_id=-1, topics=list(rows))


def _topic_id(value: str | None) -> str | None:
    """Return a topic id in Kafka's text form, from a UUID's; None for the zero id."""
    found = UUID(value or "0" * 32)
    return base64.urlsafe_b64encode(found.bytes).decode().rstrip("=") if found.int else None


def _about(group: str) -> str:
    return f"group {group!r}: "
