"""``decode -o jsonl`` and ``-o parquet`` back in: nothing is lost, of any recording."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from offsets_log.dumps import events_parquet
from offsets_log.dumps.formats import build_segments, guess_format
from offsets_log.dumps.segment_builder import SegmentBuilder
from offsets_log.dumps.source import SegmentPlace, SourceBatch, header
from offsets_log.events import Event
from offsets_log.log_format.record import INT64_MAX, INT64_MIN, Record
from offsets_log.pipeline import iter_events
from offsets_log.rows.tables import decoded_row
from tests.cli.runs import run
from tests.conftest import DISTINCT, read_partitions
from tests.dumps.runs import rows, without
from tests.sizes import examples
from tests.test_build_recordings import DATA_FOLDERS

Recordings = Callable[[str], Path]

FOLDERS = [*((name, variant) for name, variant in DATA_FOLDERS if name in DISTINCT), ("load-fails", "log")]
OF_FILES = ("history", "problems", "end_offsets")
"""What is told of a log's files, and of pieces of them that are no records."""


def written(folder: Path, kind: str, tmp_path: Path) -> Path:
    """The records of a data folder as our own rows."""
    target = tmp_path / kind
    run("decode", folder, "-o", kind, "--to", target)
    return target


@pytest.mark.parametrize(("name", "variant"), FOLDERS, ids=map("/".join, FOLDERS))
def test_answers_are_those_of_the_segments(name: str, variant: str, tmp_path: Path, recording: Recordings) -> None:
    """One command of one kind of rows, in turn."""
    log, turn = recording(name) / variant, FOLDERS.index((name, variant))
    command = (("compact", "--orphans", "--unstable"), ("rebuild", "--profile", "classic"))[turn % 2]
    kind = ("jsonl", "parquet")[turn // 2 % 2]
    assert answer(written(log, kind, tmp_path), *command) == answer(log, *command)


def answer(path: Path, *command: str) -> tuple[int, Any]:
    """Exit status and document, without what is told of files."""
    result = run(*command, path, "-o", "json", "--quiet")
    document = json.loads(result.stdout)
    if isinstance(document, dict):
        document = {name: part for name, part in document.items() if name not in OF_FILES}
    if isinstance(document, dict) and "loads" in document:  # what a broker recovers of damaged files is theirs alone
        document["loads"] = {
            partition: {name: load[name] for name in ("ok", "record_offset", "rule", "problem")}
            for partition, load in document["loads"].items()
        }
    return result.exit_code, document


PLACES_IN_FILES = ("file", "position", "error")


@pytest.mark.parametrize("name", ["load-fails", "random-java", "kafka-lifetime", "kafka-4.3-modern-groups"])
def test_jsonl_of_jsonl_is_the_same(name: str, tmp_path: Path, recording: Recordings) -> None:
    log = recording(name) / "log"
    again = written(log, "jsonl", tmp_path)
    status = run("decode", log).exit_code
    expected, found = rows("decode", log, status=status), rows("decode", again, status=status)
    assert without(found, *PLACES_IN_FILES) == without(expected, *PLACES_IN_FILES)
    assert {row["position"] for row in found} == {None}  # the lines' segments are not the files that were read


def test_expanded_members_become_bytes_again(tmp_path: Path, recording: Recordings) -> None:
    log = recording("kafka-3.9-classic") / "log"
    expanded = run("decode", log, "--expand", "-o", "jsonl").stdout
    consumers = [line for line in expanded.split("\n") if '"protocolType":"consumer"' in line]
    plain = [row for row in rows("decode", log) if (row.get("value") or {}).get("protocolType") == "consumer"]
    found = rows("decode", "-", stdin="\n".join(consumers).encode())
    assert [row["value"] for row in found] == [row["value"] for row in plain]
    assert plain


LINE = {
    "file": "a/__consumer_offsets-3/00000000000000000000.log", "offsets_partition": 3, "position": 61,
    "batch_base_offset": 0, "record_offset": 0, "timestamp_ms": 5, "timestamp_type": "create", "magic": 2,
    "compression": "none", "producer_id": -1, "producer_epoch": -1, "is_transactional": False, "is_control": False,
    "record_type": 1, "name": "OffsetCommit", "key": {"group": "g", "topic": "t", "partition": 0}, "value_version": 3,
    "value": {"offset": 1, "leaderEpoch": -1, "metadata": "", "commitTimestamp": 2},
}  # fmt: skip


@pytest.mark.parametrize(
    "changed",
    [
        {"key": None},
        {"key": {"group": "g"}},
        {"value_version": 99},
        {"value_version": None},
        {"value": {"offset": "1", "leaderEpoch": -1, "metadata": "", "commitTimestamp": 2}},
        {"value": {"offset": 1 << 70, "leaderEpoch": -1, "metadata": "", "commitTimestamp": 2}},
        {"record_offset": "0"},
        {"record_offset": 1 << 70},
        {"record_type": 99},
        {"magic": 7},
        {"key_hex": "zz"},
        {"unknown_tags": [{"path": "value.nothing", "tag": 1, "hex": ""}]},
        {"malformed_strings": [{"path": "value", "base64": "AA=="}]},
        {"headers": [{}]},
        {"is_control": True, "control": []},
        {"timestamp_ms": 1.5},
        {"producer_id": "x"},
        {"offsets_partition": "three"},
    ],
)
def test_odd_rows_are_damage_at_their_line_and_the_rest_goes_on(changed: dict[str, Any]) -> None:
    lines = [json.dumps(LINE | changed), json.dumps(LINE | {"record_offset": 9, "batch_base_offset": 9}), "{"]
    built = build_segments("x", "\n".join(lines).encode(), "jsonl")
    assert [damage.error.position for damage in built.damages] in ([1, 3], [3, 1])
    assert [log.segments[0].lines[9] for log in built.logs()] == [2]


def test_formats_are_guessed_and_may_be_said(tmp_path: Path, recording: Recordings) -> None:
    log = recording("kafka-4.3-expired") / "log"
    expected = rows("compact", log)
    for kind in ("jsonl", "parquet"):
        path = written(log, kind, tmp_path)
        assert rows("compact", "--input-format", kind, path) == expected
    assert guess_format((tmp_path / "jsonl").read_bytes()) == "jsonl"
    wrong = run("compact", "--input-format", "kcat", tmp_path / "jsonl")
    assert wrong.exit_code == 3
    assert run("compact", "--input-format", "jsonl", log).exit_code == 1
    assert run("compact", "--input-format", "avro", log).exit_code == 2


def test_segments_may_be_said(recording: Recordings) -> None:
    log = recording("kafka-4.3-expired") / "log"
    segment = next(iter(read_partitions(log))), next(log.glob("__consumer_offsets-*/*.log"))
    expected = rows("compact", segment[1])
    piped = rows(
        "compact", "--input-format", "segments", "--as-partition",
        segment[1].parent.name.rpartition("-")[2], "-", stdin=segment[1].read_bytes(),
    )  # fmt: skip
    assert piped == expected


def test_a_broken_table_is_damage(tmp_path: Path, recording: Recordings) -> None:
    directory = written(recording("kafka-4.3-expired") / "log", "parquet", tmp_path)
    file = next(directory.glob("*.parquet"))
    data = bytearray(file.read_bytes())
    file.write_bytes(data[:-100])
    result = run("compact", directory)
    assert (result.exit_code, "the Parquet file cannot be read" in result.stderr) == (3, True)


def test_a_table_of_other_columns_is_damage(tmp_path: Path) -> None:
    pq.write_table(pa.table({"group": ["a"], "n": [1]}), tmp_path / "other.parquet")
    result = run("compact", tmp_path / "other.parquet")
    assert (result.exit_code, "is no table of decode" in result.stderr) == (3, True)


def test_answers_that_would_be_guessed_are_refused(tmp_path: Path) -> None:
    text = b"[g,t,0]::OffsetAndMetadata[1,NO_METADATA,5]\n"
    dump = b"offset: 0 position: 0 CreateTime: 7 isvalid: true magic: 2 key: offset::g:t:0 payload: 1\n"
    for arguments, stdin, column in (
        (("check",), text, "is_transactional"),
        (("expire",), dump, "commit_timestamp_ms"),
        (("decode", "-o", "parquet", "--to", tmp_path / "x"), text, "record_offset"),
    ):
        result = run(*arguments, "-", stdin=stdin)
        assert result.exit_code == 1
        assert "this source does not tell" in result.stderr
        assert column in result.stderr
    assert not (tmp_path / "x").exists()


def test_several_texts_of_one_partition_are_one_log(tmp_path: Path, recording: Recordings) -> None:
    log = recording("kafka-lifetime") / "log"
    lines = run("decode", log, "-o", "jsonl").stdout.split("\n")
    files = sorted({json.loads(line)["file"] for line in lines if line})
    for i, file in enumerate(files):
        chosen = [line for line in lines if line and json.loads(line)["file"] == file]
        (tmp_path / f"{len(files) - i}.jsonl").write_text("\n".join(chosen))
    assert rows("compact", *sorted(tmp_path.glob("*.jsonl"))) == rows("compact", log)
    assert rows("compact", tmp_path / "1.jsonl", tmp_path / "1.jsonl") == rows("compact", tmp_path / "1.jsonl")


@examples(200)
@given(st.data())
def test_mutated_rows_are_read_or_damage(data: st.DataObject) -> None:
    values = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.just([]) | st.just({})
    changed = data.draw(st.dictionaries(st.sampled_from([*LINE, "key_hex", "control", "headers"]), values, max_size=3))
    inner = data.draw(st.dictionaries(st.sampled_from(list(LINE["value"])), values, max_size=2))  # type: ignore[call-overload]
    row = LINE | {"value": LINE["value"] | inner} | changed  # type: ignore[operator]
    built = build_segments("x", json.dumps(row).encode(), "jsonl")
    for log in built.logs():
        for event in iter_events(log):
            if isinstance(event, Event):
                decoded_row(event)
    assert all(damage.error.position for damage in built.damages)


@pytest.mark.parametrize("name", ["kafka-4.3-mixed", "kafka-4.3-modern-groups", "kafka-4.3-cleaned", "kafka-2.8"])
def test_plain_tables_are_taken_by_columns_and_say_the_same(
    name: str, tmp_path: Path, recording: Recordings, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = recording(name) / "log"
    directory = written(log, "parquet", tmp_path)
    expected = rows("decode", log)
    monkeypatch.setattr(events_parquet, "bytes_of_row", None)  # nothing row by row
    found = rows("decode", directory)
    # Batches are written uncompressed.
    assert without(found, "file", "position", "compression") == without(expected, "file", "position", "compression")


def test_odd_tables_are_read_row_by_row_and_say_the_same(tmp_path: Path, recording: Recordings) -> None:
    log = recording("kafka-lifetime") / "log"  # of magic 0 and 1 too
    found, expected = rows("decode", written(log, "parquet", tmp_path)), rows("decode", log)
    assert {row["magic"] for row in found} == {0, 1, 2}
    uncompressed = ("file", "position", "compression")
    assert without(found, *uncompressed) == without(expected, *uncompressed)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("group", None),
        ("group", "x" * 40_000),
        ("partition", None),
        ("committed_offset", None),
        ("value_version", 9),
        ("value_version", None),
        ("is_tombstone", True),
        ("record_type", 2),
        ("batch_base_offset", -(1 << 62)),
        ("topic_id", "no id"),
        ("magic", None),
    ],
)
def test_odd_tables_are_damage_at_their_row(column: str, value: object, tmp_path: Path, recording: Recordings) -> None:
    directory = written(recording("kafka-4.3-mixed") / "log", "parquet", tmp_path)
    table = pq.read_table(sorted(directory.glob("*.parquet"))[0])
    first = next(i for i, row in enumerate(table.to_pylist()) if row["value_version"] == 4 and row["key"] is None)
    found = table.to_pylist()
    found[first][column] = value
    plain = pa.schema(
        [
            pa.field(field.name, pa.string() if pa.types.is_dictionary(field.type) else field.type)
            for field in table.schema
        ]
    )
    pq.write_table(pa.Table.from_pylist(found, schema=plain), tmp_path / "odd.parquet")
    built = build_segments("x", (tmp_path / "odd.parquet").read_bytes(), "parquet")
    events = [event for log in built.logs() for event in iter_events(log)]
    damaged = [damage.error.position for damage in built.damages]
    assert damaged == [first + 1] or any(not isinstance(event, Event) and hasattr(event, "error") for event in events)
    assert sum(isinstance(event, Event) for event in events) >= len(found) - 8


@pytest.mark.parametrize("timestamp_ms", [INT64_MAX + 1, INT64_MIN - 1])
def test_a_timestamp_of_more_than_64_bits_makes_no_batch(timestamp_ms: int) -> None:
    """Deltas wrap around, and would make another time of it."""
    records = tuple(Record(offset=n, timestamp_ms=n * timestamp_ms, key=b"k", value=b"v") for n in range(2))
    builder = SegmentBuilder("dump")
    builder.add(SourceBatch(SegmentPlace(), header(records, line=1, max_timestamp_ms=0), records))
    assert [str(damage.error).endswith("a timestamp has more than 64 bits") for damage in builder.damages] == [True]
