"""What lies below the log start offset is deleted: it is told, and a broker does not read it (``L-2``, ``J-1``)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from offsets_log.log_format.completeness import below_start
from offsets_log.log_format.partition_log import Checkpoints, PartitionLog, Segment
from tests.cli.runs import batch_of, commit, rows, run
from tests.conftest import NEVER, BulkFrom

COMMANDS = ("compact", "groups", "info", "expire", "rebuild", "top", "transactions", "decode", "history", "check")
"""All that read records; `history` needs a group."""


def started_at(folder: Path, partition: int, offset: int) -> Path:
    (folder / "log-start-offset-checkpoint").write_text(f"0\n1\n__consumer_offsets {partition} {offset}\n")
    return folder


@pytest.fixture
def inside(recording: Callable[[str], Path], tmp_path: Path) -> Path:
    """A broker's copy, whose partition 3 was deleted up to offset 100 of its only segment."""
    shutil.copytree(recording("kafka-4.3-mixed") / "log", tmp_path / "data")
    (tmp_path / "data" / ".kafka_cleanshutdown").touch()
    return started_at(tmp_path / "data", 3, 100)


@pytest.fixture(params=[0, NEVER], ids=["bulk", "small"])
def engine(request: pytest.FixtureRequest, bulk_from: BulkFrom) -> None:
    bulk_from(request.param)


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_that_reads_what_is_deleted_tells_it(command: str, inside: Path) -> None:
    result = run(command, inside, *(("-g", "*") if command == "history" else ()))
    assert result.exit_code == 3
    assert result.stderr.count("97 records of offsets partition 3 lie below its log start offset 100: deleted") == 1


def test_a_broker_does_not_read_it(inside: Path) -> None:
    served = rows("compact", inside, "--as-broker")
    read = rows("compact", inside, status=3)
    assert (len(served), len(read)) == (110, 129)
    below = [row for row in read if row["offsets_partition"] == 3 and row["record_offset"] < 100]
    assert len(below) == 19
    assert [row for row in read if row not in below] == served


def test_other_partitions_and_both_copies_of_a_comparison(inside: Path, recording: Callable[[str], Path]) -> None:
    assert run("compact", inside, "-p", "0", "-p", "1").exit_code == 0
    for copies in ((inside, recording("kafka-4.3-mixed") / "log"), (recording("kafka-4.3-mixed") / "log", inside)):
        result = run("diff", *copies)
        assert (result.exit_code, result.stderr.count("below its log start offset 100")) == (3, 1)


@pytest.mark.usefixtures("engine")
def test_check_counts_a_load_from_the_log_start(inside: Path) -> None:
    found = [row for row in rows("check", inside, "--loads-on", "4.3.0", status=3) if row["offsets_partition"] == 3]
    (deleted,) = (row for row in found if row["rule"] == "L-2")
    (load,) = (row for row in found if row["rule"] == "J-1")
    assert (deleted["severity"], deleted["detail"]) == ("doubt", {"log_start_offset": 100, "records": 97})
    assert load["detail"]["records"] == 157 - 97


def test_rescue_offers_it_as_doubtful(inside: Path, tmp_path: Path) -> None:
    result = run("rescue", inside, "--to", tmp_path / "to")
    assert result.exit_code == 3
    assert "deleted, so that no broker serves them, as doubtful.jsonl says: 19 of" in result.stderr
    marked = [json.loads(line) for line in (tmp_path / "to" / "doubtful.jsonl").read_text().splitlines()]
    assert {(row["below_log_start_offset"], row["missing_until"]) for row in marked} == {(100, None)}
    assert len(marked) == 19
    assert run("rescue", inside, "--as-broker", "--to", tmp_path / "served").exit_code == 0
    assert not (tmp_path / "served" / "doubtful.jsonl").exists()


@pytest.mark.parametrize("command", ["clean", "repair"])
def test_what_follows_the_log_start_itself_ends_well(command: str, inside: Path) -> None:
    result = run(command, inside, "--dry-run")
    assert (result.exit_code, "below its log start offset 100" in result.stderr) == (0, True)


def test_a_log_that_begins_at_its_log_start_lacks_nothing_to_a_broker(
    recording: Callable[[str], Path], tmp_path: Path
) -> None:
    shutil.copytree(recording("kafka-4.3-cleaned") / "log-before", tmp_path / "data")
    (tmp_path / "data" / "__consumer_offsets-1" / f"{0:020}.log").unlink()
    data = started_at(tmp_path / "data", 1, 172)
    for command in ("compact", "info", "groups", "check"):
        result = run(command, data)
        words = "offsets partition 1 begins at its log start offset 172: what was below is deleted"
        assert (result.exit_code, result.stderr.count(words)) == (3 if command == "check" else 0, 1), command
    (note,) = (row for row in rows("check", data, status=3) if row["rule"] == "L-2")
    assert (note["severity"], note["offsets_partition"]) == ("doubt", 1)
    rescued = run("rescue", data, "--to", tmp_path / "to").stderr
    assert "files before it are missing" not in rescued
    assert rescued.count("begins at its log start offset 172") == 1


def test_the_batch_that_the_log_start_lies_in_is_read() -> None:
    batches = [batch_of(commit("a"), commit("b")), batch_of(commit("c"), commit("d"), first=2)]
    for start, records in ((1, 0), (2, 2), (3, 2), (4, 4), (9, 4)):
        checkpoints = Checkpoints(log_start_offset=start)
        log = PartitionLog(0, (Segment(f"{0:020}.log", 0, b"".join(batches)),), checkpoints=checkpoints)
        found = below_start(log)
        assert found is not None
        assert (found.records, found.batches, found.size_bytes) == (
            records, records // 2, sum(map(len, batches[: records // 2])),
        )  # fmt: skip


@pytest.mark.parametrize("within", [0, 1, 2])
def test_rescue_doubts_what_no_broker_reads(within: int, recording: Callable[[str], Path], tmp_path: Path) -> None:
    """Wherever in its batch the log start lies: the whole batch is read (``L-2``)."""
    shutil.copytree(recording("kafka-4.3-mixed") / "log", tmp_path / "data")
    served = rows("compact", tmp_path / "data", "-p", "3")
    records = rows("decode", tmp_path / "data", "-p", "3")
    base = {row["record_offset"]: row["batch_base_offset"] for row in records}
    last = max(row["record_offset"] for row in served if row["record_offset"] - base[row["record_offset"]] == 2)
    data = started_at(tmp_path / "data", 3, base[last] + within)
    asked = ("-p", "3", "--to")
    run("rescue", data, *asked, tmp_path / "to")
    run("rescue", data, "--as-broker", *asked, tmp_path / "served")
    offsets = [json.loads((tmp_path / name / "plan.json").read_text())["offsets"] for name in ("to", "served")]
    marked = [json.loads(line) for line in (tmp_path / "to" / "doubtful.jsonl").read_text().splitlines()]
    keys = [[(row["group"], row["topic"], row["partition"]) for row in found] for found in (marked, *offsets)]
    assert sorted(keys[0] + keys[2]) == sorted(keys[1])
    assert max(row["record_offset"] for row in marked) < base[last]
