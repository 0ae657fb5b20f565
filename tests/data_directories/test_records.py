"""Records of the internal topics as kafka-dump-log prints them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.control_record import control_type
from offsets_log.log_format.partition_log import PartitionLog, Segment, iter_log
from offsets_log.log_format.record import Record, iter_records
from offsets_log.messages.cluster_metadata.control import decode_control_message, encode_control_message
from offsets_log.messages.cluster_metadata.registry import decode_metadata_record, encode_metadata_record
from offsets_log.messages.schema import REDACTED
from offsets_log.messages.state_topics import (
    SHARE_GROUP_STATE,
    TRANSACTION_STATE,
    decode_state_record,
    encode_state_record,
)
from offsets_log.messages.transaction_log import TRANSACTION_STATES
from tests.data_directories.copies import COPIES, Recorded, dumps

METADATA = "__cluster_metadata"
_LINE = re.compile(r"^\| offset: (\d+) .*? headerKeys: \[\] (?:key: (.*) )?payload: (.*)$")
_CONTROL = re.compile(r"^\| offset: (\d+) .*? headerKeys: \[\] (LeaderChange|Snapshot\w+|KRaft\w+):? (\{.*\})$")
_OLD_VALUE = re.compile(
    r"producerId:(\d+),producerEpoch:(\d+),state=(\w+),partitions=\[(.*)\],"
    r"txnLastUpdateTimestamp=(-?\d+),txnTimeoutMs=(\d+)"
)

Property = Callable[[str, object], None]


def records_in(path: Path) -> Iterator[tuple[RecordBatch, Record]]:
    segment = Segment(path.name, int(path.name[:20]) if path.suffix == ".log" else 0, path.read_bytes())
    for _, item in iter_log(PartitionLog(None, (segment,))):
        if isinstance(item, RecordBatch):
            for record in iter_records(item):
                assert isinstance(record, Record)
                yield item, record


def printed(text: str) -> dict[int, tuple[str, str]]:
    """Offset → key and payload of all data records."""
    return {int(match[1]): (match[2], match[3]) for line in text.split("\n") if (match := _LINE.match(line))}


def old_words(value: dict[str, Any]) -> str:
    """A transaction as kafka-dump-log of 3.9 prints it."""
    partitions = [f"{row['topic']}-{n}" for row in value["transaction_partitions"] or () for n in row["partition_ids"]]
    return (
        f"producerId:{value['producer_id']},producerEpoch:{value['producer_epoch']},"
        f"state={TRANSACTION_STATES[value['transaction_status']]},partitions=[{','.join(sorted(partitions))}],"
        f"txnLastUpdateTimestamp={value['transaction_last_update_timestamp_ms']},"
        f"txnTimeoutMs={value['transaction_timeout_ms']}"
    )


def in_order(text: str) -> str:
    match = _OLD_VALUE.fullmatch(text)
    assert match is not None, text
    return text.replace(f"[{match[4]}]", f"[{','.join(sorted(filter(None, match[4].split(','))))}]")


@pytest.mark.parametrize("topic", [TRANSACTION_STATE, SHARE_GROUP_STATE])
@pytest.mark.parametrize(("name", "copy"), COPIES)
def test_state_records_are_those_of_dump_log(
    recorded: Recorded, record_property: Property, name: str, copy: str, topic: str
) -> None:
    count = 0
    for path, text in dumps(recorded(name), copy, topic):
        lines = printed(text)
        for _, record in records_in(path):
            key_text, value_text = lines.pop(record.offset)
            decoded = decode_state_record(topic, record.key, record.value)
            assert encode_state_record(decoded) == (record.key, record.value)
            if value_text.startswith("producerId:"):
                assert key_text == f"transaction_metadata::transactionalId={decoded.key['transactional_id']}"
                assert decoded.value is not None
                assert old_words(decoded.value) == in_order(value_text)
            else:
                assert json.loads(key_text) == {"type": str(decoded.type.number), "data": decoded.key_json()}
                assert json.loads(value_text) == {"version": str(decoded.value_version), "data": decoded.value_json()}
            count += 1
        assert not lines
    record_property("records", count)
    assert count or (topic == SHARE_GROUP_STATE and name.startswith("kafka-3.9"))


def without_secrets(data: dict[str, Any], ours: dict[str, Any]) -> dict[str, Any]:
    return {name: REDACTED if ours.get(name) == REDACTED else value for name, value in data.items()}


@pytest.mark.parametrize(("name", "copy"), COPIES)
def test_metadata_records_are_those_of_dump_log(
    recorded: Recorded, record_property: Property, name: str, copy: str
) -> None:
    """Snapshots too."""
    count = 0
    redacted = set()
    for path, text in dumps(recorded(name), copy, METADATA):
        lines = printed(text)
        for batch, record in records_in(path):
            if batch.is_control:
                continue
            _, value_text = lines.pop(record.offset)
            decoded, expected = decode_metadata_record(record.value), json.loads(value_text)
            assert encode_metadata_record(decoded) == record.value
            kind = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", decoded.name).upper()
            assert (kind, decoded.version) == (expected["type"], expected["version"])
            shown = decoded.to_json()
            assert shown is not None
            assert shown == without_secrets(expected["data"], shown)
            redacted |= {(decoded.name, field) for field, value in shown.items() if value == REDACTED}
            count += 1
        assert not lines
    record_property("records", count)
    assert count > 80
    if name != "kafka-4.3-three":
        scram = {("UserScramCredentialRecord", field) for field in ("salt", "storedKey", "serverKey")}
        assert redacted == scram | {("ConfigRecord", "value")}


@pytest.mark.parametrize(("name", "copy"), COPIES)
def test_control_records_are_those_of_dump_log(recorded: Recorded, name: str, copy: str) -> None:
    seen = set()
    for path, text in dumps(recorded(name), copy, METADATA):
        lines = {int(m[1]): json.loads(m[3]) for line in text.split("\n") if (m := _CONTROL.match(line))}
        for batch, record in records_in(path):
            if not batch.is_control:
                continue
            message = decode_control_message(control_type(record), record.value)
            assert encode_control_message(message) == record.value
            if record.offset in lines:  # of elections the tool of 3.9 prints no more than that they are
                assert message.to_json() == lines.pop(record.offset)
            seen.add(message.type)
        assert not lines
    voters = {"KRAFT_VERSION", "KRAFT_VOTERS"} if "dynamic" in name else set()
    assert seen == {"LEADER_CHANGE", "SNAPSHOT_HEADER", "SNAPSHOT_FOOTER"} | voters
