"""What tests of `rescue` share: the command, its plan and its doubts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from offsets_log_cli.main import main
from tests.builders import LogBuilder
from tests.conftest import read_json

COLUMNS = ("group", "topic", "partition", "committed_offset", "metadata", "leader_epoch")
MIXED = "kafka-4.3-mixed"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["rescue", *map(str, arguments)], catch_exceptions=False)


def rescue(folder: Path, *arguments: object, status: int = 0) -> dict[str, Any]:
    """The plan that was written."""
    result = run(*arguments, "--to", folder)
    assert result.exit_code == status, result.stderr
    plan: dict[str, Any] = read_json(folder / "plan.json")
    return plan


def doubts(plan: dict[str, Any], words: str) -> list[str]:
    return [sentence for sentence in plan["doubts"] if words in sentence]


def keyed(rows: list[dict[str, Any]]) -> list[list[Any]]:
    return sorted([row[name] for name in COLUMNS] for row in rows)


def write_log(folder: Path, logs: dict[int, LogBuilder], behind: bytes = b"", base_offset: int = 0) -> Path:
    for partition, log in logs.items():
        directory = folder / f"__consumer_offsets-{partition}"
        directory.mkdir(parents=True)
        (directory / f"{base_offset:020}.log").write_bytes(b"".join(log.batches) + behind)
    return folder
