"""Where committed offsets of the source are among the records of the target, by what is known of each of these.

A record of the target stands at one place in the source, or somewhere between two, or nowhere that is known. For a
committed offset it is *below* (read by the group), *at or behind* (not read), or *unsure*. What is sought is the first
that is at or behind, the last one below before that, and what is unsure between the two.

Copying goes on in the source's order, and begins again at most with what was copied before. So a record that is
unsure and comes before one that is below was read, or comes again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from offsets_log.columnar.jit.compiled import U, inlined, kernel, part
from offsets_log.columnar.jit.kinds import LongRows, Longs
from offsets_log.columnar.jit.records import Long, Record, Table

NONE = -1


class Asked(Record):
    """A committed offset; offsets of the target are NONE for nothing."""

    committed: Long
    after: Long  # the first record at or behind: its offset in the target
    after_lowest: Long  # and in the source
    after_highest: Long
    before: Long  # the last one below before that; without one at or behind, the last of the furthest copied
    before_lowest: Long
    before_highest: Long
    unsure: Long  # the first unsure record behind that
    unsure_count: Long
    read_before: Long  # how many were below before `after`
    since_below: Long  # unsure for this one alone: since which `Placing.number_below`
    first_since_below: Long
    count_since_below: Long
    since_front: Long  # the same by `Placing.number_front`
    first_since_front: Long
    count_since_front: Long


class Placing(Record):
    """How far the records of the target are placed."""

    next: Long  # the first committed offset without `Asked.after`
    number_below: Long  # how many were below for all from there on: the last of them is
    below: Long
    below_lowest: Long
    below_highest: Long
    unknown: Long  # of no known place, since then
    unknown_count: Long
    number_front: Long  # which of those below came furthest in the source
    front: Long
    front_lowest: Long
    front_highest: Long
    unknown_front: Long
    unknown_front_count: Long
    of_class: Long  # of the last record that is not unsure
    waiting: Long  # records of no known place since then
    records: Long
    placed: Long
    last: Long  # offset of the last record
    records_front: Long  # how many there were up to the front
    records_before: Long  # how many came before the first with a place
    copied_again: Long  # how many of those below came behind others that came further


def begin(committed: Longs) -> tuple[Placing, Table[Asked], Longs]:
    """Return the state, the rows, and the counts by class, for committed offsets that rise."""
    asked = Table(Asked, len(committed))
    asked.numbers[:] = NONE
    asked.rows["committed"] = committed
    for name in ("unsure_count", "read_before", "count_since_below", "count_since_front"):
        asked.rows[name] = 0
    state = Placing()
    for name in (
        "below", "below_lowest", "below_highest", "unknown", "front", "front_lowest", "front_highest", "unknown_front",
        "last", "records_before",
    ):  # fmt: skip
        state.rows[name] = NONE
    return state, asked, np.zeros(len(committed) + 1, np.int64)


@part
def _class_of(asked: Any, offset: Any) -> Any:
    """Return how many committed offsets are at or below an offset."""
    low, high = np.int64(0), np.int64(len(asked))
    while low < high:
        middle = low + high >> 1
        if asked[U(middle)].committed <= offset:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def _first(one: Any, other: Any) -> Any:
    """Return the lower of two offsets, of which NONE is none."""
    if one == NONE:
        return other
    return one if other == NONE or one < other else other


@part
def _answer(state: Any, asked: Any, counts: Any, i: Any, offset: Any, lowest: Any, highest: Any) -> None:
    """Note the first record at or behind a committed offset, and what is before it."""
    asked[i].after, asked[i].after_lowest, asked[i].after_highest = offset, lowest, highest
    asked[i].before = state.below
    asked[i].before_lowest, asked[i].before_highest = state.below_lowest, state.below_highest
    asked[i].unsure, asked[i].unsure_count = state.unknown, state.unknown_count
    if asked[i].since_below == state.number_below:
        asked[i].unsure = _first(asked[i].unsure, asked[i].first_since_below)
        asked[i].unsure_count += asked[i].count_since_below
    for known in range(np.int64(i) + 1):
        asked[i].read_before += counts[U(known)]


@part
def _doubt(state: Any, asked: Any, i: Any, offset: Any) -> None:
    """Note a record that is unsure for one committed offset."""
    if asked[i].since_below != state.number_below:
        asked[i].since_below = state.number_below
        asked[i].first_since_below, asked[i].count_since_below = offset, 0
    asked[i].count_since_below += 1
    if asked[i].since_front != state.number_front:
        asked[i].since_front = state.number_front
        asked[i].first_since_front, asked[i].count_since_front = offset, 0
    asked[i].count_since_front += 1


@inlined
def _pass(state: Any, counts: Any, known: Any, offset: Any, lowest: Any, highest: Any) -> None:
    """Note a record that is not unsure."""
    counts[U(known)] += 1
    state.of_class = known
    state.number_below += 1
    state.below, state.below_lowest, state.below_highest = offset, lowest, highest
    state.unknown, state.unknown_count = NONE, 0
    if highest < state.front_highest:
        state.copied_again += 1
    if highest > state.front_highest:
        state.number_front += 1
        state.records_front = state.records
        state.front, state.front_lowest, state.front_highest = offset, lowest, highest
        state.unknown_front, state.unknown_front_count = NONE, 0


@inlined
def _unknown(state: Any, offset: Any) -> None:
    """Note a record of no known place."""
    state.waiting += 1
    state.unknown_count += 1
    state.unknown_front_count += 1
    if state.unknown == NONE:
        state.unknown = offset
    if state.unknown_front == NONE:
        state.unknown_front = offset


@inlined
def _settle_waiting(state: Any, counts: Any, known: Any, lowest: Any) -> None:
    """Count records of no known place by the lowest that they may have; behind a step back that is any."""
    at = np.int64(0) if lowest <= state.below_lowest else min(known, state.of_class)
    counts[U(at)] += state.waiting
    state.waiting = 0


@kernel
def place(state: Placing, asked: Table[Asked], counts: Longs, offsets: Longs, places: LongRows) -> None:
    """Go on with records of the target.

    Args:
        asked: a row for each committed offset, which rise.
        counts: how many records are known to be at or behind so many of them, and before the next.
        offsets, places: of the records, in the target and in the source.
    """
    for n in range(len(offsets)):
        offset, lowest, highest = offsets[U(n)], places[U(n), 0], places[U(n), 1]
        state.records += 1
        state.last = offset
        if lowest > highest:
            _unknown(state, offset)
            continue
        if state.placed == 0:
            state.records_before = state.records - 1
        state.placed += 1
        least = _class_of(asked, lowest)
        most = least if highest == lowest else _class_of(asked, highest)
        if least == most or state.next < least:
            _settle_waiting(state, counts, least, lowest)
        while state.next < least:
            _answer(state, asked, counts, U(state.next), offset, lowest, highest)
            state.next += 1
        if least == most:
            _pass(state, counts, least, offset, lowest, highest)
        else:
            counts[U(least)] += 1
            for i in range(state.next, len(asked)):
                if i < most or state.unknown_count > 0 or asked[U(i)].since_below == state.number_below:
                    _doubt(state, asked, U(i), offset)


@kernel
def end(state: Placing, asked: Table[Asked], counts: Longs) -> None:
    """End with the last record: for committed offsets that no record is known to be at or behind."""
    counts[U(state.of_class)] += state.waiting
    state.waiting = 0
    for n in range(state.next, len(asked)):
        i = U(n)
        asked[i].before = state.front
        asked[i].before_lowest, asked[i].before_highest = state.front_lowest, state.front_highest
        asked[i].unsure, asked[i].unsure_count = state.unknown_front, state.unknown_front_count
        if asked[i].since_front == state.number_front:
            asked[i].unsure = _first(asked[i].unsure, asked[i].first_since_front)
            asked[i].unsure_count += asked[i].count_since_front
