"""Records as tables: the rows of `decode -o parquet`, in bounded memory."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import offsets_log as ol
from benchmarks.generate import Options, generate
from offsets_log.events import Event
from offsets_log.pipeline import iter_events
from tests.cli.runs import batch_of, commit, run
from tests.conftest import NEVER, BulkFrom, log_directories, read_partitions
from tests.library.answers import BULK_FIRST, PLAIN_FIRST, as_told


def told(log: Path, to: Path, *options: str) -> list[dict[str, Any]]:
    """The rows of the command's files, in their order."""
    run("decode", log, "-o", "parquet", "--to", to, *options)
    return [row for file in sorted(to.iterdir()) for row in pq.read_table(file).to_pylist()]


@pytest.mark.parametrize(("name", "least_bytes"), BULK_FIRST)
def test_rows_are_those_of_the_command(
    name: str, least_bytes: int, recording: Callable[[str], Path], bulk_from: BulkFrom, tmp_path: Path
) -> None:
    bulk_from(least_bytes)
    for log in log_directories(recording(name))[:1]:
        with ol.open(log) as copy:
            assert as_told(copy.records()) == told(log, tmp_path / "all")
            some = copy.records(["group", "timestamp", "record_offset"], group="*o*", topic="*o*")
            rows = told(log, tmp_path / "some", "-g", "*o*", "-t", "*o*")
            assert [(row["group"], row["record_offset"]) for row in some.rows()] == [
                (row["group"], row["record_offset"]) for row in rows
            ]
            assert some.schema.names == ["group", "timestamp", "record_offset"]


@pytest.mark.parametrize(("name", "least_bytes"), PLAIN_FIRST)
def test_raw_records_are_those_that_the_files_hold(
    name: str, least_bytes: int, recording: Callable[[str], Path], bulk_from: BulkFrom
) -> None:
    bulk_from(least_bytes)
    log = log_directories(recording(name))[0]
    with ol.open(log) as copy:
        rows = copy.raw_records().rows()
    expected = [
        (part.offsets_partition, event.record.offset, event.record.key, event.record.value, event.record.timestamp_ms)
        for _, part in sorted(read_partitions(log).items())
        for event in iter_events(part)
        if isinstance(event, Event)
    ]
    names = ("partition", "offset", "key", "value")
    assert [(*(row[it] for it in names), milliseconds(row["timestamp"])) for row in rows] == expected


def milliseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


def test_a_stream_of_arrow_goes_to_a_pipe(recording: Callable[[str], Path]) -> None:
    log = recording("kafka-4.3-mixed") / "log"
    streamed = subprocess.run(
        [sys.executable, "-m", "offsets_log_cli.main", "decode", log, "-o", "arrow"], check=True, capture_output=True
    ).stdout
    with ol.open(log) as copy:
        assert pa.ipc.open_stream(streamed).read_all().to_pylist() == copy.records().rows()


def test_columns_that_there_are_not_are_named(recording: Callable[[str], Path]) -> None:
    with (
        ol.open(recording("kafka-4.3-mixed") / "log") as copy,
        pytest.raises(KeyError, match=r"'offest'.* record_offset"),
    ):
        copy.records(["offest"]).to_arrow()


def test_records_are_read_in_bounded_memory(tmp_path: Path, bulk_from: BulkFrom) -> None:
    """Threads make some tables ahead; all together would take several times as much."""
    bulk_from(0)
    generate(tmp_path / "log", Options(bytes=100_000_000))
    before, most, size_bytes = pa.total_allocated_bytes(), 0, 0
    with ol.open(tmp_path / "log", threads=2) as copy:
        for batch in copy.records():
            most = max(most, pa.total_allocated_bytes() - before)
            size_bytes += batch.nbytes
    assert 0 < most < size_bytes / 3


def test_raw_records_are_read_in_bounded_memory(tmp_path: Path, bulk_from: BulkFrom) -> None:
    bulk_from(0)
    generate(tmp_path / "log", Options(bytes=100_000_000))
    size_bytes = 0
    with ol.open(tmp_path / "log") as copy:
        batches = iter(copy.raw_records())
        next(batches)
        tracemalloc.start()
        try:
            size_bytes = sum(batch.nbytes for batch in batches)
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert 0 < most < size_bytes / 2


@pytest.mark.parametrize("least_bytes", [0, NEVER])
@pytest.mark.parametrize(("time_ms", "year"), [(253_402_300_799_999, 9999), (253_402_300_800_000, None)])
def test_times_that_no_calendar_has_are_null(
    time_ms: int, year: int | None, least_bytes: int, bulk_from: BulkFrom, tmp_path: Path
) -> None:
    """The milliseconds stay, where there is a column of them."""
    bulk_from(least_bytes)
    folder = tmp_path / "__consumer_offsets-0"
    folder.mkdir()
    (folder / f"{0:020}.log").write_bytes(batch_of(commit("g"), time_ms=time_ms))
    with ol.open(tmp_path) as copy:
        for table in (copy.records(), copy.raw_records()):
            (row,) = table.rows()
            assert (row["timestamp"] and row["timestamp"].year) == year
            assert row.get("timestamp_ms", time_ms) == time_ms
