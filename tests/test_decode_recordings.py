"""Every recording, decoded record by record, against what Kafka's own tools printed of the same files."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import struct
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
from offsets_log.log_format.building import encode_legacy_message, rebuild_batch
from offsets_log.log_format.control_record import decode_control_record
from offsets_log.log_format.java_text import decode_java_utf8
from offsets_log.log_format.partition_log import PartitionLog, Segment, iter_log
from offsets_log.log_format.record import Record, iter_records
from offsets_log.log_format.segment import Tail
from offsets_log.messages.registry import (
    CoordinatorRecord,
    decode_coordinator_record,
    encode_coordinator_record,
)
from tests.conftest import RECORDINGS, log_directories, read_json, read_partition, read_partitions
from tests.dump_log import Crash, Dumped, DumpedBatch, DumpedRecord, Fact, Notice, parse_dump, read_dump

Recordings = Callable[[str], Path]
Version = tuple[int, int]


@dataclass(frozen=True)
class Dump:
    """The dumps of one data folder by one version of the tool, and how many records they hold."""

    recording: str
    tool: Version
    records: int
    variant: str = ""
    by: str = ""

    def __str__(self) -> str:
        return f"{self.recording}{self.variant}{self.by}"

    def file(self, folder: Path, partition: int) -> Path:
        """The dump of one partition."""
        return folder / f"answers/dump-log{self.variant}/{partition}{self.by}.txt.gz"


BY_2_8 = {"tool": (2, 8), "by": ".by-2.8.2"}
DUMPS = (
    Dump("kafka-0.8.2", (0, 8), 313),
    Dump("kafka-0.8.2", records=313, **BY_2_8),
    Dump("kafka-0.10.2", (0, 10), 249),
    Dump("kafka-0.10.2", records=249, **BY_2_8),
    Dump("kafka-0.11-compacted", (0, 11), 467),
    Dump("kafka-0.11-compacted", records=467, **BY_2_8),
    Dump("kafka-1.1", (1, 1), 339),
    Dump("kafka-1.1", records=339, **BY_2_8),
    Dump("kafka-2.8", (2, 8), 356),
    Dump("kafka-3.7-preview", (3, 7), 370),
    Dump("kafka-lifetime", (3, 7), 819),
    Dump("kafka-lifetime", records=819, **BY_2_8),
    Dump("kafka-3.9-classic", (3, 9), 512),
    Dump("kafka-4.3-cleaned", (4, 3), 2587, "-before"),
    Dump("kafka-4.3-cleaned", (4, 3), 190),
    Dump("kafka-4.3-cleaned", (4, 3), 107, "-later"),
    Dump("kafka-4.3-compressed", (4, 3), 368),
    Dump("kafka-4.3-expired", (4, 3), 81),
    Dump("kafka-4.3-live-copy", (4, 3), 1639),
    Dump("kafka-4.3-live-copy", (4, 3), 1637, "-torn"),
    Dump("kafka-4.3-live-copy", (4, 3), 1639, "-zeros"),
    Dump("kafka-4.3-mixed", (4, 3), 599),
    Dump("kafka-4.3-modern-groups", (4, 3), 549),
)
WITHOUT_DUMP = {"load-fails", "random-java", "random-scala"}


# ------------------------------------------------------------------------------- what we read, in plain form


def batches_of(log: PartitionLog) -> Iterator[tuple[Segment, RecordBatch]]:
    """The batches of a partition in which nothing is damaged."""
    for segment, item in iter_log(log):
        assert not isinstance(item, Damage), item.error
        if isinstance(item, RecordBatch):
            yield segment, item


def records_of(batch: RecordBatch) -> list[Record]:
    """The records of a batch in which nothing is damaged."""
    records = []
    for record in iter_records(batch):
        assert isinstance(record, Record), record.error
        records.append(record)
    return records


# ------------------------------------------------------------------------------------ facts, as printed


def last_sequence(batch: RecordBatch) -> int:
    if batch.base_sequence < 0:
        return -1
    return (batch.base_sequence + batch.last_offset - batch.base_offset) % 2**31


def facts_of_batch(batch: RecordBatch, records: list[Record]) -> dict[str, Fact]:
    """All that a batch line of any era may say."""
    return {
        "offset": batch.last_offset,
        "base_offset": batch.base_offset if batch.magic == 2 else records[0].offset,
        "last_offset": batch.last_offset,
        "count": batch.records_count,
        "base_sequence": batch.base_sequence,
        "last_sequence": last_sequence(batch),
        "producer_id": batch.producer_id,
        "producer_epoch": batch.producer_epoch,
        "partition_leader_epoch": batch.partition_leader_epoch,
        "is_transactional": batch.is_transactional,
        "is_control": batch.is_control,
        "delete_horizon_ms": batch.delete_horizon_ms,
        "position": batch.position,
        "timestamp_type": batch.timestamp_type,
        "timestamp_ms": batch.max_timestamp_ms,
        "size": batch.size_bytes,
        "magic": batch.magic,
        "codec": batch.codec.name,
        "crc": batch.crc,
        "is_valid": batch.is_valid(),
    }


def facts_of_record(batch: RecordBatch, records: list[Record], record: Record, tool: Version) -> dict[str, Fact]:
    """All that a record line of any era may say, the facts of its batch among them."""
    facts = facts_of_batch(batch, records) | {
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        "key_size": -1 if record.key is None else len(record.key),
        "value_size": -1 if record.value is None else len(record.value),
        "sequence": record.sequence,
        "header_keys": f"[{','.join(key for key, _ in record.headers)}]",
        "crc": None if batch.magic == 2 else message_crc(batch, record),
    }
    if tool < (0, 11):
        facts["codec"] = "none"  # the inner message's own
    return facts


def message_crc(batch: RecordBatch, record: Record) -> int:
    """The checksum of a message of magic 0 or 1, made from what was read of it."""
    attributes = batch.attributes if batch.codec.id == 0 else 0
    message = encode_legacy_message(
        magic=batch.magic,
        offset=0,
        timestamp_ms=record.timestamp_ms,
        attributes=attributes,
        key=record.key,
        value=record.value,
    )
    return decode_batch_header(message).crc


CODEC_NAMES = {"nocompressioncodec": "none"}


def check_facts(printed: dict[str, Fact], ours: dict[str, Fact], needed: set[str], where: str) -> None:
    """Everything printed is what we read, and what an era always prints was printed."""
    assert needed <= printed.keys(), f"{where}: {needed - printed.keys()} was not printed"
    if "codec" in printed:
        codec = str(printed["codec"]).lower()
        printed = printed | {"codec": CODEC_NAMES.get(codec, codec)}
    assert printed == {name: ours[name] for name in printed}, where


# ----------------------------------------------------------------------- key and payload, as text of an era


def split_json_text(key: str | None, payload: str | None) -> tuple[Any, Any]:
    """3.8 and later print JSON."""
    assert key is not None
    assert payload is not None
    return json.loads(key), payload if payload == "<DELETE>" else json.loads(payload)


def json_form(record: CoordinatorRecord) -> tuple[Any, Any]:
    key = {"type": str(record.record_type), "data": record.key_json()}
    value = record.value_json()
    if value is None:
        return key, "<DELETE>"
    if record.record_type == 2 and value["protocolType"] == "consumer":
        for member in value["members"]:
            member["subscription"] = expanded(read_subscription, member["subscription"])
            member["assignment"] = expanded(read_assignment, member["assignment"])
    return key, {"version": str(record.value_version), "data": value}


def offset_text(record: CoordinatorRecord, prefix: str) -> str:
    """Offset and metadata; the older texts know no more of a commit."""
    assert record.value is not None
    metadata = record.value["metadata"]
    return f"{record.value['offset']}{prefix}{metadata}" if metadata else str(record.value["offset"])


def members_text(record: CoordinatorRecord) -> list[str]:
    """The assignment of each member as the texts before 3.8 have it."""
    assert record.value is not None
    is_consumer = record.value["protocol_type"] == "consumer"
    texts = []
    for member in record.value["members"]:
        text = hexadecimal(member["assignment"])
        if is_consumer:
            assignment = read_assignment(member["assignment"])
            partitions = [
                f"{part['topic']}-{number}"
                for part in assignment["assignedPartitions"]
                for number in part["partitions"]
            ]
            user_data = hexadecimal(base64.b64decode(assignment["userData"] or ""))
            text = f"[{', '.join(partitions)}]" + (f":{user_data}" if user_data else "")
        texts.append(f"{member['member_id']}={text}")
    return texts


def hexadecimal(data: bytes) -> str:
    """Bytes as one number, as the tool prints them: without leading zeros."""
    return f"{int.from_bytes(data):X}" if data else ""


def is_arrangement(text: str, pieces: list[str]) -> bool:
    """Whether a text is these pieces in some order, joined by commas: members stand in hash order."""
    if not pieces:
        return text == ""
    return any(
        text == piece
        if len(pieces) == 1
        else text.startswith(f"{piece},") and is_arrangement(text[len(piece) + 1 :], pieces[:i] + pieces[i + 1 :])
        for i, piece in enumerate(pieces)
    )


def check_assignment(text: str, record: CoordinatorRecord, where: str) -> None:
    assert (text[0], text[-1]) == ("{", "}"), where
    assert is_arrangement(text[1:-1], members_text(record)), f"{where}: {text} is not {members_text(record)}"


def check_raw(dumped: DumpedRecord, raw: Record, record: CoordinatorRecord, where: str) -> None:
    """0.8.2: the bytes, read as UTF-8."""
    assert raw.key is not None
    assert dumped.key == decode_java_utf8(raw.key), where
    assert dumped.payload == ("null" if raw.value is None else decode_java_utf8(raw.value)), where


def check_colons(dumped: DumpedRecord, raw: Record, record: CoordinatorRecord, where: str) -> None:
    """0.9 – 1.1: keys as ``offset::group:topic:partition``; tombstones have neither key nor payload."""
    if record.value is None:
        assert (dumped.key, dumped.payload) == (None, None), where
        return
    if record.is_offset_commit:
        assert dumped.key == f"offset::{record.group}:{record.key['topic']}:{record.key['partition']}", where
        assert dumped.payload == offset_text(record, ":"), where
        return
    assert dumped.key == f"metadata::{record.group}", where
    assert dumped.payload is not None
    protocol = "null" if record.value["protocol"] is None else record.value["protocol"]
    # These versions know the protocol type from the members only.
    protocol_type = record.value["protocol_type"] if record.value["members"] else ""
    head = f"{protocol_type}:{protocol}:{record.value['generation']}:"
    assert dumped.payload.startswith(head), where
    check_assignment(dumped.payload.removeprefix(head), record, where)


def check_metadata_json(dumped: DumpedRecord, record: CoordinatorRecord, where: str) -> None:
    """1.0 – 3.7: a group as JSON, the assignment inside as text."""
    assert record.value is not None
    assert dumped.payload is not None
    payload = json.loads(dumped.payload)
    check_assignment(payload.pop("assignment"), record, where)
    assert payload == {
        "protocolType": record.value["protocol_type"],
        "protocol": record.value["protocol"],
        "generationId": record.value["generation"],
    }, where


def check_1_1(dumped: DumpedRecord, raw: Record, record: CoordinatorRecord, where: str) -> None:
    """1.0 – 2.3: offsets as before, groups as JSON."""
    if record.value is None or record.is_offset_commit:
        check_colons(dumped, raw, record, where)
        return
    assert json.loads(dumped.key or "") == {"metadata": record.group}, where
    check_metadata_json(dumped, record, where)


def check_2_8(dumped: DumpedRecord, raw: Record, record: CoordinatorRecord, where: str) -> None:
    """2.4 – 3.7: ``offset_commit::group=…,partition=…``; types it does not know by their number only."""
    if record.record_type > 2:
        assert (dumped.key, dumped.payload) == (f"unknown::version={record.record_type}", None), where
        return
    if record.is_offset_commit:
        partition = f"{record.key['topic']}-{record.key['partition']}"
        assert dumped.key == f"offset_commit::group={record.group},partition={partition}", where
    else:
        assert dumped.key == f"group_metadata::group={record.group}", where
    if record.value is None:
        assert dumped.payload == "<DELETE>", where
    elif record.is_offset_commit:
        assert dumped.payload == f"offset={offset_text(record, ',metadata=')}", where
    else:
        check_metadata_json(dumped, record, where)


def check_json(dumped: DumpedRecord, raw: Record, record: CoordinatorRecord, where: str) -> None:
    """3.8 and later: everything, as JSON."""
    assert split_json_text(dumped.key, dumped.payload) == json_form(record), where


TEXTS = {
    (0, 8): check_raw,
    (0, 10): check_colons,
    (0, 11): check_colons,
    (1, 1): check_1_1,
    (2, 8): check_2_8,
    (3, 7): check_2_8,
    (3, 9): check_json,
    (4, 3): check_json,
}


# ------------------------------------------------------------------ the members' own bytes, read a second way


class Reader:
    """Big-endian numbers, strings and arrays of the consumer protocol."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def number(self, form: str) -> int:
        (value,) = struct.unpack_from(f">{form}", self.data, self.at)
        self.at += struct.calcsize(form)
        return int(value)

    def take(self, size: int) -> bytes:
        assert 0 <= size <= len(self.data) - self.at
        self.at += size
        return self.data[self.at - size : self.at]

    def string(self) -> str | None:
        size = self.number("h")
        return None if size < 0 else self.take(size).decode()

    def bytes(self) -> str | None:
        size = self.number("i")
        return None if size < 0 else base64.b64encode(self.take(size)).decode()

    def array(self, element: Callable[[], Any]) -> list[Any]:
        return [element() for _ in range(self.number("i"))]

    def topic_partitions(self) -> dict[str, Any]:
        return {"topic": self.string(), "partitions": self.array(lambda: self.number("i"))}


