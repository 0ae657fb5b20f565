"""Lag in `rebuild`, `rescue` and `report`, where the copy has the logs of other topics."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from offsets_log.data_directory.lag import LAG_COLUMNS
from offsets_log_cli.main import main
from tests.conftest import read_json
from tests.data_directories.copies import Recorded, data_directories
from tests.data_directories.test_lag_words import described, told
from tests.report.browser import opened
from tests.report.test_report import BLOCK

NAMES = [column.name for column in LAG_COLUMNS]


def run(command: str, *arguments: object, status: int = 0) -> str:
    result = CliRunner().invoke(main, [command, *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == status, result.stderr
    return result.stdout


def rows(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def data(recorded: Recorded) -> Path:
    return data_directories(recorded("kafka-4.3-one"), "stopped")[0]


def test_offsets_of_rebuild_are_the_rows_of_compact(data: Path) -> None:
    """With and without; the other kinds of rows have no lag."""
    for how in ((), ("--lag",), ("--no-lag",), ("--now", "2030-01-01T00:00:00Z")):
        shown = rows(run("compact", data, *how, "-o", "jsonl"))
        assert ("lag" in shown[0]) == (how != ("--no-lag",))
        assert rows(run("rebuild", data, *how, "--table", "offsets", "-o", "jsonl")) == shown
        assert json.loads(run("rebuild", data, *how, "-o", "json"))["offsets"] == shown
    header = run("rebuild", data, "--table", "offsets", "-o", "csv").splitlines()[0]
    assert header.split(",")[-len(NAMES) :] == NAMES
    assert "lag" not in rows(run("rebuild", data, "--table", "groups", "-o", "jsonl"))[0]


def test_rescue_doubts_offsets_that_lead_to_no_record(data: Path, tmp_path: Path) -> None:
    run("rescue", data, "--to", tmp_path / "rescued")
    doubts = [words for words in read_json(tmp_path / "rescued" / "plan.json")["doubts"] if "DD-" in words]
    assert [words.split(";")[0] for words in doubts] == [
        "2 offsets beyond the log end: empty-0 at 3, the log ends at 0: 3 beyond",
        "1 offset below the log start, where the records are gone: short-0 at 5, the log starts at 20: 15 offsets are "
        "gone",
    ]
    run("rescue", data, "--no-lag", "--to", tmp_path / "other")
    assert "DD-" not in (tmp_path / "other" / "plan.json").read_text()


def test_the_report_has_how_far_each_group_is_behind(data: Path, recorded: Recorded, tmp_path: Path) -> None:
    """Sums of what the broker said, beyond the end counted as nothing; plots and table in a browser."""
    page = tmp_path / "page.html"
    run("report", data, "--to", page)
    (block,) = BLOCK.findall(page.read_text())
    document = json.loads(block)
    table = document["tables"]["lags"]
    shown = {row[0]: dict(zip(table["columns"], row, strict=True)) for row in table["rows"]}
    said: dict[str, list[int]] = {}
    for (group, _, _), (_, _, lag) in described(recorded("kafka-4.3-one"), "stopped").items():
        said.setdefault(group, []).append(max(lag, 0))
    assert {group: (row["lag"], row["max_lag"]) for group, row in shown.items()} == {
        group: (sum(lags), max(lags)) for group, lags in said.items()
    }
    assert all((row["max_behind_ms"] or 0) >= 0 for row in shown.values())
    assert any("DD-2" in str(row) for row in document["tables"]["problems"]["rows"])
    run("report", data, "--no-lag", "--to", tmp_path / "other.html")
    assert json.loads(BLOCK.findall((tmp_path / "other.html").read_text())[0])["tables"]["lags"]["rows"] == []


def test_the_page_shows_lag_in_a_browser(data: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    run("report", data, "--to", page)
    shown = opened(page)
    assert 'aria-label="offsets behind"' in shown
    assert 'aria-label="time behind"' in shown
    run("report", data, "--no-lag", "--to", page)
    assert 'id="lags"' not in opened(page)


def test_words_of_the_tool_hold_for_rebuild_too(data: Path, recorded: Recorded) -> None:
    shown = rows(run("rebuild", data, "--table", "offsets", "-o", "jsonl"))
    assert told(shown) == described(recorded("kafka-4.3-one"), "stopped")
