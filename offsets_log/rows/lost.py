"""How far lost parts of a log reach: a record before the last of them may have been replaced by one that is lost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.completeness import Missing
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.log_format.segment import iter_batches
from offsets_log.rows.tables import Row

UNTOLD = "whether its last commit took effect is not told"


End = tuple[PartitionLog, int | None]
"""A log that was read, and where it ends."""


def lost_until(ends: Iterable[End], missing: Iterable[Missing], damages: Sequence[Row]) -> dict[int | None, int]:
    """Return for each offsets partition the last record offset that is lost; -1 if nothing is.

    Args:
        missing: what is missing of the logs.
        damages: rows of pieces that could not be read.
    """
    gaps = [(one.offsets_partition, one.last_offset) for one in missing if one.is_lost]
    lost: dict[int | None, int] = {}
    for log, end_offset in ends:
        partition = log.offsets_partition
        of_gaps = (last for number, last in gaps if number == partition)
        lost[partition] = max([*of_gaps, *_of_damages(log, end_offset, damages), lost.get(partition, -1)])
    return lost


def lost_behind(lost: Mapping[int | None, int], row: Row) -> int | None:
    """Return the last lost record offset behind that of a row of ``compact``; None if nothing is lost there."""
    until = lost[row["offsets_partition"]]
    return until if until > (-1 if row["record_offset"] is None else row["record_offset"]) else None


def doubt(lost: Mapping[int | None, int], row: Row) -> str | None:
    """Return why an offset, a row of ``compact``, may not be the latest; None if nothing says so."""
    if row["committed_offset"] is None:
        return UNTOLD
    until = lost_behind(lost, row)
    return None if until is None else in_words(until)


def in_words(until: int) -> str:
    """Return why what stands before a lost record is doubtful."""
    return f"a later record, up to offset {until}, may be lost"


def of_group(until: int) -> str | None:
    """Return why the state of a group may not be the latest; None if nothing of its offsets partition is lost."""
    return None if until < 0 else f"records of its offsets partition, up to offset {until}, are lost"


def _of_damages(log: PartitionLog, end_offset: int | None, damages: Sequence[Row]) -> Iterator[int]:
    """Yield the record offset of each piece that could not be read, or the last before the next batch.

    It is the log's end if neither is told.
    """
    for row in damages:
        of_it = [segment for segment in log.segments if _may_be_of(row["file"], segment)]
        if of_it:
            end = row["record_offset"]
            if end is None:
                end = _before_the_next(of_it, row["position"])
            yield next((one for one in (end, end_offset) if one is not None), -1)


def _before_the_next(segments: Sequence[Segment], position: int | None) -> int | None:
    """Return the offset before the first batch that follows a damaged header in its segment; None if none tells it."""
    if position is None or len(segments) != 1 or segments[0].lines:
        return None
    following = (one for one in iter_batches(segments[0].buffer, start=position) if isinstance(one, RecordBatch))
    batch = next(following, None)
    return None if batch is None or batch.magic < 2 else batch.base_offset - 1


def _may_be_of(file: str, segment: Segment) -> bool:
    """Return whether what a file lost may be of a segment: in a text damage need not tell of which file it is."""
    return segment.file == file or (bool(segment.lines) and segment.file.startswith(f"{file}!"))
