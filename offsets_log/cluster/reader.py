"""Read a live cluster without changing anything in it: brokers, topics, leaders, ends of logs, record batches.

Only requests of `protocol` are sent, each of which reads: no group is joined, nothing is created, nothing is committed.
"""

from __future__ import annotations

import random
import threading
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from offsets_log.cluster.address import address
from offsets_log.cluster.broker import INT16_MAX, BrokerConnection
from offsets_log.cluster.causes import reach
from offsets_log.cluster.properties import client_options, patience_seconds
from offsets_log.cluster.stores import has_key
from offsets_log.data_directory.checkpoints import TopicPartition
from offsets_log.errors import ClusterError, ClusterLostError
from offsets_log.log_format.primitives import ZERO_UUID, Uuid
from offsets_log.protocol.api import Api
from offsets_log.protocol.error_codes import NO_ERROR, REFUSALS, name_of
from offsets_log.protocol.fetch import CONSUMER, FETCH, NO_SESSION, NO_SESSION_EPOCH, READ_UNCOMMITTED
from offsets_log.protocol.leader_epochs import OFFSET_FOR_LEADER_EPOCH
from offsets_log.protocol.list_offsets import LIST_OFFSETS
from offsets_log.protocol.metadata import ALL_TOPICS, METADATA
from offsets_log.words import to_install

PATIENCE_SECONDS = 60.0
"""How long to ask again without any progress; ``default.api.timeout.ms`` says otherwise."""
FIRST_PAUSE_SECONDS, LAST_PAUSE_SECONDS = 0.1, 3.0
NO_LEADER = -1
FETCH_WAIT_MS, LIST_WAIT_MS = 250, 30_000


@dataclass(frozen=True, slots=True)
class Leader:
    """Who leads a partition, and since which epoch; −1 for what is not known."""

    node_id: int = NO_LEADER
    epoch: int = -1


@dataclass(frozen=True, slots=True)
class TopicNow:
    """A topic as the cluster describes it.

    Attributes:
        topic_id: None before Kafka 2.8.
        error_code: why nothing more is said of it.
    """

    name: str
    topic_id: Uuid | None
    error_code: int
    leaders: Mapping[int, Leader] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ClusterNow:
    """What a Metadata response says."""

    cluster_id: str | None
    brokers: Mapping[int, tuple[str, int]]
    topics: Mapping[str, TopicNow]

    def leader(self, key: TopicPartition) -> Leader:
        """Return the leader of a partition, as far as there is one."""
        topic = self.topics.get(key[0])
        return Leader() if topic is None else topic.leaders.get(key[1], Leader())


class Pauses:
    """Pauses between attempts that grow, with some chance in them, until something has gone forward."""

    def __init__(self, patience_seconds: float) -> None:
        self._patience = patience_seconds
        self.go_on()

    def go_on(self) -> None:
        """Note that something went forward."""
        self._since, self._pause = time.monotonic(), FIRST_PAUSE_SECONDS

    def wait(self) -> bool:
        """Wait; return whether there is patience left."""
        if time.monotonic() - self._since >= self._patience:
            return False
        time.sleep(self._pause * random.uniform(0.8, 1.2))
        self._pause = min(self._pause * 2, LAST_PAUSE_SECONDS)
        return True


