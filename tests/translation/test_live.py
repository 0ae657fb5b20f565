"""From one broker to another where records have other offsets: consumers go on at the right record."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from kafka import KafkaProducer
from kafka.admin import NewTopic

from offsets_log_cli.main import main
from tests.coordinator.broker import Broker
from tests.restore import live
from tests.restore.plans import row

pytestmark = pytest.mark.kafka

START_MS = 1_700_000_000_000
NOT_COPIED = 10
"""The first records of each partition, which the target lacks."""


def fill(real: Broker, first: int) -> None:
    """Make ``orders``: record N of a partition says N, whatever its offset."""
    with live.admin(real) as client:
        kept = {"retention.ms": "-1"}  # records are years old
        client.create_topics([NewTopic("orders", live.PARTITIONS, 1, topic_configs=kept)])
    producer = KafkaProducer(bootstrap_servers=live.server(real))
    for number in range(first, live.RECORDS):
        for partition in range(live.PARTITIONS):
            producer.send("orders", b"%d" % number, partition=partition, timestamp_ms=START_MS + number)
    producer.close()


def by_times(source: Broker, target: Broker, plan: Path) -> list[int]:
    """The offsets of the partitions, asked of the running target."""
    words = ["translate", str(source.data), "--bootstrap-server", live.server(target), "--to", str(plan)]
    result = CliRunner().invoke(main, words, catch_exceptions=False)
    assert (result.exit_code, "3 by time" in result.stderr) == (0, True), result.stderr
    rows = map(json.loads, (plan / "translation.jsonl").read_text().splitlines())
    return [row["target_offset"] for row in sorted(rows, key=lambda row: row["partition"])]


def test_consumers_go_on_at_the_right_record(tmp_path: Path) -> None:
    source, target = live.make(tmp_path / "source"), live.make(tmp_path / "target")
    rows = [row("g", partition=number, offset=offset) for number, offset in {0: 20, 1: 59, 2: 60}.items()]
    with source.running():
        fill(source, 0)
        plan = live.write_plan(tmp_path / "plan.json", rows)
        assert live.restore(plan, "--bootstrap-server", live.server(source), "--execute")[0] == 0
    with target.running():
        fill(target, NOT_COPIED)
    plan = tmp_path / "translated"
    words = ["translate", str(source.data), "--target", str(target.data), "--to", str(plan)]
    result = CliRunner().invoke(main, words, catch_exceptions=False)
    assert (result.exit_code, "3 exact" in result.stderr) == (0, True), result.stderr
    with target.running():
        assert by_times(source, target, tmp_path / "by-times") == [10, 49, 49]  # of all read: the last one again
        assert live.restore(plan / "plan.json", "--bootstrap-server", live.server(target), "--execute")[0] == 0
        unread = sorted([*range(20, live.RECORDS), 59])
        assert live.read_on(target, "g", "classic", len(unread)) == unread
