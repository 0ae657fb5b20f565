"""kcat's forms: raw keys and values, through the same decoders as a segment's."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offsets_log.dumps.formats import build_segments, guess_format
from offsets_log.log_format.record import Record
from tests.cli.runs import run
from tests.conftest import RECORDINGS, read_partitions
from tests.dumps.runs import rows
from tests.dumps.test_formatter import last_words
from tests.sizes import examples
from tests.test_decode_recordings import batches_of, records_of

Recordings = Callable[[str], Path]
Line = Callable[[int, Record], bytes]


def yajl_string(raw: bytes | None) -> bytes:
    """A string as kcat's JSON writer has it: bytes as they are, control characters, quotes and backslashes escaped."""
    if raw is None:
        return b"null"
    named = {0x0D: b"\\r", 0x0A: b"\\n", 0x5C: b"\\\\", 0x22: b'\\"', 0x0C: b"\\f", 0x08: b"\\b", 0x09: b"\\t"}
    written = (named.get(byte, b"\\u%04X" % byte if byte < 0x20 else bytes([byte])) for byte in raw)
    return b'"' + b"".join(written) + b'"'


def as_json(partition: int, record: Record) -> bytes:
    return (
        b'{"topic":"__consumer_offsets","partition":%d,"offset":%d,"tstype":"create","ts":%d,"broker":0,'
        b'"key":%s,"payload":%s}'
    ) % (partition, record.offset, record.timestamp_ms, yajl_string(record.key), yajl_string(record.value))


def framed(partition: int, record: Record) -> bytes:
    sizes = tuple(-1 if data is None else len(data) for data in (record.key, record.value))
    head = b"%d %d %d %d %d " % (partition, record.offset, record.timestamp_ms, *sizes)
    return head + (record.key or b"") + (record.value or b"")


def encoded(encode: Callable[[bytes], bytes]) -> Line:
    def line(partition: int, record: Record) -> bytes:
        texts = (b"NULL" if data is None else encode(data) for data in (record.key, record.value))
        return b" ".join((b"%d %d %d" % (partition, record.offset, record.timestamp_ms), *texts))

    return line


FORMS: dict[str, Line] = {
    "-J": as_json,
    "-f": framed,
    "hexadecimal": encoded(lambda data: data.hex().encode()),
    "base64": encoded(base64.b64encode),
}


def consumed(log: Path) -> Iterator[tuple[int, Record]]:
    """What a consumer gets of a log: no control records."""
    for partition, partition_log in read_partitions(log).items():
        for _, batch in batches_of(partition_log):
            if not batch.is_control:
                yield from ((partition, record) for record in records_of(batch))


def is_kept(name: str) -> bool:
    return name.startswith("kafka-")


@pytest.mark.parametrize(
    ("name", "form"),
    [
        (name, form)
        for turn, name in enumerate(filter(is_kept, RECORDINGS))
        for shift, form in enumerate(FORMS)
        if (turn + shift) % 2
    ],
)
def test_records_come_back(name: str, form: str, recording: Recordings) -> None:
    log = recording(name) / "log"
    text = b"".join(FORMS[form](partition, record) + b"\n" for partition, record in consumed(log))
    assert guess_format(text) == "kcat"
    expected = [row for row in rows("decode", log) if not row["is_control"]]
    told = ("offsets_partition", "record_offset", "timestamp_ms", "name", "key", "value_version", "value")
    found = rows("decode", "--input-format", "kcat", "-", stdin=text)
    assert [[row[name] for name in told] for row in found] == [[row[name] for name in told] for row in expected]
    assert {row["producer_id"] for row in found} == {None}


def test_compact_and_what_is_said(recording: Recordings) -> None:
    log = recording("kafka-4.3-compressed") / "log"
    text = b"".join(as_json(*record) + b"\n" for record in consumed(log))
    result = run("compact", "-", "-o", "jsonl", stdin=text)
    found = [json.loads(line) for line in result.stdout.split("\n") if line]
    keys = {(row["group"], row["topic"], row["partition"]) for row in found}
    assert keys == last_words(rows("decode", log)).keys()
    assert "isolation.level=read_uncommitted" in result.stderr


def test_records_of_one_partition_in_any_order_of_partitions(recording: Recordings) -> None:
    log = recording("kafka-2.8") / "log"
    lines = sorted(consumed(log), key=lambda item: (item[1].offset, item[0]))
    text = b"".join(framed(*line) + b"\n" for line in lines)
    in_order = b"".join(framed(*line) + b"\n" for line in consumed(log))
    assert rows("compact", "-", stdin=text) == rows("compact", "-", stdin=in_order)


KEY = b"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00\x00"


def test_nothing_is_remarked_on_what_is_no_kcat() -> None:
    built = build_segments("x", b"hello there\n", "kcat")
    assert [*built.remarks] == []
    assert [damage.error.problem.endswith("; kcat -J prints one of them") for damage in built.damages] == [True]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b'{"topic":"orders","partition":0,"offset":1,"key":"a","payload":"b"}', "it is of topic 'orders'"),
        (b'{"topic":"__consumer_offsets","partition":0,"offset":1,"key":"\xef\xbf\xbd","payload":null}', "U+FFFD"),
        (
            b'{"topic":"__consumer_offsets","partition":0,"offset":1,"key":"\\u20ac","payload":null}',
            "has read its bytes",
        ),
        (b'{"topic":"__consumer_offsets","partition":0,"offset":1,"key":3,"payload":null}', "it is no string"),
        (b'{"topic":"__consumer_offsets","partition":"0","offset":1,"key":"","payload":null}', "not all numbers"),
        (b'{"topic":"__consumer_offsets","partition":0', "it is no JSON"),
        (b"0 1 2 12 -1 " + KEY[:-1], "none of kcat's forms"),
        (b"0 1 2 00zz NULL", "neither hexadecimal nor base64"),
        (b"0 1 2 3", "none of kcat's forms"),
    ],
)
def test_odd_lines_are_damage_and_the_rest_goes_on(line: bytes, problem: str) -> None:
    good = b"0 7 8 12 -1 " + KEY
    built = build_segments("x", line + b"\n" + good + b"\n", "kcat")
    assert [(damage.error.position, problem in damage.error.problem) for damage in built.damages] == [(1, True)]
    (log,) = built.logs()
    assert log.segments[0].lines == {7: 2}


def test_a_record_that_does_not_decode_has_its_line() -> None:
    text = b"0 7 8 12 -1 " + KEY + b"\n0 9 8 2 3 \x00\x01\x00\x03\x01\n"
    result = run("compact", "-", stdin=text)
    assert result.exit_code == 3
    assert "-!__consumer_offsets-0: position 2, record offset 9" in result.stderr


@examples(200)
@given(st.data())
def test_any_bytes_are_read_or_damage(data: st.DataObject) -> None:
    record = Record(offset=3, timestamp_ms=4, key=KEY, value=data.draw(st.none() | st.binary(max_size=20)))
    text = bytearray(b"\n".join(form(1, record) for form in FORMS.values()))
    for _ in range(data.draw(st.integers(0, 5))):
        place = data.draw(st.integers(0, len(text)))
        text[place : place + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=3))
    for damage in build_segments("x", bytes(text), "kcat").damages:
        assert damage.error.position
