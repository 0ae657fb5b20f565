"""Files of a plan for other tools: the broker's answers in each, hostile names, whole or not at all."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote

import pytest

from offsets_log.restore.directory import rescue_files
from tests.builders import LogBuilder
from tests.conftest import json_lines, read_json, read_json_lines
from tests.restore.plans import plan_of
from tests.restore.rescued import MIXED, rescue, run, write_log

Key = tuple[str, str, int]


def of_csv(folder: Path) -> dict[Key, int]:
    found = {}
    for path in folder.glob("*.csv"):
        if path.name != "all-groups.csv":
            for topic, partition, offset in csv.reader(path.read_text().splitlines()):
                found[unquote(path.stem), topic, int(partition)] = int(offset)
    return found


def of_csv_with_groups(folder: Path) -> dict[Key, int]:
    with (folder / "all-groups.csv").open(newline="") as file:
        return {(group, topic, int(partition)): int(offset) for group, topic, partition, offset in csv.reader(file)}


def of_rpk(folder: Path) -> dict[Key, int]:
    found = {}
    for path in folder.iterdir():
        for line in path.read_text().splitlines():
            topic, partition, offset = line.split(" ")
            found[unquote(path.name.removesuffix(".txt")), topic, int(partition)] = int(offset)
    return found


def of_kaf(folder: Path) -> dict[Key, int]:
    return {
        (unquote(path.parent.name), unquote(path.stem), int(partition)): offset
        for path in folder.glob("*/*.json")
        for partition, offset in read_json(path).items()
    }


def of_spark(folder: Path) -> dict[Key, int]:
    return {
        (unquote(path.name.removesuffix(".json")), topic, int(partition)): offset
        for path in folder.iterdir()
        for topic, partitions in read_json(path).items()
        for partition, offset in partitions.items()
    }


def of_client_libraries(folder: Path) -> dict[Key, int]:
    return {
        (group, topic, int(partition)): value["offset"]
        for group, topics in read_json(folder / "offsets.json").items()
        for topic, partitions in topics.items()
        for partition, value in partitions.items()
    }


@pytest.mark.parametrize(
    ("tool", "read"),
    [
        ("kafka-consumer-groups", of_csv),
        ("kafka-consumer-groups", of_csv_with_groups),
        ("rpk", of_rpk),
        ("kaf", of_kaf),
        ("spark", of_spark),
        ("client-libraries", of_client_libraries),
    ],
)
def test_every_file_has_the_brokers_answers_but_for_what_is_left_out(
    recording: Callable[[str], Path], tmp_path: Path, tool: str, read: Callable[[Path], dict[Key, int]]
) -> None:
    folder = recording(MIXED)
    out = tmp_path / "out"
    rescue(out, folder / "log")
    answers = {
        (row["group"], row["topic"], row["partition"]): row["committed_offset"]
        for row in read_json(folder / "answers" / "restart.json")["offsets"]
    }
    missing = {
        (row["group"], row["topic"], row["partition"])
        for row in read_json_lines(out / "left-out.jsonl")
        if row["tool"] == tool
    }
    assert len(missing) < 5
    assert read(out / tool) == {key: offset for key, offset in answers.items() if key not in missing}


def test_no_command_commits_an_old_clusters_leader_epochs(recording: Callable[[str], Path], tmp_path: Path) -> None:
    plan = rescue(tmp_path, recording(MIXED) / "log")
    assert any(row["leader_epoch"] for row in plan["offsets"])
    for path in tmp_path.rglob("*"):
        if path.is_file() and path.name not in ("plan.json", "left-out.jsonl", "README.txt", "DETAILS.txt"):
            assert "epoch" not in path.read_text().lower(), path
    assert "waits for that epoch" in (tmp_path / "DETAILS.txt").read_text()


def test_hostile_names_stay_in_the_directory(tmp_path: Path) -> None:
    groups = [
        "..",
        ".",
        "",
        "../../x",
        "/etc/passwd",
        "all-groups",
        "a/b",
        "n" * 5000,
        "é" * 3000,
        "\n",
        "\0",
        "con",
        "run",
    ]
    log = LogBuilder()
    for number, group in enumerate(groups):
        log.commit(number, group=group).commit(1, group=group, topic="../t").commit(1, group=group, topic="..")
    write_log(tmp_path / "in" / "log", {0: log})
    plan = rescue(tmp_path / "in" / "out", tmp_path / "in" / "log", "--partitions", 1)
    assert sorted({row["group"] for row in plan["offsets"]}) == sorted(groups)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in"]
    assert sorted(path.name for path in (tmp_path / "in").iterdir()) == ["log", "out"]
    assert len(list((tmp_path / "in" / "out" / "kaf").iterdir())) == len(groups) - 2
    reasons = {row["reason"] for row in read_json_lines(tmp_path / "in" / "out" / "left-out.jsonl")}
    assert "no broker can have a topic of this name" in reasons


def test_names_that_are_not_utf8_are_left_out_with_their_bytes(tmp_path: Path) -> None:
    """`replay:B-7`: the broker reads U+FFFD, and serves the offset under that name."""
    log = LogBuilder()
    log.add(
        (b"\x00\x01\x00\x02g\xff\x00\x01t\x00\x00\x00\x00", b"\x00\x03" + bytes(7) + b"\x05" + b"\xff" * 4 + bytes(10))
    )
    write_log(tmp_path / "log", {0: log})
    plan = rescue(tmp_path / "out", tmp_path / "log", "--partitions", 1)
    assert [(row["group"], row["group_base64"]) for row in plan["offsets"]] == [("g\ufffd", "Z/8=")]
    rows = list(json_lines((tmp_path / "out" / "left-out.jsonl").read_text()))
    assert {row["group_base64"] for row in rows} == {"Z/8="}
    assert len(rows) == 6


def test_the_directory_appears_whole_or_not_at_all(recording: Callable[[str], Path], tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.mkdir()
    (full / "mine").touch()
    result = run(recording(MIXED) / "log", "--to", full)
    assert result.exit_code == 1
    assert "this exists and is not an empty directory" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["full"]
    result = run(tmp_path / "full" / "mine", "--to", tmp_path / "out")
    assert result.exit_code == 1
    assert [path.name for path in tmp_path.iterdir()] == ["full"]
    assert run(recording(MIXED) / "log").exit_code == 2


@pytest.mark.parametrize("part", ["translation", "doubtful", "left_out", "target"])
def test_what_a_plan_tells_of_offsets_has_a_file_of_its_own(part: str) -> None:
    """One that it tells nothing of has none, but for offsets that are left out."""
    rows = [{"group": "g", "partition": 1}, {"group": "h", "partition": 2}]
    parts = {} if part == "target" else {part: rows}
    found = {name: list(text) for name, text in rescue_files(plan_of(**parts), rows if part == "target" else None)}
    optional = {"translation.jsonl", "doubtful.jsonl", "target.jsonl", "left-out.jsonl"}
    name = part.replace("_", "-") + ".jsonl"
    assert found.keys() & optional == {name, "left-out.jsonl"}
    assert found[name] == ['{"group":"g","partition":1}\n', '{"group":"h","partition":2}\n']
