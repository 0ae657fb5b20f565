"""Records counted for who wrote them, in kernels: what `investigate.writers` says of `top`, over arrays.

Keys, their rows and names are those of a replay (`arrays`), but the columns of a row that a replay needs hold the
latest record of the key here, and a row's group may be its writer (`naming`).

writers   one row for each name, and NOBODY's
minutes   (writer, minute, commits), each a run of commits of one writer in one minute
"""

from __future__ import annotations

from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.folds import activity
from offsets_log.columnar.folds import naming as nm
from offsets_log.columnar.folds import offsets as fold
from offsets_log.columnar.jit.compiled import U, inlined, kernel, part
from offsets_log.columnar.jit.kinds import Bytes, LongRows, Longs, Number
from offsets_log.columnar.jit.records import Table
from offsets_log.columnar.scan import staging as sc
from offsets_log.columnar.wire import batches as bt
from offsets_log.columnar.wire.primitives import be64

# Columns of a row, in the place of a replay's.
LAST_OFFSET = a.RECORD_OFFSET  # what the latest record commits
FIRST_OFFSET = a.APPLIED_OFFSET  # what the first record commits
FIRST = a.BATCH  # the writer of the first record, and whether it is a commit
LAST_BYTES = a.INDEX  # of the latest record
LAST = nm.LAST

# A row of ``writers``.
RECORDS, COMMITS, TOMBSTONES, NOOP_COMMITS, BYTES, GARBAGE_BYTES, FIRST_MS, LAST_MS, TIMED, MINUTE, MINUTE_COMMITS = (
    range(11)
)
OTHER_FACTS = 11  # from here on there is room for what others know of a writer
WRITER_SIZE = 16
RUN_SIZE = 3

# ``counts``: what a count goes by is in `naming`.
RUNS = nm.FIRST_OF_TALLY  # used of ``minutes``
BATCH_WEIGHT = RUNS + 1  # of the batch whose records are being counted
BATCH_SUM = RUNS + 2  # of the weights of those that were
COUNTED_BYTES = RUNS + 3  # of the batches taken by the kernel
COUNTS = RUNS + 4


MINUTE_MS = 60_000


@part
def end_minute(counts: Any, writers: Any, minutes: Any, writer: Any) -> Any:
    """Note the run of commits that a writer is in; False without room."""
    if writers[writer, MINUTE_COMMITS] == 0:
        return True
    used = counts[RUNS]
    if used >= len(minutes):
        return False
    minutes[used, 0] = writer
    minutes[used, 1] = writers[writer, MINUTE]
    minutes[used, 2] = writers[writer, MINUTE_COMMITS]
    writers[writer, MINUTE_COMMITS] = 0
    counts[RUNS] = used + 1
    return True


@inlined
def _supersede(
    counts: Any, rows: Any, writers: Any, at: Any, writer: Any, is_commit: Any, offset: Any, size: Any
) -> None:
    """Note that a record is the latest of its key now."""
    last = rows[at, LAST]
    mark = writer << 1 | is_commit
    if last >= 0:
        writers[U(last >> 1), GARBAGE_BYTES] += rows[at, LAST_BYTES]
        is_same = last & 1 == 1 and rows[at, LAST_OFFSET] == offset
        writers[U(writer), NOOP_COMMITS] += is_commit and is_same
    elif counts[nm.PER] < nm.PER_CLIENT:  # counts of holders are never joined
        rows[at, FIRST] = mark
        rows[at, FIRST_OFFSET] = offset
        if counts[nm.PER] <= nm.PER_KEY and rows[at, a.TARGET] != a.IS_GROUP:  # whose other keys have their group of it
            rows[at, a.GROUP] = writer
    rows[at, LAST] = mark
    rows[at, LAST_OFFSET] = offset
    rows[at, LAST_BYTES] = size


@inlined
def count_record(
    counts: Any, rows: Any, writers: Any, minutes: Any, row: Any, writer: Any, kind: Any, offset: Any, size: Any,
    time: Any,
) -> Any:  # fmt: skip
    """Count one record; False without room.

    Args:
        row: the row of its key, NOTHING if it has none that counts.
        kind: VALUE for an offset commit, TOMBSTONE, or PASSED for anything else.
        offset: that it commits.
    """
    if writer >= len(writers):
        return False
    one = U(writer)
    is_commit = kind == a.VALUE
    if is_commit and time != nm.NO_TIME:
        minute = time // MINUTE_MS
        if writers[one, MINUTE] != minute:
            if not end_minute(counts, writers, minutes, writer):
                return False
            writers[one, MINUTE] = minute
        writers[one, MINUTE_COMMITS] += 1
    writers[one, RECORDS] += 1
    writers[one, BYTES] += size
    writers[one, COMMITS] += is_commit
    writers[one, TOMBSTONES] += kind == a.TOMBSTONE
    if time != nm.NO_TIME:
        is_first = writers[one, TIMED] == 0
        writers[one, TIMED] = 1
        writers[one, FIRST_MS] = time if is_first else min(writers[one, FIRST_MS], time)
        writers[one, LAST_MS] = time if is_first else max(writers[one, LAST_MS], time)
    if row >= 0:
        _supersede(counts, rows, writers, U(row), writer, is_commit, offset, size)
    return True


