"""The files of a data directory that say of each partition how far something went (``CL-48``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from offsets_log.cleaner.round import CLEANED, Round
from offsets_log.data_directory.checkpoints import encode_offset_checkpoint
from offsets_log.log_format.partition_log import Checkpoints
from offsets_log.messages.internal_topics import OFFSETS_TOPIC


def checkpoints_after(before: Checkpoints, done: Round) -> Checkpoints:
    """Return a partition's checkpoints after a round.

    A round that did not come to its end leaves the cleaner's checkpoint as it was (``CL-49``).
    """
    bounds = done.bounds
    is_moved = done.outcome == CLEANED or bounds.checkpoint_was_invalid
    cleaned_until = done.end_offset if done.next_dirty is None else done.next_dirty
    starts_late = bounds.log_start > min(done.opened.files)
    return Checkpoints(
        cleaned_until=cleaned_until if is_moved else before.cleaned_until,
        high_watermark=bounds.high_watermark,
        log_start_offset=bounds.log_start if starts_late else None,
        recovery_point=bounds.log_end,
    )


def checkpoint_texts(names: Mapping[str, str], told: Iterable[tuple[int, Checkpoints]]) -> dict[str, str]:
    """Return the text of each checkpoint file.

    Args:
        names: attribute of `Checkpoints` → name of its file.
        told: what is known of each partition.
    """
    known = list(told)
    return {
        name: encode_offset_checkpoint(
            ((OFFSETS_TOPIC, partition), offset)
            for partition, one in known
            if (offset := getattr(one, attribute)) is not None
        )
        for attribute, name in names.items()
    }
