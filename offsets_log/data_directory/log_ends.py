"""Where the log of a user partition begins and ends, by its files alone: headers are read, no records.

References: ``LocalLog.java``, ``LogSegment.readNextOffset``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from offsets_log.broker.batches import FileBatch
from offsets_log.data_directory.segment_batches import OFFSETS_END, PartitionFiles, SegmentBatches, open_batches
from offsets_log.errors import OffsetsLogError
from offsets_log.log_format.batch import NO_PARTITION_LEADER_EPOCH, time_of


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEnds:
    """Where a log begins and ends.

    Attributes:
        log_start_offset: the first offset that a client can read.
        log_end_offset: behind the last whole batch in the files.
        high_watermark: what the broker had noted last; None where no checkpoint tells.
        newest_timestamp_ms: of the last batch; None without one.
        leader_epoch: of the last batch; −1 without one and before magic 2.
        is_clean: whether the broker had stopped in order, so that what it noted was its last word.
        directory: which copy this is of.
        problem: what about its last segment could not be read.
        first_timestamps: of offsets that were asked about, the time of the first record at or behind each; None
            where there is none, it has no time, or is not read.
    """

    log_start_offset: int
    log_end_offset: int
    high_watermark: int | None = None
    newest_timestamp_ms: int | None = None
    leader_epoch: int = NO_PARTITION_LEADER_EPOCH
    is_clean: bool = False
    directory: str = ""
    problem: str | None = None
    first_timestamps: Mapping[int, int | None] = field(default_factory=dict)

    @property
    def is_short(self) -> bool:
        """Whether the copy lacks log that was there when the broker noted its high watermark."""
        return self.high_watermark is not None and self.high_watermark > self.log_end_offset

    @property
    def is_by_high_watermark(self) -> bool:
        """Whether consumers' end is the high watermark: after an orderly stop, or if the copy ends before it.

        While a broker runs it notes the high watermark every five seconds, and what is behind that is read by consumers
        long before: then the end of the log is nearer to the truth.
        """
        is_noted = self.high_watermark is not None and self.high_watermark >= self.log_start_offset
        return is_noted and (self.is_clean or self.is_short)

    @property
    def end_offset(self) -> int:
        """What ``ListOffsets`` answers for the latest, and ``kafka-consumer-groups`` shows as LOG-END-OFFSET."""
        if self.is_by_high_watermark:
            assert self.high_watermark is not None
            return self.high_watermark
        return self.log_end_offset


def find_log_ends(
    files: PartitionFiles,
    *,
    log_start_offset: int | None = None,
    high_watermark: int | None = None,
    is_clean: bool = False,
    dating: Iterable[int] = (),
) -> LogEnds | None:
    """Return the ends of a partition's log; None where it has no segment.

    Args:
        log_start_offset, high_watermark: by the checkpoints of the data directory.
        is_clean: whether it says that the broker had stopped in order.
        dating: offsets of which the next record's time is asked for. A batch is decoded for each, once for all in it.

    Raises:
        InputError: a file cannot be read.
    """
    bases = files.base_offsets()
    if not bases:
        return None
    with open_batches(files, bases[-1]) as batches:
        end = _end_of(files, bases, batches)
        return LogEnds(
            log_start_offset=max(bases[0], bases[0] if log_start_offset is None else log_start_offset),
            log_end_offset=end.offset,
            high_watermark=high_watermark,
            newest_timestamp_ms=end.newest_timestamp_ms,
            leader_epoch=end.leader_epoch,
            is_clean=is_clean,
            directory=files.shown_path,
            problem=end.problem,
            first_timestamps=_first_timestamps(files, bases, batches, end, sorted(set(dating))),
        )


class _End(NamedTuple):
    """Where a log goes on, the time and the leader epoch of its last batch, and what is wrong there."""

    offset: int
    newest_timestamp_ms: int | None
    leader_epoch: int
    problem: str | None


def _end_of(files: PartitionFiles, bases: list[int], batches: SegmentBatches) -> _End:
    """Return the end that an empty last segment tells by its name; the last batch is in the one before.

    Args:
        batches: of the last segment.
    """
    last = batches.last()
    problem = batches.problem
    if last is not None:
        return _End(last.next_offset, _newest_of(last), last.partition_leader_epoch, problem)
    for base in bases[-2:-1]:
        with open_batches(files, base) as before:
            last = before.last()
            problem = problem or before.problem
            if last is not None:
                end = max(bases[-1], last.next_offset)
                return _End(end, _newest_of(last), last.partition_leader_epoch, problem)
    return _End(bases[-1], None, NO_PARTITION_LEADER_EPOCH, problem)


def _newest_of(batch: FileBatch) -> int | None:
    try:
        return time_of(batch.max_timestamp_ms)
    except OffsetsLogError:
        return None


def _first_timestamps(
    files: PartitionFiles, bases: list[int], last: SegmentBatches, end: _End, offsets: list[int]
) -> dict[int, int | None]:
    """Return offset → the time of the first record at or behind it; those behind the last record are left out.

    Args:
        last: the batches of the last segment.
        offsets: rising.
    """
    found: dict[int, int | None] = {}
    left = deque(offset for offset in offsets if offset < end.offset or end.problem)
    for base, following in zip(bases, [*bases[1:], OFFSETS_END], strict=True):
        if not left or left[0] >= following:
            continue
        if base == bases[-1]:
            last.date(left, following, found)
            continue
        with open_batches(files, base) as batches:
            batches.date(left, following, found)
    return found
