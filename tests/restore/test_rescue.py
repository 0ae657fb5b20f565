"""``offsets-log rescue`` as a user has it: what is written, what is said to be missing or doubtful, when nothing is.

Expected offsets are the broker's own answers (``restart.json``, ``timeline.jsonl``).
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from offsets_log.replay.partition_count import PartitionCount
from offsets_log.replay.partition_for import partition_for
from offsets_log.restore.doubts import is_active
from offsets_log.restore.rescue import partitions_needed, settle_duplicates
from tests.builders import LogBuilder
from tests.conftest import read_json, read_json_lines
from tests.restore.rescued import MIXED, doubts, keyed, rescue, run, write_log


@pytest.mark.parametrize(
    "name", ["kafka-4.3-mixed", "kafka-4.3-modern-groups", "kafka-4.3-compressed", "kafka-4.3-live-copy"]
)
def test_the_plan_has_the_brokers_answers(recording: Callable[[str], Path], tmp_path: Path, name: str) -> None:
    folder = recording(name)
    plan = rescue(tmp_path / "out", folder / "log")
    answers = read_json(folder / "answers" / "restart.json")
    assert keyed(plan["offsets"]) == keyed(answers["offsets"])
    assert {row["group"]: row["state"] for row in plan["groups"]} == {
        row["group"]: row["state"] for row in answers["groups"] if row["state"] != "Dead"
    }


def test_the_state_just_before_an_accident(recording: Callable[[str], Path], tmp_path: Path) -> None:
    """Every second step of the timeline, cut at its end offsets."""
    folder = recording(MIXED)
    steps = [s for s in read_json_lines(folder / "timeline.jsonl") if s.get("offsets") and not s.get("not_quiet")]
    for step in steps[:: max(1, len(steps) // 4)]:
        bounds = [f"--until-offset={p}:{end}" for p, end in step["end_offsets"].items()]
        plan = rescue(tmp_path / str(step["step"]), folder / "log", *bounds)
        assert keyed(plan["offsets"]) == keyed(step["offsets"])
        assert len(plan["until"]["offsets"]) == len(bounds)


def test_filters(recording: Callable[[str], Path], tmp_path: Path) -> None:
    folder = recording(MIXED)
    plan = rescue(tmp_path / "out", folder / "log", "-g", "tx-*", "-t", "T", "-p", "0")
    assert {row["topic"] for row in plan["offsets"]} == {"T"}
    assert all(row["group"].startswith("tx-") for row in (*plan["offsets"], *plan["groups"]))
    assert plan["filters"] == {"groups": ["tx-*"], "topics": ["T"], "offsets_partitions": [0]}
    assert doubts(plan, "only offsets partition 0 was read")


def test_a_readme_of_no_offsets_says_so(tmp_path: Path) -> None:
    """A group without offsets is one."""
    write_log(tmp_path / "log", {0: LogBuilder().commit(5).commit(None)})
    rescue(tmp_path / "out", tmp_path / "log", "--until-offset", 9)
    text = (tmp_path / "out" / "README.txt").read_text()
    assert "\n- nothing fits the filters and bounds: no committed offset is here\n" in text
    assert "Nothing." not in text


def test_how_many_groups_many_absent_partitions_have(tmp_path: Path) -> None:
    write_log(tmp_path / "log", {partition_for("g", 50): LogBuilder().commit(5)})
    plan = rescue(tmp_path / "out", tmp_path / "log", status=0)
    (words,) = doubts(plan, "offsets partitions that are absent, 49 of 50, Kafka's default: 0, ")
    assert words.endswith(", about 49 of 50 groups")


def test_what_is_missing_or_doubtful_is_said(recording: Callable[[str], Path], tmp_path: Path) -> None:
    folder = recording(MIXED)
    out = tmp_path / "out"
    plan = rescue(out, folder / "log")
    answers = read_json(folder / "answers" / "restart.json")
    active = sorted(row["group"] for row in answers["groups"] if row["state"] not in ("Empty", "Dead"))
    (sentence,) = doubts(plan, "with running consumers")
    assert all(f'"{group}"' in sentence for group in active)
    readme, details = ((out / name).read_text() for name in ("README.txt", "DETAILS.txt"))
    assert all(f'  "{group}"\n' in details for group in active)
    assert readme.count("\n") < 60, "it is read at night"
    (sentence,) = doubts(plan, "open transactions")
    assert '"pending-metrics"' in sentence
    assert doubts(plan, "offsets with metadata, which only")
    assert doubts(plan, "left-out.jsonl")
    assert all(f"- {sentence}\n" in readme for sentence in plan["doubts"])
    assert "offsets-log restore plan.json --bootstrap-server" in readme
    result = run(folder / "log", "--to", tmp_path / "again")
    assert all(sentence in result.stderr for sentence in plan["doubts"][:3])
    assert result.stdout == ""


def test_what_other_topics_hold_is_said(recording: Callable[[str], Path], tmp_path: Path) -> None:
    """Share groups keep their offsets elsewhere, and so do the source connectors of Connect."""
    folder = recording("kafka-4.3-modern-groups")
    plan = rescue(tmp_path / "out", folder / "log")
    answers = read_json(folder / "answers" / "restart.json")
    share = sorted(row["group"] for row in answers["groups"] if row["type"] == "share" and row["state"] != "Dead")
    assert share
    (sentence,) = doubts(plan, "share groups")
    readme = (tmp_path / "out" / "DETAILS.txt").read_text()
    assert all(f'"{group}"' in sentence and f'\n  "{group}"\n' in readme for group in share)
    assert "__share_group_state" in readme
    assert "offset.storage.topic" in readme
    plan = rescue(tmp_path / "none", recording(MIXED) / "log")
    assert not doubts(plan, "share groups")
    assert "the log has none" in (tmp_path / "none" / "DETAILS.txt").read_text()


def test_absent_partitions_and_who_lives_there(recording: Callable[[str], Path], tmp_path: Path) -> None:
    folder = recording(MIXED)
    copy = tmp_path / "copy"
    shutil.copytree(folder / "log", copy)
    home = partition_for("alive-metrics", 4)
    shutil.rmtree(copy / f"__consumer_offsets-{home}")
    plan = rescue(tmp_path / "a", copy, "--partitions", 4, status=3)
    assert plan["offsets_partitions"] == {"count": 4, "source": "option", "absent": [home]}
    assert doubts(plan, f"offsets partitions that are absent, 1 of 4: {home};")
    plan = rescue(tmp_path / "b", copy, "--partitions", 4, "-g", "alive-metrics", "-g", "tx-*", status=3)
    assert doubts(plan, f'group "alive-metrics" lives in offsets partition {home}, which was not read')


PARTITIONS = 10


@pytest.fixture
def ten_partitions(tmp_path: Path) -> Path:
    """A log of ten offsets partitions with two groups in each, where they belong."""
    logs = {number: LogBuilder() for number in range(PARTITIONS)}
    names = (f"billing-{number}" for number in range(10_000))
    for group in names:
        home = partition_for(group, PARTITIONS)
        if len(logs[home].batches) < 2:
            logs[home].commit(5, group=group)
    return write_log(tmp_path / "log", logs)


def test_filters_say_nothing_else_of_the_offsets_partitions(ten_partitions: Path, tmp_path: Path) -> None:
    """Their number follows from all groups of the log, however few are asked for."""
    whole = rescue(tmp_path / "whole", ten_partitions)
    assert whole["offsets_partitions"] == {"count": PARTITIONS, "source": "data", "absent": []}
    groups = sorted(row["group"] for row in whole["groups"])
    for number, group in enumerate(groups):
        plan = rescue(tmp_path / str(number), ten_partitions, "-g", group)
        assert [row["group"] for row in plan["groups"]] == [group]
        assert plan["offsets_partitions"] == whole["offsets_partitions"]
        assert plan["doubts"] == []
    shutil.rmtree(ten_partitions / "__consumer_offsets-3")
    plan = rescue(tmp_path / "less", ten_partitions, "-g", groups[0])
    assert plan["offsets_partitions"] == {"count": PARTITIONS, "source": "data", "absent": [3]}


def test_where_a_group_lives_is_not_guessed_from_no_group(tmp_path: Path) -> None:
    """``records:H2``: a bound that leaves no group leaves nothing that would confirm the number of partitions."""
    words = ("-g", "metrics-sticky-9", "--until-time", "2026-11-20", "--to", tmp_path / "rescued")
    result = run("samples/kafka-4.3-mixed/log", *words)
    assert "lives in" not in result.stderr
    assert "how many partitions __consumer_offsets has is not known" in result.stderr


def test_what_a_guess_cannot_tell_is_not_said(ten_partitions: Path, tmp_path: Path) -> None:
    plan = rescue(tmp_path / "one", ten_partitions / "__consumer_offsets-7")
    assert plan["offsets_partitions"]["source"] == "guess"
    assert doubts(plan, "how many partitions __consumer_offsets has is not known")
    assert not doubts(plan, "that are absent,")
    assert not doubts(plan, "not theirs")


@pytest.mark.parametrize(
    ("variant", "said"),
    [
        ("torn", "a commit there, if there was one, is missing"),
        ("zeros", "they hold no commit, and one is missing only"),
    ],
)
def test_tails_are_said(recording: Callable[[str], Path], tmp_path: Path, variant: str, said: str) -> None:
    folder = recording("kafka-4.3-live-copy")
    plan = rescue(tmp_path / "out", folder / f"log-{variant}")
    answers = read_json(folder / "answers" / f"restart-{variant}.json")
    assert keyed(plan["offsets"]) == keyed(answers["offsets"])
    assert doubts(plan, said)


def test_damage_is_said_kept_and_in_the_exit_status(tmp_path: Path) -> None:
    log = LogBuilder().commit(5).commit(6).commit(7, partition=1)
    log.batches[1] = log.batches[1][:-1] + b"\xff"
    write_log(tmp_path / "log", {partition_for("g", 50): log})
    plan = rescue(tmp_path / "out", tmp_path / "log", "--quarantine", tmp_path / "kept", status=3)
    assert [(row["partition"], row["committed_offset"]) for row in plan["offsets"]] == [(0, 5), (1, 7)]
    assert doubts(plan, "that could not be read: 1 corrupt, 0 unsupported")
    assert len(plan["problems"]) == len(read_json_lines(tmp_path / "kept")) == 1
    result = run(tmp_path / "log", "--to", tmp_path / "strict", "--strict")
    assert result.exit_code == 1
    assert not (tmp_path / "strict").exists()


def test_a_missing_beginning_a_gap_and_a_group_astray_are_said(tmp_path: Path) -> None:
    log = LogBuilder().skip(100).commit(5).skip(10).commit(6, partition=1)
    write_log(tmp_path / "log", {partition_for("g", 50) + 1: log}, base_offset=100)
    plan = rescue(tmp_path / "out", tmp_path / "log", "--partitions", 50, status=3)
    assert doubts(plan, "the first segment begins at 100 instead of 0")
    assert doubts(plan, "10 record offsets are in no batch that can be read")
    assert doubts(plan, "groups in an offsets partition that is not theirs (1)")


def test_of_two_rows_of_one_offset_that_of_its_own_partition_counts_then_the_one_committed_last() -> None:
    home = partition_for("g", 4)
    places = [(home, 1, 1), (home + 1, 2, 9), (home + 2, 3, 5), (home + 3, None, 99)]
    rows = [
        {
            "group": "g",
            "topic": "t",
            "partition": 0,
            "offsets_partition": offsets_partition % 4,
            "commit_timestamp_ms": committed_ms,
            "record_offset": record_offset,
        }
        for offsets_partition, committed_ms, record_offset in places
    ]
    count = PartitionCount(4, "option")
    kept, others = settle_duplicates(rows, count)
    assert (kept, others) == ([rows[0]], [rows[3], rows[1], rows[2]])
    assert settle_duplicates(rows[1:], count) == ([rows[2]], [rows[3], rows[1]])


def test_a_partition_that_a_checkpoint_names_is_absent_whatever_the_groups_show(tmp_path: Path) -> None:
    folder = write_log(tmp_path / "log", {partition_for("g", 50): LogBuilder().commit(5)})
    (folder / "replication-offset-checkpoint").write_text("0\n1\n__consumer_offsets 61 9\n")
    plan = rescue(tmp_path / "out", folder, status=3)
    assert plan["offsets_partitions"]["absent"][-1] == 61
    assert len(doubts(plan, "offsets partition 61: ")) == 1


@pytest.mark.parametrize(("told", "counts"), [(("--partitions", 50), False), ((), True)])
def test_a_group_that_its_own_partition_has_gets_nothing_from_another(
    tmp_path: Path, told: tuple[object, ...], counts: bool
) -> None:
    """As clients are answered (`broker.home`); where the number of partitions is a guess, it may not be another's."""
    home = partition_for("g", 50)
    stray = LogBuilder().commit(99).commit(77, partition=1)
    others = LogBuilder() if told else LogBuilder().commit(1, group="h").commit(1, group="i")
    write_log(tmp_path / "log", {home: LogBuilder().commit(10), home + 1: stray, home + 2: others})
    plan = rescue(tmp_path / "out", tmp_path / "log", "-g", "g", *told, status=3)
    offsets = {row["partition"]: row["committed_offset"] for row in plan["offsets"]}
    assert offsets == ({0: 10, 1: 77} if counts else {0: 10})
    assert len(plan["duplicates"]) == (1 if counts else 2)


