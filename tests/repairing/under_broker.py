"""Folders put under a broker by the steps of their README.txt."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from offsets_log.disk.folder import CHECKPOINTS
from offsets_log.log_format.file_names import CLEAN_SHUTDOWN
from offsets_log.messages.internal_topics import OFFSETS_TOPIC
from tests.conftest import json_lines

Row = dict[str, Any]
Answer = tuple[str, str, int, int, str, int | None]


def topic_id(data: Path) -> str:
    """That of the offsets topic in a data directory."""
    return (data / f"{OFFSETS_TOPIC}-0" / "partition.metadata").read_text().rpartition(" ")[2]


def put_under(data: Path, made: Path, partitions: Sequence[int], old: Path, *, is_recovered: bool = True) -> None:
    """The steps on one broker, which stands still.

    Args:
        old: where the old folders go.
        is_recovered: whether the broker is to recover them, not to take indexes and snapshots as they are.
    """
    old.mkdir()
    for partition in partitions:
        name = f"{OFFSETS_TOPIC}-{partition}"
        shutil.move(data / name, old / name)
        shutil.copytree(made / name, data / name)
    if is_recovered:
        (data / CLEAN_SHUTDOWN).unlink(missing_ok=True)
    for attribute, name in CHECKPOINTS.items():
        mine = {f"{OFFSETS_TOPIC} {partition}" for partition in partitions}
        lines = [line for line in _entries(data / name) if line.rpartition(" ")[0] not in mine]
        if not (is_recovered and attribute == "recovery_point"):
            lines += [line for line in _entries(made / name) if line.rpartition(" ")[0] in mine]
        (data / name).write_text("".join(f"{line}\n" for line in ("0", len(lines), *lines)))


def _entries(checkpoint: Path) -> list[str]:
    return checkpoint.read_text().splitlines()[2:] if checkpoint.exists() else []


def answers(lines: str, partitions: Iterable[int]) -> set[Answer]:
    """What `compact` says in the form of Ask.java's answers, of some offsets partitions.

    A client shows no negative offset, and no negative leader epoch.
    """
    wanted = set(partitions)
    return {
        (
            row["group"], row["topic"], row["partition"], row["committed_offset"], row["metadata"],
            None if (row["leader_epoch"] or 0) < 0 else row["leader_epoch"],
        )
        for row in json_lines(lines)
        if row["offsets_partition"] in wanted and row["committed_offset"] >= 0
    }  # fmt: skip
