"""SQL over a copy: only what a query names is read, and what is to be known of it is said."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

import offsets_log as ol
from offsets_log_cli.main import main
from tests.cli.runs import run
from tests.conftest import json_lines

EMPTY = {
    "Topics that nobody has committed to for a day, before the newest commit of all.",
    "Members that have nothing to do.",
    "Offsets that cannot be trusted, and why.",
    "Groups that commit the same offset again and again.",
    "Which groups an offset of the past may have skipped: commits that jump forward by more than a million.",
    "What is wrong with the files, in one list.",
    "On which releases a partition does not load.",
}
COUNTED = "select topic, count(*) as n, sum(committed_offset) as s from offsets group by 1 order by 1"


PAGE = (Path(__file__).parents[2] / "docs" / "sql.md").read_text()
QUESTIONS = re.findall(r"\*\*(.+?)\*\*\n\n```sql\n(.+?)```", PAGE, re.DOTALL)


def test_the_page_has_twenty_questions_and_names_every_table(log: Path) -> None:
    assert len(QUESTIONS) == 20
    with ol.open(log) as copy:
        assert re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE) == [*copy.tables]


@pytest.mark.parametrize(("question", "query"), QUESTIONS)
def test_questions_of_the_page(question: str, query: str, log: Path) -> None:
    """Of this copy some have no rows: it is sound, and short."""
    result = run("sql", log, query, "-o", "jsonl")
    assert result.exit_code == 0, result.stderr
    assert bool(result.stdout) == (question not in EMPTY)


@pytest.fixture
def log(recording: Callable[[str], Path]) -> Path:
    return recording("kafka-4.3-mixed") / "log"


def test_a_query_is_answered_from_the_tables_that_it_names(log: Path) -> None:
    with ol.open(log) as copy:
        answer = copy.sql(COUNTED)
        rows = copy.offsets().rows()
        assert {row["topic"]: row["n"] for row in answer.rows()} == {
            topic: sum(row["topic"] == topic for row in rows) for topic in {row["topic"] for row in rows}
        }
        assert answer.notes[-1] == "129 offsets of 30 groups, 4 partitions"
        assert answer.is_complete
        assert copy.sql("select 1 as x").rows() == [{"x": 1}]
        twice = copy.sql('select count(*) as n from offsets a join offsets b using ("group", topic, partition)')
        assert twice.rows() == [{"n": 129}]


def test_times_are_in_utc(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/Lima")
    written = run("sql", log, "select max(commit_timestamp) as m, max(commit_timestamp_ms) as ms from offsets").stdout
    assert written == '{"m":"2026-11-21T05:37:19.891Z","ms":1795239439891}\n'


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("select nope from offsets", 'Referenced column "nope" not found'),
        ("select * from offsts", "Table with name offsts does not exist"),
        ("selec", "syntax error"),
        ("create table x (y int)", "one query"),
        ("copy offsets to 'stolen.csv'", "one query"),
        ("select 1; select 2", "one query"),
        ("/* nothing */", "one query"),
    ],
)
def test_a_wrong_query_is_one_sentence(log: Path, query: str, why: str) -> None:
    result = run("sql", log, query)
    assert (result.exit_code, result.stdout) == (1, "")
    assert why in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_every_format_has_the_rows(log: Path, tmp_path: Path) -> None:
    rows = list(json_lines(run("sql", log, COUNTED, "-o", "jsonl").stdout))
    assert len(rows) == 6
    result = CliRunner().invoke(main, ["sql", str(log), COUNTED, "-o", "arrow"])
    assert pa.ipc.open_stream(io.BytesIO(result.stdout_bytes)).read_all().column("topic").to_pylist() == [
        row["topic"] for row in rows
    ]
    for form in ("table", "csv", "json"):
        assert all(row["topic"] in run("sql", log, COUNTED, "-o", form).stdout for row in rows)
    file = tmp_path / "query.sql"
    file.write_text(COUNTED)
    assert list(json_lines(run("sql", log, "-f", file).stdout)) == rows


def test_columns_of_a_join_are_told_apart(log: Path) -> None:
    with ol.open(log) as copy:
        joined = copy.sql('select * from offsets join groups using ("group") limit 1')
        assert {"offsets_partition", "offsets_partition_2"} <= {*joined.schema.names}
        assert copy.sql("select topic, partition from offsets").select("topic").schema.names == ["topic"]


def test_times_may_depend_on_the_log(log: Path) -> None:
    query = "select count(*) as n from offsets"
    told = run("sql", log, query, "--until-time", "end-30s")
    assert told.stdout == f'{{"n":{len(run("compact", log, "--until-time", "end-30s").stdout.splitlines())}}}\n'


def test_queries_come_from_standard_input(log: Path) -> None:
    result = CliRunner().invoke(main, ["sql", str(log)], input="select count(*) as n from offsets")
    assert result.stdout == '{"n":129}\n'


def test_without_duckdb_it_is_said_what_to_install(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    result = run("sql", log, "select 1")
    assert result.exit_code == 1
    assert "pip install 'offsets-log[sql]'" in result.stderr


def test_what_could_not_be_read_is_in_the_exit_status(recording: Callable[[str], Path], tmp_path: Path) -> None:
    segment = next((recording("kafka-4.3-mixed") / "log").rglob("*.log"))
    cut = tmp_path / "__consumer_offsets-0"
    cut.mkdir()
    (cut / segment.name).write_bytes(segment.read_bytes()[:-7])
    result = run("sql", cut, "select count(*) from offsets")
    assert result.exit_code == run("compact", cut).exit_code
    assert "bytes" in result.stderr
