"""Transactions without a marker yet, on the way through a log: of each producer the first record, and their number.

`census` counts the records of offsets in them, `inspection` asks where the first record of each stands.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar.jit.compiled import inlined, kernel
from offsets_log.columnar.jit.kinds import Longs, Number
from offsets_log.columnar.scan.interner import intern_producer


@inlined
def _at(desk: Any, producer: Any) -> Any:
    """Where a producer's transaction stands in ``cold``."""
    return desk[a.UNENDED_AT] + producer * a.UNENDED_SIZE


@inlined
def add(desk: Any, cold: Any, producer: Any, offset: Any, time: Any, batch: Any, count: Any) -> None:
    """Records in a transaction, of which the first stands at an offset, in the batch that begins there in the log."""
    at = _at(desk, producer)
    if cold[at + a.UNENDED_COUNT] == 0:
        cold[at + a.UNENDED_OFFSET] = offset
        cold[at + a.UNENDED_TIME] = time
        cold[at + a.UNENDED_BATCH] = batch
    cold[at + a.UNENDED_COUNT] += count


@inlined
def end(desk: Any, cold: Any, producer: Any) -> None:
    """A marker."""
    at = _at(desk, producer)
    cold[at + a.UNENDED_COUNT] = 0
    cold[at + a.IS_ENDED] = 1


@kernel
def add_one(desk: Longs, cold: Longs, producer_id: Number, offset: Number, time: Number, batch: Number) -> Any:
    """A record that was read by hand; False without room."""
    producer = intern_producer(desk, cold, np.int64(producer_id))
    if producer < 0:
        return False
    add(desk, cold, producer, offset, time, batch, np.int64(1))
    return True


@kernel
def end_one(desk: Longs, cold: Longs, producer_id: Number) -> Any:
    """A marker that was read by hand; False without room."""
    producer = intern_producer(desk, cold, np.int64(producer_id))
    if producer < 0:
        return False
    end(desk, cold, producer)
    return True


@kernel
def join(desk: Longs, cold: Longs, right_desk: Longs, right_cold: Longs) -> None:
    """Those of the piece that follows; all its producers are known here."""
    for i in range(right_desk[a.PRODUCERS]):
        right = _at(right_desk, np.int64(i))
        producer_id = right_cold[right_desk[a.PRODUCERS_AT] + i * a.PRODUCER_SIZE + a.PRODUCER_ID]
        producer = intern_producer(desk, cold, producer_id)
        if right_cold[right + a.IS_ENDED] != 0:
            end(desk, cold, producer)
        count = right_cold[right + a.UNENDED_COUNT]
        if count != 0:
            offset, time = right_cold[right + a.UNENDED_OFFSET], right_cold[right + a.UNENDED_TIME]
            add(desk, cold, producer, offset, time, right_cold[right + a.UNENDED_BATCH], count)
