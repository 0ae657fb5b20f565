"""``pull --from-admin``: all that brokers tell of groups becomes a plan, and nothing else is said to be known."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from offsets_log.log_format.primitives import Uuid
from offsets_log.restore.plan import decode_plan
from offsets_log_cli.main import main
from tests.pulling.brokers import OFFSETS, Brokers, Log

LIST, DESCRIBE, FETCH_OFFSETS, CONSUMER, SHARE, SHARE_OFFSETS = 16, 15, 9, 69, 77, 90
READS = {18, 3, 2, LIST, DESCRIBE, FETCH_OFFSETS, CONSUMER, SHARE, SHARE_OFFSETS}
NAMELESS = {"authorized_operations": 0, "error_code": 0, "error_message": None}


def listed(*groups: tuple[str, str]) -> dict[str, Any]:
    rows = [
        {"group_id": name, "protocol_type": "", "group_state": "Empty", "group_type": kind} for name, kind in groups
    ]
    return {"throttle_time_ms": 0, "error_code": 0, "groups": rows}


def fetched(offsets: dict[str, Any]) -> Callable[[int, dict[str, Any]], dict[str, Any]]:
    """Answers group → topic → partition → offset, an error for a partition as text, one for a group as a number."""

    def answer(node: int, body: dict[str, Any]) -> dict[str, Any]:
        def partition(number: int, value: int | str) -> dict[str, Any]:
            is_hidden = isinstance(value, str) and body.get("require_stable")
            return {
                "partition_index": number, "committed_offset": -1 if is_hidden else int(value),
                "committed_leader_epoch": 3, "metadata": "m", "error_code": 88 if is_hidden else 0,
            }  # fmt: skip

        def group(name: str) -> dict[str, Any]:
            told = offsets[name]
            topics = [] if isinstance(told, int) else [
                {"name": topic, "partitions": [partition(*one) for one in some.items()]} for topic, some in told.items()
            ]  # fmt: skip
            return {"group_id": name, "topics": topics, "error_code": told if isinstance(told, int) else 0}

        rows = [group(one["group_id"]) for one in body["groups"]] if "groups" in body else [group(body["group_id"])]
        return {"throttle_time_ms": 0, "groups": rows, **rows[0]}

    return answer


def described(node: int, body: dict[str, Any]) -> dict[str, Any]:
    rows = [
        {
            "group_id": name, "group_state": "Stable", "protocol_type": "", "protocol_data": "", "members": [],
            "group_epoch": 1, "assignment_epoch": 1, "assignor_name": "", **NAMELESS,
        }
        for name in body.get("groups") or body.get("group_ids") or ()
    ]  # fmt: skip
    return {"throttle_time_ms": 0, "groups": rows}


def share_offsets(node: int, body: dict[str, Any]) -> dict[str, Any]:
    partitions = [
        {"partition_index": number, "start_offset": start, "leader_epoch": 0, "lag": 1, **NAMELESS}
        for number, start in ((0, 12), (1, -1))
    ]
    topics = [{"topic_name": "orders", "topic_id": Uuid(b"o" * 16), "partitions": partitions}]
    rows = [{"group_id": one["group_id"], "topics": topics, **NAMELESS} for one in body["groups"]]
    return {"throttle_time_ms": 0, "groups": rows}


def cluster(**groups: Any) -> Brokers:
    """A broker whose groups have committed these."""
    logs = {("orders", 0): Log(end=40), ("orders", 1): Log(end=40), (OFFSETS, 0): Log(), (OFFSETS, 1): Log()}
    answers = {
        LIST: lambda node, body: listed(*((name, "Classic") for name in groups)),
        DESCRIBE: described, CONSUMER: described, SHARE: described,
        FETCH_OFFSETS: fetched(groups), SHARE_OFFSETS: share_offsets,
    }  # fmt: skip
    return Brokers(logs, topic_ids={"orders": Uuid(b"o" * 16)}, answers=answers)


def snapshot(brokers: Brokers, path: Path, *more: str) -> Result:
    (path / "client.properties").write_text("default.api.timeout.ms=1500\nrequest.timeout.ms=3000\n")
    words = ["pull", "--from-admin", "--bootstrap-server", brokers.address, "--to", str(path / "snapshot"), *more]
    return CliRunner().invoke(main, [*words, "--command-config", str(path / "client.properties")])


def plan(path: Path) -> dict[str, Any]:
    data = (path / "snapshot" / "plan.json").read_bytes()
    decode_plan(data, "plan.json")
    found: dict[str, Any] = json.loads(data)
    return found


def told(found: dict[str, Any]) -> dict[tuple[str, str, int], int]:
    return {(row["group"], row["topic"], row["partition"]): row["committed_offset"] for row in found["offsets"]}


@pytest.mark.parametrize("newest", [10, 9, 7, 5, 2])
def test_offsets_of_all_groups_are_a_plan_by_whatever_version(tmp_path: Path, newest: int) -> None:
    brokers = cluster(a={"orders": {0: 7, 1: 8}}, b={"orders": {1: "41"}, "hidden": {0: 0}}, empty={})
    brokers.newest = {FETCH_OFFSETS: newest, LIST: 5 if newest > 5 else 2, DESCRIBE: 4 if newest < 9 else 6}
    with brokers.running():
        result = snapshot(brokers, tmp_path)
    assert result.exit_code == 0, result.stderr
    found = plan(tmp_path)
    assert told(found) == {("a", "orders", 0): 7, ("a", "orders", 1): 8, ("b", "orders", 1): 41, ("b", "hidden", 0): 0}
    assert {row["metadata"] for row in found["offsets"]} == {"m"}
    assert {row["leader_epoch"] for row in found["offsets"]} == ({3} if newest >= 5 else {None})
    assert [row["state"] for row in found["groups"]] == ["Stable"] * 3
    is_told = newest >= 7
    assert found["unstable"] == ([{"group": "b", "topic": "orders", "partition": 1}] if is_told else [])
    assert found["topics"] == {"hidden": 1, "orders": 2}
    words = " ".join(found["doubts"])
    assert "no history" in words
    assert "when offsets were committed" in words
    assert ("under an open transaction (1)" in words) == is_told
    assert "1 offset of topics that the cluster does not show" in words
    assert "orders-1 at 41, the log ends at 40" in words
    assert "as the brokers of cluster one answered" in (tmp_path / "snapshot" / "README.txt").read_text()
    assert {key for _, key, _ in brokers.requests} <= READS, "FindCoordinator would make an offsets topic"


def test_share_groups_have_their_start_offsets(tmp_path: Path) -> None:
    brokers = cluster()
    brokers.answers[LIST] = lambda node, body: listed(("s", "Share"), ("new", "Consumer"), ("later", "Unheard"))
    brokers.answers[FETCH_OFFSETS] = fetched({"new": {"orders": {0: 1}}, "later": {"orders": {0: 2}}})
    with brokers.running():
        result = snapshot(brokers, tmp_path)
    assert result.exit_code == 0, result.stderr
    found = plan(tmp_path)
    (row,) = found["share_offsets"]
    assert (row["topic"], row["partition"], row["start_offset"], row["log_end_offset"]) == ("orders", 0, 12, 40)
    assert told(found) == {("new", "orders", 0): 1, ("later", "orders", 0): 2}
    assert [one["type"] for one in found["groups"]] == ["unheard", "consumer", "share"]


def test_where_brokers_do_not_tell_the_offsets_topic_no_home_of_a_group_is_known(tmp_path: Path) -> None:
    brokers = cluster(a={"orders": {0: 7}})
    for number in (0, 1):
        del brokers.logs[OFFSETS, number]
    with brokers.running():
        result = snapshot(brokers, tmp_path)
    assert result.exit_code == 0, result.stderr
    found = plan(tmp_path)
    assert told(found) == {("a", "orders", 0): 7}
    assert found["offsets_partitions"] == {"count": 50, "source": "default", "absent": None}
    assert {row["offsets_partition"] for row in (*found["groups"], *found["offsets"])} == {None}


def test_a_group_that_is_refused_is_named_and_one_that_moves_is_asked_again(tmp_path: Path) -> None:
    brokers = cluster(denied=30, gone=69, moving=16, fine={"orders": {0: 7}})
    with brokers.running():
        result = snapshot(brokers, tmp_path)
    assert result.exit_code == 3
    found = plan(tmp_path)
    assert {row["group"]: row["problem"] for row in found["refused"]} == {
        "denied": "GROUP_AUTHORIZATION_FAILED", "moving": "NOT_COORDINATOR",
    }  # fmt: skip
    assert told(found) == {("fine", "orders", 0): 7}
    assert "denied" in result.stderr
    asked = [body for _, key, body in brokers.requests if key == FETCH_OFFSETS]
    assert len(asked) > 1
    assert {one["group_id"] for body in asked[1:] for one in body["groups"]} == {"moving"}


def test_a_broker_that_does_not_list_its_groups_is_missed(tmp_path: Path) -> None:
    brokers = cluster(a={"orders": {0: 7}})
    brokers.nodes = 2
    own = brokers.answers[LIST]
    brokers.answers[LIST] = lambda node, body: own(node, body) if not node else listed() | {"error_code": 15}
    with brokers.running():
        result = snapshot(brokers, tmp_path)
    assert result.exit_code == 3
    assert told(plan(tmp_path)) == {("a", "orders", 0): 7}
    assert "broker 1 did not tell its groups, which are missing" in " ".join(plan(tmp_path)["doubts"])


def test_no_group_at_all_may_be_a_right_that_is_missing(tmp_path: Path) -> None:
    with cluster().running() as brokers:
        result = snapshot(brokers, tmp_path)
    assert result.exit_code == 3
    assert "the right to DESCRIBE groups is missing" in result.stderr


def test_a_directory_that_is_there_and_options_of_logs_are_refused(tmp_path: Path) -> None:
    with cluster(a={}).running() as brokers:
        for more in (["--follow"], ["-p", "1"], ["--rack", "r"], ["--with-share-state"], ["-o", "json"]):
            result = snapshot(brokers, tmp_path, *more)
            assert result.exit_code == 2
            assert "does not go with --from-admin" in result.stderr
        (tmp_path / "snapshot").mkdir()
        (tmp_path / "snapshot" / "mine").touch()
        assert snapshot(brokers, tmp_path).exit_code == 1
