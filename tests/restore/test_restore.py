"""``offsets-log restore`` as a user has it, on a cluster that is none: rows, words, exit statuses."""

from __future__ import annotations

import builtins
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from cli.main import main
from tests.conftest import json_lines
from tests.restore.plans import plan_of, row
from tests.restore.test_apply import FakeCluster


class Connected(FakeCluster):
    """What the command connects to; one for all, to look at afterwards."""

    def close(self) -> None:
        pass


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Connected:
    target = Connected({"busy": "Stable"})

    def connect(bootstrap_servers: str, properties: Mapping[str, str]) -> Connected:
        assert bootstrap_servers == "h:1"
        return target

    monkeypatch.setattr("offsets_log.cluster.admin.Cluster", connect)
    return target


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan_of(row("busy"), row("idle", metadata="m"), row("idle", partition=1), row("ü"))))
    return path


def run(plan: Path, *arguments: object) -> Result:
    words = ["restore", str(plan), "--bootstrap-server", "h:1", *map(str, arguments)]
    return CliRunner().invoke(main, words, catch_exceptions=False)


def told(result: Result) -> list[tuple[Any, ...]]:
    return [(r["group"], r["partition"], r["change"], r["applied"], r["reason"]) for r in json_lines(result.stdout)]


REFUSED = "the group is Stable: stop its members first"


def test_nothing_is_done_without_execute(plan: Path, cluster: Connected) -> None:
    result = run(plan, "-g", "i*", "-g", "ü")
    assert result.exit_code == 0
    assert told(result) == [
        ("idle", 0, "new", None, None),
        ("idle", 1, "new", None, None),
        ("ü", 0, "new", None, None),
    ]
    assert result.stderr == (
        "3 offsets: 3 would be committed, 0 as they should be, 0 refused; nothing was done: --execute commits\n"
    )
    assert cluster.groups == {}


def test_what_is_refused_is_in_the_rows_and_in_the_exit_status(plan: Path, cluster: Connected) -> None:
    assert run(plan).exit_code == 3
    result = run(plan, "--execute")
    assert result.exit_code == 3
    assert told(result)[0] == ("busy", 0, "new", False, REFUSED)
    assert [row[3] for row in told(result)[1:]] == [True, True, True]
    assert result.stderr == "4 offsets: 3 committed, 0 as they should be, 1 refused\n"
    assert set(cluster.groups) == {"idle", "ü"}
    again = run(plan, "--execute", "-g", "idle", "-q", "-o", "csv")
    assert again.exit_code == 0
    assert again.stderr == ""
    assert again.stdout.splitlines()[1] == "idle,orders,0,unchanged,5,5,,,m,m,true,"


def test_the_plan_is_never_overwritten(plan: Path, cluster: Connected) -> None:
    before = plan.read_bytes()
    result = run(plan, "--execute", "--to", plan)
    assert result.exit_code == 1
    assert plan.read_bytes() == before
    assert cluster.groups == {}, "what cannot be told is not done"


def test_errors_are_one_line(plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "none.json").write_text("{}")
    result = run(tmp_path / "none.json")
    assert result.exit_code == 1
    assert result.stderr.startswith(f"offsets-log: error: {tmp_path}/none.json: it is no rescue plan")
    (tmp_path / "client.properties").write_text("sasl.unknown=1")
    result = run(plan, "--command-config", tmp_path / "client.properties")
    assert result.exit_code == 1
    assert "field sasl.unknown: unknown property" in result.stderr
    assert result.stderr.count("\n") == 1
    assert CliRunner().invoke(main, ["restore", str(plan)]).exit_code == 2

    real_import = builtins.__import__

    def without_kafka(name: str, *rest: Any, **more: Any) -> Any:
        if name.split(".")[0] == "kafka":
            raise ImportError(name)
        return real_import(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without_kafka)
    result = run(plan)
    assert result.exit_code == 1
    assert result.stderr == "offsets-log: error: kafka-python is not installed: pip install 'offsets-log[restore]'\n"
