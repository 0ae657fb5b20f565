"""From where to where a partition is cleaned, and what keeps it from being cleaned further."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from offsets_log.broker.log_file import LogFile
from offsets_log.broker.producers import files_between, floor_file
from offsets_log.broker.recovery import OpenLog
from offsets_log.cleaner.settings import Rules, Settings
from offsets_log.log_format.partition_log import Checkpoints

ACTIVE_SEGMENT = "the active segment"
OPEN_TRANSACTION = "an open transaction"
HIGH_WATERMARK = "the high watermark"
COMPACTION_LAG = "min.compaction.lag.ms"
"""A setting that may determine the first uncleanable offset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The offsets that bound a round.

    Attributes:
        first_dirty: F: records from here on are entered in the offset map (``CL-2``).
        checkpoint_was_invalid: the cleaner's checkpoint pointed out of the log, and is written again.
        held_at: U0: nothing from here on may be cleaned (``CL-3``).
        held_by: and due to what; None if all is cleaned.
        first_uncleanable: U: the begin of the segment that holds it (``CL-4``).
        cleanable_bytes: size of the segments between both; a round without any is not begun.
    """

    log_start: int
    log_end: int
    active_segment: int
    high_watermark: int
    last_stable: int
    first_dirty: int
    checkpoint_was_invalid: bool
    held_at: int
    held_by: str | None
    first_uncleanable: int
    clean_bytes: int
    cleanable_bytes: int

    def keeps_empty_at(self, rules: Rules) -> int | None:
        """Return where the batch ends that stays without records whoever wrote it (``CL-21``, ``K44-30``)."""
        end: int | None = getattr(self, rules.keeps_empty_at) if rules.keeps_empty_at else None
        return end


def bounds_of(opened: OpenLog, checkpoints: Checkpoints, settings: Settings) -> Bounds:
    """Return the bounds of a log that a broker has opened.

    Raises:
        BrokerError: they make no sense together.
    """
    start, end, files = opened.start_offset, opened.end_offset or 0, opened.files
    active = max(files)
    high_watermark = end if checkpoints.high_watermark is None else min(max(checkpoints.high_watermark, start), end)
    opened.producers.reach(high_watermark)
    unstable = _first_unstable(opened, start, end, settings)
    first_dirty, was_invalid = _first_dirty(checkpoints.cleaned_until, start, end)
    held_at, held_by = min(
        (active, ACTIVE_SEGMENT),
        (min(unstable, high_watermark), OPEN_TRANSACTION if unstable < high_watermark else HIGH_WATERMARK),
        *_too_young(files.values(), first_dirty, active, settings),
        key=lambda bound: bound[0],
    )
    held_at = max(first_dirty, held_at)
    first_uncleanable = _segment_that_holds(opened, held_at, active)
    return Bounds(
        log_start=start,
        log_end=end,
        active_segment=active,
        high_watermark=high_watermark,
        last_stable=min(unstable, high_watermark),
        first_dirty=first_dirty,
        checkpoint_was_invalid=was_invalid,
        held_at=held_at,
        held_by=held_by,
        first_uncleanable=first_uncleanable,
        clean_bytes=_size(files_between(files, -1, first_dirty)),
        cleanable_bytes=_size(files_between(files, min(first_dirty, first_uncleanable), first_uncleanable)),
    )


def _first_unstable(opened: OpenLog, start: int, end: int, settings: Settings) -> int:
    """Return where the oldest open transaction begins; since 4.1, where the batch with it begins (``CL-3``).

    Raises:
        BrokerError: on the way there is something that is no batch.
    """
    first = opened.producers.first_unstable_offset
    if first is None or max(first, start) >= end:
        return end
    if not settings.rules.finds_by_base_offset:
        return max(first, start)
    found = opened.find(max(first, start))
    return end if found is None else found[1].base_offset


def _first_dirty(checkpoint: int | None, start: int, end: int) -> tuple[int, bool]:
    """Return the first dirty offset, and whether the checkpoint was outside of the log (``CL-2``)."""
    if checkpoint is None:
        return start, False
    return (checkpoint, False) if start <= checkpoint <= end else (start, True)


def _too_young(
    files: Iterable[LogFile], first_dirty: int, active: int, settings: Settings
) -> Iterable[tuple[int, str]]:
    """Return the first dirty segment written to less than ``min.compaction.lag.ms`` ago, if any (``CL-3``)."""
    lag = settings.min_compaction_lag_ms
    if lag <= 0 or active <= first_dirty:
        return ()
    dirty = files_between({file.base_offset: file for file in files}, first_dirty, active)
    young = (file.base_offset for file in dirty if largest_timestamp(file, settings.now_ms) > settings.now_ms - lag)
    return [(base_offset, COMPACTION_LAG) for base_offset in list(young)[:1]]


def largest_timestamp(file: LogFile, now_ms: int) -> int:
    """Return a segment's largest timestamp by its time index; without one, when its file was last written."""
    if file.times.last_timestamp_ms >= 0:
        return file.times.last_timestamp_ms
    return modified(file, now_ms)


def modified(file: LogFile, now_ms: int) -> int:
    """Return when a segment's file was last written; now if nothing tells."""
    return now_ms if file.modified_ms is None else file.modified_ms


def _segment_that_holds(opened: OpenLog, offset: int, active: int) -> int:
    if offset >= active:
        return active
    floor = floor_file(opened.files, offset)
    return min(opened.files) if floor is None else floor.base_offset


def _size(files: Iterable[LogFile]) -> int:
    return sum(file.size_bytes for file in files)
