"""Read what the console consumer prints of ``__consumer_offsets`` through Kafka's own formatters.

3.9 and on    JSON objects, one after the other without separators: ``{"key":{"type":1,"data":{…}},"value":{…}}``
2.1 – 3.8     ``[g,t,0]::OffsetAndMetadata(offset=1, …)`` and ``g::GroupMetadata(groupId=g, …)``
0.9 – 2.0     ``[g,t,0]::[OffsetMetadata[1,m],CommitTime 2,ExpirationTime 3]``
0.9 – 0.10    ``g::[g,Some(consumer),Stable,Map(…)]``
0.8.2         ``[g,t,0]::OffsetAndMetadata[1,m,2]``

A null value is ``NULL``. The text has no record offsets: records are numbered in order. Each formatter prints only some
types of records, so a text holds offsets or groups, or both if two texts were joined.

References: ``GroupMetadataManager.OffsetsMessageFormatter``, ``CoordinatorRecordMessageFormatter.java``.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from offsets_log.dumps.dump_log_text import NotTold
from offsets_log.dumps.formatter_text import Entry, iter_parts
from offsets_log.dumps.kafka_json import UnknownFields, record_bytes
from offsets_log.dumps.source import Remark, SegmentPlace, SourceBatch, SourcePiece, Untold, header
from offsets_log.dumps.untold import CONSEQUENCE, is_commit, untold_batch
from offsets_log.errors import CorruptRecordError, Damage, InputError, OffsetsLogError, UnsupportedError
from offsets_log.log_format.partition_log import OF_GROUPS, UNRECORDED_GROUPS
from offsets_log.log_format.record import Record
from offsets_log.log_format.segment import Buffer
from offsets_log.messages.consumer_protocol import CONSUMER_PROTOCOL_SUBSCRIPTION, Embedded, encode_embedded
from offsets_log.messages.internal_topics import OFFSETS_TOPIC
from offsets_log.messages.registry import CoordinatorRecord, encode_coordinator_record, record_type_of
from offsets_log.messages.state_topics import STATE_RECORD_TYPES
from offsets_log.replay.groups import GROUP_METADATA
from offsets_log.words import counted

OBJECT = re.compile(r'^[\s,\[]*\{\s*"key"\s*:\s*(?:\{|null)', re.MULTILINE)
LINE_OF_JSON = re.compile(r'\s*\{"key":')
MEMBERS = (
    re.compile(
        r"MemberMetadata\(memberId=(?P<member>.*?), (?:groupInstanceId=(?:None|Some\((?P<instance>.*?)\)), )?"
        r"clientId=(?P<client>.*?), clientHost=(?P<host>.*?), sessionTimeoutMs=(?P<session>\d{1,10}), "
        r"rebalanceTimeoutMs=(?P<rebalance>\d{1,10}), supportedProtocols=",
        re.DOTALL,
    ),
    re.compile(r" -> \[(?P<member>[^\]]*?),(?P<client>[^,\]]*),(?P<host>/[^,\]]*),(?P<session>\d{1,10})\]"),
)
ANY_LINE = re.compile(
    r"^(?:\[.*,[^,\n]*,\d+\]::(?:NULL|\[?Offset)|.*::(?:GroupMetadata\(groupId=|\[.*,\w*Map\(|NULL\r?$))", re.MULTILINE
)
OFFSET_TYPES = (b"\x00\x00", b"\x00\x01")
NO_METADATA = "NO_METADATA"
UNTOLD = frozenset(
    {
        "record_offset", "batch_base_offset", "timestamp_ms",
        "timestamp_type", "magic", "compression", "producer_id", "producer_epoch", "is_transactional",
    }
)  # fmt: skip
UNTOLD_OF_LINES = UNTOLD | {"topic_id", "value_version"}
UNTOLD_OF_GROUPS = UNTOLD | {
    "leader", "current_state_timestamp_ms", "rack_id", "subscribed_topics", "subscription_base64", "assignment_base64",
    "protocol", "assignment", "value_version", "currentStateTimestamp", "subscription",
}  # fmt: skip
UNTOLD_UP_TO_0_10 = UNTOLD_OF_GROUPS | {"generation", "rebalance_timeout_ms", "rebalanceTimeout"}
UNTOLD_WITHOUT_OFFSETS = frozenset({"committed_offset"})
"""Columns that the formatters of groups leave out."""

REMARK = Remark(
    "no record offsets and no transaction markers are told: records are taken in the order of the text, and offsets of "
    "open and aborted transactions like all others"
)

CLASSIC_ALONE = Remark(
    "the formatter that printed this prints classic groups alone: those of the consumer protocol, share groups and "
    "streams groups of the topic are not in it"
)
"""KAFKA-18201."""

OFFSETS_ALONE = Remark(
    "one formatter prints offsets and another groups, and these may have printed other stretches of the topic: what a "
    "group is that has offsets here, and no record of its own, is unknown (null)"
)

OTHER_TOPICS = {
    frozenset(field.json_name for field in row.key.fields): topic
    for topic, rows in STATE_RECORD_TYPES.items()
    for row in rows.values()
}
"""Fields of a key in JSON → the topic that has such keys, which has a formatter of its own (KAFKA-17633)."""

Told = tuple[bytes, bytes | None, frozenset[str]]


def is_formatter(text: str) -> bool:
    """Return whether a text has a JSON object of a formatter, also in an array or printed by jq, or its line."""
    return bool(LINE_OF_JSON.match(text) or OBJECT.search(text) or ANY_LINE.search(text))


def read(buffer: Buffer) -> Iterator[SourcePiece]:
    """Yield one batch for each record: its real batch is not known."""
    yield REMARK
    records: list[_Printed] = []
    types_in_json: set[int] = set()
    of_others: Counter[str] = Counter()
    is_damaged = False
    for line, item in iter_parts(bytes(buffer).decode(errors="replace")):
        if isinstance(item, Damage | Remark):
            is_damaged |= isinstance(item, Damage)
            yield item
            continue
        if (topic := _other_topic(item)) is not None:
            of_others[topic] += 1
            continue
        try:
            key, value, missing_columns = _told(item)
        except OffsetsLogError as error:
            is_damaged = True
            yield Damage(error.at(position=line), json.dumps(item, default=str).encode(errors="replace"))
            if not isinstance(error, UnknownFields):
                continue
            key, value, missing_columns = error.key, error.value, UNTOLD
        if not isinstance(item, Entry):
            types_in_json.add(record_type_of(key) or 0)
        record = Record(offset=len(records), position=line, key=key, value=value)
        records.append(_Printed(record, missing_columns, isinstance(item, Entry) and item.is_doubtful))
    yield from _told_of_others(of_others, is_alone=not records and not is_damaged)
    yield from _batches(records)
    if max(types_in_json, default=None) == GROUP_METADATA:
        yield CLASSIC_ALONE
    yield from _untold(records)


def _untold(records: Sequence[_Printed]) -> Iterator[SourcePiece]:
    """Yield what a text with the records of one formatter, or of both, does not tell."""
    with_offsets = {printed.group for printed in records if printed.is_offset}
    with_records = {printed.group for printed in records if not printed.is_offset}
    if not with_records:
        yield Untold(SegmentPlace(), OF_GROUPS)
    elif with_offsets - with_records:
        yield OFFSETS_ALONE
        yield Untold(SegmentPlace(), frozenset({UNRECORDED_GROUPS}))
    if not with_offsets:
        yield Untold(SegmentPlace(), UNTOLD_WITHOUT_OFFSETS)


class _Printed(NamedTuple):
    """A record as it was printed."""

    record: Record
    missing_columns: frozenset[str]
    is_doubtful: bool

    @property
    def is_offset(self) -> bool:
        """Whether the formatter of offsets prints it, or that of groups."""
        return self.record.key is not None and self.record.key[:2] in OFFSET_TYPES

    @property
    def group(self) -> bytes:
        """The group's length and name, in bytes."""
        key = self.record.key or b""
        return key[2 : 4 + int.from_bytes(key[2:4])]


