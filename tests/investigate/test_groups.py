"""`groups`: kinds, states and counts against brokers' answers; last activity against Kafka's own dump of the log."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from offsets_log.investigate.groups import bash_word
from offsets_log_cli.main import main
from tests.builders import TIME, LogBuilder, member, record_bytes
from tests.conftest import json_lines, read_json
from tests.dump_log import DumpedRecord, read_dump
from tests.replay.test_compact_recordings import Recording, profile_of

Json = dict[str, Any]
DAY_MS = 86_400_000


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["groups", *map(str, arguments)], catch_exceptions=False)


def rows(*arguments: object, status: int = 0) -> list[Json]:
    result = run(*arguments, "-o", "jsonl")
    assert result.exit_code == status, result.stderr
    return list(json_lines(result.stdout))


def folder_of(log: LogBuilder, folder: Path, partition: int = 0) -> Path:
    directory = folder / f"__consumer_offsets-{partition}"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "00000000000000000000.log").write_bytes(b"".join(log.batches))
    return folder


@pytest.mark.parametrize(
    "name", ["kafka-4.3-mixed", "kafka-4.3-modern-groups", "kafka-3.9-classic", "kafka-4.3-expired"]
)
def test_kinds_states_and_numbers_are_those_of_the_brokers_answers(name: str, recording: Recording) -> None:
    folder = recording(name)
    profile = profile_of(read_json(folder / "recording.json"))
    answer = read_json(folder / "answers" / "restart.json")
    found = {row["group"]: row for row in rows(folder / "log", "--profile", profile.name)}
    expected = {group["group"]: group for group in answer["groups"] if group["type"] is not None}
    offsets = [row["group"] for row in answer["offsets"]]
    assert found.keys() == expected.keys()
    for group, row in found.items():
        assert (row["type"], row["state"]) == (expected[group]["type"], expected[group]["state"]), group
        assert row["members"] == len(expected[group]["members"]), group
        assert row["offsets"] == offsets.count(group), group


@pytest.mark.parametrize("name", ["kafka-4.3-mixed", "kafka-4.3-modern-groups"])
def test_last_activity_is_the_newest_record_with_a_value_that_kafkas_dump_shows(
    name: str, recording: Recording
) -> None:
    folder = recording(name)
    newest: dict[str, int] = {}
    for dump in (folder / "answers" / "dump-log").glob("?.txt.gz"):
        for entry in read_dump(dump):
            if isinstance(entry, DumpedRecord) and entry.key and entry.payload not in (None, "<DELETE>", "null"):
                key = json.loads(entry.key)["data"]
                group = key.get("group", key.get("groupId"))
                newest[group] = max(newest.get(group, 0), entry.facts["timestamp_ms"])  # type: ignore[type-var, arg-type]
    found = rows(folder / "log")
    assert len(found) > 10
    for row in found:
        assert row["last_activity_timestamp_ms"] == newest[row["group"]], row["group"]


def test_stale_lists_what_a_broker_deletes_and_nothing_else(tmp_path: Path) -> None:
    log = LogBuilder().commit(1, group="old").commit(1, group="pending").commit(1, group="pending", producer=7)
    log.group(member("m"), group="alive").commit(1, group="it's\nold").commit(None, group="cleaned", partition=1)
    log.commit(1, group="young", commit_timestamp=TIME - 60 * DAY_MS)  # the record is young, whatever the client says
    folder = folder_of(log, tmp_path)
    last = TIME + log.offset - 1
    arguments = (folder, "--now", last + 30 * DAY_MS, "--stale", "30d")
    found = rows(*arguments)
    assert [row["group"] for row in found] == ["it's\nold", "old"]
    assert [row["command"] for row in found] == [
        "kafka-consumer-groups.sh --bootstrap-server localhost:9092 --delete --group $'it\\'s\\x0aold'",
        "kafka-consumer-groups.sh --bootstrap-server localhost:9092 --delete --group old",
    ]
    assert "2 groups are as old but have members or open transactions" in run(*arguments).stderr
    assert "a delete would cancel its open transactions" in run(*arguments).stderr
    table = run(*arguments, "-o", "table", "--bootstrap-server", "b:1").stdout.split("\n")
    assert table[-2] == "kafka-consumer-groups.sh --bootstrap-server b:1 --delete --group $'it\\'s\\x0aold' --group old"
    assert rows(folder, "--now", last + 30 * DAY_MS, "--stale", "31d") == []


@pytest.mark.parametrize(("given", "shown"), [("30ms", "30 ms"), ("30d", "30d"), ("720h", "30d")])
def test_stale_says_how_long_was_meant(given: str, shown: str, tmp_path: Path) -> None:
    folder = folder_of(LogBuilder().commit(1, group="g"), tmp_path)
    result = run(folder, "--now", TIME + 40 * DAY_MS, "--stale", given, "-o", "jsonl")
    assert f"1 of 1 group wrote nothing for {shown} and can be deleted at" in result.stderr


def test_ages_count_to_the_end_of_the_copy_and_that_is_said(tmp_path: Path) -> None:
    """Else groups of a cluster that works well are stale in a copy that is as old as what is asked for."""
    folder = folder_of(LogBuilder().commit(1, group="g"), tmp_path)
    told = run(folder, "--stale", "30d").stderr
    assert "ages are counted to the end of the copy, " in told
    assert "0 of 1 group" in told
    assert "a group may have written since then" in told
    (row,) = rows(folder)
    assert row["commit_age_ms"] == 0
    by_clock = run(folder, "--stale", "30d", "--now", "now").stderr
    assert "1 of 1 group" in by_clock
    assert "ages are counted" not in by_clock


def test_of_a_copy_of_this_minute_nothing_is_said_of_ages(tmp_path: Path) -> None:
    now_ms = int(time.time() * 1000)
    metadata = {"protocol_type": "", "generation": 0, "protocol": None, "leader": None, "members": []}
    log = LogBuilder().add(record_bytes(2, {"group": "g"}, metadata, 2), times=(now_ms,))
    folder = folder_of(log, tmp_path)
    assert "ages" not in run(folder).stderr


def test_stale_takes_no_topics(tmp_path: Path) -> None:
    """They would hide open transactions of other topics, and choose no groups."""
    result = run(folder_of(LogBuilder().commit(1, group="g"), tmp_path), "--stale", "30d", "-t", "t")
    assert result.exit_code == 2
    assert "leave out -t" in result.stderr


def test_damage_is_no_silence(tmp_path: Path) -> None:
    folder = folder_of(LogBuilder().commit(1, group="g"), tmp_path)
    file = folder / "__consumer_offsets-0" / "00000000000000000000.log"
    later = LogBuilder().skip(1).commit(2, group="g")
    file.write_bytes(
        file.read_bytes() + later.batches[0].replace(b"\0\1g", b"\0\1x") + LogBuilder().skip(2).commit(1).batches[0]
    )
    result = run(folder, "--now", TIME + 40 * DAY_MS, "--stale", "30d", "-o", "jsonl")
    assert result.exit_code == 3
    assert "may be newer than what is listed" in result.stderr


AWKWARD = [
    "",
    "a b",
    "it's",
    "$(x)",
    "`x`",
    'q"q',
    "\\",
    "a\nb",
    "tab\t",
    "\u202eright",
    "é😀",
    "-x",
    "*",
    "'\n\\'",
    "\x7f",
    "\ufffd",
]


@pytest.mark.parametrize("name", AWKWARD)
def test_a_shell_reads_the_very_name(name: str) -> None:
    done = subprocess.run(
        ["bash", "-c", f"printf %s {bash_word(name)}"], capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"}
    )
    assert done.stdout.decode() == name
    assert "\n" not in bash_word(name)


def test_commits_later_than_now_are_told(tmp_path: Path) -> None:
    folder = folder_of(LogBuilder().commit(1, group="g").commit(1, group="h"), tmp_path)
    assert "the last commits of 2 groups are later than" in run(folder, "--now", str(TIME - 1)).stderr
    assert "later than" not in run(folder, "--now", str(TIME + 1000)).stderr
