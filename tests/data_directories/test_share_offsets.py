"""Where share groups are, as the commands tell it, beside what brokers and Kafka's tools said."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

import offsets_log as ol
from offsets_log.data_directory.share_groups import SharePartition
from offsets_log.data_directory.share_offsets import (
    STATE_PARTITION_METADATA,
    ShareGroupTopics,
    group_share_offsets,
)
from offsets_log.log_format.primitives import Uuid
from offsets_log.messages.transaction_log import TRANSACTION_STATES
from offsets_log.restore import share_groups
from offsets_log_cli.main import main
from tests.conftest import BulkFrom
from tests.data_directories.copies import Recorded, data_directories, dumps
from tests.data_directories.test_decisions import rows, run
from tests.library.answers import as_told

WORDS = re.compile(r"^(\S+)\s+(\S+)\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s*$", re.MULTILINE)
STATES = ("__transaction_state", "__share_group_state")


def described(folder: Path) -> list[tuple[str, str, int, int, int, int]]:
    """What ``kafka-share-groups --describe --offsets`` printed: group, topic, partition, leader epoch, start, lag."""
    text = (folder / "words" / "running" / "share-groups-offsets.txt").read_text()
    found = [(m[1], m[2], *(int(number) for number in m.groups()[2:])) for m in WORDS.finditer(text)]
    assert found
    return sorted(found)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["kafka-4.3-one", "kafka-4.3-dynamic"])
def test_share_offsets_and_their_lag_are_those_that_the_broker_describes(name: str, recorded: Recorded) -> None:
    folder = recorded(name)
    copy = str(folder / "copies" / "running")
    found = rows("compact", copy, "--table", "share-offsets")
    columns = ("group", "topic", "partition", "leader_epoch", "start_offset", "lag")
    assert [tuple(row[column] for column in columns) for row in found] == described(folder)
    assert {row["status"] for row in found} == {"initialized"}
    for row in found:
        assert row["acknowledged"] + row["archived"] == row["delivery_complete_count"]
    with ol.open(copy) as opened:
        assert as_told(opened.share_offsets()) == found
    document = json.loads(run("rebuild", copy, "-o", "json").stdout)
    assert document["share_offsets"] == found
    without = rows("compact", copy, "--table", "share-offsets", "--no-lag", "-g", "s-all")
    assert without == [row | {"lag": None} for row in found if row["group"] == "s-all"]


def test_groups_counts_the_offsets_of_share_groups_and_their_lag(recorded: Recorded) -> None:
    folder = recorded("kafka-4.3-one")
    found = {row["group"]: row for row in rows("groups", str(folder / "copies" / "running")) if row["type"] == "share"}
    expected: dict[str, tuple[int, int, int]] = {}
    for group, _, _, _, _, lag in described(folder):
        count, total, most = expected.get(group, (0, 0, 0))
        expected[group] = count + 1, total + lag, max(most, lag)
    told = {group: (row["offsets"], row["lag"], row["max_lag"]) for group, row in found.items()}
    assert told == expected
    assert {row["partitions_without_lag"] for row in found.values()} == {0}


def test_both_engines_tell_the_same_of_share_groups(recorded: Recorded, bulk_from: BulkFrom) -> None:
    copy = str(recorded("kafka-4.3-one") / "copies" / "running")
    expected = rows("compact", copy, "--table", "share-offsets")
    bulk_from(0)
    assert rows("compact", copy, "--table", "share-offsets") == expected


def test_rescue_writes_where_share_groups_start_and_what_they_are_given_twice(
    recorded: Recorded, tmp_path: Path
) -> None:
    folder = recorded("kafka-4.3-one")
    to = tmp_path / "rescued"
    run("rescue", str(folder / "copies" / "running"), "--to", str(to))
    starts = {
        (group, topic, int(partition)): offset
        for group, topics in json.loads((to / "share-groups/offsets.json").read_text()).items()
        for topic, partitions in topics.items()
        for partition, offset in partitions.items()
    }
    assert starts == {row[:3]: row[4] for row in described(folder)}
    twice = [json.loads(line) for line in (to / "share-groups/delivered-twice.jsonl").read_text().splitlines()]
    states = rows("compact", str(folder / "copies" / "running"), "--table", "share-offsets")
    assert sum(row["last_offset"] - row["first_offset"] + 1 for row in twice) == sum(
        row["delivery_complete_count"] for row in states
    )
    script = (to / "share-groups/run.sh").read_text()
    assert script.count(" --topic=") == len(starts)
    groups = sorted({row[0] for row in starts})
    assert re.findall(r'--group=(\S+) --from-file "\$here"/(\S+)', script) == [(name, f"{name}.csv") for name in groups]
    told = {
        (name, topic, int(partition)): int(offset)
        for name in groups
        for topic, partition, offset in csv.reader((to / f"share-groups/{name}.csv").read_text().splitlines())
    }
    assert told == starts
    assert "--group=s-half --topic=orders:0 --to-datetime 2026-11-22T" in script
    assert (to / "share-groups/left-out.jsonl").read_text() == ""
    assert "140 records were done above it" in (to / "DETAILS.txt").read_text()


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({}, "--to-datetime 1970-01-01T00:00:01.005"),
        ({"start_offset": 30}, "--to-latest"),
        ({"start_offset": 3}, "--to-earliest"),
        ({"start_offset": 4, "log_start_offset": None}, "--to-datetime 1970-01-01T00:00:01.005"),
        ({"start_offset": 29, "log_end_offset": None}, "--to-datetime 1970-01-01T00:00:01.005"),
        ({"start_offset": 4}, "--to-datetime 1970-01-01T00:00:01.005"),
        ({"start_offset": 29}, "--to-datetime 1970-01-01T00:00:01.005"),
        ({"start_timestamp_ms": 0}, "--to-datetime 1970-01-01T00:00:00.000"),
        ({"start_timestamp_ms": -1}, None),
        ({"start_timestamp_ms": None}, None),
        ({"start_timestamp_ms": 1 << 62}, None),
    ],
)
def test_the_tool_is_given_the_end_the_beginning_or_a_time(changes: dict[str, Any], place: str | None) -> None:
    row = plan_row(**changes)
    script = "".join(dict(share_groups.files([row]))["share-groups/run.sh"])
    assert (f"--group='a b' --topic=t:0 {place}\n" in script) == (place is not None)
    assert ("does not tell when record" in script) == (place is None)


FAKE_TOOL = """#!/bin/sh
case $1 in --help) echo "{options}"; exit 1 ;; esac
printf '%s|' "$@" >> "$0.asked"
printf '\\nGROUP TOPIC\\n{said}\\n'
"""


@pytest.mark.parametrize(("options", "is_exact"), [("--to-offset --from-file", True), ("--to-datetime", False)])
@pytest.mark.parametrize(("said", "status"), [("g t", 0), ("Error: nothing was set", 1)])
def test_the_script_uses_files_where_the_tool_takes_them(
    options: str, is_exact: bool, said: str, status: int, tmp_path: Path
) -> None:
    """``K44-53``: an earlier tool takes times, a partition in a call."""
    rows = [plan_row(group=group, partition=number) for group in ("a\0b", "c/d 'e") for number in (0, 1)]
    for name, pieces in share_groups.files(rows):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("".join(pieces))
    tool = tmp_path / "tool"
    tool.write_text(FAKE_TOOL.format(options=options, said=said))
    tool.chmod(0o755)
    script, env = tmp_path / "share-groups" / "run.sh", {**os.environ, "KAFKA_SHARE_GROUPS": str(tool)}
    ran = subprocess.run(["sh", str(script), "--execute"], env=env, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (status, "")
    asked = Path(f"{tool}.asked").read_text()
    file = tmp_path / "share-groups" / "c%2Fd%20%27e.csv"
    assert file.read_text() == "t,0,5\nt,1,5\n"
    beginning = "--reset-offsets|--execute|--group=c/d 'e|"
    places = [f"--topic=t:{number}|--to-datetime|1970-01-01T00:00:01.005|" for number in (0, 1)]
    assert asked == "".join(beginning + place for place in ([f"--from-file|{file}|"] if is_exact else places))


def plan_row(**changes: Any) -> dict[str, Any]:
    """A share offset of a plan."""
    told = {
        "group": "a b", "topic": "t", "partition": 0, "topic_id": "x", "start_offset": 5, "status": "initialized",
        "log_start_offset": 3, "log_end_offset": 30, "start_timestamp_ms": 1005, "redelivered": [],
    }  # fmt: skip
    return told | changes


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"status": "orphan"}, "left over"),
        ({"topic": None}, "topic of id x"),
        ({"start_offset": None}, "no start offset was set"),
        ({"group_base64": "/w=="}, "not UTF-8"),
        ({"topic": "a b"}, "no broker can have"),
        ({"partition": -1}, "no broker can have"),
    ],
)
def test_what_no_client_can_set_is_left_out_with_the_reason(changes: dict[str, Any], reason: str) -> None:
    files = {name: "".join(pieces) for name, pieces in share_groups.files([plan_row(), plan_row(**changes)])}
    assert json.loads(files["share-groups/offsets.json"]) == {"a b": {"t": {"0": 5}}}
    (left,) = files["share-groups/left-out.jsonl"].splitlines()
    assert reason in json.loads(left)["reason"]


def test_a_state_that_no_group_has_is_an_orphan_if_all_groups_were_read(recorded: Recorded, tmp_path: Path) -> None:
    """Without the offsets partition of a share group nothing says that its states are wanted."""
    (data,) = data_directories(recorded("kafka-4.3-one"), "running")
    found = {row["group"]: row for row in rows("groups", str(data))}
    home = found["s-all"]["offsets_partition"]
    assert home == 7  # the last one, so that the others look like all there are
    to = Path(shutil.copytree(data, tmp_path / "data", ignore=shutil.ignore_patterns(f"__consumer_offsets-{home}")))
    told = {row["group"]: row["status"] for row in rows("compact", str(to), "--table", "share-offsets", "-p", "3")}
    assert told == {"s-all": None, "s-half": "initialized"}
    for name in ("replication-offset-checkpoint", "recovery-point-offset-checkpoint"):
        (to / name).unlink()
    result = run("compact", str(to), "--table", "share-offsets", "-o", "jsonl")
    told = {row["group"]: row["status"] for row in map(json.loads, result.stdout.splitlines())}
    assert told == {"s-all": "orphan", "s-half": "initialized"}
    assert "2 share states are orphans" in result.stderr


def test_statuses_of_states() -> None:
    topics = ShareGroupTopics()
    one, two, three = Uuid(b"1" * 16), Uuid(b"2" * 16), Uuid(b"3" * 16)
    value = {
        "initialized_topics": [{"topic_id": one, "topic_name": "a", "partitions": [0]}],
        "initializing_topics": [{"topic_id": two, "topic_name": "b", "partitions": [1]}],
        "deleting_topics": [{"topic_id": three, "topic_name": "c"}],
    }
    topics.take(SimpleNamespace(record_type=STATE_PARTITION_METADATA, group="g", value=value))
    asked = {(topic_id, partition): None for topic_id in (one, two, three) for partition in (0, 1)}
    found = {key: topics.of(SharePartition("g", *key), is_whole=False) for key in asked}
    assert list(found.values()) == ["initialized", "orphan", "orphan", "initializing", "deleting", "deleting"]
    assert topics.names == {one: "a", two: "b", three: "c"}


def test_orphans_and_places_that_were_not_set_do_not_count_for_a_group() -> None:
    told = [
        plan_row(lag=9, status="orphan"),
        plan_row(lag=3),
        plan_row(lag=None, start_offset=None),
        plan_row(lag=None),
    ]
    assert group_share_offsets(told, with_lag=True) == {
        "a b": {"offsets": 2, "lag": 3, "max_lag": 3, "partitions_without_lag": 1}
    }
    assert group_share_offsets(told, with_lag=False) == {"a b": {"offsets": 2}}


def _named(line: str) -> str:
    """A line of 4.3's tool as that of 4.4 prints it (``K44-54``)."""
    return re.sub(r'(?<="transactionStatus":)(\d+)', lambda found: f'"{TRANSACTION_STATES[int(found[1])]}"', line)


