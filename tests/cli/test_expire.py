"""``offsets-log expire`` as a user has it: formats, times and durations, eras, filters, damage, exit statuses."""

from __future__ import annotations

import base64
import csv
import io
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from offsets_log.log_format.building import build_batch
from offsets_log.log_format.java_text import MalformedString
from offsets_log.log_format.record import Record
from offsets_log.messages.offset_commit import OFFSET_COMMIT_VALUE
from offsets_log.messages.registry import CoordinatorRecord, encode_coordinator_record
from offsets_log.replay.expiry import ERAS
from offsets_log_cli.main import main
from offsets_log_cli.options import ERA_NAMES
from tests.conftest import json_lines, read_json, read_json_lines

COLUMNS = (
    "kind", "group", "topic", "partition", "committed_offset", "commit_timestamp_ms", "expired", "expires_at_ms",
    "rule", "reason", "offsets_partition",
)  # fmt: skip

COMMITTED_MS = 1_700_000_000_000
DAY_MS = 86_400_000


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["expire", *map(str, arguments)], catch_exceptions=False)


def rows(*arguments: object, status: int = 0) -> list[dict[str, Any]]:
    result = run(*arguments)
    assert result.exit_code == status, result.stderr
    return list(json_lines(result.stdout))


def commit(group: str, topic: str = "t", partition: int = 0, at_ms: int = COMMITTED_MS) -> tuple[bytes, bytes | None]:
    fields = {"offset": 7, "leader_epoch": -1, "metadata": "", "commit_timestamp": at_ms}
    key = {"group": group, "topic": topic, "partition": partition}
    record = CoordinatorRecord(record_type=1, key=key, value_version=3, value=fields, layout=OFFSET_COMMIT_VALUE)
    return encode_coordinator_record(record)


def write_log(folder: Path, *pairs: tuple[bytes, bytes | None], behind: bytes = b"") -> Path:
    directory = folder / "__consumer_offsets-4"
    directory.mkdir(parents=True)
    records = [Record(offset=i, timestamp_ms=1, key=key, value=value) for i, (key, value) in enumerate(pairs)]
    (directory / "00000000000000000000.log").write_bytes(build_batch(records) + behind)
    return folder


@pytest.fixture
def two_groups(tmp_path: Path) -> Path:
    """b has two offsets of different age, a one."""
    return write_log(
        tmp_path, commit("b", "u"), commit("b", "t", 1, COMMITTED_MS + DAY_MS), commit("a", at_ms=COMMITTED_MS + 1)
    )


NOW = ("--now", COMMITTED_MS + 7 * DAY_MS)


def test_rows_have_the_columns_of_the_contract_each_group_behind_its_offsets(two_groups: Path) -> None:
    found = rows(two_groups, *NOW)
    assert all(tuple(row) == COLUMNS for row in found)
    names = ("kind", "group", "topic", "partition", "expired", "expires_at_ms")
    end = COMMITTED_MS + 7 * DAY_MS
    assert [tuple(row[name] for name in names) for row in found] == [
        ("offset", "a", "t", 0, False, end + 1),
        ("group", "a", None, None, False, end + 1),
        ("offset", "b", "t", 1, False, end + DAY_MS),
        ("offset", "b", "u", 0, True, end),
        ("group", "b", None, None, False, end + DAY_MS),
    ]
    assert found[3] == {
        "kind": "offset",
        "group": "b",
        "topic": "u",
        "partition": 0,
        "committed_offset": 7,
        "commit_timestamp_ms": COMMITTED_MS,
        "expired": True,
        "expires_at_ms": end,
        "rule": "E-7",
        "reason": "a group of offsets only: by commit time",
        "offsets_partition": 4,
    }


