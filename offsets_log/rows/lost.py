"""How far lost parts of a log reach: a record before the last of them may have been replaced by one that is lost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.rows.survey import Survey
from offsets_log.rows.tables import Row

UNTOLD = "whether its last commit took effect is not told"


@dataclass(frozen=True, slots=True)
class Read:
    """A log that was read to its end."""

    log: PartitionLog
    found: Survey
    end_offset: int | None


def lost_until(read: Iterable[Read], damages: Sequence[Row]) -> dict[int | None, int]:
    """Return for each offsets partition the last record offset that is lost; -1 if nothing is.

    Args:
        damages: rows of pieces that could not be read.
    """
    lost: dict[int | None, int] = {}
    for one in read:
        partition = one.log.offsets_partition
        lost[partition] = max([*_lost_until(one, damages), lost.get(partition, -1)])
    return lost


def doubt(lost: Mapping[int | None, int], row: Row) -> str | None:
    """Return why an offset, a row of ``compact``, may not be the latest; None if nothing says so."""
    if row["committed_offset"] is None:
        return UNTOLD
    until = lost[row["offsets_partition"]]
    return in_words(until) if until > (-1 if row["record_offset"] is None else row["record_offset"]) else None


def in_words(until: int) -> str:
    """Return why what stands before a lost record is doubtful."""
    return f"a later record, up to offset {until}, may be lost"


def _lost_until(one: Read, damages: Sequence[Row]) -> Iterator[int]:
    """Yield the last record offset of each piece that is lost; the log's end if it is not told."""
    yield from (missing.last_offset for missing in one.found.missing if missing.is_lost)
    for row in damages:
        if any(_may_be_of(row["file"], segment) for segment in one.log.segments):
            end = one.end_offset if row["record_offset"] is None else row["record_offset"]
            yield -1 if end is None else end


def _may_be_of(file: str, segment: Segment) -> bool:
    """Return whether what a file lost may be of a segment: in a text damage need not tell of which file it is."""
    return segment.file == file or (bool(segment.lines) and segment.file.startswith(f"{file}!"))
