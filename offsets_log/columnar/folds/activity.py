"""When groups last wrote, as `rows.activity` tells it, of records that kernels have replayed or counted."""

from __future__ import annotations

from typing import Any

from offsets_log.columnar import arrays as a
from offsets_log.columnar.folds import sampling
from offsets_log.columnar.jit.compiled import U, inlined, part
from offsets_log.columnar.wire import batches as bt
from offsets_log.columnar.wire.primitives import be16


@inlined
def note(groups: Any, group: Any, staged: Any, i: Any, source: Any, time: Any) -> None:
    """Note a staged record with a value, and the time of it if it has one."""
    if time == bt.NO_TIME:
        record_type = be16(source, staged[i, a.KEY])
        if record_type >= a.COMMIT_TYPES:
            return
        time = sampling.commit_time(source, record_type, staged[i, a.VALUE_AT], staged[i, a.VALUE_SIZE])
    groups[U(group), a.ACTIVE_MS] = max(groups[U(group), a.ACTIVE_MS], time)


@part
def note_all(scan_state: Any, rows: Any, groups: Any, staged: Any, source: Any, data: Any, count: Any) -> None:
    """Note what was staged and replayed."""
    for number in range(count):
        i = U(number)
        if staged[i, a.KIND] == a.VALUE:
            at = staged[i, a.STAGED_BATCH] - scan_state[a.SEGMENT]
            time = bt.time_at(data, at, staged[i, a.TIMESTAMP_DELTA])
            note(groups, rows[U(staged[i, a.STAGED_ROW]), a.GROUP], staged, i, source, time)
