"""Turn what kernels know of a run of records into the plain state of that run, which needs no log any more."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar.folds.state import ColumnarState
from offsets_log.columnar.materialize.timelines import names_told, timelines
from offsets_log.columnar.materialize.values import committed_places, find, iter_open, offsets_at, topic_names
from offsets_log.columnar.overflow import Cancelled, Opened, Producer
from offsets_log.columnar.scan.layout import Layout, Scanner
from offsets_log.messages.registry import decode_coordinator_record
from offsets_log.replay.partial import (
    NO_OFFSET,
    EndTransactionMarker,
    GroupTopicPartition,
    KeyState,
    PartialState,
    ProducerState,
)


def partial_state(layout: Layout, state: ColumnarState, scanner: Scanner) -> PartialState:
    """Return what `pipeline.replay` makes of the same records.

    Args:
        state: of a run that may begin in the middle of a log, so not one with `ColumnarState.newer`.
    """
    assert not state.newer
    partial = PartialState(state.profile)
    found, opened = find(state), list(iter_open(state))
    open_places = found.pending[:, [2, 3, 1, 1]]
    values = offsets_at(layout, state, scanner, np.concatenate([committed_places(state, found), open_places]))
    rows = state.arrays.rows.of(found.committed)
    facts = rows.columns(a.Row.tombstone_offset, a.Row.record_offset).tolist()
    for (tombstone_offset, number), value in zip(facts, values, strict=False):  # the open ones follow
        partial.keys[value.key] = KeyState(
            value,
            NO_OFFSET if tombstone_offset == a.NEVER else tombstone_offset,
            None if number == value.record_offset else number,
        )
    partial.keys.update(_ended(state))
    partial.producers = _producers(state)
    for (producer_id, *_), value in zip(opened, values, strict=True):
        partial.producers[producer_id].open[value.key] = value
    partial.timelines = dict(timelines(layout, state, scanner, True))
    partial.problems = state.problems
    partial.topic_names = topic_names(state, names_told(layout, state, scanner))
    partial.end_offset = state.end_offset
    return partial


def _ended(state: ColumnarState) -> Iterator[tuple[GroupTopicPartition, KeyState]]:
    """Yield the keys of which only a tombstone is known."""
    rows = state.arrays.rows.up_to(state.arrays.scan_state.row_count)
    is_canonical = rows.column(a.Row.target) == np.arange(len(rows))
    has_no_value = rows.column(a.Row.record_offset) == a.NEVER
    for row in np.flatnonzero(is_canonical & has_no_value & (rows.column(a.Row.tombstone_offset) != a.NEVER)).tolist():
        yield _key(state, row), KeyState(None, int(rows[row].tombstone_offset))


def _producers(state: ColumnarState) -> dict[int, ProducerState]:
    """Return the producers with their first markers and what their tombstones cancelled; open values are left out."""
    s = state.arrays
    found = [ProducerState() for _ in range(int(s.scan_state.producer_count))]
    rows, opened = s.region(Producer).up_to(len(found)), s.region(Opened)
    for producer, row in zip(found, rows, strict=True):
        if row.head_offset != a.NOTHING:
            producer.head = EndTransactionMarker(bool(row.head_commits), int(row.head_offset))
            continue
        number = row.newest
        while number != a.NOTHING:
            if opened[number].cancels:
                producer.cancelled.add(_key(state, int(opened[number].row)))
            number = opened[number].older
    for one in s.region(Cancelled).up_to(s.scan_state.cancelled):
        found[one.producer].cancelled.add(_key(state, int(one.row)))
    return {int(row.producer_id): producer for row, producer in zip(rows, found, strict=True)}


def _key(state: ColumnarState, row: int) -> GroupTopicPartition:
    fields = decode_coordinator_record(state.arrays.text_at(int(state.arrays.rows[row].key_at)), None).key
    return fields["group"], fields["topic"], fields["partition"]
