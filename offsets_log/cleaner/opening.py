"""A partition as the broker opens it whose cleaner is to run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise

from offsets_log.broker.failures import BrokerError
from offsets_log.broker.indexes import OffsetIndex
from offsets_log.broker.recovery import OpenLog, open_log
from offsets_log.cleaner.failures import CleaningError
from offsets_log.cleaner.settings import Settings
from offsets_log.log_format.completeness import Missing, missing_before, missing_between
from offsets_log.log_format.partition_log import PartitionLog, Segment


def open_for_cleaning(
    log: PartitionLog,
    settings: Settings,
    *,
    stopped_cleanly: bool | None = None,
    in_bulk: bool = False,
) -> OpenLog:
    """Start a broker over the files: what it cuts after an unclean stop is not there to be cleaned.

    Args:
        stopped_cleanly: None for what the files tell.
        in_bulk: see `open_log`.
    """
    return open_log(
        log,
        stopped_cleanly=was_stopped_cleanly(log) if stopped_cleanly is None else stopped_cleanly,
        finds_by_base_offset=settings.rules.finds_by_base_offset,
        reads_txnindex_as_message=settings.rules.reads_txnindex_as_message,
        index_interval_bytes=settings.index_interval_bytes,
        in_bulk=in_bulk,
    )


def check_is_left(log: PartitionLog, opened: OpenLog) -> None:
    """Fail for a log of which a broker's start leaves nothing, so that no round was ever begun over it.

    Raises:
        CleaningError: it begins behind its end (``D-10``), or no batch at its beginning is sound (``D-2``).
    """
    if not log.bytes_to_read or any(file.size_bytes for file in opened.files.values()):
        return
    file, start = log.segments[0].file, log.checkpoints.log_start_offset or 0
    if any(cut.is_deleted for cut in opened.cuts) and opened.end_offset == start:
        problem = f"the log start {start} lies behind the log's end: a broker deletes all of it"
    elif opened.cuts:
        problem = "no batch at its beginning is sound: a broker cuts all of it away at its start"
    else:
        return
    raise CleaningError(problem, file=file)


def recovered(log: PartitionLog, opened: OpenLog, settings: Settings, *, in_bulk: bool = False) -> OpenLog | None:
    """Return a log as a broker opens it with a full recovery; None if it was opened in that way before.

    A round copies what it does not look at: a wrong checksum, a control record of another kind (``CL-40``).

    Args:
        opened: cut by its recovery, if there was one.
        in_bulk: see `open_log`.
    """
    if opened.cuts or not was_believed(log):
        return None
    bare = replace(log, beside={}, checkpoints=replace(log.checkpoints, recovery_point=None))
    return open_for_cleaning(bare, settings, stopped_cleanly=False, in_bulk=in_bulk)


def was_believed(log: PartitionLog) -> bool:
    """Return whether a start may trust a segment's index without reading the segment (``D-3``)."""
    return any(f"{segment.base_offset or 0:020}.index" in log.beside for segment in log.segments)


def reopened(log: PartitionLog, settings: Settings, *, in_bulk: bool = False) -> OpenLog:
    """Return a log that was made here, opened with its own indexes and snapshots.

    Raises:
        BrokerError: no broker opens it.
    """
    opened = open_for_cleaning(log, settings, stopped_cleanly=True, in_bulk=in_bulk)
    if opened.refusal is not None:
        raise opened.refusal
    return opened


def as_opened(log: PartitionLog, opened: OpenLog) -> PartitionLog:
    """Return the segments as a broker has opened them."""
    segments = (
        Segment(file.file, base_offset, file.view[: file.size_bytes], modified_ms=file.modified_ms)
        for base_offset, file in opened.files.items()
    )
    return replace(log, segments=tuple(segments))


def was_stopped_cleanly(log: PartitionLog) -> bool:
    """Return how the broker was stopped: by the data directory, else by the last index (``CL-44``).

    The last index of a running broker ends in zeros.
    """
    if log.checkpoints.stopped_cleanly is not None:
        return log.checkpoints.stopped_cleanly
    last = log.segments[-1].base_offset or 0
    read = log.beside.get(f"{last:020}.index")
    if read is None:
        return True
    index = OffsetIndex.read(last, read())
    return not index.offsets or index.offsets[-1] != 0 or index.positions[-1] != 0


def missing_in(log: PartitionLog, opened: OpenLog) -> Iterator[Missing]:
    """Log that should be before the first segment or between two, and that nothing explains.

    Behind a segment that was cut, or whose end cannot be read, it is not known what is missing.
    """
    segments = {segment.base_offset: segment for segment in log.segments}
    cut = {cut.file for cut in opened.cuts}
    found = [*missing_before(log)]
    for before, after in pairwise(opened.files.values()):
        if after.base_offset in segments and before.file not in cut:
            with suppress(BrokerError):
                found += missing_between(
                    log, segments[after.base_offset], before.read_next_offset(), is_broken=False
                )  # fmt: skip
    yield from (missing for missing in found if missing.is_lost)