class ClusterReader:
    """A cluster; close it after use. Threads may share it: each broker is asked one thing at a time.

    Attributes:
        patience: how many seconds to ask again without any progress.

    Raises:
        ClusterError: no server can be reached, with the reasons.
        InputError: a property makes no sense.
    """

    def __init__(self, bootstrap_servers: str, properties: Mapping[str, str]) -> None:
        try:
            self._options = client_options(properties)
        except ImportError:
            raise ClusterError(f"this login needs kafka-python: {to_install('restore')}") from None
        self.patience = patience_seconds(properties, PATIENCE_SECONDS)
        self.servers = bootstrap_servers
        servers = [server.strip() for server in bootstrap_servers.split(",") if server.strip()]
        if not servers:
            raise ClusterError("--bootstrap-server names no server")
        reach(servers, self._options, has_key=has_key(properties))
        self._bootstrap = [address(server) for server in servers]
        self._brokers: Mapping[int, tuple[str, int]] = {}
        self._connections: dict[tuple[str, int], BrokerConnection] = {}
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close all connections; what is being asked in other threads ends with an error."""
        with self._lock:
            for connection in self._connections.values():
                connection.close()
            self._connections.clear()

    def metadata(self, patience: float | None = None) -> ClusterNow:
        """Ask any broker for the brokers, all topics and their leaders, again and again if need be.

        Args:
            patience: how many seconds, if not as usual.

        Raises:
            ClusterLostError: none answers before the patience ends.
        """
        pauses, problem = Pauses(self.patience if patience is None else patience), ""
        while True:
            places = [*self._brokers.values(), *self._bootstrap]
            for place in random.sample(places, len(places)):
                try:
                    found = _cluster_now(self._ask_at(place, METADATA, ALL_TOPICS))
                except (OSError, ClusterError) as error:
                    problem = str(error)
                    continue
                self._brokers = found.brokers or self._brokers
                return found
            if not pauses.wait():
                raise ClusterLostError(f"{self.servers}: no answer for {self.patience:.0f} s: {problem}")

    def ask(self, node_id: int, api: Api, body: Mapping[str, Any], newest: int = INT16_MAX) -> dict[str, Any]:
        """Ask a broker; a connection that fails is opened again by the next question.

        Args:
            newest: the last version that will do.

        Raises:
            OSError: the connection fails, or there is no such broker.
            ClusterError: the answer breaks the protocol, or the login is refused.
        """
        return self._ask_at(self._place_of(node_id), api, body, newest)

    def version_of(self, node_id: int, api: Api, newest: int = INT16_MAX) -> int:
        """Return the version in which a broker is asked. Raises OSError or ClusterError, as `ask`."""
        return self._connection_at(self._place_of(node_id)).version_of(api, newest)

    def _place_of(self, node_id: int) -> tuple[str, int]:
        place = self._brokers.get(node_id)
        if place is None:
            raise ConnectionError(f"there is no broker {node_id}")
        return place

    def drop(self, node_id: int) -> None:
        """Close the connection to a broker: the next question opens another."""
        if (place := self._brokers.get(node_id)) is not None:
            self._drop_at(place)

    def _connection_at(self, place: tuple[str, int]) -> BrokerConnection:
        with self._lock:
            connection = self._connections.get(place)
        if connection is None:
            connection = BrokerConnection(*place, self._options).open()
            with self._lock:
                self._connections[place] = connection
        return connection

    def _ask_at(
        self, place: tuple[str, int], api: Api, body: Mapping[str, Any], newest: int = INT16_MAX
    ) -> dict[str, Any]:
        try:
            connection = self._connection_at(place)
            return connection.ask(api, body, connection.version_of(api, newest))
        except (OSError, ClusterError):
            self._drop_at(place)
            raise

    def _drop_at(self, place: tuple[str, int]) -> None:
        with self._lock:
            connection = self._connections.pop(place, None)
        if connection is not None:
            connection.close()

    # ------------------------------------------------------------------------------------- asked of a leader

    def list_offsets(
        self, keys: Collection[TopicPartition], timestamp: int, patience: float | None = None
    ) -> tuple[dict[TopicPartition, int], dict[TopicPartition, str]]:
        """Ask where logs begin or end, again and again while leaders change.

        Args:
            patience: how many seconds without any progress, if not as usual.

        Returns:
            What was answered, and of the others why not.

        Raises:
            ClusterLostError: no broker answers any more.
        """
        found, refused = self.list_times(dict.fromkeys(keys, timestamp), patience)
        return {key: offset for key, (offset, _) in found.items()}, refused

    def list_times(
        self, times: Mapping[TopicPartition, int], patience: float | None = None
    ) -> tuple[dict[TopicPartition, tuple[int, int]], dict[TopicPartition, str]]:
        """Ask for the first record of a time or a later one, in the same way.

        Args:
            times: one for each partition.

        Returns:
            Offset and time of each, −1 and −1 where there is none; and of the others why nothing was answered.
        """
        found: dict[TopicPartition, tuple[int, int]] = {}
        refused: dict[TopicPartition, str] = {}
        pauses = Pauses(self.patience if patience is None else patience)
        left = set(times)
        while left:
            now, problems = self.metadata(patience), dict.fromkeys(left, "it has no leader")
            for node_id, some in by_leader(now, left).items():
                self._list_at(node_id, {key: times[key] for key in some}, found, problems)
            refused |= {key: problem for key, problem in problems.items() if problem in _REFUSED}
            if left > problems.keys():
                pauses.go_on()
            left = problems.keys() - refused.keys()
            if left and not pauses.wait():
                return found, refused | {key: problems[key] for key in left}
        return found, refused

    def _list_at(
        self,
        node_id: int,
        times: Mapping[TopicPartition, int],
        found: dict[TopicPartition, tuple[int, int]],
        problems: dict[TopicPartition, str],
    ) -> None:
        rows = [
            (key, {"partition_index": key[1], "current_leader_epoch": -1, "timestamp": timestamp})
            for key, timestamp in times.items()
        ]
        body = {
            "replica_id": CONSUMER,
            "isolation_level": READ_UNCOMMITTED,
            "topics": _by_topic(rows, "name"),
            "timeout_ms": LIST_WAIT_MS,
        }
        try:
            answer = self.ask(node_id, LIST_OFFSETS, body)
        except (OSError, ClusterError) as error:
            problems |= {key: str(error) for key, _ in rows}
            return
        for topic in answer["topics"]:
            for row in topic["partitions"]:
                key = topic["name"], row["partition_index"]
                if key not in problems:
                    continue
                if row["error_code"] == NO_ERROR and (row["offset"] >= 0 or times[key] >= 0):
                    found[key] = row["offset"], row["timestamp"]
                    del problems[key]
                else:
                    problems[key] = name_of(row["error_code"])

    def fetch(
        self, node_id: int, positions: Mapping[TopicPartition, tuple[int, int]], most_bytes: int, rack: str
    ) -> tuple[dict[TopicPartition, dict[str, Any]], float]:
        """Fetch batches from offsets on, uncommitted ones too, up to the high watermark.

        Args:
            positions: partition → the leader epoch it is believed to have, −1 if unknown; the offset to begin at.

        Returns:
            Partition → its part of the response, of those that were asked for; and for how many seconds the broker
            asks to be left alone. It answers nothing of any partition then.

        Raises:
            OSError, ClusterError: as `ask`.
        """
        rows = [(key, _fetched(key[1], epoch, offset, most_bytes)) for key, (epoch, offset) in positions.items()]
        body = {
            "cluster_id": None,
            "replica_id": CONSUMER,
            "max_wait_ms": FETCH_WAIT_MS,
            "min_bytes": 1,
            "max_bytes": most_bytes,
            "isolation_level": READ_UNCOMMITTED,
            "session_id": NO_SESSION,
            "session_epoch": NO_SESSION_EPOCH,
            "topics": _by_topic(rows, "topic"),
            "forgotten_topics_data": [],
            "rack_id": rack,
        }
        answer = self.ask(node_id, FETCH, body)
        code = answer.get("error_code", NO_ERROR)
        if code != NO_ERROR:
            raise ClusterError(f"broker {node_id} answers {name_of(code)}")
        answers = {
            (topic["topic"], row["partition_index"]): row
            for topic in answer["responses"]
            for row in topic["partitions"]
            if (topic["topic"], row["partition_index"]) in positions
        }
        return answers, answer["throttle_time_ms"] / 1000

    def epoch_end(self, node_id: int, key: TopicPartition, epoch: int) -> tuple[int, int]:
        """Ask for the last epoch up to one, and where its records end; −1 and −1 where the leader does not know.

        Raises:
            OSError, ClusterError: as `ask`, or the broker answers with an error.
        """
        row = {"partition": key[1], "current_leader_epoch": -1, "leader_epoch": epoch}
        body = {"replica_id": CONSUMER, "topics": _by_topic([(key, row)], "topic")}
        answer = self.ask(node_id, OFFSET_FOR_LEADER_EPOCH, body)
        for found in (row for topic in answer["topics"] for row in topic["partitions"]):
            if found["partition"] == key[1]:
                if found["error_code"] != NO_ERROR:
                    raise ClusterError(f"broker {node_id} answers {name_of(found['error_code'])}")
                return found["leader_epoch"], found["end_offset"]
        raise ClusterError(f"broker {node_id} says nothing of {key[0]}-{key[1]}")


_REFUSED = frozenset(map(name_of, REFUSALS))


def by_leader(now: ClusterNow, keys: Iterable[TopicPartition]) -> dict[int, list[TopicPartition]]:
    """Return node → the partitions that it leads; those without a leader are left out."""
    found: dict[int, list[TopicPartition]] = defaultdict(list)
    for key in sorted(keys):
        if (leader := now.leader(key)).node_id in now.brokers:
            found[leader.node_id].append(key)
    return found


def _by_topic(rows: Iterable[tuple[TopicPartition, dict[str, Any]]], name: str) -> list[dict[str, Any]]:
    topics: dict[str, list[dict[str, Any]]] = {}
    for (topic, _), row in rows:
        topics.setdefault(topic, []).append(row)
    return [{name: topic, "partitions": some} for topic, some in topics.items()]


def _fetched(partition: int, epoch: int, offset: int, most_bytes: int) -> dict[str, Any]:
    return {
        "partition": partition,
        "current_leader_epoch": epoch,
        "fetch_offset": offset,
        "last_fetched_epoch": -1,
        "log_start_offset": -1,
        "partition_max_bytes": most_bytes,
    }


def _cluster_now(answer: Mapping[str, Any]) -> ClusterNow:
    brokers = {row["node_id"]: (row["host"], row["port"]) for row in answer["brokers"]}
    topics = {row["name"]: _topic_now(row) for row in answer["topics"] if row["name"] is not None}
    return ClusterNow(answer["cluster_id"], brokers, topics)


def _topic_now(row: Mapping[str, Any]) -> TopicNow:
    topic_id = row.get("topic_id", ZERO_UUID)
    leaders = {
        one["partition_index"]: Leader(one["leader_id"], one.get("leader_epoch", -1)) for one in row["partitions"]
    }
    return TopicNow(row["name"], None if topic_id == ZERO_UUID else Uuid(topic_id), row["error_code"], leaders)
