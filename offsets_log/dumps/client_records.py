"""Read whole records as clients and their tools print them: their bytes are all there, in one notation or another.

JSON      objects with partition, offset, key and value, as REST Proxy (base64), KafkaJS (``{"type":"Buffer"}``) and
          interfaces for browsers export them; one a line, one after the other, or in an array
Python    ``ConsumerRecord(topic='__consumer_offsets', partition=0, …, key=b'\\x00…', value=None, …)``
console   ``CreateTime:1\tPartition:0\tOffset:0\tKEY\tVALUE`` of kafka-console-consumer with BytesDeserializer, which
          writes ``\\x00`` for bytes that are no letters (``Bytes.toString``)
Go        ``Partition:0 Offset:5 … Key:[0 1 0 …] Value:[0 3 …]``, a record as ``%+v`` prints it
"""

from __future__ import annotations

import ast
import base64
import binascii
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from offsets_log.dumps.json_items import iter_items
from offsets_log.dumps.kcat import Told, batches_of
from offsets_log.dumps.source import SourcePiece
from offsets_log.errors import CorruptRecordError, Damage, OffsetsLogError, UnsupportedError
from offsets_log.log_format.record import Record
from offsets_log.log_format.segment import Buffer
from offsets_log.messages.internal_topics import OFFSETS_TOPIC

NAMES = {
    "key": ("key", "Key"),
    "value": ("value", "Value", "payload"),
    "partition": ("partition", "Partition", "partitionID"),
    "offset": ("offset", "Offset"),
    "timestamp": ("timestamp", "Timestamp", "ts", "time"),
    "topic": ("topic", "Topic"),
}
"""What is known of a record → its names in JSON."""
ROW = re.compile(
    r'^[\s,\[]*\{(?=[^{}]*"(?:partition|Partition|partitionID)"\s*:)(?=[^{}]*"(?:offset|Offset)"\s*:)'
    r'(?=(?:[^{}]|\{\s*"type"\s*:\s*"Buffer"[^{}]*\})*"(?:value|Value)"\s*:)',
    re.MULTILINE,
)
PYTHON = re.compile(r"ConsumerRecord\(topic='")
JAVA = re.compile(r"ConsumerRecord\(topic = ")
FIELD = r"(?:[A-Z]\w*:[^\t]*\t)*"
CONSOLE = re.compile(
    r"(?:(?:CreateTime|LogAppendTime):(?P<time>-?\d+)\t|NO_TIMESTAMP\t)?"
    rf"{FIELD}?Partition:(?P<partition>\d+)\t{FIELD}?Offset:(?P<offset>\d+)\t{FIELD}?"
    r"(?:NO_HEADERS\t)?(?P<key>[^\t]*)\t(?P<value>[^\t]*)$"
)
GO = re.compile(r"[&{].*\b(?:Key|Value):(?:\[[\d ]*\]|<nil>).*\bOffset:\d+")
FACT = {
    name: re.compile(rf"\b{name}[:=](\[[\d ]*\]|<nil>|[^\s,}}]+)")
    for name in ("Key", "Value", "Partition", "Offset", "Topic")
}
ESCAPED = re.compile(r"\\x([0-9A-Fa-f]{2})")


Printed = tuple[int, int, int, bytes | None, bytes | None]
"""Partition, offset, time in milliseconds (−1 if it is not told), key and value."""


def is_client_records(text: str) -> bool:
    """Return whether a text has a record of one of these forms."""
    return bool(ROW.search(text)) or any(_form_of(line) for line in text.split("\n"))


def _form_of(line: str) -> Any:
    return next((read for form, read in LINES if form.match(line)), None)


def read(buffer: Buffer) -> Iterator[SourcePiece]:
    """Yield one batch for each record: its real batch is not known."""
    text = bytes(buffer).decode(errors="replace")
    yield from batches_of(lambda: _records(text))


def _records(text: str) -> Iterator[Told | Damage]:
    rows: Iterator[tuple[int, Any]] = iter_items(text) if ROW.search(text) else enumerate(text.split("\n"), 1)
    for line, row in rows:
        if isinstance(row, Damage):
            yield row
        elif isinstance(row, dict) or row.strip():
            try:
                partition, offset, time_ms, key, value = _from_json(row) if isinstance(row, dict) else _from_line(row)
            except OffsetsLogError as error:
                yield Damage(error.at(position=line), str(row).encode(errors="replace"))
                continue
            yield Told(partition, Record(offset=offset, position=line, timestamp_ms=time_ms, key=key, value=value))


# ------------------------------------------------------------------------------------------------ JSON


def _from_json(row: dict[str, Any]) -> Printed:
    facts = {
        fact: next((row[name] for name in names if name in row), None if fact in ("key", "value") else ...)
        for fact, names in NAMES.items()
    }
    if facts["topic"] not in (..., OFFSETS_TOPIC):
        raise UnsupportedError(f"it is of topic {str(facts['topic'])[:80]!r}")
    return (
        _number(facts["partition"], "partition"),
        _number(facts["offset"], "offset"),
        _time(facts["timestamp"]),
        _json_bytes(facts["key"], "key"),
        _json_bytes(facts["value"], "value"),
    )


