"""Compares translations with the truth that `record_mirrors` left, beside MirrorMaker's own last checkpoints.

``python -m tests.translation.judge_mirrors CASE NAME=PLAN …`` where CASE is its directory and PLAN one that `translate`
wrote. Prints for each name and topic how many offsets are right, behind, skipping or not told, and how many records are
read again.
"""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from offsets_log.disk.state_topics import open_topic
from offsets_log.errors import Damage
from offsets_log.translation.offset_syncs import read_checkpoints

Key = tuple[str, str, int]
"""Group, topic of the target, partition."""
Told = tuple[int, int | None]
"""The target's offset, and how many records are read again at most."""


def rows_of(file: Path) -> Iterator[dict[str, Any]]:
    return map(json.loads, file.read_text().splitlines())


def by_checkpoints(case: Path) -> dict[Key, Told]:
    damages: list[Damage] = []
    with open_topic([str(case / "target" / "data")], "a.checkpoints.internal") as opened:
        found = read_checkpoints(opened.logs[0], damages)
    assert not damages
    return {key: (point.downstream_offset, None) for key, point in found.items()}


def by_plan(plan: Path) -> dict[Key, Told]:
    return {
        (row["target_group"], row["target_topic"], row["target_partition"]): (
            row["target_offset"],
            row["reread_at_most"],
        )
        for row in rows_of(plan / "translation.jsonl")
    }


def judge(row: Mapping[str, Any], told: Told | None) -> tuple[str, int]:
    """A word for an answer, and how many offsets of the target lie between it and the right one."""
    if told is None:
        return "not told", 0
    offset, at_most = told
    right = row["target_offsets"] or [row["target_end"]]
    if offset in right:
        return "right", 0
    if offset > right[-1]:
        return "SKIPS", offset - right[-1]
    again = next(at for at in right if at > offset) - offset
    assert at_most is None or again <= at_most, (row, told)
    return "behind", again


def main(case: Path, plans: Mapping[str, Path]) -> None:
    ways = {name: by_plan(plan) for name, plan in plans.items()} | {"checkpoints": by_checkpoints(case)}
    sums: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for row in rows_of(case / "truth.jsonl"):
        for name, told in ways.items():
            word, again = judge(row, told.get((row["group"], row["target_topic"], row["partition"])))
            sums[name, row["topic"]] += Counter({word: 1, "records": again})
    for (name, topic), counts in sorted(sums.items()):
        sys.stdout.write(f"{name:12} {topic:12} {dict(counts)}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), {name: Path(plan) for name, plan in (word.split("=", 1) for word in sys.argv[2:])})
