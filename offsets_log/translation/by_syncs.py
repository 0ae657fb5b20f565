"""Where committed offsets are in the target by what MirrorMaker 2 wrote: all syncs on disk, and its checkpoints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.partition_log import PartitionLog, batches_of
from offsets_log.translation.answers import Told, Untold
from offsets_log.translation.offset_syncs import Checkpoint, IsPlain, PartitionSyncs, PlainRanges


def by_syncs(
    syncs: PartitionSyncs, committed: Sequence[int], target: PartitionLog | None, target_end: int | None
) -> dict[int, Told]:
    """Return where each committed offset is.

    Args:
        target: the partition's copy; without one nothing is counted between two syncs.
    """
    is_plain: IsPlain = (lambda first, behind: False) if target is None else plain_ranges(target).covers
    found = {offset: syncs.translate(offset, is_plain, target_end) for offset in committed}
    return {offset: one or Untold("it is before all offset syncs") for offset, one in found.items()}


def by_checkpoints(checkpoints: Iterable[Checkpoint], committed: Sequence[int]) -> dict[int, Told]:
    """Return where each committed offset is at least: MirrorMaker's answers for other groups at or before it hold too.

    Args:
        checkpoints: of the partition, of any group.
    """
    known = list(checkpoints)
    found: dict[int, Told] = {}
    for offset in committed:
        answers = [answer for one in known if (answer := one.translate(offset)) is not None]
        before = Untold("it is before all checkpoints")
        found[offset] = max(answers, key=lambda answer: answer.target_offset) if answers else before
    return found


def plain_ranges(log: PartitionLog) -> PlainRanges:
    """Return the offsets of a target's log that are there and of no transaction."""
    ranges = PlainRanges()
    for batch in batches_of(log):
        if _is_plain(batch):
            ranges.add(batch.base_offset, batch.last_offset, batch.base_timestamp_ms, batch.max_timestamp_ms)
    return ranges


def _is_plain(batch: RecordBatch) -> bool:
    return not batch.is_transactional and batch.timestamp_type == "create" and batch.delete_horizon_ms is None
