"""What was damaged, missing or doubtful, as a table."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import offsets_log as ol
from tests.cli.runs import batch_of, commit, run
from tests.conftest import NEVER, BulkFrom, json_lines


def batch(base_offset: int, *groups: str) -> bytes:
    return batch_of(*(commit(group) for group in groups), first=base_offset)


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    """Record offsets 2 and 3 are lost with a segment, and the last batch is damaged."""
    folder = tmp_path / "__consumer_offsets-7"
    folder.mkdir()
    last = bytearray(batch(5, "g2"))
    last[-1] ^= 1
    (folder / f"{0:020}.log").write_bytes(batch(0, "g1", "g2"))
    (folder / f"{4:020}.log").write_bytes(batch(4, "g3") + last)
    return folder


@pytest.mark.parametrize("least_bytes", [0, NEVER])
def test_every_piece_is_a_row(partition: Path, bulk_from: BulkFrom, least_bytes: int) -> None:
    bulk_from(least_bytes)
    with ol.open(partition) as copy:
        problems = copy.problems
        rows = problems.rows()
        assert {row["offsets_partition"] for row in rows} == {7}
        found = [(row["kind"], row["record_offset"]) for row in rows]
        assert ("missing", 2) in found
        assert ("corrupt", 5) in found
        assert not problems.is_complete
        assert copy.sql("select count(*) as n from problems").rows() == [{"n": len(rows)}]
        doubtful = {row["group"]: row["doubtful"] for row in copy.offsets().rows()}
        assert doubtful.keys() == {"g1", "g2", "g3"}
        assert None not in doubtful.values()
        assert {row["doubtful"] for row in copy.groups().rows()} == {
            "records of its offsets partition, up to offset 5, are lost"
        }


def test_what_follows_the_last_whole_batch_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "__consumer_offsets-7"
    folder.mkdir()
    (folder / f"{0:020}.log").write_bytes(batch(0, "g1") + batch(1, "g2")[:-3])
    with ol.open(folder) as copy:
        assert [(row["kind"], row["offsets_partition"]) for row in copy.problems.rows()] == [("tail", 7)]


def test_a_sound_copy_has_none(tmp_path: Path) -> None:
    folder = tmp_path / "__consumer_offsets-7"
    folder.mkdir()
    (folder / f"{0:020}.log").write_bytes(batch(0, "g1", "g2"))
    assert run("compact", folder).exit_code == 0
    with ol.open(folder) as copy:
        assert copy.problems.rows() == []
        assert copy.problems.is_complete


@pytest.mark.parametrize(
    "name", ["kafka-0.10.2", "kafka-1.1", "kafka-2.8", "kafka-4.3-mixed", "kafka-4.4-mixed", "random-java"]
)
def test_a_check_has_the_rows_of_the_command(name: str, recording: Callable[[str], Path]) -> None:
    log = recording(name) / "log"
    told = list(json_lines(run("check", log, "-o", "jsonl").stdout))
    with ol.open(log) as copy:
        rows = [dict(row) for row in copy.check().rows()]
    for row in rows:
        row["detail"] = None if row["detail"] is None else json.loads(row["detail"])
    assert rows == told