@inlined
def _weight(staged: Table[a.Staged], i: Any) -> Any:
    return staged[i].key_size + max(staged[i].value_size, np.int64(0)) + 1


@inlined
def _begin_batch(counts: Any, staged: Table[a.Staged], count: Any, number: Any) -> None:
    """Compute the weights of the batch whose first staged record is given."""
    total, batch = np.int64(0), staged[U(number)].batch
    while number < count and staged[U(number)].batch == batch:
        total += _weight(staged, U(number))
        number += 1
    counts[BATCH_WEIGHT] = total
    counts[BATCH_SUM] = 0


@part
def count_marker(counts: Any, rows: Any, data: Any, writers: Any, minutes: Any, at: Any, writer: Any, time: Any) -> Any:
    """Count a marker, which has the batch at a position for itself; return False without room."""
    size = bt.size_of(data, at)
    kind, none = np.int64(a.PASSED), np.int64(a.NOTHING)
    if writer < 0 or not count_record(counts, rows, writers, minutes, none, writer, kind, np.int64(0), size, time):
        return False
    counts[COUNTED_BYTES] += size
    return True


@inlined
def count_staged(
    counts: Any, rows: Any, staged: Table[a.Staged], count: Any, source: Any, data: Any, writers: Any, minutes: Any,
    at: Any, number: Any, row: Any, is_offset: Any, writer: Any, time: Any,
) -> Any:  # fmt: skip
    """Count a record of the data batch at a position; return False without room.

    Args:
        count: how many records are staged.
        row: the row of its key, NOTHING where that was read on the slow path in vain.
        is_offset: whether that is the key of an offset.
    """
    i = U(number)
    if staged[i].index == 0:
        _begin_batch(counts, staged, count, np.int64(number))
    if writer < 0:
        return False
    batch_size, before, weight = bt.size_of(data, at), counts[BATCH_SUM], _weight(staged, i)
    size = batch_size * (before + weight) // counts[BATCH_WEIGHT] - batch_size * before // counts[BATCH_WEIGHT]
    kind, offset = staged[i].kind, np.int64(0)
    if kind == a.VALUE:
        if is_offset:
            offset = be64(source, staged[i].value_at + 2)
        else:
            kind = np.int64(a.PASSED)
    if not count_record(counts, rows, writers, minutes, row, writer, kind, offset, size, time):
        return False
    counts[COUNTED_BYTES] += size
    counts[BATCH_SUM] += weight
    return True


@part
def flush(
    counts: Any, scan_state: Any, slots: Any, rows: Any, groups: Any, arena: Any, overflow: Any,
    staged: Table[a.Staged], source: Any, data: Any, writers: Any, minutes: Any, text: Any,
) -> Any:  # fmt: skip
    """Count what is staged, from where it was left; as `fold.flush`."""
    while scan_state[a.FLUSHED] < scan_state[a.STAGED]:
        first = scan_state[a.FLUSHED]
        last = min(first + a.BLOCK, scan_state[a.STAGED])
        fold.prepare(scan_state, slots, rows, arena, source, staged, first, last)
        for number in range(first, last):
            scan_state[a.FLUSHED] = number
            i = U(number)
            kind = staged[i].kind
            is_marker = kind == a.COMMIT or kind == a.ABORT
            row = np.int64(a.NOTHING)
            if kind != a.PASSED and not is_marker:
                place = number - first
                row = np.int64(
                    fold.row_of(
                        scan_state, slots, rows, groups, arena, overflow, staged, source, number, place,
                        np.int64(a.IS_GROUP),
                    )
                )  # fmt: skip
                if row < 0:
                    return row
            at = staged[i].batch - scan_state[a.SEGMENT]
            if counts[nm.PER] >= nm.PER_CLIENT:
                is_plain = bt.attributes_of(data, at) & bt.TRANSACTIONAL_MASK == 0
                found = nm.find_holder(
                    counts, scan_state, slots, rows, groups, arena, overflow, text, staged, i, source, row, is_plain
                )  # fmt: skip
                if found != oc.FINISHED:
                    return found
            time = bt.time_at(data, at, staged[i].timestamp_delta)
            writer = nm.writer_of(counts, scan_state, slots, rows, groups, arena, overflow, text, row, time)
            if is_marker:
                is_counted = count_marker(counts, rows, data, writers, minutes, at, writer, time)
            else:
                is_offset = row >= 0 and rows[row, a.TARGET] != a.IS_GROUP
                is_counted = count_staged(
                    counts, rows, staged, scan_state[a.STAGED], source, data, writers, minutes, at, number, row,
                    is_offset, writer, time,
                )  # fmt: skip
            if not is_counted:
                return oc.NEEDS_ROOM
            if scan_state[a.NOTES_ACTIVITY] and kind == a.VALUE:
                activity.note(groups, writer, staged, i, source, time)
        scan_state[a.FLUSHED] = last
    scan_state[a.STAGED] = 0
    scan_state[a.FLUSHED] = 0
    return oc.FINISHED


