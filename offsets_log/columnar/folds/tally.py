"""Records counted for who wrote them, in kernels: what `investigate.writers` says of `top`, over arrays.

Keys, their rows and names are those of a replay (`arrays`), but the columns of a row that a replay needs hold the
latest record of the key here, and a row's group may be its writer (`naming`).
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.folds import activity, holding, learning, sampling
from offsets_log.columnar.folds import naming as nm
from offsets_log.columnar.folds import offsets as fold
from offsets_log.columnar.jit.compiled import U, inlined, kernel, part
from offsets_log.columnar.jit.kinds import Bytes, LongRows, Longs, Number
from offsets_log.columnar.jit.records import Long, Record, Table
from offsets_log.columnar.scan import staging as sc
from offsets_log.columnar.scan.waiting import Waiting
from offsets_log.columnar.wire import batches as bt
from offsets_log.columnar.wire.primitives import be16, be64


class Writer(Record):
    """What was counted of a writer."""

    records: Long
    commits: Long
    tombstones: Long
    noop_commits: Long
    bytes: Long
    garbage_bytes: Long
    first_ms: Long
    last_ms: Long
    timed: Long  # whether the times are known
    minute: Long
    minute_commits: Long
    last_sample: Long  # of a group, as `sampling.Line` has it
    untimed: Long
    others: Annotated[Longs, 3]  # room, so that a writer is two cache lines


class Counters(NamedTuple):
    """What is counted in.

    Attributes:
        writers: one for each name, and NOBODY's.
        minutes: (writer, minute, commits), each a run of commits of one writer in one minute.
        firsts: (row, writer and whether it is a commit, the offset that it commits) of the first record of each key,
            where writers hold partitions; else rows have that.
        waiting: records of newer kinds that Python has not seen yet, where writers hold partitions.
        asked: (name, role) of which Python has to say whether it is asked for: as many as keys are looked up together.
    """

    counts: Longs
    writers: Table[Writer]
    minutes: LongRows
    firsts: LongRows
    waiting: Waiting
    asked: LongRows


RUN_SIZE = 3
FIRST_SIZE = 3
ASKED_SIZE = 2

# ``counts``: what a count goes by is in `naming`.
RUNS = nm.FIRST_OF_TALLY  # used of ``minutes``
BATCH_WEIGHT = RUNS + 1  # of the batch whose records are being counted
BATCH_SUM = RUNS + 2  # of the weights of those that were
COUNTED_BYTES = RUNS + 3  # of the batches taken by the kernel
FIRSTS = RUNS + 4  # used of ``firsts``
COUNTS = RUNS + 5


MINUTE_MS = 60_000


@part
def end_minute(counters: Counters, writer: Any) -> Any:
    """Note the run of commits that a writer is in; False without room."""
    writers, minutes = counters.writers, counters.minutes
    if writers[writer].minute_commits == 0:
        return True
    used = counters.counts[RUNS]
    if used >= len(minutes):
        return False
    minutes[used, 0] = writer
    minutes[used, 1] = writers[writer].minute
    minutes[used, 2] = writers[writer].minute_commits
    writers[writer].minute_commits = 0
    counters.counts[RUNS] = used + 1
    return True


@inlined
def _supersede(
    counters: Counters, rows: Table[a.Row], at: Any, writer: Any, is_commit: Any, offset: Any, size: Any
) -> None:
    """Note that a record is the latest of its key now."""
    last = rows[at].last
    mark = writer << 1 | is_commit
    if last >= 0:
        counters.writers[U(last >> 1)].garbage_bytes += rows[at].last_bytes
        is_same = last & 1 == 1 and rows[at].last_committed == offset
        counters.writers[U(writer)].noop_commits += is_commit and is_same
    elif counters.counts[nm.PER] >= nm.PER_CLIENT:  # rows have the latest holder there
        used = counters.counts[FIRSTS]
        counters.firsts[used, 0] = at
        counters.firsts[used, 1] = mark
        counters.firsts[used, 2] = offset
        counters.counts[FIRSTS] = used + 1
    else:
        rows[at].first = mark
        rows[at].first_committed = offset
        has_one_writer = counters.counts[nm.PER] <= nm.PER_PARTITION
        if has_one_writer and rows[at].target != a.IS_GROUP:  # its other keys have their group
            rows[at].group = writer
    rows[at].last = mark
    rows[at].last_committed = offset
    rows[at].last_bytes = size


@inlined
def count_record(
    counters: Counters, rows: Table[a.Row], row: Any, writer: Any, kind: Any, offset: Any, size: Any, time: Any
) -> Any:
    """Count one record; False without room.

    Args:
        row: the row of its key, NOTHING if it has none that counts.
        kind: VALUE for an offset commit, TOMBSTONE, or PASSED for anything else.
        offset: that it commits.
    """
    writers = counters.writers
    if writer >= len(writers) or counters.counts[FIRSTS] >= len(counters.firsts):
        return False
    one = U(writer)
    is_commit = kind == a.VALUE
    if is_commit and bt.has_time(time):
        minute = time // MINUTE_MS
        if writers[one].minute != minute:
            if not end_minute(counters, writer):
                return False
            writers[one].minute = minute
        writers[one].minute_commits += 1
    writers[one].records += 1
    writers[one].bytes += size
    writers[one].commits += is_commit
    writers[one].tombstones += kind == a.TOMBSTONE
    if bt.has_time(time):
        is_first = writers[one].timed == 0
        writers[one].timed = 1
        writers[one].first_ms = time if is_first else min(writers[one].first_ms, time)
        writers[one].last_ms = time if is_first else max(writers[one].last_ms, time)
    if row >= 0:
        _supersede(counters, rows, U(row), writer, is_commit, offset, size)
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
def count_marker(counters: Counters, rows: Table[a.Row], data: Any, at: Any, writer: Any, time: Any) -> Any:
    """Count a marker, which has the batch at a position for itself; return False without room."""
    size = bt.size_of(data, at)
    kind, none = np.int64(a.PASSED), np.int64(a.NOTHING)
    if writer < 0 or not count_record(counters, rows, none, writer, kind, np.int64(0), size, time):
        return False
    counters.counts[COUNTED_BYTES] += size
    return True


class Counted(NamedTuple):
    """For whom, and as what, a record is counted.

    Attributes:
        row: of its key, NOTHING where that was read on the slow path in vain.
        is_offset: whether that is the key of an offset.
    """

    row: Number
    is_offset: bool | np.bool_
    writer: Number
    time: Number


@inlined
def count_staged(
    counters: Counters, rows: Table[a.Row], records: a.Records, count: Any, at: Any, number: Any, counted: Counted
) -> Any:
    """Count a record of the data batch at a position; return False without room.

    Args:
        count: how many records are staged.
    """
    staged, counts, writer = records.staged, counters.counts, counted.writer
    i = U(number)
    if staged[i].index == 0:
        _begin_batch(counts, staged, count, np.int64(number))
    if writer < 0:
        return False
    batch_size, before, weight = bt.size_of(records.data, at), counts[BATCH_SUM], _weight(staged, i)
    size = batch_size * (before + weight) // counts[BATCH_WEIGHT] - batch_size * before // counts[BATCH_WEIGHT]
    kind, offset = staged[i].kind, np.int64(0)
    if kind == a.VALUE:
        if counted.is_offset:
            offset = be64(records.source, staged[i].value_at + 2)
        else:
            kind = np.int64(a.PASSED)
    if not count_record(counters, rows, counted.row, writer, kind, offset, size, counted.time):
        return False
    counts[COUNTED_BYTES] += size
    counts[BATCH_SUM] += weight
    return True


@inlined
def _find_holder(
    counters: Counters, arrays: a.Arrays, records: a.Records, i: Any, text: Any, row: Any, is_plain: Any
) -> Any:
    """Find whom a staged record is counted for, see `naming.find_holder`; records of newer kinds wait."""
    staged, source = records.staged, records.source
    if row >= 0 and arrays.rows[row].target == a.IS_GROUP and be16(source, staged[i].key_at) >= a.KEY_TYPES:
        return holding.note_newer(counters.counts, arrays, counters.waiting, records, i, row)
    return holding.find_holder(counters.counts, arrays, text, staged, i, source, row, is_plain)


@part
def learn(counters: Counters, arrays: a.Arrays, records: a.Records, text: Any) -> Any:
    """Take who holds what from the records that are staged, from where it was left; as `fold.flush`."""
    staged, source, counts, scan_state = records.staged, records.source, counters.counts, arrays.scan_state
    while scan_state.flushed < scan_state.staged:
        number = scan_state.flushed
        i = U(number)
        found = np.int64(oc.FINISHED)
        if staged[i].kind == a.VALUE and staged[i].topic_id_at >= 0:
            found = holding.saw_topic_id(counts, arrays, source, staged[i].topic_id_at)
        elif staged[i].kind <= a.TOMBSTONE and be16(source, staged[i].key_at) >= a.COMMIT_TYPES:
            fold.prepare(arrays, source, staged, number, number + 1)
            found = np.int64(fold.row_of(arrays, staged, source, number, np.int64(0), np.int64(a.IS_GROUP)))
            if found >= 0:
                found = _find_holder(counters, arrays, records, i, text, found, True)
        if found < oc.FINISHED:
            return found
        scan_state.flushed = number + 1
        counts[nm.IS_SEEN] = 0
    scan_state.staged = 0
    scan_state.flushed = 0
    return np.int64(oc.FINISHED)


@part
def _ask(counters: Counters, arrays: a.Arrays, records: a.Records, first: Any, number: Any, last: Any) -> Any:
    """Ask of a block's keys from a number on whether they are asked for, all at once: NEEDS_ANSWER, or NEEDS_ROOM."""
    staged = records.staged
    for ahead in range(number, last):
        if staged[U(ahead)].kind <= a.TOMBSTONE:
            row = np.int64(fold.row_of(arrays, staged, records.source, ahead, ahead - first, np.int64(a.IS_GROUP)))
            found = np.int64(nm.verdict_on(counters.counts, arrays, counters.asked, row) if row >= 0 else row)
            if found < 0 and ahead == number:
                return found
            if found < 0:
                break
    return nm.asks(counters.counts, nm.OF_NAMES, np.int64(a.NOTHING))


