"""Find offsets that a later commit may have replaced, which is missing from the log or could not be read there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from offsets_log.coordinator_document import Memory, PartitionPart
from offsets_log.log_format.partition_log import Segment
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
    for row in damages:
        if any(_may_be_of(row["file"], segment) for segment in part.log.segments):
            yield part.state.end_offset if row["record_offset"] is None else row["record_offset"]


def _may_be_of(file: str, segment: Segment) -> bool:
    """Return whether what a file lost may be of a segment: in a text damage need not tell of which file it is."""
    return segment.file == file or (bool(segment.lines) and segment.file.startswith(f"{file}!"))