def read_subscription(data: bytes) -> dict[str, Any]:
    reader = Reader(data)
    version = reader.number("h")
    json: dict[str, Any] = {"topics": reader.array(reader.string), "userData": reader.bytes()}
    if version >= 1:
        json["ownedPartitions"] = reader.array(reader.topic_partitions)
    if version >= 2:
        json["generationId"] = reader.number("i")
    if version >= 3:
        json["rackId"] = reader.string()
    return json


def read_assignment(data: bytes) -> dict[str, Any]:
    reader = Reader(data)
    reader.number("h")
    return {"assignedPartitions": reader.array(reader.topic_partitions), "userData": reader.bytes()}


def expanded(read: Callable[[bytes], dict[str, Any]], encoded: str) -> Any:
    """JSON of the members' bytes, or the base64 text as it is where they are something else."""
    try:
        return read(base64.b64decode(encoded))
    except (struct.error, AssertionError):
        return encoded


# ------------------------------------------------------------------------------------------ against the dumps

NEEDED_OF_BATCH = {"position", "timestamp_type", "timestamp_ms", "size", "magic", "codec", "crc", "is_valid"}
NEEDED_OF_BATCH_2 = NEEDED_OF_BATCH | {
    "base_offset",
    "last_offset",
    "count",
    "base_sequence",
    "last_sequence",
    "producer_id",
    "producer_epoch",
    "partition_leader_epoch",
    "is_transactional",
    "is_control",
}
NEEDED_OF_RECORD = {"offset", "key_size", "value_size"}


