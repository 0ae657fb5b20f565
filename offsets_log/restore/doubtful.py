"""Find offsets that a later commit may have replaced, which is missing from the log or could not be read there."""

from __future__ import annotations

from collections.abc import Sequence

from offsets_log.coordinator_document import Memory
from offsets_log.rows.lost import lost_behind, lost_until
from offsets_log.rows.tables import Row

NAME = "doubtful"


def doubtful_rows(offsets: Sequence[Row], memory: Memory, damages: Sequence[Row]) -> list[Row]:
    """Return those of the offsets whose record is before something that is lost, with the last offset of that.

    Args:
        offsets: rows of ``compact``.
        damages: rows of pieces that could not be read.
    """
    ends = [(part.log, part.state.end_offset) for part in memory.parts]
    lost = lost_until(ends, (missing for part in memory.parts for missing in part.found.missing), damages)
    return [row | {"missing_until": until} for row in offsets if (until := lost_behind(lost, row)) is not None]
