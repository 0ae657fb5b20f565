"""Files whose paths do not tell their partition: pieces of one log are joined, anything else is refused."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest

from tests.cli.runs import batch_of, commit, rows, run

FIRST = [batch_of(commit("g", offset=5), first=0), batch_of(commit("h", offset=6), first=1)]
SECOND = [batch_of(commit("g", offset=7), first=2), batch_of(commit("i", offset=9), first=3)]
THIRD = [batch_of(commit("i", offset=8), first=4)]
OTHER = [batch_of(commit("else", offset=1), first=0)]


def written(folder: Path, **files: list[bytes]) -> list[Path]:
    paths = [folder / name for name in files]
    for path, batches in zip(paths, files.values(), strict=True):
        path.write_bytes(b"".join(batches))
    return paths


def answers(*paths: Path) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for row in rows("compact", *paths):
        found.setdefault(row["group"], []).append(row["committed_offset"])
    return found


@pytest.mark.parametrize("order", [*permutations(range(3))])
def test_files_with_groups_in_common_are_one_log_in_whatever_order_they_are_named(
    tmp_path: Path, order: tuple[int, ...]
) -> None:
    """The first and the last file have no group in common, but both have one with the second."""
    files = written(tmp_path, fd7=FIRST, fd45=SECOND, f0012345=THIRD, other=OTHER)
    assert answers(*(files[i] for i in order), files[3]) == {"else": [1], "g": [7], "h": [6], "i": [8]}
    told = run("compact", *files).stderr
    assert "fd7 (0 to 1)" in told
    assert "--as-partition N" in told
    assert "2 partitions" in told


def test_a_file_that_is_there_twice_is_read_once(tmp_path: Path) -> None:
    files = written(tmp_path, a=FIRST, b=SECOND, c=FIRST)
    assert answers(*files) == {"g": [7], "h": [6], "i": [9]}
    assert "c is left out: it has the same batches as" in run("compact", *files).stderr


def test_files_of_several_partitions_are_refused_with_what_to_give(tmp_path: Path) -> None:
    files = written(tmp_path, a=FIRST, b=[batch_of(commit("g", offset=1), first=1)])
    result = run("compact", *files)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "a: it and" in result.stderr
    assert "b have groups in common, and each has its own record offsets 1 to 1" in result.stderr
    assert "--as-partition N" in result.stderr


def test_later_offsets_of_an_earlier_time_are_of_another_log(tmp_path: Path) -> None:
    late = [batch_of(commit("g", offset=7), first=2, time_ms=10)]
    early = [batch_of(commit("g", offset=8), first=9, time_ms=5)]
    result = run("compact", *written(tmp_path, a=late, b=early))
    assert result.exit_code == 1
    assert "the one with the later record offsets is of an earlier time" in result.stderr


def test_folders_of_no_partitions_name_are_joined_too(tmp_path: Path) -> None:
    for name, batches, base in (("x", FIRST, 0), ("y", SECOND, 2)):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{base:020}.log").write_bytes(b"".join(batches))
    assert answers(tmp_path) == {"g": [7], "h": [6], "i": [9]}


def test_rescue_misses_nothing_of_what_was_given(tmp_path: Path) -> None:
    files = written(tmp_path, a=SECOND, b=FIRST)
    result = run("rescue", *files, "--to", tmp_path / "to")
    assert "are missing" not in result.stderr
    assert "3 offsets of 3 groups, 1 partition" in result.stderr
