"""``offsets-log rebuild``: the document, its tables, topic names, salvage or broker."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from offsets_log.log_format.primitives import Uuid
from offsets_log.replay.topic_names import TopicNames
from offsets_log_cli.main import main
from tests.conftest import json_lines, read_json

Recording = Callable[[str], Path]


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["rebuild", *map(str, arguments)], catch_exceptions=False)


def document(*arguments: str | Path, status: int = 0) -> dict[str, Any]:
    result = run(*arguments)
    assert result.exit_code == status, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.fixture
def modern(recording: Recording, tmp_path: Path) -> tuple[Path, Path, dict[str, Any]]:
    """A recording of newer groups: its log, the file for --topic-ids, and the broker's answer."""
    folder = recording("kafka-4.3-modern-groups")
    topics = read_json(folder / "recording.json")["topics"]
    topic_ids = tmp_path / "topic-ids.json"
    topic_ids.write_text(json.dumps({topic["id"]: name for name, topic in topics.items()}))
    return folder / "log", topic_ids, read_json(folder / "answers" / "restart.json")


def test_document_has_the_keys_of_the_contract_and_the_brokers_end_offsets(
    modern: tuple[Path, Path, dict[str, Any]],
) -> None:
    log, topic_ids, answer = modern
    found = document(log, "--topic-ids", topic_ids)
    assert {"profile", "end_offsets", "loads", "groups", "offsets", "pending", "orphans", "problems"} <= set(found)
    assert found["profile"] == "modern"
    assert found["end_offsets"] == answer["end_offsets"]
    assert found["loads"]["0"] == {"ok": True, "record_offset": None, "rule": None, "problem": None}
    assert found["problems"] == []
    group_keys = {
        "group", "type", "state", "protocol_type", "protocol", "leader", "generation", "group_epoch",
        "assignment_epoch", "current_state_timestamp_ms", "offsets_partition", "members",
    }  # fmt: skip
    member_keys = {
        "member_id", "group_instance_id", "client_id", "host", "rack_id", "member_epoch", "session_timeout_ms",
        "rebalance_timeout_ms", "subscribed_topics", "subscribed_regex", "assignment", "target_assignment",
        "unresolved",
    }  # fmt: skip
    for group in found["groups"]:
        assert group_keys <= set(group)
        assert all(member_keys <= set(member) for member in group["members"])
    assert [group["group"] for group in found["groups"]] == sorted(group["group"] for group in found["groups"])


def test_topics_without_a_name_are_unresolved_and_come_with_their_ids(
    modern: tuple[Path, Path, dict[str, Any]], tmp_path: Path
) -> None:
    """A log holding only newer groups' records cannot name all topics; given names win over records."""
    log, topic_ids, _ = modern
    named = document(log, "--topic-ids", topic_ids)
    members = [member for group in named["groups"] for member in group["members"] if group["type"] == "consumer"]
    assert members
    assert all(not member["unresolved"] and "inferred" not in member for member in members)
    renamed = tmp_path / "other.json"
    renamed.write_text(json.dumps(dict.fromkeys(json.loads(topic_ids.read_text()), "given")))
    for group in document(log, "--topic-ids", renamed)["groups"]:
        if group["type"] in ("consumer", "share"):
            assert {topic for member in group["members"] for topic, _ in member["assignment"]} <= {"given"}


def test_names_follow_by_elimination_and_are_marked() -> None:
    a, b, c = (Uuid(bytes(15) + bytes((i,))) for i in (1, 2, 3))
    names = TopicNames({a: "known"})
    rows = [{"topic_id": a, "partitions": [1, 0]}, {"topic_id": b, "partitions": [4]}]
    resolved = names.resolve(rows, ["known", "left"])
    assert resolved.partitions == [("known", 0), ("known", 1), ("left", 4)]
    assert resolved.inferred == ["left"]
    assert resolved.unresolved == []
    ambiguous = names.resolve([*rows, {"topic_id": c, "partitions": [9]}], ["known", "left"])
    assert ambiguous.partitions == [("known", 0), ("known", 1)]
    assert ambiguous.unresolved == [(str(b), 4), (str(c), 9)]
    assert names.resolve(rows, ["known", "left", "other"]).inferred == []


def test_first_source_that_knows_an_id_is_believed() -> None:
    a = Uuid(bytes(15) + b"\x01")
    assert TopicNames({a: "given"}, {a: "folder"}, {a: "record"}).names == {bytes(a): "given"}


def test_names_come_from_the_folders_of_other_topics(recording: Recording, tmp_path: Path) -> None:
    folder = recording("kafka-4.3-modern-groups")
    (tmp_path / "data").mkdir()
    for path in (folder / "log").iterdir():
        if path.is_dir():
            (tmp_path / "data" / path.name).symlink_to(path)
    for name, topic in read_json(folder / "recording.json")["topics"].items():
        directory = tmp_path / "data" / f"{name}-0"
        directory.mkdir()
        (directory / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic['id']}")
    found = document(tmp_path / "data")
    members = [member for group in found["groups"] for member in group["members"]]
    assert not any(member["unresolved"] or member.get("inferred") for member in members)


def test_pending_offsets_are_those_the_broker_calls_unstable(recording: Recording) -> None:
    folder = recording("kafka-4.3-mixed")
    found = document(folder / "log")
    answer = read_json(folder / "answers" / "restart.json")
    assert {(row["group"], row["topic"], row["partition"]) for row in found["pending"]} == {
        tuple(key) for key in answer["unstable"]
    }
    assert found["pending"]
    assert tuple(found["pending"][0]) == (
        "group", "topic", "partition", "producer_id", "producer_epoch", "committed_offset", "leader_epoch", "metadata",
        "record_offset", "offsets_partition",
    )  # fmt: skip


