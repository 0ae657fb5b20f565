"""What is missing from a log's beginning, in files that a broker marked for deletion, by a policy that deletes."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path

import pytest

from tests.cli.runs import rows, run

PACKED = Path(__file__).with_name("deleted-segments-beside.tar.gz")
POLICY = "the topic's cleanup.policy is compact,delete, with retention.ms=4000, segment.ms=3000"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    with tarfile.open(PACKED) as packed:
        packed.extractall(tmp_path, filter="data")
    return tmp_path / "data"


@pytest.mark.parametrize("command", ["groups", "compact", "check"])
def test_the_files_and_the_policy_are_named(command: str, data: Path) -> None:
    result = run(command, data)
    assert result.exit_code == 3
    assert POLICY in result.stderr
    place = f"{data}/__consumer_offsets-1"
    assert "00000000000000000000.log.deleted to 00000000000000000012.log.deleted (6 files)" in result.stderr
    assert (
        f"hold record offsets 0 to 13: offsets-log offsets {place}/*.log.deleted {place}/*.log reads" in result.stderr
    )
    assert "nothing is deleted" not in result.stderr
    assert "nothing explains it" not in result.stderr


def test_the_command_reads_them(data: Path) -> None:
    found = rows("compact", f"{data}/__consumer_offsets-1/*.log.deleted", f"{data}/__consumer_offsets-1/*.log")
    of_nightly = [row for row in found if row["group"] == "nightly"]
    assert {(row["partition"], row["committed_offset"]) for row in of_nightly} == {(0, 10), (1, 11)}


def test_a_rescue_writes_it_down(data: Path, tmp_path: Path) -> None:
    run("rescue", data, "--to", tmp_path / "out")
    readme = (tmp_path / "out" / "README.txt").read_text()
    assert POLICY in readme
    assert "hold record offsets 0 to 13" in readme


def test_files_alone_are_named_without_metadata(data: Path) -> None:
    shutil.rmtree(data / "__cluster_metadata-0")
    result = run("groups", data)
    assert "hold record offsets 0 to 13" in result.stderr
    assert POLICY not in result.stderr


def test_a_policy_is_told_without_the_files(data: Path) -> None:
    for file in data.glob("*/*.deleted"):
        file.unlink()
    result = run("groups", data)
    assert f"the first segment begins at 14 instead of 0; {POLICY}" in result.stderr
    assert ".log.deleted" not in result.stderr


def test_what_the_checkpoint_allows_is_told_all_the_same(data: Path) -> None:
    """The broker wrote down where its log begins now, so that nothing counts as missing: but records are gone."""
    (data / "log-start-offset-checkpoint").write_text("0\n2\n__consumer_offsets 0 5\n__consumer_offsets 1 14\n")
    result = run("groups", data)
    assert result.exit_code == 0
    assert "offsets partition 1: the log begins at 14: " in result.stderr
    assert POLICY in result.stderr


def test_an_archive_is_to_be_unpacked(data: Path, tmp_path: Path) -> None:
    shutil.make_archive(str(tmp_path / "copy"), "tar", tmp_path, "data")
    result = run("groups", tmp_path / "copy.tar")
    assert (
        f"unpack {tmp_path}/copy.tar, then offsets-log offsets data/__consumer_offsets-1/*.log.deleted" in result.stderr
    )


def test_remains_of_a_cleaning_are_nobodys_beginning(data: Path) -> None:
    """A segment that the cleaner replaced is marked, too; what it held is in the one that took its place."""
    shutil.rmtree(data / "__consumer_offsets-0")
    log = data / "__consumer_offsets-1"
    for file in log.glob("*.log.deleted"):
        file.rename(file.with_suffix(""))
    shutil.copy(log / f"{4:020}.log", log / f"{4:020}.log.deleted")
    result = run("groups", data)
    assert ".deleted" not in result.stderr
