"""Folders of offsets partitions with text before their name: they are read as what their name ends with."""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.runs import batch_of, commit, rows, run, write_partition

Recording = Callable[[str], Path]

NO_TOPICS = ["Copy of __consumer_offsets-0", "old __consumer_offsets-0", "(1)__consumer_offsets-0"]
"""Names that no topic can have."""
PERHAPS_TOPICS = ["kafka1-__consumer_offsets-0", "broker1__consumer_offsets-0", "us-east.__consumer_offsets-0"]
COMMANDS = ["compact", "check", "groups", "info"]
LOST = "offsets 261 to 266 are missing"


@pytest.fixture
def cut(recording: Recording, tmp_path: Path) -> Path:
    """A partition's folder whose log ends before its own snapshot of producers."""
    folder = tmp_path / "in" / "__consumer_offsets-0"
    shutil.copytree(recording("kafka-3.9-classic") / "log" / folder.name, folder)
    with (folder / "00000000000000000000.log").open("r+b") as file:
        file.truncate(31491)
    (folder / "00000000000000000267.snapshot").touch()
    return folder


@pytest.mark.parametrize("name", [*NO_TOPICS, *PERHAPS_TOPICS])
def test_a_folder_that_is_named_is_judged_as_under_its_own_name(cut: Path, name: str) -> None:
    expected = {command: run(command, cut) for command in COMMANDS}
    renamed = cut.rename(cut.parent / name)
    for command, under_its_own in expected.items():
        result = run(command, renamed)
        assert (result.exit_code, LOST in result.stderr) == (3, True), command
        if command != "groups":  # which tells ages
            assert result.stdout == under_its_own.stdout.replace(str(cut), str(renamed)), command
        assert f"{renamed} is read as offsets partition 0, as its name ends" in result.stderr


@pytest.mark.parametrize("name", NO_TOPICS)
def test_what_no_topic_can_be_is_read_below_a_folder_too(cut: Path, name: str) -> None:
    cut.rename(cut.parent / name)
    result = run("compact", cut.parent)
    assert (result.exit_code, LOST in result.stderr) == (3, True)


@pytest.mark.parametrize("name", PERHAPS_TOPICS)
def test_what_may_be_a_topic_of_its_own_has_to_be_named(cut: Path, name: str) -> None:
    cut.rename(cut.parent / name)
    result = run("compact", cut.parent)
    assert result.exit_code == 1
    assert f"other topics only ({name.removesuffix('-0')}): name it to read it" in result.stderr


@pytest.mark.parametrize("name", [NO_TOPICS[0], PERHAPS_TOPICS[0]])
def test_in_an_archive_as_on_a_disk(cut: Path, name: str, tmp_path: Path) -> None:
    archive = tmp_path / "a.tar"
    with tarfile.open(archive, "w") as file:
        file.add(cut, name)
    result = run("compact", f"{archive}!{name}")
    assert (result.exit_code, LOST in result.stderr) == (3, True)
    whole = run("compact", archive)
    assert whole.exit_code == (3 if name in NO_TOPICS else 1)
    assert LOST in whole.stderr or "name it to read it" in whole.stderr


def test_a_mirrored_topic_is_left_out_where_the_offsets_topic_is_given(tmp_path: Path) -> None:
    write_partition(tmp_path, [batch_of(commit("g", offset=1))])
    own = tmp_path / "__consumer_offsets-0"
    mirrored = tmp_path / "us-east.__consumer_offsets-0"
    mirrored.mkdir()
    (mirrored / f"{0:020}.log").write_bytes(batch_of(commit("mirrored", offset=2)))
    for given in ((tmp_path,), (own, mirrored)):
        assert {row["group"] for row in rows("compact", *given)} == {"g"}
    assert {row["offsets_partition"] for row in rows("compact", mirrored)} == {0}


def test_checkpoints_beside_speak_of_a_renamed_folder_unless_one_has_the_right_name(tmp_path: Path) -> None:
    write_partition(tmp_path, [batch_of(commit("g"))])
    own = tmp_path / "__consumer_offsets-0"
    renamed = tmp_path / "old __consumer_offsets-0"
    shutil.copytree(own, renamed)
    (tmp_path / "replication-offset-checkpoint").write_text("0\n1\n__consumer_offsets 0 9\n")
    assert run("compact", renamed).exit_code == 0
    shutil.rmtree(own)
    assert "offsets 1 to 8 are missing" in run("compact", renamed).stderr


def test_a_users_word_outranks_the_name(cut: Path) -> None:
    renamed = cut.rename(cut.parent / PERHAPS_TOPICS[0])
    found = rows("compact", renamed, "--as-partition", "3", status=3)
    assert {row["offsets_partition"] for row in found} == {3}


def test_a_topic_that_only_ends_so_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "my__consumer_offsets-0"
    folder.mkdir()
    (folder / f"{0:020}.log").write_bytes(batch_of((b"a text", b"v")))
    result = run("compact", folder)
    assert (result.exit_code, "this is another topic" in result.stderr) == (1, True)


@pytest.mark.parametrize("suffix", ["-future", "-stray"])
def test_what_is_left_of_a_partition_does_not_stand_for_it(tmp_path: Path, suffix: str) -> None:
    """The same answer as without the folder."""
    write_partition(tmp_path, [batch_of(commit("g"))], 0)
    write_partition(tmp_path, [batch_of(*(commit("h", offset=at) for at in range(5)))], 1)
    (tmp_path / "replication-offset-checkpoint").write_text("0\n2\n__consumer_offsets 0 1\n__consumer_offsets 1 5\n")
    left = tmp_path / f"__consumer_offsets-1.{'0' * 32}{suffix}"
    (tmp_path / "__consumer_offsets-1").rename(left)
    told = run("compact", tmp_path)
    assert (told.exit_code, "offsets 0 to 4 are missing" in told.stderr) == (3, True)
    assert f"{left} is left out" in told.stderr
    assert run("compact", left).exit_code == 0
    shutil.rmtree(left)
    assert run("compact", tmp_path).exit_code == 3
