"""Check a partition's files, whoever loads them: their sizes, damage, tails, gaps and overlaps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from offsets_log.checking.findings import DAMAGE, DOUBT, NOTE, Finding
from offsets_log.checking.places import NOWHERE, FindingPlace
from offsets_log.errors import Damage, OffsetsLogError, TruncatedBatchError
from offsets_log.events import BatchEnd, BatchStart, TailFound
from offsets_log.log_format.completeness import BelowStart, Missing
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.rows.survey import describe_tail
from offsets_log.rows.tables import problem_row
from offsets_log.words import counted


@dataclass(slots=True)
class SeenFiles:
    """What was seen of the files.

    Attributes:
        ends: file → offset where the log continues after its last batch.
        damaged_files: files that hold anything but whole batches.
        damages, tails, missing: findings in log order.
    """

    size_bytes: int = 0
    batches: int = 0
    records: int = 0
    ends: dict[str, int] = field(default_factory=dict)
    damaged_files: set[str | None] = field(default_factory=set)
    damages: list[Finding] = field(default_factory=list)
    tails: list[Finding] = field(default_factory=list)
    missing: list[Finding] = field(default_factory=list)

    def saw_batch(self, event: BatchStart) -> None:
        """Note a batch whose records follow."""
        self.batches += 1
        self.size_bytes += event.batch.size_bytes

    def saw_batch_end(self, event: BatchEnd) -> None:
        """Note that a batch was read to its end."""
        self.ends[event.segment.file] = event.batch.next_offset

    def saw_tail(self, event: TailFound) -> None:
        """Note the tail after the last batch of a file."""
        tail = event.tail
        self.tails.append(
            Finding(
                severity=DOUBT if event.lost else NOTE,
                rule="records:T6",
                problem=describe_tail(event),
                place=FindingPlace(event.segment.file, tail.position),
                detail={"tail": tail.kind, "size_bytes": tail.size_bytes},
            )
        )

    def saw_missing(self, missing: Missing) -> None:
        """Note offsets that no segment holds."""
        self.missing.append(missing_finding(missing))

    def saw_damage(self, damage: Damage) -> None:
        """Note a piece of a file that is no batch, or no record of one."""
        self.damaged_files.add(damage.error.file)
        rule, broker = _damaged_batch(damage.error)
        self._add_damage(damage, rule, {"broker": broker})

    def saw_damaged_record(self, damage: Damage, rule: str, group: str | None) -> None:
        """Note a record whose key or value cannot be read."""
        self._add_damage(damage, rule, {}, group)

    def _add_damage(self, damage: Damage, rule: str, detail: dict[str, Any], group: str | None = None) -> None:
        error = damage.error
        self.damages.append(
            Finding(
                severity=DOUBT if damage.is_unsupported else DAMAGE,
                rule=rule,
                problem=problem_row(damage)["problem"],
                place=FindingPlace(error.file, error.position, error.record_offset, group),
                detail={"size_bytes": len(damage.raw)} | detail,
            )
        )

    def overlaps(self, log: PartitionLog) -> Iterator[Finding]:
        """Yield a finding for each segment that begins before the previous one ends."""
        for segment, following in pairwise(log.segments):
            end, begin = self.ends.get(segment.file, segment.base_offset), following.base_offset
            if end is not None and begin is not None and end > begin and segment.file not in self.damaged_files:
                yield _overlap(segment, following, end, begin)

    def size(self, below: BelowStart | None = None) -> Finding:
        """Return how much a load reads (``J-1``), without what lies below the log start offset."""
        names = ("size_bytes", "batches", "records")
        size_bytes, batches, records = (getattr(self, name) - getattr(below, name, 0) for name in names)
        return Finding(
            severity=NOTE,
            rule="J-1",
            problem=f"a load reads {counted(size_bytes, 'byte')}: {counted(batches, 'batch', 'batches')}, "
            f"{counted(records, 'record')}",
            detail={"size_bytes": size_bytes, "batches": batches, "records": records},
        )


def _damaged_batch(error: OffsetsLogError) -> tuple[str, str]:
    """Return the rule, and what a broker does; there is no verdict, for it depends on how the broker was stopped."""
    recovery = "after an unclean one the log ends here (records:T4)"
    if error.field == "crc":
        return "L-7", f"after a clean stop a load reads it as it is; {recovery}"
    if error.field == "base_offset":
        return "C-24", "a load reads it as it stands, in file order"
    if isinstance(error, TruncatedBatchError):
        return "records:T1", f"after a clean stop a load reads nothing from here to the end of the file; {recovery}"
    if error.field == "magic":
        recovery = "after an unclean one too, unless recovery cuts the log by then: no checksum covers it (D-4)"
    return "records:T5", f"after a clean stop a load that comes here fails; {recovery}"


def _overlap(segment: Segment, following: Segment, end: int, begin: int) -> Finding:
    return Finding(
        severity=DOUBT,
        rule="C-24",
        problem=f"{segment.file} ends before offset {end}, {following.file} begins at {begin}: they overlap",
        place=FindingPlace(following.file, 0, begin),
        detail={"end_offset": end, "next_base_offset": begin},
    )


def deleted_finding(found: BelowStart) -> Finding:
    """Return a doubt: from a compacted topic nothing is deleted, and commits that were are gone for good (``L-2``)."""
    return Finding(
        severity=DOUBT,
        rule="L-2",
        problem=found.in_words(),
        detail={"log_start_offset": found.log_start_offset, "records": found.records},
    )


def missing_finding(missing: Missing) -> Finding:
    """Return a doubt for lost offsets, as the log loads without a warning (``D-10``); a note for explained ones."""
    return Finding(
        severity=DOUBT if missing.is_lost else NOTE,
        rule="D-10",
        problem=missing.in_words(),
        place=NOWHERE if missing.file is None else FindingPlace(missing.file, None, missing.first_offset),
        detail={
            "first_offset": missing.first_offset,
            "last_offset": missing.last_offset,
            "missing_offsets": missing.count,
            "explained_by": missing.explained_by,
        },
    )
