"""Records of the other internal topics: Kafka's own classes, secrets, and hostile bytes."""

from __future__ import annotations

import json
import lzma
from collections import Counter
from contextlib import suppress
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offsets_log.errors import CorruptRecordError, OffsetsLogError, UnknownRecordTypeError, UnsupportedVersionError
from offsets_log.log_format.control_record import CONTROL_TYPES
from offsets_log.log_format.primitives import UVARINT
from offsets_log.messages.cluster_metadata.config_names import is_sensitive
from offsets_log.messages.cluster_metadata.control import (
    CONTROL_MESSAGES,
    decode_control_message,
    encode_control_message,
)
from offsets_log.messages.cluster_metadata.registry import (
    METADATA_RECORDS,
    decode_metadata_record,
    encode_metadata_record,
)
from offsets_log.messages.layouts import versions_of
from offsets_log.messages.schema import REDACTED, Message
from offsets_log.messages.state_topics import (
    SHARE_GROUP_STATE,
    STATE_RECORD_TYPES,
    TRANSACTION_STATE,
    decode_state_record,
    encode_state_record,
)
from tests.conftest import VECTORS, json_lines

METADATA, CONTROL = "__cluster_metadata", "control"
LINES = 1648


@cache
def vectors() -> list[dict[str, Any]]:
    packed = (VECTORS / f"state-and-metadata-{release}.jsonl.xz" for release in ("4.3.0", "4.4.0"))
    return [line for file in packed for line in json_lines(lzma.decompress(file.read_bytes()).decode())]


def bytes_of(line: dict[str, Any], part: str) -> bytes | None:
    text = line[f"{part}_hex"]
    return None if text is None else bytes.fromhex(text)


def redacted(table: Message, json_value: Any) -> Any:
    """Kafka's JSON with what the table calls secret taken out."""
    if json_value is None:
        return None
    secret = {
        row.json_name
        for row in table.fields
        if row.secret is not None and row.secret({**json_value, "name": json_value.get("name")})
    }
    return {name: REDACTED if name in secret and value is not None else value for name, value in json_value.items()}


def test_state_records_of_kafkas_own_classes() -> None:
    counts: Counter[tuple[str, str, int | None]] = Counter()
    for line in vectors():
        if line["log"] not in STATE_RECORD_TYPES:
            continue
        key, value = bytes_of(line, "key"), bytes_of(line, "value")
        record = decode_state_record(line["log"], key, value)
        assert record.key_json() == line["key_json"]
        assert record.value_json() == line["value_json"]
        assert (record.name, record.value_version) == (line["name"], line["value_version"])
        assert record.is_tombstone == (value is None)
        assert encode_state_record(record) == (key, value)
        counts[line["log"], record.name, record.value_version] += 1
    assert set(counts) == {
        (topic, row.name, version)
        for topic, rows in STATE_RECORD_TYPES.items()
        for row in rows.values()
        for version in [None, *versions_of(row.values[0])]
    }


def test_metadata_records_of_kafkas_own_classes() -> None:
    counts: Counter[tuple[int, int]] = Counter()
    for line in vectors():
        if line["log"] != METADATA:
            continue
        value = bytes_of(line, "value")
        record = decode_metadata_record(value)
        assert (record.api_key, record.name, record.version) == (
            line["record_type"],
            line["name"],
            line["value_version"],
        )
        assert record.to_json() == redacted(METADATA_RECORDS[record.api_key], line["value_json"])
        assert encode_metadata_record(record) == value
        counts[record.api_key, record.version] += 1
    assert set(counts) == {(api, version) for api, table in METADATA_RECORDS.items() for version in versions_of(table)}


def test_control_records_of_kafkas_own_classes() -> None:
    """The value's first field names the layout; vectors have any number there."""
    seen = set()
    for line in vectors():
        if line["log"] != CONTROL:
            continue
        type_name, value = CONTROL_TYPES[line["record_type"]], bytes_of(line, "value")
        assert value is not None
        value = line["value_version"].to_bytes(2) + value[2:]
        message = decode_control_message(type_name, value)
        assert message.version == line["value_version"]
        assert message.to_json() == {**line["value_json"], "version": line["value_version"]}
        assert encode_control_message(message) == value
        seen.add(type_name)
    assert seen == set(CONTROL_MESSAGES)


def test_all_vectors_are_read() -> None:
    counts = Counter(line["log"] for line in vectors())
    assert set(counts) == {TRANSACTION_STATE, SHARE_GROUP_STATE, METADATA, CONTROL}
    assert sum(counts.values()) == LINES


# ------------------------------------------------------------------------------------------------- secrets


