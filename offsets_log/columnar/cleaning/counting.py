"""Count the records of a segment's entries, without checksums, as the cleaner reads them (``CL-40``)."""

from __future__ import annotations

from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.cleaning import round_state as d
from offsets_log.columnar.jit.compiled import kernel, part
from offsets_log.columnar.jit.kinds import Bytes
from offsets_log.columnar.wire import batches as bt
from offsets_log.columnar.wire import decompressed as dp
from offsets_log.columnar.wire.primitives import be32


@part
def _count_at(round_state: Any, data: Any, at: Any, buffers: a.Buffers) -> Any:
    """Return how many records a batch has by its header, or a compressed message inside; else why this is not told."""
    table = buffers.table
    if not bt.is_older(data, at):
        return be32(data, at + bt.RECORDS_COUNT), np.int64(oc.FINISHED)
    if bt.attributes_of(data, at) & bt.CODEC_MASK == 0:
        return np.int64(1), np.int64(oc.FINISHED)
    place = dp.find_in_window(round_state, table, at)
    if place < 0:
        return np.int64(0), np.int64(oc.NEEDS_WINDOW)
    start, end = table[place, dp.BEGIN], table[place, dp.END]
    if end < 0:
        return np.int64(0), np.int64(oc.NOT_PLAIN)
    count = bt.count_of(buffers.window, start, end, data, at)
    if bt.records_of(buffers.window, start, end, count, data, at, buffers.staged, np.int64(0)) < 0:
        return np.int64(0), np.int64(oc.NOT_PLAIN)
    return count, np.int64(oc.FINISHED)


@kernel
def count(round_state: d.RoundState, data: Bytes, buffers: a.Buffers) -> Any:
    """Add the records of the entries from the position on to those that were read; return why it stopped."""
    at, end = round_state.position, round_state.end
    while at < end:
        round_state.position = at
        size = bt.size_at(data, at, end)
        if size < 0:
            return np.int64(oc.NOT_PLAIN)
        found, outcome = _count_at(round_state, data, at, buffers)
        if outcome != oc.FINISHED:
            return outcome
        round_state.records_read += found
        at += size
    round_state.position = at
    return np.int64(oc.FINISHED)
