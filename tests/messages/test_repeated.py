"""Values that are decoded once: the same as those that are decoded each time."""

from __future__ import annotations

import pytest

from offsets_log.errors import UnsupportedVersionError
from offsets_log.messages import repeated
from offsets_log.messages.registry import RECORD_TYPES, decode_value
from tests.builders import record_bytes

KEY = {"group": "g", "topic": "t", "partition": 0}
FIELDS = {"offset": 1, "leader_epoch": -1, "metadata": "", "commit_timestamp": 2}
VALUE = record_bytes(1, KEY, FIELDS, 3)[1]
OTHER = record_bytes(1, KEY, FIELDS | {"offset": 7}, 3)[1]


def test_equal_values_are_decoded_once() -> None:
    values = repeated.RepeatedValues()
    first = values.decode(RECORD_TYPES[1], VALUE)
    assert first == decode_value(RECORD_TYPES[1], VALUE)
    assert values.decode(RECORD_TYPES[1], bytes(bytearray(VALUE))) is first
    assert values.decode(RECORD_TYPES[1], OTHER) == decode_value(RECORD_TYPES[1], OTHER)


def test_values_of_other_types_and_releases_are_others() -> None:
    values = repeated.RepeatedValues()
    first = values.decode(RECORD_TYPES[1], VALUE)
    assert values.decode(RECORD_TYPES[0], VALUE) is not first
    assert values.decode(RECORD_TYPES[1], VALUE, (4, 0)) is not first


def test_what_cannot_be_decoded_is_refused_each_time() -> None:
    values = repeated.RepeatedValues()
    for _ in range(2):
        with pytest.raises(UnsupportedVersionError):
            values.decode(RECORD_TYPES[1], b"\x00\x63")


def test_all_are_forgotten_where_they_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated, "MOST_BYTES_REMEMBERED", len(VALUE))
    values = repeated.RepeatedValues()
    first = values.decode(RECORD_TYPES[1], VALUE)
    assert values.decode(RECORD_TYPES[1], VALUE) is first
    values.decode(RECORD_TYPES[1], OTHER)
    assert values.decode(RECORD_TYPES[1], VALUE) is not first
