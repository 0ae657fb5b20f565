"""What is told of a repair: a row a partition."""

from __future__ import annotations

from typing import Any

from offsets_log.repairing.writing import Repaired

Row = dict[str, Any]

REPAIR_COLUMNS = (
    "offsets_partition", "segments", "batches", "bytes", "rewritten", "log_start_offset", "log_end_offset",
    "last_stable_offset", "left_out",
)  # fmt: skip


def repair_row(done: Repaired) -> Row:
    """What stays of a partition, and what is left out by reason."""
    return {
        "offsets_partition": done.log.offsets_partition,
        "segments": done.segments,
        "batches": done.batches,
        "bytes": done.size_bytes,
        "rewritten": done.rewritten,
        "log_start_offset": done.start_offset,
        "log_end_offset": done.end_offset,
        "last_stable_offset": done.last_stable_offset,
        "left_out": [
            {"reason": reason, "pieces": summed.pieces, "records": summed.records, "bytes": summed.size_bytes}
            for reason, summed in done.left_out.items()
        ],
    }