def test_every_output_format_tells_the_same(two_groups: Path, tmp_path: Path) -> None:
    found = rows(two_groups, *NOW)
    assert json.loads(run(two_groups, *NOW, "-o", "json").stdout) == found
    assert run(two_groups, *NOW, "-o", "csv", "--to", tmp_path / "out.csv").exit_code == 0
    table = list(csv.DictReader(io.StringIO((tmp_path / "out.csv").read_text(), newline="")))
    assert [line["expires_at_ms"] for line in table] == [str(row["expires_at_ms"]) for row in found]
    assert [line["expired"] for line in table] == [json.dumps(row["expired"]) for row in found]
    lines = run(two_groups, *NOW, "-o", "table").stdout.split("\n")
    assert len(lines) == len(found) + 4  # two lines of head, a rule, and the end
    assert "2023-11-21 22:13:20.000Z" in lines[6]


def test_expired_only_leaves_what_goes_and_the_summary_counts_all(two_groups: Path) -> None:
    assert [row["topic"] for row in rows(two_groups, *NOW, "--expired-only")] == ["u"]
    assert "1 of 3 offsets, 0 of 2 groups expired at 2023-11-21 22:13:20.000Z" in run(two_groups, *NOW).stderr
    assert rows(two_groups, "--now", COMMITTED_MS, "--expired-only") == []


@pytest.mark.parametrize(
    ("now", "expired"),
    [
        ("2023-11-21T22:13:20Z", 1),
        ("2023-11-21T22:13:19.999Z", 0),
        ("2023-11-21 22:13:20.001", 2),
        (str(COMMITTED_MS), 0),
        ("1h", 3),
    ],
)
def test_now_is_a_time_in_any_form(now: str, expired: int, two_groups: Path) -> None:
    found = rows(two_groups, "--now", now)
    assert sum(row["expired"] for row in found if row["kind"] == "offset") == expired


def test_now_is_the_clock_by_default(tmp_path: Path) -> None:
    now_ms = int(time.time() * 1000)
    folder = write_log(tmp_path, commit("old", at_ms=now_ms - 7 * DAY_MS), commit("new", at_ms=now_ms))
    assert [row["expired"] for row in rows(folder)] == [False, False, True, True]


@pytest.mark.parametrize("retention", ["1d", "24h", "1440m", "86400s", "86400000ms", " 1d "])
def test_retention_is_a_duration_in_any_unit(retention: str, two_groups: Path) -> None:
    found = rows(two_groups, "--now", COMMITTED_MS, "--retention", retention, "-t", "u")
    assert [row["expires_at_ms"] for row in found] == [COMMITTED_MS + DAY_MS]


@pytest.mark.parametrize(
    "arguments", [("--retention", "soon"), ("--retention", "-1"), ("--now", "noon"), ("--era", "5")]
)
def test_what_is_no_time_no_duration_and_no_era_is_wrong_usage(arguments: tuple[str, str], two_groups: Path) -> None:
    result = run(two_groups, *arguments)
    assert result.exit_code == 2
    assert arguments[1] in result.stderr


def test_eras_of_the_option_are_those_of_the_rules() -> None:
    assert tuple(ERAS) == ERA_NAMES


@pytest.mark.parametrize(
    ("arguments", "rule", "days", "words"),
    [
        ((), "E-7", 7, "1 partition; expiry as in Java, 4.4 and later"),
        (
            ("--profile", "classic"),
            "E-7",
            7,
            "by the rules of Kafka up to 3.9; expiry as in Scala, 2.8.2 to 3.9 but 3.0.0 and 3.1.0",
        ),
        (("--profile", "modern-3.7"), "E-7", 7, "by the rules of the preview in Kafka 3.7; expiry as in Java, 3.7"),
        (("--era", "3.8-java"), "E-7", 7, "by the rules of Kafka 4; expiry as in Java, 3.8 to 4.0.0"),
        (("--era", "2.4"), "E-7", 7, "by the rules of Kafka up to 3.9; expiry as in 2.4 to 2.8.1, 3.0.0, 3.1.0"),
        (("--era", "0.10.1"), "E-23", 1, "by the rules of Kafka up to 3.9; expiry as in 0.10.1 to 1.1"),
        (
            ("--era", "0.8.2", "--profile", "classic", "--retention", "2d"),
            "E-23",
            2,
            "by the rules of Kafka up to 3.9; expiry as in 0.8.2",
        ),
    ],
)
def test_an_era_brings_its_profile_and_its_default_retention_e_2(
    arguments: tuple[str, ...], rule: str, days: int, words: str, tmp_path: Path
) -> None:
    folder = write_log(tmp_path, commit("g"))
    offset, _ = rows(folder, *NOW, *arguments)
    assert offset["rule"] == rule
    assert offset["expires_at_ms"] == COMMITTED_MS + days * DAY_MS + (rule == "E-23")
    assert words in run(folder, *NOW, *arguments).stderr


