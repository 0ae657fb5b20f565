"""Records as clients and tools of JSON print them, and the transaction markers among them."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.runs import run
from tests.conftest import json_lines

Key = tuple[str, int]


def answer(stdin: bytes, status: int = 0) -> dict[Key, int | None]:
    result = run("compact", "-", "-o", "jsonl", stdin=stdin)
    assert result.exit_code == status, result.stderr
    return {(row["group"], row["partition"]): row["committed_offset"] for row in json_lines(result.stdout)}


def shape(field: Path, name: str) -> bytes:
    return (field / "json-in-other-shapes" / name).read_bytes()


# ------------------------------------------------------------------------------- the formatters' JSON

LINES = ("jq.json", "jq-s.json", "one-line-array.json")


@pytest.mark.parametrize("name", LINES)
def test_json_of_the_formatter_in_other_shapes(field: Path, name: str) -> None:
    expected = answer(shape(field, "lines.jsonl"))
    assert answer(shape(field, name)) == expected != {}


def rows_of(field: Path) -> list[Any]:
    return [json.loads(line) for line in shape(field, "lines.jsonl").splitlines()]


SHAPES: dict[str, Callable[[list[Any]], str]] = {
    "jq --tab": lambda rows: "".join(json.dumps(row, indent="\t") + "\n" for row in rows),
    "jq --seq": lambda rows: "".join(f"\x1e{json.dumps(row)}\n" for row in rows),
    "jq -S": lambda rows: "".join(json.dumps(row, sort_keys=True, indent=2) + "\n" for row in rows),
    "an array a line": lambda rows: "[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n",
    "two arrays": lambda rows: json.dumps(rows[:3]) + "\n" + json.dumps(rows[3:]),
    "without line ends": lambda rows: "".join(map(json.dumps, rows)),
    "CRLF": lambda rows: json.dumps(rows, indent=2).replace("\n", "\r\n"),
}


COLLECTED: dict[str, Callable[[Any], Any]] = {
    "the line as text": lambda row: {"@timestamp": "2026", "host": {"name": "h"}, "message": json.dumps(row)},
    "the line as an object": lambda row: {"@timestamp": "2026", "message": row},
    "in a field of any name": lambda row: {"time": 1, "event": json.dumps(row)},
    "as an object of any name": lambda row: {"time": 1, "kafka": row},
    "a document of a search": lambda row: {
        "_index": "i",
        "_source": {"log": {"at": 1}, "message": json.dumps(row)},
    },
    "attributes of a trace": lambda row: {"ts": 1, "body": {"stringValue": json.dumps(row)}},
    "fields beside its own": lambda row: {"@timestamp": "2026", **row},
}
"""What collectors of logs put around a line, or beside its fields."""


@pytest.mark.parametrize("name", COLLECTED)
def test_json_that_a_collector_has_put_around_lines(field: Path, name: str) -> None:
    """One object a line, in an array or printed by jq; a line without the field is reported, the others are read."""
    expected = answer(shape(field, "lines.jsonl"))
    rows = [COLLECTED[name](row) for row in rows_of(field)]
    for text in ("".join(json.dumps(row) + "\n" for row in rows), json.dumps(rows), json.dumps(rows, indent=1)):
        assert answer(text.encode()) == expected
    lines = [json.dumps(row) for row in rows]
    result = run("compact", "-", "-o", "jsonl", stdin="\n".join([*lines, lines[0][:-9]]).encode())
    assert {(row["group"], row["partition"]) for row in json_lines(result.stdout)} == expected.keys()
    assert "JSON of a log collector around each line" in result.stderr
    assert "the text ends within this line" in result.stderr
    assert result.exit_code == 3


@pytest.mark.parametrize("name", SHAPES)
def test_json_in_shapes_of_other_tools(field: Path, name: str) -> None:
    assert answer(SHAPES[name](rows_of(field)).encode()) == answer(shape(field, "lines.jsonl"))


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("side", ["head", "tail"])
def test_json_that_was_cut_is_told_and_the_rest_read(field: Path, name: str, side: str) -> None:
    text = shape(field, name)
    cut = text[: len(text) // 2] if side == "head" else text[len(text) // 2 :]
    if name == "one-line-array.json" and side == "tail":
        cut = cut[cut.index(b'{"key"') - 30 :]
    result = run("compact", "-", "-o", "jsonl", stdin=cut)
    in_one_line = name == "one-line-array.json"
    assert result.exit_code == (1 if in_one_line and side == "tail" else 3), result.stderr
    assert result.stdout or in_one_line


# ---------------------------------------------------------------------------------- records of clients

RECORDS = ("rest-proxy.json", "consumer-records.txt", "bytes-deserializer.txt")


@pytest.mark.parametrize("name", RECORDS)
def test_records_of_clients(field: Path, name: str) -> None:
    found = answer(shape(field, name))
    assert len(found) == 12
    assert found[("grp-0", 0)] == 10
    decoded = list(json_lines(run("decode", "-", stdin=shape(field, name)).stdout))
    assert [row["record_offset"] for row in decoded] == sorted(row["record_offset"] for row in decoded)


def told(field: Path) -> list[tuple[int, bytes, bytes]]:
    rows = json.loads(shape(field, "rest-proxy.json"))
    return [(row["offset"], base64.b64decode(row["key"]), base64.b64decode(row["value"])) for row in rows]


def as_json(**encoded: Callable[[bytes], Any]) -> Callable[[int, bytes, bytes], str]:
    encode = encoded["bytes"]
    return lambda offset, key, value: json.dumps(
        {"topic": "__consumer_offsets", "partition": 0, "offset": offset, "key": encode(key), "value": encode(value)}
    )


FORMS: dict[str, Callable[[int, bytes, bytes], str]] = {
    "base64, one a line": as_json(bytes=lambda data: base64.b64encode(data).decode()),
    "hexadecimal": as_json(bytes=bytes.hex),
    "KafkaJS": as_json(bytes=lambda data: {"type": "Buffer", "data": list(data)}),
    "numbers": as_json(bytes=list),
    "signed numbers of Java": as_json(bytes=lambda data: [byte - 256 * (byte > 127) for byte in data]),
    "aiokafka": lambda offset, key, value: (
        f"ConsumerRecord(topic='__consumer_offsets', partition=0, offset={offset}, timestamp=1700000000000, "
        f"timestamp_type=0, key={key!r}, value={value!r}, checksum=None, serialized_key_size=1, headers=())"
    ),
    "Go": lambda offset, key, value: (
        f"&{{Headers:[] Timestamp:2026-11-21 05:36:00 +0000 UTC Key:[{' '.join(map(str, key))}] "
        f"Value:[{' '.join(map(str, value))}] Topic:__consumer_offsets Partition:0 Offset:{offset}}}"
    ),
    "kcat's lines": lambda offset, key, value: f"0 {offset} 1700000000000 {key.hex()} {value.hex()}",
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_that_hold_all_bytes(field: Path, form: str) -> None:
    text = "\n".join(FORMS[form](*one) for one in told(field))
    assert answer(text.encode()) == answer(shape(field, "rest-proxy.json"))


def test_tombstones_are_null(field: Path) -> None:
    offset, key, _ = told(field)[0]
    lines = [
        f"ConsumerRecord(topic='__consumer_offsets', partition=0, offset={offset + 99}, key={key!r}, value=None)",
        json.dumps({"partition": 0, "offset": offset + 99, "key": key.hex(), "value": None}),
        f"Partition:0\tOffset:{offset + 99}\t" + "".join(f"\\x{byte:02X}" for byte in key) + "\tnull",
    ]
    for line in lines:
        (row,) = json_lines(run("decode", "-", stdin=line.encode()).stdout)
        assert (row["key"]["group"], row["value"], row["record_offset"]) == ("grp-0", None, 99)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            "ConsumerRecord(topic = __consumer_offsets, partition = 0, leaderEpoch = 0, offset = 5, CreateTime = 1, "
            "serialized key size = 21, key = [B@1b2c, value = [B@5f)",
            "does not print key and value",
        ),
        ('{"partition":0,"offset":1,"key":"\\u0000\\u0001\\u0000\\u0005grp-0","value":"\\ufffd"}', "bytes are lost"),
        ("Partition:0\tOffset:0\tgr\N{POUND SIGN}\tx", "which loses some"),
        ("ConsumerRecord(topic='orders', partition=0, offset=1, key=b'', value=b'')", "of topic 'orders'"),
    ],
)
def test_forms_that_do_not_are_told(line: str, words: str) -> None:
    result = run("compact", "-", stdin=line.encode())
    assert result.exit_code == 3
    assert words in result.stderr
    assert "position 1" in result.stderr


# -------------------------------------------------------------------------------------------- markers

COMMIT_MARKER, ABORT_MARKER = ("00000001", "000000000007"), ("00000000", "000000000007")


def test_markers_are_no_damage_and_end_no_load(field: Path) -> None:
    text = (field / "markers-as-records" / "records.txt").read_bytes()
    rows = list(json_lines(run("decode", "-", stdin=text).stdout))
    assert [row.get("control") for row in rows] == [
        None, {"type": "COMMIT", "coordinatorEpoch": 7}, None, {"type": "ABORT", "coordinatorEpoch": 7},
    ]  # fmt: skip
    assert {rows[i]["producer_id"] for i in (1, 3)} == {None}
    result = run("compact", "-", stdin=text)
    assert "0 corrupt" in result.stderr
    assert "would not load" not in result.stderr
    survey = json.loads(run("info", "-", "-o", "json", stdin=text).stdout)
    assert survey["partitions"][0]["corrupt"] == 0 if "partitions" in survey else True


def lines(*records: tuple[str, str]) -> bytes:
    return "".join(f"24 {i} 1692850296000 {key} {value}\n" for i, (key, value) in enumerate(records)).encode()


def test_what_was_committed_before_an_abort_is_unknown_and_the_rest_is_not(field: Path) -> None:
    """A transaction that is aborted is in the text, but not which commits are of it."""
    commits = [
        ("0001000167000174" + f"{i:08x}", "0003" + f"{100 + i:016x}" + "ffffffff" + "0000" + "000000018a2555d8")
        for i in range(3)
    ]
    before, after = commits[:1], commits[1:]
    assert answer(lines(*before, ABORT_MARKER, *after), 3) == {("g", 0): None, ("g", 1): 101, ("g", 2): 102}
    assert answer(lines(*before, COMMIT_MARKER, *after)) == {("g", 0): 100, ("g", 1): 101, ("g", 2): 102}
    assert answer(lines(*before, ABORT_MARKER, *commits), 3) == {("g", 0): 100, ("g", 1): 101, ("g", 2): 102}
    other = lines(*before).replace(b"24 0", b"25 0") + lines(ABORT_MARKER)
    assert answer(other) == {("g", 0): 100}


@pytest.mark.parametrize("form", ["base64, one a line", "KafkaJS", "Go", "aiokafka"])
def test_markers_in_other_forms(form: str) -> None:
    text = "\n".join(FORMS[form](i, *map(bytes.fromhex, one)) for i, one in enumerate((COMMIT_MARKER, ABORT_MARKER)))
    rows = json_lines(run("decode", "-", stdin=text.encode()).stdout)
    assert [row["control"]["type"] for row in rows] == ["COMMIT", "ABORT"]


# ------------------------------------------------------------------------------------------ one record

KEY, VALUE = "0001000167000174" + "00000000", "0003000000000000006400000000" + "0000" + "000000018a2555d8"


SPACED = " ".join(KEY[i : i + 2] for i in range(0, len(KEY), 2))
LETTERS = r"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00\x00"


@pytest.mark.parametrize("key", [KEY, "0x" + KEY, SPACED, KEY.upper(), LETTERS])
def test_one_key_as_hexadecimal_digits(key: str) -> None:
    (row,) = json_lines(run("decode", "--key-hex", key).stdout)
    assert row == {"record_type": 1, "name": "OffsetCommit", "key": {"group": "g", "topic": "t", "partition": 0}}


def test_a_key_with_its_value_and_a_value_alone() -> None:
    (row,) = json_lines(run("decode", "--key-hex", KEY, "--value-hex", VALUE).stdout)
    assert (row["key"]["group"], row["value_version"], row["value"]["offset"]) == ("g", 3, 100)
    result = run("decode", "--value-hex", VALUE)
    assert any(row["name"] == "OffsetCommit" and row["value"]["offset"] == 100 for row in json_lines(result.stdout))
    assert "a value alone does not tell its type" in result.stderr
    (marker,) = json_lines(run("decode", "--key-hex", COMMIT_MARKER[0], "--value-hex", COMMIT_MARKER[1]).stdout)
    assert marker["control"] == {"type": "COMMIT", "coordinatorEpoch": 7}


@pytest.mark.parametrize("arguments", [["--key-hex", "0g"], ["--key-hex", "0001"], ["--value-hex", "7f"]])
def test_digits_that_make_no_record(arguments: list[str]) -> None:
    assert run("decode", *arguments).exit_code == 1


def test_paths_are_needed_without_them_and_excluded_with_them() -> None:
    assert run("decode").exit_code == run("decode", "--key-hex", KEY, "x").exit_code == 2