def check_record(dumped: DumpedRecord, batch: RecordBatch, records: list[Record], raw: Record, tool: Version) -> None:
    where = f"{dumped.file} position {batch.position} offset {raw.offset}"
    needed = NEEDED_OF_RECORD
    if tool > (0, 8):
        needed = needed | {"timestamp_ms", "timestamp_type"} | ({"sequence"} if batch.magic == 2 else set())
    check_facts(dumped.facts, facts_of_record(batch, records, raw, tool), needed, where)
    if batch.is_control:
        marker = decode_control_record(raw)
        assert (dumped.marker, dumped.coordinator_epoch) == (marker.type, marker.coordinator_epoch), where
        return
    assert dumped.marker is None, where
    TEXTS[tool](dumped, raw, decode_coordinator_record(raw.key, raw.value), where)


def check_partition(log: PartitionLog, dumped: list[Dumped], tool: Version) -> Counter[str]:
    """Compare batch by batch, record by record; how many there were."""
    counts: Counter[str] = Counter()
    entries = iter([entry for entry in dumped if not isinstance(entry, Notice)])
    for segment, batch in batches_of(log):
        records = records_of(batch)
        if tool >= (2, 8):
            line = next(entries)
            where = f"{segment.file} position {batch.position}"
            assert isinstance(line, DumpedBatch), where
            assert segment.file.endswith(f"/{line.file}"), where
            needed = NEEDED_OF_BATCH_2 if batch.magic == 2 else NEEDED_OF_BATCH | {"offset"}
            if batch.magic == 2 and tool >= (3, 7):
                needed = needed | {"delete_horizon_ms"}
            check_facts(line.facts, facts_of_batch(batch, records), needed, where)
            counts["batches"] += 1
        for record in records:
            entry = next(entries)
            assert isinstance(entry, DumpedRecord), f"{segment.file} offset {record.offset}: {entry}"
            assert segment.file.endswith(f"/{entry.file}"), f"{segment.file} offset {record.offset}: {entry}"
            check_record(entry, batch, records, record, tool)
            counts["markers" if batch.is_control else "tombstones" if record.value is None else "values"] += 1
    left = list(entries)
    assert not left, f"the dump has more: {left[0]}"
    return counts