def _batches(records: list[_Printed]) -> Iterator[SourcePiece]:
    """Yield records as batches; offsets of groups that were deleted too are untold.

    No formatter prints both: of two texts that were joined nothing tells whether a group was deleted before or after.
    """
    deleted = {printed.group for printed in records if not printed.is_offset and printed.record.value is None}
    first = count = 0
    for printed in records:
        record, missing_columns, is_doubtful = printed
        is_unordered = is_commit(record) and printed.group in deleted
        count += is_unordered
        first = first or record.position * is_unordered
        if is_doubtful or is_unordered:
            yield untold_batch(SegmentPlace(), record, missing_columns)
        else:
            yield SourceBatch(SegmentPlace(), header((record,), line=record.position), (record,), missing_columns)
    if count:
        words = (
            f"from line {first} on {counted(count, 'offset is', 'offsets are')} of groups that were deleted too: one "
            "formatter prints offsets and another groups, and nothing tells which of these came first"
        )
        yield Damage(NotTold(f"{words}, {CONSEQUENCE}", position=first), b"")


def _other_topic(item: dict[str, Any] | Entry) -> str | None:
    """Return the topic that an object is of, where its key is none of a group coordinator's."""
    key = None if isinstance(item, Entry) else item.get("key")
    data = key.get("data") if isinstance(key, dict) else None
    return OTHER_TOPICS.get(frozenset(data)) if isinstance(data, dict) else None


