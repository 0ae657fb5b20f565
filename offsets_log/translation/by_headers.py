"""Where committed offsets are in the target by headers that tell each record's offset in the source.

Tools that back up and restore records write such headers. A header may tell the partition too; then partitions need
not have kept their numbers, if all records of one went to one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar.aligning import placing as pl
from offsets_log.columnar.aligning import records as r
from offsets_log.columnar.aligning import table as tb
from offsets_log.columnar.jit.records import Rows, Table
from offsets_log.translation.alignment import placed
from offsets_log.translation.answers import AT_LEAST, EXACT, Answer, Later, Told, Untold
from offsets_log.translation.unread import Gaps


@dataclass(slots=True)
class _Placing:
    """Committed offsets of a partition of the source, among the records of one of the target."""

    state: pl.Placing
    asked: Table[pl.Asked]
    counts: a.Int64s
    found: int = 0


@dataclass(frozen=True, slots=True)
class ByHeaders:
    """What headers say.

    Attributes:
        target_partition: to which the source's went; None where it went to none.
        told: committed offset → answer.
        gaps: offsets that the target's partition does not have.
    """

    target_partition: int | None
    told: Mapping[int, Told] = field(default_factory=dict)
    gaps: Gaps = field(default_factory=Gaps, compare=False)


def in_partition(
    target: int, chunks: Iterable[Rows], committed: Mapping[int, Sequence[int]], gaps: Gaps
) -> dict[int, ByHeaders]:
    """Return what one partition of the target tells of those partitions of the source that it has records of.

    Args:
        chunks: its rows (`columnar.aligning.records`).
        gaps: takes the offsets that it does not have.
        committed: partition of the source → committed offsets.
    """
    placings = {
        partition: _Placing(*pl.begin(np.array(sorted(set(some)), np.int64))) for partition, some in committed.items()
    }
    for rows in chunks:
        gaps.note(rows["offset"])
        _place(rows[rows["flags"] & r.IS_CONTROL == 0], target, placings)
    there = {partition: placing for partition, placing in placings.items() if placing.found}
    for placing in there.values():
        pl.end(placing.state, placing.asked, placing.counts)
    return {partition: ByHeaders(target, _told(placing), gaps) for partition, placing in there.items()}


def by_headers(found: Iterable[Mapping[int, ByHeaders]], partitions: Iterable[int]) -> dict[int, ByHeaders]:
    """Return where the committed offsets of each partition of the source are.

    Args:
        found: what each partition of the target tells, in their order.
    """
    told = list(found)
    split = {number for one in told for number in one if sum(number in other for other in told) > 1}
    return {number: _only(number, [one for one in told if number in one], split) for number in partitions}


def _place(rows: Rows, target: int, placings: Mapping[int, _Placing]) -> None:
    sources = np.where(rows["source_partition"] < 0, target, rows["source_partition"])
    has_header = rows["source_offset"] >= 0
    for partition, placing in placings.items():
        own = has_header & (sources == partition)
        kept = own | ~has_header
        offsets, source = rows["offset"][kept], rows["source_offset"][kept]
        places = np.stack([np.where(source < 0, tb.NOWHERE_LOWEST, source), source], axis=1)
        placing.found += int(own.sum())
        pl.place(placing.state, placing.asked, placing.counts, np.ascontiguousarray(offsets), places)


def _told(placing: _Placing) -> dict[int, Told]:
    return {
        int(row.committed): placed(_answer(placing, i, row), placing.state, row) for i, row in enumerate(placing.asked)
    }


def _answer(placing: _Placing, i: int, row: pl.Asked) -> Answer:
    state = placing.state
    if row.after == pl.NONE:
        is_next = row.before_highest + 1 >= row.committed  # else read records may follow there
        if row.unsure == pl.NONE:
            return Answer(int(state.last) + 1, *((EXACT, 0) if is_next else (AT_LEAST, None)))
        again = int(state.records - state.records_front) if is_next else None
        return Answer(int(row.unsure), AT_LEAST, again)
    again = int(placing.counts[: i + 1].sum() - row.read_before)
    if row.unsure_count:
        count = int(row.unsure_count)
        return Answer(int(row.unsure), AT_LEAST, count + again, later=Later(int(row.after), again, count))
    return Answer(int(row.after), EXACT, again)


def _only(partition: int, there: Sequence[Mapping[int, ByHeaders]], split: Collection[int]) -> ByHeaders:
    """Return what is told of a partition, if one of the target has all its records, and all of others that it has."""
    if not there:
        return ByHeaders(None)
    found = [one[partition] for one in there]
    several = ", ".join(str(one.target_partition) for one in found)
    if len(found) > 1:
        why = f"its records are in several partitions of the target: {several}"
    elif beside := sorted(there[0].keys() & split):
        why = f"the target's partition {several} has records of partition {beside[0]}, and so have others"
    else:
        return found[0]
    return ByHeaders(partition, dict.fromkeys(found[0].told, Untold(why)))
