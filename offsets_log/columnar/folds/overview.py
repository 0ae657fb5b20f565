"""One scan for all that a page tells of a log: what a load makes of it, a ledger, and samples (`sampling`).

Whatever is noted of a record beside the replay is noted when all that was staged is replayed, because until then a key
may turn out to be no key.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.folds import activity, sampling
from offsets_log.columnar.folds import offsets as fold
from offsets_log.columnar.jit.compiled import U, inlined, kernel, part
from offsets_log.columnar.jit.kinds import Bytes, Number
from offsets_log.columnar.jit.records import Table
from offsets_log.columnar.ledger.columns import LedgerArrays
from offsets_log.columnar.ledger.kernels import emit, is_full
from offsets_log.columnar.overflow import SIZES, Unended
from offsets_log.columnar.scan import interner
from offsets_log.columnar.scan import staging as sc
from offsets_log.columnar.wire import batches as bt
from offsets_log.columnar.wire.primitives import be16, be64

EACH, WAITING = SIZES[Unended.region], Unended.waiting.at
"""Numbers of a producer there, and which of them is asked for."""


@part
def waiting_at(scan_state: a.ScanState, producer: Any) -> Any:
    """Return where ``overflow`` has the newest sample that waits for a producer's marker."""
    return scan_state.unended_at + producer * EACH + WAITING


class Lines(NamedTuple):
    """What is known of lines: of commits by the rows of their keys, of generations by the numbers of groups."""

    commits: Table[sampling.Line]
    generations: Table[sampling.Line]


@part
def _note_data(arrays: a.Arrays, records: a.Records, lines: Lines, book: sampling.BookArrays, i: Any) -> None:
    """Note a record that was replayed, and whose key was read."""
    rows, staged, source = arrays.rows, records.staged, records.source
    at = staged[i].batch - arrays.scan_state.segment
    time = bt.time_at(records.data, at, staged[i].timestamp_delta)
    kind, row = staged[i].kind, staged[i].row
    target, group = rows[U(row)].target, rows[U(row)].group
    if kind == a.VALUE:
        time = sampling.written_at(source, staged, i, time)
        activity.note(arrays.groups, group, time)
    record_type, offset = be16(source, staged[i].key_at), staged[i].offset
    value, size = staged[i].value_at, staged[i].value_size
    is_null, told = kind == a.TOMBSTONE, np.int64(0)
    if target >= 0:
        if not is_null:
            told = be64(source, value + 2)
        producer = staged[i].producer
        owner = waiting_at(arrays.scan_state, max(producer, 0))
        sample = sampling.Sample(target, producer, offset, time, told, is_null)
        known = lines.commits[U(target)]
        sampling.add(book.counts, sampling.COMMITS, book.commits, known, arrays.overflow, owner, sample)
    elif sampling.HAS_GENERATION[record_type]:
        if not is_null:
            told = sampling.generation_of(source, record_type, value, size)
        sample = sampling.Sample(group, np.int64(a.NOTHING), offset, time, told, is_null)
        known = lines.generations[U(group)]
        sampling.add(book.counts, sampling.GENERATIONS, book.generations, known, arrays.overflow, np.int64(0), sample)


@inlined
def _note(arrays: a.Arrays, records: a.Records, lines: Lines, book: sampling.BookArrays, count: Any) -> None:
    """Note what was staged and replayed; there is room."""
    staged = records.staged
    for number in range(count):
        i = U(number)
        kind = staged[i].kind
        if kind == a.COMMIT or kind == a.ABORT:
            waiting = waiting_at(arrays.scan_state, staged[i].producer)
            sampling.settle(book.commits, arrays.overflow, waiting, kind == a.COMMIT)
        elif kind != a.PASSED:
            _note_data(arrays, records, lines, book, i)


@kernel
def scan(
    arrays: a.Arrays,
    buffers: a.Buffers,
    data: Bytes,
    ledger: LedgerArrays,
    lines: Lines,
    book: sampling.BookArrays,
) -> Any:
    """Replay a segment from ``scan_state.at`` on and note its records; as `offsets.scan`."""
    scan_state = arrays.scan_state
    begin = scan_state.at
    outcome = np.int64(oc.GO_ON)
    while outcome == oc.GO_ON:
        outcome = sc.stage(arrays, buffers, data, begin)
        count = scan_state.staged
        if (
            is_full(ledger, count)
            or book.counts[sampling.COMMITS + sampling.USED] + count > len(book.commits)
            or book.counts[sampling.GENERATIONS + sampling.USED] + count > len(book.generations)
        ):
            return oc.NEEDS_ROOM
        source = buffers.window if scan_state.in_window else data
        records = a.Records(buffers.staged, source, data)
        flushed = fold.flush(arrays, buffers.staged, source)
        if flushed != oc.FINISHED:
            return flushed
        emit(ledger, arrays, records, count)
        _note(arrays, records, lines, book, count)
        outcome = sc.outcome_of(scan_state, begin, outcome)
    return outcome


@kernel
def waiting_of(arrays: a.Arrays, producer_id: Number) -> Any:
    """Return where ``overflow`` has the newest waiting sample of a producer, added if new; NEEDS_ROOM without room."""
    producer = interner.intern_producer(arrays, np.int64(producer_id))
    return producer if producer < 0 else waiting_at(arrays.scan_state, producer)
