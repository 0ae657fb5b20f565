"""The metadata log replayed, against what AdminClient said; its transactions and snapshots; hostile bytes."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offsets_log.data_directory.cluster_image import PartitionImage
from offsets_log.data_directory.metadata_log import SnapshotId, replay_metadata_log
from offsets_log.log_format.building import build_batch
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.log_format.primitives import Uuid
from offsets_log.log_format.record import Record
from offsets_log.messages.cluster_metadata.control import CONTROL_MESSAGES
from offsets_log.messages.cluster_metadata.registry import METADATA_RECORDS, MetadataRecord, encode_metadata_record
from offsets_log.messages.schema import REDACTED
from tests.data_directories.copies import COPIES, Recorded, dumps, metadata_log, words
from tests.sizes import examples

# ------------------------------------------------------------------------------------------- real brokers


@pytest.mark.parametrize(("name", "copy"), COPIES)
def test_topics_and_partitions_are_those_of_admin_client(recorded: Recorded, name: str, copy: str) -> None:
    """A broker gives up its leaderships when it stops, which is after what AdminClient said."""
    said: Any = words(recorded(name), copy)
    replay = replay_metadata_log(*metadata_log(recorded(name), copy))
    assert not replay.damages
    assert not replay.is_partial
    fields = ("replicas",) if copy == "stopped" else ("leader", "replicas", "isr")
    topics = {
        topic.name: (str(topic_id), {number: shown(found, fields) for number, found in topic.partitions.items()})
        for topic_id, topic in replay.image.topics.items()
    }
    assert topics == {
        topic: (facts["id"], {row["partition"]: {field: row[field] for field in fields} for row in facts["partitions"]})
        for topic, facts in said["topics"].items()
    }
    if copy == "stopped":
        partitions = [found for topic in replay.image.topics.values() for found in topic.partitions.values()]
        assert {found.leader for found in partitions} == {-1}


def shown(partition: PartitionImage, fields: tuple[str, ...]) -> dict[str, Any]:
    facts = {"leader": partition.leader, "replicas": list(partition.replicas), "isr": sorted(partition.isr)}
    return {field: facts[field] for field in fields}


@pytest.mark.parametrize(("name", "copy"), COPIES)
def test_features_brokers_and_configurations_are_those_of_admin_client(
    recorded: Recorded, name: str, copy: str
) -> None:
    said: Any = words(recorded(name), copy)
    replay = replay_metadata_log(*metadata_log(recorded(name), copy))
    features = dict(replay.image.features)
    kraft = {"kraft.version": replay.kraft_version} if replay.kraft_version else {}
    assert features | kraft == said["features"]
    assert replay.image.metadata_version == said["features"]["metadata.version"]
    brokers = replay.image.brokers.values()
    assert sorted(broker.broker_id for broker in brokers if copy == "stopped" or not broker.fenced) == said["brokers"]
    assert (replay.leader_id, replay.leader_epoch) == (said["quorum"]["leader"], said["quorum"]["leader_epoch"])
    assert sorted(replay.voters) == said["quorum"]["voters"]
    assert replay.end_offset >= said["quorum"]["high_watermark"]
    configs = {f"{kind.upper()} {resource}": values for (kind, resource), values in replay.image.configs.items()}
    assert set(configs) == {resource for resource, values in said["configs"].items() if values}
    for resource, values in said["configs"].items():
        shown = {name: REDACTED if value is None else value for name, value in values.items()}
        assert configs[resource] == shown, resource


@pytest.mark.parametrize(("name", "copy"), COPIES)
def test_deleted_topics_are_named(recorded: Recorded, name: str, copy: str) -> None:
    """All that the log ever created and removed, by kafka-dump-log; snapshots hold none of them."""
    created, removed = {}, set()
    for path, text in dumps(recorded(name), copy, "__cluster_metadata"):
        if path.suffix == ".log":
            payloads = [json.loads(payload) for payload in re.findall(r"payload: (.*)$", text, re.MULTILINE)]
            created |= {p["data"]["topicId"]: p["data"]["name"] for p in payloads if p["type"] == "TOPIC_RECORD"}
            removed |= {p["data"]["topicId"] for p in payloads if p["type"] == "REMOVE_TOPIC_RECORD"}
    replay = replay_metadata_log(*metadata_log(recorded(name), copy))
    assert {str(topic_id) for topic_id in replay.former_topics} == removed
    assert {str(Uuid(topic_id)): topic for topic_id, topic in replay.topic_names.items()} == created
    if name != "kafka-4.3-three":
        assert {"gone", "reborn"} == {topic.name for topic in replay.former_topics.values()}
        assert replay.image.topic_named("reborn") is not None


@pytest.mark.parametrize(("name", "copy"), COPIES)
def test_a_replay_from_any_snapshot_is_the_replay_of_the_whole_log(recorded: Recorded, name: str, copy: str) -> None:
    log, beside = metadata_log(recorded(name), copy)
    whole = replay_metadata_log(log, {})
    assert whole.snapshot is None
    snapshots = [file for file in beside if file.endswith(".checkpoint")]
    assert snapshots
    for file in snapshots:
        replay = replay_metadata_log(log, {file: beside[file]})
        assert replay.snapshot == SnapshotId(int(file[:20]), int(file[21:31]))
        assert without_times(replay.image) == without_times(whole.image)
        assert replay.former_topics.keys() == whole.former_topics.keys()
        assert (replay.end_offset, replay.leader_id) == (whole.end_offset, whole.leader_id or replay.leader_id)


def without_times(image: Any) -> Any:
    facts = {name: getattr(image, name) for name in ("topics", "configs", "features", "brokers", "next_producer_id")}
    return {**facts, "controllers": image.controllers}


# ------------------------------------------------------------------------------------------------- rules

ONE, TWO = Uuid(b"\1" * 16), Uuid(b"\2" * 16)


def value(api_key: int, **fields: Any) -> bytes:
    """A record of the newest version, zeros where nothing is given."""
    version = int(METADATA_RECORDS[api_key].versions.rpartition("-")[2])
    zeros = METADATA_RECORDS[api_key].zeros(version)
    return encode_metadata_record(MetadataRecord(api_key=api_key, version=version, fields=zeros | fields))


def topic(name: str, topic_id: Uuid) -> bytes:
    return value(2, name=name, topic_id=topic_id)


BEGIN, END, ABORT = value(23, name="all at once"), value(24), value(25, reason="no more")


def batches(values: Sequence[bytes], first_offset: int = 0) -> bytes:
    records = [Record(offset=first_offset + i, timestamp_ms=i, key=None, value=v) for i, v in enumerate(values)]
    return b"".join(build_batch([record]) for record in records)


def log(*values: bytes, first_offset: int = 0) -> PartitionLog:
    segment = Segment(f"{first_offset:020}.log", first_offset, batches(values, first_offset))
    return PartitionLog(None, (segment,))


def control(number: int, offset: int) -> bytes:
    name = {3: "SNAPSHOT_HEADER", 4: "SNAPSHOT_FOOTER"}[number]
    body = CONTROL_MESSAGES[name].struct(0).build(CONTROL_MESSAGES[name].zeros(0))
    record = Record(offset=offset, timestamp_ms=0, key=b"\0\0" + number.to_bytes(2), value=body)
    return build_batch([record], is_control=True)


def snapshot(*values: bytes, is_whole: bool = True) -> bytes:
    footer = control(4, len(values) + 1) if is_whole else b""
    return control(3, 0) + batches(values, 1) + footer


def names(replay: Any) -> list[str]:
    return sorted(found.name for found in replay.image.topics.values())


def test_records_of_an_ended_metadata_transaction_count() -> None:
    assert names(replay_metadata_log(log(BEGIN, topic("a", ONE), END, topic("b", TWO)), {})) == ["a", "b"]


def test_records_of_an_aborted_metadata_transaction_do_not() -> None:
    replay = replay_metadata_log(log(BEGIN, topic("a", ONE), ABORT, topic("b", TWO)), {})
    assert names(replay) == ["b"]
    assert not replay.former_topics


def test_records_of_a_metadata_transaction_without_an_end_do_not() -> None:
    replay = replay_metadata_log(log(topic("b", TWO), BEGIN, topic("a", ONE)), {})
    assert names(replay) == ["b"]
    assert "has no end" in replay.notes[0]


def test_the_newest_whole_snapshot_is_taken() -> None:
    """One without a footer, one that is still written and one that is deleted are passed over."""
    files = {
        f"{5:020}-{1:010}.checkpoint": snapshot(topic("old", ONE)),
        f"{7:020}-{1:010}.checkpoint": snapshot(topic("new", ONE)),
        f"{9:020}-{1:010}.checkpoint": snapshot(topic("cut", ONE), is_whole=False),
        f"{9:020}-{2:010}.checkpoint.part": snapshot(topic("part", ONE)),
        f"{9:020}-{3:010}.checkpoint.deleted": snapshot(topic("deleted", ONE)),
    }
    replay = replay_metadata_log(log(topic("b", TWO), first_offset=7), {k: lambda v=v: v for k, v in files.items()})
    assert replay.snapshot == SnapshotId(7, 1)
    assert names(replay) == ["b", "new"]
    assert [note.split(" ")[0] for note in replay.notes] == [f"{9:020}-{1:010}.checkpoint"]
    assert not replay.is_partial


def test_a_log_that_begins_behind_its_snapshots_is_partial() -> None:
    replay = replay_metadata_log(log(topic("b", TWO), first_offset=7), {})
    assert replay.is_partial
    assert "offsets 0 to 6" in replay.notes[0]


def test_a_topic_of_the_same_name_is_another_one() -> None:
    removed = value(9, topic_id=ONE)
    config = value(4, resource_type=2, resource_name="a", name="retention.ms", value="1")
    replay = replay_metadata_log(log(topic("a", ONE), config, removed, topic("a", TWO)), {})
    assert replay.topic_names == {ONE: "a", TWO: "a"}
    assert replay.former_topics[ONE].removed_at_ms == 2
    assert not replay.image.configs


def test_a_controller_that_is_unregistered_is_gone() -> None:
    """``K44-56``."""
    one, two = (value(27, controller_id=number, end_points=[], features=[]) for number in (1, 2))
    replay = replay_metadata_log(log(one, two, value(29, controller_id=1), value(29, controller_id=7)), {})
    assert [*replay.image.controllers] == [2]
    assert not replay.notes


def test_changes_of_a_partition() -> None:
    """A leader raises the leader epoch, any change that of the partition."""
    partition = value(3, topic_id=ONE, replicas=[1, 2], isr=[1, 2], leader=1, leader_epoch=4, partition_epoch=9)
    shrunk, moved = value(5, topic_id=ONE, isr=[2], leader=-2), value(5, topic_id=ONE, leader=2)
    replay = replay_metadata_log(log(topic("a", ONE), partition, shrunk, moved), {})
    found = replay.image.topics[ONE].partitions[0]
    assert (found.leader, found.leader_epoch, found.partition_epoch) == (2, 5, 11)
    assert (found.replicas, found.isr) == ((1, 2), (2,))


def test_records_about_what_is_not_there_are_damage() -> None:
    replay = replay_metadata_log(log(value(9, topic_id=ONE), value(5, topic_id=ONE), value(7, id=3), b"\1\x63\0"), {})
    assert [damage.error.record_offset for damage in replay.damages] == [0, 1, 2]
    assert replay.unknown == {"API key 99, version 0": 1}


def test_brokers_that_change() -> None:
    register = value(0, broker_id=1, broker_epoch=5, fenced=True, log_dirs=[ONE])
    changed = value(17, broker_id=1, broker_epoch=5, fenced=-1, log_dirs=[ONE, TWO])
    replay = replay_metadata_log(log(register, changed, value(17, broker_id=1, broker_epoch=4, fenced=1)), {})
    broker = replay.image.brokers[1]
    assert (broker.fenced, broker.log_dirs, broker.cordoned_log_dirs) == (False, (ONE, TWO), ())
    assert len(replay.damages) == 1
    fenced = replay_metadata_log(log(register, value(8, id=1, epoch=5), value(7, id=1, epoch=5)), {})
    assert fenced.image.brokers[1].fenced
    assert not replay_metadata_log(log(register, value(1, broker_id=1, broker_epoch=5)), {}).image.brokers


def test_settings_that_are_taken_back() -> None:
    given = [
        value(12, name="metadata.version", feature_level=25),
        value(12, name="group.version", feature_level=1),
        value(12, name="group.version", feature_level=0),
        value(4, resource_type=32, resource_name="g", name="consumer.session.timeout.ms", value="1"),
        value(4, resource_type=4, resource_name="1", name="ssl.key.password", value="secret"),
        value(4, resource_type=32, resource_name="g", name="consumer.session.timeout.ms", value=None),
    ]
    image = replay_metadata_log(log(*given), {}).image
    assert (image.metadata_version, image.features) == (25, {"metadata.version": 25})
    assert image.configs == {("broker", "1"): {"ssl.key.password": REDACTED}}


@pytest.mark.parametrize(("name", "of"), [("", "both"), ("a", "one")])
def test_eligible_replicas_are_cleared(name: str, of: str) -> None:
    partitions = [value(3, topic_id=one, eligible_leader_replicas=[3], last_known_elr=[4]) for one in (ONE, TWO)]
    cleared = value(28, topic_name=name)
    image = replay_metadata_log(log(topic("a", ONE), topic("b", TWO), *partitions, cleared), {}).image
    left = [found.partitions[0].eligible_leader_replicas for found in image.topics.values()]
    assert left == ([(), ()] if of == "both" else [(), (3,)])


# ----------------------------------------------------------------------------------------------- hostile


@examples(60)
@given(st.data())
def test_hostile_metadata_logs(recorded: Recorded, data: st.DataObject) -> None:
    """Bytes changed in records of batches with right checksums, or anywhere: never an exception."""
    found, beside = metadata_log(recorded("kafka-4.3-one"), "stopped")
    (segment,) = found.segments
    raw = bytearray(segment.buffer)
    for _ in range(data.draw(st.integers(0, 6))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(raw[: data.draw(st.integers(0, len(raw)))])
    files = {}
    for file in sorted(file for file in beside if file.endswith(".checkpoint"))[:2]:
        bad = bytearray(beside[file]())
        bad[data.draw(st.integers(0, len(bad) - 1))] ^= data.draw(st.integers(0, 255))
        files[file] = lambda bad=bytes(bad): bad
    replay_metadata_log(PartitionLog(None, (Segment(segment.file, 0, cut),)), files)


@given(st.lists(st.tuples(st.sampled_from(sorted(METADATA_RECORDS)), st.binary(max_size=40)), max_size=12))
def test_hostile_metadata_records(drawn: list[tuple[int, bytes]]) -> None:
    replay = replay_metadata_log(log(*(bytes((1, api_key, 0)) + body for api_key, body in drawn)), {})
    assert replay.end_offset == len(drawn)


def test_a_folder_without_a_log(tmp_path: Path) -> None:
    replay = replay_metadata_log(PartitionLog(None, ()), {})
    assert (replay.end_offset, replay.image.topics, replay.is_partial) == (0, {}, False)


def test_what_is_before_a_snapshot_is_passed_over_by_sizes_and_nothing_behind_it() -> None:
    """A size before the snapshot that leads too far must not hide what is behind."""
    nothing = [b"\1\x14\0\0"] * 5
    whole = log(*nothing, topic("a", ONE), *nothing, topic("b", TWO))
    raw = bytearray(whole.segments[0].buffer)
    found = {f"{6:020}-{1:010}.checkpoint": lambda: snapshot(topic("a", ONE))}
    assert names(replay_metadata_log(whole, found)) == ["a", "b"]
    size = len(batches(nothing[:1]))
    raw[11] += 2 * size
    replay = replay_metadata_log(PartitionLog(None, (Segment("0.log", 0, bytes(raw)),)), found)
    assert names(replay) == ["a", "b"]
