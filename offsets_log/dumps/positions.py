"""Find out which bytes of a file kafka-dump-log's text does not show, by the positions and sizes of its batches.

Batches follow each other in a file without a byte between them, in a compacted one too: the cleaner leaves gaps of
offsets, but writes the batches that it keeps one after the other. So what no batch covers, up to the last one, is not
in the text. Before 2.2 there are lines of records only, with the position and no size: the lowest position tells what
is missing before it. References: ``DumpLogSegments``, ``FileRecords`` (``position`` and ``size``).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple

from offsets_log.dumps.dump_log_facts import Facts, number_in
from offsets_log.dumps.dump_log_text import LeftOut
from offsets_log.errors import CorruptRecordError, Damage
from offsets_log.log_format.batch import BATCH_HEADER_SIZE
from offsets_log.words import counted


@dataclass(slots=True)
class _Run:
    """Bytes of a file that the text covers: its first batch's line and base offset."""

    begin: int
    end: int
    line: int
    base_offset: int


BEGIN = attrgetter("begin")


def _at_begin() -> list[_Run]:
    return [_Run(0, 0, 0, 0)]


@dataclass(slots=True)
class Positions:
    """What a text covers of the file whose batches are being read, in whatever order they stand.

    Attributes:
        file: the file's name in the text; "" if it has none.
    """

    file: str = ""
    _runs: list[_Run] = field(default_factory=_at_begin)
    _first_record: _Run | None = None

    @property
    def next_position(self) -> int:
        """Where the next batch is, if nothing is missing and lines are in the order of the file."""
        return self._runs[-1].end

    def extend(self, end: int) -> None:
        """Note that batches follow the last one, up to a position."""
        self._runs[-1].end = end

    def saw(self, line: int, facts: Facts) -> Iterator[Damage]:
        """Note the place that a line tells, of a batch or of a record of which no batch has a line; yield as `missing`.

        A batch at position 0 begins another file, unless it is the next one of a file that is read from its end on.
        """
        try:
            position, offset = number_in(facts, "position"), number_in(facts, "baseOffset", "offset")
            end = position + number_in(facts, "size", default=0)
        except CorruptRecordError:
            return
        last, seen = self._runs[-1], _Run(position, end, line, offset)
        if "size" not in facts:
            self._first_record = min(self._first_record or seen, seen, key=BEGIN)
            return
        if position == 0 < last.end and end != last.begin:
            yield from self.missing()
        if position == self.next_position:
            self.extend(end)
        else:
            self._runs.append(seen)

    def missing(self) -> Iterator[Damage]:
        """Yield what the text does not show, each as damage at the line after it; begin another file."""
        runs, end = self._runs, 0
        if self._first_record is not None and runs == _at_begin():
            runs = [self._first_record]
        self._runs, self._first_record = _at_begin(), None
        for run in sorted(runs, key=BEGIN):
            if run.begin > end:
                yield _left_out(self.file, run.line, end, run.begin, run.base_offset)
            end = max(end, run.end)


def _left_out(file: str, line: int, begin: int, end: int, next_offset: int) -> Damage:
    words = (
        f"the batches before this line are not in the text: {counted(end - begin, 'byte', 'bytes')} of the file, from "
        f"position {begin} to {end}, with every commit and every end of a transaction in them, so an older offset may "
        "stand for a newer one. Print the whole file again"
    )
    return Damage(LeftOut(words, file=file, position=line, record_offset=max(next_offset - 1, 0)), b"")


class _Extent(NamedTuple):
    """What a row, or several that follow each other, cover of the file they were decoded from.

    Attributes:
        begin, end: positions; −1 where rows do not tell them.
        slack: how many bytes `end` may be too small, as rows do not tell what times are counted from.
    """

    line: int
    begin: int
    end: int
    first_offset: int
    last_offset: int
    slack: int = 0


SLACK = 8
"""Bytes by which a record's time may be longer than if it were counted from its batch's first record."""


class DecodedBatch(NamedTuple):
    """Where a batch's rows say that its records are, and how many bytes these take as they are encoded here.

    Attributes:
        line, last_line: of its first row and its last.
        first_position, last_position: of the first and the last record; −1 if that is not told, or says nothing, as
            records are compressed or their times are the log's.
        others_size, last_size: bytes of all records but the last, and of that.
        is_exact: whether the file has the same bytes: tombstones and markers may be counted from another time.
    """

    line: int
    last_line: int
    first_position: int
    last_position: int
    others_size: int
    last_size: int
    records_count: int
    first_offset: int
    last_offset: int
    is_exact: bool

    def extents(self) -> Iterator[_Extent]:
        """Yield what is covered: the last record apart, as records may be left out before it."""
        if min(self.first_position, self.last_position) < 0:
            yield _Extent(self.line, -1, -1, self.first_offset, self.last_offset)
            return
        begin, end = self.first_position - BATCH_HEADER_SIZE, self.last_position + self.last_size
        slack = 0 if self.is_exact else SLACK
        if (others := self.records_count - 1) > 0:
            others_end = self.first_position + self.others_size
            yield _Extent(
                self.line, begin, others_end, self.first_offset, self.first_offset + others - 1, SLACK * others
            )
            begin = self.last_position
        yield _Extent(self.last_line, begin, end, self.last_offset, self.last_offset, slack)


@dataclass(slots=True)
class RowPlaces:
    """What rows of ``decode`` cover of one file, in the order of the file.

    Bytes between two rows are left out if they are more than the batches without records that the cleaner keeps, of
    which there are no rows.

    Attributes:
        file: its name in the rows.
        damaged_lines: rows that cannot be read, in their order, which tell themselves what is lost.
        holes: bytes that are left out, each as damage at the line after it.
        left_out_bytes: how many these are.
        is_whole: whether it is certain that nothing is left out, as far as the rows go.
    """

    file: str
    base_offset: int | None
    damaged_lines: list[int] = field(default_factory=list)
    holes: list[Damage] = field(default_factory=list)
    left_out_bytes: int = 0
    is_whole: bool = False
    _end: int = 0
    _slack: int = 0
    _next_offset: int | None = None
    _has_begun: bool = False
    _line: int = 0

    def __post_init__(self) -> None:
        self._next_offset = self.base_offset

    def saw(self, batch: DecodedBatch) -> None:
        """Note the rows of the next batch."""
        for extent in batch.extents():
            self._goes_on(extent)

    def _goes_on(self, extent: _Extent) -> None:
        leap = None if self._next_offset is None else extent.first_offset - self._next_offset
        between = extent.begin - self._end if extent.begin >= 0 <= self._end else None
        is_next = leap == 0 or (between is not None and self._may_be_empty(between, leap))
        if not is_next and between is not None and between > 0 and not self._has_damage_before(extent.line):
            self.left_out_bytes += between
            self.holes.append(_left_out(self.file, extent.line, self._end, extent.begin, extent.first_offset))
        self.is_whole = is_next and (self.is_whole or not self._has_begun)
        self._has_begun = True
        self._line = extent.line
        self._end, self._slack, self._next_offset = extent.end, extent.slack, extent.last_offset + 1

    def _has_damage_before(self, line: int) -> bool:
        at = bisect_left(self.damaged_lines, self._line)
        return at < len(self.damaged_lines) and self.damaged_lines[at] <= line

    def _may_be_empty(self, between: int, leap: int | None) -> bool:
        """Return whether no record can be in bytes between rows."""
        batches, rest = divmod(between, BATCH_HEADER_SIZE)
        are_few = 0 <= batches <= (batches if leap is None else leap)
        return abs(between) <= self._slack or (are_few and rest <= self._slack)
