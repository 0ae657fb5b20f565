"""`history` against the brokers' answers at every step: effective values, open transactions, and who held what."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from offsets_log.messages.registry import RECORD_TYPES
from offsets_log_cli.main import main
from tests.builders import LogBuilder, member
from tests.conftest import NEVER, BulkFrom, json_lines, read_json, read_json_lines
from tests.investigate.test_groups import folder_of
from tests.replay.test_compact_recordings import WITH_STEPS, Recording, profile_of, steps

Json = dict[str, Any]
Key = tuple[str, str, int]


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["history", *map(str, arguments)], catch_exceptions=False)


def rows(*arguments: object) -> list[Json]:
    result = run(*arguments, "-o", "jsonl")
    assert result.exit_code == 0, result.stderr
    return list(json_lines(result.stdout))


def by_key(found: list[Json]) -> dict[Key, list[Json]]:
    entries: dict[Key, list[Json]] = {}
    for row in found:
        entries.setdefault((row["group"], row["topic"], row["partition"]), []).append(row)
    return entries


def below(entries: list[Json], line: Json) -> list[Json]:
    """Those a broker had seen at a step."""
    return [row for row in entries if row["record_offset"] < line["end_offsets"].get(str(row["offsets_partition"]), 0)]


@pytest.mark.parametrize("name", WITH_STEPS)
def test_effective_offsets_are_the_brokers_answers_at_every_step(name: str, recording: Recording) -> None:
    """``J-6``–``J-15``, ``L-12``–``L-20``."""
    folder = recording(name)
    facts = read_json(folder / "recording.json")
    found: dict[Path, dict[Key, list[Json]]] = {}
    for log, line in steps(folder, facts):
        if log not in found:
            found[log] = by_key(rows(log, "-g", "*", "--profile", profile_of(facts).name))
        effective: dict[Key, int] = {}
        for key, entries in found[log].items():
            seen = below(entries, line)
            if seen and seen[-1]["effective_offset"] is not None:
                effective[key] = seen[-1]["effective_offset"]
        answers = {(row["group"], row["topic"], row["partition"]): row["committed_offset"] for row in line["offsets"]}
        assert effective == answers, line["what"]
    assert found


@pytest.mark.parametrize("name", ["kafka-4.3-mixed", "kafka-3.9-classic"])
def test_outcomes_are_open_as_long_as_the_broker_calls_the_offset_unstable(name: str, recording: Recording) -> None:
    folder = recording(name)
    facts = read_json(folder / "recording.json")
    found = by_key(rows(folder / "log", "-g", "*", "--profile", profile_of(facts).name))
    checked = 0
    for _, line in steps(folder, facts):
        for key in map(tuple, line["unstable"]):
            seen = below(found[key], line)
            ended = {
                row["producer_id"]: row["record_offset"] for row in seen if row["event"].startswith("transaction_")
            }
            assert any(
                row["event"] == "commit"
                and row["producer_id"] is not None
                and row["record_offset"] > ended.get(row["producer_id"], -1)
                for row in seen
            ), (line["what"], key)
            checked += 1
    assert checked > 5
    last = {tuple(key) for key in read_json(folder / "answers" / "restart.json")["unstable"]}
    assert last <= {key for key, entries in found.items() if any(row["transaction"] == "open" for row in entries)}


@pytest.mark.parametrize("name", ["kafka-4.3-mixed", "kafka-4.3-modern-groups", "kafka-3.9-classic"])
def test_the_member_named_is_the_one_the_broker_says_holds_the_partition(
    name: str, recording: Recording, tmp_path: Path
) -> None:
    """Between two steps with the same assignments, the committer is the one they show."""
    folder = recording(name)
    facts = read_json(folder / "recording.json")
    ids = tmp_path / "ids.json"
    ids.write_text(json.dumps({topic["id"]: name for name, topic in facts["topics"].items() if "id" in topic}))
    found = rows(folder / "log", "-g", "*", "--profile", profile_of(facts).name, "--topic-ids", ids)
    checked: dict[str, int] = {}
    lines = [
        line for line in read_json_lines(folder / "timeline.jsonl") if "groups" in line and "not_quiet" not in line
    ]
    for before, after in pairwise(lines):
        held, same = holders(before), holders(after)
        for row in found:
            partition = str(row["offsets_partition"])
            if before["end_offsets"][partition] <= row["record_offset"] < after["end_offsets"][partition]:
                key = (row["group"], row["topic"], row["partition"])
                if row["event"] == "commit" and key in held and held[key] == same.get(key):
                    assert (row["member_id"], row["client_id"], row["host"]) == held[key][:3], (after["what"], key)
                    checked[held[key][3]] = checked.get(held[key][3], 0) + 1
    assert checked
    assert name != "kafka-4.3-modern-groups" or checked.get("consumer", 0) > 5


def holders(line: Json) -> dict[Key, tuple[str, str, str, str]]:
    return {
        (group["group"], *place): (member["member_id"], member["client_id"], member["host"], group["type"])
        for group in line["groups"]
        if group["type"] in ("classic", "consumer")
        for member in group["members"]
        for place in member["assignment"]
    }


# ------------------------------------------------------------------------------------------ small logs


def test_one_partition_of_one_topic_and_what_each_event_did_to_the_answer(tmp_path: Path) -> None:
    log = LogBuilder().commit(5).commit(9, topic="u").commit(7).commit(7, metadata="m").commit(3, producer=4)
    log.commit(8).end(4).commit(None).commit(1, producer=5)
    found = rows(folder_of(log, tmp_path), "-g", "g", "-t", "t", "--topic-partition", 0)
    columns = ("event", "committed_offset", "transaction", "effective_offset", "change")
    assert [tuple(row[column] for column in columns) for row in found] == [
        ("commit", 5, None, 5, "new"),
        ("commit", 7, None, 7, "advanced"),
        ("commit", 7, None, 7, "same"),
        ("commit", 3, "committed", 7, None),
        ("commit", 8, None, 8, "advanced"),
        ("transaction_committed", None, "committed", 8, None),
        ("tombstone", None, None, None, "deleted"),
        ("commit", 1, "open", None, None),
    ]
    assert rows(tmp_path, "-g", "g", "--topic-partition", 1) == []
    assert rows(tmp_path, "-g", "g", "-t", "t", "--partition", 0) == found, "the older spelling"
    assert rows(tmp_path, "-g", "g", "--partition", 1) == []


def test_rewinds_alone(tmp_path: Path) -> None:
    folder = folder_of(LogBuilder().commit(5).commit(4).commit(6).commit(2, producer=1).end(1), tmp_path)
    found = rows(folder, "-g", "g", "--rewinds")
    assert [(row["event"], row["effective_offset"]) for row in found] == [("commit", 4), ("transaction_committed", 2)]
    assert "2 rewinds," in run(folder, "-g", "g").stderr


def test_rewinds_have_what_began_lower_after_a_deletion(tmp_path: Path) -> None:
    """The commonest way to read everything again: the offset expired, then a lower one was committed."""
    folder = folder_of(LogBuilder().commit(50).commit(40).commit(None).commit(0).commit(None).commit(9), tmp_path)
    found = rows(folder, "-g", "g", "--rewinds")
    assert [(row["effective_offset"], row["change"]) for row in found] == [(40, "rewound"), (0, "new")]
    assert "1 rewind, 1 began lower after a deletion," in run(folder, "-g", "g").stderr


def test_rows_from_a_time_on_are_those_of_all_rows(recording: Recording) -> None:
    """What was answered before is counted in; records without a time are shown."""
    log = recording("kafka-lifetime") / "log"
    every = rows(log, "-g", "*")
    times = sorted(row["timestamp_ms"] for row in every if row["timestamp_ms"] is not None)
    since = times[len(times) // 2]
    later = [row for row in every if row["timestamp_ms"] is None or row["timestamp_ms"] >= since]
    assert len(times) // 2 <= len(later) < len(every)
    assert rows(log, "-g", "*", "--from-time", since) == later
    assert (
        f"{sum(row['event'] == 'commit' for row in later)} commits" in run(log, "-g", "*", "--from-time", since).stderr
    )
    for late in (times[-1] + 1, "--table share-offsets"):
        told = run(log, "-g", "*", "--until-time", since, *f"--from-time {late}".split())
        assert (told.exit_code, told.stdout) == (2, "")


def test_a_removed_group_answers_nothing_until_it_is_back(tmp_path: Path) -> None:
    """``J-15``, ``B-17``: the Scala coordinator goes on answering (``L-36``)."""
    log = LogBuilder().commit(5).group(gone=True).commit(None, partition=9).commit(1, partition=1, producer=3)
    folder = folder_of(log, tmp_path)
    found = rows(folder, "-g", "g", "--topic-partition", 0)
    assert [(row["event"], row["effective_offset"]) for row in found] == [
        ("commit", 5), ("group_gone", None), ("group_back", 5),
    ]  # fmt: skip
    assert [row["event"] for row in rows(folder, "-g", "g", "--topic-partition", 0, "--profile", "classic")] == [
        "commit"
    ]


def test_who_commits_where_nobody_holds_the_partition(tmp_path: Path) -> None:
    """``W-7``: with one member it is that one; of a transaction, or of several, nobody is named."""
    log = LogBuilder().commit(1).group(member("m", client_id="one")).commit(2).commit(3, producer=2)
    log.group(member("m"), member("n")).commit(4)
    found = rows(folder_of(log, tmp_path), "-g", "g")
    assert [row["client_id"] for row in found] == [None, "one", None, None]


def test_a_group_must_be_named(tmp_path: Path) -> None:
    assert run(folder_of(LogBuilder().commit(1), tmp_path)).exit_code == 2


def test_a_message_of_magic_0_has_no_time(recording: Recording) -> None:
    found = rows(recording("kafka-0.8.2") / "log", "-g", "*")
    assert found
    assert {row["timestamp_ms"] for row in found} == {None}
    assert all(row["commit_timestamp_ms"] for row in found if row["event"] == "commit")


@pytest.mark.parametrize("least_bytes", [NEVER, 0])
@pytest.mark.parametrize(("profile", "number"), [("modern", 9), ("modern-3.7", 9), ("modern-3.7", 17), ("classic", 5)])
def test_a_record_of_a_type_that_the_release_skips_does_nothing_to_its_group(
    profile: str, number: int, least_bytes: int, tmp_path: Path, bulk_from: BulkFrom
) -> None:
    """``L-21``, ``J-3``: neither to one that is gone nor to one with a member, who still holds what it held."""
    bulk_from(least_bytes)
    value = RECORD_TYPES[number].values[0].zeros(0)
    built, without = LogBuilder().commit(1).group(gone=True), LogBuilder().commit(1).group(gone=True)
    for step in (lambda log: log.group(member("m")).commit(2), lambda log: log.commit(3)):
        step(built.newer(number, value, member_id="m" if number == 5 else None))
        step(without.skip(1))
    found, expected = (
        rows(folder_of(log, tmp_path / name), "-g", "g", "--profile", profile)
        for name, log in {"with": built, "without": without}.items()
    )
    assert found == expected
    assert [row["member_id"] for row in found if row["event"] == "commit"] == [None, "m", "m"]
