"""Find offsets that a later commit may have replaced, which is lost, or that were deleted from the log."""

from __future__ import annotations

from collections.abc import Sequence

from offsets_log.coordinator_document import Memory
from offsets_log.rows.lost import lost_behind, lost_until
from offsets_log.rows.tables import Row

NAME = "doubtful"
BELOW_START = "below_log_start_offset"


def doubtful_rows(offsets: Sequence[Row], memory: Memory, damages: Sequence[Row]) -> list[Row]:
    """Return those of the offsets whose record is before something that is lost, or below the log start offset.

    Rows have ``missing_until``, the last offset of what is lost, and ``below_log_start_offset``; each null if not so.

    Args:
        offsets: rows of ``compact``.
        damages: rows of pieces that could not be read.
    """
    ends = [(part.log, part.state.end_offset) for part in memory.parts]
    lost = lost_until(ends, (missing for part in memory.parts for missing in part.found.missing), damages)
    starts = {part.log.offsets_partition: part.log.checkpoints.log_start_offset or 0 for part in memory.parts}
    found = []
    for row in offsets:
        until, start = lost_behind(lost, row), starts[row["offsets_partition"]]
        is_deleted = start > (start if row["record_offset"] is None else row["record_offset"])
        if until is not None or is_deleted:
            found.append(row | {"missing_until": until, BELOW_START: start if is_deleted else None})
    return found
