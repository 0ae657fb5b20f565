"""The report of a repair: a row for each partition."""

from __future__ import annotations

from typing import Any

from offsets_log.repairing.comparing import Compared
from offsets_log.repairing.writing import Repaired

Row = dict[str, Any]

REPAIR_COLUMNS = (
    "offsets_partition", "segments", "batches", "bytes", "rewritten", "log_start_offset", "log_end_offset",
    "last_stable_offset", "left_out", "missing", "undecodable", "changed_offsets", "changed_groups",
)  # fmt: skip


def repair_row(done: Repaired, compared: Compared | None) -> Row:
    """Return a partition's row: what stays, what is left out by reason, and what is missing.

    Args:
        compared: None if nothing that can be read was left out.
    """
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
        "missing": done.missing,
        "undecodable": len(done.undecodable),
        "changed_offsets": None if compared is None else len(compared.offsets),
        "changed_groups": None if compared is None else len(compared.groups),
    }
