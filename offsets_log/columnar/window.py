"""Compressed batches made plain, many a call: a window of decompressed records in front of `scan`.

The window holds a run of batches of one codec. Scanning takes them from it one by one; a batch that could not be
decompressed here has no end, and is read by `log_format`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from offsets_log.columnar import batches as bt
from offsets_log.columnar import decompress as dc
from offsets_log.columnar.compiled import kernel
from offsets_log.columnar.wire import be16, be32

# Columns of the window's table.
BATCH_AT = 0  # position of the batch in the segment
BEGIN = 1  # of its records in the window
END = 2  # DOUBTFUL if they are not there
COLUMNS = 3
DOUBTFUL = -1


@kernel
def fill(data: Any, at: Any, stop: Any, window: Any, table: Any, library: Any) -> Any:
    """Decompress the batches from a position on that have the codec of the first; how many, 0 if one needs more room.

    Nothing is trusted but lengths inside the segment: the checksum is checked when the batch is scanned.
    """
    used = np.int64(0)
    count = 0
    codec = np.int64(-1)
    while at < stop and count < len(table) and len(data) - at >= bt.HEADER_SIZE:
        size = be32(data, at + bt.LENGTH) + bt.LOG_OVERHEAD
        attributes = be16(data, at + bt.ATTRIBUTES)
        is_plain = data[at + bt.MAGIC] == 2 and bt.HEADER_SIZE <= size <= len(data) - at
        if not is_plain or (codec >= 0 and attributes & bt.CODEC_MASK != codec):
            break
        codec = attributes & bt.CODEC_MASK
        end = dc.decompress(codec, data, at + bt.HEADER_SIZE, at + size, 2, window, used, library)
        if end == dc.NEEDS_ROOM:
            break
        table[count, BATCH_AT] = at
        table[count, BEGIN] = used
        table[count, END] = end if end >= 0 else DOUBTFUL
        used = end if end >= 0 else used
        count += 1
        at += size
    return count