@pytest.mark.parametrize("topic", STATES)
def test_records_of_other_coordinators_are_decoded_as_kafka_dump_log_prints_them(
    topic: str, recorded: Recorded
) -> None:
    """Every line of every partition, the file's own name aside."""
    seen = 0
    for file, text in dumps(recorded("kafka-4.3-one"), "running", topic):
        expected = [_named(line) for line in text.splitlines()[1:]]
        lines = run("decode", str(file), "--as", "dump-log", "-q").stdout.splitlines()
        assert lines[1:] == expected or (not lines and len(expected) <= 1)
        found = rows("decode", str(file.parent))
        assert len(found) == sum(line.startswith("|") for line in expected)
        for row, line in zip(found, [line for line in expected if line.startswith("|")], strict=True):
            assert _named(json.dumps(row["value"], separators=(",", ":"))) in line
        seen += len(found)
    (data,) = data_directories(recorded("kafka-4.3-one"), "running")
    of_directory = rows("decode", str(data), "--internal-topic", topic)
    assert len(of_directory) == seen > 10
    assert rows("decode", str(data), "--internal-topic", topic, "-p", "2") == [
        row for row in of_directory if row["offsets_partition"] == 2
    ]


@pytest.mark.parametrize("arguments", [("-g", "x"), ("-o", "parquet", "--to", "x"), ("--as-partition", "3")])
def test_what_is_of_the_offsets_topic_only_is_refused(arguments: tuple[str, ...], recorded: Recorded) -> None:
    (data,) = data_directories(recorded("kafka-4.3-one"), "running")
    result = CliRunner().invoke(main, ["decode", str(data / "__transaction_state-0"), *arguments])
    assert result.exit_code == 2


def test_a_damaged_record_of_another_topic_is_told_with_its_name(recorded: Recorded, tmp_path: Path) -> None:
    (data,) = data_directories(recorded("kafka-4.3-one"), "running")
    to = Path(shutil.copytree(data / "__transaction_state-1", tmp_path / "__transaction_state-1"))
    file = to / "00000000000000000000.log"
    raw = bytearray(file.read_bytes())
    raw[100] ^= 1
    file.write_bytes(raw)
    result = CliRunner().invoke(main, ["decode", str(to), "-o", "jsonl"])
    assert result.exit_code == 3
    assert "corrupt" in result.stderr
    assert len(result.stdout.splitlines()) == 7


def test_a_data_directory_without_the_topic_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "__consumer_offsets-0").mkdir()
    result = CliRunner().invoke(main, ["decode", str(tmp_path), "--internal-topic", "__share_group_state"])
    assert result.exit_code == 1
    assert "no segment of __share_group_state was found" in result.stderr
