"""A round over one partition from its files to those of its folder, with all that is said of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from offsets_log.broker.recovery import OpenLog
from offsets_log.cleaner.bounds import bounds_of
from offsets_log.cleaner.checkpoints import checkpoints_after
from offsets_log.cleaner.folder import FolderFile, new_files, other_files
from offsets_log.cleaner.group_cleaning import NewSegment
from offsets_log.cleaner.opening import check_is_left, missing_in, open_for_cleaning, recovered
from offsets_log.cleaner.result import kept_after, refused_row, result_row
from offsets_log.cleaner.round import FAILED, Round, clean
from offsets_log.cleaner.settings import Settings
from offsets_log.data_directory.identity import of_topic
from offsets_log.errors import OffsetsLogError, OutputError
from offsets_log.log_format.file_names import PARTITION_METADATA
from offsets_log.log_format.partition_log import Checkpoints, PartitionLog
from offsets_log.rows.tables import Row
from offsets_log.words import counted

Write = Callable[[FolderFile], None]
Change = Callable[[PartitionLog, OpenLog], tuple[PartitionLog, OpenLog, Round | None]]
"""What is to be done before the round: returns the log to clean, and the round if it was done with it."""


@dataclass(frozen=True, slots=True)
class CleanOrder:
    """What is asked of a round.

    Attributes:
        stopped_cleanly: whether the broker had; None for what the files show.
        topic_id: the topic's id in the cluster that gets the folder; None for that of the log's own files.
        checkpoints: of the partition.
        in_bulk: whether kernels do it.
    """

    settings: Settings
    stopped_cleanly: bool | None
    topic_id: str | None
    checkpoints: Checkpoints
    in_bulk: bool


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What became of a partition.

    Attributes:
        row: as of `result.CLEAN_COLUMNS`.
        checkpoints: the lines for the new folder; None if there is no folder.
        has_metadata: whether the folder has ``partition.metadata``.
    """

    row: Row
    checkpoints: Checkpoints | None = None
    has_metadata: bool = True


def clean_partition(
    log: PartitionLog,
    order: CleanOrder,
    write: Write,
    say: Callable[..., None],
    *,
    change: Change | None = None,
    advance: Callable[[int], None] = lambda count: None,
    threads: int = 1,
) -> Cleaned:
    """Clean one partition, and write the files of its folder.

    Args:
        say: told sentences; with ``is_wrong=True`` where the broker's start cuts something away.

    Raises:
        OutputError: the folder cannot be written.
    """
    given = log = of_topic(replace(log, checkpoints=order.checkpoints), order.topic_id)
    settings, in_bulk = order.settings, order.in_bulk
    before = opened = open_for_cleaning(log, settings, stopped_cleanly=order.stopped_cleanly, in_bulk=in_bulk)
    for words in _of_start(log, opened):
        say(words, is_wrong=bool(opened.cuts))
    done: Round | None = None
    refused = "a broker does not open this log"
    try:
        if opened.refusal is not None:
            raise opened.refusal
        check_is_left(log, opened)
        for words in _of_recovery(log, opened, settings, in_bulk=in_bulk):
            say(words)
        refused = "what is asked for cannot be done"
        if change is not None:
            log, opened, done = change(log, opened)
        bounds = bounds_of(opened, log.checkpoints, settings)
    except OutputError:
        raise
    except OffsetsLogError as error:
        say(f"offsets partition {log.offsets_partition}: {refused}, it is left out: {error}")
        return Cleaned(refused_row(log, FAILED, error))
    is_deep = done is not None
    if done is None:
        emit = partial(_emit, write)
        done = clean(opened, bounds, settings, emit, advance, in_bulk=in_bulk, threads=threads)
    for file in other_files(log, done):
        write(file)
    kept = done.kept if is_deep else kept_after(done, in_bulk=in_bulk)
    row = result_row(given, done, kept, None if change is None else before, in_bulk=in_bulk)
    return Cleaned(row, checkpoints_after(log.checkpoints, done), PARTITION_METADATA in log.beside)


def _emit(write: Write, new: NewSegment) -> None:
    for file in new_files(new):
        write(file)


def _of_start(log: PartitionLog, opened: OpenLog) -> Iterator[str]:
    """Yield what a broker's start cuts away, and what is missing: after a round both look cleaned."""
    for cut in opened.cuts:
        yield (
            f"{cut.file}: at its start a broker cuts {counted(cut.size_bytes, 'byte')} away, from position "
            f"{cut.position} on; repair keeps what can be read of them"
        )
    for missing in missing_in(log, opened):
        yield f"missing: {missing.in_words()}; a round makes it look as if it was cleaned away"


def _of_recovery(log: PartitionLog, opened: OpenLog, settings: Settings, *, in_bulk: bool) -> Iterator[str]:
    """Yield what a recovery does to a log that was opened without one, as README.txt has the broker recover it."""
    found = recovered(log, opened, settings, in_bulk=in_bulk)
    problem: object = None if found is None else found.refusal
    if found is not None and problem is None and found.cuts:
        cut = found.cuts[0]
        problem = f"{cut.file}: it cuts all away from position {cut.position} on, and all segments behind"
    if problem is not None:
        yield (
            f"offsets partition {log.offsets_partition}: a round copies it, but no broker that recovers it takes "
            f"all of it: {problem}; repair leaves out what it does not take"
        )