def test_salvage_answers_what_a_broker_would_not(recording: Recording) -> None:
    """A partition whose load ends early (``J-3``) is empty on that broker; its rows can be read all the same."""
    log = recording("load-fails") / "log" / "__consumer_offsets-2"
    found = document(log, status=3)
    assert found["loads"]["2"]["ok"] is False
    assert found["loads"]["2"]["record_offset"] == 1
    assert found["loads"]["2"]["rule"]
    assert [row["committed_offset"] for row in found["offsets"]] == [100, 200]
    (problem,) = found["problems"]
    assert problem["record_offset"] == 1
    assert "version 99" in problem["problem"]
    as_broker = document(log, "--as-broker", status=3)
    assert (as_broker["offsets"], as_broker["groups"]) == ([], [])
    assert as_broker["loads"] == found["loads"]


def test_a_failure_that_a_broker_serves_all_the_same_is_not_emptied(recording: Recording) -> None:
    """``L-39``, ``B-4``."""
    log = recording("load-fails") / "log" / "__consumer_offsets-45"
    found = document(log, "--profile", "classic", "--as-broker")
    assert found["loads"]["45"]["rule"] == "L-39"
    assert found["offsets"]


@pytest.mark.parametrize("table", ["groups", "members", "offsets", "pending"])
def test_tables_are_the_documents_rows(table: str, recording: Recording) -> None:
    log = recording("kafka-4.3-mixed") / "log"
    whole = document(log)
    found = list(json_lines(run(log, "--table", table).stdout))
    assert found
    if table in ("offsets", "pending"):
        assert found == whole[table]
    elif table == "groups":
        assert [row["group"] for row in found] == [group["group"] for group in whole["groups"]]
    else:
        assert len(found) == sum(len(group["members"]) for group in whole["groups"])
    lines = list(csv.DictReader(io.StringIO(run(log, "--table", table, "-o", "csv").stdout, newline="")))
    assert len(lines) == len(found)
    assert run(log, "--table", table, "-o", "table").exit_code == 0


def test_bounds_give_the_state_before_a_record(recording: Recording) -> None:
    log = recording("kafka-4.3-mixed") / "log"
    found = document(log, "--until-offset", "1:2", "-p", "1")
    assert found["end_offsets"] == {"1": 2}
    assert [group["state"] for group in found["groups"]] == ["Stable"]
    assert found["offsets"] == []


def test_expand_opens_a_connect_workers_assignment(recording: Recording) -> None:
    found = document(recording("kafka-4.3-modern-groups") / "log", "-g", "connect-desert", "--expand")
    (group,) = found["groups"]
    (member,) = group["members"]
    assert member["assignment"] == []
    assert member["expanded_assignment"]["leader"] == member["member_id"]


def test_topic_ids_that_are_no_json_object_are_one_line(recording: Recording, tmp_path: Path) -> None:
    (tmp_path / "ids").write_text("[1]")
    result = run(recording("kafka-4.3-mixed") / "log", "--topic-ids", tmp_path / "ids")
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1


def test_the_answer_says_how_far_back_it_can_be_trusted(recording: Recording) -> None:
    log = recording("kafka-4.3-cleaned") / "log"
    whole = document(log)["history"]
    assert any(history["missing_offsets"] for history in whole.values())
    assert {number: history["cleaned_until"] for number, history in whole.items()} == {
        "0": 734, "1": 1249, "2": 515, "3": 18,
    }  # fmt: skip
    cut = run(log, "-p", "1", "--until-offset", "1000")
    assert "compacted away" in cut.stderr
    assert "compacted away" not in run(log).stderr


def test_a_filter_makes_no_load_succeed(recording: Recording) -> None:
    """Filters choose what is shown, not what was loaded."""
    log = recording("load-fails") / "log" / "__consumer_offsets-28"
    whole = document(log)
    assert whole["loads"]["28"]["rule"] == "J-20"
    (other,) = [group["group"] for group in whole["groups"] if group["type"] == "classic"][:1]
    assert document(log, "-g", other)["loads"] == whole["loads"]
    assert document(log, "-g", other, "-t", "nothing")["loads"] == whole["loads"]
    assert document(log, "-g", other, "--as-broker", status=3)["offsets"] == []
    assert run(log, "-g", other).stderr.count("would not load it") == 1


@pytest.mark.parametrize("profile", ["modern", "classic"])
def test_a_topic_filter_drops_no_group(profile: str, recording: Recording) -> None:
    log = recording("kafka-3.9-classic") / "log"
    everything = document(log, "--profile", profile)
    some = document(log, "--profile", profile, "-t", "T")
    assert some["groups"] == everything["groups"]
    assert some["offsets"] == [row for row in everything["offsets"] if row["topic"] == "T"]


def test_durations_in_tables_are_no_dates(recording: Recording) -> None:
    text = run(recording("kafka-4.3-mixed") / "log", "--table", "members", "-o", "table").stdout
    assert "300000" in text
    assert "1970-01-01" not in text


def test_tails_are_told_in_the_document_too(recording: Recording) -> None:
    found = document(recording("kafka-4.3-live-copy") / "log-torn")
    assert len(found["history"]["2"]["tails"]) == 1
