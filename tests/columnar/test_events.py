"""The table of all records: in bulk as by the construct path, and as files."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from offsets_log.columnar.events import export
from offsets_log.columnar.events.chunk import Room
from offsets_log.columnar.events.rows import BOUNDED, RISING
from offsets_log.columnar.events.tables import SCHEMA
from offsets_log.events import EVERYTHING, Until
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.rows.shown import ALL, Shown
from offsets_log.rows.tables import DECODE_COLUMNS
from offsets_log_cli.main import main
from tests.builders import LogBuilder, member
from tests.columnar.engines import EVENT_NAMES, columnar_rows, construct_rows
from tests.columnar.test_equal_engines import SEEDS, STEPS, build
from tests.conftest import DISTINCT, PACKED, BulkFrom, json_lines, log_directories, read_partitions
from tests.fuzz.mutation import hostile_segments, recorded_segments, seeds_of
from tests.sizes import examples, so_many


def assert_equal(log: PartitionLog, until: Until = EVERYTHING, shown: Shown = ALL, **how: Any) -> None:
    rows, seen = construct_rows(log, until, shown)
    bulk_rows, bulk_seen = columnar_rows(log, until, shown, **how)
    assert bulk_seen == seen
    for row, expected in zip(bulk_rows, rows, strict=False):
        assert row == expected
    assert len(bulk_rows) == len(rows)


SMALL_PARTS: dict[str, Any] = {"threads": 2, "part_bytes": 3000}


@pytest.mark.parametrize("name", DISTINCT)
def test_recordings(name: str, recording: Callable[[str], Path]) -> None:
    for directory in log_directories(recording(name)):
        for log in read_partitions(directory).values():
            assert_equal(log)


@pytest.mark.parametrize("name", ["kafka-4.3-mixed", "kafka-4.3-compressed", "kafka-0.11-compacted", "random-java"])
def test_recordings_in_parts_and_bounds(name: str, recording: Callable[[str], Path]) -> None:
    dice = random.Random(name)
    for log in read_partitions(log_directories(recording(name))[0]).values():
        assert_equal(log, **SMALL_PARTS)
        rows, _ = construct_rows(log)
        if rows:
            last = rows[-1]["record_offset"]
            assert_equal(log, Until(record_offset=dice.randrange(last + 2)), **SMALL_PARTS)
            assert_equal(log, Until(time_ms=dice.choice(rows)["timestamp_ms"]), **SMALL_PARTS)


@pytest.mark.parametrize("name", ["kafka-4.3-mixed", "kafka-4.3-modern-groups", "kafka-lifetime"])
def test_filters(name: str, recording: Callable[[str], Path]) -> None:
    for log in read_partitions(log_directories(recording(name))[0]).values():
        rows, _ = construct_rows(log)
        for group in sorted({row["group"] for row in rows if row["group"] is not None})[:3]:
            assert_equal(log, shown=Shown(group=group.__eq__))
        for topic in sorted({row["topic"] for row in rows if row["topic"] is not None})[:2]:
            assert_equal(log, shown=Shown(topic=topic.__eq__))
        assert_equal(log, shown=Shown(group=lambda name: False))


@examples(40)
@given(steps=STEPS, group=st.sampled_from([None, "g", "g\ufffd"]))
def test_generated_logs(steps: list[Any], group: str | None) -> None:
    assert_equal(build(steps).log, shown=Shown(group=None if group is None else group.__eq__))


def test_hostile_segments() -> None:
    seeds = seeds_of(recorded_segments([PACKED / f"{name}.tar.xz" for name in SEEDS]))
    for data in islice(hostile_segments(seeds, 15), so_many(200)):
        assert_equal(PartitionLog(0, (Segment("fuzz.log", 0, data),)))


def test_hostile_segments_in_a_row() -> None:
    seeds = seeds_of(recorded_segments([PACKED / f"{name}.tar.xz" for name in SEEDS]))
    segments = list(islice(hostile_segments(seeds, 16), so_many(150)))
    for i in range(0, len(segments), 3):
        row = segments[i : i + 3]
        bases = [int.from_bytes(data[:8]) if data[:1] == b"\0" else None for data in row]
        files = tuple(Segment(f"{n}.log", base, data) for n, (base, data) in enumerate(zip(bases, row, strict=True)))
        assert_equal(PartitionLog(None, files), **SMALL_PARTS)


@pytest.mark.parametrize(("most_entries", "most_bytes"), [(40, 1 << 28), (1 << 20, 1200)])
def test_room(most_entries: int, most_bytes: int) -> None:
    """Tables end where they are full; batches, keys and texts may need more room than there is."""
    room = Room(rows=8, least_entries=4, most_entries=most_entries, most_entry_bytes=most_bytes)
    log = LogBuilder()
    for i in range(60):
        log.commit(i, group=f"g{i % 20}", topic=f"t{i % 3}", metadata="m" * (i * 7 % 90))
    large = [(f"m{i}", "x" * 50) for i in range(20)]
    log.group(*[member(name, client_id=text) for name, text in large], group="large")
    for i in range(5):
        log.commit(i, group=f"h{i}", version=4, topic_id=bytes(15) + bytes([i % 2]))
    log.add(*_raw_commits(20))
    assert_equal(log.log, room=room)


def test_plain_records_need_no_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that coordinators up to the classic groups of 4.3 write is taken by the kernel."""

    def slow_path(reader: object, index: int, batch: object) -> None:
        raise AssertionError("read on the slow path")

    log = LogBuilder()
    for version in range(5):
        log.commit(version, version=version, metadata="ü", producer=7)
    log.commit(None).commit(9, version=4, topic_id=bytes(range(16))).commit(3, type_=0)
    log.end(7, commit=True).end(8, commit=False)
    log.group(member("m"), group="g").group(group="g", gone=True)
    monkeypatch.setattr(export.EventReading, "take", slow_path)
    assert_equal(log.log)