@kernel
def scan(
    counts: Longs, scan_state: Longs, slots: Longs, rows: LongRows, groups: LongRows, arena: Bytes, overflow: Longs,
    staged: Table[a.Staged], data: Bytes, window: Bytes, table: LongRows, writers: LongRows, minutes: LongRows,
    text: Bytes,
) -> Any:  # fmt: skip
    """Count a segment's records from ``scan_state[AT]`` on; as `scan.scan`."""
    begin = scan_state[a.AT]
    outcome = np.int64(oc.GO_ON)
    while outcome == oc.GO_ON:
        outcome = sc.stage(scan_state, overflow, staged, data, window, table, begin)
        source = window if scan_state[a.IN_WINDOW] else data
        flushed = flush(
            counts, scan_state, slots, rows, groups, arena, overflow, staged, source, data, writers, minutes, text
        )
        if flushed != oc.FINISHED:
            return flushed
        outcome = sc.outcome_of(scan_state, begin, outcome)
    return outcome


@kernel
def count_one(
    counts: Longs, scan_state: Longs, slots: Longs, rows: LongRows, groups: LongRows, arena: Bytes, overflow: Longs,
    writers: LongRows, minutes: LongRows, text: Bytes, row: Number, kind: Number, offset: Number, size: Number,
    time: Number,
) -> Any:  # fmt: skip
    """Count a record that was read on the slow path; False without room."""
    writer = nm.writer_of(counts, scan_state, slots, rows, groups, arena, overflow, text, row, time)
    return writer >= 0 and count_record(counts, rows, writers, minutes, row, writer, kind, offset, size, time)


@kernel
def join_writers(writers: LongRows, right_writers: LongRows, numbers: Longs) -> None:
    """Count what the piece that follows counted of writers; no run of commits is open in it, and there is room.

    Args:
        numbers: the right writers' numbers in the left piece.
    """
    for i in range(len(right_writers)):
        one = numbers[i]
        for field in range(GARBAGE_BYTES + 1):
            writers[one, field] += right_writers[i, field]
        if right_writers[i, TIMED] != 0:
            is_first = writers[one, TIMED] == 0
            earliest, latest = right_writers[i, FIRST_MS], right_writers[i, LAST_MS]
            writers[one, TIMED] = 1
            writers[one, FIRST_MS] = earliest if is_first else min(writers[one, FIRST_MS], earliest)
            writers[one, LAST_MS] = latest if is_first else max(writers[one, LAST_MS], latest)


@kernel
def join_rows(rows: LongRows, writers: LongRows, right_rows: LongRows, row_numbers: Longs, numbers: Longs) -> None:
    """Join what the piece that follows knows of keys; there is room for them.

    Args:
        row_numbers, numbers: the right rows' and writers' numbers in the left piece.
    """
    for i in range(len(right_rows)):
        if right_rows[i, LAST] < 0:
            continue
        row = row_numbers[i]
        first, last = right_rows[i, FIRST], right_rows[i, LAST]
        mark = numbers[first >> 1] << 1 | first & 1
        if rows[row, LAST] >= 0:
            writers[rows[row, LAST] >> 1, GARBAGE_BYTES] += rows[row, LAST_BYTES]
            is_same = rows[row, LAST_OFFSET] == right_rows[i, FIRST_OFFSET]
            writers[numbers[first >> 1], NOOP_COMMITS] += first & 1 == 1 and rows[row, LAST] & 1 == 1 and is_same
        else:
            rows[row, FIRST] = mark
            rows[row, FIRST_OFFSET] = right_rows[i, FIRST_OFFSET]
            rows[row, a.GROUP] = numbers[right_rows[i, a.GROUP]]
        rows[row, LAST] = numbers[last >> 1] << 1 | last & 1
        rows[row, LAST_OFFSET] = right_rows[i, LAST_OFFSET]
        rows[row, LAST_BYTES] = right_rows[i, LAST_BYTES]


@kernel
def end_minutes(counts: Longs, writers: LongRows, minutes: LongRows) -> Any:
    """Note all runs of commits that writers are in; False without room."""
    for writer in range(len(writers)):  # noqa: SIM110 - kernels know no generators
        if not end_minute(counts, writers, minutes, np.int64(writer)):
            return False
    return True
