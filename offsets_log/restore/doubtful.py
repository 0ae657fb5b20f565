"""Find offsets that a later commit may have replaced, which is lost, or that were deleted from the log (``L-2``)."""

from __future__ import annotations

from collections.abc import Sequence

from offsets_log.coordinator_document import Memory
from offsets_log.log_format.completeness import below_start
from offsets_log.rows.lost import lost_behind, lost_until
from offsets_log.rows.tables import Row

NAME = "doubtful"
BELOW_START = "below_log_start_offset"


def doubtful_rows(offsets: Sequence[Row], memory: Memory, damages: Sequence[Row]) -> list[Row]:
    """Return those of the offsets whose record is before something that is lost, or that no broker reads.

    The broker reads the whole batch in which the log start offset lies.

    Rows have ``missing_until``, the last offset of what is lost, and ``below_log_start_offset``; each null if not so.

    Args:
        offsets: rows of ``compact``.
        damages: rows of pieces that could not be read.
    """
    ends = [(part.log, part.state.end_offset) for part in memory.parts]
    lost = lost_until(ends, (missing for part in memory.parts for missing in part.found.missing), damages)
    below = {part.log.offsets_partition: below_start(part.log) for part in memory.parts}
    found = []
    for row in offsets:
        until, deleted = lost_behind(lost, row), below[row["offsets_partition"]]
        if deleted is not None and (row["record_offset"] is None or row["record_offset"] >= deleted.end_offset):
            deleted = None
        if until is not None or deleted is not None:
            found.append(row | {"missing_until": until, BELOW_START: deleted and deleted.log_start_offset})
    return found
