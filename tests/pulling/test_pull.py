"""A copy equals the log, of brokers of every kind and with every option; where it cannot be made, that is told."""

from __future__ import annotations

import json
import sys
import time
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from offsets_log.log_format.primitives import Uuid
from offsets_log.protocol.api import Header
from offsets_log.protocol.registry import APIS
from offsets_log.pulling import run
from offsets_log.pulling.partition import PulledPartition
from offsets_log_cli.main import main
from tests.coordinator.broker import free_port
from tests.pulling.brokers import OFFSETS, Brokers, Log
from tests.pulling.copies import FETCH, METADATA, READS, copied, offsets_log, problem, pull, pull_beside, rows
from tests.waiting import wait_for


def test_a_copy_is_the_log_byte_for_byte_and_only_reads_are_sent(tmp_path: Path) -> None:
    logs = offsets_log(p0=Log().fill(50), p1=Log(), p2=Log(start=90, end=90).fill(7, 11))
    logs["orders", 0] = Log(start=5, end=9)
    with Brokers(logs, topic_ids={"orders": Uuid(b"o" * 16), OFFSETS: Uuid(b"c" * 16)}).running() as brokers:
        result = pull(brokers, tmp_path)
        assert result.exit_code == 0, result.stderr
    for partition in range(3):
        assert copied(tmp_path, partition) == logs[OFFSETS, partition].raw
    told = {row["partition"]: row for row in rows(result)}
    assert [told[2][name] for name in ("start_offset", "end_offset", "high_watermark", "whole")] == [90, 167, 167, True]
    assert {key for _, key, _ in brokers.requests} == {18, 3, 2, 1} <= READS
    assert not any(key not in APIS for _, key, _ in brokers.requests)
    ends = json.loads((tmp_path / "copy" / "log-ends.json").read_text())
    assert ends["topics"] == [{"topic": "orders", "topic_id": str(Uuid(b"o" * 16)), "partitions": [[0, 5, 9]]}]
    assert (tmp_path / "copy" / f"{OFFSETS}-2" / f"{90:020}.log").exists()
    assert json.loads((tmp_path / "copy" / "pull.json").read_text())["cluster_id"] == "one"


def test_a_later_run_adds_what_came_since_and_reads_nothing_twice_but_a_batch(tmp_path: Path) -> None:
    log = Log().fill(40)
    with Brokers(offsets_log(p0=log)).running() as brokers:
        assert pull(brokers, tmp_path).exit_code == 0
        assert rows(pull(brokers, tmp_path))[0]["pulled_bytes"] == 0
        before = len(log.raw)
        log.fill(5)
        log.lead(0, 4)
        log.fill(5)
        asked = len(brokers.requests)
        (row,) = rows(pull(brokers, tmp_path))
        assert row["pulled_bytes"] == len(log.raw) - before
        offsets = [
            body["topics"][0]["partitions"][0]["fetch_offset"] for _, k, body in brokers.requests[asked:] if k == 1
        ]
        assert offsets[0] == 117
    assert copied(tmp_path) == log.raw


def test_old_brokers_are_asked_in_their_versions(tmp_path: Path) -> None:
    """Those of Kafka 0.11: no leader epochs, no topic ids, no start of the log in a response."""
    log = Log().fill(30)
    newest = {18: 1, 3: 4, 2: 2, 1: 4, 23: 0}
    with Brokers(offsets_log(p0=log), newest=newest).running() as brokers:
        result = pull(brokers, tmp_path)
        assert result.exit_code == 0, result.stderr
        log.fill(3)
        assert pull(brokers, tmp_path).exit_code == 0
    assert copied(tmp_path) == log.raw
    with Brokers(offsets_log(p0=log), newest={1: 3}).running() as brokers:
        (tmp_path / "new").mkdir()
        (tmp_path / "new" / "client.properties").write_text("default.api.timeout.ms=500\n")
        assert "no version of Fetch that both sides know" in problem(pull(brokers, tmp_path / "new"))


