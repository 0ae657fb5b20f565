"""Rebalances as tables: the rows of `rebalances`, for everything that reads Arrow."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import offsets_log as ol
from tests.cli.runs import run
from tests.conftest import BulkFrom, log_directories
from tests.library.answers import PLAIN_FIRST, as_told, told

LISTS = ("joined", "left", "moved", "skipped", "flapping")


@pytest.mark.parametrize(("name", "least_bytes"), PLAIN_FIRST)
def test_rows_are_those_of_the_command(
    name: str, least_bytes: int, recording: Callable[[str], Path], bulk_from: BulkFrom
) -> None:
    bulk_from(least_bytes)
    log = log_directories(recording(name))[0]
    with ol.open(log) as copy:
        assert as_told(copy.rebalances()) == told("rebalances", log)
        verified = copy.rebalances("*o*", verify=True, storm=(2, 60_000))
        assert as_told(verified) == told("rebalances", log, "-g", "*o*", "--verify", "--storm", "2/1m")


def test_all_formats_have_the_same_rows(recording: Callable[[str], Path], tmp_path: Path) -> None:
    """Lists are nested in Arrow, and JSON in Parquet, as they have always been there."""
    log = recording("kafka-4.3-mixed") / "log"
    run("rebalances", log, "-o", "arrow", "--to", tmp_path / "a.arrow")
    run("rebalances", log, "-o", "parquet", "--to", tmp_path / "a.parquet")
    with ol.open(log) as copy:
        table = copy.rebalances()
        assert pa.ipc.open_stream(tmp_path / "a.arrow").read_all().to_pylist() == table.rows()
        assert table.notes == run("rebalances", log).stderr.splitlines()
    stored = pq.read_table(tmp_path / "a.parquet").to_pylist()
    assert [row | {name: json.loads(row[name]) for name in LISTS} for row in stored] == told("rebalances", log)
    assert any(row["moved"] for row in told("rebalances", log))
