"""Logs beside the offsets topic whose end is missing: the checkpoints know it, and nobody trusts what is left."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from offsets_log_cli.main import main
from tests.data_directories.copies import Recorded, data_directories

LOG = "00000000000000000000.log"


def cut(recorded: Recorded, tmp_path: Path, copy: str, folder: str, size_bytes: int) -> Path:
    """A data directory with one log cut off."""
    (source,) = data_directories(recorded("kafka-4.3-one"), copy)
    target = tmp_path / "data"
    shutil.copytree(source, target)
    with (target / folder / LOG).open("r+b") as file:
        file.truncate(size_bytes)
    return target


def asked(*arguments: object) -> tuple[int, list[dict[str, Any]], str]:
    result = CliRunner().invoke(main, [*map(str, arguments), "-o", "jsonl"])
    return result.exit_code, [json.loads(line) for line in result.stdout.splitlines()], result.stderr


@pytest.mark.parametrize("size_bytes", [0, 266])
def test_a_shortened_transaction_log_calls_nothing_hanging(recorded: Recorded, tmp_path: Path, size_bytes: int) -> None:
    data = cut(recorded, tmp_path, "stopped", "__transaction_state-1", size_bytes)
    status, rows, said = asked("rebuild", "--table", "pending", data, "-g", "g-tx-open")
    assert [(row["outcome"], row["abort_command"]) for row in rows] == [("undecided", None)]
    assert status == 3
    assert "its end is missing" in said


@pytest.mark.parametrize(("copy", "status"), [("stopped", 3), ("running", 0)])
def test_lag_counts_what_the_copy_of_a_log_lacks(recorded: Recorded, tmp_path: Path, copy: str, status: int) -> None:
    (source,) = data_directories(recorded("kafka-4.3-one"), copy)
    whole = asked("groups", source, "-g", "g-done")[1]
    data = cut(recorded, tmp_path, copy, "orders-0", 900)
    ended, rows, said = asked("groups", data, "-g", "g-done")
    assert (rows[0]["lag"], rows[0]["max_lag"]) == (whole[0]["lag"], whole[0]["max_lag"])
    assert ended == status
    assert "had reached 108, the high watermark noted" in said


@pytest.mark.parametrize("command", [("compact", "--table"), ("history", "-g", "s-*", "--table")])
def test_a_shortened_share_state_is_told(recorded: Recorded, tmp_path: Path, command: tuple[str, ...]) -> None:
    data = cut(recorded, tmp_path, "stopped", "__share_group_state-0", 343)
    status, _, said = asked(command[0], data, *command[1:], "share-offsets")
    assert status == 3
    assert "its end is missing" in said


ASKING = {
    "__transaction_state": [("rebuild", "--table", "pending"), ("compact", "--decide"), ("info",), ("info", "--card")],
    "__share_group_state": [("compact", "--table", "share-offsets"), ("info",)],
}
"""Topic → commands that use it."""


@pytest.mark.parametrize("pattern", ["-*/*.log", "-0", "-*"])
@pytest.mark.parametrize(("topic", "command"), [(topic, one) for topic, some in ASKING.items() for one in some])
def test_a_log_that_a_checkpoint_names_and_that_is_not_here_is_missing(
    recorded: Recorded, tmp_path: Path, topic: str, command: tuple[str, ...], pattern: str
) -> None:
    (source,) = data_directories(recorded("kafka-4.3-one"), "stopped")
    data = tmp_path / "data"
    shutil.copytree(source, data)
    gone = sorted(data.glob(topic + pattern))
    for path in gone:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    status, _, said = asked(command[0], data, *command[1:])
    missing = [line for line in said.splitlines() if line.startswith("missing: ")]
    noted = (data / "replication-offset-checkpoint").read_text()
    reached = {int(line.split()[1]): int(line.split()[2]) for line in noted.splitlines() if line.startswith(topic)}
    partitions = {path.parent.name if path.suffix else path.name for path in gone}
    expected = [
        f"missing: {data}/{topic}-{partition}: no segment of it is there, and its log had reached {offset}, as "
        "replication-offset-checkpoint says"
        for partition, offset in sorted(reached.items())
        if offset and f"{topic}-{partition}" in partitions
    ]
    assert expected
    assert missing == expected
    assert status == 3
    assert "missing or cut off" in said
    assert "corrupt" not in said


@pytest.mark.parametrize("command", [one for some in ASKING.values() for one in some])
def test_a_copy_of_the_offsets_topic_alone_lacks_nothing(
    recorded: Recorded, tmp_path: Path, command: tuple[str, ...]
) -> None:
    (source,) = data_directories(recorded("kafka-4.3-one"), "stopped")
    data = tmp_path / "data"
    shutil.copytree(source, data)
    for path in data.iterdir():
        if path.is_dir() and not path.name.startswith("__consumer_offsets"):
            shutil.rmtree(path)
    status, _, said = asked(command[0], data, *command[1:])
    assert status == (3 if "--decide" in command else 0), said  # nothing here tells what is asked
    assert "missing" not in said


@pytest.mark.parametrize(("copy", "has_snapshot"), [("stopped", True), ("stopped", False), ("running", True)])
def test_a_metadata_log_that_was_cut_off_is_told(
    recorded: Recorded, tmp_path: Path, copy: str, has_snapshot: bool
) -> None:
    """It ends before its snapshot, or within a batch though its broker had stopped in order."""
    data = cut(recorded, tmp_path, copy, "__cluster_metadata-0", 300)
    snapshots = list((data / "__cluster_metadata-0").glob("*.checkpoint"))
    assert any(int(path.name[:20]) for path in snapshots)
    for path in snapshots if not has_snapshot else ():
        path.unlink()
    for command in (("info", "--card"), ("info",), ("rebuild", "--table", "groups")):
        result = CliRunner().invoke(main, [command[0], str(data), *command[1:], "-o", "jsonl"])
        assert result.exit_code == 3, command
        assert "was cut off" in result.stderr


@pytest.mark.parametrize("copy", ["stopped", "running"])
def test_a_batch_that_a_running_broker_has_not_written_whole_is_normal(
    recorded: Recorded, tmp_path: Path, copy: str
) -> None:
    (source,) = data_directories(recorded("kafka-4.3-one"), copy)
    data = cut(
        recorded, tmp_path, copy, "__cluster_metadata-0", (source / "__cluster_metadata-0" / LOG).stat().st_size - 5
    )
    status, _, said = asked("info", data, "--card")
    assert (status, "was cut off" in said) == ((3, True) if copy == "stopped" else (0, False))
