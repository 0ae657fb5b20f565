"""When groups last wrote, as `rows.activity` tells it, of records that kernels have replayed or counted."""

from __future__ import annotations

from typing import Any

from offsets_log.columnar import arrays as a
from offsets_log.columnar.folds import sampling
from offsets_log.columnar.jit.compiled import U, inlined, part
from offsets_log.columnar.jit.records import Table
from offsets_log.columnar.wire import batches as bt


@inlined
def note(groups: Table[a.Group], group: Any, written: Any) -> None:
    """Note when a group wrote a record."""
    groups[U(group)].active_ms = max(groups[U(group)].active_ms, written)


@part
def note_all(arrays: a.Arrays, records: a.Records, count: Any) -> None:
    """Note what was staged and replayed."""
    staged = records.staged
    for number in range(count):
        i = U(number)
        if staged[i].kind == a.VALUE:
            at = staged[i].batch - arrays.scan_state.segment
            time = bt.time_at(records.data, at, staged[i].timestamp_delta)
            written = sampling.written_at(records.source, staged, i, time)
            note(arrays.groups, arrays.rows[U(staged[i].row)].group, written)
