"""What a record of the metadata log may say in more than one way, and whose topic decides how a record is read."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from offsets_log.errors import CorruptRecordError
from offsets_log.log_format.building import build_batch
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.log_format.primitives import INT16, ZERO_UUID, PlainStruct
from offsets_log.log_format.record import Record
from offsets_log.messages import other_topic
from offsets_log.messages.cluster_metadata.control import CONTROL_MESSAGES, decode_control_message
from offsets_log.messages.cluster_metadata.registry import (
    METADATA_RECORDS,
    MetadataRecord,
    decode_metadata_record,
    encode_metadata_record,
)
from offsets_log.messages.layouts import field_rows
from offsets_log.messages.message_struct import NullableStruct
from offsets_log.messages.mirror_maker import OFFSET_SYNCS, decode_mirror_maker_record
from offsets_log.messages.other_topic import is_of_another_topic, may_be_coordinators
from offsets_log.messages.registry import (
    RECORD_TYPES,
    CoordinatorRecord,
    RecordType,
    decode_coordinator_record,
    decode_value,
    encode_coordinator_record,
)
from offsets_log.messages.schema import INT32, ZEROS, ArrayOf, Field, Message, Struct
from offsets_log.messages.state_topics import decode_topic_record, is_decoded_topic

NULLABLE = {
    0: {"cordoned_log_dirs": 1},
    3: {"eligible_leader_replicas": 1, "last_known_elr": 2},
    5: {
        "isr": 0, "replicas": 2, "removing_replicas": 3, "adding_replicas": 4, "eligible_leader_replicas": 6,
        "last_known_elr": 7, "directories": 8,
    },
    17: {"cordoned_log_dirs": 3},
    23: {"name": 0},
    25: {"reason": 0},
}  # fmt: skip
"""API key → tagged fields that Kafka's schemas let be null → their tags."""


@pytest.mark.parametrize(("api_key", "name"), [(key, name) for key, names in NULLABLE.items() for name in names])
def test_a_tagged_field_says_null_or_is_not_there(api_key: int, name: str) -> None:
    table = METADATA_RECORDS[api_key]
    version = int(table.versions.rpartition("-")[2])
    absent = encode_metadata_record(MetadataRecord(api_key=api_key, version=version, fields=table.zeros(version)))
    said = absent[:-1] + bytes((1, NULLABLE[api_key][name], 1, 0))
    assert absent[-1] == 0
    assert decode_metadata_record(absent).fields[name] is None
    assert decode_metadata_record(said).fields[name] is None


def test_a_tagged_struct_says_null_by_a_byte_that_is_zero_and_no_other() -> None:
    """``classicMemberMetadata`` of a consumer group's member: the only one."""
    row = RECORD_TYPES[5]
    layout = next(row.layouts(0))
    fields = layout.zeros(0) | {"instance_id": None, "rack_id": None, "subscribed_topic_regex": None}
    key = row.key.zeros(0)
    there = fields["classic_member_metadata"] | {"session_timeout_ms": 5}
    for metadata, said in ((None, b"\0"), (there, b"\1" + bytes((0, 0, 0, 5)) + b"\1\0")):
        value = fields | {"classic_member_metadata": metadata}
        record = CoordinatorRecord(record_type=5, key=key, layout=layout, value_version=0, value=value)
        encoded = encode_coordinator_record(record)
        assert encoded[1] is not None
        assert encoded[1].endswith(b"\1\0" + bytes((len(said),)) + said), metadata
        assert decode_coordinator_record(*encoded).value == value
        assert layout.struct(0).parse(encoded[1][2:]) == value
        assert layout.struct(0).build(value) == encoded[1][2:]


@pytest.mark.parametrize(("marker", "is_null"), [(0x80, True), (0xFE, True), (0xFF, True), (0, False), (0x7F, False)])
def test_a_struct_is_null_behind_any_byte_below_zero(marker: int, is_null: bool) -> None:
    """Both ways to read it; inside of a tagged field only 0 is null."""
    plain, tagged = (NullableStruct(PlainStruct("number" / INT16), tagged=is_tagged) for is_tagged in (False, True))
    value = None if is_null else {"number": 5}
    data = bytes((marker, 0, 5))
    assert plain.reader()(data, 0) == (value, 1 if is_null else 3)
    assert plain.parse(data) == value
    assert (tagged.parse(bytes((marker & 0x7F, 0, 5))) is None) is (marker & 0x7F == 0)


