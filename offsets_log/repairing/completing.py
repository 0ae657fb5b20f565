"""A partition's log completed from other copies: segments of the batches that any of them has whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from offsets_log.broker.leader_epochs import told_leader_epochs
from offsets_log.columnar.scan.batch_rows import BatchRow
from offsets_log.data_directory.identity import topic_id_of
from offsets_log.errors import OffsetsLogError
from offsets_log.log_format.file_names import LEADER_EPOCHS, PARTITION_METADATA
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.log_format.segment import Buffer
from offsets_log.repairing.copies import Copy
from offsets_log.repairing.one_log import NotOneLogError
from offsets_log.repairing.union import OTHER, Broken, Run, Union, union

Join = Callable[[Iterable[Buffer]], Buffer]
"""Puts the pieces of a file together."""

LISTED = 100
"""Batches that follow each other are listed one by one up to so many."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A batch of another copy; or many that follow each other in one of its files.

    Attributes:
        file, position: where it stands in that copy.
        checksum: its own; None of many.
    """

    file: str
    position: int
    first_offset: int
    last_offset: int
    batches: int
    records: int
    size_bytes: int
    checksum: int | None

    def in_words(self) -> str:
        """Say what was taken, and from where."""
        offsets = (
            f"offset {self.first_offset}"
            if self.first_offset == self.last_offset
            else f"offsets {self.first_offset} to {self.last_offset}"
        )
        at = f"position {self.position} of {self.file}"
        if self.checksum is None:
            return f"{self.batches} batches of {offsets} are taken from {at} on ({self.size_bytes} bytes)"
        return f"the batch of {offsets} is taken from {at} ({self.size_bytes} bytes, checksum {self.checksum:#010x})"


@dataclass(frozen=True, slots=True)
class _Piece:
    """Bytes of one segment."""

    segment: Segment
    begin: int
    end: int
    zeros_behind: int = 0


@dataclass(slots=True)
class _Made:
    """A segment in the making, named as one that there is."""

    named: Segment
    pieces: list[_Piece] = field(default_factory=list)

    def add(self, piece: _Piece) -> None:
        """Add bytes behind those that are there."""
        last = self.pieces[-1] if self.pieces else None
        if last is not None and last.segment is piece.segment and last.end == piece.begin and not last.zeros_behind:
            self.pieces[-1] = _Piece(piece.segment, last.begin, piece.end, piece.zeros_behind)
        else:
            self.pieces.append(piece)

    def segment(self, join: Join) -> Segment:
        """Return it; the one it is named as, if it is that one, byte for byte."""
        named = self.named
        if self.pieces == [_Piece(named, 0, named.length, named.zeros_behind)] or not (self.pieces or named.length):
            return named
        contents = join(memoryview(piece.segment.buffer)[piece.begin : piece.end] for piece in self.pieces)
        return replace(named, contents=contents, zeros_behind=self.pieces[-1].zeros_behind if self.pieces else 0)


@dataclass(frozen=True, slots=True)
class Completed:
    """A log, and what of it comes from another copy.

    Attributes:
        taken: in log order.
        is_other: whether the log differs from the copy that was read.
    """

    log: PartitionLog
    taken: tuple[Taken, ...] = ()
    is_other: bool = False
    _pieces: Mapping[str, tuple[_Piece, ...]] = field(default_factory=dict)

    def locate(self, error: OffsetsLogError) -> None:
        """Set the place of an error in a segment that was put together to where the bytes come from."""
        at = error.position or 0
        for piece in self._pieces.get(error.file or "", ()) if error.position is not None else ():
            if at < piece.end - piece.begin + piece.zeros_behind:
                error.file, error.position = piece.segment.file, piece.begin + at
                return
            at -= piece.end - piece.begin


def completed(base: PartitionLog, other: PartitionLog, join: Join, *, in_bulk: bool) -> Completed:
    """Complete a copy of a log by another one.

    Args:
        join: makes the contents of segments that have bytes of both.
        in_bulk: what it is in `batch_rows`.

    Raises:
        NotJoinedError: they are not of one log, or that or what would come of it is in doubt.
    """
    copies = [Copy.of(log, told_leader_epochs(log.beside) or {}, in_bulk=in_bulk) for log in (base, other)]
    if not all(len(copy.rows) for copy in copies):
        return Completed(base)
    made = union(copies[0], copies[1])
    if not made.is_other:
        return Completed(base)
    segments = list(_segments(made))
    log = replace(base, segments=tuple(segment.segment(join) for segment in segments), **_beside(base, other))
    _check_made(made, log, in_bulk=in_bulk)
    pieces = {segment.named.file: tuple(segment.pieces) for segment in segments}
    return Completed(log, tuple(_taken(made)), True, pieces)


def _segments(made: Union) -> Iterator[_Made]:
    """Yield the segments: those of the base, and of the other copy where it begins one and the base has none."""
    making = _Making(made)
    for part in made.parts:
        if isinstance(part, Broken):
            making.keep(part)
        else:
            making.take(part)
    yield from making.end()


class _Making:
    """The way from parts of two copies to segments."""

    def __init__(self, made: Union) -> None:
        self._made = made
        self._found: list[_Made] = []
        self._current = -1
        self._next_offset = 0
        base = made.copies[0].log
        self._bases = np.array([segment.base_offset or 0 for segment in base.segments], np.int64)

    def take(self, run: Run) -> None:
        """Take batches of one copy."""
        copy = self._made.copies[run.side]
        numbers = copy.rows.column(BatchRow.segment)[run.first : run.behind]
        for number in dict.fromkeys(numbers.tolist()):
            first = run.first + int(numbers.searchsorted(number))
            behind = run.first + int(numbers.searchsorted(number, "right"))
            begin = number if run.side != OTHER else self._covering(int(copy.rows[first].base_offset))
            self._begin(begin)
            segment = copy.log.segments[number]
            if run.side == OTHER and self._is_begun_there(segment, int(copy.rows[first].base_offset)):
                self._found.append(_Made(segment))
            self._put(copy, int(copy.begins[first]), int(copy.ends[behind]))
            self._next_offset = int(copy.rows[behind - 1].last_offset) + 1

    def keep(self, broken: Broken) -> None:
        """Keep damaged bytes, those of the base in its segments."""
        copy = self._made.copies[broken.side]
        for number, begin, _ in copy.pieces(broken.begin, broken.end):
            if broken.side != OTHER:
                self._begin(number)
            start = int(copy.segment_begins[number])
            self._put(copy, start + begin, min(broken.end, int(copy.segment_begins[number + 1])))

    def end(self) -> list[_Made]:
        """Return all segments, with empty ones at the end, whose names tell where the log goes on."""
        for copy in self._made.copies:
            last = copy.log.segments[-1]
            begun = (self._found[-1].named.base_offset or 0) if self._found else -1
            if (
                not last.length
                and last.base_offset is not None
                and last.base_offset >= max(self._next_offset, begun + 1)
            ):
                self._found.append(_Made(last))
        return self._found

    def _covering(self, offset: int) -> int:
        """Return the segment of the base that an offset belongs to by the files' names; −1 if none begins so early."""
        return int(self._bases.searchsorted(offset, "right")) - 1

    def _begin(self, number: int) -> None:
        """Begin a segment of the base, unless it or a later one is begun."""
        if number > self._current:
            self._current = number
            self._found.append(_Made(self._made.copies[0].log.segments[number]))

    def _is_begun_there(self, segment: Segment, offset: int) -> bool:
        """Return whether a segment of the other copy begins behind all that is taken, and before a batch."""
        base_offset = segment.base_offset
        if not self._found:
            return True
        begun = self._found[-1]
        is_between = base_offset is not None and self._next_offset <= base_offset <= offset
        return is_between and (begun.named.base_offset or 0) < (base_offset or 0) and not self._goes_on(offset)

    def _goes_on(self, offset: int) -> bool:
        """Return whether the segment of the base has batches behind an offset."""
        rows = self._made.copies[0].rows
        behind = int(rows.column(BatchRow.base_offset).searchsorted(offset))
        return behind < len(rows) and int(rows[behind].segment) == self._current

    def _put(self, copy: Copy, begin: int, end: int) -> None:
        for number, start, stop in copy.pieces(begin, end):
            segment = copy.log.segments[number]
            is_last = number + 1 == len(copy.log.segments)
            zeros = segment.zeros_behind if is_last and stop == segment.length else max(stop - segment.length, 0)
            self._found[-1].add(_Piece(segment, min(start, segment.length), min(stop, segment.length), zeros))