def _told_of_others(found: Counter[str], *, is_alone: bool) -> Iterator[Remark]:
    """Yield what is left out of each other topic. Raises InputError if nothing else is in the text."""
    for topic, count in found.items():
        if is_alone:
            raise InputError(
                f"this is another topic, {topic}: no group coordinator wrote its records. Print {OFFSETS_TOPIC} with "
                "Kafka's formatters of offsets and of groups"
            )
        yield Remark(f"{counted(count, 'object is', 'objects are')} left out, of another topic: {topic}")


def _told(item: dict[str, Any] | Entry) -> Told:
    if not isinstance(item, Entry):
        return _from_json(item)
    return _group(item) if item.topic is None else _offset(item)


def _from_json(item: dict[str, Any]) -> Told:
    key, value = item.get("key"), item.get("value", ...)
    if not isinstance(key, dict) or not isinstance(value, dict | None):
        raise CorruptRecordError("it has no key and value")
    number = key.get("type", key.get("version"))
    version, data = (None, None) if value is None else (value.get("version"), value.get("data"))
    if "unknown" in (key.get("data"), data):
        raise UnsupportedError(f"a record of type {number} that the formatter did not know")
    if value is not None and data is None:
        raise CorruptRecordError("the value has no data", field="value")
    return *record_bytes(number, key.get("data"), version, data), UNTOLD


def _offset(entry: Entry) -> Told:
    key = {"group": entry.group, "topic": entry.topic, "partition": entry.partition}
    if (facts := entry.facts) is None:
        return *encode_coordinator_record(CoordinatorRecord(record_type=1, key=key)), UNTOLD
    expire = facts.get("expire")
    value = {
        "offset": _int(facts["offset"]),
        "leader_epoch": _int(facts.get("epoch") or "-1"),
        "metadata": "" if facts["metadata"] == NO_METADATA else facts["metadata"],
        "commit_timestamp": _int(facts["commit"]),
        "expire_timestamp": _int(expire or "-1"),
    }
    version = 1 if expire is not None else 3
    made = CoordinatorRecord(record_type=1, key=key, value_version=version, value=value)
    return *encode_coordinator_record(made), UNTOLD_OF_LINES


def _int(text: str) -> int:
    if len(text) > 20:
        raise CorruptRecordError(f"{text[:40]} is too large")
    return int(text)


def _group(entry: Entry) -> Told:
    key = {"group": entry.group}
    if (facts := entry.facts) is None:
        return *encode_coordinator_record(CoordinatorRecord(record_type=2, key=key)), UNTOLD
    members = [_member(match) for form in MEMBERS for match in form.finditer(facts["members"])]
    if len(members) < (facts["members"] != ""):
        raise CorruptRecordError("its members are not readable", field="value")
    value = {
        "protocol_type": facts["type"] or "",
        "generation": _int(facts.get("generation") or "0"),
        "protocol": "" if members else None,
        "leader": None,
        "current_state_timestamp": -1,
        "members": members,
    }
    made = CoordinatorRecord(record_type=2, key=key, value_version=3, value=value)
    missing_columns = UNTOLD_OF_GROUPS if "generation" in facts else UNTOLD_UP_TO_0_10
    return *encode_coordinator_record(made), missing_columns


def _member(found: re.Match[str]) -> dict[str, Any]:
    facts = found.groupdict()
    session = _int(facts["session"])
    subscription = Embedded(CONSUMER_PROTOCOL_SUBSCRIPTION, 0, {"topics": [], "user_data": None})
    return {
        "member_id": facts["member"],
        "group_instance_id": facts.get("instance"),
        "client_id": facts["client"],
        "client_host": facts["host"],
        "rebalance_timeout": _int(facts.get("rebalance") or str(session)),
        "session_timeout": session,
        "subscription": encode_embedded(subscription),
        "assignment": b"",
    }