def _raw_commits(count: int) -> Iterator[tuple[bytes, bytes]]:
    for i in range(count):
        yield (
            b"\x00\x01\x00\x01g\x00\x01t" + i.to_bytes(4),
            b"\x00\x03" + i.to_bytes(8) + b"\xff\xff\xff\xff" + b"\x00\x01m" + bytes(8),
        )


def test_nothing_is_lost() -> None:
    """Bytes behind the last field, unknown tags and bad names keep the raw record; plain offset commits do not."""
    log = LogBuilder()
    log.commit(5, group="g")
    key = b"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00\x00"
    plain = b"\x00\x00" + bytes(8) + b"\x00\x00" + bytes(8)
    tagged = b"\x00\x04" + bytes(8) + b"\xff\xff\xff\xff" + b"\x01" + bytes(8) + b"\x01\x07\x01z"
    log.add((key, plain + b"more"), (key + b"more", plain), (key, tagged), (b"\x00\x02\x00\x01g", None))
    rows, _ = columnar_rows(log.log)
    assert [row["key"] for row in rows] == [None, key, key + b"more", key, b"\x00\x02\x00\x01g"]
    assert [row["value"] for row in rows] == [None, plain + b"more", plain, tagged, None]
    assert_equal(log.log)


# -------------------------------------------------------------------------------------------------- files


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments], catch_exceptions=False)


def read(directory: Path) -> list[dict[str, Any]]:
    files = sorted(directory.glob("*.parquet"))
    return [row for file in files for row in pq.read_table(file).to_pylist()]


