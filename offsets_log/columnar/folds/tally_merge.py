"""Join what neighbouring pieces of a log counted for writers, in kernels (`tally`)."""

from __future__ import annotations

from offsets_log.columnar import arrays as a
from offsets_log.columnar.folds.tally import Writer
from offsets_log.columnar.jit.compiled import kernel
from offsets_log.columnar.jit.kinds import LongRows, Longs
from offsets_log.columnar.jit.records import Table


@kernel
def join_writers(writers: Table[Writer], right_writers: Table[Writer], numbers: Longs) -> None:
    """Count what the piece that follows counted of writers; no run of commits is open in it, and there is room.

    Args:
        numbers: the right writers' numbers in the left piece.
    """
    for i in range(len(right_writers)):
        one = numbers[i]
        writers[one].records += right_writers[i].records
        writers[one].commits += right_writers[i].commits
        writers[one].tombstones += right_writers[i].tombstones
        writers[one].noop_commits += right_writers[i].noop_commits
        writers[one].bytes += right_writers[i].bytes
        writers[one].garbage_bytes += right_writers[i].garbage_bytes
        if right_writers[i].timed != 0:
            is_first = writers[one].timed == 0
            earliest, latest = right_writers[i].first_ms, right_writers[i].last_ms
            writers[one].timed = 1
            writers[one].first_ms = earliest if is_first else min(writers[one].first_ms, earliest)
            writers[one].last_ms = latest if is_first else max(writers[one].last_ms, latest)


@kernel
def join_rows(
    rows: Table[a.Row],
    writers: Table[Writer],
    right_rows: Table[a.Row],
    firsts: LongRows,
    row_numbers: Longs,
    numbers: Longs,
) -> None:
    """Join what the piece that follows knows of keys; there is room for them.

    Args:
        firsts: see `Counters`; the right piece's, of all keys of which it has counted a record.
        row_numbers, numbers: the right rows' and writers' numbers in the left piece.
    """
    for item in range(len(firsts)):
        i, first, committed = firsts[item, 0], firsts[item, 1], firsts[item, 2]
        row, last, writer = row_numbers[i], right_rows[i].last, numbers[first >> 1]
        if rows[row].last >= 0:
            writers[rows[row].last >> 1].garbage_bytes += rows[row].last_bytes
            is_same = rows[row].last_committed == committed
            writers[writer].noop_commits += first & 1 == 1 and rows[row].last & 1 == 1 and is_same
        else:
            rows[row].first = writer << 1 | first & 1
            rows[row].first_committed = committed
            rows[row].group = numbers[right_rows[i].group]
        rows[row].last = numbers[last >> 1] << 1 | last & 1
        rows[row].last_committed = right_rows[i].last_committed
        rows[row].last_bytes = right_rows[i].last_bytes
