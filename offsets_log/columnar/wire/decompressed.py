"""Decompress batches, many in each call: a window of decompressed records for `staging` and `gather`.

`plan` finds a run of compressed batches, `fill` decompresses the batches of a plan. A batch that could not be
decompressed here has no end in the table, and is read by `log_format`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.jit.compiled import U, inlined, kernel
from offsets_log.columnar.jit.kinds import Bytes, LongRows, Number, Words
from offsets_log.columnar.wire import batches as bt
from offsets_log.columnar.wire import decompress as dc

# Columns of the window's table.
(
    BATCH_AT,  # position of the batch in the segment
    BEGIN,  # of its records in the window
    END,  # NOT_PLAIN if they are not there
    COLUMNS,
) = range(4)


@inlined
def first_not_before(table: Any, place: Any, count: Any, at: Any) -> Any:
    """Return the place, from one on, of the first batch of the window that does not stand before a position."""
    while place < count and table[place, BATCH_AT] < at:
        place += 1
    return place


@inlined
def find_in_window(state: Any, table: Any, at: Any) -> Any:
    """Return the place of a batch in the window, −1 if it is not there; the state is where it was last looked for."""
    place = first_not_before(table, state.window_next, state.window_count, at)
    state.window_next = place
    return place if place < state.window_count and table[place, BATCH_AT] == at else np.int64(-1)


@kernel
def plan(data: Bytes, at: Number, stop: Number, table: LongRows) -> Any:
    """Note the compressed batches from a position on; return how many there are.

    Only lengths inside the segment are trusted: the checksum is verified when the batch is scanned.
    """
    count = 0
    while at < stop and count < len(table):
        size = bt.size_at(data, np.int64(at), np.int64(len(data)))
        if size < 0:
            break
        if bt.attributes_of(data, at) & bt.CODEC_MASK:
            table[count, BATCH_AT] = at
            count += 1
        at += size
    return count


@kernel
def fill(data: Bytes, window: Bytes, table: LongRows, count: Number, library: Words) -> Any:
    """Decompress the batches noted in the table; return how many there was room for."""
    used = np.int64(0)
    for i in range(count):
        at = table[i, BATCH_AT]
        size = bt.size_at(data, at, np.int64(len(data)))
        begin = np.int64(oc.NOT_PLAIN) if size < 0 else bt.compressed_at(data, at, at + size)  # the file may be changed
        if begin < 0:
            table[i, END] = oc.NOT_PLAIN
            continue
        codec = bt.attributes_of(data, at) & bt.CODEC_MASK
        magic = np.int64(data[U(at) + U(bt.MAGIC)])
        made = dc.decompress(codec, data, begin, at + size, magic, window, used, library)
        if made == oc.NEEDS_ROOM:
            return i
        table[i, BEGIN] = used
        table[i, END] = made if made >= 0 else np.int64(oc.NOT_PLAIN)
        used = made if made >= 0 else used
    return count
