"""What is looked for in a log while it is replayed: the first record of each kind, the newest time, open transactions.

It is done when all that was staged is replayed, because until then a key may turn out to be no key.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar.jit.compiled import U, inlined, kernel, part
from offsets_log.columnar.jit.kinds import Bytes, Longs, Number
from offsets_log.columnar.scan.keys import intern_producer
from offsets_log.columnar.wire import batches as bt
from offsets_log.columnar.wire.primitives import be16, be32, be64

BATCH_AT = a.UNENDED_COUNT
"""Of a transaction, 1 + where the batch of its first record begins in the log; 0 without one."""


@inlined
def _transaction_at(desk: Any, producer: Any) -> Any:
    """Where a producer's transaction stands in ``cold``."""
    return desk[a.UNENDED_AT] + producer * a.UNENDED_SIZE


@inlined
def _add(desk: Any, cold: Any, producer: Any, offset: Any, time: Any, batch: Any) -> None:
    """A data record in a transaction; the first one opens it."""
    at = _transaction_at(desk, producer)
    if cold[at + BATCH_AT] == 0:
        cold[at + a.UNENDED_OFFSET] = offset
        cold[at + a.UNENDED_TIME] = time
        cold[at + BATCH_AT] = batch + 1


@inlined
def _end(desk: Any, cold: Any, producer: Any) -> None:
    """A marker."""
    at = _transaction_at(desk, producer)
    cold[at + BATCH_AT] = 0
    cold[at + a.IS_ENDED] = 1


@part
def count(desk: Any, cold: Any, staged: Any, source: Any, data: Any, staged_count: Any) -> None:
    """Look at what was staged and replayed."""
    for number in range(staged_count):
        i = U(number)
        kind = staged[i, a.KIND]
        producer = staged[i, a.STAGED_PRODUCER]
        batch = staged[i, a.STAGED_BATCH]
        time = bt.time_at(data, batch - desk[a.SEGMENT], staged[i, a.TIMESTAMP_DELTA])
        desk[a.NEWEST_MS] = max(desk[a.NEWEST_MS], time)
        if kind == a.COMMIT or kind == a.ABORT:
            _end(desk, cold, producer)
            continue
        if producer >= 0:
            _add(desk, cold, producer, staged[i, a.OFFSET], time, batch)
        if kind != a.PASSED:
            version = be16(source, staged[i, a.VALUE_AT]) if kind == a.VALUE else np.int64(a.NO_VERSION)
            at = U(be16(source, staged[i, a.KEY]) * (a.VERSIONS + 1) + version)
            if desk[U(a.INSPECTED_OF) + at] == 0:
                desk[U(a.INSPECTED_FIRST) + at] = staged[i, a.OFFSET]
                desk[U(a.INSPECTED_AT) + at] = batch
            desk[U(a.INSPECTED_OF) + at] += 1


@kernel
def add(desk: Longs, cold: Longs, producer_id: Number, offset: Number, time: Number, batch: Number) -> Any:
    """A data record of a transaction that was read by hand; False without room."""
    producer = intern_producer(desk, cold, np.int64(producer_id))
    if producer < 0:
        return False
    _add(desk, cold, producer, offset, time, batch)
    return True


@kernel
def end(desk: Longs, cold: Longs, producer_id: Number) -> Any:
    """A marker that was read by hand; False without room."""
    producer = intern_producer(desk, cold, np.int64(producer_id))
    if producer < 0:
        return False
    _end(desk, cold, producer)
    return True


@kernel
def join(desk: Longs, cold: Longs, right_desk: Longs, right_cold: Longs) -> None:
    """Transactions of the piece that follows; all its producers are known here."""
    for i in range(right_desk[a.PRODUCERS]):
        right = _transaction_at(right_desk, np.int64(i))
        producer_id = right_cold[right_desk[a.PRODUCERS_AT] + i * a.PRODUCER_SIZE + a.PRODUCER_ID]
        producer = intern_producer(desk, cold, producer_id)
        if right_cold[right + a.IS_ENDED] != 0:
            _end(desk, cold, producer)
        if right_cold[right + BATCH_AT] != 0:
            offset, time = right_cold[right + a.UNENDED_OFFSET], right_cold[right + a.UNENDED_TIME]
            _add(desk, cold, producer, offset, time, right_cold[right + BATCH_AT] - 1)


@kernel
def locate(data: Bytes, wanted: Longs, progress: Longs, found: Longs) -> None:
    """Where in a segment the batches stand that hold record offsets, or the first behind them.

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
