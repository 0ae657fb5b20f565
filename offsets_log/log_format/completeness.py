"""Rules for what a partition's log should hold by its data directory, and which of that is missing.

`__consumer_offsets` is compacted and nothing is deleted from it, unless somebody changed its policy, so a partition's
log begins at 0, goes on from segment to segment, and ends no earlier than a broker once knew it to. Offsets that are
not there are lost, unless something explains why they are missing:

==================  ==============================================  =============================================
missing             shown by                                        explained by
==================  ==============================================  =============================================
before the first    the first file's name, above the log start      --
segment             (``log-start-offset-checkpoint``, else 0)
between segments    the later one's name, above the end of the      the cleaner's checkpoint, below it; at or above
                    earlier one                                     it, or if it has no entry: a segment on either
                                                                    side that was cleaned
behind the last     its end, below the high watermark or the        --
batch               recovery point, the offset of a snapshot of
                    producers, or that of an index without segment
all of a partition  a checkpoint that names it, or what lies in     --
                    its folder without segments
==================  ==============================================  =============================================

Offsets that are missing inside a segment were removed by the cleaner: nothing else takes batches out of a file. Beyond
the checkpoint of this broker's cleaner, another broker's cleaner did it: a new replica is a copy of a log that its
leader had cleaned. What damage hides is reported as damage. If a user named only some of a partition's files, or gave a
dump, nothing around these counts as missing; nor does what a bound leaves out.

References: ``cleaning:CL-11``, ``CL-38`` (the first file keeps its name, whatever is cleaned away), ``CL-46``,
``CL-48``, ``CL-49``, ``CL-55``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from operator import itemgetter

from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.compression import CODEC_MASK
from offsets_log.log_format.partition_log import PRINTED, Checkpoints, PartitionLog, Segment
from offsets_log.log_format.segment import iter_batches
from offsets_log.words import counted

BATCHES_LOOKED_AT = 10_000
"""How many batches of a segment are looked at to see whether it was cleaned: one that was shows it soon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """Offsets of one partition that are in no segment.

    Attributes:
        first_offset, last_offset: the first and the last of the missing offsets.
        shown_by: how that is known, in words.
        explained_by: why that is no loss, in words; None if nothing says so.
        told: how they were lost, and where they may be, in words; None if nothing tells.
        file: the segment before which they are missing, or behind which if it is the last; None if there is none.
    """

    offsets_partition: int | None
    first_offset: int
    last_offset: int
    shown_by: str
    explained_by: str | None = None
    told: str | None = None
    file: str | None = None

    @property
    def count(self) -> int:
        """How many offsets are missing: in a cleaned log more than there were records."""
        return self.last_offset - self.first_offset + 1

    @property
    def is_lost(self) -> bool:
        """Whether nothing explains that they are missing."""
        return self.explained_by is None

    def in_words(self) -> str:
        """Say what is missing, how that is known, and what explains it."""
        partition = "?" if self.offsets_partition is None else self.offsets_partition
        why = self.explained_by or self.told or "nothing here explains it"
        return (
            f"offsets partition {partition}: offsets {self.first_offset} to {self.last_offset} are missing "
            f"({self.count} of the log): {self.shown_by}; {why}"
        )

    def up_to(self, until_offset: int | None) -> Iterator[Missing]:
        """Yield the part of it below a bound; None is no bound."""
        if until_offset is None or self.last_offset < until_offset:
            yield self
        elif self.first_offset < until_offset:
            yield replace(self, last_offset=until_offset - 1)


@dataclass(frozen=True, slots=True)
class BelowStart:
    """What the files of a log hold below its log start offset: deleted, and not read by a broker (``L-2``, ``J-1``).

    Attributes:
        batches, records, size_bytes: of whole batches below it; a broker reads the one that it lies in (``L-2``).
        end_offset: the offset behind these batches; no broker reads what is before it.
    """

    offsets_partition: int | None
    log_start_offset: int
    batches: int = 0
    records: int = 0
    size_bytes: int = 0
    end_offset: int = 0

    def in_words(self) -> str:
        """Say what was deleted, and whether it is still here."""
        partition = "?" if self.offsets_partition is None else self.offsets_partition
        start = f"its log start offset {self.log_start_offset}"
        if not self.records:
            return (
                f"offsets partition {partition} begins at {start}: what was below is deleted, and with it each commit "
                "that was not renewed since; a broker serves what is here"
            )
        lie = "lies" if self.records == 1 else "lie"
        return (
            f"{counted(self.records, 'record')} of offsets partition {partition} {lie} below {start}: "
            "deleted, and no broker reads them. --as-broker leaves them out"
        )


