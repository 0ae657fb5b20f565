"""Histories as tables: the rows of `history`, for everything that reads Arrow."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import offsets_log as ol
from tests.cli.runs import run
from tests.conftest import NEVER, BulkFrom, log_directories
from tests.library.answers import BULK_FIRST, as_told, told


def with_json(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of a table with what is JSON there as the command writes it."""
    return [
        row | {name: json.loads(row[name]) for name in ("metadata_decoded",) if row[name] is not None} for row in rows
    ]


@pytest.mark.parametrize(("name", "least_bytes"), BULK_FIRST)
def test_rows_are_those_of_the_command(
    name: str, least_bytes: int, recording: Callable[[str], Path], bulk_from: BulkFrom
) -> None:
    bulk_from(least_bytes)
    for log in log_directories(recording(name))[:1]:
        with ol.open(log) as copy:
            assert with_json(as_told(copy.history())) == told("history", log, "-g", "*")
            rewound = copy.history("*o*", topic="*o*", topic_partition={0, 2}, rewinds=True)
            options = ("-g", "*o*", "-t", "*o*", "--topic-partition", "0", "--topic-partition", "2", "--rewinds")
            assert with_json(as_told(rewound)) == told("history", log, *options)


@pytest.mark.parametrize("least_bytes", [0, NEVER])
def test_all_formats_have_the_same_rows(
    least_bytes: int, recording: Callable[[str], Path], bulk_from: BulkFrom, tmp_path: Path
) -> None:
    bulk_from(least_bytes)
    log = recording("kafka-4.3-mixed") / "log"
    run("history", log, "-g", "*", "-o", "arrow", "--to", tmp_path / "history.arrow")
    run("history", log, "-g", "*", "-o", "parquet", "--to", tmp_path / "history.parquet")
    stored = pq.read_table(tmp_path / "history.parquet").to_pylist()
    assert with_json(stored) == told("history", log, "-g", "*")
    with ol.open(log) as copy:
        assert pa.ipc.open_stream(tmp_path / "history.arrow").read_all().to_pylist() == copy.history().rows()


def test_texts_are_texts_in_pandas(recording: Callable[[str], Path]) -> None:
    with ol.open(recording("kafka-4.3-mixed") / "log") as copy:
        frame = copy.history().to_pandas()
    assert len(frame[frame.change == "rewound"]) == 115
    assert list(frame.sort_values("topic").topic) == sorted(frame.topic)
    assert frame["group"].str.startswith("metrics-").any()


@pytest.mark.parametrize("least_bytes", [0, NEVER])
def test_sql_reads_it(least_bytes: int, recording: Callable[[str], Path], bulk_from: BulkFrom) -> None:
    bulk_from(least_bytes)
    with ol.open(recording("kafka-4.3-mixed") / "log") as copy:
        rewound = copy.sql("select count(*) as n from history where change = 'rewound'").rows()
        assert rewound == [{"n": 115}]
        commits = copy.sql("select count(*) as n from records where committed_offset is not null").rows()
        assert commits == copy.sql("select count(*) as n from history where event = 'commit'").rows()


@pytest.mark.parametrize("least_bytes", [0, NEVER])
def test_rows_from_a_moment_on(least_bytes: int, recording: Callable[[str], Path], bulk_from: BulkFrom) -> None:
    bulk_from(least_bytes)
    log = recording("kafka-4.3-mixed") / "log"
    with ol.open(log) as copy:
        every = copy.history("*").to_arrow()
        moment = sorted(every["timestamp"].to_pylist())[len(every) // 2]
        later = copy.history("*", from_time=moment).rows()
        assert later == [row for row in every.to_pylist() if row["timestamp"] >= moment]
        assert 0 < len(later) < len(every)


def test_what_is_to_be_known_is_what_the_command_says(recording: Callable[[str], Path]) -> None:
    log = recording("kafka-4.3-mixed") / "log"
    with ol.open(log) as copy:
        assert copy.history("metrics-*").notes == run("history", log, "-g", "metrics-*").stderr.splitlines()
