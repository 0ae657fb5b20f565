"""What lies beside segments: which files matter, and whether all offsets partitions are there."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from offsets_log.disk.beside import Beside
from offsets_log.disk.folder import CHECKPOINTS, Folder, all_checkpoints, broken_checkpoints, matters_in
from offsets_log.disk.packed_partitions import PackedPartition
from offsets_log.disk.reader import open_logs
from offsets_log.errors import InputError
from offsets_log.log_format.partition_log import PartitionLog, Segment
from tests.disk.logs import name, partition, segment


@pytest.mark.parametrize(
    ("numbers", "told", "expected"),
    [([0], [], True), ([0, 1, 2], [], True), ([0, 2], [], False), ([1], [], False), ([0, 1], [0, 1, 2], False)],
)
def test_all_offsets_partitions_are_there(numbers: list[int], told: list[int], expected: bool, tmp_path: Path) -> None:
    for number in numbers:
        partition(tmp_path, number, {name(0): segment(0)})
    lines = "".join(f"__consumer_offsets {number} 1\n" for number in told)
    if told:
        (tmp_path / "replication-offset-checkpoint").write_text(f"0\n{len(told)}\n{lines}")
    with open_logs([str(tmp_path)]) as disk:
        assert Beside(disk).has_all_partitions is expected


@pytest.mark.parametrize(
    ("directory", "file", "matters"),
    [
        ("__consumer_offsets-3", name(0), True),
        ("__consumer_offsets-3", f"{0:020}.index", True),
        ("__consumer_offsets-3", "partition.metadata", True),
        ("__consumer_offsets-3", "notes.txt", False),
        ("backup", name(0), True),
        ("backup", f"{0:020}.index", False),
        ("backup", "partition.metadata", False),
    ],
)
def test_of_an_archive_files_beside_segments_matter_in_offsets_partitions(
    directory: str, file: str, matters: bool
) -> None:
    assert matters_in(directory, file) == matters


def test_a_partition_in_an_archive_is_all_of_its_log_and_files_that_are_named_are_a_choice(tmp_path: Path) -> None:
    """What is missing around segments is told only where all there was is here."""
    directory = partition(tmp_path / "data", 3, {name(5): segment(5), name(6): segment(6)})
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        tar.add(tmp_path / "data", "data")
    for given, is_whole in ((tmp_path / "a.tar", True), (directory, True), (directory / name(6), False)):
        with open_logs([str(given)]) as disk:
            assert (disk.logs[0].selection is None) is is_whole


@pytest.mark.parametrize("file", CHECKPOINTS.values())
def test_each_checkpoint_is_told_of_that_says_nothing(file: str) -> None:
    """Whether the others are there or not (``CL-48``)."""
    (said,) = broken_checkpoints(
        Folder("data/__consumer_offsets-0/", "__consumer_offsets-0", above={file: lambda: b"1"})
    )
    assert said.startswith(f"data/{file} is broken")


def test_a_checkpoint_that_cannot_be_read_says_nothing() -> None:
    def refuse() -> bytes:
        raise InputError("cannot be read: Permission denied")

    above = dict.fromkeys(CHECKPOINTS.values(), refuse)
    said = list(broken_checkpoints(Folder("data/__consumer_offsets-0/", "__consumer_offsets-0", above=above)))
    assert said == [f"data/{file} says nothing: it cannot be read: Permission denied" for file in above]
    assert all_checkpoints(above) == {}


def test_a_copy_is_of_the_broker_that_its_directory_names_else_of_the_directory(tmp_path: Path) -> None:
    for place in ("one", "other", "unnamed"):
        partition(tmp_path / place, {"one": 1, "other": 2, "unnamed": 3}[place], {name(0): segment(0)})
    for place in ("one", "other"):
        (tmp_path / place / "meta.properties").write_text("version=1\nnode.id=4\ncluster.id=c\n")
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        tar.add(tmp_path / "unnamed" / "__consumer_offsets-3", "__consumer_offsets-4")
    places = [str(tmp_path / place) for place in ("one", "other", "unnamed", "a.tar")]
    with open_logs(places) as disk:
        homes = [Beside(disk).home_of(log) for log in disk.logs]
        alone = PartitionLog(0, (Segment(name(0), 0, b""),))
        assert Beside(disk).home_of(alone) == ""
    assert homes[0] == homes[1]
    assert homes[2:] == places[2:]
    assert homes[0] not in ("", *places)


@pytest.mark.parametrize("asked", [(), (7,), (8,)])
def test_of_an_absent_partition_the_most_that_a_directory_tells_is_missing(
    asked: tuple[int, ...], tmp_path: Path
) -> None:
    for place, end in (("a", 5), ("b", 9), ("c", 7)):
        partition(tmp_path / place, 3, {name(0): segment(0)})
        (tmp_path / place / "replication-offset-checkpoint").write_text(
            f"0\n2\n__consumer_offsets 3 1\n__consumer_offsets 7 {end}\n"
        )
    with open_logs([str(tmp_path)], partitions=(3, *asked) if asked else ()) as disk:
        told = [(one.offsets_partition, one.first_offset, one.last_offset) for one in disk.absent]
    assert told == ([] if asked == (8,) else [(7, 0, 8)])


def test_files_of_a_packed_partition_are_read_wherever_they_lie() -> None:
    folder = Folder(
        "a.tar!t-0/", "t-0", files={"partition.metadata": lambda: b"one"}, beside={"x.index": lambda: b"two"}
    )
    packed = PackedPartition("t", 0, folder)
    assert [packed.read(file) for file in ("partition.metadata", "x.index", "none")] == [b"one", b"two", None]
    assert packed.names() == ["partition.metadata", "x.index"]


@pytest.mark.parametrize(
    ("kept_from", "dated_from"),
    [({}, 0), ({0: 3}, 3), ({5: 7}, 7), ({0: 3, 5: 7}, 7), ({9: 11}, 11), ({0: 3, 9: 11}, 11)],
)
def test_a_packed_log_tells_times_from_where_all_of_it_is_there(kept_from: dict[int, int], dated_from: int) -> None:
    """Of a segment of which only the end was kept the index finds nothing."""
    files = {name(base): lambda: b"" for base in (0, 5, 9)} | {name(2, ".deleted"): lambda: b"", "x.log": lambda: b""}
    beside = {f"{base:020}.index": lambda: b"index" for base in (0, 5)}
    folder = Folder(
        "a!", "t-0", files=files, beside=beside, kept_from={name(base): of for base, of in kept_from.items()}
    )
    packed = PackedPartition("t", 0, folder)
    assert (packed.base_offsets(), packed.dated_from) == ([0, 5, 9], dated_from)
    for base in (0, 5, 9):
        with packed.open_index(base) as index:
            assert index.size_bytes == (5 if base in (0, 5) and base not in kept_from else 0)