@pytest.mark.parametrize("dump", DUMPS, ids=str)
def test_every_record_is_what_kafkas_dump_tool_printed(
    dump: Dump, recording: Recordings, record_property: Callable[[str, object], None]
) -> None:
    folder = recording(dump.recording)
    counts: Counter[str] = Counter()
    for partition, log in read_partitions(folder / f"log{dump.variant}").items():
        counts += check_partition(log, read_dump(dump.file(folder, partition)), dump.tool)
    for name, count in sorted(counts.items()):
        record_property(name, count)
    assert counts["values"] + counts["tombstones"] + counts["markers"] == dump.records
    assert counts["values"] > 0


@pytest.mark.parametrize("name", RECORDINGS)
def test_no_dump_is_left_out(name: str, recording: Recordings) -> None:
    folder = recording(name)
    listed = {
        dump.file(folder, partition)
        for dump in DUMPS
        if dump.recording == name
        for partition in read_partitions(folder / f"log{dump.variant}")
    }
    assert listed == set(folder.glob("answers/dump-log*/*.gz"))
    assert bool(listed) != (name in WITHOUT_DUMP)


def test_a_dump_that_is_wrong_anywhere_does_not_agree(recording: Recordings) -> None:
    folder = recording("kafka-4.3-mixed")
    log = read_partition(folder / "log/__consumer_offsets-2")
    text = gzip.decompress((folder / "answers/dump-log/2.txt.gz").read_bytes()).decode()
    wrong = [
        text.replace("sequence: 0 headerKeys", "sequence: 1 headerKeys", 1),
        text.replace('"offset":', '"offset":1', 1),
        text.replace("isTransactional: false", "isTransactional: true", 1),
        text.replace("payload: {", "payload: <DELETE>{", 1),
        text[: text.rindex("| offset")],
        text + text[text.rindex("| offset") :],
    ]
    assert check_partition(log, list(parse_dump(text)), (4, 3))["values"] > 0
    for altered in wrong:
        assert altered != text
        with pytest.raises((AssertionError, StopIteration, json.JSONDecodeError)):
            check_partition(log, list(parse_dump(altered)), (4, 3))


