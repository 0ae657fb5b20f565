"""The smaller kernels compiled in a process of their own, beside the one that needs them: ``python -m …columnar.warm``.

On a machine that has not compiled yet the largest kernel takes as long as all others together. What is made here is
found on disk by whoever asks for it.
"""

from __future__ import annotations

import numpy as np

from offsets_log.columnar import machine  # here numba is in the process before anything is linked
from offsets_log.columnar.arrow import served_table
from offsets_log.columnar.event_tables import Chunk
from offsets_log.columnar.finish import finish
from offsets_log.columnar.layout import Scanner
from offsets_log.columnar.reading import Order, Place
from offsets_log.columnar.state import ColumnarState
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.log_format.record import Record, build_batch
from offsets_log.pipeline import EVERYTHING
from offsets_log.replay.partial import Marker
from offsets_log.replay.profile import MODERN


def warm() -> None:
    """Call every kernel but `scan`, `fill` and those of compressed batches."""
    assert machine
    batch = build_batch([Record(offset=0, key=bytes(12), value=bytes(26))])
    order = Order(PartitionLog(0, (Segment("", 0, batch),)), EVERYTHING, None)
    order.begin(Place(0, 1))
    Chunk().grow()
    left, right = ColumnarState(MODERN), ColumnarState(MODERN)
    for state in (left, right):
        state.add_tombstone(("g", "t", 0), 0, -1, False)
        state.add_marker(0, Marker(True, 1))
    right.grow()
    left.merge(right)
    with Scanner() as scanner:
        finish(order.layout, left, scanner)
        served_table(order.layout, left, scanner)
        scanner.gather(order.layout, np.zeros((1, 2), np.int64))


if __name__ == "__main__":
    warm()
