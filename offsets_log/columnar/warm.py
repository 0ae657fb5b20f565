"""The smaller kernels compiled in a process of their own, beside the one that needs them: ``python -m …columnar.warm``.

On a machine that has not compiled yet the largest kernel takes as long as all others together. What is made here is
found on disk by whoever asks for it.
"""

from __future__ import annotations

import sys

import numpy as np
import pyarrow as pa

from offsets_log.columnar.choose.choice import follow
from offsets_log.columnar.events import kernels as k
from offsets_log.columnar.events.rows import Shown
from offsets_log.columnar.events.tables import TableChunk
from offsets_log.columnar.finish.arrow import served_table
from offsets_log.columnar.finish.values import finish
from offsets_log.columnar.folds import tally
from offsets_log.columnar.folds.state import ColumnarState
from offsets_log.columnar.folds.surveys import SurveyedState
from offsets_log.columnar.folds.writers import WritersState
from offsets_log.columnar.jit import machine  # here numba is in the process before anything is linked
from offsets_log.columnar.parquet.writer import ParquetWriter
from offsets_log.columnar.scan.layout import Scanner
from offsets_log.columnar.scan.reading import Order, Place
from offsets_log.columnar.sinks.forms import dump_log_form
from offsets_log.columnar.sinks.lines import Press
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.log_format.record import Record, build_batch
from offsets_log.pipeline import EVERYTHING
from offsets_log.replay.partial import Marker
from offsets_log.replay.profile import MODERN


def warm(largest: str) -> None:
    """Call the other kernels of an engine, but those of compressed batches.

    Args:
        largest: the kernel that is compiled meanwhile, by its module and name.
    """
    assert machine
    {
        "scan.scan": _warm_replay,
        "tally.scan": _warm_count,
        "events.kernels.fill": _warm_export,
        "choice.choose": _warm_choice,
    }[largest]()


def _order() -> Order:
    batch = build_batch([Record(offset=0, key=bytes(12), value=bytes(26))])
    order = Order(PartitionLog(0, (Segment("", 0, batch),)), EVERYTHING, None)
    order.begin(Place(0, 1))
    return order


def _warm_replay() -> None:
    order = _order()
    left, right = SurveyedState(MODERN), SurveyedState(MODERN)
    for state in (left, right):
        state.add_tombstone(("g", "t", 0), 0, -1, False)
        state.add_marker(0, Marker(True, 1))
        state.add_commit(0, 0, 0)
        state.end(0)
    right.grow()
    left.merge(right)
    with Scanner() as scanner:
        finish(order.layout, left, scanner)
        served_table(order.layout, left, scanner)
        scanner.gather(order.layout, np.zeros((1, 2), np.int64))


def _warm_count() -> None:
    left, right = WritersState(MODERN, tally.PER_GROUP), WritersState(MODERN, tally.PER_GROUP)
    _order()
    right.grow()
    left.merge(right)


def _warm_export() -> None:
    _order()
    TableChunk().grow()
    table = pa.table({"number": [1 << 20, 0, None], "flag": [True, None, True], "text": ["", "a", None]})
    table = table.append_column("name", table["text"].dictionary_encode())
    ParquetWriter(pa.BufferOutputStream(), table.schema, bounded=(), compression_level=1).write_table(table)
    chunk = Press(dump_log_form(lambda damage: None)).chunk()
    chunk.begin_segment(Segment("", 0, b""))
    chunk.counts[k.ROWS] = 1
    chunk.known.add(0, b"")
    list(chunk.made(0, Shown(group=lambda name: False)))


def _warm_choice() -> None:
    state = ColumnarState(MODERN)
    follow(state.arrays.desk, state.arrays.cold, 0)
    state.grow()


if __name__ == "__main__":
    warm(*sys.argv[1:])
