"""``offsets-log repair``."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from offsets_log.broker.hand_over import README
from offsets_log.disk.folder import CHECKPOINTS
from offsets_log.messages.internal_topics import OFFSETS_TOPIC
from offsets_log_cli.main import main
from tests.builders import LogBuilder
from tests.waiting import PATIENCE_S

TOPIC_ID = "HCJdBQf7Qv-GGlbH64RFkg"


def offsets_log(*words: str | Path) -> Result:
    return CliRunner().invoke(main, [*map(str, words)])


def rows(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.fixture
def damaged(recording: Callable[[str], Path], tmp_path: Path) -> Path:
    """A log with a broken byte in one partition, and a torn tail in another."""
    folder = tmp_path / "data"
    shutil.copytree(recording("kafka-4.3-mixed") / "log", folder)
    third = folder / f"{OFFSETS_TOPIC}-3" / f"{0:020}.log"
    data = bytearray(third.read_bytes())
    data[9000] ^= 0xFF
    third.write_bytes(data)
    second = folder / f"{OFFSETS_TOPIC}-2" / f"{0:020}.log"
    second.write_bytes(second.read_bytes() + data[:100])
    return folder


def test_a_damaged_log_becomes_folders(damaged: Path, tmp_path: Path) -> None:
    out, kept = tmp_path / "out", tmp_path / "kept.jsonl"
    result = offsets_log("repair", damaged, "--to", out, "--quarantine", kept, "-o", "jsonl", "--topic-id", TOPIC_ID)
    assert result.exit_code == 3, result.output
    found = {row["offsets_partition"]: row for row in rows(result)}
    assert {partition: [one["reason"] for one in row["left_out"]] for partition, row in found.items()} == {
        0: [], 1: [], 2: ["torn tail"], 3: ["wrong checksum"],
    }  # fmt: skip
    assert found[3]["left_out"][0]["bytes"] == 520
    assert {path.name for path in out.iterdir()} == {
        README, *CHECKPOINTS.values(), *(f"{OFFSETS_TOPIC}-{partition}" for partition in range(4)),
    }  # fmt: skip
    assert (out / README).read_text().count("\n") < 60, "it is read at night"
    assert [json.loads(line)["position"] for line in kept.read_text().splitlines()] == [3996, 8624]
    assert (out / f"{OFFSETS_TOPIC}-0" / "partition.metadata").read_bytes().endswith(b"topic_id: " + TOPIC_ID.encode())
    assert "1 corrupt" in result.stderr
    before, after = (offsets_log("compact", path, "-o", "jsonl", "-q").stdout for path in (damaged, out))
    assert before == after
    assert offsets_log("check", out, "--loads-on", "4.3.0,3.9.1").exit_code == 0
    again = offsets_log("repair", out, "--to", tmp_path / "again", "-q")
    assert again.exit_code == 0
    for path in out.rglob("*.*"):
        if path.is_file() and path.name != README:
            assert (tmp_path / "again" / path.relative_to(out)).read_bytes() == path.read_bytes()


def test_records_that_end_a_load_are_left_out_if_that_is_asked_for(
    recording: Callable[[str], Path], tmp_path: Path
) -> None:
    log = recording("kafka-4.3-mixed") / "log"
    assert offsets_log("check", log, "--loads-on", "3.7.2-java").exit_code == 3
    words = ("repair", log, "--to", tmp_path / "out", "-o", "jsonl", "--drop-unloadable", "3.7.2-java")
    result = offsets_log(*words)
    assert result.exit_code == 3
    assert {one["reason"] for row in rows(result) for one in row["left_out"]} == {"ends the load"}
    assert "left out, ends the load" in result.stderr
    assert "corrupt" not in result.stderr
    assert "; 0 loads fail," in offsets_log("check", tmp_path / "out", "--loads-on", "3.7.2-java").stderr


def test_a_dry_run_tells_and_writes_nothing(damaged: Path, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    assert "wrong checksum 1 (520 bytes)" in offsets_log("repair", damaged, "--dry-run", "-o", "table").stdout
    assert offsets_log("repair", damaged, "--dry-run", "-o", "csv").stdout.startswith("offsets_partition,segments,")
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    "words",
    [(), ("--to", "x", "--dry-run"), ("--to", "x", "--topic-id", "short"), ("--to", "x", "--topic-id", "A" * 22),
     ("--to", "x", "--drop-unloadable", "3.10")],
)  # fmt: skip
def test_wrong_usage(words: tuple[str, ...], damaged: Path) -> None:
    assert offsets_log("repair", damaged, *words).exit_code == 2


def test_an_output_inside_of_an_input_is_refused(damaged: Path) -> None:
    result = offsets_log("repair", damaged, "--to", damaged / "out")
    assert result.exit_code == 1
    assert not (damaged / "out").exists()


def test_swapped_segments_are_chosen_as_by_all_other_commands(damaged: Path, tmp_path: Path) -> None:
    """``records:L2``: a finished swap replaces what it covers; beside a .cleaned file it does not."""
    folder = damaged / f"{OFFSETS_TOPIC}-1"
    log = folder / f"{0:020}.log"
    (folder / f"{0:020}.log.swap").write_bytes(log.read_bytes()[:9000])
    (folder / f"{0:020}.log.deleted").write_bytes(log.read_bytes())
    for suffix in ("swap", "cleaned"):
        if suffix == "cleaned":
            (folder / f"{0:020}.log.cleaned").write_bytes(b"")
        told = [offsets_log(*words, folder, "-o", "jsonl").stderr for words in (["compact"], ["repair", "--dry-run"])]
        notes = [{line for line in words.splitlines() if "is read:" in line or "left out in" in line} for words in told]
        assert notes[0] == notes[1]
        assert bool(notes[0]) == (suffix == "swap")
        out = tmp_path / suffix
        offsets_log("repair", folder, "--to", out)
        before, after = (offsets_log("compact", path, "-o", "jsonl", "-q").stdout for path in (folder, out))
        assert before == after
    assert (tmp_path / "cleaned" / folder.name / log.name).read_bytes() == log.read_bytes()
    assert len((tmp_path / "swap" / folder.name / log.name).read_bytes()) < 9000


def test_records_that_cannot_be_read_stay_and_are_told(tmp_path: Path) -> None:
    builder = LogBuilder().commit(1).add((b"\x00\x01\x00", b"\x00\x03")).commit(2)
    folder = tmp_path / "data" / f"{OFFSETS_TOPIC}-0"
    folder.mkdir(parents=True)
    (folder / f"{0:020}.log").write_bytes(b"".join(builder.batches))
    result = offsets_log("repair", folder, "--to", tmp_path / "out", "-o", "jsonl")
    (row,) = rows(result)
    assert (row["undecodable"], row["left_out"], row["changed_offsets"]) == (1, [], None)
    assert result.exit_code == 3
    assert f"stays, though it cannot be read: {OFFSETS_TOPIC}-0/{0:020}.log" in result.stderr
    assert "1 record with a key or value that cannot be read stay" in result.stderr
    result = offsets_log("repair", folder, "--dry-run", "-o", "jsonl", "--drop-unloadable", "4.3.0")
    (row,) = rows(result)
    assert (row["undecodable"], row["changed_offsets"], row["changed_groups"]) == (0, 0, 0)
    assert "all answers are as before" in result.stderr
    assert "1 partition: 2 batches of" in result.stderr
    assert "1 piece of" in result.stderr


def test_missing_segments_are_told_as_a_gap(recording: Callable[[str], Path], tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(recording("kafka-4.3-cleaned") / "log-before", data)
    _, lost, *_ = sorted((data / f"{OFFSETS_TOPIC}-0").glob("*.log"))
    lost.unlink()
    told = [offsets_log(command, data, "-p", 0, *more) for command, *more in (("compact",), ("repair", "--dry-run"))]
    (row,) = rows(told[1])
    assert row["missing"] == 68
    assert [result.exit_code for result in told] == [3, 3]
    gaps = [[line for line in result.stderr.splitlines() if line.startswith("missing:")] for result in told]
    assert gaps[0] == gaps[1]
    assert "offsets 66 to 133 are missing" in gaps[0][0]
    assert rows(offsets_log("repair", data, "-p", 1, "--dry-run", "-o", "jsonl"))[0]["missing"] == 0


def test_what_is_left_out_is_kept_in_a_new_file_beside_the_inputs(damaged: Path, tmp_path: Path) -> None:
    there, out = tmp_path / "there.jsonl", tmp_path / "out"
    there.write_text("mine")
    inside = damaged / "kept.jsonl"
    lone = damaged / f"{OFFSETS_TOPIC}-3" / f"{0:020}.log"
    for status, words, why in (
        (1, (damaged, "--to", out, "--quarantine", there), "it exists, and is not overwritten"),
        (1, (damaged, "--to", out, "--quarantine", inside), "which is an input"),
        (1, (lone, "--to", out, "--quarantine", lone.with_name("kept")), "which is an input"),
        (2, (damaged, "--dry-run", "--quarantine", tmp_path / "new"), "--dry-run writes nothing"),
        (2, (damaged, "--to", out, "--quarantine", out / "kept"), "inside of --to"),
    ):
        before = sorted(tmp_path.rglob("*"))
        result = offsets_log("repair", *words)
        assert result.exit_code == status, result.output
        assert why in result.stderr
        assert sorted(tmp_path.rglob("*")) == before
    assert there.read_text() == "mine"


def test_answers_that_are_others_than_before_are_named(tmp_path: Path) -> None:
    """The load of 3.0 ends at a value of a version that it does not know; without it the older offset counts."""
    builder = LogBuilder().commit(1, version=3).commit(2, version=4)
    folder = tmp_path / f"{OFFSETS_TOPIC}-0"
    folder.mkdir()
    (folder / f"{0:020}.log").write_bytes(b"".join(builder.batches))
    result = offsets_log("repair", folder, "--to", tmp_path / "out", "-o", "jsonl", "--drop-unloadable", "3.0.0")
    (row,) = rows(result)
    assert (row["changed_offsets"], row["changed_groups"]) == (1, 0)
    assert "1 offset and 0 groups differ from before, because records were left out: " in result.stderr


def test_a_segment_keeps_the_time_that_an_archive_tells(damaged: Path, tmp_path: Path) -> None:
    archive = tmp_path / "data.tar"
    for log in damaged.rglob("*.log"):
        os.utime(log, ns=(1_700_000_000_123_000_000, 1_700_000_000_123_000_000))
    with tarfile.open(archive, "w", format=tarfile.PAX_FORMAT) as tar:
        tar.add(damaged, "data")
    for command in ("repair", "clean"):
        offsets_log(command, archive, "--to", tmp_path / command, "-q")
        made = list((tmp_path / command).rglob("*.log"))
        assert made
        assert {path.stat().st_mtime_ns // 1_000_000 for path in made} == {1_700_000_000_123}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_ended_leaves_no_output(number: int, recording: Callable[[str], Path], tmp_path: Path) -> None:
    """Of one that is killed something is left beside, under another name, and the next one says so."""
    data, kept = recording("kafka-4.3-mixed") / "log", tmp_path / "kept.jsonl"
    shutil.copytree(data, tmp_path / "data")
    wait = (
        "import time; from offsets_log.actions.partition_folders import PartitionFolders; "
        "from offsets_log_cli.main import run; "
        "PartitionFolders.write_beside = lambda self, account: (print('made', flush=True), time.sleep(3600)); run()"
    )
    words = ("repair", tmp_path / "data", "--to", tmp_path / "out", "--quarantine", kept, "-o", "csv")
    command = [sys.executable, "-c", wait, *map(str, words)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"made\n"
        assert not (tmp_path / "out").exists()
        process.send_signal(number)
        assert process.wait(PATIENCE_S) != 0
    left = [path for path in tmp_path.iterdir() if path.name.endswith(".tmp")]
    assert not (tmp_path / "out").exists()
    assert not kept.exists()
    assert bool(left) == (number == signal.SIGKILL)
    result = offsets_log("repair", tmp_path / "data", "--to", tmp_path / "out")
    assert (tmp_path / "out" / README).exists()
    assert ("a run that was killed" in result.stderr) == (number == signal.SIGKILL)
