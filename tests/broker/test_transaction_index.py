"""Versions of aborted transactions in ``.txnindex``: which releases open the log, and what commands make of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from offsets_log_cli.main import main
from tests.cleaner.cases import all_cases
from tests.cli.test_clean import written

OPENS = {
    "ffff": {"4.1.0": True, "4.3.0": True, "4.4.0": False},
    "0100": dict.fromkeys(("4.1.0", "4.3.0", "4.4.0"), False),
}
"""Version of the entry → release → whether the recorded round was begun."""


def run(*args: str | Path) -> Result:
    return CliRunner().invoke(main, [*map(str, args), "--quiet"])


@pytest.mark.parametrize("name", OPENS)
def test_check_tells_by_release_whether_the_broker_starts(name: str, tmp_path: Path) -> None:
    """``K44-21``, after both stops."""
    partition = written(all_cases()[f"txnindex-version-{name}"], tmp_path)
    for shutdown in ("clean", "unclean"):
        result = run("check", partition, "--loads-on", ",".join(OPENS[name]), "--shutdown", shutdown, "-o", "jsonl")
        loads = [row for row in map(json.loads, result.stdout.splitlines()) if row["kind"] == "load"]
        assert {row["releases"][0]: row["starts"] for row in loads} == OPENS[name]
        assert {row["rule"] for row in loads if not row["starts"]} == {"D-8"}
        assert all("version" in row["problem"] for row in loads if not row["starts"])
        assert result.exit_code == 3


def test_what_a_broker_serves_and_what_repair_leaves(tmp_path: Path) -> None:
    """``K44-21``: nothing, as it does not start; after repair, which makes indexes again, all."""
    partition = written(all_cases()["txnindex-version-ffff"], tmp_path)
    served = run("compact", partition, "--as-broker", "--profile", "modern", "--shutdown", "clean", "-o", "jsonl")
    assert (served.stdout, served.exit_code) == ("", 3)
    assert run("repair", partition, "--to", tmp_path / "out").exit_code in (0, 3)
    repaired = run("check", tmp_path / "out" / partition.name, "--loads-on", "4.4.0", "-o", "jsonl")
    assert all(row["starts"] for row in map(json.loads, repaired.stdout.splitlines()) if row["kind"] == "load")
    assert run("clean", partition, "--dry-run", "--broker", "4.3", "--shutdown", "clean").exit_code == 0
    assert run("clean", partition, "--dry-run", "--broker", "4.4", "--shutdown", "clean").exit_code == 3