def below_start(log: PartitionLog) -> BelowStart | None:
    """Return what lies below the log start offset that is noted beside a log; None if it starts at 0, or is missing.

    Only headers are read, of the files that begin below it.

    Raises:
        OffsetsLogError: a file cannot be read.
    """
    start = log.checkpoints.log_start_offset or 0
    if not start or log.topic is not None or not log.segments or (log.segments[0].base_offset or 0) > start:
        return None
    batches = records = size_bytes = end = 0
    for batch in _batches_below(log, start):
        batches, records, size_bytes = batches + 1, records + batch.records_count, size_bytes + batch.size_bytes
        end = batch.next_offset
    return BelowStart(log.offsets_partition, start, batches, records, size_bytes, end)


def _batches_below(log: PartitionLog, start: int) -> Iterator[RecordBatch]:
    for segment in log.segments:
        if (segment.base_offset or 0) >= start:
            return
        for item in iter_batches(segment.buffer, verify_crc=False):
            if isinstance(item, RecordBatch):
                if item.next_offset > start:
                    return
                yield item


def missing_before(log: PartitionLog, until_offset: int | None = None) -> Iterator[Missing]:
    """Yield what is missing before the first segment."""
    base_offset = log.segments[0].base_offset if log.segments else None
    told = log.checkpoints.log_start_offset
    start = told or 0
    if base_offset is None or base_offset <= start:
        return
    why = "as log-start-offset-checkpoint says" if told else "as nothing is deleted from a compacted topic"
    says_why = "" if log.begins_late and not told else f", {why}"
    missing = Missing(
        offsets_partition=log.offsets_partition,
        first_offset=start,
        last_offset=base_offset - 1,
        shown_by=f"the first segment begins at {base_offset} instead of {start}{says_why}",
        explained_by=log.selection,
        told=log.begins_late or None,
        file=log.segments[0].file,
    )
    yield from missing.up_to(until_offset)


def missing_between(
    log: PartitionLog,
    segment: Segment,
    next_offset: int,
    *,
    is_broken: bool,
    until_offset: int | None = None,
    was_cleaned: Callable[[], bool] | None = None,
) -> Iterator[Missing]:
    """Yield what is missing between a segment and the one before it: two parts if only the first is explained.

    Args:
        next_offset: the offset that follows what was read before.
        is_broken: whether something after the last batch of the earlier segment could not be read.
        was_cleaned: tells whether a segment on either side, beyond the cleaner's checkpoint, shows cleaning; None to
            look at both, which is done only if no checkpoint explains everything.
    """
    begin = max(next_offset, log.checkpoints.log_start_offset or 0)
    if segment.base_offset is None or segment.base_offset <= begin:
        return

    gap = Missing(
        offsets_partition=log.offsets_partition,
        first_offset=begin,
        last_offset=segment.base_offset - 1,
        shown_by=f"{segment.file} begins at {segment.base_offset}, and the segment before it ends at {next_offset}",
        explained_by=_around(log, is_broken),
        file=segment.file,
    )
    for missing in _explained(log, gap, segment, was_cleaned):
        yield from missing.up_to(until_offset)


def _around(log: PartitionLog, is_broken: bool) -> str | None:
    """Return why anything may be missing at a place; None if nothing explains it."""
    chosen = None if log.selection == PRINTED else log.selection
    return chosen or ("they may be in what could not be read there" if is_broken else None)


