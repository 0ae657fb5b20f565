"""What the driver finds before tasks read: the logs, which of their copies are read, and what tasks are told."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from offsets_log.disk.beside import Beside
from offsets_log.disk.reader import DiskLogs
from offsets_log.errors import InputError
from offsets_log.log_format.completeness import Missing
from offsets_log.messages.internal_topics import OFFSETS_TOPIC
from offsets_log.messages.other_topic import first_groups
from offsets_log.replay.partition_count import PartitionCount, count_shown_by
from spark_jobs.answers import Told
from spark_jobs.files import LogFiles, find_logs
from spark_jobs.options import STREAMED, SourceOptions
from spark_jobs.rows import RECORDS, Piece


@dataclass(frozen=True, slots=True)
class Plan:
    """What is read.

    Attributes:
        absent: partitions of which no segment exists.
        notes: what is said of the inputs.
    """

    logs: Sequence[LogFiles]
    told: Told
    absent: Sequence[Missing] = ()
    notes: Sequence[str] = ()


def open_found(reading: SourceOptions, stack: ExitStack) -> DiskLogs:
    """Open what a reading names, until the stack closes.

    Raises:
        InputError: nothing was found, or something cannot be read.
    """
    return find_logs(
        reading.paths,
        stack,
        as_partition=reading.as_partition,
        partitions=reading.offsets_partition,
        options=reading.storage_options,
    )


def plan(opened: DiskLogs) -> Plan:
    """Return what is read of opened logs, and what all tasks are told. Raises InputError: some are no files."""
    beside = Beside(opened)
    read = frozenset(log.offsets_partition for log in opened.logs)
    told = Told(beside.topic_ids, _count(beside, opened), read)
    return Plan([*map(LogFiles.of, opened.logs)], told, tuple(opened.absent), tuple(opened.notes))


def _count(beside: Beside, opened: DiskLogs) -> PartitionCount | None:
    """Return how many partitions the offsets topic has, by metadata, checkpoints or, of local files, their groups."""
    number = None if beside.metadata is None else beside.metadata.partition_count(OFFSETS_TOPIC)
    if number is not None:
        return PartitionCount(number, "metadata")
    named = {one.offsets_partition for one in opened.absent if one.offsets_partition is not None}
    known = {*(log.offsets_partition for log in opened.logs), *named}
    if opened.absent and known == set(range(len(known))):
        return PartitionCount(len(known), "checkpoints")
    if any(segment.is_fetched for log in opened.logs for segment in log.segments):
        return None
    groups = {log.offsets_partition: first_groups(log) for log in opened.logs if log.offsets_partition is not None}
    return count_shown_by({number: set[str]() for number in named} | groups)


def plan_reading(reading: SourceOptions) -> Plan:
    """Return the plan of a reading.

    Raises:
        InputError: nothing was found, or something cannot be read.
    """
    if reading.level == STREAMED[-1]:
        raise InputError(f"the level {reading.level} is for readStream")
    with ExitStack() as stack:
        return plan(open_found(reading, stack))


def pieces_of(files: LogFiles, reading: SourceOptions, *, is_cut: bool) -> list[Piece]:
    """Return the pieces of a log: one, or of a large one several about as large as a read says.

    Up to a time only one, for nobody knows where the first record beyond it is.
    """
    count = -(-files.size_bytes // reading.cut_bytes) if is_cut and reading.until_time is None else 1
    return [Piece(files, number, max(count, 1)) for number in range(max(count, 1))]


def pieces_to_read(found: Plan, reading: SourceOptions) -> list[Piece]:
    """Return what the tasks of a read get: whole logs, but for records, of which no task needs the others'."""
    is_cut = reading.level in RECORDS
    return [piece for files in found.logs for piece in pieces_of(files, reading, is_cut=is_cut)]