def test_a_quota_is_waited_for(tmp_path: Path) -> None:
    """A broker that holds a client back answers nothing, and says for how long (``ClientQuotaManager``)."""
    log, fetches = Log().fill(30), []
    brokers = Brokers(offsets_log(p0=log))

    def fault(node: int, header: Header, body: dict[str, Any]) -> bytes | None:
        if header.api_key != FETCH or len(fetches) > 8:
            return None
        fetches.append(body)
        empty = {"throttle_time_ms": 20, "error_code": 0, "session_id": 0, "responses": []}
        return APIS[FETCH].encode_response(header.correlation_id, header.version, empty)

    brokers.fault = fault
    with brokers.running():
        result = pull(brokers, tmp_path)
    assert result.exit_code == 0, result.stderr
    assert "holds this client back" in result.stderr
    assert copied(tmp_path) == log.raw


def test_the_end_of_a_log_that_holds_nothing_more_is_found(tmp_path: Path) -> None:
    """Of a log whose last batches are gone, and whose last segment is empty."""
    log = Log().fill(5)
    log.end = 40
    with Brokers(offsets_log(p0=log)).running() as brokers:
        result = pull(brokers, tmp_path)
    assert result.exit_code == 0, result.stderr
    assert copied(tmp_path) == log.raw


def test_the_rate_is_kept(tmp_path: Path) -> None:
    log = Log().fill(40, filler=b"x" * 5000)
    with Brokers(offsets_log(p0=log)).running() as brokers:
        began = time.monotonic()
        assert pull(brokers, tmp_path, "--max-bytes-per-second", "300000").exit_code == 0
        assert time.monotonic() - began >= len(log.raw) / 300_000 - 0.3


def test_what_is_measured_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between an answer and the writing of its batches, too, an end is told with the bytes before it."""
    log = Log().fill(40, filler=b"x" * 50)
    flush, told = PulledPartition.flush, set()

    def watched(partition: PulledPartition) -> None:
        for step in (lambda: None, lambda: flush(partition)):
            step()
            found = {metric.name: number for metric, _, number in partition.samples()}
            told.add((found["pulled_end_offset"], found["pulled_bytes"], found["pulled_behind_records"]))

    monkeypatch.setattr(PulledPartition, "flush", watched)
    with Brokers(offsets_log(p0=log), most_bytes=1000).running() as brokers:
        assert pull(brokers, tmp_path).exit_code == 0
    sizes = [0, *accumulate(len(raw) for _, raw in log.batches)]
    ends = [0, *(last + 1 for last, _ in log.batches)]
    assert told <= {(end, size, log.end - end) for end, size in zip(ends, sizes, strict=True)}
    assert {(0, 0, log.end), (log.end, len(log.raw), 0)} < told


def test_directories_that_hold_something_else_are_refused(tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "mine.txt").write_text("x")
    with Brokers(offsets_log(p0=Log())).running() as brokers:
        result = pull(brokers, tmp_path)
        assert result.exit_code == 1
        assert "no pull has written it" in result.stderr
        (tmp_path / "copy" / "mine.txt").rename(tmp_path / "copy" / "pull.json")
        assert pull(brokers, tmp_path).exit_code == 1


def test_what_is_not_there_is_told(tmp_path: Path) -> None:
    with Brokers({("orders", 0): Log()}).running() as brokers:
        result = pull(brokers, tmp_path)
        assert result.exit_code == 1
        assert "shows no topic __consumer_offsets to this user" in result.stderr
    with Brokers(offsets_log(p0=Log())).running() as brokers:
        result = pull(brokers, tmp_path, "-p", "7")
        assert result.exit_code == 1
        assert "has no partition 7; it has 1" in result.stderr


def test_a_refused_partition_is_told_at_once(tmp_path: Path) -> None:
    logs = offsets_log(p0=Log().fill(3), p1=Log().fill(3))
    logs[OFFSETS, 1].error = 29
    with Brokers(logs).running() as brokers:
        assert "TOPIC_AUTHORIZATION_FAILED" in problem(pull(brokers, tmp_path))
    assert copied(tmp_path) == logs[OFFSETS, 0].raw


def test_a_nearer_replica_is_read_and_its_leader_again_when_that_goes_away(tmp_path: Path) -> None:
    """KIP-392."""
    log = Log(follower=1).fill(40)
    brokers = Brokers(offsets_log(p0=log), nodes=2, most_bytes=400)

    def fault(node: int, header: Header, body: dict[str, Any]) -> bytes | None:
        if header.api_key == FETCH and node == 1 and body["topics"][0]["partitions"][0]["fetch_offset"] > 60:
            log.follower = -1
            return b""
        return None

    brokers.fault = fault
    with brokers.running():
        result = pull(brokers, tmp_path, "--rack", "here")
    assert result.exit_code == 0, result.stderr
    assert {node for node, key, _ in brokers.requests if key == FETCH} == {0, 1}
    assert copied(tmp_path) == log.raw


def test_without_kafka_python_only_a_login_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in an installation without the extra."""
    monkeypatch.setitem(sys.modules, "kafka", None)
    monkeypatch.setitem(sys.modules, "kafka.net.sasl", None)
    log = Log().fill(3)
    with Brokers(offsets_log(p0=log)).running() as brokers:
        assert pull(brokers, tmp_path).exit_code == 0
        login = "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.username=a\nsasl.password=b\n"
        (tmp_path / "client.properties").write_text(login)
        result = pull(brokers, tmp_path)
    assert result.exit_code == 1
    assert "a login by SASL needs kafka-python: pip install 'offsets-log[restore]'" in result.stderr
    assert copied(tmp_path) == log.raw


