"""Find offsets that a later commit may have replaced, which is missing from the log or could not be read there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from offsets_log.coordinator_document import Memory, PartitionPart
from offsets_log.rows.tables import Row

NAME = "doubtful"


def doubtful_rows(offsets: Sequence[Row], memory: Memory, damages: Sequence[Row]) -> list[Row]:
    """Return those of the offsets whose record is before something that is lost, with the last offset of that.

    Args:
        offsets: rows of ``compact``.
        damages: rows of pieces that could not be read.
    """
    lost: dict[int | None, int] = {}
    for part in memory.parts:
        partition = part.log.offsets_partition
        lost[partition] = max([*_lost_until(part, damages), lost.get(partition, -1)])
    return [
        row | {"missing_until": until}
        for row in offsets
        if (until := lost[row["offsets_partition"]]) > (-1 if row["record_offset"] is None else row["record_offset"])
    ]


def _lost_until(part: PartitionPart, damages: Sequence[Row]) -> Iterator[int]:
    """Yield the last record offset of each piece that is lost; the log's end if it is not told."""
    yield from (missing.last_offset for missing in part.found.missing if missing.is_lost)
    files = {segment.file for segment in part.log.segments}
    for row in damages:
        if row["file"] in files:
            yield part.state.end_offset if row["record_offset"] is None else row["record_offset"]
