"""Records counted for who wrote them, in kernels: what `investigate.writers` says of `top`, over arrays.

Keys, their rows and names are those of a replay (`arrays`), but the columns of a row that a replay needs hold the
latest record of the key here, and a row's group is its *writer*: the number of a name, of a group, a topic, or a topic
with its partition. Names are what the keys hold; of an hour it is its number in 8 bytes. Where only some groups and
topics are asked for, a writer's name begins with its group and topic, and who counts leaves out the others.

writers   one row for each name, and NOBODY's
minutes   (writer, minute, commits), each a run of commits of one writer in one minute
"""

from __future__ import annotations

from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar.folds import offsets as fold
from offsets_log.columnar.jit.compiled import U, inlined, kernel, part
from offsets_log.columnar.jit.kinds import Bytes, LongRows, Longs, Number
from offsets_log.columnar.scan import staging as sc
from offsets_log.columnar.scan.keys import NEEDS_ROOM, has_room, intern_group, size_of
from offsets_log.columnar.wire import batches as bt
from offsets_log.columnar.wire.primitives import be16, be64

# Columns of a row, in the place of a replay's.
LAST_OFFSET = a.RECORD_OFFSET  # what the latest record commits
FIRST_OFFSET = a.APPLIED_OFFSET  # what the first record commits
FIRST = a.BATCH  # the writer of the first record, and whether it is a commit
LAST_BYTES = a.INDEX  # of the latest record
LAST = a.TOMBSTONE_OFFSET  # the writer of the latest record, and whether it is a commit; NOTHING without one

# A row of ``writers``.
RECORDS, COMMITS, TOMBSTONES, NOOP_COMMITS, BYTES, GARBAGE_BYTES, FIRST_MS, LAST_MS, TIMED, MINUTE, MINUTE_COMMITS = (
    range(11)
)
ACTIVE, ACTIVE_MS = 11, 12  # whether a record with a value has a time, and the latest of these
WRITER_SIZE = 16
RUN_SIZE = 3

NOBODY = 0
NOBODYS_NAME = b"\xff"
"""No name in a key is this: it is not UTF-8, and no length."""

# ``counts``: what a count goes by, and where it is.
PER = 0
RUNS = 1  # used of ``minutes``
HOUR = 2  # the latest
HOURS_WRITER = 3
BATCH_WEIGHT = 4  # of the batch whose records are being counted
BATCH_SUM = 5  # of the weights of those that were
COUNTED_BYTES = 6  # of the batches taken by the kernel
COUNTS = 8

PER_GROUP, PER_TOPIC, PER_PARTITION, PER_NAMES, PER_KEY, PER_LOG, PER_HOUR, PER_HOUR_AND_NAMES = range(8)
"""Names are a group and a topic, a key is that with a partition: `put_names`. Up to `PER_KEY` a key has one writer."""

NO_HOUR = -(1 << 63)
"""The hour of a record without a time."""
HOUR_SIZE = 8
MOST_NAME = HOUR_SIZE + 2 * (2 + (1 << 15)) + 4

NO_TIME = bt.NO_TIME
MINUTE_MS, HOUR_MS = 60_000, 3_600_000


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


