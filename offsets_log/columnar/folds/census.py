"""What `survey` counts of records, of those that a kernel has replayed: by numbers, which `surveys` gives their names.

It is done when all that was staged is replayed, because until then a key may turn out to be no key. Which event counts
for what is told by `survey.watched`; here are the same rules for what is plain.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar.jit.compiled import U, inlined, kernel, part
from offsets_log.columnar.jit.kinds import Longs, Number
from offsets_log.columnar.scan.keys import intern_producer
from offsets_log.columnar.wire import batches as bt
from offsets_log.columnar.wire.primitives import be16

NO_PRODUCER = 0
"""The number of the producer id −1, of transactional batches that name none: interned before all others."""
COMMIT_TYPES = 2
"""Record types 0 and 1 commit offsets."""


@inlined
def _unended_at(desk: Any, producer: Any) -> Any:
    """Where a producer's transaction stands in ``cold``."""
    return desk[a.UNENDED_AT] + producer * a.UNENDED_SIZE


@inlined
def _add_commits(desk: Any, cold: Any, producer: Any, offset: Any, time: Any, count: Any) -> None:
    """Records of offsets in a transaction, of which the first stands at an offset."""
    at = _unended_at(desk, producer)
    if cold[at + a.UNENDED_COUNT] == 0:
        cold[at + a.UNENDED_OFFSET] = offset
        cold[at + a.UNENDED_TIME] = time
    cold[at + a.UNENDED_COUNT] += count


@inlined
def _end(desk: Any, cold: Any, producer: Any) -> None:
    """A marker."""
    at = _unended_at(desk, producer)
    cold[at + a.UNENDED_COUNT] = 0
    cold[at + a.IS_ENDED] = 1


@inlined
def _add_time(desk: Any, time: Any) -> None:
    is_first = desk[a.TIMED] == 0
    desk[a.TIMED] += 1
    desk[a.FIRST_MS] = time if is_first else min(desk[a.FIRST_MS], time)
    desk[a.LAST_MS] = time if is_first else max(desk[a.LAST_MS], time)


@inlined
def _count_kind(desk: Any, kind: Any) -> None:
    """A record of one of `arrays.RECORD_KINDS`."""
    at = U(kind)
    if desk[U(a.RECORDS_OF) + at] == 0:
        desk[U(a.RECORDS_FIRST) + at] = desk[a.KINDS_SEEN]
        desk[a.KINDS_SEEN] += 1
    desk[U(a.RECORDS_OF) + at] += 1


@part
def count(desk: Any, cold: Any, staged: Any, source: Any, data: Any, staged_count: Any) -> None:
    """Count what was staged and replayed."""
    for number in range(staged_count):
        i = U(number)
        kind = staged[i, a.KIND]
        producer = staged[i, a.STAGED_PRODUCER]
        if kind == a.COMMIT or kind == a.ABORT:
            _count_kind(desk, a.MARKERS - a.RECORDS_OF + kind - a.COMMIT)
            _end(desk, cold, producer)
            continue
        at = staged[i, a.STAGED_BATCH] - desk[a.SEGMENT]
        time = bt.time_at(data, at, staged[i, a.TIMESTAMP_DELTA])
        if time != bt.NO_TIME:
            _add_time(desk, time)
        if kind == a.PASSED:
            _count_kind(desk, np.int64(a.NOT_DECODED - a.RECORDS_OF))
            continue
        record_type = be16(source, staged[i, a.KEY])
        version = be16(source, staged[i, a.VALUE_AT]) if kind == a.VALUE else np.int64(a.NO_VERSION)
        _count_kind(desk, record_type * (a.VERSIONS + 1) + version)
        if record_type < COMMIT_TYPES and be16(data, at + bt.ATTRIBUTES) & bt.TRANSACTIONAL_MASK:
            owner = producer if producer >= 0 else np.int64(NO_PRODUCER)
            _add_commits(desk, cold, owner, staged[i, a.OFFSET], time, np.int64(1))


@kernel
def begin(desk: Longs, cold: Longs) -> None:
    """Let the scans of a new replay count."""
    desk[a.IS_SURVEYED] = 1
    intern_producer(desk, cold, np.int64(-1))


@kernel
def add_commit(desk: Longs, cold: Longs, producer_id: Number, offset: Number, time: Number) -> Any:
    """A record of a transaction that was read by hand; False without room."""
    producer = intern_producer(desk, cold, np.int64(producer_id))
    if producer < 0:
        return False
    _add_commits(desk, cold, producer, offset, time, np.int64(1))
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
        right = _unended_at(right_desk, np.int64(i))
        producer_id = right_cold[right_desk[a.PRODUCERS_AT] + i * a.PRODUCER_SIZE + a.PRODUCER_ID]
        producer = intern_producer(desk, cold, producer_id)
        if right_cold[right + a.IS_ENDED] != 0:
            _end(desk, cold, producer)
        count = right_cold[right + a.UNENDED_COUNT]
        if count != 0:
            _add_commits(
                desk, cold, producer, right_cold[right + a.UNENDED_OFFSET], right_cold[right + a.UNENDED_TIME], count
            )
