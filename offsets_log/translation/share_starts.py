"""Where share groups start, as offsets to be translated, and back again.

A start is an offset like one that is committed: all before it is done. What was done above it is delivered again, and
where that is in the target is asked likewise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from offsets_log.restore.plan import as_offset, settable_shares
from offsets_log.rows.tables import Row
from offsets_log.translation.answers import Answer, Told


def starts_of(plan: Row) -> Iterator[Row]:
    """Yield where share groups start, as rows of offsets."""
    return (row | as_offset(row) for row in settable_shares(plan))


def asked_of(plan: Row) -> Iterator[Row]:
    """Yield all whose place in the target is asked: offsets, and where runs of share groups begin and are over."""
    yield from plan["offsets"]
    for row in starts_of(plan):
        yield row
        for run in row["redelivered"]:
            yield from (row | {"committed_offset": offset} for offset in _bounds(run))


def share_row(row: Row, told_of: Callable[[Row], Told]) -> Row:
    """Return a translated start as a row of share offsets; what only the source's log tells of it is null.

    Args:
        told_of: tells where rows of `asked_of` are.
    """
    source = row | {name: row[f"source_{name}"] for name in ("group", "topic", "partition")}
    runs = []
    for run in row["redelivered"]:
        first, behind = (told_of(source | {"committed_offset": offset}) for offset in _bounds(run))
        if isinstance(first, Answer) and isinstance(behind, Answer):
            begin, end = max(first.target_offset, row["committed_offset"]), behind.target_offset
            runs += [run | {"first_offset": begin, "last_offset": end - 1}] if begin < end else []
    of_source = dict.fromkeys(("lag", "delivery_complete_count"))
    new = row | of_source | {"start_offset": row["committed_offset"], "redelivered": runs}
    return {name: value for name, value in new.items() if name not in ("committed_offset", "metadata", "is_share")}


def _bounds(run: Row) -> tuple[int, int]:
    """Return where a run of records begins, and where others go on behind it."""
    return run["first_offset"], run["last_offset"] + 1
