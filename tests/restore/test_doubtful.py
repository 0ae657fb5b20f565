"""Offsets of a rescue that a lost commit may have replaced: named, and all of them as rows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from offsets_log.restore.doubts import NAMED, of_doubtful
from tests.cli.runs import batch_of, commit, run

TOLD = "offsets that may be older than a commit that is missing or could not be read, as doubtful.jsonl says: "


def batch(base_offset: int, *groups: str) -> bytes:
    return batch_of(*(commit(group) for group in groups), first=base_offset)


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    """Record offsets 2 and 3 are lost with a segment; g3 committed later, and g2 again."""
    folder = tmp_path / "data" / "__consumer_offsets-0"
    folder.mkdir(parents=True)
    (folder / f"{0:020}.log").write_bytes(batch(0, "g1", "g2"))
    (folder / f"{4:020}.log").write_bytes(batch(4, "g3") + batch(5, "g2"))
    return folder


def rescued(folder: Path) -> tuple[str, list[tuple[str, int, int]]]:
    """Return what is said, and of each doubtful offset the group, where it is, and until where something is lost."""
    to = folder.parent.parent / "rescued"
    result = run("rescue", folder.parent, "--to", to)
    assert result.exit_code == 3
    rows = [json.loads(line) for line in (to / "doubtful.jsonl").read_text().splitlines()]
    plan = json.loads((to / "plan.json").read_text())
    assert plan["doubtful"] == rows
    said = [line for line in result.stderr.splitlines() if line.startswith(TOLD)]
    assert [f"- {line}" for line in said] == [
        line for line in (to / "README.txt").read_text().splitlines() if "may be older" in line and line[0] == "-"
    ]
    return said[0].removeprefix(TOLD), [(row["group"], row["record_offset"], row["missing_until"]) for row in rows]


def test_offsets_before_what_is_missing(partition: Path) -> None:
    assert rescued(partition) == ('1 of 1 group: "g1"', [("g1", 0, 3)])


def test_offsets_before_what_cannot_be_read(partition: Path) -> None:
    segment = partition / f"{4:020}.log"
    content = bytearray(segment.read_bytes())
    content[-1] ^= 1
    segment.write_bytes(content)
    expected = [("g1", 0, 5), ("g2", 1, 5), ("g3", 4, 5)]
    assert rescued(partition) == ('3 of 3 groups: "g1", "g2", "g3"', expected)


@pytest.mark.parametrize("byte", [0x00, 0x7F, 0xFF])
def test_a_header_that_is_overwritten_hides_no_more_than_its_batch(partition: Path, byte: int) -> None:
    """The header tells no offset then; the batch that follows does."""
    (partition / f"{4:020}.log").unlink()
    segment = partition / f"{0:020}.log"
    first, lost, later = batch(0, "g1", "g2"), batch(2, "g1"), batch(3, "g3")
    segment.write_bytes(first + bytes([byte]) * 40 + lost[40:] + later)
    assert rescued(partition) == ('2 of 2 groups: "g1", "g2"', [("g1", 0, 2), ("g2", 1, 2)])


def test_doubts_of_single_partitions_are_last(partition: Path) -> None:
    """Standard error shows the first ones only."""
    rescued(partition)
    doubts = json.loads((partition.parent.parent / "rescued" / "plan.json").read_text())["doubts"]
    assert [
        next(i for i, doubt in enumerate(doubts) if words in doubt) for words in ("older", "partitions", "2 to 3")
    ] == [0, 1, 2]


def test_of_other_partitions_and_whole_logs_no_offset_is_doubtful(partition: Path, tmp_path: Path) -> None:
    other = partition.with_name("__consumer_offsets-1")
    other.mkdir()
    (other / f"{0:020}.log").write_bytes(batch(0, "other"))
    assert rescued(partition)[1] == [("g1", 0, 3)]
    result = run("rescue", other, "--to", tmp_path / "whole")
    assert not (tmp_path / "whole" / "doubtful.jsonl").exists()
    assert "doubtful.jsonl" not in result.stderr + (tmp_path / "whole" / "README.txt").read_text()


def test_of_many_groups_the_first_are_named() -> None:
    [told] = of_doubtful([{"group": f"g{number}"} for number in range(NAMED + 2)])
    assert told.startswith(f'{TOLD}{NAMED + 2} of {NAMED + 2} groups: "g0", ')
    assert told.endswith(" and 2 more")