@inlined
def _is_of_use(arrays: a.Arrays, staged: Table[a.Staged], i: Any, row: Any, verdict: Any) -> Any:
    """Return whether a record counts, or may say who holds what."""
    return verdict == nm.SHOWN or (row >= 0 and (arrays.rows[row].target == a.IS_GROUP or staged[i].topic_id_at >= 0))


@part
def _count(
    counters: Counters, arrays: a.Arrays, records: a.Records, text: Any, number: Any, row: Any, verdict: Any
) -> Any:
    """Count a staged record if it is asked for: FINISHED, or NEEDS_ROOM."""
    staged, rows, i = records.staged, arrays.rows, U(number)
    if verdict == nm.HIDDEN:  # its bytes are a part of its batch's all the same
        if staged[i].index == 0:
            _begin_batch(counters.counts, staged, arrays.scan_state.staged, np.int64(number))
        counters.counts[BATCH_SUM] += _weight(staged, i)
        return np.int64(oc.FINISHED)
    kind, at = staged[i].kind, staged[i].batch - arrays.scan_state.segment
    time = bt.time_at(records.data, at, staged[i].timestamp_delta)
    writer = nm.writer_of(counters.counts, arrays, text, row, time)
    if kind == a.COMMIT or kind == a.ABORT:
        is_counted = count_marker(counters, rows, records.data, at, writer, time)
    else:
        is_offset = row >= 0 and rows[row].target != a.IS_GROUP
        counted = Counted(row, is_offset, writer, time)
        is_counted = count_staged(counters, rows, records, arrays.scan_state.staged, at, number, counted)
    if not is_counted:
        return np.int64(oc.NEEDS_ROOM)
    if arrays.scan_state.notes_activity and kind == a.VALUE:
        activity.note(arrays.groups, writer, sampling.written_at(records.source, staged, i, time))
    return np.int64(oc.FINISHED)


