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

NONE = -1

# A row for each committed offset; offsets of the target are NONE for nothing.
COMMITTED = 0
AFTER = 1  # the first record at or behind: its offset in the target
AFTER_LOWEST, AFTER_HIGHEST = 2, 3  # and in the source
BEFORE = 4  # the last one below before that; without one at or behind, the last of the furthest that were copied
BEFORE_LOWEST, BEFORE_HIGHEST = 5, 6
UNSURE = 7  # the first unsure record behind that
UNSURE_COUNT = 8
READ_BEFORE = 9  # how many were below before AFTER
SINCE_BELOW, FIRST_SINCE_BELOW, COUNT_SINCE_BELOW = 10, 11, 12  # unsure for this one alone, see NUMBER_BELOW
SINCE_FRONT, FIRST_SINCE_FRONT, COUNT_SINCE_FRONT = 13, 14, 15
ASKED_SIZE = 16

# The state.
NEXT = 0  # the first committed offset without AFTER
NUMBER_BELOW = 1  # how many were below for all from there on: the last of them is
BELOW, BELOW_LOWEST, BELOW_HIGHEST = 2, 3, 4
UNKNOWN, UNKNOWN_COUNT = 5, 6  # of no known place, since then
NUMBER_FRONT = 7  # which of those below came furthest in the source
FRONT, FRONT_LOWEST, FRONT_HIGHEST = 8, 9, 10
UNKNOWN_FRONT, UNKNOWN_FRONT_COUNT = 11, 12
CLASS = 13  # of the last record that is not unsure
WAITING = 14  # records of no known place since then
RECORDS, PLACED = 15, 16
LAST = 17  # offset of the last record
RECORDS_FRONT = 18  # how many there were up to FRONT
RECORDS_BEFORE = 19  # how many came before the first with a place
COPIED_AGAIN = 20  # how many of those below came behind others that came further
STATE_SIZE = 21


def begin(committed: Any) -> tuple[Any, Any, Any]:
    """Return the state, the rows, and the counts by class, for committed offsets that rise."""
    rows = np.full((len(committed), ASKED_SIZE), NONE, np.int64)
    rows[:, COMMITTED] = committed
    rows[:, [UNSURE_COUNT, READ_BEFORE, COUNT_SINCE_BELOW, COUNT_SINCE_FRONT]] = 0
    state = np.full(STATE_SIZE, NONE, np.int64)
    state[
        [NEXT, NUMBER_BELOW, UNKNOWN_COUNT, NUMBER_FRONT, UNKNOWN_FRONT_COUNT, CLASS, WAITING, RECORDS, PLACED,
         RECORDS_FRONT, COPIED_AGAIN]
    ] = 0  # fmt: skip
    return state, rows, np.zeros(len(committed) + 1, np.int64)


@part
def _class_of(asked: Any, offset: Any) -> Any:
    """Return how many committed offsets are at or below an offset."""
    low, high = np.int64(0), np.int64(len(asked))
    while low < high:
        middle = low + high >> 1
        if asked[U(middle), COMMITTED] <= offset:
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
    asked[i, AFTER], asked[i, AFTER_LOWEST], asked[i, AFTER_HIGHEST] = offset, lowest, highest
    asked[i, BEFORE] = state[BELOW]
    asked[i, BEFORE_LOWEST], asked[i, BEFORE_HIGHEST] = state[BELOW_LOWEST], state[BELOW_HIGHEST]
    asked[i, UNSURE], asked[i, UNSURE_COUNT] = state[UNKNOWN], state[UNKNOWN_COUNT]
    if asked[i, SINCE_BELOW] == state[NUMBER_BELOW]:
        asked[i, UNSURE] = _first(asked[i, UNSURE], asked[i, FIRST_SINCE_BELOW])
        asked[i, UNSURE_COUNT] += asked[i, COUNT_SINCE_BELOW]
    for known in range(np.int64(i) + 1):
        asked[i, READ_BEFORE] += counts[U(known)]


@part
def _doubt(state: Any, asked: Any, i: Any, offset: Any) -> None:
    """Note a record that is unsure for one committed offset."""
    if asked[i, SINCE_BELOW] != state[NUMBER_BELOW]:
        asked[i, SINCE_BELOW] = state[NUMBER_BELOW]
        asked[i, FIRST_SINCE_BELOW], asked[i, COUNT_SINCE_BELOW] = offset, 0
    asked[i, COUNT_SINCE_BELOW] += 1
    if asked[i, SINCE_FRONT] != state[NUMBER_FRONT]:
        asked[i, SINCE_FRONT] = state[NUMBER_FRONT]
        asked[i, FIRST_SINCE_FRONT], asked[i, COUNT_SINCE_FRONT] = offset, 0
    asked[i, COUNT_SINCE_FRONT] += 1


