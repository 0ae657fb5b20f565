"""Records that a log repeats: the same as those that are decoded each time."""

from __future__ import annotations

import pytest

from offsets_log.errors import CorruptRecordError, UnsupportedVersionError
from offsets_log.messages import repeated
from offsets_log.messages.registry import decode_coordinator_record
from tests.builders import record_bytes

KEY = {"group": "g", "topic": "t", "partition": 0}
FIELDS = {"offset": 1, "leader_epoch": -1, "metadata": "in sync", "commit_timestamp": 2}
AS_KEY, VALUE = record_bytes(1, KEY, FIELDS, 3)


def value_with(**fields: object) -> bytes:
    return record_bytes(1, KEY, FIELDS | fields, 3)[1]


OTHERS = {
    "a number": value_with(offset=7),
    "all numbers": value_with(offset=-1, leader_epoch=9, commit_timestamp=(1 << 63) - 1),
    "a text as long": value_with(metadata="IN sync"),
    "a text and a number": value_with(metadata="in sYnc", offset=3),
    "a longer text": value_with(metadata="in sync again"),
    "a tombstone": None,
    "another version": record_bytes(1, KEY, FIELDS | {"expire_timestamp": 4}, 1)[1],
    "bytes left over": VALUE + b"left",
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS.keys())
def test_records_of_one_key_say_what_they_would_alone(other: bytes | None) -> None:
    records = repeated.RepeatedRecords()
    for value in (VALUE, other, VALUE, other, value_with(offset=5)):
        assert records.decode(AS_KEY, value) == decode_coordinator_record(AS_KEY, value)


def test_bytes_behind_the_last_fields_are_those_of_each_record() -> None:
    records = repeated.RepeatedRecords()
    key = AS_KEY + b"more"
    for value in (VALUE + b"left", value_with(offset=7) + b"left", value_with(offset=7) + b"over", VALUE):
        assert records.decode(key, value) == decode_coordinator_record(key, value)


def test_what_differs_in_numbers_only_is_decoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    records = repeated.RepeatedRecords()
    first = records.decode(AS_KEY, VALUE)
    monkeypatch.setattr(repeated, "decode_coordinator_record", lambda *of: pytest.fail("it was decoded again"))
    assert records.decode(AS_KEY, bytes(bytearray(VALUE))) is first
    assert records.decode(AS_KEY, OTHERS["a number"]).value == FIELDS | {"offset": 7}
    assert first.value == FIELDS


@pytest.mark.parametrize("epoch", [0, 1, 0x01_00_00_00, 0x02_01_00_00, -1])
def test_numbers_may_decide_which_layout_a_value_has(epoch: int) -> None:
    """Two releases wrote version 0 of type 4 in two ways: one number more, or none."""
    key = bytes.fromhex("0004 0001 67")
    records = repeated.RepeatedRecords()
    for number in (3, epoch, 0x01_00_00_01):
        value = b"\0\0" + number.to_bytes(4, "big", signed=True) + b"\1\0"
        assert records.decode(key, value) == decode_coordinator_record(key, value)


def test_what_cannot_be_decoded_is_refused_each_time() -> None:
    records = repeated.RepeatedRecords()
    records.decode(AS_KEY, VALUE)
    for _ in range(2):
        with pytest.raises(UnsupportedVersionError):
            records.decode(AS_KEY, b"\x00\x63" + VALUE[2:])
        with pytest.raises(CorruptRecordError):
            records.decode(AS_KEY, VALUE[:-1])


def test_all_are_forgotten_where_they_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated, "MOST_BYTES_REMEMBERED", len(AS_KEY) + len(VALUE))
    records = repeated.RepeatedRecords()
    first = records.decode(AS_KEY, VALUE)
    assert records.decode(AS_KEY, VALUE) is first
    other_key = record_bytes(1, KEY | {"partition": 1}, FIELDS, 3)[0]
    assert records.decode(other_key, VALUE) == decode_coordinator_record(other_key, VALUE)
    assert records.decode(AS_KEY, VALUE) is not first


def test_as_much_is_remembered_as_sixteen_mebibytes() -> None:
    records = repeated.RepeatedRecords()
    value = value_with(metadata="m" * 32_000)
    keys = [record_bytes(1, KEY | {"partition": partition}, FIELDS, 3)[0] for partition in range(530)]
    mebibyte = (1 << 20) // (len(AS_KEY) + len(value)) + 1
    made = [records.decode(key, value) for key in keys[: 15 * mebibyte]]
    assert records.decode(keys[0], value) is made[0]
    for key in keys[15 * mebibyte : 16 * mebibyte]:
        records.decode(key, value)
    assert records.decode(keys[0], value) is not made[0]
