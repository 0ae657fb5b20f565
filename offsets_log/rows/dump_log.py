"""Print events as the lines of ``kafka-dump-log --offsets-decoder`` of the newest release, for people and scripts.

References: ``tools/.../DumpLogSegments.java``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from offsets_log.errors import Damage, OffsetsLogError, UnknownRecordTypeError
from offsets_log.events import BareBatches, BatchEnd, BatchStart, Event, LogEnd, LogEvent, Passed, TailFound
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.completeness import Missing
from offsets_log.log_format.control_record import ControlRecord
from offsets_log.log_format.partition_log import Segment
from offsets_log.messages.consumer_protocol import decode_assignment, decode_subscription
from offsets_log.messages.registry import CoordinatorRecord, record_type_of
from offsets_log.messages.state_topics import StateRecord
from offsets_log.messages.transaction_log import TRANSACTION_STATES

EXPANDED = {"subscription": decode_subscription, "assignment": decode_assignment}
EXPANDED_TYPE = "consumer"
"""Protocol type of groups for whose members the tool shows these fields as JSON, where they parse."""

STATUS = "transactionStatus"
"""A name since 4.4, before a number (``K44-54``)."""

TIMESTAMP_TYPE_NAMES = {"create": "CreateTime", "log_append": "LogAppendTime", "none": "NoTimestampType"}


def iter_lines(events: Iterable[LogEvent]) -> Iterator[str]:
    """Yield the lines of a dump, without line ends; as in the original, line breaks inside a value are not escaped."""
    file: str | None = None
    for event in events:
        if isinstance(event, BatchStart) and event.segment.file != file:
            file = event.segment.file
            yield from heading(event.segment)
        if (line := event_line(event)) is not None:
            yield line


def heading(segment: Segment) -> tuple[str, str]:
    """Return the lines before the first batch of a file."""
    base_offset = segment.base_offset if segment.base_offset is not None else 0
    return f"Dumping {segment.file}", f"Log starting offset: {base_offset}"


def event_line(event: LogEvent) -> str | None:
    """Return the line of an event; None if it has none."""
    match event:
        case BatchStart(_, batch, base_offset):
            return batch_line(batch, base_offset)
        case Event():
            return record_line(event)
        case TailFound(segment, tail) if tail.kind == "torn":
            return f"Found {tail.size_bytes} invalid bytes at the end of {segment.file.rpartition('/')[2]}"
        case Damage(error):
            return f"Error at position {error.position}, skipping. {error.problem}"
        case TailFound() | BatchEnd() | Passed() | BareBatches() | LogEnd() | Missing():
            return None


def _java(flag: bool) -> str:
    return "true" if flag else "false"


def batch_line(batch: RecordBatch, base_offset: int) -> str:
    """Return the line of a batch, or of a message of magic 0 or 1."""
    time = f"{TIMESTAMP_TYPE_NAMES[batch.timestamp_type]}: {batch.max_timestamp_ms}"
    end = (
        f"position: {batch.position} {time} size: {batch.size_bytes} magic: {batch.magic} "
        f"compresscodec: {batch.compression} crc: {batch.crc} isvalid: {_java(batch.is_valid())}"
    )
    if batch.magic < 2:
        return f"offset: {batch.last_offset} {end}"
    horizon = batch.delete_horizon_ms
    return (
        f"baseOffset: {base_offset} lastOffset: {batch.last_offset} count: {batch.records_count} "
        f"baseSequence: {batch.base_sequence} lastSequence: {batch.last_sequence} producerId: {batch.producer_id} "
        f"producerEpoch: {batch.producer_epoch} partitionLeaderEpoch: {batch.partition_leader_epoch} "
        f"isTransactional: {_java(batch.is_transactional)} isControl: {_java(batch.is_control)} "
        f"deleteHorizonMs: {'OptionalLong.empty' if horizon is None else f'OptionalLong[{horizon}]'} {end}"
    )


def record_line(event: Event) -> str:
    """Return the line of a record."""
    batch, record = event.batch, event.record
    line = (
        f"| offset: {record.offset} {TIMESTAMP_TYPE_NAMES[batch.timestamp_type]}: {record.timestamp_ms} "
        f"keySize: {-1 if record.key is None else len(record.key)} "
        f"valueSize: {-1 if record.value is None else len(record.value)} "
    )
    if batch.magic < 2:
        line += f"isValid: {_java(batch.is_valid())} crc: {batch.crc}"
    else:
        line += f"sequence: {record.sequence} headerKeys: [{','.join(key for key, _ in record.headers)}]"
    match event:
        case Event(control=ControlRecord() as control):
            if control.ends_transaction:
                return f"{line} endTxnMarker: {control.type} coordinatorEpoch: {control.coordinator_epoch}"
            return f"{line} controlType: {control.type}"
        case Event(decoded=CoordinatorRecord() as decoded):
            return f"{line} key: {_key(decoded)} payload: {_payload(decoded)}"
        case Event(state=StateRecord() as state):
            return f"{line} key: {_key(state)} payload: {_state_payload(state)}"
        case Event(damage=Damage(UnknownRecordTypeError())):
            return f"{line} key: Unknown record type {record_type_of(record.key)} at offset {record.offset}, skipping."
        case Event(damage=Damage(error)):
            return f"{line} key: Error at offset {record.offset}, skipping. {error.problem}"
    return line


def json_text(value: Any) -> str:
    """Return Kafka's JSON on one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _key(decoded: CoordinatorRecord | StateRecord) -> str:
    return json_text({"type": str(decoded.record_type), "data": decoded.key_json()})


def _state_payload(decoded: StateRecord) -> str:
    data = decoded.value_json()
    if data is None:
        return "<DELETE>"
    if (status := data.get(STATUS)) is not None:
        data[STATUS] = TRANSACTION_STATES.get(status, status)
    return json_text({"version": str(decoded.value_version), "data": data})


def _payload(decoded: CoordinatorRecord) -> str:
    data = decoded.value_json()
    if data is None or decoded.value is None:
        return "<DELETE>"
    if decoded.record_type == 2 and decoded.value.get("protocol_type") == EXPANDED_TYPE:
        for member, raw in zip(data["members"], decoded.value["members"], strict=True):
            _expand_member(member, raw)
    return json_text({"version": str(decoded.value_version), "data": data})


def _expand_member(member: dict[str, Any], raw: dict[str, Any]) -> None:
    for name in EXPANDED:
        expanded = expand(name, raw[name])
        if expanded is not None:
            member[name] = expanded


def expand(name: str, data: bytes) -> Any:
    """Return a member's field of `EXPANDED` as JSON; None where it does not parse."""
    try:
        return EXPANDED[name](data).to_json()
    except OffsetsLogError:
        return None