def _explained(
    log: PartitionLog, gap: Missing, segment: Segment, was_cleaned: Callable[[], bool] | None
) -> Iterator[Missing]:
    cleaned_until = log.checkpoints.cleaned_until or 0
    if not gap.is_lost:
        yield gap
        return
    if gap.first_offset < cleaned_until:
        last_offset = min(gap.last_offset, cleaned_until - 1)
        yield replace(gap, last_offset=last_offset, explained_by=f"the cleaner had come to {cleaned_until}")
    if gap.last_offset < cleaned_until:
        return
    above = replace(gap, first_offset=max(gap.first_offset, cleaned_until))
    if was_cleaned() if was_cleaned is not None else _was_cleaned_beside(log, segment):
        yield replace(above, explained_by="a file beside them was cleaned")
    else:
        why = f"the cleaner had come to {cleaned_until} only" if cleaned_until else "neither file was ever cleaned"
        yield replace(above, shown_by=f"{above.shown_by}, and {why}")


def _was_cleaned_beside(log: PartitionLog, segment: Segment) -> bool:
    index = next(i for i, one in enumerate(log.segments) if one is segment)
    is_active_and_empty = index + 1 == len(log.segments) and not segment.length
    beside = (log.segments[index - 1], *(() if is_active_and_empty else (segment,)))
    return any(
        is_beyond_cleaner(one.base_offset, log.checkpoints, is_empty=not one.length) and shows_cleaning(one)
        for one in beside
    )


def is_beyond_cleaner(base_offset: int | None, checkpoints: Checkpoints, *, is_empty: bool) -> bool:
    """Return whether this broker's cleaner had not reached a segment: only another's can have cleaned it.

    A copied log holds no empty files: if a data directory tells how far its cleaner came, an empty file beyond that was
    emptied by something else.
    """
    if is_empty and checkpoints.stopped_cleanly is not None:
        return False
    return (base_offset or 0) >= (checkpoints.cleaned_until or 0)


def missing_behind(
    log: PartitionLog, next_offset: int, *, is_broken: bool = False, until_offset: int | None = None
) -> Iterator[Missing]:
    """Yield what is missing after the last batch.

    Args:
        next_offset, is_broken: what they are in `missing_between`.
    """
    last = log.segments[-1] if log.segments else None
    end = max(next_offset, (last.base_offset if last else None) or 0)
    reached, told_by = _reached(log.checkpoints)
    if last is None or end >= reached:
        return
    missing = Missing(
        offsets_partition=log.offsets_partition,
        first_offset=end,
        last_offset=reached - 1,
        shown_by=f"the log ends at {end} and had reached {reached}, as {told_by} says",
        explained_by=_around(log, is_broken),
        file=last.file,
    )
    yield from missing.up_to(until_offset)


def missing_partition(offsets_partition: int, checkpoints: Checkpoints) -> Iterator[Missing]:
    """Yield a whole partition if its segments are missing; nothing if it never held records."""
    reached, told_by = _reached(checkpoints)
    start = checkpoints.log_start_offset or 0
    if reached > start:
        yield Missing(
            offsets_partition=offsets_partition,
            first_offset=start,
            last_offset=reached - 1,
            shown_by=f"no segment of this partition is there, and its log had reached {reached}, as {told_by} says",
        )


def _reached(checkpoints: Checkpoints) -> tuple[int, str]:
    """Return the offset that the log reached at least, and who says so: of several the checkpoints."""
    told = (
        (checkpoints.high_watermark or 0, "replication-offset-checkpoint"),
        (checkpoints.recovery_point or 0, "recovery-point-offset-checkpoint"),
        (checkpoints.reached or 0, checkpoints.reached_by),
    )
    return max(told, key=itemgetter(0))


def shows_cleaning(segment: Segment) -> bool:
    """Return whether offsets are missing inside a segment that is not the last, as only the cleaner leaves it.

    A file without a batch was cleaned completely (``CL-38``). Only headers are read; that of a compressed message of
    magic 0 or 1 does not tell its first offset.
    """
    next_offset = segment.base_offset
    for item in islice(iter_batches(segment.buffer, verify_crc=False), BATCHES_LOOKED_AT):
        if not isinstance(item, RecordBatch):
            next_offset = None
            continue
        tells_begin = item.magic == 2 or not item.attributes & CODEC_MASK
        if tells_begin and next_offset not in (None, item.base_offset):
            return True
        if item.magic == 2 and item.records_count != item.next_offset - item.base_offset:
            return True
        next_offset = item.next_offset
    return not segment.length