@part
def count_record(
    counts: Any, rows: Any, writers: Any, minutes: Any, row: Any, writer: Any, kind: Any, offset: Any, size: Any,
    time: Any,
) -> Any:  # fmt: skip
    """Count one record; False without room.

    Args:
        row: of its key, NOTHING if it has none that counts.
        kind: VALUE for an offset commit, TOMBSTONE, or PASSED for anything else.
        offset: that it commits.
    """
    if writer >= len(writers):
        return False
    one = U(writer)
    is_commit = kind == a.VALUE
    if is_commit and time != NO_TIME:
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
    if time != NO_TIME:
        is_first = writers[one, TIMED] == 0
        writers[one, TIMED] = 1
        writers[one, FIRST_MS] = time if is_first else min(writers[one, FIRST_MS], time)
        writers[one, LAST_MS] = time if is_first else max(writers[one, LAST_MS], time)
        if kind != a.TOMBSTONE:
            writers[one, ACTIVE_MS] = max(writers[one, ACTIVE_MS], time) if writers[one, ACTIVE] else time
            writers[one, ACTIVE] = 1
    if row >= 0:
        at = U(row)
        last = rows[at, LAST]
        mark = writer << 1 | is_commit
        if last >= 0:
            writers[U(last >> 1), GARBAGE_BYTES] += rows[at, LAST_BYTES]
            writers[one, NOOP_COMMITS] += is_commit and last & 1 == 1 and rows[at, LAST_OFFSET] == offset
        else:
            rows[at, FIRST] = mark
            rows[at, FIRST_OFFSET] = offset
            if counts[PER] <= PER_KEY and rows[at, a.TARGET] != a.IS_GROUP:  # whose other keys have their group of it
                rows[at, a.GROUP] = writer
        rows[at, LAST] = mark
        rows[at, LAST_OFFSET] = offset
        rows[at, LAST_BYTES] = size
    return True


@part
def _copy(text: Any, at: Any, source: Any, begin: Any, end: Any) -> Any:
    """Where the copy ends."""
    for i in range(end - begin):
        text[U(at + i)] = source[U(begin + i)]
    return at + end - begin


@part
def put_names(counts: Any, rows: Any, groups: Any, arena: Any, text: Any, row: Any, at: Any) -> Any:
    """Write what a key names, each with its size before it; where that ends in ``text``."""
    target = rows[row, a.TARGET]
    if target == a.IS_GROUP:
        name_at = groups[rows[row, a.GROUP], a.NAME_AT]
        size = size_of(arena, name_at)
        text[at] = size >> 8
        text[at + 1] = size & 0xFF
        return _copy(text, at + 2, arena, name_at, name_at + size)
    key_at = rows[target, a.KEY_AT]
    topic_at = key_at + 4 + be16(arena, key_at + 2)
    end = topic_at + 2 + be16(arena, topic_at) + (4 if counts[PER] == PER_KEY else 0)
    return _copy(text, at, arena, key_at + 2, end)


@part
def _writer_of_key(
    counts: Any, desk: Any, slots: Any, rows: Any, groups: Any, arena: Any, cold: Any, text: Any, row: Any
) -> Any:
    """The writer of a key that was not counted yet, or of a group; NEEDS_ROOM."""
    if counts[PER] == PER_GROUP:
        return rows[row, a.GROUP]
    if counts[PER] >= PER_NAMES:
        size = put_names(counts, rows, groups, arena, text, row, np.int64(0))
        return _named(desk, slots, rows, groups, arena, cold, text, np.int64(0), size)
    target = rows[row, a.TARGET]
    if target == a.IS_GROUP:
        return np.int64(NOBODY)
    key_at = rows[target, a.KEY_AT]
    topic_at = key_at + 4 + be16(arena, key_at + 2)
    size = 2 + be16(arena, topic_at) + 4
    if counts[PER] == PER_TOPIC:
        topic_at, size = topic_at + 2, size - 6
    return _named(desk, slots, rows, groups, arena, cold, arena, topic_at, size)


@inlined
def _named(
    desk: Any, slots: Any, rows: Any, groups: Any, arena: Any, cold: Any, data: Any, start: Any, size: Any
) -> Any:
    """The writer of a name; NEEDS_ROOM."""
    if not has_room(desk, slots, rows, groups, arena, size):
        return np.int64(NEEDS_ROOM)
    return np.int64(intern_group(desk, groups, arena, cold, data, start, size))


