"""``offsets-log rebalances`` as a user has it: formats, filters, bounds, verification, damage, exit statuses."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from offsets_log.log_format.building import build_batch
from offsets_log.log_format.java_text import MalformedString
from offsets_log.log_format.record import Record
from offsets_log.messages.registry import encode_coordinator_record
from offsets_log.rebalance.rows import REBALANCE_COLUMNS, VERIFIED_COLUMNS
from offsets_log_cli.main import main
from tests.conftest import json_lines, read_json
from tests.coordinator.caches import classic_group, member_row

Recording = Callable[[str], Path]


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["rebalances", *map(str, arguments)], catch_exceptions=False)


def rows(*arguments: object, status: int = 0) -> list[dict[str, Any]]:
    result = run(*arguments)
    assert result.exit_code == status, result.stderr
    return list(json_lines(result.stdout))


@pytest.fixture
def mixed(recording: Recording) -> Path:
    return recording("kafka-4.3-mixed") / "log"


def test_rows_have_the_columns_and_tell_who_came_and_what_moved(mixed: Path) -> None:
    found = rows(mixed, "-g", "static-*")
    assert [tuple(row) for row in found] == [tuple(column.name for column in REBALANCE_COLUMNS)] * 5
    second = found[1]
    assert [member["group_instance_id"] for member in second["joined"]] == ["node-2"]
    assert (second["assigned"], second["kept"], second["stickiness"], second["duration_ms"]) == (10, 5, 0.5, 1771)
    assert len(second["moved"]) == 5
    assert second["moved"][0]["from"].startswith("node-1-")
    assert second["moved"][0]["to"].startswith("node-2-")


def test_what_a_text_does_not_tell_is_null(tmp_path: Path) -> None:
    """The formatter of groups tells neither leader nor assignment, nor where a record is."""
    member = "memberId={0}, clientId=c, clientHost=/10.0.0.5, sessionTimeoutMs=10000, rebalanceTimeoutMs=300000"
    members = ", ".join(
        f"{name} -> MemberMetadata({member.format(name)}, supportedProtocols=List(range))" for name in "ab"
    )
    (file := tmp_path / "groups.txt").write_text(
        "g::GroupMetadata(groupId=g, generation=4, protocolType=Some(consumer), currentState=Stable, "
        f"members=Map({members}))\n"
    )
    (row,) = rows(file)
    untold = ("leader", "record_offset", "timestamp_ms", "protocol", "assigned", "kept", "moved", "is_storm")
    assert [row[name] for name in untold] == [None] * len(untold)
    assert [member["member_id"] for member in row["joined"]] == ["a", "b"]


def test_verify_adds_its_columns_and_counts_in_words(mixed: Path) -> None:
    result = run(mixed, "--verify")
    found = list(json_lines(result.stdout))
    assert list(found[0])[-4:] == [column.name for column in VERIFIED_COLUMNS]
    assert {row["verdict"] for row in found} == {"same", "not reproducible", None}
    assert "assignments: 40 same, 6 not reproducible" in result.stderr
    assert all(row["reason"] for row in found if row["verdict"] == "not reproducible")


def test_filters_choose_rows_but_not_what_is_known(mixed: Path) -> None:
    """How many partitions a topic has is seen in all groups, also where one is asked for."""
    whole = {row["record_offset"]: row for row in rows(mixed, "--verify") if row["group"] == "metrics-sticky-9"}
    assert {row["record_offset"]: row for row in rows(mixed, "--verify", "-g", "metrics-sticky-9")} == whole


def test_every_format(mixed: Path, tmp_path: Path) -> None:
    expected = rows(mixed, "--verify")
    assert json.loads(run(mixed, "--verify", "-o", "json").stdout) == expected
    table = list(csv.DictReader(io.StringIO(run(mixed, "--verify", "-o", "csv").stdout)))
    assert [row["record_offset"] for row in table] == [str(row["record_offset"]) for row in expected]
    assert [json.loads(row["joined"]) for row in table] == [row["joined"] for row in expected]
    file = tmp_path / "timelines.parquet"
    assert run(mixed, "--verify", "-o", "parquet", "--to", file).exit_code == 0
    read = pq.read_table(file).to_pylist()
    assert [row["stickiness"] for row in read] == [row["stickiness"] for row in expected]
    assert [json.loads(row["moved"]) for row in read] == [row["moved"] for row in expected]
    shown = run(mixed, "-o", "table", "-g", "workers-*").stdout
    assert "2 never synced" in shown


def test_bounds_end_the_timeline(mixed: Path) -> None:
    assert [row["generation"] for row in rows(mixed, "-g", "vote-a-*", "--until-offset", "0:13")] == [1, 2, 3]


def test_topics_of_newer_groups_are_named(recording: Recording, tmp_path: Path) -> None:
    folder = recording("kafka-4.3-modern-groups")
    ids = {row["id"]: name for name, row in read_json(folder / "recording.json")["topics"].items() if "id" in row}
    (tmp_path / "ids.json").write_text(json.dumps(ids))
    found = rows(folder / "log", "--topic-ids", tmp_path / "ids.json", "-g", "uniform-*")
    assert {move["topic"] for row in found for move in row["moved"]} <= set(ids.values())
    assert {row["type"] for row in found} == {"consumer"}


@pytest.mark.parametrize(
    "arguments",
    [
        ("--storm", "x"),
        ("--storm", "1/5m"),
        ("--storm", "5"),
        ("--topic-partitions", "t"),
        ("--topic-partitions", "=3"),
    ],
)
def test_wrong_options_are_told(arguments: tuple[str, str], mixed: Path) -> None:
    assert run(mixed, *arguments).exit_code == 2


def write_log(folder: Path, *groups: str, behind: bytes = b"") -> Path:
    directory = folder / "__consumer_offsets-4"
    directory.mkdir(parents=True)
    pairs = [encode_coordinator_record(classic_group(group, [member_row("m", "t")])) for group in groups]
    records = [Record(offset=at, timestamp_ms=-1, key=key, value=value) for at, (key, value) in enumerate(pairs)]
    (directory / "00000000000000000000.log").write_bytes((build_batch(records) if records else b"") + behind)
    return folder


def test_a_log_without_groups_has_no_rows(tmp_path: Path) -> None:
    assert rows(write_log(tmp_path)) == []
    assert run(tmp_path, "--verify").exit_code == 0


def test_damage_is_told_and_the_rest_is_read(tmp_path: Path) -> None:
    folder = write_log(tmp_path, "g", behind=b"\1" * 200)
    result = run(folder)
    assert result.exit_code == 3
    (row,) = json_lines(result.stdout)
    assert (row["group"], row["timestamp_ms"], row["skipped"]) == ("g", None, [1, 2])
    assert run(folder, "--strict").exit_code == 1


def test_a_group_name_that_is_not_utf8_stands_beside_its_bytes(tmp_path: Path) -> None:
    (row,) = rows(write_log(tmp_path, MalformedString(b"\xffg")))
    assert (row["group"], row["group_base64"]) == ("\ufffdg", "/2c=")
    assert "�g" in run(tmp_path, "-o", "table").stdout
