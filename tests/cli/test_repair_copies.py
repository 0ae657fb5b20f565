"""``offsets-log repair A B``: copies of a partition that are damaged at different places."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from offsets_log.broker.hand_over import README
from offsets_log.messages.internal_topics import OFFSETS_TOPIC
from offsets_log_cli.main import main
from tests.builders import LogBuilder
from tests.disk.logs import batch, damaged, name, partition, segment

FIRST = f"{0:020}.log"


def repair(*words: str | Path) -> Result:
    return CliRunner().invoke(main, ["repair", *map(str, words)])


def rows(result: Result) -> dict[int, dict[str, Any]]:
    return {row["offsets_partition"]: row for row in map(json.loads, result.stdout.splitlines())}


def files(folder: Path) -> dict[str, bytes]:
    paths = (path for path in folder.rglob("*") if path.is_file() and path.name != README)
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def flip(data: Path, number: int, *positions: int) -> None:
    file = data / f"{OFFSETS_TOPIC}-{number}" / FIRST
    raw = bytearray(file.read_bytes())
    for position in positions:
        raw[position] ^= 0xFF
    file.write_bytes(raw)


@pytest.fixture
def copies(recording: Callable[[str], Path], tmp_path: Path) -> tuple[Path, Path, Path]:
    """A data directory, and two copies of it with broken bytes at places of their own."""
    whole, one, other = (tmp_path / word for word in ("whole", "one", "other"))
    for folder in (whole, one, other):
        shutil.copytree(recording("kafka-4.3-mixed") / "log", folder)
    flip(one, 3, 9000, 15000)
    flip(other, 3, 2000)
    flip(other, 1, 5000)
    cut = one / f"{OFFSETS_TOPIC}-2" / FIRST
    cut.write_bytes(cut.read_bytes()[:-700])
    return whole, one, other


def test_copies_with_damage_of_their_own_become_what_both_were(copies: tuple[Path, Path, Path], tmp_path: Path) -> None:
    whole, *damaged_ones = copies
    repair(whole, "--to", tmp_path / "due")
    for turn, given in enumerate((damaged_ones, damaged_ones[::-1])):
        out = tmp_path / f"out-{turn}"
        result = repair(*given, "--to", out, "-o", "jsonl")
        assert result.exit_code == 0, result.output
        assert files(out) == files(tmp_path / "due")
        found = rows(result)
        assert [row["left_out"] for row in found.values()] == [[]] * 4
        assert found[0]["taken"] == []
        for one in found[3]["taken"]:
            assert (one["batches"], one["records"] > 0, one["checksum"] > 0) == (1, True, True)
            assert one["file"].startswith(f"{one['copy']}/")
        (told,) = (line for line in result.stderr.splitlines() if line.startswith("of several copies of a partition, "))
        assert any(f"{read}, completed from {by}, is read for" in told for read, by in (given, given[::-1])), told
        assert "the batch of offset" in result.stderr
    assert {Path(one["copy"]).parent.name for one in found[3]["taken"]} < {"one", "other"}


def test_a_dry_run_tells_what_would_be_taken(copies: tuple[Path, Path, Path], tmp_path: Path) -> None:
    _, one, other = copies
    before = sorted(tmp_path.rglob("*"))
    result = repair(one, other, "--dry-run", "-o", "table", "-p", "3")
    assert result.exit_code == 0, result.output
    assert "taken" in result.stdout
    assert f"of {one}/{OFFSETS_TOPIC}-3" in result.stdout or f"of {other}/{OFFSETS_TOPIC}-3" in result.stdout
    assert " of other copies" in result.stderr
    assert sorted(tmp_path.rglob("*")) == before
    assert "taken" not in repair(one, "--dry-run", "-o", "table", "-p", "3").stdout


def test_what_is_damaged_in_all_copies_is_left_out_and_told(copies: tuple[Path, Path, Path], tmp_path: Path) -> None:
    """With the file and the position of the chosen copy, whatever was put together before it."""
    _, one, other = copies
    flip(other, 3, 15000)
    alone = rows(repair(one, "--dry-run", "-o", "jsonl", "-p", "3"))[3]
    kept = tmp_path / "kept.jsonl"
    result = repair(one, other, "--to", tmp_path / "out", "-o", "jsonl", "-p", "3", "--quarantine", kept)
    assert result.exit_code == 3
    row = rows(result)[3]
    assert [(one["reason"], one["pieces"]) for one in alone["left_out"]] == [("wrong checksum", 2)]
    assert [(one["reason"], one["pieces"]) for one in row["left_out"]] == [("wrong checksum", 1)]
    (piece,) = map(json.loads, kept.read_text().splitlines())
    raw = Path(piece["file"]).read_bytes()
    assert piece["position"] <= 15000 < piece["position"] + row["left_out"][0]["bytes"] <= len(raw)
    assert len(row["taken"]) == 1


def test_copies_that_went_apart_are_never_mixed(tmp_path: Path) -> None:
    """After an unclean election: the same offsets, other leader epochs."""
    common = segment(0, 1, 2)
    old = common + batch(3, leader_epoch=1) + batch(4, leader_epoch=1)
    new = common + damaged(3) + batch(4, leader_epoch=2, value=b"w") + batch(5, leader_epoch=2)
    for folder, content in (("a", old), ("b", new)):
        partition(tmp_path / folder, 3, {name(0): content})
    for order in ("a", "b"), ("b", "a"):
        out = tmp_path / f"out-{order[0]}"
        result = repair(*(tmp_path / folder for folder in order), "--to", out, "-o", "jsonl")
        assert result.exit_code == 3, result.output
        left = f"nothing is taken of {tmp_path}/a/{OFFSETS_TOPIC}-3: "
        assert f"{left}from offset 4 on one has leader epoch 1 and the other 2" in result.stderr
        assert result.stderr.count("position ") >= 2
        assert (out / f"{OFFSETS_TOPIC}-3" / FIRST).read_bytes() == new.replace(damaged(3), b"")
        assert rows(result)[3]["taken"] == []


def test_copies_of_other_logs_are_refused(tmp_path: Path) -> None:
    for folder, value in (("a", b"v"), ("b", b"w")):
        partition(tmp_path / folder, 3, {name(0): segment(0, 1, 2, value=value) + damaged(3)})
    result = repair(tmp_path / "a", tmp_path / "b", "--to", tmp_path / "out")
    assert result.exit_code == 1
    assert "they have no batch in common" in result.stderr
    assert "give one of both alone" in result.stderr
    assert not (tmp_path / "out").exists()


def test_other_records_at_one_offset_keep_copies_apart(tmp_path: Path) -> None:
    partition(tmp_path / "a", 3, {name(0): segment(0, 1) + damaged(2) + segment(3, 4)})
    partition(tmp_path / "b", 3, {name(0): segment(0, 1, 2) + batch(3, value=b"x")})
    result = repair(tmp_path / "a", tmp_path / "b", "--to", tmp_path / "out", "-o", "jsonl")
    assert result.exit_code == 3
    assert "from offset 3 on they hold other records (position" in result.stderr
    assert [one["reason"] for one in rows(result)[3]["left_out"]] == ["wrong checksum"]


def test_a_third_copy_has_what_both_others_lack(tmp_path: Path) -> None:
    whole = LogBuilder().commit(1).commit(2).commit(3).commit(4).commit(5).batches
    for folder, lost in (("a", (1, 3)), ("b", (3,)), ("c", (0, 4))):
        raws = [bytes(len(raw)) if number in lost else raw for number, raw in enumerate(whole)]
        partition(tmp_path / folder, 3, {name(0): b"".join(raws)})
    result = repair(*(tmp_path / folder for folder in "abc"), "--to", tmp_path / "out", "-o", "jsonl")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "out" / f"{OFFSETS_TOPIC}-3" / FIRST).read_bytes() == b"".join(whole)
