"""Answers to Fetch: batches of the copy's logs as they are, whole and bounded, up to where consumers may read.

A client that has reached the end waits as at a broker, so that it does not ask again at once; one that would wait for
more bytes than there are gets those that there are, as no more come.

References: ``ReplicaManager.readFromLog``, ``FetchSession.java``.
"""

from __future__ import annotations

from offsets_log.errors import CorruptBatchError, OffsetsLogError
from offsets_log.protocol.error_codes import (
    CORRUPT_MESSAGE,
    FETCH_SESSION_ID_NOT_FOUND,
    KAFKA_STORAGE_ERROR,
    NO_ERROR,
    OFFSET_OUT_OF_RANGE,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from offsets_log.protocol.fetch import NO_EPOCH, NO_SESSION, READ_UNCOMMITTED
from offsets_log.serving.asked import Asked, Body
from offsets_log.serving.log_reader import LogReader
from offsets_log.serving.state import Ends, Served

MOST_BYTES = 1 << 20
"""How large an answer may be; only a batch that is larger alone exceeds it."""
MOST_WAIT_MS = 5000

_PARTITION: Body = {
    "error_code": NO_ERROR,
    "high_watermark": -1,
    "last_stable_offset": -1,
    "log_start_offset": -1,
    "diverging_epoch": NO_EPOCH,
    "current_leader": {"leader_id": -1, "leader_epoch": -1},
    "snapshot_id": NO_EPOCH,
    "aborted_transactions": None,
    "preferred_read_replica": -1,
    "records": b"",
}


class _Room:
    """How many bytes an answer may still take."""

    def __init__(self, most_bytes: int) -> None:
        self.left = max(min(most_bytes, MOST_BYTES), 0)
        self.taken = 0

    def take(self, raw: bytes) -> None:
        self.left -= len(raw)
        self.taken += len(raw)


def fetch(served: Served, body: Body, _: Asked) -> Body:
    """Answer Fetch; sessions are not kept, so that each request names all its partitions.

    ``wait_ms`` of the answer says how long it is to be held back.
    """
    answer: Body = {"throttle_time_ms": 0, "error_code": NO_ERROR, "session_id": NO_SESSION, "responses": []}
    if body.get("session_id", NO_SESSION) != NO_SESSION:
        return answer | {"error_code": FETCH_SESSION_ID_NOT_FOUND}
    asked = {(topic["topic"], row["partition"]): row for topic in body["topics"] for row in topic["partitions"]}
    is_committed = body["isolation_level"] != READ_UNCOMMITTED
    room = _Room(body["max_bytes"])
    topics: dict[str, list[Body]] = {}
    for (topic, partition), row in asked.items():
        found = _fetched(served, topic, row, room, is_committed=is_committed)
        topics.setdefault(topic, []).append(_PARTITION | {"partition_index": partition} | found)
    answer["responses"] = [{"topic": topic, "partitions": rows} for topic, rows in topics.items()]
    is_error = any(row["error_code"] for rows in topics.values() for row in rows)
    is_waiting = not room.taken and body["min_bytes"] > 0 and not is_error
    return answer | {"wait_ms": min(max(body["max_wait_ms"], 0), MOST_WAIT_MS) if is_waiting else 0}


def _fetched(served: Served, name: str, row: Body, room: _Room, *, is_committed: bool) -> Body:
    """Return what there is of a partition, or why there is nothing."""
    topic, partition = served.topics.get(name), row["partition"]
    ends = None if topic is None else topic.ends.get(partition)
    try:
        log = None if ends is None else served.logs.of(name, partition)
        if ends is None or log is None:
            return {"error_code": UNKNOWN_TOPIC_OR_PARTITION}
        if not ends.start_offset <= row["fetch_offset"] <= ends.end_offset:
            return {"error_code": OFFSET_OUT_OF_RANGE}
        return _read(log, ends, row, room, is_committed=is_committed)
    except OffsetsLogError as error:
        served.logs.tell(f"{name}-{partition} cannot be read on: {error}")
        is_corrupt = isinstance(error, CorruptBatchError)
        return {"error_code": CORRUPT_MESSAGE if is_corrupt else KAFKA_STORAGE_ERROR}


def _read(log: LogReader, ends: Ends, row: Body, room: _Room, *, is_committed: bool) -> Body:
    """Return batches and ends; the last stable offset only to who asks for it, as every batch is looked at for it."""
    offset, end = row["fetch_offset"], ends.end_offset
    found: Body = {"high_watermark": end, "log_start_offset": ends.start_offset}
    if is_committed:
        end = found["last_stable_offset"] = log.last_stable_offset(end)
    is_first = not room.taken
    most_bytes = min(room.left, max(row["partition_max_bytes"], 0))
    if most_bytes or is_first:
        found["records"] = log.read(offset, end, most_bytes, is_first=is_first)
        room.take(found["records"])
    if is_committed:
        found["aborted_transactions"] = [
            {"producer_id": one.producer_id, "first_offset": one.first_offset}
            for one in log.aborted(offset, end, ends.end_offset)
        ]
    return found
