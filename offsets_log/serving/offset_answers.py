"""Answers about offsets: what was committed, where share groups are, where logs begin and end.

References: ``OffsetMetadataManager.fetchOffsets``, ``KafkaApis.fetchAllOffsetsForGroup``,
``DescribeShareGroupOffsetsResponse``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set

from offsets_log.coordinator.errors import CoordinatorError
from offsets_log.coordinator.validation import MemberIdentity, validate_fetch
from offsets_log.errors import OffsetsLogError
from offsets_log.log_format.primitives import ZERO_UUID, Uuid
from offsets_log.protocol.error_codes import (
    GROUP_ID_NOT_FOUND,
    NO_ERROR,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSTABLE_OFFSET_COMMIT,
)
from offsets_log.protocol.fetch import READ_UNCOMMITTED
from offsets_log.protocol.list_offsets import EARLIEST, EARLIEST_LOCAL, LATEST, MAX_TIMESTAMP
from offsets_log.replay.group import SHARE
from offsets_log.rows.tables import Row
from offsets_log.serving.asked import Asked, Body
from offsets_log.serving.log_reader import LogReader, TimedRecord
from offsets_log.serving.offsets import NO_LEADER_EPOCH, CommittedOffset
from offsets_log.serving.state import Ends, Served

NO_OFFSET = -1


def fetch_offsets(served: Served, body: Body, asked: Asked) -> Body:
    """Answer OffsetFetch: the offsets of groups that exist (``J-15``), all of a group or those asked for.

    Up to version 7 a request is about one group.
    """
    if asked.version < 8:
        answered = _fetched(served, body, body)
        return {"throttle_time_ms": 0, "topics": answered["topics"], "error_code": answered["error_code"]}
    groups = {row["group_id"]: row for row in body["groups"]}
    return {"throttle_time_ms": 0, "groups": [_fetched(served, row, body) for row in groups.values()]}


def _fetched(served: Served, row: Body, body: Body) -> Body:
    group_id, topics = row["group_id"], row["topics"]
    answer: Body = {"group_id": group_id, "topics": [], "error_code": NO_ERROR}
    if refusal := served.refusal(group_id):
        return answer | _refused(topics or (), refusal["error_code"])
    group = served.groups.get(group_id)
    try:
        if group is not None:
            validate_fetch(group, MemberIdentity(row.get("member_id") or "", None, row.get("member_epoch", -1)))
    except CoordinatorError as error:
        return answer | {"error_code": int(error.error)}
    has_offsets = group is not None and group.kind != SHARE
    found = served.offsets.of(group_id) if has_offsets else {}
    asked: Mapping[str, Sequence[int] | None] = (
        dict.fromkeys(found)
        if topics is None
        else _merged((topic["name"], topic["partition_indexes"]) for topic in topics)
    )
    is_stable_asked = body.get("require_stable", False)
    unstable = {key[1:] for key in served.pending if key[0] == group_id and is_stable_asked}
    answer["topics"] = [
        {"name": topic, "partitions": _partitions(topic, partitions, found.get(topic, ()), unstable)}
        for topic, partitions in asked.items()
    ]
    return answer


def _refused(topics: Sequence[Body], error_code: int) -> Body:
    """Return an error of a group: of each partition too, as version 1 has no other."""
    none = {"committed_offset": NO_OFFSET, "committed_leader_epoch": NO_LEADER_EPOCH, "metadata": ""}
    rows = [
        {
            "name": topic["name"],
            "partitions": [
                none | {"partition_index": number, "error_code": error_code} for number in topic["partition_indexes"]
            ],
        }
        for topic in topics
    ]
    return {"topics": rows, "error_code": error_code}


def _merged(rows: Iterable[tuple[str, Sequence[int]]]) -> Mapping[str, list[int]]:
    found: dict[str, list[int]] = {}
    for name, partitions in rows:
        found.setdefault(name, []).extend(partitions)
    return found


def _partitions(
    topic: str,
    asked: Sequence[int] | None,
    offsets: Sequence[CommittedOffset],
    unstable: Set[tuple[str, int]],
) -> list[Body]:
    """Return the rows of a topic: all, or of each partition asked for, −1 where there is no offset."""
    found = offsets
    if asked is not None:
        known, none = {offset[0]: offset for offset in offsets}, (NO_OFFSET, NO_LEADER_EPOCH, "")
        found = [known.get(partition, (partition, *none)) for partition in asked]
    return [
        _UNSTABLE | {"partition_index": partition}
        if unstable and (topic, partition) in unstable
        else {
            "partition_index": partition,
            "committed_offset": committed_offset,
            "committed_leader_epoch": leader_epoch,
            "metadata": metadata,
            "error_code": NO_ERROR,
        }
        for partition, committed_offset, leader_epoch, metadata in found
    ]


_UNSTABLE = {
    "committed_offset": NO_OFFSET,
    "committed_leader_epoch": NO_LEADER_EPOCH,
    "metadata": "",
    "error_code": UNSTABLE_OFFSET_COMMIT,
}


# ------------------------------------------------------------------------------------- share groups


def share_offsets(served: Served, body: Body, _: Asked) -> Body:
    """Answer DescribeShareGroupOffsets: all of a group that are initialized, or those asked for."""
    groups = {row["group_id"]: row["topics"] for row in body["groups"]}
    return {"throttle_time_ms": 0, "groups": [_share_group(served, *group) for group in groups.items()]}


def _share_group(served: Served, group_id: str, topics: Sequence[Body] | None) -> Body:
    answer: Body = {"group_id": group_id, "topics": [], "error_code": NO_ERROR, "error_message": None}
    if refusal := served.refusal(group_id):
        return answer | refusal
    group = served.groups.get(group_id)
    if group is None or group.kind != SHARE:
        return answer | {"error_code": GROUP_ID_NOT_FOUND, "error_message": f"Group {group_id} not found."}
    known: dict[str, dict[int, Row]] = {}
    for row in served.share_offsets.get(group_id, ()):
        known.setdefault(row["topic"], {})[row["partition"]] = row
    if topics is None:
        asked: Mapping[str, Sequence[int]] = {topic: sorted(rows) for topic, rows in sorted(known.items())}
    else:
        asked = _merged((topic["topic_name"], topic["partitions"]) for topic in topics)
    answer["topics"] = [
        {
            "topic_name": topic,
            "topic_id": _topic_id(known.get(topic, {})),
            "partitions": [_share_partition(number, known.get(topic, {}).get(number)) for number in partitions],
        }
        for topic, partitions in asked.items()
    ]
    return answer


def _topic_id(rows: Mapping[int, Row]) -> Uuid:
    return next((Uuid.from_text(row["topic_id"]) for row in rows.values()), ZERO_UUID)


def _share_partition(number: int, row: Row | None) -> Body:
    told: Row = {} if row is None else row
    start, epoch, lag = (told.get(name) for name in ("start_offset", "leader_epoch", "lag"))
    return {
        "partition_index": number,
        "start_offset": NO_OFFSET if start is None else start,
        "leader_epoch": 0 if epoch is None else epoch,
        "lag": NO_OFFSET if lag is None else lag,
        "error_code": NO_ERROR,
        "error_message": None,
    }


# --------------------------------------------------------------------------------------- ends of logs


def list_offsets(served: Served, body: Body, _: Asked) -> Body:
    """Answer ListOffsets: −1 where the copy does not tell, which tools show as it is.

    For who reads committed records alone, a log ends where its first open transaction begins.
    """
    is_committed = body.get("isolation_level", READ_UNCOMMITTED) != READ_UNCOMMITTED
    return {
        "throttle_time_ms": 0,
        "topics": [
            {
                "name": topic["name"],
                "partitions": [
                    _listed(served, topic["name"], asked, is_committed=is_committed) for asked in topic["partitions"]
                ],
            }
            for topic in body["topics"]
        ],
    }


def _listed(served: Served, name: str, asked: Body, *, is_committed: bool) -> Body:
    topic, number = served.topics.get(name), asked["partition_index"]
    row: Body = {
        "partition_index": number,
        "error_code": NO_ERROR,
        "timestamp": -1,
        "offset": NO_OFFSET,
        "leader_epoch": -1,
    }
    if topic is None or number not in topic.partitions:
        return row | {"error_code": UNKNOWN_TOPIC_OR_PARTITION}
    ends = topic.ends.get(number)
    if ends is None:
        return row
    try:
        log = served.logs.of(name, number)
        if is_committed and log is not None:
            ends = ends._replace(end_offset=log.last_stable_offset(ends.end_offset))
        known = {LATEST: ends.end_offset, EARLIEST: ends.start_offset, EARLIEST_LOCAL: ends.start_offset}
        if asked["timestamp"] in known:
            return row | {"offset": known[asked["timestamp"]], "leader_epoch": ends.leader_epoch}
        place = _place_of(log, ends, asked["timestamp"])
    except OffsetsLogError as error:
        served.logs.tell(f"{name}-{number} cannot be searched: {error}")
        return row | {"error_code": UNKNOWN_SERVER_ERROR}
    if place is None:
        return row
    return row | {"timestamp": place.timestamp_ms, "offset": place.offset, "leader_epoch": place.leader_epoch}


def _place_of(log: LogReader | None, ends: Ends, timestamp: int) -> TimedRecord | None:
    """Return the first record as late as a time, or with the largest one; None where there is none.

    Raises:
        OffsetsLogError: the log cannot be read there.
    """
    if log is None:
        return None
    if timestamp == MAX_TIMESTAMP:
        return log.at_largest_time(ends.start_offset, ends.end_offset)
    return None if timestamp < 0 else log.at_time(timestamp, ends.start_offset, ends.end_offset)
