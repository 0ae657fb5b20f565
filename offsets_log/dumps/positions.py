"""Find out which bytes of a file kafka-dump-log's text does not show, by the positions and sizes of its batches.

Batches follow each other in a file without a byte between them, in a compacted one too: the cleaner leaves gaps of
offsets, but writes the batches that it keeps one after the other. So what no batch covers, up to the last one, is not
in the text. Before 2.2 there are lines of records only, with the position and no size: the lowest position tells what
is missing before it. References: ``DumpLogSegments``, ``FileRecords`` (``position`` and ``size``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import attrgetter

from offsets_log.dumps.dump_log_facts import Facts, number_in
from offsets_log.dumps.dump_log_text import NotTold
from offsets_log.errors import CorruptRecordError, Damage
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
                words = (
                    f"the batches before this line are not in the text: {counted(run.begin - end, 'byte', 'bytes')} of "
                    f"the file, from position {end} to {run.begin}, with every commit and every end of a transaction "
                    "in them, so an older offset may stand for a newer one. Print the whole file again"
                )
                last_offset = max(run.base_offset - 1, 0)
                yield Damage(NotTold(words, file=self.file, position=run.line, record_offset=last_offset), b"")
            end = max(end, run.end)
