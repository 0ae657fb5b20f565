"""``--metrics-port``: what Prometheus reads is what the log says, and the dashboard asks for nothing else."""

from __future__ import annotations

import json
import re
import socket
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from prometheus_client.parser import text_string_to_metric_families

from offsets_log.following.metrics import METRICS
from offsets_log_cli.main import main
from tests.builders import LogBuilder, member
from tests.cli.test_follow import append, next_row, started
from tests.pulling.brokers import Brokers, Log
from tests.waiting import PATIENCE_S, wait_for

ROOT = Path(__file__).parents[2]
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "data" / "__consumer_offsets-0").mkdir(parents=True)
    return tmp_path / "data"


def scrape(process: Any) -> Samples:
    """Samples by name and labels, of the process that says where they are."""
    if not hasattr(process, "metrics_url"):
        process.metrics_url = process.stderr.readline().decode().split()[-1]
        assert process.metrics_url.startswith("http://127.0.0.1:"), "nobody else reaches it"
    with urllib.request.urlopen(process.metrics_url, timeout=PATIENCE_S) as answer:
        text = answer.read().decode()
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = sample.name, frozenset(sample.labels.items())
            assert key not in found, "Prometheus refuses two samples of the same labels"
            found[key] = sample.value
    return found


def value(samples: Samples, name: str, **labels: str) -> float | None:
    values = [one for (key, pairs), one in samples.items() if key == f"offsets_log_{name}" and labels.items() <= pairs]
    assert len(values) <= 1, (name, labels)
    return values[0] if values else None


def ends(data: Path, asked_ms: int, *partitions: list[int]) -> None:
    rows = [{"topic": "t", "topic_id": None, "partitions": partitions}]
    (data / "log-ends.json").write_text(json.dumps({"version": 1, "asked_ms": asked_ms, "topics": rows}))


def test_groups_are_measured_with_what_they_hold_and_write(data: Path) -> None:
    log = LogBuilder().commit(7).group(member("m"), generation=3).commit(9, producer=5).commit(1, group='"x"\n')
    append(data, *log.batches)
    ends(data, 1, [0, 0, 40])
    with started("groups", data, "--metrics-port", "0") as process:
        next_row(process), next_row(process)
        found = scrape(process)
        key = {"group": "g", "topic": "t", "partition": "0", "offsets_partition": "0"}
        assert value(found, "committed_offset", **key) == 7
        assert value(found, "lag", **key) == 33
        assert value(found, "group_generation", group="g") == 3
        assert value(found, "group_members", group="g") == 1
        assert value(found, "group_state", group="g", state="Stable", type="classic") == 1
        assert value(found, "pending_offsets", group="g") == 1
        assert value(found, "open_transactions") == 1
        assert value(found, "group_records_total", group="g") == 3
        assert value(found, "group_bytes_total", group="g") == sum(map(len, log.batches[:3]))
        assert value(found, "committed_offset", group='"x"\n') == 1, "any name is a label"
        assert (value(found, "next_offset"), value(found, "behind_bytes")) == (4, 0)
        append(data, log.end(5).commit(2, group="later").batches[-2], log.batches[-1])
        next_row(process), next_row(process)
        found = scrape(process)
        assert value(found, "committed_offset", **key) == 9
        assert value(found, "open_transactions") == 0
        assert value(found, "next_offset") == 6
        assert value(found, "delay_seconds") is not None


@pytest.mark.parametrize(
    ("command", "names"),
    [
        (["compact"], {"committed_offset", "commit_timestamp_seconds", "load_fails"}),
        (["history", "-g", "*"], {"commits_total", "rewinds_total"}),
        (["rebalances"], {"rebalances_total"}),
    ],
)
def test_every_command_measures_what_it_knows(data: Path, command: list[str], names: set[str]) -> None:
    append(data, *LogBuilder().commit(7).commit(3).group(member("m"), generation=1).batches)
    with started(*command, data, "--metrics-port", "0") as process:
        next_row(process)
        found = scrape(process)
    assert {f"offsets_log_{name}" for name in (*names, "next_offset", "delay_seconds")} <= {name for name, _ in found}
    if command[0] == "history":
        assert (value(found, "commits_total"), value(found, "rewinds_total")) == (2, 1)


def test_a_copy_is_measured_while_it_is_pulled(tmp_path: Path) -> None:
    logs = {("__consumer_offsets", 0): Log().fill(5), ("__consumer_offsets", 1): Log()}
    with Brokers(logs).running() as brokers:
        words = ["pull", "--bootstrap-server", brokers.address, "--to", tmp_path / "copy", "--metrics-port", "0"]
        with started(*words) as process:
            lines = iter(process.stderr or ())
            process.metrics_url = next(line for line in lines if line.startswith(b"metrics")).decode().split()[-1]  # type: ignore[attr-defined]

            def whole() -> Samples | None:
                found = scrape(process)
                return found if value(found, "pulled_end_offset", partition="0") == 15 else None

            found = wait_for("the copy has all records", whole, of=process)
    assert value(found, "pulled_high_watermark", partition="0", topic="__consumer_offsets") == 15
    assert value(found, "pulled_bytes_total", partition="0") == len(logs["__consumer_offsets", 0].raw)
    assert value(found, "pulled_behind_records", partition="0") == 0
    assert value(found, "pulled_problem", partition="1") == 0


def test_a_port_that_is_taken_and_a_library_that_is_missing_are_told(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(data, *LogBuilder().commit(7).batches)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        result = CliRunner().invoke(main, ["compact", str(data), "--follow", "--metrics-port", port])
        assert result.exit_code == 1
        assert f"--metrics-port 127.0.0.1:{port}: " in result.stderr
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    result = CliRunner().invoke(main, ["compact", str(data), "--follow", "--metrics-port", "0"])
    assert result.exit_code == 1
    assert "pip install 'offsets-log[metrics]'" in result.stderr
    for words in (["compact", str(data)], ["pull", "--bootstrap-server", "x:1", "--to", str(data / "new")]):
        result = CliRunner().invoke(main, [*words, "--metrics-port", "0"])
        assert result.exit_code == 2, "there is nothing to measure without --follow"


def test_the_dashboard_asks_for_metrics_that_exist_and_for_all_of_them() -> None:
    board = json.loads((ROOT / "docs" / "grafana.json").read_text(encoding="utf-8"))
    asked = " ".join(target["expr"] for panel in board["panels"] for target in panel.get("targets", ()))
    asked += " ".join(one["query"]["query"] for one in board["templating"]["list"] if one["type"] == "query")
    named = set(re.findall(r"offsets_log_\w+", asked))
    assert named == {metric.shown_name for metric in METRICS}
    for metric in METRICS:
        used = re.findall(rf"by \(([^)]*)\) \([^\"]*?{metric.shown_name}\b", asked)
        labels = {label.strip() for group in used for label in group.split(",")}
        assert labels <= {label for one in METRICS for label in one.labels}
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    cells = [
        (x, y)
        for panel in board["panels"]
        for place in [panel["gridPos"]]
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells)), "panels lie beside each other"
    assert max(x for x, _ in cells) < 24


def test_the_runbook_has_a_row_for_each_metric() -> None:
    page = (ROOT / "docs" / "runbooks" / "while-it-runs.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(offsets_log_\w+)` \| (.*?) \|$", page, re.MULTILINE))
    assert rows == {
        metric.shown_name: f"{', '.join(f'`{label}`' for label in metric.labels) or '–'} | {metric.means}"
        for metric in METRICS
    }
