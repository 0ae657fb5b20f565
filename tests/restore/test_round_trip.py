"""A recording's offsets rescued, and set on an empty real broker by Kafka's own tool and by `restore`.

The expected answers are those of the broker that was recorded (``answers/restart.json``).
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from kafka import KafkaConsumer
from kafka.errors import KafkaError

from offsets_log.restore import kafka_consumer_groups
from offsets_log_cli.main import main
from tests.conftest import json_lines, read_json
from tests.coordinator import broker
from tests.restore import plans
from tests.restore.empty_cluster import consumer_groups_tool, create_topics
from tests.restore.test_forms import HOSTILE
from tests.waiting import wait_for

RECORDING = "kafka-4.3-mixed"
PARTITIONS = 4
TOOL_SECONDS = 300

Answer = list[list[Any]]


def invoke(*arguments: object, status: int = 0) -> str:
    result = CliRunner().invoke(main, list(map(str, arguments)))
    assert result.exit_code == status, result.output
    return result.stdout


def spans_of(offsets: list[dict[str, Any]]) -> dict[tuple[str, int], tuple[int, int]]:
    spans: dict[tuple[str, int], tuple[int, int]] = {}
    for row in offsets:
        key, offset = (row["topic"], row["partition"]), max(row["committed_offset"], 0)
        first, end = spans.get(key, (offset, offset))
        spans[key] = (min(first, offset), max(end, offset))
    return spans


def run_script(script: Path, tool: Path, *arguments: str) -> str:
    ran = subprocess.run(
        ["sh", str(script), *arguments],
        env={**os.environ, "KAFKA_CONSUMER_GROUPS": str(tool)},
        capture_output=True,
        text=True,
        check=False,
        timeout=TOOL_SECONDS,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@contextmanager
def a_member(port: int, group: str, topic: str) -> Iterator[None]:
    """A live consumer in a group."""
    consumer = KafkaConsumer(topic, group_id=group, bootstrap_servers=f"127.0.0.1:{port}", enable_auto_commit=False)
    stop = threading.Event()
    failures: list[str] = []

    def poll() -> None:
        while not stop.is_set():
            try:
                consumer.poll(timeout_ms=200)
            except KafkaError as error:
                failures.append(repr(error))
                stop.wait(0.2)

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        wait_for("partitions for the consumer", consumer.assignment, said=lambda: str(failures))
        yield
    finally:
        stop.set()
        thread.join()
        consumer.close()


def set_awkward_names(real: broker.Broker, tool: Path, folder: Path) -> Answer:
    """The tool's own class takes the names that it is given, and refuses what it is not; what was set."""
    rows = [plans.row(name, "T", 1, 900) for name in sorted(HOSTILE)]
    for path, pieces in kafka_consumer_groups.files(rows):
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text("".join(pieces), newline="")
    server = ("--bootstrap-server", f"127.0.0.1:{real.port}")
    run_script(folder / "kafka-consumer-groups" / "run.sh", tool, *server, "--execute")
    for refused, csv, says in (
        (plans.row(""), '"",T,0,900\n', "INVALID_GROUP_ID"),
        (plans.row("two\nlines", "T"), '"two\nlines",T,0,900\n', "Missing closing quote"),
        (plans.row("g", "T", 0, -1), "g,T,0,-1\n", "Invalid negative offset"),
        (plans.row("g", "no topic"), "g,no topic,0,900\n", "InvalidTopicException"),
    ):
        assert kafka_consumer_groups.refusal(refused) is not None
        (folder / "refused.csv").write_text(csv)
        command = [str(tool), *server, "--reset-offsets", "--from-file", str(folder / "refused.csv"), "--execute"]
        groups = [f"--group={refused['group']}", "--group=other"]
        ran = subprocess.run([*command, *groups], capture_output=True, text=True, check=False, timeout=TOOL_SECONDS)
        assert says in ran.stdout + ran.stderr
    return [[name, "T", 1, 900, "", None] for name in HOSTILE]


@pytest.mark.kafka
def test_rescued_offsets_come_back_on_an_empty_broker(
    recording: Callable[[str], Path], tmp_path: Path, record_property: pytest.RecordProperty
) -> None:
    try:
        libs = broker.jars()
    except broker.NotAvailableError as reason:
        pytest.skip(f"no real broker: {reason}")
    folder = recording(RECORDING)
    offsets = read_json(folder / "answers" / "restart.json")["offsets"]
    rescued = tmp_path / "rescued"
    invoke("rescue", folder / "log", "--to", rescued, "--quiet")

    whole: Answer = [
        [row[n] for n in ("group", "topic", "partition", "committed_offset", "metadata", "leader_epoch")]
        for row in offsets
        if row["committed_offset"] >= 0  # the client does not give others
    ]
    by_csv: Answer = [[*row[:4], "", None] for row in whole if row[0] != "" and "\n" not in row[0]]
    left_out = {
        (row["group"], row["topic"], row["partition"])
        for row in json_lines((rescued / "left-out.jsonl").read_text())
        if row["tool"] == "kafka-consumer-groups"
    }
    assert {tuple(row[:3]) for row in whole} - {tuple(row[:3]) for row in by_csv} <= left_out
    assert len(left_out) + len(by_csv) == len(offsets)

    (tmp_path / "broker").mkdir()
    real = broker.Broker(libs, tmp_path / "broker", PARTITIONS)
    create_topics(real, spans_of(offsets))
    groups: dict[str, list[tuple[str, int]]] = {row["group"]: [] for row in offsets}
    server = ("--bootstrap-server", f"127.0.0.1:{real.port}")
    whole_plan = ("--leader-epochs", "keep", "--out-of-range", "keep")
    restore = ("restore", rescued / "plan.json", *server, *whole_plan)
    with real.running():

        def answers() -> Answer:
            found: Answer = real.ask(groups)["offsets"]
            return sorted(found)

        tool, script = consumer_groups_tool(libs, tmp_path), rescued / "kafka-consumer-groups" / "run.sh"
        run_script(script, tool, *server)
        seen = list(json_lines(invoke(*restore)))
        assert [row["change"] for row in seen] == ["new"] * len(offsets), "without --execute nothing is set"
        assert {row["applied"] for row in seen} == {None}

        run_script(script, tool, *server, "--execute")
        assert answers() == sorted(by_csv)

        invoke(*restore, "--execute")
        awkward = set_awkward_names(real, tool, tmp_path)
        groups |= {name: [] for name in HOSTILE}
        assert answers() == sorted(whole + awkward)
        again = list(json_lines(invoke(*restore, "--execute")))
        assert [(row["change"], row["applied"]) for row in again] == [("unchanged", True)] * len(offsets)

        plan = json.loads((rescued / "plan.json").read_bytes())
        busy = "wide-metrics"
        plan["offsets"] = [row | {"committed_offset": row["committed_offset"] + 1} for row in plan["offsets"]]
        (tmp_path / "later.json").write_text(json.dumps(plan))
        later = (*whole_plan, "--execute", "--journal", tmp_path / "journal")
        with a_member(real.port, busy, "T"):
            tried = invoke("restore", tmp_path / "later.json", *server, "-g", busy, "-g", "null", *later, status=3)
        applied = {row["group"]: (row["applied"], row["reason"]) for row in json_lines(tried)}
        assert applied == {busy: (False, "the group is Stable: stop its members first"), "null": (True, None)}
        kept = list(json_lines(invoke(*restore, "-g", busy)))
        assert {row["change"] for row in kept} == {"unchanged"}
    record_property("set by the CSV", len(by_csv))
    record_property("set by restore", len(whole))
