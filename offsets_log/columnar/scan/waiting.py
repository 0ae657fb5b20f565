"""Put records aside in a kernel until Python reads them, where what they do matters to nobody before."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar.jit.compiled import U, part
from offsets_log.columnar.jit.kinds import Bytes, LongRows, Longs

MOST, MOST_BYTES = 1 << 12, 1 << 20
"""Records that wait at most, and bytes of their keys and values."""

OF, OFFSET, KEY_SIZE, VALUE_SIZE = range(4)
"""Columns of `Waiting.rows`; the size of a value is below 0 for a tombstone."""
COUNT, USED = range(2)
"""Places in `Waiting.used`: how many records wait, and how many bytes."""


class Waiting(NamedTuple):
    """Records that wait, in their order.

    Attributes:
        rows: one a record: of which group, its offset, the sizes of its key and value.
        data: keys and values, behind each other.
    """

    used: Longs
    rows: LongRows
    data: Bytes


class WaitingRecord(NamedTuple):
    """A record as it stood in the log, of the group with a number."""

    group: int
    record_offset: int
    key: bytes
    value: bytes | None


def new_waiting() -> Waiting:
    """Return room for records, of which none waits."""
    return Waiting(np.zeros(2, np.int64), np.zeros((MOST, 4), np.int64), np.zeros(MOST_BYTES, np.uint8))


@part
def wait(waiting: Waiting, records: a.Records, i: Any, group: Any) -> Any:
    """Put a staged record aside; return False without room."""
    staged, source = records.staged, records.source
    n, used = waiting.used[COUNT], waiting.used[USED]
    key_size, size = staged[i].key_size, max(staged[i].value_size, np.int64(0))
    if n >= len(waiting.rows) or used + key_size + size > len(waiting.data):
        return False
    waiting.rows[n, OF] = group
    waiting.rows[n, OFFSET] = staged[i].offset
    waiting.rows[n, KEY_SIZE] = key_size
    waiting.rows[n, VALUE_SIZE] = staged[i].value_size
    for at in range(key_size):
        waiting.data[U(used + at)] = source[U(staged[i].key_at + at)]
    for at in range(size):
        waiting.data[U(used + key_size + at)] = source[U(staged[i].value_at + at)]
    waiting.used[COUNT] = n + 1
    waiting.used[USED] = used + key_size + size
    return True


def taken(waiting: Waiting) -> list[WaitingRecord]:
    """Return the records that wait; none does afterwards."""
    rows, raw, at = waiting.rows[: waiting.used[COUNT]].tolist(), waiting.data[: waiting.used[USED]].tobytes(), 0
    waiting.used[:] = 0
    found = []
    for group, record_offset, key_size, value_size in rows:
        value_at, end = at + key_size, at + key_size + max(value_size, 0)
        value = raw[value_at:end] if value_size >= 0 else None
        found.append(WaitingRecord(group, record_offset, raw[at:value_at], value))
        at = end
    return found
