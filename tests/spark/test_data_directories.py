"""Whole data directories on Spark, here and in stores: the columns, rows and words of this machine's engine."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from offsets_log_cli.main import main as offsets_log
from spark_jobs.__main__ import main as spark_jobs_main
from tests.data_directories.copies import Recorded, data_directories, recorded
from tests.spark.tasks import in_process
from tests.spark.test_programs import in_order as in_order_of_keys

__all__ = ["in_process", "recorded"]

PROGRAM_NOW = 1_800_000_000_000
OPEN, WHOLE = "kafka-3.9-blocked", "kafka-4.3-one"
Data = Callable[[str], Path]


@pytest.fixture(scope="module")
def data(recorded: Recorded, tmp_path_factory: pytest.TempPathFactory) -> Data:
    """A copy whose broker had stopped, without the room that is made in indexes beforehand."""

    @cache
    def made(name: str) -> Path:
        (source,) = data_directories(recorded(name), "running")
        folder = tmp_path_factory.mktemp(name) / "data"
        shutil.copytree(source, folder, ignore=shutil.ignore_patterns("*.timeindex", "*.index"))
        (folder / ".kafka_cleanshutdown").touch()
        return folder

    return made


def answer(question: tuple[str, ...], place: str) -> tuple[int, str, list[str]]:
    """Exit status, output and words of a run."""
    command, *rest = question
    done = CliRunner().invoke(offsets_log, [command, place, *rest], catch_exceptions=False)
    return done.exit_code, done.stdout, done.stderr.splitlines()


def program(job: str, place: str, to: Path, *more: str) -> tuple[int, list[str]]:
    """Exit status and words of a job that writes Parquet."""
    arguments = [job, "--input", place, "--output", str(to), "--now", str(PROGRAM_NOW), *more]
    done = CliRunner().invoke(spark_jobs_main, arguments, catch_exceptions=False)
    return done.exit_code, done.stderr.splitlines()


def test_the_program_compact_writes_the_same_columns(data: Data, in_process: None, tmp_path: Path) -> None:
    """And says the same of transactions."""
    here = tmp_path / "here.parquet"
    question = ("compact", "--decide", "-o", "parquet", "--to", str(here), "--now", str(PROGRAM_NOW))
    status, _, words = answer(question, str(data(OPEN)))
    assert program("compact", f"local://{data(OPEN)}", tmp_path / "there", "--decide")[0] == status == 0
    assert in_order_of_keys(pq.read_table(tmp_path / "there")).equals(pq.read_table(here))
    done = program("compact", str(data(OPEN)), tmp_path / "filtered", "--decide", "--option", "group=*prepared*")
    rows = [row for row in pq.read_table(here).to_pylist() if "prepared" in row["group"]]
    assert in_order_of_keys(pq.read_table(tmp_path / "filtered")).to_pylist() == rows != []
    assert [line for line in words if line.startswith("--decide")] == done[1][:1]


def test_the_program_rebuild_writes_the_same_columns(data: Data, in_process: None, tmp_path: Path) -> None:
    """Lag of offsets, outcomes of pending ones, share groups' offsets, names of topic ids."""
    status, output, _ = answer(("rebuild", "-o", "json", "--now", str(PROGRAM_NOW)), str(data(WHOLE)))
    assert program("rebuild", str(data(WHOLE)), tmp_path / "there")[0] == status == 0
    document = json.loads(output)
    for table in ("offsets", "pending", "share_offsets"):
        rows = pq.read_table(tmp_path / "there" / table).to_pylist()
        assert sorted(map(in_order, rows)) == sorted(map(in_order, document[table])) != [], table
    groups = {row["group"]: json.loads(row["document"]) for row in pq.read_table(tmp_path / "there/groups").to_pylist()}
    assert groups == {row["group"]: row for row in document["groups"]}
    bounded = program("rebuild", str(data(WHOLE)), tmp_path / "none", "--decide", "--option", "until_offset=5")
    assert (bounded[0], "--until-offset" in bounded[1][-1]) == (1, True)


def in_order(row: dict[str, Any]) -> str:
    """A row as text; what is null, and text within text, as elsewhere."""
    known = {name: json.loads(value) if str(value).startswith("[") else value for name, value in row.items()}
    return json.dumps({name: value for name, value in known.items() if value is not None}, sort_keys=True)
