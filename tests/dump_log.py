"""A parser of what ``kafka-dump-log --offsets-decoder`` prints, for every text it ever printed.

0.8.2 – 1.1    one line a record: ``offset: 0 position: 0 CreateTime: 1 … key: … payload: …``
2.2 – 2.8      batch lines, records behind ``| `` that repeat the batch's facts
3.x, 4.x       batch lines, records behind ``| `` with their own facts only

Metadata is printed as it is, line breaks included, so an entry goes on until a line that begins another one. What a
crashed tool printed ends at its stack trace; such an end is given as `Crash`.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

Fact = int | bool | str | None


@dataclass(frozen=True, slots=True)
class DumpedBatch:
    """A batch line.

    Attributes:
        file: name in the last "Dumping" line, without folders.
        facts: what the line says, under the names of `NAMES`.
    """

    file: str
    facts: dict[str, Fact]


@dataclass(frozen=True, slots=True)
class DumpedRecord:
    """A record line; the older texts have no batch lines, and a batch's facts stand here.

    Attributes:
        key, payload: the printed text; None where nothing was printed.
        marker: COMMIT or ABORT of a control record.
    """

    file: str
    facts: dict[str, Fact]
    key: str | None = None
    payload: str | None = None
    marker: str | None = None
    coordinator_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class Notice:
    """What the tool found strange at an end: "Found 140 invalid bytes …", "66 is followed by 69"."""

    file: str
    text: str


@dataclass(frozen=True, slots=True)
class Crash:
    """The tool died here: what it would have printed behind this is missing."""

    file: str
    text: str


Dumped = DumpedBatch | DumpedRecord | Notice | Crash

NAMES = {
    "isvalid": "is_valid",
    "isValid": "is_valid",
    "payloadsize": "value_size",
    "valuesize": "value_size",
    "valueSize": "value_size",
    "keysize": "key_size",
    "keySize": "key_size",
    "size": "size",
    "batchSize": "size",
    "compresscodec": "codec",
    "compressType": "codec",
    "offset": "offset",
    "baseOffset": "base_offset",
    "lastOffset": "last_offset",
    "count": "count",
    "baseSequence": "base_sequence",
    "lastSequence": "last_sequence",
    "sequence": "sequence",
    "producerId": "producer_id",
    "producerEpoch": "producer_epoch",
    "partitionLeaderEpoch": "partition_leader_epoch",
    "isTransactional": "is_transactional",
    "isControl": "is_control",
    "deleteHorizonMs": "delete_horizon_ms",
    "position": "position",
    "magic": "magic",
    "crc": "crc",
    "headerKeys": "header_keys",
    "CreateTime": "CreateTime",
    "LogAppendTime": "LogAppendTime",
    "NoTimestampType": "NoTimestampType",
}
"""The tool's spellings, which changed over the years, and ours."""

TIMESTAMP_TYPES = {"CreateTime": "create", "LogAppendTime": "log_append", "NoTimestampType": "none"}

FILE_LINE = re.compile(r"Dumping (?:.*/)?([^/]+)$")
START_LINE = re.compile(r"(?:Log s|S)tarting offset: \d+$")
BATCH_LINE = re.compile(r"baseOffset: \d+ lastOffset: |offset: \d+ position: \d+ \w+: -?\d+ size: ")
RECORD_LINE = re.compile(r"(?:\| )?offset: \d+ (?:position|isValid|CreateTime|LogAppendTime|NoTimestampType): ")
NOTICE_LINE = re.compile(r"Non-consecutive offsets in |  \d+ is followed by \d+$|Found \d+ invalid bytes at the end")
CRASH_LINE = re.compile(r"Exception in thread |(?:[\w$]+\.)+[\w$]*(?:Exception|Error)(?:: |$)|\tat [\w$.]+\(")

FACT = re.compile(r"(\w+): (OptionalLong\.empty|OptionalLong\[\d+\]|\[[^\]]*\]|[^\s}]+)\}?(?: |$)")
KEY_AND_PAYLOAD = re.compile(r"(?:^| )key: (?P<key>.*?)(?: payload: (?P<payload>.*))?$", re.DOTALL)
MARKER = re.compile(r" endTxnMarker: (?P<marker>\w+) coordinatorEpoch: (?P<epoch>-?\d+)$")


def read_dump(path: Path) -> list[Dumped]:
    """All entries of a gzipped dump."""
    return list(parse_dump(gzip.decompress(path.read_bytes()).decode()))


def parse_dump(text: str) -> Iterator[Dumped]:
    """The entries of a dump in order."""
    state = _State()
    for line in text.removesuffix("\n").split("\n"):
        if _begins_entry(line):
            yield from state.finish()
            if CRASH_LINE.match(line):
                yield Crash(state.file, line)
                return
            state.begin(line)
        else:
            state.lines.append(line)
    yield from state.finish()


def _begins_entry(line: str) -> bool:
    return any(form.match(line) for form in (FILE_LINE, START_LINE, BATCH_LINE, RECORD_LINE, NOTICE_LINE, CRASH_LINE))


@dataclass(slots=True)
class _State:
    """The entry being read: its lines so far."""

    file: str = ""
    lines: list[str] = field(default_factory=list)

    def begin(self, line: str) -> None:
        self.lines = []
        if found := FILE_LINE.match(line):
            self.file = found[1]
        elif not START_LINE.match(line):
            self.lines.append(line)

    def finish(self) -> Iterator[Dumped]:
        entry, self.lines = "\n".join(self.lines), []
        if not entry.strip():
            return
        if NOTICE_LINE.match(entry):
            yield Notice(self.file, entry)
        elif BATCH_LINE.match(entry):
            yield DumpedBatch(self.file, _facts(entry))
        else:
            yield _record(self.file, entry.removeprefix("| "))


def _record(file: str, entry: str) -> DumpedRecord:
    if marker := MARKER.search(entry):
        facts = _facts(entry[: marker.start()])
        return DumpedRecord(file, facts, marker=marker["marker"], coordinator_epoch=int(marker["epoch"]))
    found = KEY_AND_PAYLOAD.search(entry)
    if found is None:
        return DumpedRecord(file, _facts(entry))
    return DumpedRecord(file, _facts(entry[: found.start()]), found["key"], found["payload"])


def _facts(text: str) -> dict[str, Fact]:
    """The ``name: value`` pairs; a name that is unknown or comes back with another value is an error."""
    facts: dict[str, Fact] = {}
    end = 0
    for found in FACT.finditer(text):
        if found.start() != end:
            raise ValueError(f"cannot read {text[end : found.start()]!r} in {text!r}")
        end = found.end()
        name, value = NAMES[found[1]], _value(found[2])
        if name in TIMESTAMP_TYPES:
            facts["timestamp_type"] = TIMESTAMP_TYPES[name]
            name = "timestamp_ms"
        if facts.setdefault(name, value) != value:
            raise ValueError(f"{name} is {facts[name]} and {value} in {text!r}")
    if text[end:].strip():
        raise ValueError(f"cannot read {text[end:]!r} in {text!r}")
    return facts


def _value(text: str) -> Fact:
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    if optional := re.fullmatch(r"OptionalLong\[(\d+)\]", text):
        return int(optional[1])
    return {"true": True, "false": False, "null": None, "OptionalLong.empty": None}.get(text, text)
