"""``offsets-log restore`` as a user has it, on a cluster that is none: rows, words, exit statuses."""

from __future__ import annotations

import builtins
import json
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from offsets_log.disk.journal import growing_file
from offsets_log.restore import policy
from offsets_log.restore.target import Committed
from offsets_log_cli import restore
from offsets_log_cli.main import main
from tests.conftest import json_lines
from tests.restore.fake_cluster import LOG, FakeCluster
from tests.restore.plans import plan_of, row
from tests.waiting import PATIENCE_S


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    """What the command connects to; one for all, to look at afterwards."""
    target = FakeCluster({"busy": "Stable"})

    def connect(bootstrap_servers: str, properties: Mapping[str, str]) -> FakeCluster:
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


def test_nothing_is_done_without_execute(plan: Path, cluster: FakeCluster) -> None:
    result = run(plan, "-g", "i*", "-g", "ü")
    assert result.exit_code == 0
    assert told(result) == [
        ("idle", 0, "new", None, None),
        ("idle", 1, "new", None, None),
        ("ü", 0, "new", None, None),
    ]
    assert result.stderr == (
        "3 offsets: 3 would be committed, 0 as they should be, 0 refused; nothing was done: --execute does it\n"
    )
    assert cluster.groups == {}


@pytest.mark.parametrize(
    ("filters", "idle", "offsets"),
    [
        (("-g", "nope"), "-g nope", 0),
        (("-g", "idle", "-g", "typo-*"), "-g 'typo-*'", 2),
        (("-g", "idle", "-t", "nope"), "-t nope", 0),
    ],
)
def test_what_the_plan_does_not_have_is_told_with_status_3(
    plan: Path, cluster: FakeCluster, filters: tuple[str, ...], idle: str, offsets: int
) -> None:
    """A script goes on only where all that it asked for is restored."""
    result = run(plan, *filters)
    assert (result.exit_code, len(told(result))) == (3, offsets)
    assert f"no offset of the plan fits {idle}\n" in result.stderr


def test_what_is_refused_is_in_the_rows_and_in_the_exit_status(plan: Path, cluster: FakeCluster) -> None:
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
    assert again.stdout.splitlines()[1] == "idle,orders,0,unchanged,5,5,,0,100,inside,,,,,m,m,true,"


def test_the_plan_is_never_overwritten(plan: Path, cluster: FakeCluster) -> None:
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
    (tmp_path / "client.properties").write_text("sasl.mechanism=X")
    result = run(plan, "--command-config", tmp_path / "client.properties")
    assert result.exit_code == 1
    assert "field sasl.mechanism: 'X' is none of PLAIN" in result.stderr
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
    assert result.stderr == (
        "offsets-log: error: kafka-python is not installed: pip install 'offsets-log[restore]' where offsets-log is "
        "installed, or pip install '.[restore]' in its clone\n"
    )


def test_unknown_properties_are_a_warning(plan: Path, tmp_path: Path, cluster: FakeCluster) -> None:
    file = tmp_path / "client.properties"
    file.write_text("sasl.unknown=1\nretries=3\nsasl.login.class=x.Y\n")
    result = run(plan, "-g", "idle", "--command-config", file)
    assert result.exit_code == 0
    assert result.stderr.splitlines()[:-1] == [
        f"{file}: sasl.login.class is for Java's client alone: it has no effect here",
        f"{file}: sasl.unknown is no property of Kafka's tools: it has no effect",
    ]


def test_wrong_usage(plan: Path, tmp_path: Path) -> None:
    server = ("--bootstrap-server", "h:1")
    for words in (
        ["restore", *server],
        ["restore", str(plan), "--undo", str(plan), *server],
        ["restore", "--undo", str(tmp_path / "none"), *server],
        ["restore", "--undo", str(plan), "--rename-group", "a=b", *server],
        ["restore", str(plan), "--out-of-range", "perhaps", *server],
        ["restore", str(plan), "--leader-epochs", "perhaps", *server],
    ):
        assert CliRunner().invoke(main, words).exit_code == 2, words


