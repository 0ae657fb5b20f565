"""Keys and values of every record type and value version, as Kafka's own classes wrote them."""

from __future__ import annotations

import lzma
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from offsets_log.errors import CorruptRecordError, UnknownRecordTypeError
from offsets_log.messages.message_struct import UNKNOWN_TAGS
from offsets_log.messages.registry import (
    RECORD_TYPES,
    decode_coordinator_record,
    encode_coordinator_record,
)
from tests.conftest import VECTORS, json_lines

CLASSIC = {0: (0, 1, 2, 3, 4), 1: (0, 1, 2, 3, 4), 2: (0, 1, 2, 3, 4)}
VECTOR_VERSIONS: dict[str, dict[int, tuple[int, ...]]] = {
    "3.7.2": CLASSIC | dict.fromkeys(range(3, 9), (0,)),
    "3.9.1": CLASSIC | dict.fromkeys(range(3, 12), (0,)),
    "4.0.0": CLASSIC | dict.fromkeys(range(3, 17), (0,)),
    "4.3.0": CLASSIC | {0: (0,)} | dict.fromkeys([*range(3, 9), *range(10, 18), *range(19, 24)], (0,)),
    "4.4.0": {17: (0,)},
}
"""Kafka version → record type → value versions that its classes write."""
LINES_EACH = {"3.7.2": 12, "3.9.1": 12, "4.0.0": 12, "4.3.0": 40, "4.4.0": 48}


def vectors(version: str) -> list[dict[str, Any]]:
    return list(json_lines(lzma.decompress((VECTORS / f"records-{version}.jsonl.xz").read_bytes()).decode()))


def key_and_value(line: dict[str, Any]) -> tuple[bytes, bytes | None]:
    return bytes.fromhex(line["key_hex"]), None if line["value_hex"] is None else bytes.fromhex(line["value_hex"])


def release_of(version: str) -> tuple[int, int]:
    major, minor, _ = version.split(".")
    return int(major), int(minor)


@pytest.mark.parametrize("has_release", [True, False], ids=["release given", "release unknown"])
@pytest.mark.parametrize("version", VECTOR_VERSIONS)
def test_records_of_kafkas_own_classes(
    version: str, has_release: bool, record_property: Callable[[str, object], None]
) -> None:
    """``records:P1``, ``Y1``: flexible versions and all types."""
    counts: Counter[tuple[int, int]] = Counter()
    for line in vectors(version):
        key, value = key_and_value(line)
        record = decode_coordinator_record(key, value, release_of(version) if has_release else None)
        where = f"{line['name']} version {line['value_version']}: {line['value_hex']}"
        version_read = None if value is None else line["value_version"]
        assert (record.record_type, record.value_version) == (line["record_type"], version_read), where
        assert record.key_json() == line["key_json"], where
        assert record.value_json() == line["value_json"], where
        assert len(record.unknown_tags()) == line["unknown_tags"], where
        assert encode_coordinator_record(record) == (key, value), where
        assert (record.key_trailing, record.value_trailing) == (b"", b""), where
        assert not has_release or record.layout is None or record.layout.is_written_by(release_of(version)), where
        counts[line["record_type"], line["value_version"]] += 1
    for (record_type, value_version), count in sorted(counts.items()):
        record_property(f"type {record_type} version {value_version}", count)
    expected = {(number, each) for number, versions in VECTOR_VERSIONS[version].items() for each in versions}
    assert counts == dict.fromkeys(expected, LINES_EACH[version])


@pytest.mark.parametrize("version", VECTOR_VERSIONS)
def test_json_of_kafkas_own_classes_is_read_back(version: str) -> None:
    for line in vectors(version):
        record = decode_coordinator_record(*key_and_value(line), release_of(version))
        if record.value is None:
            continue
        assert record.layout is not None
        assert record.layout.from_json(line["value_json"], line["value_version"]) == without_unknown_tags(record.value)


def values_of(version: str, number: int) -> list[dict[str, Any]]:
    """The lines of one record type without its tombstones."""
    return [line for line in vectors(version) if line["record_type"] == number and line["value_hex"]]


def without_unknown_tags(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_unknown_tags(part) for name, part in value.items() if name != UNKNOWN_TAGS}
    return [without_unknown_tags(part) for part in value] if isinstance(value, list) else value


def test_unknown_tags_occur_in_the_vectors() -> None:
    assert all(sum(line["unknown_tags"] for line in vectors(version)) > 0 for version in VECTOR_VERSIONS)


@pytest.mark.parametrize("version", VECTOR_VERSIONS)
def test_a_value_cut_anywhere_does_not_parse(version: str) -> None:
    seen = set()
    for line in vectors(version):
        kind = (line["record_type"], line["value_version"])
        key, value = key_and_value(line)
        row = RECORD_TYPES[line["record_type"]]
        if value is None or kind in seen or len(list(row.layouts(line["value_version"]))) > 1:
            continue
        seen.add(kind)
        for end in range(len(value)):
            with pytest.raises(CorruptRecordError):
                decode_coordinator_record(key, value[:end])
        for end in range(len(key)):
            with pytest.raises((CorruptRecordError, UnknownRecordTypeError)):
                decode_coordinator_record(key[:end], value)
    assert seen == {
        (number, each)
        for number, versions in VECTOR_VERSIONS[version].items()
        for each in versions
        if len(list(RECORD_TYPES[number].layouts(each))) == 1
    }


def test_a_record_without_a_layout_is_written_as_newest_brokers_write_it() -> None:
    """As records are that nobody has read from a log."""
    written = set()
    for line in vectors("4.3.0"):
        record = decode_coordinator_record(*key_and_value(line), (4, 3))
        if record.value is not None:
            assert encode_coordinator_record(replace(record, layout=None)) == key_and_value(line)
            written.add(record.record_type)
    assert {4, 5, 7, 8} <= written