def test_the_parser_of_dumps_takes_broken_lines_and_a_crash() -> None:
    text = (
        "Dumping log/__consumer_offsets-1/00000000000000000000.log\nStarting offset: 0\n"
        "offset: 0 position: 0 CreateTime: 7 isvalid: true payloadsize: 2 magic: 1 compresscodec: NONE crc: 5 "
        "keysize: 4 key: offset::g:t:0 payload: 1:line one\n\nline: three\toffset: 3\n"
        "offset: 1 position: 9 LogAppendTime: 8 isvalid: false payloadsize: -1 magic: 1 compresscodec: NONE crc: 6 "
        "keysize: 4\n"
        'Exception in thread "main" java.lang.NullPointerException\n\tat kafka.tools.DumpLogSegments$.main(D.scala:7)\n'
    )
    first, second, crash = parse_dump(text)
    assert isinstance(first, DumpedRecord)
    assert (first.file, first.key) == ("00000000000000000000.log", "offset::g:t:0")
    assert first.payload == "1:line one\n\nline: three\toffset: 3"
    assert isinstance(second, DumpedRecord)
    assert (second.key, second.payload, second.facts["is_valid"]) == (None, None, False)
    assert (second.facts["timestamp_type"], second.facts["timestamp_ms"]) == ("log_append", 8)
    assert isinstance(crash, Crash)