def test_an_era_of_another_profile_than_asked_for_is_wrong_usage(two_groups: Path) -> None:
    result = run(two_groups, "--era", "2.4", "--profile", "modern")
    assert result.exit_code == 2
    assert "--era 2.4 is of --profile classic, not modern" in result.stderr


def test_a_topic_filter_shows_offsets_only_but_decides_by_all(two_groups: Path) -> None:
    assert [(row["kind"], row["topic"]) for row in rows(two_groups, *NOW, "-t", "u")] == [("offset", "u")]
    assert [row["kind"] for row in rows(two_groups, *NOW, "-g", "b")] == ["offset", "offset", "group"]
    assert [row["expired"] for row in rows(two_groups, *NOW, "-g", "b")] == [False, True, False]


def test_malformed_names_have_their_bytes_beside(tmp_path: Path) -> None:
    """``B-7``."""
    offset, group = rows(write_log(tmp_path, commit(MalformedString(b"g\xff"), MalformedString(b"t\xff"))), *NOW)
    assert (offset["group"], offset["topic"], group["group"]) == ("g\ufffd", "t\ufffd", "g\ufffd")
    assert [base64.b64decode(row["group_base64"]) for row in (offset, group)] == [b"g\xff"] * 2
    assert base64.b64decode(offset["topic_base64"]) == b"t\xff"


DAMAGED = build_batch([Record(offset=9, timestamp_ms=1, key=b"\x00\x01", value=b"")])


def test_damage_is_told_and_gives_status_3(tmp_path: Path) -> None:
    folder = write_log(tmp_path, commit("g"), behind=DAMAGED)
    result = run(folder, *NOW)
    assert result.exit_code == 3
    assert [row["kind"] for row in json_lines(result.stdout)] == ["offset", "group"]
    assert "a coordinator of Kafka 4 would not load it: record offset 9, J-3" in result.stderr
    assert rows(folder, *NOW, "--as-broker", status=3) == []
    assert run(folder, *NOW, "--strict").exit_code == 1
    assert run(tmp_path / "nowhere").exit_code == 1


def test_a_recorded_broker_expired_what_is_foretold(recording: Callable[[str], Path]) -> None:
    """The offsets and groups that are gone from the answers of the step after."""
    folder = recording("kafka-4.3-expired")
    before, after = (line for line in read_json_lines(folder / "timeline.jsonl") if line["step"] in (7, 8))
    minutes = read_json(folder / "recording.json")["broker_config"]["offsets.retention.minutes"]
    bounds = [f"--until-offset={partition}:{end}" for partition, end in before["end_offsets"].items()]
    found = rows(folder / "log", *bounds, "--now", after["time_ms"], "--retention", f"{minutes}m", "--expired-only")
    offsets = {(row["group"], row["topic"], row["partition"]) for row in found if row["kind"] == "offset"}
    groups = {row["group"] for row in found if row["kind"] == "group"}
    assert offsets == offsets_of(before) - offsets_of(after)
    assert groups == groups_of(before) - groups_of(after)
    assert len(offsets) == 5
    assert len(groups) == 3


def offsets_of(line: dict[str, Any]) -> set[tuple[str, str, int]]:
    return {(row["group"], row["topic"], row["partition"]) for row in line["offsets"]}


def groups_of(line: dict[str, Any]) -> set[str]:
    return {row["group"] for row in line["groups"] if row["type"] is not None}
