"""Plan the pieces of logs from what a user names: what the driver does before a cluster reads.

A piece is a run of segments of one offsets partition, usually one segment; a large one is cut at batches. Cuts are made
only where the next batch is whole and beyond everything before, so that a piece can be read without the others
(`offsets_log.columnar.shuffle.pieces`). Where this is not cheap to find out, segments stay together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from offsets_log.columnar.scan.reading import ScanOrder, ScanPlace
from offsets_log.disk.segments import next_offset
from offsets_log.events import EVERYTHING
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.completeness import Missing
from offsets_log.log_format.partition_log import Checkpoints, PartitionLog
from offsets_log.log_format.segment import PLAUSIBLE, Buffer
from spark_jobs.files import FoundFile

SPLIT_BYTES = 128 << 20
TAIL_BYTES = 1 << 18
MOST_TRIES = 1 << 10


@dataclass(frozen=True, slots=True)
class FoundLog:
    """The files of a log."""

    log: PartitionLog
    files: tuple[FoundFile, ...]

    @classmethod
    def of(cls, log: PartitionLog) -> FoundLog:
        """Return those of a log. Raises InputError: not all segments are files."""
        return cls(log, tuple(FoundFile.of(log, segment) for segment in log.segments))


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceFiles:
    """The files that one task reads.

    Attributes:
        log, number, count: number of its log, number of the piece in it, and how many pieces the log has.
        files: segments to open; the piece ends at ``end`` bytes of the last one, None at its end.
        index: number of the first one among the log's segments.
        position, last_offset: where it begins in the first one, and the highest offset that may precede it.
        following: base offset of the segment after the last one; None if there is none, or its name has none.
        is_last: whether no segment follows.
        next_first_offset: least offset after the piece; None for the last one.
        log_end: base offset of the log's last segment.
        checkpoints, selection: see `PartitionLog`.
        absent: partitions of which no segment exists; only the very first piece has them.
    """

    log: int
    number: int
    count: int
    offsets_partition: int | None
    files: tuple[FoundFile, ...]
    index: int
    position: int
    last_offset: int
    end: int | None
    following: int | None
    is_last: bool
    next_first_offset: int | None
    log_end: int
    notes: tuple[str, ...]
    checkpoints: Checkpoints
    selection: str | None
    absent: tuple[Missing, ...] = ()


@dataclass(frozen=True, slots=True)
class _Cut:
    """A place where a piece may begin: offsets before its first batch are at most ``last_offset``."""

    index: int
    position: int
    last_offset: int
    first_offset: int


def plan(logs: Sequence[FoundLog], *, piece_bytes: int | None, split: bool) -> list[PieceFiles]:
    """Return the pieces of all logs.

    Args:
        piece_bytes: join and cut segments to about this many bytes; None for a piece for each segment, large ones cut.
        split: False for one piece for each log.
    """
    pieces: list[PieceFiles] = []
    for number, log in enumerate(logs):
        cuts = list(_cuts(log, piece_bytes)) if split else []
        pieces += _pieces(number, log, _chosen(log, cuts, piece_bytes))
    return pieces


def _cuts(log: FoundLog, piece_bytes: int | None) -> Iterator[_Cut]:
    """Yield all places where the log can be cut."""
    last, is_known = -1, False
    for index, file in enumerate(log.files):
        base = file.base_offset
        if is_known and base is not None and last < base:
            yield _Cut(index, 0, base - 1, base)
        size = piece_bytes or SPLIT_BYTES
        if file.size > size * 3 // 2 and file.mapped is not None:
            yield from _cuts_inside(log, index, file.mapped, size)
        if file is not log.files[-1]:
            found = last_offset_of(file)
            is_known = found is not None  # otherwise the segment after it stays with it
            last = last if found is None else max(last, found)


def _cuts_inside(log: FoundLog, index: int, mapped: PartitionLog, size: int) -> Iterator[_Cut]:
    """Yield batches about ``size`` bytes apart: whole, after a whole one, and below the one that follows.

    After a damaged batch a reader would go on to the next whole one, beyond the cut.
    """
    order = ScanOrder(mapped, EVERYTHING, None)
    total = log.files[index].size
    pieces = round(total / size)
    for i in range(1, pieces):
        cursor = order.begin(ScanPlace(0, total * i // pieces))
        if cursor is None:
            return
        items = islice(order.layout.walk.items(0, cursor.place.position, cursor.last_offset), 3)
        batches = [item for item, _ in items if isinstance(item, RecordBatch)]
        if len(batches) == 3:  # a walk reports what is not whole, or does not ascend, as damage
            before, first, _ = batches
            yield _Cut(index, first.position, before.last_offset, first.base_offset)


def _chosen(log: FoundLog, cuts: Sequence[_Cut], piece_bytes: int | None) -> list[_Cut]:
    """Return the cuts that make pieces of the wanted size."""
    begins = [0]
    for file in log.files:
        begins.append(begins[-1] + file.size)
    chosen: list[_Cut] = []
    at = 0
    for cut in cuts:
        place = begins[cut.index] + cut.position
        if piece_bytes is None or place - at >= piece_bytes * 3 // 4:
            chosen.append(cut)
            at = place
    return chosen


def _pieces(number: int, log: FoundLog, cuts: Sequence[_Cut]) -> Iterator[PieceFiles]:
    if not log.files:
        return
    begins = [_Cut(0, 0, -1, 0), *cuts]
    for i, begin in enumerate(begins):
        next_cut = begins[i + 1] if i + 1 < len(begins) else None
        stop = len(log.files) if next_cut is None else next_cut.index + (next_cut.position > 0)
        after = log.files[stop] if stop < len(log.files) else None
        yield PieceFiles(
            log=number,
            number=i,
            count=len(begins),
            offsets_partition=log.log.offsets_partition,
            files=tuple(replace(file, mapped=None) for file in log.files[begin.index : stop]),
            index=begin.index,
            position=begin.position,
            last_offset=begin.last_offset,
            end=next_cut.position if next_cut is not None and next_cut.position else None,
            following=after.base_offset if after is not None else None,
            is_last=after is None,
            next_first_offset=None if next_cut is None else next_cut.first_offset,
            log_end=log.files[-1].base_offset or 0,
            notes=log.log.notes if i == 0 else (),
            checkpoints=log.log.checkpoints,
            selection=log.log.selection,
        )


def last_offset_of(file: FoundFile) -> int | None:
    """Return the last offset in a segment, from the whole batches at its end; None if these cannot be found."""
    if file.base_offset is None or file.is_packed:
        return None
    tail = file.read_tail(TAIL_BYTES) if file.size else b""  # stores refuse to read of nothing
    if len(tail) < file.size:
        return last_offset_in(tail)
    found = next_offset(tail, file.base_offset)
    return None if found is None else found - 1


def last_offset_in(tail: Buffer) -> int | None:
    """Return the last offset in the end of a segment; None if no whole batches lead to its last byte."""
    view = memoryview(tail)
    for tried, match in enumerate(PLAUSIBLE.finditer(view)):
        if tried == MOST_TRIES:
            return None
        found = next_offset(view[match.start() :], -1)
        if found is not None and found > 0:
            return found - 1
    return None