@pytest.mark.parametrize("filters", [(), ("-g", "*a*"), ("-t", "*", "-p", "0"), ("--until-offset", "20")])
def test_files(filters: tuple[str, ...], recording: Callable[[str], Path], tmp_path: Path, bulk_from: BulkFrom) -> None:
    """Small and bulk write the same rows, those of jsonl in its order, and say the same."""
    log = recording("kafka-4.3-mixed") / "log"
    expected = list(json_lines(run("decode", log, "-o", "jsonl", *filters).stdout))
    small = run("decode", log, "-o", "parquet", "--to", tmp_path / "small", *filters)
    bulk_from(0)
    bulk = run("decode", log, "-o", "parquet", "--to", tmp_path / "bulk", *filters)
    assert (small.exit_code, bulk.exit_code) == (0, 0)
    assert small.stderr.splitlines()[-1] == bulk.stderr.splitlines()[-1]
    rows = read(tmp_path / "bulk")
    assert rows == read(tmp_path / "small")
    same = sorted({column.name for column in DECODE_COLUMNS} & set(EVENT_NAMES) - {"key", "value", "error"})
    assert [[row[name] for name in same] for row in rows] == [[row.get(name) for name in same] for row in expected]


def physical_layout(directory: Path) -> list[tuple[Any, ...]]:
    """Of each file's columns: type, encodings, codec and whether bounds are told."""
    found = []
    for file in sorted(directory.glob("*.parquet")):
        metadata = pq.read_metadata(file)
        columns = [metadata.row_group(i).column(j) for i in range(metadata.num_row_groups) for j in range(len(SCHEMA))]
        found += [
            (column.path_in_schema, column.physical_type, column.encodings, column.compression,
             column.statistics is not None)
            for column in columns
        ]  # fmt: skip
    return found


def test_files_have_one_layout_and_are_read_by_others(
    recording: Callable[[str], Path], tmp_path: Path, bulk_from: BulkFrom
) -> None:
    """Whether a log is small or large; DuckDB reads the same rows, and only of columns with bounds they are told."""
    log = recording("kafka-4.3-mixed") / "log"
    run("decode", log, "-o", "parquet", "--to", tmp_path / "small")
    bulk_from(0)
    run("decode", log, "-o", "parquet", "--to", tmp_path / "bulk")
    layout = physical_layout(tmp_path / "bulk")
    assert layout == physical_layout(tmp_path / "small")
    assert {name for name, *_, is_bounded in layout if is_bounded} == set(BOUNDED)
    rising = {name for name, _, encodings, *_ in layout if "DELTA_BINARY_PACKED" in encodings}
    assert rising == set(RISING)
    with duckdb.connect() as connection:
        found = connection.execute(f"from read_parquet('{tmp_path}/bulk/*.parquet', filename = false)").fetchall()
    assert [dict(zip(EVENT_NAMES, row, strict=True)) for row in found] == read(tmp_path / "bulk")


def test_files_of_nothing(tmp_path: Path) -> None:
    partition = tmp_path / "__consumer_offsets-4"
    partition.mkdir()
    (partition / f"{0:020}.log").touch()
    assert run("decode", partition, "-o", "parquet", "--to", tmp_path / "out").exit_code == 0
    assert pq.read_table(tmp_path / "out").column_names == EVENT_NAMES


def test_directory_is_whole_or_not_there(recording: Callable[[str], Path], tmp_path: Path) -> None:
    log = recording("kafka-4.3-mixed") / "log"
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    refused = run("decode", log, "-o", "parquet", "--to", tmp_path / "full")
    assert refused.exit_code == 1
    assert "not an empty directory" in refused.stderr
    damaged = tmp_path / "__consumer_offsets-0"
    damaged.mkdir()
    (damaged / f"{0:020}.log").write_bytes(b"\xff" * 100)
    (damaged / f"{9:020}.log").write_bytes(b"\xff" * 100)
    stopped = run("decode", damaged, "-o", "parquet", "--to", tmp_path / "out", "--strict")
    assert stopped.exit_code == 1
    assert not (tmp_path / "out").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["__consumer_offsets-0", "full"]


@pytest.mark.parametrize("options", [(), ("--to", "-"), ("--to", "x", "--expand")])
def test_usage(options: tuple[str, ...], tmp_path: Path) -> None:
    assert run("decode", tmp_path, "-o", "parquet", *options).exit_code == 2
