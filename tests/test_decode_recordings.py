"""Every recording, decoded record by record, against what Kafka's own tools printed of the same files."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from offsets_log.errors import (
    Damage,
)
from offsets_log.log_format.batch import (
    RecordBatch,
)
from offsets_log.log_format.control_record import decode_control_record
from offsets_log.log_format.partition_log import PartitionLog, Segment, iter_log
from offsets_log.log_format.record import Record, iter_records
from offsets_log.messages.registry import (
    CoordinatorRecord,
    decode_coordinator_record,
)
from tests.conftest import RECORDINGS, read_partition, read_partitions
from tests.dump_facts import TEXTS, Version, check_facts, facts_of_batch, facts_of_record
from tests.dump_log import Crash, Dumped, DumpedBatch, DumpedRecord, Notice, parse_dump, read_dump

Recordings = Callable[[str], Path]


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
    Dump("kafka-4.4-mixed", (4, 4), 570),
    Dump("kafka-4.4-modern-groups", (4, 4), 739),
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