@part
def flush(counters: Counters, arrays: a.Arrays, records: a.Records, text: Any) -> Any:
    """Count what is staged, from where it was left; as `fold.flush`."""
    staged, counts, scan_state = records.staged, counters.counts, arrays.scan_state
    is_filtered = counts[nm.BY_GROUP] != 0 or counts[nm.BY_TOPIC] != 0
    while scan_state.flushed < scan_state.staged:
        first = scan_state.flushed
        last = min(first + a.BLOCK, scan_state.staged)
        fold.prepare(arrays, records.source, staged, first, last)
        for number in range(first, last):
            scan_state.flushed = number
            row, found = np.int64(a.NOTHING), np.int64(oc.FINISHED)
            if staged[U(number)].kind <= a.TOMBSTONE:
                place = number - first
                row = np.int64(fold.row_of(arrays, staged, records.source, number, place, np.int64(a.IS_GROUP)))
                if row < 0:
                    return row
            verdict = np.int64(nm.verdict_on(counts, arrays, counters.asked, row) if is_filtered else nm.SHOWN)
            if verdict < nm.HIDDEN:
                return _ask(counters, arrays, records, first, number, last)
            if counts[nm.PER] >= nm.PER_CLIENT and _is_of_use(arrays, staged, U(number), row, verdict):
                is_plain = staged[U(number)].producer < 0
                found = np.int64(_find_holder(counters, arrays, records, U(number), text, row, is_plain))
            if found == oc.FINISHED:
                found = np.int64(_count(counters, arrays, records, text, number, row, verdict))
            if found != oc.FINISHED:
                return found
            counts[nm.IS_SEEN] = 0
        scan_state.flushed = last
    scan_state.staged = 0
    scan_state.flushed = 0
    return np.int64(oc.FINISHED)


