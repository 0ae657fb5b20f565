"""When the logs ended, where some record is of a time that a clock far ahead wrote."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from offsets_log.log_format.batch import NO_TIMESTAMP
from offsets_log.log_format.partition_log import batches_of
from offsets_log.rows.tables import partition_name
from offsets_log.serving.log_reader import AHEAD_MS
from offsets_log.words import counted, shown_span, shown_time

if TYPE_CHECKING:
    from offsets_log.session.inputs import Inputs

LIVE_MS = 60_000
"""A copy that ended no longer ago is one of now."""

Newest = Mapping[int | None, int | None]
"""Offsets partition → the latest time of its records, in epoch milliseconds; None or −1 without one."""


def newest_ms(inputs: Inputs, newest: Newest) -> int:
    """Return the latest time of a record, −1 without one; where it is far beyond the logs' end, when they end."""
    latest = max((one for one in newest.values() if one is not None), default=NO_TIMESTAMP)
    end = _end_ms(inputs)
    return latest if end is None or latest <= end + AHEAD_MS else end


def iter_ahead(inputs: Inputs, newest: Newest) -> Iterator[str]:
    """Yield a sentence for each log with records of times far beyond the logs' end. Raises OffsetsLogError."""
    if (end := _end_ms(inputs)) is None:
        return
    for log in inputs.logs:
        if (newest.get(log.offsets_partition) or NO_TIMESTAMP) <= end + AHEAD_MS:
            continue
        ahead = [batch for batch in batches_of(log) if batch.max_timestamp_ms > end + AHEAD_MS]
        if ahead:
            last_ms = max(batch.max_timestamp_ms for batch in ahead)
            batches = counted(len(ahead), "batch", "batches")
            yield (
                f"offsets partition {partition_name(log.offsets_partition)}: {batches}, the first at record offset "
                f"{ahead[0].base_offset}, of times up to {shown_time(last_ms)}, {shown_span(last_ms - end)} after the "
                f"logs' end: a clock was wrong; ages are counted to the logs' end, {shown_time(end)}"
            )


class CountedTo(NamedTuple):
    """The time to which ages count.

    Attributes:
        ms: epoch milliseconds.
        words: what is to be said of it, if anything.
    """

    ms: int
    words: tuple[str, ...] = ()


def counted_to(inputs: Inputs, asked_ms: int | None) -> CountedTo:
    """Return the time to which ages count: the one that was asked for, else when the copy ends, else now."""
    if asked_ms is not None:
        return CountedTo(asked_ms)
    now_ms, end_ms = int(time.time() * 1000), None if inputs.scope.until_offset else _end_ms(inputs)
    if end_ms is None:
        return CountedTo(now_ms, ("ages are counted to now: when the copy ends is not known",))
    if (until_ms := inputs.scope.until_time) is not None:
        end_ms = min(end_ms, until_ms)
    if now_ms - end_ms <= LIVE_MS:
        return CountedTo(end_ms)
    ago = shown_span(now_ms - end_ms)
    return CountedTo(
        end_ms,
        (f"ages are counted to the end of the copy, {shown_time(end_ms)}, {ago} ago; --now now: to this moment",),
    )


def _end_ms(inputs: Inputs) -> int | None:
    """Return the time of the logs' last batches, as ``end-30s`` has it; None where that is not known."""
    return inputs.newest_ms if inputs.are_open else None