def _beside(base: PartitionLog, other: PartitionLog) -> dict[str, Any]:
    """Return what lies beside the segments and what it tells: of the other copy what the base does not tell."""
    beside = dict(base.beside)
    for name, told in ((LEADER_EPOCHS, told_leader_epochs), (PARTITION_METADATA, topic_id_of)):
        if told(base.beside) is None and told(other.beside) is not None:
            beside[name] = other.beside[name]
    cleaned = [log.cleaned_until for log in (base, other) if log.cleaned_until is not None]
    return {
        "beside": beside,
        "checkpoints": replace(base.checkpoints, cleaned_until=min(cleaned, default=None)),
        "begins_late": base.begins_late if (other.segments[0].base_offset or 0) else "",
    }


def _check_made(made: Union, log: PartitionLog, *, in_bulk: bool) -> None:
    """Read what was made, and compare it with what should be in it.

    Raises:
        NotOneLogError: bytes that are damaged hide a batch, or are one.
    """
    facts = BatchRow.base_offset, BatchRow.size_bytes, BatchRow.checksum, BatchRow.last_offset, BatchRow.leader_epoch
    due = np.concatenate(
        [
            made.copies[part.side].rows.columns(*facts)[part.first : part.behind]
            for part in made.parts
            if isinstance(part, Run)
        ]
    )
    found = Copy.of(log, {}, in_bulk=in_bulk).rows.columns(*facts)
    if not np.array_equal(found, due):
        count = min(len(found), len(due))
        differs = np.flatnonzero((found[:count] != due[:count]).any(axis=1))
        at = int(differs[0]) if len(differs) else count
        offset = int((due if at < len(due) else found)[at][0])
        raise NotOneLogError(f"what is damaged in both hides where offset {offset} stands", record_offset=offset)


def _taken(made: Union) -> Iterator[Taken]:
    for part in made.parts:
        if isinstance(part, Run) and part.side == OTHER:
            copy = made.copies[OTHER]
            numbers = copy.rows.column(BatchRow.segment)[part.first : part.behind]
            for segment in dict.fromkeys(numbers.tolist()):
                first = part.first + int(numbers.searchsorted(segment))
                behind = part.first + int(numbers.searchsorted(segment, "right"))
                step = 1 if behind - first <= LISTED else behind - first
                for number in range(first, behind, step):
                    yield _told(copy, number, number + step)


def _told(copy: Copy, first: int, behind: int) -> Taken:
    one, last = copy.rows[first], copy.rows[behind - 1]
    return Taken(
        file=copy.segment_of(first).file,
        position=int(one.position),
        first_offset=int(one.base_offset),
        last_offset=int(last.last_offset),
        batches=behind - first,
        records=int(copy.rows.column(BatchRow.records_count)[first:behind].clip(min=1).sum()),
        size_bytes=int(copy.rows.column(BatchRow.size_bytes)[first:behind].sum()),
        checksum=int(one.checksum) if behind - first == 1 else None,
    )
