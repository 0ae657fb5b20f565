"""Every recording: its files, its batches and records built again, its damaged ends, and what brokers refused."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable

import pytest

from offsets_log.errors import (
    CorruptRecordError,
    Damage,
    OffsetsLogError,
    UnknownRecordTypeError,
    UnsupportedVersionError,
)
from offsets_log.log_format.batch import (
    ATTRIBUTES_POSITION,
    BATCH_HEADER_SIZE,
    LEGACY_HEADER_SIZE,
    RecordBatch,
    decode_batch_header,
)
from offsets_log.log_format.building import rebuild_batch
from offsets_log.log_format.partition_log import Segment, iter_log
from offsets_log.log_format.record import Record
from offsets_log.log_format.segment import Tail
from offsets_log.messages.registry import (
    decode_coordinator_record,
    encode_coordinator_record,
)
from tests.conftest import RECORDINGS, log_directories, read_json, read_partitions
from tests.dump_facts import Version, facts_of_batch
from tests.test_decode_recordings import Recordings, batches_of, records_of

DATA_FOLDERS = [
    *((name, "log") for name in RECORDINGS if name != "load-fails"),
    *(("kafka-4.3-cleaned", variant) for variant in ("log-before", "log-later")),
    *(("kafka-4.3-live-copy", variant) for variant in ("log-torn", "log-zeros")),
]
each_data_folder = pytest.mark.parametrize(("name", "variant"), DATA_FOLDERS, ids=map("/".join, DATA_FOLDERS))

UNKNOWN_TYPES = {"random-java", "random-scala"}
"""Recordings that hold record types unknown to the broker that loaded them: their bytes are random."""


@pytest.mark.parametrize("name", RECORDINGS)
def test_the_files_are_those_recorded(name: str, recording: Recordings) -> None:
    folder = recording(name)
    recorded = {entry["path"]: entry["sha256"] for entry in read_json(folder / "recording.json")["files"]}
    packed = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    for path in sorted(path for path in recorded.keys() & packed if path.startswith("log")):
        assert hashlib.sha256((folder / path).read_bytes()).hexdigest() == recorded[path], path
    assert packed - recorded.keys() <= {"recording.json"}
    assert all(path.endswith((".index", ".timeindex", ".txnindex", ".snapshot")) for path in recorded.keys() - packed)
    assert {directory.name for directory in log_directories(folder)} == {
        variant for recorded_name, variant in [*DATA_FOLDERS, ("load-fails", "log")] if recorded_name == name
    }


@each_data_folder
def test_every_batch_is_built_again(
    name: str, variant: str, recording: Recordings, record_property: Callable[[str, object], None]
) -> None:
    counts: Counter[str] = Counter()
    for log in read_partitions(recording(name) / variant).values():
        for segment, batch in batches_of(log):
            check_rebuilt(segment, batch)
            counts[f"magic {batch.magic} {batch.codec.name}"] += 1
    for codec, count in sorted(counts.items()):
        record_property(codec, count)
    assert sum(counts.values()) > 0


def check_rebuilt(segment: Segment, batch: RecordBatch) -> None:
    """The same bytes where nothing is compressed, the same records and header where something is."""
    where = f"{segment.file} position {batch.position}"
    records = records_of(batch)
    rebuilt = rebuild_batch(batch, records)
    if batch.codec.id == 0:
        assert rebuilt == batch.raw, where
        return
    again = decode_batch_header(rebuilt, batch.position)
    assert records_of(again) == records, where
    assert again.is_valid(), where
    free = {"size", "crc"}
    before, after = facts_of_batch(batch, records), facts_of_batch(again, records)
    assert {**before, **dict.fromkeys(free)} == {**after, **dict.fromkeys(free)}, where
    if batch.magic == 2:
        assert rebuilt[ATTRIBUTES_POSITION:BATCH_HEADER_SIZE] == batch.raw[ATTRIBUTES_POSITION:BATCH_HEADER_SIZE], where
    assert uncompressed(again) == uncompressed(batch), where


def uncompressed(batch: RecordBatch) -> bytes:
    """What is inside a compressed batch; of magic 0 and 1 that is the value of a message without a key."""
    start = BATCH_HEADER_SIZE if batch.magic == 2 else LEGACY_HEADER_SIZE[batch.magic] + 4 + 4
    return batch.codec.decompress(batch.raw[start:], batch.magic)


@each_data_folder
def test_every_coordinator_record_is_built_again(
    name: str, variant: str, recording: Recordings, record_property: Callable[[str, object], None]
) -> None:
    folder = recording(name)
    major, minor, *_ = read_json(folder / "recording.json")["kafka_version"].split(".")
    release = (int(major), int(minor))
    counts: Counter[str] = Counter()
    for log in read_partitions(folder / variant).values():
        for segment, batch in batches_of(log):
            if batch.is_control:
                continue
            for raw in records_of(batch):
                counts[check_built_again(raw, release, f"{segment.file} offset {raw.offset}")] += 1
    for what, count in sorted(counts.items()):
        record_property(what, count)
    assert (counts["unknown"] > 0) == (name in UNKNOWN_TYPES)
    assert counts["OffsetCommit"] + counts["LegacyOffsetCommit"] > 0


def check_built_again(raw: Record, release: Version, where: str) -> str:
    """Decode with and without the release, encode; what it was."""
    try:
        record = decode_coordinator_record(raw.key, raw.value)
    except UnknownRecordTypeError:
        return "unknown"
    except CorruptRecordError:
        # 9 is a number that 4.1 and later do not know; what 3.9 and 4.0 wrote under it is not random bytes.
        assert (raw.key or b"")[:2] == b"\x00\x09", where
        return "unknown"
    assert encode_coordinator_record(record) == (raw.key, raw.value), where
    assert (record.key_trailing, record.value_trailing, record.unknown_tags()) == (b"", b"", []), where
    assert decode_coordinator_record(raw.key, raw.value, release) == record, where
    return record.name


# ------------------------------------------------------------------------------------------ damaged ends


def test_torn_and_zero_filled_ends_are_tails(recording: Recordings) -> None:
    folder = recording("kafka-4.3-live-copy")
    facts = read_json(folder / "recording.json")
    tails = {
        (variant, partition): item
        for variant in ("log", "log-torn", "log-zeros")
        for partition, log in read_partitions(folder / variant).items()
        for _, item in iter_log(log)
        if isinstance(item, Tail)
    }
    start, cut = facts["torn"]["last_batch_starts_at"], facts["torn"]["cut_at_byte"]
    assert tails == {
        ("log-torn", 2): Tail("torn", start, cut - start),
        ("log-zeros", 2): Tail("zeros", facts["zeros"]["zero_bytes_from"], facts["zeros"]["zero_bytes"]),
    }


# -------------------------------------------------------------------------- what brokers refused to load

UNREADABLE: dict[int, type[OffsetsLogError]] = {
    1: UnknownRecordTypeError,
    **dict.fromkeys((2, 3, 4, 5, 44), UnsupportedVersionError),
    **dict.fromkeys((9, 10, 11, 12, 13, 14, 15, 16, 19, 35, 36), CorruptRecordError),
}
"""load-fails: partitions with a record we cannot read either; in the others all are read."""


def test_odd_records_of_load_fails(recording: Recordings) -> None:
    folder = recording("load-fails")
    cases = {case["partition"]: case for case in read_json(folder / "answers/load.json")}
    unreadable: dict[int, list[OffsetsLogError]] = {}
    trailing: dict[int, list[int]] = {}
    malformed: set[int] = set()
    damaged: set[int] = set()
    for partition, log in read_partitions(folder / "log").items():
        for _, item in iter_log(log):
            if isinstance(item, Damage):
                damaged.add(partition)
                continue
            assert isinstance(item, RecordBatch)
            check_rebuilt(log.segments[0], item)
            for raw in [] if item.is_control else records_of(item):
                try:
                    record = decode_coordinator_record(raw.key, raw.value)
                except OffsetsLogError as error:
                    unreadable.setdefault(partition, []).append(error)
                    continue
                assert encode_coordinator_record(record) == (raw.key, raw.value)
                if size := len(record.key_trailing + record.value_trailing):
                    trailing.setdefault(partition, []).append(size)
                if record.malformed_strings():
                    malformed.add(partition)
    assert sorted(cases) == list(range(50))
    assert unreadable.keys() == UNREADABLE.keys()
    for partition, (error,) in unreadable.items():
        assert isinstance(error, UNREADABLE[partition]), cases[partition]["what"]
    assert trailing == {17: [5], 18: [3]}
    assert malformed == {20}
    assert damaged == {48}