def test_a_directory_in_place_of_the_plan_is_told_which_file(plan: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "rescued").mkdir()
    plan.rename(tmp_path / "rescued" / "plan.json")
    for directory, hint in (
        ("rescued", f"give {tmp_path}/rescued/plan.json"),
        ("empty", "offsets-log rescue makes it"),
    ):
        result = CliRunner().invoke(main, ["restore", str(tmp_path / directory), "--bootstrap-server", "h:1"])
        assert (result.exit_code, hint in result.stderr) == (2, True), result.stderr


def test_the_choices_are_the_librarys() -> None:
    assert (restore.LEADER_EPOCHS, restore.OUT_OF_RANGE) == (policy.LEADER_EPOCHS, policy.OUT_OF_RANGE)


def journal_of(plan: Path) -> Path:
    return plan.with_name("restore-journal.jsonl")


def undo(journal: Path, *arguments: object) -> Result:
    words = ["restore", "--undo", str(journal), "--bootstrap-server", "h:1", *map(str, arguments)]
    return CliRunner().invoke(main, words, catch_exceptions=False)


def test_a_run_is_undone_by_its_journal(plan: Path, cluster: FakeCluster) -> None:
    cluster.groups["ü"] = {("orders", 0): Committed(9, 3, "mine")}
    before = {"ü": dict(cluster.groups["ü"])}
    assert run(plan).exit_code == 3
    assert not journal_of(plan).exists(), "looking writes nothing"
    assert run(plan, "-g", "i*", "-g", "ü", "--execute").exit_code == 0
    seen = undo(journal_of(plan))
    assert (seen.exit_code, cluster.groups["ü"]) == (0, {("orders", 0): Committed(5, None, "")})
    assert [(r["change"], r["applied"]) for r in json_lines(seen.stdout)] == [
        ("deleted", None),
        ("deleted", None),
        ("advanced", None),
    ]
    done = undo(journal_of(plan), "--execute")
    assert done.exit_code == 0
    assert done.stderr == "3 offsets: 3 put back, 0 as they should be, 0 refused\n"
    assert {group: offsets for group, offsets in cluster.groups.items() if offsets} == before


def test_a_cluster_that_is_lost_is_one_line(plan: Path, cluster: FakeCluster) -> None:
    cluster.lost_after, cluster.loses = 1, False
    result = run(plan, "--execute")
    assert result.exit_code == 3
    assert [row[:2] for row in told(result)] == [("busy", 0), ("idle", 0), ("idle", 1)]
    assert result.stderr == (
        "h:1: no answer for 60 s: 4 offsets: 2 committed, 0 as they should be, 1 refused; 1 not, or not known to be; "
        f"the same command goes on, --undo {journal_of(plan)} puts back\n"
    )
    cluster.lost_after = None
    again = run(plan, "--execute")
    assert [row[2:4] for row in told(again)][1:] == [("unchanged", True)] * 3


def test_the_journal_is_of_one_cluster_and_one_run_at_a_time(plan: Path, tmp_path: Path, cluster: FakeCluster) -> None:
    assert run(plan, "-g", "idle", "--execute").exit_code == 0
    text = journal_of(plan).read_text()
    cluster.id = "two"
    result = run(plan, "-g", "idle", "--execute")
    assert result.exit_code == 1
    assert "this journal is of cluster one, and h:1 is of two: --journal FILE names another" in result.stderr
    assert undo(journal_of(plan), "--execute").exit_code == 1
    assert journal_of(plan).read_text() == text
    assert run(plan, "-g", "idle", "--execute", "--journal", tmp_path / "other").exit_code == 0
    with growing_file(tmp_path / "other"):
        result = run(plan, "-g", "idle", "--execute", "--journal", tmp_path / "other")
    assert result.exit_code == 1
    assert "another run writes it at this moment" in result.stderr
    notes = tmp_path / "notes"
    notes.write_text("mine, without a line break")
    assert run(plan, "-g", "idle", "--execute", "--journal", notes).exit_code == 1
    assert notes.read_text() == "mine, without a line break"


