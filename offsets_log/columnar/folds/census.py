"""Counts that `rows.survey` makes, of the records that a kernel has replayed, by numbers; `surveys` names them.

It is done when all that was staged is replayed, because until then a key may turn out to be no key. Which event counts
for what is told by `survey.watched`; here are the same rules for what is plain.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar.folds import transactions
from offsets_log.columnar.jit.compiled import U, inlined, kernel, part
from offsets_log.columnar.scan.interner import intern_producer
from offsets_log.columnar.wire import batches as bt
from offsets_log.columnar.wire.primitives import be16

NO_PRODUCER = 0
"""The number of the producer id −1, of transactional batches that name none: interned before all others."""


@inlined
def _add_time(scan_state: a.ScanState, time: Any) -> None:
    is_first = scan_state.timed == 0
    scan_state.timed += 1
    scan_state.first_ms = time if is_first else min(scan_state.first_ms, time)
    scan_state.last_ms = time if is_first else max(scan_state.last_ms, time)


@inlined
def _count_kind(scan_state: a.ScanState, kind: Any) -> None:
    """Count a record of one of `arrays.RECORD_KINDS`."""
    at = U(kind)
    if scan_state.kinds[at] == 0:
        scan_state.kinds_first[at] = scan_state.kinds_seen
        scan_state.kinds_seen += 1
    scan_state.kinds[at] += 1


@part
def count(arrays: a.Arrays, records: a.Records, staged_count: Any) -> None:
    """Count what was staged and replayed."""
    scan_state, staged = arrays.scan_state, records.staged
    for number in range(staged_count):
        i = U(number)
        kind = staged[i].kind
        producer = staged[i].producer
        if kind == a.COMMIT or kind == a.ABORT:
            _count_kind(scan_state, a.MARKERS + kind - a.COMMIT)
            transactions.end(arrays, producer)
            continue
        at = staged[i].batch - scan_state.segment
        time = bt.time_at(records.data, at, staged[i].timestamp_delta)
        if bt.has_time(time):
            _add_time(scan_state, time)
        if kind == a.PASSED:
            _count_kind(scan_state, np.int64(a.NOT_DECODED))
            continue
        record_type = be16(records.source, staged[i].key_at)
        version = be16(records.source, staged[i].value_at) if kind == a.VALUE else np.int64(a.NO_VERSION)
        _count_kind(scan_state, record_type * (a.VERSIONS + 1) + version)
        if record_type < a.COMMIT_TYPES and bt.attributes_of(records.data, at) & bt.TRANSACTIONAL_MASK:
            owner = producer if producer >= 0 else np.int64(NO_PRODUCER)
            batch = staged[i].batch
            transactions.add(arrays, owner, staged[i].offset, time, batch, np.int64(1))


@kernel
def begin(arrays: a.Arrays) -> None:
    """Let the scans of a new replay count."""
    arrays.scan_state.is_surveyed = 1
    intern_producer(arrays, np.int64(-1))
