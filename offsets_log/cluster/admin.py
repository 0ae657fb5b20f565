"""Group states and committed offsets of a live cluster, through kafka-python: the only way to the network.

kafka-python (extra ``restore``) commits with OffsetCommit up to version 8 (dpkp/kafka-python, kafka/admin/_groups.py),
which carries leader epoch and metadata; brokers before Kafka 2.1 know no version that has the epoch. The commit time is
the broker's own. confluent-kafka is no choice: 2.16 commits metadata with a NUL behind it, and refuses some groups.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from offsets_log.cluster.properties import client_options
from offsets_log.errors import ClusterError
from offsets_log.restore.apply import NO_GROUP, Committed, Offsets, TopicPartition

PATIENCE_SECONDS = 60.0
"""How long to wait for coordinators in all."""
PAUSE_SECONDS = 0.25


class Cluster:
    """A connection, to be closed.

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
        self._patience_seconds = PATIENCE_SECONDS
        with self._errors():
            self._admin = KafkaAdminClient(bootstrap_servers=bootstrap_servers.split(","), **options)

    def group_states(self) -> dict[str, str]:
        """Group → state, of all groups there are."""
        groups: dict[str, str] = {
            row["group_id"]: row.get("group_state") for row in self._ask(lambda: self._admin.list_groups())
        }
        untold = [group for group, state in groups.items() if not state]  # before Kafka 2.6
        if untold:
            described = self._ask(lambda: self._admin.describe_groups(untold))
            groups |= {group: described[group]["group_state"] or NO_GROUP for group in untold}
        return groups

    def topics(self) -> dict[str, int]:
        """Topic → number of partitions, of all topics that may be seen."""
        return {row["name"]: len(row["partitions"]) for row in self._ask(lambda: self._admin.describe_topics())}

    def offsets(self, group: str) -> dict[TopicPartition, Committed]:
        """What a group has committed."""
        answer = self._ask(lambda: self._admin.list_group_offsets({group: None}), group)[group]
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

        def commit() -> dict[Any, Any]:
            answer: dict[Any, Any] = self._admin.alter_group_offsets(group, wanted)
            for error in answer.values():
                if issubclass(error, _passing()):  # said of each partition, meant of the group
                    raise error()
            return answer

        answer = self._ask(commit, group)
        return {(key.topic, key.partition): _in_words(error) for key, error in answer.items() if error is not NoError}

    def close(self) -> None:
        """End the connection."""
        self._admin.close()

    def _ask(self, question: Callable[[], Any], group: str | None = None) -> Any:
        """An answer; again while a coordinator is being made or found, as on a cluster that had no group yet."""
        while True:
            with self._errors(group):
                try:
                    return question()
                except _passing():
                    if self._patience_seconds <= 0:
                        raise
            self._patience_seconds -= PAUSE_SECONDS
            time.sleep(PAUSE_SECONDS)

    @contextmanager
    def _errors(self, group: str | None = None) -> Iterator[None]:
        from kafka.errors import KafkaError

        try:
            yield
        except (KafkaError, OSError, ValueError, TypeError, AssertionError) as error:
            about = f"group {group!r}: " if group is not None else ""
            raise ClusterError(f"{self._servers}: {about}{_in_words(error)}") from error


def _passing() -> tuple[type[Exception], ...]:
    """Errors that pass by themselves."""
    from kafka.errors import CoordinatorLoadInProgressError, CoordinatorNotAvailableError, NotCoordinatorError

    return CoordinatorLoadInProgressError, CoordinatorNotAvailableError, NotCoordinatorError


def _in_words(error: Any) -> str:
    """An error class or object of kafka-python as its name and what it says."""
    if isinstance(error, type):
        return f"{error.__name__}: {getattr(error, 'description', '') or getattr(error, 'message', '')}".rstrip(": ")
    said = str(error)
    return said if type(error).__name__ in said else f"{type(error).__name__}: {said}".rstrip(": ")
