"""``offsets-log repair``."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from cli.main import main
from offsets_log.broker.hand_over import README
from offsets_log.disk.folder import CHECKPOINTS, OFFSETS_TOPIC

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
     ("--to", "x", "--drop-unloadable", "9.9")],
)  # fmt: skip
def test_wrong_usage(words: tuple[str, ...], damaged: Path) -> None:
    assert offsets_log("repair", damaged, *words).exit_code == 2


def test_an_output_inside_of_an_input_is_refused(damaged: Path) -> None:
    result = offsets_log("repair", damaged, "--to", damaged / "out")
    assert result.exit_code == 1
    assert not (damaged / "out").exists()
