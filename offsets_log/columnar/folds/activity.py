"""When groups last wrote, as `rows.activity` tells it, of records that kernels have replayed or counted."""

from __future__ import annotations

from typing import Any

from offsets_log.columnar import arrays as a
from offsets_log.columnar.folds import sampling
from offsets_log.columnar.jit.compiled import U, inlined, part
from offsets_log.columnar.jit.records import Table
from offsets_log.columnar.wire import batches as bt
from offsets_log.columnar.wire.primitives import be16


@inlined
def note(groups: Table[a.Group], group: Any, staged: Table[a.Staged], i: Any, source: Any, time: Any) -> None:
    """Note a staged record with a value, and the time of it if it has one."""
    if time == bt.NO_TIME:
        record_type = be16(source, staged[i].key_at)
        if record_type >= a.COMMIT_TYPES:
            return
        time = sampling.commit_time(source, record_type, staged[i].value_at, staged[i].value_size)
    groups[U(group)].active_ms = max(groups[U(group)].active_ms, time)


@part
def note_all(arrays: a.Arrays, records: a.Records, count: Any) -> None:
    """Note what was staged and replayed."""
    staged = records.staged
    for number in range(count):
        i = U(number)
        if staged[i].kind == a.VALUE:
            at = staged[i].batch - arrays.scan_state.segment
            time = bt.time_at(records.data, at, staged[i].timestamp_delta)
            note(arrays.groups, arrays.rows[U(staged[i].row)].group, staged, i, records.source, time)
