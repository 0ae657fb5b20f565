"""Facts collected during a replay: the first record of each kind, the newest time, open transactions.

It is done when all that was staged is replayed, because until then a key may turn out to be no key.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar.folds import transactions
from offsets_log.columnar.jit.compiled import U, kernel, part
from offsets_log.columnar.jit.kinds import Bytes, Longs
from offsets_log.columnar.wire import batches as bt
from offsets_log.columnar.wire.primitives import be16, be32, be64


@part
def count(arrays: a.Arrays, records: a.Records, staged_count: Any) -> None:
    """Look at what was staged and replayed."""
    scan_state, staged = arrays.scan_state, records.staged
    for number in range(staged_count):
        i = U(number)
        kind = staged[i].kind
        producer = staged[i].producer
        batch = staged[i].batch
        time = bt.time_at(records.data, batch - scan_state.segment, staged[i].timestamp_delta)
        scan_state.newest_ms = max(scan_state.newest_ms, time)
        if kind == a.COMMIT or kind == a.ABORT:
            transactions.end(arrays, producer)
            continue
        if producer >= 0:
            transactions.add(arrays, producer, staged[i].offset, time, batch, np.int64(1))
        if kind != a.PASSED:
            version = be16(records.source, staged[i].value_at) if kind == a.VALUE else np.int64(a.NO_VERSION)
            kind_of = U(be16(records.source, staged[i].key_at)), U(version)
            if scan_state.inspected[kind_of] == 0:
                scan_state.inspected_first[kind_of] = staged[i].offset
                scan_state.inspected_at[kind_of] = batch
            scan_state.inspected[kind_of] += 1


@kernel
def locate(data: Bytes, wanted: Longs, progress: Longs, found: Longs) -> None:
    """Return where the batches that hold record offsets, or the first ones after them, begin in a segment.

    Args:
        wanted: offsets, rising.
        progress: how many of them are found.
        found: their positions.

    The segment holds whole batches only, of rising offsets.
    """
    at = np.int64(0)
    while progress[0] < len(wanted) and len(data) - at > bt.MAGIC:
        size = be32(data, at + bt.LENGTH) + bt.LOG_OVERHEAD
        if size <= bt.MAGIC or size > len(data) - at:
            return
        last = be64(data, at)
        if data[U(at) + U(bt.MAGIC)] == 2 and size >= bt.HEADER_SIZE:
            last += be32(data, at + bt.LAST_OFFSET_DELTA)
        while progress[0] < len(wanted) and wanted[progress[0]] <= last:
            found[progress[0]] = at
            progress[0] += 1
        at += size
