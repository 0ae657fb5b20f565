"""Pass 1 of the cleaner over plain batches: their records are staged, and their keys entered many at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.cleaning import round_state as d
from offsets_log.columnar.cleaning.plain import aborted_at, marker_at, plain_at, reach
from offsets_log.columnar.cleaning.table import has_room, note, prepare, put
from offsets_log.columnar.jit.compiled import U, inlined, kernel, part
from offsets_log.columnar.jit.kinds import Bytes
from offsets_log.columnar.jit.records import Table
from offsets_log.columnar.wire import batches as bt
from offsets_log.columnar.wire.primitives import be16, be32

ENTERED_AT_ONCE = 8 * a.BLOCK
"""Records that are staged before their keys are entered, but for those of the last batch."""


@kernel
def enter(arrays: d.RoundArrays, data: Bytes, buffers: a.Buffers) -> int:
    """Pass 1: keys of the batches from the position on, and where they stand."""
    round_state = arrays.round_state
    at, end = round_state.position, round_state.end
    outcome = np.int64(oc.FINISHED)
    while at < end and (outcome == oc.FINISHED or outcome == oc.PAUSED):
        round_state.staged = round_state.staged_bytes = 0
        outcome = np.int64(oc.FINISHED)
        while at < end and outcome == oc.FINISHED and round_state.staged < ENTERED_AT_ONCE:
            outcome = _stage(arrays, data, at, end, buffers)
            if outcome == oc.FINISHED:
                at += be32(data, at + bt.LENGTH) + bt.LOG_OVERHEAD
        round_state.position = at
        _enter_staged(arrays, buffers.window if round_state.in_window else data, buffers.staged)
    return int(oc.FINISHED if outcome == oc.PAUSED else outcome)


@part
def _stage(arrays: d.RoundArrays, data: Any, at: Any, end: Any, buffers: a.Buffers) -> Any:
    """Stage the batch at a position behind others, if there is room for all their keys.

    Of a marker and of data of an aborted transaction nothing is entered (``CL-10``).
    """
    round_state = arrays.round_state
    is_of_one = reach(arrays, data, at, end)
    aborted = aborted_at(arrays, data, at, end) if is_of_one else np.int64(-1)
    if aborted >= 0:
        arrays.aborting[U(aborted)].is_seen = 1
    is_noted = aborted >= 0 or round_state.notes == d.NOTES_ALL
    if not is_of_one or not _is_passed(arrays, data, at, end, is_noted):
        first, allowed_at = round_state.staged, round_state.allowed_at
        round_state.allowed_at = at if is_noted else allowed_at
        count = plain_at(arrays, data, at, end, buffers, first)
        round_state.allowed_at = allowed_at
        if count < 0:
            return count
        size = round_state.staged_bytes + round_state.plain_size
        if not has_room(arrays, first + count, size):
            return np.int64(oc.NEEDS_ROOM)
        round_state.staged, round_state.staged_bytes = first + count, size
        for number in range(first, first + count if is_noted else first):
            buffers.staged[U(number)].offset = d.NOT_ENTERED
    last = bt.last_offset(data, at)
    if last >= round_state.first_dirty:
        round_state.latest = last
    return np.int64(oc.FINISHED)


@inlined
def _is_passed(arrays: d.RoundArrays, data: Any, at: Any, end: Any, is_noted: Any) -> Any:
    """Return whether nothing is staged of a marker or a batch of a transaction.

    Args:
        is_noted: whether the keys of the batch, if it is data, are noted at most.
    """
    if is_noted:
        return arrays.round_state.notes == d.NOTES_NONE or be16(data, at + bt.ATTRIBUTES) & bt.CONTROL_MASK != 0
    return marker_at(arrays, data, at, end) != 0


@part
def _enter_staged(arrays: d.RoundArrays, source: Any, staged: Table[a.Staged]) -> None:
    """Enter the keys of staged records, and where they stand; note the others if that is asked for."""
    round_state = arrays.round_state
    for first in range(0, round_state.staged, a.BLOCK):
        last = min(np.int64(first + a.BLOCK), round_state.staged)
        prepare(arrays, source, staged, first, last)
        for number in range(first, last):
            i = U(number)
            key, key_size, found = staged[i].key_at, staged[i].key_size, staged[i].hash
            if staged[i].offset >= round_state.first_dirty:
                put(arrays, source, key, key_size, staged[i].offset, found)
            elif round_state.notes != d.NOTES_NONE:
                note(arrays, source, key, key_size, found)
