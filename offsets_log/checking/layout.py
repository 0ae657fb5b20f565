"""What stands in a partition's files, whoever loads them: their sizes, damage, tails, gaps and overlaps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from offsets_log.checking.findings import DAMAGE, DOUBT, NOTE, Finding
from offsets_log.checking.places import Place
from offsets_log.errors import Damage, OffsetsLogError, TruncatedBatchError
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.pipeline import BatchEnd, BatchStart, TailFound
from offsets_log.survey import describe_tail
from offsets_log.tables import problem_row


@dataclass(slots=True)
class Layout:
    """What was seen of the files.

    Attributes:
        read_to_the_end: no bound ended the reading before the last file's end.
        ends: file → where the log goes on behind its last batch.
        damaged_files: those that hold something other than whole batches.
        damages, tails: in log order.
    """

    size_bytes: int = 0
    batches: int = 0
    records: int = 0
    read_to_the_end: bool = False
    ends: dict[str, int] = field(default_factory=dict)
    damaged_files: set[str | None] = field(default_factory=set)
    damages: list[Finding] = field(default_factory=list)
    tails: list[Finding] = field(default_factory=list)

    def saw_batch(self, event: BatchStart) -> None:
        """Its records follow."""
        self.batches += 1
        self.size_bytes += event.batch.size_bytes

    def saw_batch_end(self, event: BatchEnd) -> None:
        """It was read whole."""
        self.ends[event.segment.file] = event.batch.next_offset

    def saw_log_end(self) -> None:
        """No bound ended the reading before."""
        self.read_to_the_end = True

    def saw_tail(self, event: TailFound) -> None:
        """Behind the last batch of a file."""
        tail = event.tail
        self.tails.append(
            Finding(
                severity=NOTE,
                rule="records:T6",
                problem=describe_tail(tail.kind, tail.position, tail.size_bytes),
                place=Place(event.segment.file, tail.position),
                detail={"tail": tail.kind, "size_bytes": tail.size_bytes},
            )
        )

    def saw_damage(self, damage: Damage) -> None:
        """A piece of a file that is no batch, or no record of one."""
        self.damaged_files.add(damage.error.file)
        rule, broker = _damaged_batch(damage.error)
        self._add_damage(damage, rule, {"broker": broker})

    def saw_damaged_record(self, damage: Damage, rule: str, group: str | None) -> None:
        """A record whose key or value cannot be read."""
        self._add_damage(damage, rule, {}, group)

    def _add_damage(self, damage: Damage, rule: str, detail: dict[str, Any], group: str | None = None) -> None:
        error = damage.error
        self.damages.append(
            Finding(
                severity=DOUBT if damage.is_unsupported else DAMAGE,
                rule=rule,
                problem=problem_row(damage)["problem"],
                place=Place(error.file, error.position, error.record_offset, group),
                detail={"size_bytes": len(damage.raw)} | detail,
            )
        )

    def gaps(self, log: PartitionLog) -> Iterator[Finding]:
        """Before the first segment and between two of them; those inside a segment are the log cleaner's."""
        first = log.segments[0] if log.segments else None
        if first is not None and first.base_offset:
            yield Finding(
                severity=NOTE,
                rule=None,
                problem=f"the log begins at offset {first.base_offset}: older segments may be missing",
                place=Place(first.file, 0, first.base_offset),
            )
        for segment, following in pairwise(log.segments):
            end, begin = self.ends.get(segment.file, segment.base_offset), following.base_offset
            if not self.read_to_the_end and following.file not in self.ends:
                return  # a bound ended the reading here
            if end is None or begin is None or segment.file in self.damaged_files:
                continue
            if end != begin:
                yield _gap(segment, following, end, begin, log.cleaned_until)

    def size(self) -> Finding:
        """How much a load reads (``J-1``)."""
        return Finding(
            severity=NOTE,
            rule="J-1",
            problem=f"a load reads {self.size_bytes} bytes: {self.batches} batches, {self.records} records",
            detail={"size_bytes": self.size_bytes, "batches": self.batches, "records": self.records},
        )


def _damaged_batch(error: OffsetsLogError) -> tuple[str, str]:
    """The rule, and what a broker does about it; no verdict, for that depends on how it was stopped."""
    recovery = "after an unclean one the log ends here (records:T4)"
    if error.field == "crc":
        return "L-7", f"after a clean stop a load reads it as it is; {recovery}"
    if error.field == "base_offset":
        return "C-24", "a load reads it as it stands, in file order"
    if isinstance(error, TruncatedBatchError):
        return "records:T1", f"after a clean stop a load reads nothing from here to the end of the file; {recovery}"
    return "records:T5", f"after a clean stop a load that comes here fails; {recovery}"


def _gap(segment: Segment, following: Segment, end: int, begin: int, cleaned_until: int | None) -> Finding:
    if end > begin:
        severity, rule, what = DOUBT, "C-24", "they overlap"
    elif cleaned_until is not None and begin > cleaned_until:
        severity, rule, what = DOUBT, None, "a gap that the cleaner has not come to, a file is missing"
    else:
        severity, rule, what = NOTE, None, "a gap, normal after compaction, but a file may be missing"
    return Finding(
        severity=severity,
        rule=rule,
        problem=f"{segment.file} ends before offset {end}, {following.file} begins at {begin}: {what}",
        place=Place(following.file, 0, begin),
        detail={"end_offset": end, "next_base_offset": begin},
    )