SWALLOWED = """
import threading
from offsets_log.actions.restore import Restore
from offsets_log_cli import restore
from offsets_log_cli.main import run

def waits(self):
    print("waits", flush=True)
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        threading.Event().wait()

Restore.run, restore.PATIENCE_S = waits, 0.1
run()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_end_that_is_swallowed_comes_all_the_same(plan: Path, number: signal.Signals) -> None:
    """As where the interrupted client waits for a lock that it holds itself."""
    command = [sys.executable, "-c", SWALLOWED, "restore", str(plan), "--bootstrap-server", "localhost:1", "--execute"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waits\n"
        process.send_signal(number)
        _, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 3
    assert said.startswith("interrupted: ")


def test_what_cannot_be_noted_is_not_done(plan: Path, tmp_path: Path, cluster: FakeCluster) -> None:
    result = run(plan, "-g", "idle", "--execute", "--journal", tmp_path / "no" / "such" / "folder")
    assert result.exit_code == 1
    assert "cannot be written" in result.stderr
    assert cluster.groups == {}


def test_offsets_outside_and_topics_made_anew_are_said(plan: Path, cluster: FakeCluster) -> None:
    cluster.logs[("orders", 1)] = LOG._replace(log_start_offset=6)
    plan.write_text(json.dumps(plan_of(row("idle", topic_id="there"), row("idle", partition=1))))
    result = run(plan, "--execute", "--out-of-range", "earliest")
    assert [
        (r["committed_offset"], r["plan_offset"], r["range"], r["same_topic"]) for r in json_lines(result.stdout)
    ] == [
        (5, None, "inside", False),
        (6, 5, "outside", None),
    ]
    assert result.stderr.splitlines()[:-1] == [
        "1 offset is of topics with another topic id than the plan's, which were made again: the same offset may be "
        "another record there; offsets-log translate finds it",
        "1 offset is outside the cluster's logs: earliest, as asked",
    ]


def test_what_is_outside_and_set_there_already_is_said(plan: Path, cluster: FakeCluster) -> None:
    cluster.logs[("orders", 0)] = LOG._replace(log_start_offset=6)
    plan.write_text(json.dumps(plan_of(row("idle"))))
    assert run(plan, "--execute", "--out-of-range", "keep").exit_code == 0
    result = run(plan)
    assert (result.exit_code, result.stderr.splitlines()) == (
        0,
        [
            "1 offset is outside the cluster's logs, and set there already",
            "1 offset: 0 would be committed, 1 as they should be, 0 refused; nothing was done",
        ],
    )


def test_topics_that_are_not_there_are_told_with_what_to_do(plan: Path, cluster: FakeCluster) -> None:
    plan.write_text(json.dumps(plan_of(row("idle", "none"), row("idle", "none", partition=1), row("idle"))))
    assert run(plan).stderr.splitlines()[0] == (
        "1 topic is not on the cluster, or not shown to this user: make it first, with as many partitions as "
        "DETAILS.txt beside the plan lists"
    )


def test_what_is_outside_is_told_the_way_in(plan: Path, cluster: FakeCluster) -> None:
    cluster.logs[("orders", 0)] = LOG._replace(log_start_offset=6)
    plan.write_text(json.dumps(plan_of(row("idle"))))
    assert run(plan).stderr.splitlines() == [
        "1 offset is outside the cluster's logs, and refused: --out-of-range earliest or latest sets the log's start "
        "or end, keep commits them as they are; offsets-log translate finds the same records",
        "1 offset: 0 would be committed, 0 as they should be, 1 refused; nothing was done",
    ]


def test_a_long_cell_does_not_widen_a_table(plan: Path, cluster: FakeCluster) -> None:
    plan.write_text(json.dumps(plan_of(row("g" * 3900, metadata="\x1b" * 3900))))
    lines = run(plan, "-o", "table").stdout.splitlines()
    assert max(map(len, lines)) < 700
    assert "ggg…" in lines[-1]
    (only,) = json_lines(run(plan, "-o", "jsonl").stdout)
    assert len(only["group"]) == len(only["metadata"]) == 3900
