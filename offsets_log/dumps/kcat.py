"""Read what kcat prints of ``__consumer_offsets``: raw keys and values, decoded as those of a segment.

``kcat -J``                              one JSON object on each line; strings hold the bytes as they are, not as UTF-8
``kcat -f '%p %o %T %K %S %k%s\\n'``      partition, offset, timestamp, sizes of key and value (−1 for null), the bytes
``PARTITION OFFSET TIMESTAMP KEY VALUE`` the same with key and value as hexadecimal or base64, ``NULL`` for null

A line of the second form may hold line ends in its bytes. References: kcat's ``json.c``, ``format.c``.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from offsets_log.dumps.json_text import parse
from offsets_log.dumps.source import Remark, SegmentPlace, SourceBatch, SourcePiece, damaged_line, header
from offsets_log.dumps.untold import is_commit, untold_batch, untold_commits, untold_marker
from offsets_log.errors import CorruptRecordError, Damage, OffsetsLogError, UnsupportedError
from offsets_log.log_format.control_record import marker_in
from offsets_log.log_format.java_text import REPLACEMENT
from offsets_log.log_format.record import Record
from offsets_log.log_format.segment import Buffer
from offsets_log.messages.internal_topics import OFFSETS_TOPIC
from offsets_log.words import counted

FRAMED = re.compile(rb"(\d{1,9}) (\d{1,19}) (-?\d{1,19}) (-1|\d{1,9}) (-1|\d{1,9}) (?=[\x00\n]|-1|$)")
ENCODED = re.compile(rb"(\d{1,9}) (\d{1,19}) (-?\d{1,19}) ([0-9A-Za-z+/=_-]+) ([0-9A-Za-z+/=_-]+)\r?$")
LINE_END = re.compile(rb"\n")
JSON_BEGINS = re.compile(rb'\s*\{"topic":')
REENCODED = re.compile(rb"(?<!\\)(?:\\\\)*\\u(?!00[0-7])")
"""A Unicode escape that kcat does not write."""
NULL = frozenset({b"NULL", b"null", b"-"})
TIMESTAMP_TYPES = {"logappend": "log_append"}

UNTOLD = frozenset({"batch_base_offset", "magic", "compression", "producer_id", "producer_epoch", "is_transactional"})
REMARK = Remark(
    "no transaction markers are told: a consumer that reads committed records leaves out those of open and aborted "
    "transactions, one that does not (isolation.level=read_uncommitted) prints them like all others"
)


class Told(NamedTuple):
    """A record, its partition, and the type of its timestamp."""

    partition: int
    record: Record
    timestamp_type: str = "create"


def is_kcat(head: bytes) -> bool:
    """Return whether a file begins with one of the three forms."""
    line = head.lstrip().split(b"\n", 1)[0]
    if JSON_BEGINS.match(line):
        return b'"payload"' in line
    return bool(FRAMED.match(head) or ENCODED.match(line))


def read(buffer: Buffer) -> Iterator[SourcePiece]:
    """Yield one batch for each record: its real batch is not known."""
    yield from batches_of(lambda: _records(memoryview(buffer)))


def _records(view: memoryview) -> Iterator[Told | Damage]:
    at, line = 0, 1
    while at < len(view):
        found = FRAMED.match(view, at)
        end = _end_of_framed(view, found) if found else None
        if found is None or end is None:
            newline = LINE_END.search(view, at)
            end = newline.start() if newline else len(view)
        raw = view[at:end].tobytes()
        if raw.strip():
            try:
                yield _framed(raw, found, at, line) if found and _fits(found, end) else _line(raw, line)
            except OffsetsLogError as error:
                yield damaged_line(line, raw, error.problem)
        line += raw.count(b"\n") + 1
        at = end + 1


def batches_of(records: Callable[[], Iterator[Told | Damage]]) -> Iterator[SourcePiece]:
    """Yield one batch for each record, of which no more than its place is known.

    A consumer that shows transaction markers tells that some transactions were aborted, but not which: what was
    committed before such a marker may have been of it.

    Args:
        records: reads them from the beginning, each time it is called.
    """
    aborted: dict[int, int] = {}
    for told in records():
        if not isinstance(told, Damage) and (marker := marker_in(told.record)) and marker.type == "ABORT":
            aborted[told.partition] = max(told.record.offset, aborted.get(told.partition, -1))
    untold = first = count = 0
    ends: dict[int, int] = {}
    for told in records():
        if isinstance(told, Damage):
            yield told
            continue
        count += 1
        ends[told.partition] = max(told.record.offset + 1, ends.get(told.partition, 0))
        place, record = SegmentPlace(f"{OFFSETS_TOPIC}-{told.partition}", told.partition), told.record
        if marker_in(record):
            yield untold_marker(place, record, UNTOLD, timestamp_type=told.timestamp_type)
        elif is_commit(record) and record.offset < aborted.get(told.partition, -1):
            untold, first = untold + 1, first or record.position
            yield untold_batch(place, record, UNTOLD, timestamp_type=told.timestamp_type)
        else:
            made = header((record,), line=record.position, timestamp_type=told.timestamp_type)
            yield SourceBatch(place, made, (record,), UNTOLD)
    if count:
        yield REMARK
    if (left_out := sum(ends.values()) - count) > 0:
        yield Remark(
            f"{counted(left_out, 'record offset')} before and between its records {'is' if left_out == 1 else 'are'} "
            "not in it: a log that was cleaned or has transaction markers looks so, and one of which lines are "
            "missing, where an older offset may stand for a newer one, and a deleted one come back"
        )
    if untold:
        yield untold_commits(first, untold, "markers of aborted transactions stand behind")


def _end_of_framed(view: memoryview, found: re.Match[bytes]) -> int | None:
    """Return where the bytes end according to their sizes; None if no line ends there."""
    end = found.end() + max(int(found[4]), 0) + max(int(found[5]), 0)
    return end if end == len(view) or (end < len(view) and view[end] == ord("\n")) else None


def _fits(found: re.Match[bytes], end: int) -> bool:
    return end == found.end() + max(int(found[4]), 0) + max(int(found[5]), 0)


def _framed(raw: bytes, found: re.Match[bytes], at: int, line: int) -> Told:
    partition, offset, time, key_size, value_size = (int(number) for number in found.groups())
    body = raw[found.end() - at :]
    key = None if key_size < 0 else body[:key_size]
    value = None if value_size < 0 else body[max(key_size, 0) :]
    return _told(partition, offset, time, "create", key, value, line)


def _line(raw: bytes, line: int) -> Told:
    if raw.lstrip()[:1] == b"{":
        return _from_json(raw, line)
    found = ENCODED.match(raw)
    if found is None:
        raise CorruptRecordError("it is none of kcat's forms that are read; kcat -J prints one of them")
    partition, offset, time = (int(number) for number in found.groups()[:3])
    return _told(partition, offset, time, "create", _decoded(found[4]), _decoded(found[5]), line)


def _decoded(text: bytes) -> bytes | None:
    """Decode a key or value: both begin with a number below 256, so hexadecimal with ``00`` and base64 with ``A``."""
    if text in NULL:
        return None
    try:
        return bytes.fromhex(text.decode()) if text[:2] == b"00" else base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        raise CorruptRecordError("neither hexadecimal nor base64") from None


def _from_json(raw: bytes, line: int) -> Told:
    if REENCODED.search(raw):
        raise CorruptRecordError("another tool has read its bytes as text, which loses some")
    try:
        row = parse(raw.decode("latin-1"))
    except (ValueError, RecursionError) as error:
        raise CorruptRecordError(f"it is no JSON: {error}") from None
    if not isinstance(row, dict) or not row.keys() >= {"partition", "offset", "key", "payload"}:
        raise CorruptRecordError("it does not tell partition, offset, key and payload")
    if row.get("topic", OFFSETS_TOPIC) != OFFSETS_TOPIC:
        raise UnsupportedError(f"it is of topic {str(row['topic'])[:80]!r}")
    numbers = (row["partition"], row["offset"], row.get("ts", -1))
    if any(isinstance(number, bool) or not isinstance(number, int) for number in numbers):
        raise CorruptRecordError("partition, offset and ts are not all numbers")
    kind = TIMESTAMP_TYPES.get(str(row.get("tstype")), "create")
    return _told(*numbers, kind, _raw_bytes(row["key"], "key"), _raw_bytes(row["payload"], "payload"), line)


def _raw_bytes(text: Any, name: str) -> bytes | None:
    """Return a JSON string's bytes, which kcat writes raw except for control characters, quotes and backslashes."""
    if text is None:
        return None
    if not isinstance(text, str):
        raise CorruptRecordError("it is no string", field=name)
    raw = text.encode("latin-1")
    if REPLACEMENT.encode() in raw:
        raise CorruptRecordError(f"{name}: bytes were replaced by U+FFFD on the way")
    return raw


def _told(
    partition: int, offset: int, time: int, timestamp_type: str, key: bytes | None, value: bytes | None, line: int
) -> Told:
    record = Record(offset=offset, position=line, timestamp_ms=time, key=key, value=value)
    return Told(partition, record, timestamp_type)