def test_what_a_release_would_read_is_asked_only_where_it_is_known() -> None:
    for number in (5, 8):
        row = RECORD_TYPES[number]
        for layout in row.layouts(0):
            value = bytes(2) + layout.struct(0).build(layout.zeros(0))
            assert decode_value(row, value, only_release=True) == decode_value(row, value)


@pytest.mark.parametrize("version", [-1, -2, -0x8000])
@pytest.mark.parametrize("name", CONTROL_MESSAGES)
def test_a_control_message_of_a_negative_version_is_refused(name: str, version: int) -> None:
    with pytest.raises(CorruptRecordError, match=f"the version is {version}"):
        decode_control_message(name, version.to_bytes(2, signed=True) + bytes(60))


def test_records_of_mirror_makers_topics_are_read_by_its_tables() -> None:
    pair = bytes.fromhex("00066f726465727300000003"), bytes.fromhex("00000000000000640000000000000061")
    read = decode_topic_record("mm2-offset-syncs.b.internal", *pair)
    assert read == decode_mirror_maker_record(OFFSET_SYNCS, *pair)


@pytest.mark.parametrize(
    ("key", "may_be"),
    [
        (b"\0\2\0\1g", True),
        (b"\0\2\0\1g+", False),
        (b"\0\2\0\1", False),
        (b"\0\x7f", True),
        (b"\0\x80", False),
        (b"\xff\xff", False),
        (b"\0", False),
        (b"", False),
        (None, False),
        (b"orders", False),
    ],
)
def test_a_log_is_of_another_topic_where_no_key_may_be_a_coordinators(key: bytes | None, may_be: bool) -> None:
    """A type that is yet to come is a small number; control records and unread ones tell nothing."""

    def log(*keys: bytes | None, **facts: Any) -> PartitionLog:
        records = [Record(offset=i, timestamp_ms=0, key=one, value=b"v") for i, one in enumerate(keys)]
        return PartitionLog(0, (Segment("0.log", 0, build_batch(records, **facts) if records else b""),))

    assert may_be_coordinators(key) is may_be
    assert is_of_another_topic(log(key, key)) is not may_be
    assert not is_of_another_topic(log(key, b"\0\2\0\1g"))
    assert not is_of_another_topic(log(key, producer_id=7, is_control=True))
    assert not is_of_another_topic(log())
    assert is_of_another_topic(log(*[b"orders"] * 100, b"\0\2\0\1g"))
    assert not is_of_another_topic(log(*[b"orders"] * 99, b"\0\2\0\1g"))


def test_of_a_log_so_many_batches_are_looked_at_and_damage_is_one_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(other_topic, "BATCHES_LOOKED_AT", 3)
    foreign = [Record(offset=at, timestamp_ms=0, key=b"orders", value=b"v") for at in range(4)]
    coordinators = [replace(record, key=b"\0\2\0\1g") for record in foreign]
    for at in range(4):
        parts = [build_batch([one]) for one in (*foreign[:at], coordinators[at], *foreign[at + 1 :])]
        parts[0] = parts[0][:-1] + b"?"
        log = PartitionLog(0, (Segment("0.log", 0, b"".join(parts)),))
        assert is_of_another_topic(log) is (at in (0, 3))


@pytest.mark.parametrize("number", RECORD_TYPES)
def test_a_record_is_the_same_in_another_process(number: int) -> None:
    row = RECORD_TYPES[number]
    for layout in (None, *row.values):
        fields = row.key.zeros(0)
        record = CoordinatorRecord(record_type=number, key=fields, layout=layout, value_version=None, value=None)
        again = pickle.loads(pickle.dumps(record))
        assert again == record
        assert again.layout is layout
        assert (again.name, again.record_type) == (row.name, number)


@pytest.mark.parametrize(
    ("topic", "is_decoded"),
    [
        ("__transaction_state", True),
        ("__share_group_state", True),
        ("mm2-offset-syncs.b.internal", True),
        ("heartbeats", True),
        ("__consumer_offsets", False),
        ("__cluster_metadata", False),
        ("orders", False),
        ("", False),
    ],
)
def test_which_other_topics_are_decoded(topic: str, is_decoded: bool) -> None:
    assert is_decoded_topic(topic) is is_decoded


