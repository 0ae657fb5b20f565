"""Stage what says who holds partitions, for those who learn nothing else: batches of mere commits are passed by."""

from __future__ import annotations

from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.jit.compiled import U, inlined, part
from offsets_log.columnar.scan import staging as sc
from offsets_log.columnar.wire import batches as bt
from offsets_log.columnar.wire.primitives import be16, be32, varint, varlong


@part
def _says_nothing(scan_state: a.ScanState, data: Any, at: Any, size: Any) -> Any:
    """Return whether a batch has offset commits without topic ids and tombstones of these alone.

    Nothing else about them is looked at: whatever it may be, nobody learns from it who holds what.
    """
    if bt.is_older(data, at) or be16(data, at + bt.ATTRIBUTES) & (bt.CODEC_MASK | bt.CONTROL_MASK):
        return False
    place, end = at + bt.HEADER_SIZE, at + size
    for _ in range(be32(data, at + bt.RECORDS_COUNT)):
        record_size, place = varint(data, place, end)
        if place < 0 or record_size < 1 or record_size > end - place:
            return False
        record_end = place + record_size
        _, place = varlong(data, place + 1, record_end)
        if place >= 0:
            _, place = varint(data, place, record_end)
        if place < 0:
            return False
        key_size, key = varint(data, place, record_end)
        if key < 0 or key_size < 2 or key_size > record_end - key:
            return False
        number = be16(data, key)
        value_size, value = varint(data, key + key_size, record_end)
        if value < 0 or number < 0 or number >= a.COMMIT_TYPES or value_size > record_end - value:
            return False
        if value_size >= 0:
            version = be16(data, value) if value_size >= 2 else np.int64(-1)
            if version < 0 or version >= a.VERSIONS or scan_state.one_string[U(number), U(version)] < 0:
                return False
        place = record_end
    return place == end


@inlined
def stage(arrays: a.Arrays, buffers: a.Buffers, data: Any, begin: Any) -> Any:
    """Stage the next batch that may say something; return why it ended, as `staging.stage`."""
    scan_state = arrays.scan_state
    none, outcome = np.int64(0), np.int64(oc.FINISHED)
    while (
        outcome == oc.FINISHED
        and scan_state.at < scan_state.stop
        and scan_state.at - begin < scan_state.pause
        and scan_state.staged == 0
    ):
        at = scan_state.at
        size = bt.next_batch_at(scan_state, data, at, np.int64(len(data)))
        outcome = np.int64(sc.refusal(scan_state, data, at, size))
        if outcome == oc.FINISHED and not _says_nothing(scan_state, data, at, size):
            outcome = np.int64(sc.take(arrays, buffers, data, at, size))
        if outcome == oc.FINISHED:
            sc.accept(scan_state, data, at, size, buffers.staged, none)
    return outcome
