"""Partitions as one round of Kafka's own log cleaner would leave them, or less of them, in a new directory."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from offsets_log.actions.clean_rounds import Rounds
from offsets_log.actions.partition_folders import PartitionFolders, partition_of
from offsets_log.broker.shutdowns import SHUTDOWNS
from offsets_log.cleaner.partition import CleanOrder
from offsets_log.cleaner.round import OUTCOMES
from offsets_log.words import counted, shown_time

if TYPE_CHECKING:
    from offsets_log.actions.clean_changes import Changes
    from offsets_log.actions.clean_rounds import Machine
    from offsets_log.cleaner.settings import Settings
    from offsets_log.log_format.partition_log import Checkpoints, PartitionLog
    from offsets_log.rows.tables import Row
    from offsets_log.session.session import Session

Given = tuple[tuple[int | None, int], ...]
"""Offsets of single partitions; None stands for all others."""
OFFSETS = ("first_dirty_offset", "high_watermark", "log_start_offset")
"""What replaces what a data directory's checkpoints say."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CleanAsked:
    """What is asked of a cleaning.

    Attributes:
        settings: the cleaner's, and whose rules it follows.
        changes: what more is asked for than a round.
        shutdown: how the broker was stopped, clean or unclean; None for what the data directory tells.
        given: of `OFFSETS` those that are to replace what checkpoints say.
        to: the new directory; None to write nothing.
        topic_id: the topic's id in the cluster that gets the folders; None for the one in the files.
    """

    settings: Settings
    changes: Changes
    shutdown: str | None = None
    given: Mapping[str, Given] = field(default_factory=dict)
    to: str | None = None
    topic_id: str | None = None


def clean(session: Session, machine: Machine, asked: CleanAsked) -> list[Row]:
    """Clean all partitions of a session; return a row of `CLEAN_COLUMNS` for each, once the directory is there.

    Raises:
        OffsetsLogError: something cannot be written, or what is asked for leaves nothing.
    """
    session.account.leaves_out_below_start = True
    with ExitStack() as stack:
        place = None if asked.to is None else machine.place(session, asked.to, stack)
        folders = PartitionFolders(place, asked.topic_id)
        in_bulk = machine.begin(session)
        is_clean = None if asked.shutdown is None else SHUTDOWNS[asked.shutdown]
        works = [
            (
                log,
                CleanOrder(
                    asked.settings, is_clean, folders.topic_id_of(log, session), _checkpoints(log, asked.given), in_bulk
                ),
            )
            for log in session.inputs.logs
        ]
        rows = []
        rounds = machine.clean(Rounds(session, folders, asked.changes, works), stack)
        for (log, _), cleaned in zip(works, rounds, strict=True):
            rows.append(cleaned.row)
            if cleaned.checkpoints is not None:
                folders.end(partition_of(log), cleaned.checkpoints, has_metadata=cleaned.has_metadata)
        asked.changes.tell_of_others(session, {log.offsets_partition for log in session.inputs.logs})
        folders.write_beside(session.account)
    return rows


def finish(session: Session, rows: list[Row]) -> None:
    """Report what came of it, and count what did not succeed as wrong."""
    counts = {outcome: sum(row["outcome"] == outcome for row in rows) for outcome in OUTCOMES}
    session.account.is_wrong |= bool(counts["failed"] or counts["aborted"])
    told = ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count)
    session.account.finish(f"{counted(len(rows), 'partition')}: {told}; {_sizes(rows)}")


def _checkpoints(log: PartitionLog, given: Mapping[str, Given]) -> Checkpoints:
    """Return a partition's checkpoints: as asked, else as the data directory says."""
    dirty, watermark, start = (_given_for(log.offsets_partition, given.get(name, ())) for name in OFFSETS)
    told = log.checkpoints
    return replace(
        told,
        cleaned_until=told.cleaned_until if dirty is None else dirty,
        high_watermark=told.high_watermark if watermark is None else watermark,
        log_start_offset=told.log_start_offset if start is None else start,
    )


def tell_of_others(session: Session, given: Mapping[str, Given]) -> None:
    """Report offsets that were given for partitions that are not there."""
    found = {log.offsets_partition for log in session.inputs.logs}
    for name in OFFSETS:
        for partition, offset in given.get(name, ()):
            if partition is not None and partition not in found:
                option = f"--{name.replace('_', '-')} {partition}:{offset}"
                session.account.say(f"{option} has no effect: no such offsets partition was found")


def _given_for(partition: int | None, given: Given) -> int | None:
    offsets = dict(given)
    return offsets.get(partition, offsets.get(None))


def kept_in_words(kept: Row) -> str:
    """Return why bytes are kept, of a row's ``kept``."""
    words = f"{kept['reason']} {counted(kept['bytes'], 'byte')}"
    if "producer_id" in kept:
        words += f" (producer {kept['producer_id']}, from offset {kept['first_offset']})"
    if "since_ms" in kept:
        words += f", since {shown_time(kept['since_ms'])}"
    if "until_ms" in kept:
        words += f", until {shown_time(kept['until_ms'])}"
    return words


def _sizes(rows: list[Row]) -> str:
    before, after = (sum(row[name] or 0 for row in rows) for name in ("bytes_before", "bytes_after"))
    return f"{counted(before, 'byte')} before, {after} after"
