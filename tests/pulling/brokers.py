"""Brokers that are none: they answer what reads, from logs in memory, over real sockets, and fail as they are told."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from offsets_log.log_format.building import build_batch
from offsets_log.log_format.primitives import Uuid
from offsets_log.log_format.record import Record
from offsets_log.protocol.api import SIZE_BYTES, Api, Header, decode_header
from offsets_log.protocol.list_offsets import EARLIEST
from offsets_log.protocol.registry import APIS

OFFSETS = "__consumer_offsets"
TIME = 1_700_000_000_000
Key = tuple[str, int]


def batch(base: int, count: int = 1, epoch: int = 0, filler: bytes = b"", **facts: Any) -> bytes:
    """A plain batch of records that no coordinator knows."""
    records = [
        Record(offset=base + i, timestamp_ms=TIME + base + i, key=b"k%d" % (base + i), value=filler or b"v")
        for i in range(count)
    ]
    return build_batch(records, partition_leader_epoch=epoch, **facts)


@dataclass(slots=True)
class Log:
    """A partition: batches with the offsets behind them.

    Attributes:
        ends: leader epoch → where its records end; of the last one the log's end.
        follower: a replica that is nearer to whoever says where they are.
    """

    leader: int = 0
    epoch: int = 0
    start: int = 0
    end: int = 0
    batches: list[tuple[int, bytes]] = field(default_factory=list)
    ends: dict[int, int] = field(default_factory=dict)
    error: int = 0
    follower: int = -1

    def add(self, count: int = 1, **facts: Any) -> None:
        """Append a batch of so many records."""
        self.batches.append((self.end + count - 1, batch(self.end, count, self.epoch, **facts)))
        self.end += count

    def fill(self, batches: int, count: int = 3, **facts: Any) -> Log:
        for _ in range(batches):
            self.add(count, **facts)
        return self

    def lead(self, node: int, epoch: int) -> None:
        """Another leader, with the same log."""
        self.ends[self.epoch] = self.end
        self.leader, self.epoch = node, epoch

    def truncate(self, offset: int) -> None:
        self.batches = [one for one in self.batches if one[0] < offset]
        self.end = max((last + 1 for last, _ in self.batches), default=self.start)
        self.ends = {epoch: min(end, self.end) for epoch, end in self.ends.items()}

    @property
    def raw(self) -> bytes:
        """All batches."""
        return b"".join(raw for _, raw in self.batches)

    def read(self, offset: int, most_bytes: int) -> bytes:
        """Whole batches from an offset on and the beginning of the next, as brokers send them."""
        found = b"".join(raw for last, raw in self.batches if last >= offset)
        first = next((len(raw) for last, raw in self.batches if last >= offset), 0)
        return found[: max(most_bytes, first)]

    def first_at(self, time_ms: int) -> tuple[int, int]:
        """The first record of a time or a later one, whose times go up with their offsets."""
        offset = max(self.start, time_ms - TIME)
        return (offset, TIME + offset) if offset < self.end else (-1, -1)

    def epoch_end(self, epoch: int) -> tuple[int, int]:
        known = {**self.ends, self.epoch: self.end}
        found = max((one for one in known if one <= epoch), default=-1)
        return found, known.get(found, -1)


Fault = Callable[[int, Header, dict[str, Any]], bytes | None]
"""Node, header, body → bytes to send instead of the answer, b"" to close the connection, None to answer."""


@dataclass
class Brokers:
    """Attributes:
    logs: topic and partition → its log.
    requests: all that were asked: node, key of the API, body.
    newest: key → newest version that is taken, if not all that there are.
    answers: key → what answers requests of other kinds: of node and body.
    """

    logs: dict[Key, Log]
    nodes: int = 1
    cluster_id: str = "one"
    topic_ids: dict[str, Uuid] = field(default_factory=dict)
    requests: list[tuple[int, int, dict[str, Any]]] = field(default_factory=list)
    fault: Fault = lambda node, header, body: None
    newest: dict[int, int] = field(default_factory=dict)
    down: set[int] = field(default_factory=set)
    most_bytes: int = 1 << 20
    answers: dict[int, Callable[[int, dict[str, Any]], dict[str, Any]]] = field(default_factory=dict)
    servers: list[socket.socket] = field(default_factory=list)

    @property
    def address(self) -> str:
        return ",".join(f"127.0.0.1:{server.getsockname()[1]}" for server in self.servers)

    @contextlib.contextmanager
    def running(self) -> Iterator[Brokers]:
        self.servers = [socket.create_server(("127.0.0.1", 0)) for _ in range(self.nodes)]
        for node, server in enumerate(self.servers):
            threading.Thread(target=self._listen, args=(node, server), daemon=True).start()
        try:
            yield self
        finally:
            for server in self.servers:
                with contextlib.suppress(OSError):
                    server.shutdown(socket.SHUT_RDWR)
                server.close()

    def _listen(self, node: int, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = server.accept()
                threading.Thread(target=self._serve, args=(node, connection), daemon=True).start()

    def _serve(self, node: int, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError), connection.makefile("rb") as stream:
            while size := stream.read(SIZE_BYTES):
                frame = stream.read(int.from_bytes(size))
                if node in self.down:
                    return
                header, _ = decode_header(frame)
                api = APIS[header.api_key]
                _, body = api.decode_request(frame)
                self.requests.append((node, header.api_key, body))
                answer = self.fault(node, header, body)
                if answer is None:
                    answer = self.answer(api, header, node, body)
                if not answer:
                    return
                connection.sendall(answer)

    def answer(self, api: Api, header: Header, node: int, body: dict[str, Any]) -> bytes:
        """The frame that a broker sends."""
        made = {18: self._versions, 3: self._metadata, 2: self._ends, 1: self._fetched, 23: self._epochs, 17: _shaken}
        return api.encode_response(header.correlation_id, header.version, (made | self.answers)[api.key](node, body))

    def _versions(self, node: int, body: dict[str, Any]) -> dict[str, Any]:
        rows = [
            {"api_key": api.key, "min_version": 0, "max_version": self.newest.get(api.key, 99)} for api in APIS.values()
        ]
        return {
            "error_code": 0, "api_keys": rows, "throttle_time_ms": 0, "supported_features": [],
            "finalized_features_epoch": -1, "finalized_features": [], "zk_migration_ready": False,
        }  # fmt: skip

    def _metadata(self, node: int, body: dict[str, Any]) -> dict[str, Any]:
        assert not body["allow_auto_topic_creation"]
        topics: dict[str, list[dict[str, Any]]] = {}
        for (topic, partition), log in self.logs.items():
            is_led = log.leader not in self.down
            topics.setdefault(topic, []).append(
                {
                    "error_code": 0 if is_led else 5, "partition_index": partition,
                    "leader_id": log.leader if is_led else -1, "leader_epoch": log.epoch, "replica_nodes": [],
                    "isr_nodes": [], "offline_replicas": [],
                }
            )  # fmt: skip
        ports = [server.getsockname()[1] for server in self.servers]
        return {
            "throttle_time_ms": 0,
            "brokers": [
                {"node_id": node, "host": "127.0.0.1", "port": port, "rack": None}
                for node, port in enumerate(ports)
                if node not in self.down
            ],
            "cluster_id": self.cluster_id,
            "controller_id": 0,
            "topics": [
                {
                    "error_code": 0, "name": topic, "topic_id": self.topic_ids.get(topic, Uuid(16)),
                    "is_internal": topic.startswith("__"), "partitions": rows, "topic_authorized_operations": 0,
                }
                for topic, rows in topics.items()
            ],
            "cluster_authorized_operations": 0,
            "error_code": 0,
        }  # fmt: skip

    def _each(self, node: int, topics: list[dict[str, Any]], name: str, index: str, answer: Any) -> list[Any]:
        return [
            {name: topic[name], "partitions": [answer(self._log(node, topic[name], row[index]), row) for row in rows]}
            for topic in topics
            for rows in [topic["partitions"]]
        ]

    def _log(self, node: int, topic: str, partition: int) -> Log | None:
        log = self.logs.get((topic, partition))
        return log if log is not None and node in (log.leader, log.follower) else None

    def _ends(self, node: int, body: dict[str, Any]) -> dict[str, Any]:
        def answer(log: Log | None, row: dict[str, Any]) -> dict[str, Any]:
            offset, time_ms = -1 if log is None else log.start if row["timestamp"] == EARLIEST else log.end, -1
            if log is not None and row["timestamp"] >= 0:
                offset, time_ms = log.first_at(row["timestamp"])
            return {
                "partition_index": row["partition_index"], "error_code": 6 if log is None else 0,
                "timestamp": time_ms, "offset": offset, "leader_epoch": 0,
            }  # fmt: skip

        return {"throttle_time_ms": 0, "topics": self._each(node, body["topics"], "name", "partition_index", answer)}

    def _epochs(self, node: int, body: dict[str, Any]) -> dict[str, Any]:
        def answer(log: Log | None, row: dict[str, Any]) -> dict[str, Any]:
            epoch, end = (-1, -1) if log is None else log.epoch_end(row["leader_epoch"])
            code = 6 if log is None else 0
            return {"error_code": code, "partition": row["partition"], "leader_epoch": epoch, "end_offset": end}

        return {"throttle_time_ms": 0, "topics": self._each(node, body["topics"], "topic", "partition", answer)}

    def _fetched(self, node: int, body: dict[str, Any]) -> dict[str, Any]:
        assert (body["replica_id"], body["isolation_level"]) == (-1, 0)
        left = min(body["max_bytes"], self.most_bytes)

        def answer(log: Log | None, row: dict[str, Any]) -> dict[str, Any]:
            nonlocal left
            code, records = 6 if log is None else log.error, b""
            if log is not None and not code:
                code = int(not log.start <= row["fetch_offset"] <= log.end)
                records = b"" if code or left <= 0 else log.read(row["fetch_offset"], left)
                left -= len(records)
            nearer = -1
            if log is not None and log.follower >= 0 and body["rack_id"] and node == log.leader:
                nearer, records = log.follower, b""
            end = -1 if code or log is None else log.end
            return {
                "partition_index": row["partition"], "error_code": code, "high_watermark": end,
                "last_stable_offset": end, "log_start_offset": -1 if log is None else log.start,
                "diverging_epoch": {"epoch": -1, "end_offset": -1},
                "current_leader": {"leader_id": -1, "leader_epoch": -1},
                "snapshot_id": {"epoch": -1, "end_offset": -1}, "aborted_transactions": None,
                "preferred_read_replica": nearer, "records": records,
            }  # fmt: skip

        topics = self._each(node, body["topics"], "topic", "partition", answer)
        return {"throttle_time_ms": 0, "error_code": 0, "session_id": 0, "responses": topics}


def _shaken(node: int, body: dict[str, Any]) -> dict[str, Any]:
    return {"error_code": 0, "mechanisms": [body["mechanism"]]}
