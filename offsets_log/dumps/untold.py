"""Make batches of records of which a text does not tell the batch, and with it not whether a transaction held them.

A commit of which that is not known becomes one of a transaction that is not ended, of a producer that no broker has
(`UNTOLD_PRODUCER_ID`): so every replay holds it back, and `CoordinatorState.untold` names its key. Only commits need
that: coordinators write all other records, and tombstones of commits, outside of transactions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from offsets_log.dumps.dump_log_text import NotTold
from offsets_log.dumps.source import Remark, SegmentPlace, SourceBatch, header, place_of
from offsets_log.errors import Damage
from offsets_log.log_format.batch import UNTOLD_ENDED_ID, UNTOLD_PRODUCER_ID
from offsets_log.log_format.partition_log import OUTCOMES
from offsets_log.log_format.record import Record
from offsets_log.words import counted

OFFSET_COMMIT_KEYS = (b"\x00\x00", b"\x00\x01")
"""Versions that keys of offset commits begin with."""
UNTOLD_OF_BATCHES = frozenset({"batch_base_offset", "compression"})


def is_commit(record: Record) -> bool:
    """Return whether a record commits an offset."""
    return record.value is not None and record.key is not None and record.key[:2] in OFFSET_COMMIT_KEYS


def untold_batch(
    place: SegmentPlace, record: Record, columns: frozenset[str], *, timestamp_type: str = "create"
) -> SourceBatch:
    """Return a commit as a batch of its own, of which is not known whether it took effect.

    Args:
        columns: those of rows that the source does not have.
    """
    made = header(
        (record,),
        line=record.position,
        timestamp_type=timestamp_type,
        is_transactional=True,
        producer_id=UNTOLD_PRODUCER_ID,
    )
    return SourceBatch(place, made, (record,), columns | {OUTCOMES})


def untold_marker(
    place: SegmentPlace, record: Record, columns: frozenset[str], *, timestamp_type: str = "create"
) -> SourceBatch:
    """Return a transaction marker as a control batch that ends nothing here: its producer is not known."""
    made = header(
        (record,),
        line=record.position,
        timestamp_type=timestamp_type,
        is_transactional=True,
        is_control=True,
        producer_id=UNTOLD_ENDED_ID,
    )
    return SourceBatch(place, made, (record,), columns | {OUTCOMES})


def untold_commits(first: int, count: int, why: str) -> Damage:
    """Return what is said once of commits of which a text does not tell whether they took effect.

    Args:
        first: the line of the first; 0 where there are none.
    """
    where = f"from line {first} on " * (first > 0)
    words = f"{where}{counted(count, 'commit', 'commits')} may have been aborted: {why}, {CONSEQUENCE}"
    return Damage(NotTold(words, position=first), b"")


CONSEQUENCE = (
    "and an offset that depends on one of these is unknown (null) in the answer and left out by rescue; offsets-log "
    "history shows each"
)


@dataclass(slots=True)
class Lineless:
    """Lines of records in kafka-dump-log's text without the line of their batch, as grep and tail leave them.

    Attributes:
        lines, first: how many there are, and the number of the first.
        untold: commits among them of which it is not known whether they took effect.
    """

    lines: int = 0
    first: int = 0
    untold: int = 0

    def batch(self, place: SegmentPlace, record: Record, kind: str, *, is_control: bool, is_plain: bool) -> SourceBatch:
        """Return a record as a batch of its own.

        Args:
            kind: the type of its timestamp.
            is_plain: whether its line tells that no transaction holds it.
        """
        self.lines += 1
        self.first = self.first or record.position
        if is_control:
            return untold_marker(place, record, UNTOLD_OF_BATCHES, timestamp_type=kind)
        if not is_plain and is_commit(record):
            self.untold += 1
            return untold_batch(place, record, UNTOLD_OF_BATCHES, timestamp_type=kind)
        made = header((record,), line=record.position, timestamp_type=kind)
        return SourceBatch(place, made, (record,), UNTOLD_OF_BATCHES)

    def pieces(self) -> Iterator[Damage]:
        """Yield what is said of all of them, as damage at the first."""
        if not self.lines:
            return
        words = (
            f"from line {self.first} on {counted(self.lines, 'line of a record has', 'lines of records have')} no line "
            "of a batch (baseOffset: …) before them, so whether they were in transactions is not told"
        )
        if self.untold:
            words += f": {counted(self.untold, 'commit', 'commits')} of them may have been aborted, {CONSEQUENCE}"
        words += ". Next time keep the whole text of kafka-dump-log, not only some of its lines"
        yield Damage(NotTold(words, position=self.first), b"")


@dataclass(slots=True)
class Files:
    """Logs in a text that names the files: another one begins where a name stands there again.

    Attributes:
        log_line: where the log begins whose files are named now; 0 for the first.
    """

    log_line: int = 0
    _named: set[SegmentPlace] = field(default_factory=set)

    def place_of(self, line: int, file: str) -> SegmentPlace | None:
        """Return the place of a file that a line names; None for one of another topic."""
        place = place_of(file)
        if place is None:
            return None
        if place in self._named:
            self.log_line, self._named = line, set()
        self._named.add(place)
        return replace(place, log_line=self.log_line)


@dataclass(slots=True)
class Parts:
    """Logs in a text that does not name the files: another one begins where offsets fall.

    Attributes:
        place: where the last lines belong.
        last_offset: the last offset there.
    """

    place: SegmentPlace = field(default_factory=SegmentPlace)
    last_offset: int = -1

    def place_of(self, line: int, records: Sequence[Record]) -> tuple[SegmentPlace, list[Remark]]:
        """Return where a batch at a line belongs, and what is to be said."""
        begins = bool(records) and records[0].offset <= self.last_offset
        self.place = SegmentPlace(f"from line {line}") if begins else self.place
        self.last_offset = records[-1].offset if records else self.last_offset
        return self.place, [Remark(BEGIN_ANEW)] * begins


BEGIN_ANEW = (
    "offsets begin again in it: lines of several files are here without those that name these (Dumping …), or lines "
    "are not in the order of the log"
)
