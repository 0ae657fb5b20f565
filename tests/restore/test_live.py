"""`restore` on a real broker: consumers read on, interrupted runs go on and are undone, a lost broker is one line."""

from __future__ import annotations

import json
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka.structs import OffsetAndMetadata, TopicPartition

from offsets_log.restore.client_libraries import files
from offsets_log.restore.readme import details
from tests.coordinator.broker import Broker
from tests.restore import live
from tests.restore.plans import plan_of, row
from tests.waiting import PATIENCE_S, wait_for

pytestmark = pytest.mark.kafka

GROUPS = [f"g{number:03}" for number in range(150)]
MANY = [row(group, partition=number % 3, offset=20, leader_epoch=8) for number, group in enumerate(GROUPS)]
POINTS = 6
"""Interruptions, of two kinds in turn."""


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A running broker, with ``orders`` filled."""
    broker = live.make(tmp_path_factory.mktemp("live") / "broker")
    with broker.running():
        live.fill(broker)
        yield broker


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Broker]:
    """The same for one test, without a group as yet."""
    broker = live.make(tmp_path / "broker")
    with broker.running():
        live.fill(broker)
        yield broker


def test_the_snippet_for_kafka_python_sets_offsets_on_a_cluster_without_groups(alone: Broker, tmp_path: Path) -> None:
    assert not list(alone.data.glob("__consumer_offsets-*"))
    rows = [row("snippet", partition=1, offset=7, leader_epoch=8, metadata="\0é"), row("snippet2", offset=9)]
    for name, pieces in files(rows):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("".join(pieces))
    text = "".join(details(plan_of(*rows), []))
    (code,) = re.findall(r"^  kafka-python.*?\n\n(.*?)\n\n  \S", text, re.MULTILINE | re.DOTALL)
    (tmp_path / "snippet.py").write_text(
        re.sub(r"^    ", "", code, flags=re.MULTILINE).replace("HOST:PORT", live.server(alone))
    )
    ran = subprocess.run(
        [sys.executable, "snippet.py"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )
    assert ran.returncode == 0, ran.stderr
    assert live.committed(alone, ["snippet", "snippet2"]) == {
        "snippet": {("orders", 1): (7, "\0é", -1)},
        "snippet2": {("orders", 0): (9, "", -1)},
    }


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_consumers_read_on_from_the_right_record(real: Broker, tmp_path: Path, protocol: str) -> None:
    """With an epoch that the cluster never had they would read nothing, and say nothing."""
    offsets = {0: 20, 1: 59, 2: 60}
    rows = [row(protocol, partition=number, offset=offset, leader_epoch=8) for number, offset in offsets.items()]
    plan = live.write_plan(tmp_path / "plan.json", rows)
    where = (plan, "--bootstrap-server", live.server(real), "--execute")
    assert live.restore(*where)[0] == 0
    unread = sorted([*range(20, 60), 59])
    assert live.read_on(real, protocol, protocol, len(unread)) == unread
    assert live.restore(*where, "--leader-epochs", "if-valid")[0] == 0
    assert {epoch for _, _, epoch in live.committed(real, [protocol])[protocol].values()} == {-1}
    if protocol == "consumer":
        assert live.restore(*where, "--leader-epochs", "keep")[0] == 0
        assert live.read_on(real, protocol, protocol, 0) == [], "what this is all about"


def test_epochs_that_the_cluster_has_are_valid(real: Broker, tmp_path: Path) -> None:
    rows = [row("valid", partition=number, offset=60 - 10 * number, leader_epoch=0) for number in range(3)]
    plan = live.write_plan(tmp_path / "plan.json", rows)
    where = (plan, "--bootstrap-server", live.server(real), "--execute", "--leader-epochs", "if-valid")
    assert live.restore(*where)[0] == 0
    assert live.committed(real, ["valid"]) == {"valid": {("orders", n): (60 - 10 * n, "", 0) for n in range(3)}}
    unread = sorted([*range(50, 60), *range(40, 60)])
    assert live.read_on(real, "valid", "classic", len(unread)) == unread


def test_topics_made_anew_are_told_by_their_id(real: Broker, tmp_path: Path) -> None:
    (topic_id,) = re.findall(r"topic_id: (.*)", (real.data / "orders-0" / "partition.metadata").read_text())
    rows = [row("same", topic_id=topic_id), row("other", topic_id="AAAAAAAAAAAAAAAAAAAAAQ"), row("unknown")]
    status, found, words = live.restore(
        live.write_plan(tmp_path / "plan.json", rows), "--bootstrap-server", live.server(real)
    )
    assert status == 0
    assert {r["group"]: r["same_topic"] for r in found} == {"same": True, "other": False, "unknown": None}
    assert words.startswith("1 offset is of topics with another topic id than the plan's, which were made again")


def test_offsets_outside_the_log(real: Broker, tmp_path: Path) -> None:
    with live.admin(real) as client:
        client.delete_records({TopicPartition("orders", 2): 10})
    rows = [row("range", offset=999_999), row("range", partition=2, offset=9)]
    plan = live.write_plan(tmp_path / "plan.json", rows)
    where = (plan, "--bootstrap-server", live.server(real))
    status, found, _ = live.restore(*where, "--execute")
    assert status == 3
    assert [(r["log_start_offset"], r["log_end_offset"], r["range"], r["applied"]) for r in found] == [
        (0, 60, "outside", False),
        (10, 60, "outside", False),
    ]
    assert live.committed(real, ["range"]) == {}
    assert live.restore(*where, "--out-of-range", "earliest", "--execute")[0] == 0
    assert live.committed(real, ["range"]) == {"range": {("orders", 0): (0, "", -1), ("orders", 2): (10, "", -1)}}


def give_some(real: Broker) -> live.Groups:
    """Some of the groups have offsets, also on the partition that is restored; what they have."""
    live.make_coordinators(real, GROUPS)
    with live.admin(real) as client:
        for number, group in enumerate(GROUPS):
            if number % 2:
                keys = [TopicPartition("orders", (number + shift) % 3) for shift in range(number % 3)]
                client.alter_group_offsets(group, {key: OffsetAndMetadata(30 + number % 9, "mine", 0) for key in keys})
            else:
                client.alter_group_offsets(
                    group, {TopicPartition("orders", number % 3): OffsetAndMetadata(5, "", None)}
                )
                client.delete_group_offsets(group, [TopicPartition("orders", number % 3)])
    return live.committed(real, GROUPS)


def lines_of(journal: Path) -> int:
    return journal.read_bytes().count(b"\n") if journal.exists() else 0


def until(process: subprocess.Popen[str], journal: Path, lines: int) -> None:
    """Come back when a run has written so many lines, or has ended."""
    done = lambda: lines_of(journal) >= lines or process.poll() is not None  # noqa: E731
    wait_for(f"{lines} lines are in the journal", done, every_s=0.0005)


def interrupted(process: subprocess.Popen[str], journal: Path, lines: int, how: signal.Signals) -> tuple[str, str]:
    """Let a run write so many lines, then interrupt it."""
    until(process, journal, lines)
    process.send_signal(how)
    return process.communicate(timeout=PATIENCE_S)


def test_interrupted_anywhere_and_undone_is_as_before(real: Broker, tmp_path: Path) -> None:
    before = give_some(real)
    random.seed(14)
    cut = 0
    for point in range(POINTS):
        plan = live.write_plan(tmp_path / str(point) / "plan.json", MANY)
        journal = plan.with_name("restore-journal.jsonl")
        where = ("--bootstrap-server", live.server(real), "--execute")
        how = (signal.SIGKILL, signal.SIGINT)[point % 2]
        _, words = interrupted(live.start(plan, *where), journal, random.randrange(2, 2 * len(GROUPS)), how)
        announced = [json.loads(line) for line in journal.read_text().split("\n")[:-1]]
        done = sum(line["event"] == "after" for line in announced)
        assert len(announced) > 0
        cut += done < len(GROUPS)
        if how is signal.SIGINT and done < len(GROUPS):
            assert words.startswith(f"interrupted: {len(GROUPS)} offsets: ")
            assert words.count("\n") == 1
        if point % 3 == 2:  # gone on with first
            status, rows, _ = live.restore(plan, *where)
            assert status == 0
            assert len(rows) == len(GROUPS)
            after = live.committed(real, GROUPS)
            assert all(after[r["group"]]["orders", r["partition"]] == (20, "", -1) for r in MANY)
        status, _, words = live.restore("--undo", journal, *where)
        assert status == 0, words
        assert live.committed(real, GROUPS) == before
    assert cut > POINTS / 2


def test_a_lost_broker_is_one_line_and_the_same_command_goes_on(alone: Broker, tmp_path: Path) -> None:
    before = give_some(alone)
    plan = live.write_plan(tmp_path / "plan.json", MANY)
    journal = plan.with_name("restore-journal.jsonl")
    (tmp_path / "client.properties").write_text("default.api.timeout.ms=2000\n")
    where = ("--bootstrap-server", live.server(alone), "--execute", "--command-config", tmp_path / "client.properties")
    process = live.start(plan, *where)
    until(process, journal, len(GROUPS))
    alone.process.kill()
    killed = time.monotonic()
    out, words = process.communicate(timeout=PATIENCE_S)
    assert time.monotonic() - killed < 45
    rows = [json.loads(line) for line in out.split("\n")[:-1]]
    assert process.returncode == 3
    assert words.count("\n") == 1
    assert re.match(
        rf"127.0.0.1:{alone.port}: no answer for 2 s: .*: 150 offsets: \d+ committed, 0 as they should be, 0 refused; "
        rf"{len(GROUPS) - len(rows)} not, or not known to be; the same command goes on, --undo ",
        words,
    )
    assert 0 < len(rows) < len(GROUPS)
    assert all(found["applied"] for found in rows)
    with alone.running():
        status, rows, words = live.restore(plan, *where)
        assert (status, len(rows)) == (0, len(GROUPS)), words
        assert live.restore("--undo", journal, *where)[0] == 0
        assert live.committed(alone, GROUPS) == before