def _number(told: Any, name: str) -> int:
    if isinstance(told, bool) or not (isinstance(told, int) or (isinstance(told, str) and told.isdigit())):
        raise CorruptRecordError(f"it does not tell its {name}")
    return int(told)


def _time(told: Any) -> int:
    """Return a time in milliseconds; −1 for one that is not told, or in no form that is certain."""
    if isinstance(told, int) and not isinstance(told, bool):
        return told
    if isinstance(told, str) and re.fullmatch(r"-?\d{1,19}", told):
        return int(told)
    try:
        at = datetime.fromisoformat(told) if isinstance(told, str) else None
    except ValueError:
        return -1
    return -1 if at is None or at.tzinfo is None else round(at.timestamp() * 1000)


def _json_bytes(told: Any, name: str) -> bytes | None:
    """Return bytes of a JSON value: base64, hexadecimal, or a list of numbers; both begin with a small number."""
    if isinstance(told, dict) and told.get("type") == "Buffer":
        told = told.get("data")
    if told is None:
        return None
    try:
        if isinstance(told, list):
            return bytes(number % 256 for number in told)
        if isinstance(told, str) and told[:2] == "00":
            return bytes.fromhex(told)
        if isinstance(told, str) and told[:1] == "A":
            return base64.b64decode(told, validate=True)
    except (ValueError, TypeError, binascii.Error):
        pass
    raise UnsupportedError(
        f"it is neither base64 nor hexadecimal, nor a list of numbers: bytes are lost in {told!r:.60}", field=name
    )


# ----------------------------------------------------------------------------------------------- lines


def _from_line(line: str) -> Printed:
    line = line.rstrip("\r")
    form = _form_of(line)
    if form is None:
        raise CorruptRecordError("it is none of the forms in which clients print records")
    told: Printed = form(line)
    return told


def _from_python(line: str) -> Printed:
    try:
        call = ast.parse(line.strip(), mode="eval").body
        assert isinstance(call, ast.Call)
        facts = {word.arg: ast.literal_eval(word.value) for word in call.keywords if word.arg in WANTED}
    except (ValueError, SyntaxError, AssertionError, RecursionError, MemoryError):
        raise CorruptRecordError("it is no whole ConsumerRecord(…)") from None
    if facts.get("topic") != OFFSETS_TOPIC:
        raise UnsupportedError(f"it is of topic {str(facts.get('topic'))[:80]!r}")
    key, value = facts.get("key"), facts.get("value")
    if not isinstance(key, bytes | None) or not isinstance(value, bytes | None):
        raise UnsupportedError("key or value are no bytes: a deserializer has changed them")
    place = _number(facts.get("partition"), "partition"), _number(facts.get("offset"), "offset")
    return (*place, _time(facts.get("timestamp")), key, value)


WANTED = frozenset({"topic", "partition", "offset", "timestamp", "key", "value"})


def _from_java(line: str) -> Printed:
    raise UnsupportedError(
        "Java's ConsumerRecord(…) does not print key and value: print partition, offset, timestamp and both as "
        "hexadecimal, PARTITION OFFSET TIMESTAMP KEY VALUE"
    )


def _from_console(line: str) -> Printed:
    found = CONSOLE.match(line)
    assert found is not None
    key, value = (None if text == "null" else _unescaped(text) for text in (found["key"], found["value"]))
    return (int(found["partition"]), int(found["offset"]), int(found["time"] or -1), key, value)


def _unescaped(text: str) -> bytes:
    if not text.isascii():
        raise UnsupportedError("its bytes were printed as text, which loses some: BytesDeserializer prints all")
    if "\\" in ESCAPED.sub("", text):  # Kafka escapes the backslash, too
        raise CorruptRecordError("a byte in it is not written whole")
    return ESCAPED.sub(lambda found: chr(int(found[1], 16)), text).encode("latin-1")


def _from_go(line: str) -> Printed:
    facts = {name: found[1] for name, form in FACT.items() if (found := form.search(line))}
    if facts.get("Topic", OFFSETS_TOPIC) != OFFSETS_TOPIC:
        raise UnsupportedError(f"it is of topic {facts['Topic'][:80]!r}")
    place = _number(facts.get("Partition"), "partition"), _number(facts.get("Offset"), "offset")
    return (*place, -1, _go_bytes(facts.get("Key")), _go_bytes(facts.get("Value")))


def _go_bytes(text: str | None) -> bytes | None:
    if text in (None, "<nil>", "[]"):
        return None
    try:
        return bytes(int(number) for number in str(text).strip("[]").split())
    except ValueError:
        raise CorruptRecordError("its bytes are no numbers") from None


LINES = ((PYTHON, _from_python), (JAVA, _from_java), (CONSOLE, _from_console), (GO, _from_go))
"""How a line begins → what reads it."""
