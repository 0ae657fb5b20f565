"""``translate --bootstrap-server``: a live cluster is asked for times, and nothing else."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_translate import RECORDS, left_out, run, told, write_log, write_source
from tests.pulling.brokers import Brokers, Log

FIRST = 1000
"""The source's first offset; that of the target is 0."""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Groups that are at the beginning, in the middle, and at the end of a topic."""
    offsets = {(f"at-{at}", "orders", 0): at for at in (FIRST, FIRST + 42, FIRST + 100)}
    folder = write_source(tmp_path / "source", offsets)
    write_log(folder / "orders-0", RECORDS, FIRST)
    return folder


def brokers(topic: str = "orders", count: int = 100, partitions: int = 1, **facts: Any) -> Brokers:
    logs = {(topic, number): Log().fill(count // 10, 10, **facts) for number in range(partitions)}
    return Brokers(logs=logs)


def test_offsets_by_times(source: Path, tmp_path: Path) -> None:
    with brokers("us.orders").running() as live:
        result, rows = run(source, tmp_path, "--bootstrap-server", live.address, "--policy", "default:us")
    assert result.exit_code == 0, result.output
    assert told(rows) == {
        "at-1000": ("us.orders", 0, "by time", None),
        "at-1042": ("us.orders", 42, "by time", None),
        "at-1100": ("us.orders", 99, "by time", None),
    }


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        (brokers("other"), "the target has no topic orders"),
        (brokers("us.orders"), "the target has no topic orders, but us.orders: see --policy and --rename"),
        (brokers(partitions=2), "the topic has another number of partitions in the target than is known"),
        (brokers(timestamp_type="log_append"), "the target's records have times of its own log"),
        (brokers(count=40), "the target has no record of the time 1700000000042"),
    ],
)
def test_what_cannot_be_told_is_left_out(source: Path, tmp_path: Path, target: Brokers, reason: str) -> None:
    with target.running() as live:
        result, rows = run(source, tmp_path, "--bootstrap-server", live.address, "-g", "at-1042")
    assert (result.exit_code, rows) == (3, [])
    [(_, said)] = left_out(tmp_path)
    assert said.startswith(reason)


def test_a_refusal_is_said(source: Path, tmp_path: Path) -> None:
    target = brokers()
    target.logs["orders", 0].lead(7, 3)  # no such broker
    (tmp_path / "config").write_text("default.api.timeout.ms=300\n")
    with target.running() as live:
        words = ["--bootstrap-server", live.address, "--command-config", str(tmp_path / "config")]
        result, rows = run(source, tmp_path, *words)
    assert (result.exit_code, rows) == (3, [])
    assert "the target answers nothing of it: it has no leader" in result.stderr


def test_a_cluster_that_is_not_there(source: Path, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        result, _ = run(source, tmp_path, "--bootstrap-server", f"127.0.0.1:{taken.getsockname()[1]}")
    assert (result.exit_code, "refused" in result.stderr.lower()) == (1, True), result.stderr
    assert not (tmp_path / "plan").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--target", "SOURCE", "--bootstrap-server", "a:1"], "exclude each other"),
        (["--map", "CONFIG", "--command-config", "CONFIG"], "--command-config is for"),
        (["--bootstrap-server", "a:1", "--leader-epochs", "target"], "needs a copy"),
        (["--bootstrap-server", "a:x"], "a:x"),
    ],
)
def test_wrong_usage(source: Path, tmp_path: Path, words: list[str], said: str) -> None:
    (tmp_path / "config").write_text("")
    places = {"SOURCE": source, "CONFIG": tmp_path / "config"}
    result, _ = run(source, tmp_path, *(places.get(word, word) for word in words))
    assert (result.exit_code, said in result.stderr) == (2, True), result.stderr
