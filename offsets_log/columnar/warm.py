"""The smaller kernels compiled in a process of their own, beside the one that needs them: ``python -m …columnar.warm``.

On a machine that has not compiled yet the largest kernel takes as long as all others together. What is made here is
found on disk by whoever asks for it.
"""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np

from offsets_log.columnar.choose.choice import choose, follow
from offsets_log.columnar.events import kernels as k
from offsets_log.columnar.events.rows import Shown
from offsets_log.columnar.events.tables import TableChunk
from offsets_log.columnar.finish.arrow import served_table
from offsets_log.columnar.finish.values import finish
from offsets_log.columnar.folds import inspection, offsets, tally
from offsets_log.columnar.folds.inspected import InspectedState
from offsets_log.columnar.folds.state import ColumnarState
from offsets_log.columnar.folds.surveys import SurveyedState
from offsets_log.columnar.folds.writers import WritersState
from offsets_log.columnar.history import kernels as hk
from offsets_log.columnar.history import lines as ln
from offsets_log.columnar.history.fold import HistoryState
from offsets_log.columnar.jit.compiled import place_of
from offsets_log.columnar.scan.layout import Scanner
from offsets_log.columnar.scan.reading import Order, Place
from offsets_log.columnar.sinks.forms import dump_log_form
from offsets_log.columnar.sinks.lines import Press
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.log_format.record import Record, build_batch
from offsets_log.pipeline import EVERYTHING
from offsets_log.replay.partial import Marker
from offsets_log.replay.profile import MODERN, PROFILES


def warm(largest: str) -> None:
    """Call the other kernels of an engine, but those of compressed batches.

    Args:
        largest: the kernel that is compiled meanwhile, by its module and name.
    """
    warming = {
        offsets.scan: _warm_replay,
        tally.scan: _warm_count,
        k.fill: _warm_export,
        choose: _warm_choice,
        hk.scan: _warm_history,
    }
    {place_of(kernel.function): call for kernel, call in warming.items()}[largest]()


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
    _warm_inspection(order)
    with Scanner() as scanner:
        finish(order.layout, left, scanner)
        served_table(order.layout, left, scanner)
        scanner.gather(order.layout, np.zeros((1, 2), np.int64))


def _warm_inspection(order: Order) -> None:
    left, right = (InspectedState(list(PROFILES.values()), 0) for _ in range(2))
    for state in (left, right):
        state.split()
        state.open_transaction(0, 0, 0, 0)
        state.end_transaction(0)
    left.merge(right)
    inspection.locate(order.layout.data[0], *(np.zeros(1, np.int64) for _ in range(3)))


def _warm_count() -> None:
    left, right = WritersState(MODERN, tally.PER_GROUP), WritersState(MODERN, tally.PER_GROUP)
    _order()
    right.grow()
    left.merge(right)


def _warm_export() -> None:
    _order()
    TableChunk().grow()
    chunk = Press(dump_log_form(lambda damage: None)).chunk()
    chunk.begin_segment(Segment("", 0, b""))
    chunk.counts[k.ROWS] = 1
    chunk.known.add(0, b"")
    list(chunk.made(0, Shown(group=lambda name: False)))


def _warm_choice() -> None:
    state = ColumnarState(MODERN)
    follow(state.arrays.desk, state.arrays.cold, 0)
    state.grow()


def _warm_history() -> None:
    _order()
    entries, texts = np.zeros((1, hk.ENTRY_SIZE), np.int64), np.zeros(256, np.uint8)
    scratch: Any = SimpleNamespace(array=entries)
    state = HistoryState(MODERN, bool, None, scratch, scratch, np.zeros(hk.COUNTS, np.int64), id)
    state.grow()
    s = state.arrays
    key = state.register(b"", 1, {"group": "g", "topic": "t", "partition": 0}, 0)
    held = (state.held, state.lives, state.opens, state.counts, entries)
    hk.note_one(s.desk, s.rows, s.groups, s.cold, *held, key, 0, 0, 0, 0, 0, 1, 0)
    hk.mark_one(s.desk, s.rows, s.cold, *held, 0, 0, 0, 0, 1)
    hk.turn_group(s.rows, state.held, state.lives, state.counts, entries, 0, 0, 0, 0)
    hk.name_one(s.desk, s.slots, s.rows, s.groups, s.arena, s.cold, texts)
    numbers, order = np.zeros(1, np.int64), np.zeros(0, np.int64)
    values, ops = np.zeros((0, ln.VALUE_SIZE), np.int64), np.zeros((1, ln.OP_COLUMNS), np.int64)
    ln.count_keys(entries, 0, 0, numbers)
    ln.put_in_order(entries, 0, numbers, numbers, numbers, order)
    ln.take(entries, order, values)
    ln.find_texts(values, texts, texts, texts, texts)
    ln.write(np.zeros(ln.DESK, np.int64), texts, order, ops, texts, values, texts, texts, np.zeros((1, 1, 2), np.int64))


if __name__ == "__main__":
    warm(*sys.argv[1:])
