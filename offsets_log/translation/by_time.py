"""Where committed offsets are in a target of which only the times of records are asked: a live cluster.

A broker tells the first record of a time or a later one. All records that a group has not read have the least of their
times or a later one, in whatever order they are, so that none of them is before that record, where the target keeps
the times. That it does is shown by a record there of that very time, which its producer gave it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from offsets_log.columnar.aligning import records as r
from offsets_log.columnar.aligning.reading import RowReader
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.translation.alignment import MARGIN
from offsets_log.translation.answers import BY_TIME, Answer, Told, Untold

NEVER = int(np.iinfo(np.int64).max)


@dataclass(frozen=True, slots=True)
class Found:
    """The first record of the target of a time or a later one.

    Attributes:
        time_ms: its own.
        is_producers: whether its producer gave it that time, and not the target's log; None where that is not known.
    """

    offset: int
    time_ms: int
    is_producers: bool | None


def times_to_ask(
    reader: RowReader, log: PartitionLog, committed: Sequence[int], start: int, end: int
) -> dict[int, int | Untold]:
    """Return the least time of the records that are not read from each committed offset on.

    Where all are read it is the time of the last record: what is written later stands behind it.

    Args:
        log: the source's.
        start, end: where it begins and ends. Every offset between a committed one and its end must be there, for the
            target may have a record that was cleaned away or cannot be read.
    """
    asked = np.array(sorted({offset for offset in committed if start <= offset <= end}), np.int64)
    times, counts = np.full(len(asked), NEVER), np.zeros(len(asked), np.int64)
    last = NEVER
    for rows in reader.chunks(log, least=max(start, int(asked[0]) - MARGIN)) if len(asked) else ():
        data = rows["flags"] & r.IS_CONTROL == 0
        place = np.searchsorted(asked, rows["offset"], "right") - 1
        np.add.at(counts, place[place >= 0], 1)
        unread = data & (place >= 0)
        np.minimum.at(times, place[unread], rows["time"][unread])
        last = int(rows["time"][data][-1]) if data.any() else last
    times, counts = np.minimum.accumulate(times[::-1])[::-1], np.cumsum(counts[::-1])[::-1]
    found: dict[int, int | Untold] = {
        offset: Untold("the source's copy does not reach there") for offset in committed if not start <= offset <= end
    }
    for offset, time_ms, count in zip(asked.tolist(), times.tolist(), counts.tolist(), strict=True):
        found[offset] = _time(last if time_ms == NEVER else time_ms, end - offset - count)
    return found


def _time(time_ms: int, missing: int) -> int | Untold:
    if missing:
        return Untold("records behind it were cleaned away or cannot be read in the source, so their times are unknown")
    if time_ms == NEVER:
        return Untold("the source's copy has no record of the partition")
    return Untold("records of the source have no times") if time_ms < 0 else time_ms


def by_times(times: Mapping[int, int | Untold], answers: Mapping[int, Found | Untold]) -> dict[int, Told]:
    """Return where each committed offset is.

    Args:
        times: committed offset → the time that was asked.
        answers: that time → what the target answered.
    """
    return {
        offset: time_ms if isinstance(time_ms, Untold) else _told(time_ms, answers[time_ms])
        for offset, time_ms in times.items()
    }


def _told(time_ms: int, found: Found | Untold) -> Told:
    if isinstance(found, Untold):
        return found
    if found.time_ms != time_ms:
        return Untold(f"the target has no record of the time {time_ms}, from which on its group has not read all")
    if found.is_producers is None:
        return Untold("the target's record of that time cannot be fetched, so whose the time is is unknown")
    if not found.is_producers:
        return Untold("the target's records have times of its own log, and not those of their producers")
    return Answer(found.offset, BY_TIME, None)