@part
def writer_of_time(
    counts: Any, desk: Any, slots: Any, rows: Any, groups: Any, arena: Any, cold: Any, text: Any, time: Any
) -> Any:
    """The writer of an hour; NEEDS_ROOM."""
    if time == NO_TIME:
        return np.int64(NOBODY)
    hour = time // HOUR_MS
    if hour != counts[HOUR] or counts[HOURS_WRITER] == NOBODY:
        _put_hour(text, hour)
        writer = _named(desk, slots, rows, groups, arena, cold, text, np.int64(0), np.int64(HOUR_SIZE))
        if writer < 0:
            return writer
        counts[HOURS_WRITER] = writer
        counts[HOUR] = hour
    return counts[HOURS_WRITER]


@inlined
def _put_hour(text: Any, hour: Any) -> None:
    for i in range(HOUR_SIZE):
        text[i] = hour >> 8 * (7 - i) & 0xFF


@part
def _writer_of_hour_and_names(
    counts: Any, desk: Any, slots: Any, rows: Any, groups: Any, arena: Any, cold: Any, text: Any, row: Any, time: Any
) -> Any:  # fmt: skip
    """The writer of an hour that has a key's names; NEEDS_ROOM."""
    if row < 0:
        return np.int64(NOBODY)
    _put_hour(text, np.int64(NO_HOUR) if time == NO_TIME else time // HOUR_MS)
    size = put_names(counts, rows, groups, arena, text, row, np.int64(HOUR_SIZE))
    return _named(desk, slots, rows, groups, arena, cold, text, np.int64(0), size)


@inlined
def _weight(staged: Any, i: Any) -> Any:
    return staged[i, a.KEY_SIZE] + max(staged[i, a.VALUE_SIZE], 0) + 1


@inlined
def _begin_batch(counts: Any, desk: Any, staged: Any, number: Any) -> None:
    """The weights of the batch whose first record is staged there."""
    total, batch = np.int64(0), staged[U(number), a.STAGED_BATCH]
    while number < desk[a.STAGED] and staged[U(number), a.STAGED_BATCH] == batch:
        total += _weight(staged, U(number))
        number += 1
    counts[BATCH_WEIGHT] = total
    counts[BATCH_SUM] = 0


@inlined
def _writer_of(
    counts: Any, desk: Any, slots: Any, rows: Any, groups: Any, arena: Any, cold: Any, text: Any, row: Any, time: Any
) -> Any:  # fmt: skip
    """Whom a record is counted for; NEEDS_ROOM."""
    if counts[PER] == PER_HOUR:
        return writer_of_time(counts, desk, slots, rows, groups, arena, cold, text, time)
    if counts[PER] == PER_HOUR_AND_NAMES:
        return _writer_of_hour_and_names(counts, desk, slots, rows, groups, arena, cold, text, row, time)
    if row < 0 or counts[PER] == PER_LOG:
        return np.int64(NOBODY)
    if rows[row, LAST] >= 0 and rows[row, a.TARGET] != a.IS_GROUP:
        return rows[row, a.GROUP]
    return _writer_of_key(counts, desk, slots, rows, groups, arena, cold, text, row)


@part
def _count_marker(
    counts: Any, desk: Any, slots: Any, rows: Any, groups: Any, arena: Any, cold: Any, staged: Any, data: Any,
    writers: Any, minutes: Any, text: Any, number: Any,
) -> Any:  # fmt: skip
    """A marker, which has its batch for itself; False without room."""
    i = U(number)
    at = staged[i, a.RECORD_AT] - bt.HEADER_SIZE
    size = bt.size_of(data, at)
    time = bt.time_at(data, at, staged[i, a.TIMESTAMP_DELTA])
    none = np.int64(a.NOTHING)
    writer = _writer_of(counts, desk, slots, rows, groups, arena, cold, text, none, time)
    kind = np.int64(a.PASSED)
    if writer < 0 or not count_record(counts, rows, writers, minutes, none, writer, kind, np.int64(0), size, time):
        return False
    counts[COUNTED_BYTES] += size
    return True


@part
def _count_staged(
    counts: Any, desk: Any, slots: Any, rows: Any, groups: Any, arena: Any, cold: Any, staged: Any, source: Any,
    data: Any, writers: Any, minutes: Any, text: Any, number: Any, row: Any,
) -> Any:  # fmt: skip
    """A record of a data batch; False without room.

    Args:
        row: of its key, NOTHING where that was read by hand in vain.
    """
    i = U(number)
    at = staged[i, a.STAGED_BATCH] - desk[a.SEGMENT]
    if staged[i, a.STAGED_INDEX] == 0:
        _begin_batch(counts, desk, staged, np.int64(number))
    batch_size, before, weight = bt.size_of(data, at), counts[BATCH_SUM], _weight(staged, i)
    size = batch_size * (before + weight) // counts[BATCH_WEIGHT] - batch_size * before // counts[BATCH_WEIGHT]
    time = bt.time_at(data, at, staged[i, a.TIMESTAMP_DELTA])
    writer = _writer_of(counts, desk, slots, rows, groups, arena, cold, text, row, time)
    if writer < 0:
        return False
    kind, offset = staged[i, a.KIND], np.int64(0)
    if kind == a.VALUE:
        if rows[row, a.TARGET] == a.IS_GROUP:
            kind = np.int64(a.PASSED)
        else:
            offset = be64(source, staged[i, a.VALUE_AT] + 2)
    if not count_record(counts, rows, writers, minutes, row, writer, kind, offset, size, time):
        return False
    counts[COUNTED_BYTES] += size
    counts[BATCH_SUM] += weight
    return True


@part
def flush(
    counts: Any, desk: Any, slots: Any, rows: Any, groups: Any, arena: Any, cold: Any, staged: Any, source: Any,
    data: Any, writers: Any, minutes: Any, text: Any,
) -> Any:  # fmt: skip
    """Count what is staged, from where it was left; as `fold.flush`."""
    while desk[a.FLUSHED] < desk[a.STAGED]:
        first = desk[a.FLUSHED]
        last = min(first + a.BLOCK, desk[a.STAGED])
        fold.prepare(desk, slots, rows, arena, source, staged, first, last)
        for number in range(first, last):
            desk[a.FLUSHED] = number
            kind = staged[U(number), a.KIND]
            if kind == a.COMMIT or kind == a.ABORT:
                if not _count_marker(
                    counts, desk, slots, rows, groups, arena, cold, staged, data, writers, minutes, text, number
                ):
                    return fold.FULL
                continue
            row = np.int64(a.NOTHING)
            if kind != a.PASSED:
                place = number - first
                row = np.int64(fold.row_of(desk, slots, rows, groups, arena, cold, staged, source, number, place))
                if row < 0:
                    return fold.FULL if row == NEEDS_ROOM else fold.DOUBTFUL_KEY
            if not _count_staged(
                counts, desk, slots, rows, groups, arena, cold, staged, source, data, writers, minutes, text, number,
                row,
            ):  # fmt: skip
                return fold.FULL
        desk[a.FLUSHED] = last
    desk[a.STAGED] = 0
    desk[a.FLUSHED] = 0
    return fold.DONE


@kernel
def scan(
    counts: Longs, desk: Longs, slots: Longs, rows: LongRows, groups: LongRows, arena: Bytes, cold: Longs,
    staged: LongRows, data: Bytes, window: Bytes, table: LongRows, writers: LongRows, minutes: LongRows, text: Bytes,
) -> Any:  # fmt: skip
    """Count a segment's records from ``desk[AT]`` on; as `scan.scan`."""
    begin = desk[a.AT]
    outcome = np.int64(sc.GO_ON)
    while outcome == sc.GO_ON:
        outcome = sc.stage(desk, cold, staged, data, window, table, begin)
        source = window if desk[a.IN_WINDOW] else data
        flushed = flush(counts, desk, slots, rows, groups, arena, cold, staged, source, data, writers, minutes, text)
        if flushed != fold.DONE:
            return sc.NEEDS_ROOM if flushed == fold.FULL else sc.DOUBTFUL_KEY
        outcome = sc.outcome_of(desk, begin, outcome)
    return outcome


@kernel
def count_one(
    counts: Longs, desk: Longs, slots: Longs, rows: LongRows, groups: LongRows, arena: Bytes, cold: Longs,
    writers: LongRows, minutes: LongRows, text: Bytes, row: Number, kind: Number, offset: Number, size: Number,
    time: Number,
) -> Any:  # fmt: skip
    """Count a record that was read by hand; False without room."""
    writer = _writer_of(counts, desk, slots, rows, groups, arena, cold, text, row, time)
    return writer >= 0 and count_record(counts, rows, writers, minutes, row, writer, kind, offset, size, time)


@kernel
def join(
    rows: LongRows, writers: LongRows, right_desk: Longs, right_rows: LongRows, right_writers: LongRows,
    numbers: LongRows,
) -> None:  # fmt: skip
    """Count what the piece that follows counted; no run of commits is open in it, and there is room for its writers.

    Args:
        numbers: of the right rows and names in the left piece (`merge.number_all`).
    """
    for i in range(right_desk[a.GROUPS]):
        one = numbers[1, i]
        for field in range(GARBAGE_BYTES + 1):
            writers[one, field] += right_writers[i, field]
        if right_writers[i, TIMED] != 0:
            is_first = writers[one, TIMED] == 0
            earliest, latest = right_writers[i, FIRST_MS], right_writers[i, LAST_MS]
            writers[one, TIMED] = 1
            writers[one, FIRST_MS] = earliest if is_first else min(writers[one, FIRST_MS], earliest)
            writers[one, LAST_MS] = latest if is_first else max(writers[one, LAST_MS], latest)
        if right_writers[i, ACTIVE] != 0:
            latest = right_writers[i, ACTIVE_MS]
            writers[one, ACTIVE_MS] = max(writers[one, ACTIVE_MS], latest) if writers[one, ACTIVE] else latest
            writers[one, ACTIVE] = 1
    for i in range(right_desk[a.ROWS]):
        if right_rows[i, LAST] < 0:
            continue
        row = numbers[0, i]
        first, last = right_rows[i, FIRST], right_rows[i, LAST]
        mark = numbers[1, first >> 1] << 1 | first & 1
        if rows[row, LAST] >= 0:
            writers[rows[row, LAST] >> 1, GARBAGE_BYTES] += rows[row, LAST_BYTES]
            is_same = rows[row, LAST_OFFSET] == right_rows[i, FIRST_OFFSET]
            writers[numbers[1, first >> 1], NOOP_COMMITS] += first & 1 == 1 and rows[row, LAST] & 1 == 1 and is_same
        else:
            rows[row, FIRST] = mark
            rows[row, FIRST_OFFSET] = right_rows[i, FIRST_OFFSET]
            rows[row, a.GROUP] = numbers[1, right_rows[i, a.GROUP]]
        rows[row, LAST] = numbers[1, last >> 1] << 1 | last & 1
        rows[row, LAST_OFFSET] = right_rows[i, LAST_OFFSET]
        rows[row, LAST_BYTES] = right_rows[i, LAST_BYTES]


@kernel
def name_nobody(desk: Longs, groups: LongRows, arena: Bytes, cold: Longs, name: Bytes) -> Any:
    """Give NOBODY its number, the first; there is room."""
    return intern_group(desk, groups, arena, cold, name, np.int64(0), np.int64(len(name)))


@kernel
def end_minutes(counts: Longs, desk: Longs, writers: LongRows, minutes: LongRows) -> Any:
    """Note all runs of commits that writers are in; False without room."""
    for writer in range(desk[a.GROUPS]):  # noqa: SIM110 - kernels know no generators
        if not end_minute(counts, writers, minutes, np.int64(writer)):
            return False
    return True
