"""Logs beside the offsets topic whose end is missing: the checkpoints know it, and nobody trusts what is left."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cli.main import main
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
