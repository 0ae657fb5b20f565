"""Partitions as one round of Kafka's own log cleaner would leave them, or less of them, in a new directory."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from offsets_log.actions.partition_folders import PartitionFolders, partition_of
from offsets_log.broker.shutdowns import SHUTDOWNS
from offsets_log.cleaner.bounds import bounds_of
from offsets_log.cleaner.checkpoints import checkpoints_after
from offsets_log.cleaner.opening import check_is_left, missing_in, recovered
from offsets_log.cleaner.result import refused_row, result_row
from offsets_log.cleaner.round import FAILED, OUTCOMES
from offsets_log.errors import OffsetsLogError, OutputError
from offsets_log.words import counted, shown_time

if TYPE_CHECKING:
    from offsets_log.actions.clean_changes import Changes
    from offsets_log.actions.clean_rounds import Machine, Rounds
    from offsets_log.broker.recovery import OpenLog
    from offsets_log.cleaner.bounds import Bounds
    from offsets_log.cleaner.kept import Kept
    from offsets_log.cleaner.round import Round
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
    with ExitStack() as stack:
        place = None if asked.to is None else machine.place(session, asked.to, stack)
        folders = PartitionFolders(place, asked.topic_id)
        cleaning = _Cleaning(session, machine.rounds(session, asked.settings), asked, stack, folders)
        rows = [cleaning.clean(folders.of_topic(log, session)) for log in session.inputs.logs]
        asked.changes.tell_of_others(session, {log.offsets_partition for log in session.inputs.logs})
        folders.write_beside(session.account)
    return rows


def finish(session: Session, rows: list[Row]) -> None:
    """Report what came of it, and count what did not succeed as wrong."""
    counts = {outcome: sum(row["outcome"] == outcome for row in rows) for outcome in OUTCOMES}
    session.account.is_wrong |= bool(counts["failed"] or counts["aborted"])
    told = ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count)
    session.account.finish(f"{counted(len(rows), 'partition')}: {told}; {_sizes(rows)}")


class _Cleaning:
    """The rounds of a run."""

    def __init__(
        self, session: Session, rounds: Rounds, asked: CleanAsked, stack: ExitStack, folders: PartitionFolders
    ) -> None:
        self._session, self._rounds, self._stack, self._folders = session, rounds, stack, folders
        self._settings, self._given, self._changes = asked.settings, asked.given, asked.changes
        self._stopped_cleanly = None if asked.shutdown is None else SHUTDOWNS[asked.shutdown]

    def clean(self, log: PartitionLog) -> Row:
        """Clean one partition, and make its folder in the directory."""
        partition = partition_of(log)
        given = log = replace(log, checkpoints=self._checkpoints(log))
        before = opened = self._rounds.open(log, self._stopped_cleanly)
        self._tell_of_start(log, opened)
        done: Round | None = None
        refused = "a broker does not open this log"
        try:
            if opened.refusal is not None:
                raise opened.refusal
            check_is_left(log, opened)
            if self._rounds.reads_here(log):
                self._tell_of_recovery(log, opened, in_bulk=self._rounds.in_bulk)
            refused = "what is asked for cannot be done"
            if self._changes.are_some:
                log, opened, done = self._changes.apply(self._session, log, opened, self._settings, self._stack)
            bounds = bounds_of(opened, log.checkpoints, self._settings)
        except OutputError:
            raise
        except OffsetsLogError as error:
            self._session.account.say(f"offsets partition {partition}: {refused}, it is left out: {error}")
            return refused_row(log, FAILED, error)
        done, kept = self._written(partition, log, opened, bounds, done)
        changed_from = before if self._changes.are_some else None
        return result_row(given, done, kept, changed_from, in_bulk=self._rounds.in_bulk)

    def _tell_of_start(self, log: PartitionLog, opened: OpenLog) -> None:
        """Report what a broker's start cuts away, and what is missing: after a round both look cleaned."""
        for cut in opened.cuts:
            self._session.account.is_wrong = True
            self._session.account.say(
                f"{cut.file}: at its start a broker cuts {counted(cut.size_bytes, 'byte')} away, from position "
                f"{cut.position} on; repair keeps what can be read of them"
            )
        for missing in missing_in(log, opened):
            self._session.account.say(f"missing: {missing.in_words()}; a round makes it look as if it was cleaned away")

    def _tell_of_recovery(self, log: PartitionLog, opened: OpenLog, *, in_bulk: bool) -> None:
        """Report what a recovery does to a log that was opened without one, as README.txt has the broker recover it."""
        found = recovered(log, opened, self._settings, in_bulk=in_bulk)
        problem: object = None if found is None else found.refusal
        if found is not None and problem is None and found.cuts:
            cut = found.cuts[0]
            problem = f"{cut.file}: it cuts all away from position {cut.position} on, and all segments behind"
        if problem is not None:
            self._session.account.say(
                f"offsets partition {log.offsets_partition}: a round copies it, but no broker that recovers it takes "
                f"all of it: {problem}; repair leaves out what it does not take"
            )

    def _written(
        self, partition: int, log: PartitionLog, opened: OpenLog, bounds: Bounds, done: Round | None
    ) -> tuple[Round, Kept]:
        """Write a partition's folder, after a round if there is still one to do."""
        if done is None:
            done, kept = self._rounds.clean(partition, log, opened, bounds, self._folders)
        else:
            kept = done.kept
            self._folders.write_others(partition, log, done)
        self._folders.end(partition, checkpoints_after(log.checkpoints, done), log)
        return done, kept

    def _checkpoints(self, log: PartitionLog) -> Checkpoints:
        """Return a partition's checkpoints: as options say, else as the data directory says."""
        dirty, watermark, start = (_given_for(log.offsets_partition, self._given.get(name, ())) for name in OFFSETS)
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
