"""Compares ways of translation with the truth of `record_mirrors`: ``python -m tests.translation.judge_mirrors DIR``.

One line for each group and partition, and the sums that the documentation shows: right, records read again, skipped,
not told; by all syncs that lie on disk, and by MirrorMaker's own last checkpoint.
"""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from offsets_log.disk.reader import open_logs
from offsets_log.disk.state_topics import open_topic
from offsets_log.errors import Damage
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.partition_log import iter_log
from offsets_log.translation.answers import Answer
from offsets_log.translation.offset_syncs import (
    Checkpoint,
    PartitionSyncs,
    PlainRanges,
    SourcePartition,
    read_checkpoints,
    read_offset_syncs,
)

DAMAGES: list[Damage] = []


def syncs(folder: Path) -> dict[SourcePartition, PartitionSyncs]:
    with open_topic([str(folder / "source" / "data")], "mm2-offset-syncs.b.internal") as opened:
        return read_offset_syncs(opened.logs[0], DAMAGES)


def checkpoints(folder: Path) -> dict[tuple[str, str, int], Checkpoint]:
    with open_topic([str(folder / "target" / "data")], "a.checkpoints.internal") as opened:
        return read_checkpoints(opened.logs[0], DAMAGES)


def plain_ranges(partition: Path) -> PlainRanges:
    ranges = PlainRanges()
    with open_logs([str(path) for path in sorted(partition.glob("*.log"))], input_format="segments") as opened:
        for log in opened.logs:
            for _, item in iter_log(log):
                if isinstance(item, RecordBatch) and _is_plain(item):
                    ranges.add(item.base_offset, item.last_offset, item.base_timestamp_ms, item.max_timestamp_ms)
    return ranges


def _is_plain(batch: RecordBatch) -> bool:
    return not batch.is_transactional and batch.timestamp_type == "create" and batch.delete_horizon_ms is None


def judge(row: dict[str, Any], told: Answer | None) -> tuple[str, int]:
    """A word for an answer, and how many target offsets lie between it and the right one."""
    if told is None:
        return "not told", 0
    right = row["target_offsets"] or [row["target_end"]]
    if told.target_offset in right:
        return "right", 0
    if told.target_offset > right[-1]:
        return "SKIPS", told.target_offset - right[-1]
    return "read again", next(at for at in right if at > told.target_offset) - told.target_offset


def main(folder: Path) -> None:
    by_partition, points = syncs(folder), checkpoints(folder)
    ranges: dict[tuple[str, int], PlainRanges] = {}
    sums: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for row in map(json.loads, (folder / "truth.jsonl").read_text().splitlines()):
        target = row["target_topic"], row["partition"]
        if target not in ranges:
            ranges[target] = plain_ranges(folder / "target" / "data" / "{}-{}".format(*target))
        by_syncs = by_partition[row["topic"], row["partition"]].translate(
            row["committed_offset"], ranges[target].covers, row["target_end"]
        )
        point = points.get((row["group"], *target))
        answers = {
            "all syncs": by_syncs,
            "checkpoint": None if point is None else point.translate(row["committed_offset"]),
        }
        line = [f"{row['group']:12} {row['topic']:12} {row['partition']} {row['committed_offset']:>8}"]
        for way, told in answers.items():
            word, count = judge(row, told)
            sums[way, row["topic"]][word] += 1
            sums[way, row["topic"]]["records"] += count if word == "read again" else 0
            how = f" ({told.how}, said {told.reread_at_most})" if told else ""
            line.append(f"{way}: {word} {count or ''}{how}")
        sys.stdout.write(" | ".join(line) + "\n")
    for (way, topic), counts in sums.items():
        sys.stdout.write(f"{way:12} {topic:12} {dict(counts)}\n")
    assert not DAMAGES


if __name__ == "__main__":
    main(Path(sys.argv[1]))