@pytest.mark.parametrize("state", ["Empty", "empty", "Dead", "dead", None])
def test_a_group_without_members_is_not_active_in_any_spelling(state: str | None) -> None:
    """The preview of 3.7 says states in lower case."""
    assert not is_active(state)
    assert is_active("stable")


def test_a_load_that_fails_is_said_and_left_out_on_demand(tmp_path: Path) -> None:
    """``J-3``, ``B-4``: a broker of that profile would serve nothing of this partition."""
    log = LogBuilder().commit(5).add((b"\x00\x01", b"\x00\x00"))
    write_log(tmp_path / "log", {partition_for("g", 50): log})
    plan = rescue(tmp_path / "out", tmp_path / "log", status=3)
    assert len(plan["offsets"]) == 1
    (sentence,) = doubts(plan, "a coordinator of Kafka 4 would not load it")
    assert sentence in (tmp_path / "out" / "README.txt").read_text()
    result = run(tmp_path / "log", "--as-broker", "--to", tmp_path / "as-broker")
    assert (result.exit_code, (tmp_path / "as-broker").exists()) == (3, False)
    assert "a coordinator of Kafka 4 would not load it" in result.stderr


def test_nothing_to_rescue_is_still_a_rescue(tmp_path: Path) -> None:
    write_log(tmp_path / "log", {0: LogBuilder().commit(5).commit(None)})
    plan = rescue(tmp_path / "out", tmp_path / "log")
    assert plan["offsets"] == []
    assert (tmp_path / "out" / "client-libraries" / "offsets.json").read_text() == "{}\n"
    assert (tmp_path / "out" / "left-out.jsonl").read_text() == ""
    script = tmp_path / "out" / "kafka-consumer-groups" / "run.sh"
    assert os.access(script, os.X_OK)
    assert json.loads((tmp_path / "out" / "plan.json").read_text())["offsets_partitions"]["count"] == 50


def test_topics_need_the_partitions_of_offsets_and_of_assignments() -> None:
    """An assigned partition without an offset is one that the topic has; other topics need nothing."""
    offsets = [{"topic": "b", "partition": 1}, {"topic": "a", "partition": 3}]
    groups = [
        {"type": "classic", "members": [{"assignment": [["b", 5], ["other", 9]]}, {"assignment": []}]},
        {"type": "streams", "members": [{"assignment": [["active", "0", 7]]}]},
    ]
    assert partitions_needed(offsets, groups) == {"a": 4, "b": 6}
