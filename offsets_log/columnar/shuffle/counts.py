"""Convert what a piece has counted to facts and bytes and back: batches and records, their kinds, who wrote them.

`add_counts` and `join_writers` join neighbouring pieces by the same rules as those of threads, `merge` of
`SurveyedState` and `WritersState`. All sizes grow with kinds, keys, producers and minutes, never with records.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar.folds import census, tally
from offsets_log.columnar.folds import naming as nm
from offsets_log.columnar.folds.counting import summed
from offsets_log.columnar.folds.state import ColumnarState
from offsets_log.columnar.folds.surveys import SurveyedState
from offsets_log.columnar.folds.writers import WritersState
from offsets_log.columnar.jit.records import Table, places
from offsets_log.columnar.overflow import Producer, Unended
from offsets_log.replay.profile import MODERN
from offsets_log.rows.survey import Kinds, Survey
from offsets_log.rows.tables import Row

COUNTED = {
    "batches": a.ScanState.batches,
    "records": a.ScanState.records,
    "missing_offsets": a.ScanState.missing,
    "gaps": a.ScanState.gaps,
    "first_offset": a.ScanState.first_offset,
    "last_offset": a.ScanState.last_offset,
}
"""Fact → its field of the scan state; offsets are `arrays.NOTHING` without a batch."""
NOT_COUNTED = {name: a.NOTHING if name.endswith("offset") else 0 for name in COUNTED}
"""The facts of a piece without a batch."""


def counts_of(state: ColumnarState) -> Row:
    """Return what was counted of batches, and in a survey of their kinds, as facts."""
    facts: Row = {name: int(state.arrays.scan_state.numbers[field.at]) for name, field in COUNTED.items()}
    if isinstance(state, SurveyedState):
        state.name_kinds()
        facts["kinds"] = {
            field.name: dict(value) if isinstance(value, Counter) else value
            for field in fields(Kinds)
            for value in (getattr(state.kinds, field.name),)
        }
    return facts


def transaction_rows(state: ColumnarState) -> Iterator[Row]:
    """Yield the producers that a survey has seen, in columns of `partials`; their kind is not filled in."""
    if not isinstance(state, SurveyedState):
        return
    producers, unended = state.arrays.region(Producer), state.arrays.region(Unended)
    for number in range(int(state.arrays.scan_state.producer_count)):
        seen = unended[number]
        if seen.count or seen.is_ended:
            yield {
                "producer_id": int(producers[number].producer_id),
                "record_offset": int(seen.offset),
                "commit_timestamp_ms": int(seen.time),
                "number": int(seen.count),
                "commits": bool(seen.is_ended),
            }


def no_counts() -> SurveyedState:
    """Return a log's state in which nothing is counted yet."""
    return SurveyedState(MODERN)


def add_counts(whole: SurveyedState, facts: Row, transactions: Iterable[Row]) -> None:
    """Add the counts of the piece that follows, as returned by `counts_of` and `transaction_rows`."""
    right = SurveyedState(whole.profile)
    for name, field in COUNTED.items():
        right.arrays.scan_state.numbers[field.at] = facts[name]
    if "kinds" in facts:
        right.kinds = _kinds(facts["kinds"])
    for row in transactions:
        _add_transaction(right, row)
    whole.merge(right)


def _kinds(facts: Row) -> Kinds:
    kinds = Kinds(**facts)
    for name in ("record_names", "releases", "codecs"):
        setattr(kinds, name, Counter(facts[name]))
    kinds.magics = Counter({int(magic): count for magic, count in facts["magics"].items()})
    return kinds


def _add_transaction(state: SurveyedState, row: Row) -> None:
    """Add a producer, which must be new."""
    producer_id: int = row["producer_id"]
    number = census.NO_PRODUCER if producer_id == -1 else int(state.arrays.scan_state.producer_count)
    if row["commits"]:
        state.end(producer_id)
    if row["number"]:
        state.add_commit(producer_id, row["record_offset"], row["commit_timestamp_ms"])
        state.arrays.region(Unended)[number].count = row["number"]


def tell_counts(facts: Row, transactions: Iterable[Row], found: Survey) -> None:
    """Copy all that was counted of a log into a survey, as `SurveyedState.tell` does."""
    whole = no_counts()
    add_counts(whole, facts, transactions)
    whole.tell(found)


# ----------------------------------------------------------------------------------------------- writers

_FIELDS = (a.ScanState.row_count, a.ScanState.group_count, a.ScanState.arena_used, a.ScanState.end_offset)
_PLACES = places(*_FIELDS, *COUNTED.values())


def writers_bytes(state: WritersState) -> bytes:
    """Return what was counted for writers, as bytes.

    As long as ``state`` holds keys, what their first and last records commit is included.
    """
    runs = summed(state.runs())
    s = state.arrays
    rows, groups, arena = int(s.scan_state.row_count), int(s.scan_state.group_count), int(s.scan_state.arena_used)
    made = io.BytesIO()
    np.savez(
        made,
        scan_state=s.scan_state.numbers[_PLACES],
        rows=s.rows.numbers[:rows],
        groups=s.groups.numbers[:groups],
        arena=s.arena[:arena],
        writers=state.writers.numbers[:groups],
        runs=runs,
        sizes=np.array([state.counts[nm.PER], state.counts[tally.COUNTED_BYTES], state.accepted_bytes], np.int64),
    )
    return made.getvalue()


def writers_of(data: bytes) -> WritersState:
    """Restore what `writers_bytes` returned, to be the right side of a merge, or to be read."""
    found: Any = np.load(io.BytesIO(data))
    per, counted_bytes, accepted_bytes = found["sizes"].tolist()
    state = WritersState(MODERN, per)
    state.arrays.scan_state.numbers[_PLACES] = found["scan_state"]
    s, rows = state.arrays, Table.of_numbers(a.Row, found["rows"])
    s.rows, s.groups, s.arena = a.new_rows(len(rows), rows), Table.of_numbers(a.Group, found["groups"]), found["arena"]
    state.writers, state.minutes = Table.of_numbers(tally.Writer, found["writers"]), found["runs"]
    state.counts[tally.RUNS] = len(state.minutes)
    state.counts[tally.COUNTED_BYTES] = counted_bytes
    state.accepted_bytes = accepted_bytes
    return state


def join_writers(pieces: Iterable[bytes], end_offset: int) -> bytes:
    """Join the counts of a log's pieces, in log order; drop the keys, which are not needed any more."""
    whole: WritersState | None = None
    for data in pieces:
        right = writers_of(data)
        if whole is None:
            whole = WritersState(MODERN, int(right.counts[nm.PER]))
        whole.merge(right)
    assert whole is not None
    bare = WritersState(MODERN, int(whole.counts[nm.PER]))
    whole.arrays.scan_state.row_count = 0
    bare.merge(whole)
    bare.end_offset = end_offset
    return writers_bytes(bare)
