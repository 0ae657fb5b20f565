"""Whether a coordinator would load what is shown: told by commands that show it, and what `--as-broker` leaves out."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.builders import LogBuilder, member
from tests.cli.runs import run
from tests.conftest import NEVER, BulkFrom
from tests.waiting import PATIENCE_S, wait_for

PREVIEW = "kafka-3.7-preview"
"""A recording that 4.3 does not load: its offsets partitions 1 and 2 have records of another layout (B-9)."""


MODERN = ("--profile", "modern")


@pytest.mark.parametrize("least_bytes", [NEVER, 0])
@pytest.mark.parametrize("words", [("compact",), ("compact", "-o", "parquet"), ("groups",)], ids=" ".join)
def test_partitions_that_would_not_be_loaded_are_told(
    words: tuple[str, ...],
    least_bytes: int,
    bulk_from: BulkFrom,
    recording: Callable[[str], Path],
    tmp_path: Path,
) -> None:
    bulk_from(least_bytes)
    log = str(recording(PREVIEW) / "log")

    def told(*more: str) -> list[str]:
        result = run(words[0], log, *words[1:], *more, "--to", str(tmp_path / "to"))
        assert result.exit_code == 0
        return [line for line in result.stderr.splitlines() if "would not load" in line]

    assert told(*MODERN) == [
        "a coordinator of Kafka 4 would not load offsets partition 1 (record offset 0, B-9) and others, and serve none "
        "of their groups: offsets-log check names all"
    ]
    one = (
        "a coordinator of Kafka 4 would not load offsets partition 1 (record offset 0, B-9), and serve none of its "
        "groups: offsets-log check says why"
    )
    assert told(*MODERN, "-p", "1") == [one]
    assert told(*MODERN, "-g", "billing") == [one], "the other one has nothing of it"
    assert told(*MODERN, "-g", "web") == []
    assert told("--profile", "classic") == []


def test_of_damage_it_is_not_said_that_it_ends_a_load(recording: Callable[[str], Path], tmp_path: Path) -> None:
    """A broker's start may cut off the record that would end a load; `check` finds that out."""
    folder = shutil.copytree(recording(PREVIEW) / "log" / "__consumer_offsets-1", tmp_path / "__consumer_offsets-1")
    segment = max(folder.glob("*.log"))
    content = segment.read_bytes()
    segment.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    result = run("compact", folder)
    assert result.exit_code == 3
    assert "would not load" not in result.stderr
    assert "a broker started on these files may know less than this, or fail to start" in result.stderr


def test_brokers_serve_nothing_of_a_load_that_only_members_end(
    recording: Callable[[str], Path], bulk_from: BulkFrom
) -> None:
    """J-17 and J-19 are found in the groups that all records make, which `compact` needs for nothing else."""
    folders = [str(recording("load-fails") / "log" / f"__consumer_offsets-{number}") for number in (27, 38, 40, 41)]
    for least_bytes in (NEVER, 0):
        bulk_from(least_bytes)
        result = run("compact", *folders, "--as-broker")
        assert (result.stdout, result.stderr.count("would not load it")) == ("", len(folders))
        assert run("compact", *folders).stdout.count("\n") == 9


@pytest.mark.parametrize("words", [("compact",), ("groups",)], ids=" ".join)
def test_following_tells_it_too(words: tuple[str, ...], recording: Callable[[str], Path]) -> None:
    """Each failure once, and what the same command says without --follow."""
    log = str(recording(PREVIEW) / "log")

    def told(*more: str, follow: tuple[str, ...] = ("--follow", "--until-idle", "500ms")) -> list[str]:
        result = run(*words, log, *more, *follow)
        return [line for line in result.stderr.splitlines() if "would not load" in line]

    for more in ((), ("-p", "1"), ("-g", "billing"), ("-g", "web"), ("--profile", "classic")):
        assert told(*more) == told(*more, follow=())
    assert told(*MODERN, "-p", "1") != []


def test_a_record_that_comes_later_ends_a_load_too(tmp_path: Path) -> None:
    folder = tmp_path / "__consumer_offsets-3"
    folder.mkdir()
    path = folder / f"{0:020}.log"
    log = LogBuilder().commit(1)
    log.group(member("m", group_instance_id="i"), member("n", group_instance_id="i"))
    path.write_bytes(log.batches[0])
    command = [sys.executable, "-c", "from offsets_log_cli.main import run; run()", "compact", str(folder), "--follow"]
    fails = "a coordinator of Kafka 4 would not load offsets partition 3 (record offset 1, L-31)"
    words = tmp_path / "words"
    with words.open("wb") as stream, subprocess.Popen(command, stderr=stream, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with path.open("ab") as file:
            file.write(log.batches[1])
        wait_for("the load that fails is told", lambda: fails in words.read_text(), of=process, said=words.read_text)
        process.terminate()
        process.communicate(timeout=PATIENCE_S)
    assert words.read_text().count(fails) == 1