def test_a_cluster_that_is_not_reached_leaves_nothing_behind(tmp_path: Path) -> None:
    words = ["pull", "--bootstrap-server", f"127.0.0.1:{free_port()}", "--to", str(tmp_path / "copy")]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 1
    assert "nothing listens on port" in result.stderr
    assert not (tmp_path / "copy").exists()


def test_topics_of_the_other_coordinators_come_on_request(tmp_path: Path) -> None:
    """Filters of partitions are of the offsets topic alone."""
    logs = offsets_log(p0=Log().fill(3), p1=Log().fill(4))
    others = [("__transaction_state", 1), ("__share_group_state", 2)]
    logs |= {key: Log().fill(5 + key[1]) for key in others}
    with Brokers(logs).running() as brokers:
        result = pull(brokers, tmp_path, "-p", "1", "--with-transaction-state", "--with-share-state")
    assert result.exit_code == 0, result.stderr
    pulled = [(row["topic"], row["partition"]) for row in rows(result)]
    assert pulled == sorted([(OFFSETS, 1), *others])
    for topic, partition in pulled:
        assert copied(tmp_path, partition, topic) == logs[topic, partition].raw


def test_a_topic_that_is_not_there_does_not_keep_the_others(tmp_path: Path) -> None:
    logs = offsets_log(p0=Log().fill(5))
    with Brokers(logs).running() as brokers:
        result = pull(brokers, tmp_path, "--with-share-state", "--with-transaction-state")
    assert copied(tmp_path) == logs[OFFSETS, 0].raw
    assert "there has been no share group yet" in result.stderr
    assert "nobody has begun a transaction yet" in result.stderr
    assert result.exit_code == 3


def test_the_same_command_is_named_only_where_it_helps(tmp_path: Path) -> None:
    logs = offsets_log(p0=Log().fill(9))
    with Brokers(logs).running() as brokers:
        assert pull(brokers, tmp_path).exit_code == 0
        logs[OFFSETS, 0].truncate(12)
        truncated = pull(brokers, tmp_path)
        assert "another directory" in truncated.stderr
        assert "the same command goes on" not in truncated.stderr


def test_partitions_that_come_while_a_copy_is_followed_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "NOTE_EVERY_S", 0.05)
    logs = offsets_log(p0=Log().fill(5))

    brokers = Brokers(logs)

    def asked() -> int:
        return sum(key == METADATA for _, key, _ in brokers.requests)

    def write() -> None:
        wait_for("the copy is as long as the log", lambda: copied(tmp_path) == logs[OFFSETS, 0].raw)
        logs[OFFSETS, 1] = Log().fill(1)
        known = asked()
        wait_for("metadata are asked for again, and taken", lambda: asked() > known + 1)

    with brokers.running():
        result = pull_beside(write, brokers, tmp_path)
    assert "has more than 1 partition now" in result.stderr