def test_what_json_leaves_out_of_an_offset_commit_is_kafkas_default() -> None:
    layouts = RECORD_TYPES[1]
    said = {version: next(layouts.layouts(version)).from_json({}, version) for version in (1, 3, 4)}
    assert said[1]["expire_timestamp"] == -1
    assert said[3]["leader_epoch"] == said[4]["leader_epoch"] == -1
    assert said[4]["topic_id"] == ZERO_UUID


def test_the_defaults_that_are_not_zeros_are_those_of_kafkas_schemas() -> None:
    found = {
        (number, field.name): field.default
        for number, row in RECORD_TYPES.items()
        for layout in row.values
        for field in layout.fields
        if field.default not in (None, 0, (), ZEROS, ZERO_UUID)
    }
    times = {(number, "expire_timestamp"): -1 for number in (0, 1)} | {(2, "current_state_timestamp"): -1}
    timeouts = {(number, "rebalance_timeout_ms"): -1 for number in (5, 19)}
    epochs = {(number, "leader_epoch"): -1 for number in (0, 1)}
    epochs |= {(17, f"{what}_topology_epoch"): -1 for what in ("validated", "stored_description", "failed_description")}
    assert found == times | timeouts | epochs


RELEASES_OF_LAYOUTS = {
    **dict.fromkeys((4, 5, 7, 8), ("up to 3.7", "3.8 and later")),
    9: ("up to 3.9", "4.0"),
    **dict.fromkeys((11, 15), ("up to 4.0", "4.1 and later")),
}
"""Type → what wrote its values, of those whose values share a version number."""


@pytest.mark.parametrize("record_type", RECORD_TYPES)
def test_values_that_share_a_version_are_told_apart_by_release(record_type: int) -> None:
    """Keys have one layout, whoever wrote them."""
    rows = list(field_rows(RECORD_TYPES[record_type]))
    values = {row.releases for row in rows if row.part == "value"}
    assert values == set(RELEASES_OF_LAYOUTS.get(record_type, [None]))
    assert {row.releases for row in rows if row.part == "key"} == {None}


@pytest.mark.parametrize(
    ("first", "last", "told"),
    [
        (None, (3, 7), "up to 3.7"),
        ((3, 8), None, "3.8 and later"),
        ((4, 0), (4, 0), "4.0"),
        ((3, 9), (4, 10), "3.9 to 4.10"),
        (None, None, None),
    ],
)
def test_the_releases_of_a_layout_are_told(
    first: tuple[int, int] | None, last: tuple[int, int] | None, told: str | None
) -> None:
    layout = Message("New", (Field("number", INT32),), releases=(first, last))
    rows = list(field_rows(RecordType(99, "New", layout, (layout,))))
    assert [(row.part, row.releases) for row in rows] == [("key", None), ("value", told)]


def releases_of_tags(fields: tuple[Field, ...]) -> Iterator[tuple[int, int]]:
    """The first releases that know tagged fields of a struct, and of those in it."""
    for row in fields:
        if row.since is not None:
            yield row.since
        element = row.type.element if isinstance(row.type, ArrayOf) else row.type
        if isinstance(element, Struct):
            yield from releases_of_tags(element.fields)


@pytest.mark.parametrize("release", [(3, 6), (3, 7), (3, 8), (4, 0), (4, 1), (4, 2), (4, 3), (4, 4)])
def test_a_release_knows_a_tagged_field_from_the_one_on_that_it_came_with(release: tuple[int, int]) -> None:
    """``records:P6``: of a struct as of those in its lists."""
    tables = [layout for row in RECORD_TYPES.values() for layout in row.values]
    for table, version in ((table, version) for table in tables for version in range(9) if table.has_version(version)):
        fields = table.fields_of(version)
        is_later = any(since > release for since in releases_of_tags(fields))
        assert table.has_later_tags(version, release) is (table.is_flexible(version) and is_later)
        known = {row.name for row in fields if row.tag is not None and (row.since is None or row.since <= release)}
        tagged = table.struct_known_to(version, release).tagged
        assert {field.name for field in (tagged or {}).values()} == (known if table.is_flexible(version) else set())
