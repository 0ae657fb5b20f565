"""Group states and committed offsets of a live cluster, through kafka-python: the only way to the network.

kafka-python (extra ``restore``) commits with OffsetCommit up to version 8 (dpkp/kafka-python, kafka/admin/_groups.py),
which carries leader epoch and metadata; brokers before Kafka 2.1 know no version that has the epoch. The commit time is
the broker's own. confluent-kafka is no choice: 2.16 commits metadata with a NUL behind it, and refuses some groups.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

from offsets_log.cluster.properties import client_options
from offsets_log.errors import ClusterError
from offsets_log.restore.apply import NO_GROUP, Committed, Offsets, TopicPartition


class Cluster:
    """A connection; a context manager.

    Raises:
        ClusterError: it cannot be reached, or refuses; also from every method.
    """

    def __init__(self, bootstrap_servers: str, properties: Mapping[str, str]) -> None:
        try:
            from kafka.admin import KafkaAdminClient
        except ImportError:
            raise ClusterError("kafka-python is not installed: pip install 'offsets-log[restore]'") from None
        logging.getLogger("kafka").setLevel(logging.CRITICAL)  # its errors come back as exceptions too
        options = client_options(properties)
        self._servers = bootstrap_servers
        with self._errors():
            self._admin = KafkaAdminClient(bootstrap_servers=bootstrap_servers.split(","), **options)

    def group_states(self) -> dict[str, str]:
        """Group → state, of all groups there are."""
        with self._errors():
            groups: dict[str, str] = {row["group_id"]: row.get("group_state") for row in self._admin.list_groups()}
            untold = [group for group, state in groups.items() if not state]  # before Kafka 2.6
            if untold:
                described = self._admin.describe_groups(untold)
                groups |= {group: described[group]["group_state"] or NO_GROUP for group in untold}
        return groups

    def topics(self) -> dict[str, int]:
        """Topic → number of partitions, of all topics that may be seen."""
        with self._errors():
            return {row["name"]: len(row["partitions"]) for row in self._admin.describe_topics()}

    def offsets(self, group: str) -> dict[TopicPartition, Committed]:
        """What a group has committed."""
        with self._errors(group):
            answer = self._admin.list_group_offsets({group: None})[group]
        return {
            (key.topic, key.partition): Committed(
                value.offset, value.leader_epoch if (value.leader_epoch or 0) >= 0 else None, value.metadata or ""
            )
            for key, value in answer.items()
        }

    def commit(self, group: str, offsets: Offsets) -> dict[TopicPartition, str]:
        """Commit for a group without members; what was refused → why."""
        from kafka import structs
        from kafka.errors import NoError

        wanted = {
            structs.TopicPartition(*key): structs.OffsetAndMetadata(
                value.committed_offset, value.metadata, value.leader_epoch
            )
            for key, value in offsets.items()
        }
        with self._errors(group):
            answer = self._admin.alter_group_offsets(group, wanted)
        return {(key.topic, key.partition): _in_words(error) for key, error in answer.items() if error is not NoError}

    def close(self) -> None:
        """End the connection."""
        self._admin.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextmanager
    def _errors(self, group: str | None = None) -> Iterator[None]:
        from kafka.errors import KafkaError

        try:
            yield
        except (KafkaError, OSError, ValueError, TypeError, AssertionError) as error:
            about = f"group {group!r}: " if group is not None else ""
            raise ClusterError(f"{self._servers}: {about}{_in_words(error)}") from error


def _in_words(error: Any) -> str:
    """An error class or object of kafka-python as its name and what it says."""
    if isinstance(error, type):
        return f"{error.__name__}: {getattr(error, 'description', '') or getattr(error, 'message', '')}".rstrip(": ")
    said = str(error)
    return said if type(error).__name__ in said else f"{type(error).__name__}: {said}".rstrip(": ")