def test_no_secret_is_in_any_json() -> None:
    """Not the bytes of credentials, not the ids of tokens, not values of configurations that may be passwords."""
    hidden = {"UserScramCredentialRecord": ("salt", "storedKey", "serverKey"), "DelegationTokenRecord": ("tokenId",)}
    for line in vectors():
        if line["log"] != METADATA or line["name"] not in hidden:
            continue
        shown = decode_metadata_record(bytes_of(line, "value")).to_json()
        assert shown is not None
        assert {shown[name] for name in hidden[line["name"]]} == {REDACTED}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("retention.ms", False),
        ("consumer.session.timeout.ms", False),
        ("streams.assignor.name", False),
        ("errors.deadletterqueue.topic.name", False),
        ("listener.name.external.ssl.keystore.location", False),
        ("ssl.keystore.password", True),
        ("listener.name.external.listener.name.internal.ssl.keystore.location", True),
        ("listener.name.external.ssl.keystore.password", True),
        ("listener.name.external.scram-sha-256.sasl.jaas.config", True),
        ("a.plugin.of.our.own", True),
    ],
)
def test_configurations_that_may_be_secrets(name: str, expected: bool) -> None:
    assert is_sensitive(name) is expected
    table = METADATA_RECORDS[4]
    shown = table.to_json({"resource_type": 4, "resource_name": "1", "name": name, "value": "v"}, 0)
    assert shown["value"] == (REDACTED if expected else "v")
    assert table.to_json({"resource_type": 4, "resource_name": "1", "name": name, "value": None}, 0)["value"] is None


# ------------------------------------------------------------------------------------------ unknown, hostile


def test_unknown_metadata_records_are_kept() -> None:
    """API keys and versions that no table has: their bytes come back, and are not shown."""
    for value in (b"\x01\x63\x00secret", b"\x01\x02\x07secret", b"\x81\x00\x63\x00"):
        record = decode_metadata_record(value)
        assert not record.is_known
        assert record.to_json() is None
        assert encode_metadata_record(record) == value


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (None, CorruptRecordError),
        (b"", CorruptRecordError),
        (b"\x00\x02\x00", UnsupportedVersionError),
        (b"\x01\xff\xff\xff\xff\x0f\x00", CorruptRecordError),
        (b"\x01\x18\x00\x00left over", CorruptRecordError),
        (b"\x01\x02\x00\xff\xff\xff\xff\x0f", CorruptRecordError),
    ],
)
def test_metadata_records_that_are_refused(value: bytes | None, error: type[OffsetsLogError]) -> None:
    with pytest.raises(error):
        decode_metadata_record(value)


def test_a_bool_that_is_neither_keeps_its_byte() -> None:
    value = bytes.fromhex("011b00") + bytes(4) + bytes(16) + b"\x07" + b"\x01\x01\x00"
    record = decode_metadata_record(value)
    assert (record.to_json() or {})["zkMigrationReady"] is True
    assert encode_metadata_record(record) == value


def test_other_record_types_of_state_topics() -> None:
    with pytest.raises(UnknownRecordTypeError):
        decode_state_record(TRANSACTION_STATE, b"\x00\x01\x00\x01x", b"")
    with pytest.raises(UnsupportedVersionError):
        decode_state_record(TRANSACTION_STATE, b"\x00\x00\x00\x01x", b"\x00\x02")
    with pytest.raises(CorruptRecordError):
        decode_state_record(SHARE_GROUP_STATE, None, None)


@given(st.data())
def test_hostile_values(data: st.DataObject) -> None:
    """Cut and changed bytes are refused with an error of ours, or what is read can be written and read again."""
    line = data.draw(st.sampled_from(vectors()))
    value = bytearray(bytes_of(line, "value") or b"")
    for _ in range(data.draw(st.integers(0, 3))):
        if value:
            value[data.draw(st.integers(0, len(value) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(value[: data.draw(st.integers(0, len(value)))])
    with suppress(OffsetsLogError):
        if line["log"] == METADATA:
            record = decode_metadata_record(cut)
            json.dumps(record.to_json())
            assert repr(decode_metadata_record(encode_metadata_record(record))) == repr(record)
        elif line["log"] == CONTROL:
            message = decode_control_message(CONTROL_TYPES[line["record_type"]], cut)
            json.dumps(message.to_json())
            assert decode_control_message(message.type, encode_control_message(message)) == message
        else:
            state = decode_state_record(line["log"], bytes_of(line, "key"), cut)
            json.dumps(state.value_json())
            assert decode_state_record(line["log"], *encode_state_record(state)) == state


@pytest.mark.parametrize(("api_key", "version"), [(0x7FFF, 0), (0, 0x7FFF), (0x8000, 0), (0, 0x8000)])
def test_an_api_key_and_its_version_have_15_bits(api_key: int, version: int) -> None:
    value = b"\1" + b"".join(UVARINT.build(number) for number in (api_key, version)) + b"body"
    if max(api_key, version) < 0x8000:
        record = decode_metadata_record(value)
        assert (record.api_key, record.version, record.raw) == (api_key, version, b"body")
        assert encode_metadata_record(record) == value
    else:
        with pytest.raises(CorruptRecordError, match="out of range"):
            decode_metadata_record(value)
