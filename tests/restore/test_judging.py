"""What is wrong with offsets on the cluster that is to get them: by a fake one, by copies, and live."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from offsets_log.data_directory.log_ends import LogEnds
from offsets_log.data_directory.stranded import Topics
from offsets_log.disk.beside import Beside
from offsets_log.disk.reader import open_logs
from offsets_log.replay.partition_for import partition_for
from offsets_log.replay.profile import MODERN
from offsets_log.restore.apply import restore
from offsets_log.restore.copied_target import CopiedTarget
from offsets_log.restore.journal import Journal
from offsets_log.restore.judging import PROBLEMS, Denied, in_words, judge
from offsets_log.restore.plan import as_offset
from offsets_log.restore.policy import Policy
from offsets_log.restore.target import Committed, PartitionNow
from offsets_log.rows.tables import Row
from offsets_log_cli.main import main
from tests.builders import LogBuilder, member
from tests.conftest import read_json, read_json_lines
from tests.data_directories.copies import Recorded, data_directories, recorded
from tests.restore.fake_cluster import FakeCluster
from tests.restore.plans import row
from tests.restore.rescued import write_log

__all__ = ["recorded"]


def test_each_problem_and_none() -> None:
    cluster = FakeCluster({"held": "Stable"}, ahead={("orders", 0): Committed(6, None, "")})
    cluster.logs["orders", 1] = PartitionNow(10, 20, 0, "here")
    cluster.logs["orders", 2] = PartitionNow()
    halves = FakeCluster({})
    for known in (PartitionNow(10, None), PartitionNow(None, 20)):
        halves.logs["orders", 0] = known
        assert [found["problems"] for found in judge(halves, [row("fine")])] == [["no log"]]
    halves.logs["orders", 0] = PartitionNow(10, 20)
    at_ends = [row("fine", offset=offset) for offset in (9, 10, 20, 21)]
    assert [(found["committed_offset"], found["problems"]) for found in judge(halves, at_ends)] == [
        (9, ["below start"]),
        (21, ["beyond end"]),
    ]
    rows = [
        row("ahead"),
        row("fine", topic_id="here"),
        row("fine", partition=1, offset=9),
        row("fine", partition=1, offset=21),
        row("fine", partition=2),
        row("fine", partition=3),
        row("fine", partition=-1),
        row("fine", topic="gone"),
        row("held", topic_id="there"),
        row("locked"),
        row("secret"),
    ]
    judged = list(judge(cluster, rows))
    assert [(found["group"], found["partition"], found["problems"]) for found in judged] == [
        ("ahead", 0, ["ahead"]),
        ("fine", 1, ["below start"]),
        ("fine", 1, ["beyond end"]),
        ("fine", 2, ["no log"]),
        ("fine", 3, ["no partition"]),
        ("fine", -1, ["no partition"]),
        ("fine", 0, ["no topic"]),
        ("held", 0, ["members", "another topic"]),
        ("locked", 0, ["denied"]),
        ("secret", 0, ["denied"]),
    ]
    assert (judged[0]["current_offset"], judged[1]["log_start_offset"], judged[1]["log_end_offset"]) == (6, 10, 20)
    sentences = list(in_words(judged, "there"))
    assert len(sentences) == len(PROBLEMS) - 1
    assert (
        'there: 2 offsets of partitions that its topics do not have; of "fine"; kafka-consumer-groups' in sentences[1]
    )


@pytest.mark.parametrize(
    ("planned", "there", "is_other"),
    [
        ("here", "here", False),
        ("here", "there", True),
        ("here", None, False),
        (None, "there", False),
        (None, None, False),
    ],
)
def test_a_topic_is_another_one_if_both_ids_are_told_and_differ(
    planned: str | None, there: str | None, is_other: bool
) -> None:
    cluster = FakeCluster()
    cluster.logs["orders", 0] = PartitionNow(0, 100, 0, there)
    found = [found["problems"] for found in judge(cluster, [row("g", topic_id=planned)])]
    assert found == ([["another topic"]] if is_other else [])


def test_what_is_there_already_needs_no_commit() -> None:
    """As `restore` answers: neither members nor the ends of the log are in its way."""
    there = {("orders", number): Committed(500, None, "") for number in (0, 1, 2)}
    cluster = FakeCluster({"g": "Stable"}, g=there)
    cluster.logs["orders", 1] = PartitionNow(600, 700)
    cluster.logs["orders", 2] = PartitionNow()
    rows = [row("g", partition=number, offset=500) for number in (0, 1, 2)]
    assert not list(judge(cluster, rows))
    changes = list(restore(cluster, rows, Policy(), Journal(), None))
    assert {(change.kind, change.reason) for change in changes} == {("unchanged", None)}
    (other,) = judge(cluster, [row("g", offset=499)])
    assert other["problems"] == ["members", "beyond end", "ahead"]


def test_a_group_that_cannot_be_asked() -> None:
    cluster = FakeCluster()
    cluster.denied = lambda groups, topics: FakeCluster.denied(cluster, [], [])  # type: ignore[method-assign]
    assert [found["problems"] for found in judge(cluster, [row("secret")])] == [["not answered"]]


def test_whether_the_user_may_not_read_the_group_or_the_topic_is_told_beside_all_else() -> None:
    """Once, where both are so; of a topic that is not there nobody is asked."""
    cluster = FakeCluster({"locked": "Stable"})
    asked = []

    def denied(groups: Sequence[str], topics: Sequence[str]) -> Denied:
        asked.append((groups, topics))
        return Denied(groups={"locked"}, topics={"orders"})

    cluster.denied = denied  # type: ignore[method-assign]
    beyond = [row("free", offset=101), row("free", topic="gone"), row("locked", offset=101), share("free", 101)]
    assert [found["problems"] for found in judge(cluster, beyond)] == [
        ["denied", "beyond end"],
        ["no topic"],
        ["denied", "members", "beyond end"],
        ["denied", "beyond end"],
    ]
    assert asked == [(["free", "locked"], ["orders"])]


def test_where_share_groups_start_is_judged_likewise() -> None:
    cluster = FakeCluster({"held": "Stable"}, ahead={("orders", 0): Committed(6, None, "")})
    cluster.logs["orders", 1] = PartitionNow(10, 20, 0, "here")
    rows = [
        row("ahead", topic_id="here"),
        share("ahead", 5),
        share("fine", 5),
        share("fine", 9, partition=1),
        share("fine", 21, partition=1),
        share("fine", 5, topic="gone"),
        share("held", 5),
    ]
    judged = list(judge(cluster, rows))
    assert [(found["group"], found.get("is_share"), found["problems"]) for found in judged] == [
        ("ahead", None, ["ahead"]),
        ("ahead", True, ["ahead"]),
        ("fine", True, ["below start"]),
        ("fine", True, ["beyond end"]),
        ("fine", True, ["no topic"]),
        ("held", True, ["members"]),
    ]
    sentences = list(in_words(judged, "there"))
    assert [sentence.split(" of ")[0] for sentence in sentences] == [
        "there: 1 offset behind what the groups have there;"
    ] + ["there: 1 start"] * 5
    beyond = next(sentence for sentence in sentences if "beyond" in sentence)
    assert "1 start of a share group beyond the end of its logs" in beyond
    assert "members get nothing until the log has got there" in beyond


def share(group: str, start: int, topic: str = "orders", partition: int = 0) -> Row:
    return as_offset({"group": group, "topic": topic, "partition": partition, "start_offset": start})


def test_share_groups_of_a_later_copy_are_ahead(recorded: Recorded, tmp_path: Path) -> None:
    first, later = (data_directories(recorded("kafka-4.3-busy"), copy)[0] for copy in ("quick-0", "quick-2"))
    result = run(first, "--target", later, "--to", tmp_path / "rescued")
    assert result.exit_code == 3
    judged = [found for found in read_json_lines(tmp_path / "rescued" / "target.jsonl") if found.get("is_share")]
    assert [(found["group"], found["committed_offset"], found["current_offset"]) for found in judged] == [
        ("s-busy", 227, 318),
        ("s-busy", 395, 598),
        ("s-busy", 507, 752),
        ("s-paid", 409, 568),
        ("s-paid", 457, 605),
    ]
    assert {problem for found in judged for problem in found["problems"]} == {"ahead", "members"}
    assert "5 starts of share groups behind what the groups have there" in result.stderr


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["rescue", *map(str, arguments)], catch_exceptions=False)


@pytest.fixture
def data(recorded: Recorded) -> Path:
    return data_directories(recorded("kafka-4.3-one"), "stopped")[0]


def test_a_copy_of_the_target(data: Path, tmp_path: Path) -> None:
    """The source judged as its own target: nothing is ahead, and offsets that lead nowhere are the same as ever."""
    result = run(data, "--target", data, "--to", tmp_path / "rescued")
    assert result.exit_code == 3, result.stderr
    plan = read_json(tmp_path / "rescued" / "plan.json")
    judged = list(read_json_lines(tmp_path / "rescued" / "target.jsonl"))
    assert plan["target"]["judged"] == len(plan["offsets"]) + len(plan["share_offsets"])
    assert plan["target"]["problems"] == len(judged)
    assert not any("ahead" in found["problems"] for found in judged)
    assert any(
        doubt.startswith("in the copy of the target, loaded by the rules of Kafka 4: ") for doubt in plan["doubts"]
    )
    assert "target.jsonl" in (tmp_path / "rescued" / "README.txt").read_text()


def test_what_the_coordinators_of_a_copied_target_served_is_what_the_groups_have_there() -> None:
    """Not what is pending there; of all partitions of the offsets topic."""
    logs: Any = SimpleNamespace(
        find=lambda wanted: None,
        partitions=lambda: [("t", 0), ("t", 1)],
        ends_for=lambda *_: LogEnds(log_start_offset=0, log_end_offset=9),
        topic_id=lambda *_: None,
    )
    states = [
        LogBuilder().commit(6, group="ahead").commit(4, group="behind").load(MODERN),
        LogBuilder().commit(6, group="pending", producer=7).group(member("m"), group="held").load(MODERN),
    ]
    starts = [("ahead", ("t", 1), 7)]
    target = CopiedTarget("c", Topics(logs, None), logs, states, MODERN, starts)
    assert target.offsets("ahead") == {("t", 0): Committed(6, None, "")}
    rows = [*(row(group, "t") for group in ("ahead", "behind", "held", "pending")), share("ahead", 6, "t", 1)]
    assert [(found["group"], found.get("is_share"), found["problems"]) for found in judge(target, rows)] == [
        ("ahead", None, ["ahead"]),
        ("held", None, ["members"]),
        ("ahead", True, ["ahead"]),
    ]


def test_topics_of_a_copied_target_that_were_made_anew(data: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(data, other)
    for file in other.glob("orders-*/partition.metadata"):
        file.write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n")
    assert run(data, "--target", other, "--to", tmp_path / "rescued").exit_code == 3
    judged = read_json_lines(tmp_path / "rescued" / "target.jsonl")
    assert {found["topic"] for found in judged if "another topic" in found["problems"]} == {"orders"}


def test_a_folder_of_a_topic_that_the_metadata_of_a_copied_target_lacks(data: Path, tmp_path: Path) -> None:
    """``DD-3``: it is left of one that was deleted; without whole metadata it tells that there is one."""
    other = tmp_path / "other"
    shutil.copytree(data, other)
    for folder in ("ghost-0", "orders-9"):
        shutil.copytree(other / "orders-0", other / folder)
        (other / folder / "partition.metadata").unlink()
    rows = LogBuilder().commit(10, topic="ghost").commit(10, topic="orders", partition=9)
    log = write_log(tmp_path / "log", {0: rows})
    assert problems(tmp_path / "a", log, "--target", other) == [("ghost", ["no topic"]), ("orders", ["no partition"])]
    shutil.rmtree(other / "__cluster_metadata-0")
    assert problems(tmp_path / "b", log, "--target", other) == []


def problems(out: Path, *arguments: object) -> list[tuple[str, list[str]]]:
    """Topic and problems of each row of ``target.jsonl``."""
    run(*arguments, "--to", out)
    return [(found["topic"], found["problems"]) for found in read_json_lines(out / "target.jsonl")]


def test_records_in_remote_storage_of_a_copied_target_are_not_gone(data: Path) -> None:
    """``DD-2``: of a topic with tiered storage the disk has only the end of the log."""
    with open_logs([str(data)]) as opened:
        beside = Beside(opened)
        target = CopiedTarget("c", beside.topics, beside.copied_logs, (), MODERN)
        rows = [row("g", "short", offset=5), row("g", "short", offset=5000)]
        assert [found["problems"] for found in judge(target, rows)] == [["below start"], ["beyond end"]]
        assert beside.metadata is not None
        beside.metadata.replay.image.configs["topic", "short"] = {"remote.storage.enable": "true"}
        assert [found["problems"] for found in judge(target, rows)] == [["beyond end"]]


def test_groups_of_a_copied_target_are_those_of_the_profile_in_their_own_partition(data: Path, tmp_path: Path) -> None:
    """The Scala coordinator keeps the offsets of a group that is removed (``L-34``); no broker answers for strays."""
    other = tmp_path / "other"
    shutil.copytree(data, other, ignore=shutil.ignore_patterns("__consumer_offsets-*", "*-checkpoint"))
    count = len(list(data.glob("__consumer_offsets-*")))
    home = partition_for("g", count)
    kept = LogBuilder().commit(50, topic="orders").group(generation=2).group(gone=True)
    stray = LogBuilder().commit(50, group="stray", topic="orders")
    away = next(number for number in range(count) if number not in (home, partition_for("stray", count)))
    write_log(other, {home: kept, away: stray})
    log = write_log(
        tmp_path / "log", {0: LogBuilder().commit(40, topic="orders").commit(40, group="stray", topic="orders")}
    )
    for profile, found in (("classic", [("orders", ["ahead"])]), ("modern", [])):
        assert problems(tmp_path / profile, log, "--target", other, "--profile", profile) == found


def test_a_copy_without_the_offsets_topic(data: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(data, other, ignore=shutil.ignore_patterns("__*"))
    result = run(data, "--target", other, "--to", tmp_path / "rescued")
    assert result.exit_code == 3, result.stderr
    assert "in the copy of the target, which has no offsets topic: " in result.stderr


def test_usage_and_bad_targets(data: Path, tmp_path: Path) -> None:
    both = run(data, "--target", data, "--bootstrap-server", "h:1", "--to", tmp_path / "x")
    assert (both.exit_code, "exclude each other" in both.stderr) == (2, True)
    alone = run(data, "--command-config", Path(__file__), "--to", tmp_path / "x")
    assert (alone.exit_code, "is for --bootstrap-server" in alone.stderr) == (2, True)
    (tmp_path / "empty").mkdir()
    (tmp_path / "text").write_text("a line\n")
    log = next((data / "__consumer_offsets-0").glob("*.log"))
    for target in (
        ("--target", tmp_path / "empty"),
        ("--target", tmp_path / "text"),
        ("--target", log),
        ("--bootstrap-server", "127.0.0.1:1"),
    ):
        result = run(data, *target, "--to", tmp_path / "x")
        assert (result.exit_code, len(result.stderr.splitlines())) == (1, 1), result.stderr
        assert not (tmp_path / "x").exists()