@kernel
def scan(counters: Counters, arrays: a.Arrays, buffers: a.Buffers, data: Bytes, text: Bytes) -> Any:
    """Count a segment's records from ``scan_state.at`` on; as `scan.scan`."""
    scan_state = arrays.scan_state
    begin = scan_state.at
    outcome = np.int64(oc.GO_ON)
    while outcome == oc.GO_ON:
        if counters.counts[nm.IS_LEARNING]:
            outcome = np.int64(learning.stage(arrays, buffers, data, begin))
        else:
            outcome = np.int64(sc.stage(arrays, buffers, data, begin))
        source = buffers.window if scan_state.in_window else data
        records = a.Records(buffers.staged, source, data)
        if counters.counts[nm.IS_LEARNING]:
            flushed = learn(counters, arrays, records, text)
        else:
            flushed = flush(counters, arrays, records, text)
        if flushed != oc.FINISHED:
            return flushed
        outcome = sc.outcome_of(scan_state, begin, outcome)
    return outcome


@kernel
def count_one(
    counters: Counters,
    arrays: a.Arrays,
    text: Bytes,
    row: Number,
    kind: Number,
    offset: Number,
    size: Number,
    time: Number,
) -> Any:
    """Count a record that was read on the slow path; False without room."""
    writer = nm.writer_of(counters.counts, arrays, text, row, time)
    return writer >= 0 and count_record(counters, arrays.rows, row, writer, kind, offset, size, time)


@kernel
def end_minutes(counters: Counters) -> Any:
    """Note all runs of commits that writers are in; False without room."""
    for writer in range(len(counters.writers)):  # noqa: SIM110 - kernels know no generators
        if not end_minute(counters, np.int64(writer)):
            return False
    return True
