"""Compressed batches made plain, many a call: a window of decompressed records in front of `staging` and `winners`.

`plan` finds a run of compressed batches, `fill` decompresses the batches of a plan. A batch that could not be
decompressed here has no end in the table, and is read by `log_format`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from offsets_log.columnar.jit.compiled import kernel
from offsets_log.columnar.jit.kinds import Bytes, LongRows, Number, Words
from offsets_log.columnar.wire import batches as bt
from offsets_log.columnar.wire import decompress as dc
from offsets_log.columnar.wire.primitives import be16, be32

# Columns of the window's table.
BATCH_AT = 0  # position of the batch in the segment
BEGIN = 1  # of its records in the window
END = 2  # DOUBTFUL if they are not there
COLUMNS = 3
DOUBTFUL = -1
MAGIC_2 = np.int64(2)


@kernel
def plan(data: Bytes, at: Number, stop: Number, table: LongRows) -> Any:
    """Note the batches from a position on that are compressed; how many.

    Nothing is trusted but lengths inside the segment: the checksum is checked when the batch is scanned.
    """
    count = 0
    while at < stop and count < len(table) and len(data) - at >= bt.HEADER_SIZE:
        size = be32(data, at + bt.LENGTH) + bt.LOG_OVERHEAD
        if data[at + bt.MAGIC] != 2 or size < bt.HEADER_SIZE or size > len(data) - at:
            break
        if be16(data, at + bt.ATTRIBUTES) & bt.CODEC_MASK:
            table[count, BATCH_AT] = at
            count += 1
        at += size
    return count


@kernel
def fill(data: Bytes, window: Bytes, table: LongRows, count: Number, library: Words) -> Any:
    """Decompress the batches noted in the table; how many there was room for."""
    used = np.int64(0)
    for i in range(count):
        at = table[i, BATCH_AT]
        end = at + be32(data, at + bt.LENGTH) + bt.LOG_OVERHEAD
        if end < at + bt.HEADER_SIZE or end > len(data):  # the file was changed
            table[i, END] = DOUBTFUL
            continue
        codec = be16(data, at + bt.ATTRIBUTES) & bt.CODEC_MASK
        made = dc.decompress(codec, data, at + bt.HEADER_SIZE, end, MAGIC_2, window, used, library)
        if made == dc.NEEDS_ROOM:
            return i
        table[i, BEGIN] = used
        table[i, END] = made if made >= 0 else np.int64(DOUBTFUL)
        used = made if made >= 0 else used
    return count