@inlined
def _pass(state: Any, counts: Any, known: Any, offset: Any, lowest: Any, highest: Any) -> None:
    """Note a record that is not unsure."""
    counts[U(known)] += 1
    state[CLASS] = known
    state[NUMBER_BELOW] += 1
    state[BELOW], state[BELOW_LOWEST], state[BELOW_HIGHEST] = offset, lowest, highest
    state[UNKNOWN], state[UNKNOWN_COUNT] = NONE, 0
    if highest < state[FRONT_HIGHEST]:
        state[COPIED_AGAIN] += 1
    if highest > state[FRONT_HIGHEST]:
        state[NUMBER_FRONT] += 1
        state[RECORDS_FRONT] = state[RECORDS]
        state[FRONT], state[FRONT_LOWEST], state[FRONT_HIGHEST] = offset, lowest, highest
        state[UNKNOWN_FRONT], state[UNKNOWN_FRONT_COUNT] = NONE, 0


@inlined
def _unknown(state: Any, offset: Any) -> None:
    """Note a record of no known place."""
    state[WAITING] += 1
    state[UNKNOWN_COUNT] += 1
    state[UNKNOWN_FRONT_COUNT] += 1
    if state[UNKNOWN] == NONE:
        state[UNKNOWN] = offset
    if state[UNKNOWN_FRONT] == NONE:
        state[UNKNOWN_FRONT] = offset


@inlined
def _settle_waiting(state: Any, counts: Any, known: Any, lowest: Any) -> None:
    """Count records of no known place by the lowest that they may have; behind a step back that is any."""
    at = np.int64(0) if lowest <= state[BELOW_LOWEST] else min(known, state[CLASS])
    counts[U(at)] += state[WAITING]
    state[WAITING] = 0


@kernel
def place(state: Longs, asked: LongRows, counts: Longs, offsets: Longs, places: LongRows) -> None:
    """Go on with records of the target.

    Args:
        asked: a row for each committed offset, which rise.
        counts: how many records are known to be at or behind so many of them, and before the next.
        offsets, places: of the records, in the target and in the source.
    """
    for n in range(len(offsets)):
        offset, lowest, highest = offsets[U(n)], places[U(n), 0], places[U(n), 1]
        state[RECORDS] += 1
        state[LAST] = offset
        if lowest > highest:
            _unknown(state, offset)
            continue
        if state[PLACED] == 0:
            state[RECORDS_BEFORE] = state[RECORDS] - 1
        state[PLACED] += 1
        least = _class_of(asked, lowest)
        most = least if highest == lowest else _class_of(asked, highest)
        if least == most or state[NEXT] < least:
            _settle_waiting(state, counts, least, lowest)
        while state[NEXT] < least:
            _answer(state, asked, counts, U(state[NEXT]), offset, lowest, highest)
            state[NEXT] += 1
        if least == most:
            _pass(state, counts, least, offset, lowest, highest)
        else:
            counts[U(least)] += 1
            for i in range(state[NEXT], len(asked)):
                if i < most or state[UNKNOWN_COUNT] > 0 or asked[U(i), SINCE_BELOW] == state[NUMBER_BELOW]:
                    _doubt(state, asked, U(i), offset)


@kernel
def end(state: Longs, asked: LongRows, counts: Longs) -> None:
    """End with the last record: for committed offsets that no record is known to be at or behind."""
    counts[U(state[CLASS])] += state[WAITING]
    state[WAITING] = 0
    for n in range(state[NEXT], len(asked)):
        i = U(n)
        asked[i, BEFORE] = state[FRONT]
        asked[i, BEFORE_LOWEST], asked[i, BEFORE_HIGHEST] = state[FRONT_LOWEST], state[FRONT_HIGHEST]
        asked[i, UNSURE], asked[i, UNSURE_COUNT] = state[UNKNOWN_FRONT], state[UNKNOWN_FRONT_COUNT]
        if asked[i, SINCE_FRONT] == state[NUMBER_FRONT]:
            asked[i, UNSURE] = _first(asked[i, UNSURE], asked[i, FIRST_SINCE_FRONT])
            asked[i, UNSURE_COUNT] += asked[i, COUNT_SINCE_FRONT]
