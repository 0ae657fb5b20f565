"""Expiry and writers as tables: the rows of `expire` and `top`, for everything that reads Arrow."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import offsets_log as ol
from offsets_log.investigate.writers import WRITER_COLUMNS
from tests.cli.runs import run
from tests.conftest import DISTINCT, BulkFrom, log_directories
from tests.library.answers import BULK_FIRST, as_told

NOW_MS = 1_800_000_000_000


def told(command: str, path: Path, *options: str, has_all: ol.Table) -> list[dict[str, object]]:
    """What the command answers, with null for what a row lacks."""
    rows = [json.loads(line) for line in run(command, path, "-o", "jsonl", *options).stdout.split("\n") if line]
    names = [field.name for field in has_all.schema if not pa.types.is_timestamp(field.type)]
    lacking = {name: None for name in names if "_base64" not in name}
    return [lacking | row for row in rows]


@pytest.mark.parametrize(("name", "least_bytes"), BULK_FIRST)
def test_rows_are_those_of_the_commands(
    name: str, least_bytes: int, recording: Callable[[str], Path], bulk_from: BulkFrom
) -> None:
    bulk_from(least_bytes)
    for log in log_directories(recording(name))[:1]:
        with ol.open(log) as copy:
            expiry = copy.expire(now_ms=NOW_MS, topic="*o*")
            assert as_told(expiry) == told("expire", log, "--now", str(NOW_MS), "-t", "*o*", has_all=expiry)
            due = copy.expire(now_ms=NOW_MS, expired_only=True)
            assert as_told(due) == told("expire", log, "--now", str(NOW_MS), "--expired-only", has_all=due)
            for per in [*WRITER_COLUMNS][DISTINCT.index(name) % 3 :: 3]:
                writers = copy.top(per=per, by="records")
                assert as_told(writers) == told("top", log, "--per", per, "--by", "records", has_all=writers)


def test_an_era_of_another_profile_is_refused(recording: Callable[[str], Path]) -> None:
    with ol.open(recording("kafka-4.3-mixed") / "log") as copy, pytest.raises(ol.OffsetsLogError, match="--profile"):
        copy.expire(profile="modern", era="classic")


@pytest.mark.parametrize("command", ["expire", "top"])
def test_the_commands_write_what_reads_arrow(command: str, recording: Callable[[str], Path], tmp_path: Path) -> None:
    log = recording("kafka-4.3-mixed") / "log"
    run(command, log, "-o", "parquet", "--to", tmp_path / "rows.parquet")
    run(command, log, "-o", "arrow", "--to", tmp_path / "rows.arrow")
    import pyarrow.parquet as pq

    with pa.OSFile(str(tmp_path / "rows.arrow")) as file:
        rows = pa.ipc.open_stream(file).read_all()
    assert rows.select(pq.read_schema(tmp_path / "rows.parquet").names).num_rows == len(
        run(command, log, "-o", "jsonl").stdout.splitlines()
    )