# ------------------------------------------------------------------------------- against the console formatters

CONSOLE_TYPES = {"offsets": {0, 1}, "groups": {2}, "share-groups": set(range(10, 16))}


def concatenated_json(text: str) -> Iterator[Any]:
    """JSON objects one behind the other, nothing between them."""
    decoder, at = json.JSONDecoder(), 0
    while at < len(text):
        value, at = decoder.raw_decode(text, at)
        yield value


@pytest.mark.parametrize("name", [name for name in RECORDINGS if name.startswith(("kafka-3.9", "kafka-4"))])
def test_the_console_formatters_say_the_same(name: str, recording: Recordings) -> None:
    folder = recording(name)
    number = "version" if name.startswith("kafka-3.9") else "type"
    records = list(decoded_records(folder / "log"))
    files = sorted(folder.glob("answers/console/*.json.gz"))
    assert len(files) >= 2
    for file in files:
        types = CONSOLE_TYPES[file.name.removesuffix(".json.gz")]
        printed = list(concatenated_json(gzip.decompress(file.read_bytes()).decode()))
        ours = [
            {
                "key": {number: record.record_type, "data": record.key_json()},
                "value": record.value and {"version": record.value_version, "data": record.value_json()},
            }
            for record in records
            if record.record_type in types
        ]
        assert printed == ours, file.name


def decoded_records(log_directory: Path) -> Iterator[CoordinatorRecord]:
    """All data records of a data folder, partition 0 first."""
    for log in read_partitions(log_directory).values():
        for _, batch in batches_of(log):
            if not batch.is_control:
                for record in records_of(batch):
                    yield decode_coordinator_record(record.key, record.value)


def test_the_console_formatter_of_0_8_2_says_the_same(recording: Recordings) -> None:
    folder = recording("kafka-0.8.2")
    text = gzip.decompress((folder / "answers/console-formatter.txt.gz").read_bytes()).decode()
    printed = re.split(r"\n(?=\[)", re.split(r"\n\S+ \S+ ERROR ", text)[0])  # at the end it is left waiting
    ours = []
    for record in decoded_records(folder / "log"):
        key = f"[{record.group},{record.key['topic']},{record.key['partition']}]"
        value = "NULL"
        if record.value is not None:
            metadata = record.value["metadata"] or "NO_METADATA"
            value = f"OffsetAndMetadata[{record.value['offset']},{metadata},{record.value['commit_timestamp']}]"
        ours.append(f"{key}::{value}")
    assert len(ours) == 313
    assert sorted(printed) == sorted(ours)  # the consumer took the partitions in turns


# --------------------------------------------------------------------------------------- every recording

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
