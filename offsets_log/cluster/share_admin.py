"""Read and set the offsets at which share groups start, on a live cluster.

kafka-python has no such requests, so they are sent over connections of our own, one to each coordinator.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from offsets_log.cluster.broker import BrokerConnection
from offsets_log.cluster.connection import Connection, in_words
from offsets_log.errors import ClusterError
from offsets_log.protocol.api import Api
from offsets_log.protocol.describe_share_group_offsets import DESCRIBE_SHARE_GROUP_OFFSETS
from offsets_log.protocol.error_codes import GROUP_ID_NOT_FOUND, NO_ERROR, name_of
from offsets_log.protocol.share_group_offsets import (
    ALTER_SHARE_GROUP_OFFSETS,
    DELETE_SHARE_GROUP_OFFSETS,
)
from offsets_log.restore.target import Committed, Offsets, TopicPartition

TOO_OLD = "its broker takes no offsets of share groups: brokers do since Kafka 4.1"
WHOLE_TOPICS = "what share groups have is deleted of whole topics only, and other partitions of this one had an offset"


class ShareAdmin:
    """Implements `GroupOffsets` for share groups; close it after use. Its methods raise the errors of `Cluster`'s."""

    def __init__(self, connection: Connection, coordinator: Callable[[str], int], options: Mapping[str, Any]) -> None:
        """Args:
        coordinator: group → the node that coordinates it.
        options: as `properties.client_options` makes them.
        """
        self._connection, self._coordinator, self._options = connection, coordinator, options
        self._brokers: dict[int, BrokerConnection] = {}

    def offsets(self, group: str) -> dict[TopicPartition, Committed]:
        """Return where a group starts in each partition, without those that it has not begun to read."""
        body = {"groups": [{"group_id": group, "topics": None}]}
        found = self._ask(group, DESCRIBE_SHARE_GROUP_OFFSETS, body, lambda answer: answer["groups"][0])
        return {
            (topic["topic_name"], row["partition_index"]): Committed(row["start_offset"], None, "")
            for topic in found["topics"]
            for row in topic["partitions"]
            if row["error_code"] == NO_ERROR and row["start_offset"] >= 0
        }

    def commit(self, group: str, offsets: Offsets) -> dict[TopicPartition, str]:
        """Set where a group without members starts; return what was refused → why."""
        if not offsets:
            return {}
        topics: dict[str, list[dict[str, int]]] = {}
        for (topic, partition), value in offsets.items():
            row = {"partition_index": partition, "start_offset": value.committed_offset}
            topics.setdefault(topic, []).append(row)
        rows = [{"topic_name": topic, "partitions": some} for topic, some in topics.items()]
        answer = self._ask(group, ALTER_SHARE_GROUP_OFFSETS, {"group_id": group, "topics": rows}, lambda answer: answer)
        if answer["error_code"] != NO_ERROR:
            return dict.fromkeys(offsets, _words(answer))
        return {
            (topic["topic_name"], row["partition_index"]): _words(row)
            for topic in answer["responses"]
            for row in topic["partitions"]
            if row["error_code"] != NO_ERROR
        }

    def delete(self, group: str, partitions: Collection[TopicPartition]) -> dict[TopicPartition, str]:
        """Delete a group's start offsets; return what was refused → why.

        Brokers delete those of whole topics only: of a topic where the group has offsets in other partitions too, all
        are refused.
        """
        if not partitions:
            return {}
        kept = {topic for topic, partition in self.offsets(group) if (topic, partition) not in partitions}
        refused = {key: WHOLE_TOPICS for key in partitions if key[0] in kept}
        topics = sorted({topic for topic, _ in partitions} - kept)
        if topics:
            body = {"group_id": group, "topics": [{"topic_name": topic} for topic in topics]}
            answer = self._ask(group, DELETE_SHARE_GROUP_OFFSETS, body, lambda answer: answer)
            failed = {row["topic_name"]: _words(row) for row in answer["responses"] if row["error_code"] != NO_ERROR}
            refused |= {key: failed[key[0]] for key in partitions if key[0] in failed}
        return refused

    def close(self) -> None:
        """Close the connections."""
        for broker in self._brokers.values():
            broker.close()
        self._brokers.clear()

    def _ask(
        self, group: str, api: Api, body: Mapping[str, Any], result: Callable[[dict[str, Any]], dict[str, Any]]
    ) -> dict[str, Any]:
        """Ask a group's coordinator, again and again while it moves. Raises on errors other than GROUP_ID_NOT_FOUND."""
        from kafka.errors import for_code

        def question() -> dict[str, Any]:
            found = result(self._ask_node(self._coordinator(group), api, body))
            if found["error_code"] not in (NO_ERROR, GROUP_ID_NOT_FOUND):
                raise for_code(found["error_code"])(found["error_message"] or "")
            return found

        answer: dict[str, Any] = self._connection.ask(question, f"share group {group!r}: ")
        return answer

    def _ask_node(self, node_id: int, api: Api, body: Mapping[str, Any]) -> dict[str, Any]:
        from kafka.errors import KafkaConnectionError

        try:
            if node_id not in self._brokers:
                place = self._connection.admin._manager.cluster.broker_metadata(node_id)
                self._brokers[node_id] = BrokerConnection(place.host, place.port, self._options).open()
            if not self._brokers[node_id].takes(api):
                raise ClusterError(TOO_OLD)
            return self._brokers[node_id].ask(api, body)
        except OSError as error:
            if (broker := self._brokers.pop(node_id, None)) is not None:
                broker.close()
            raise KafkaConnectionError(in_words(error)) from None


def _words(row: Mapping[str, Any]) -> str:
    return ": ".join(filter(None, (name_of(row["error_code"]), row["error_message"])))
