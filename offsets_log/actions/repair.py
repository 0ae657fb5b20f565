"""All of a log that can be read, as segments that a broker loads, in a new directory."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

from offsets_log.actions.partition_folders import PartitionFolders, folder_name, partition_of, place_here
from offsets_log.actions.written_segments import WrittenSegments
from offsets_log.disk.scratch import mapped
from offsets_log.log_format.file_names import PARTITION_METADATA
from offsets_log.repairing.comparing import compare
from offsets_log.repairing.refusals import find_unloadable
from offsets_log.repairing.result import repair_row
from offsets_log.repairing.unloadable import NOTHING
from offsets_log.repairing.writing import repair
from offsets_log.session.account import DAMAGE_SHOWN
from offsets_log.words import counted

if TYPE_CHECKING:
    from offsets_log.disk.complete import Completing, FromOthers
    from offsets_log.log_format.partition_log import PartitionLog
    from offsets_log.repairing.comparing import Compared
    from offsets_log.repairing.left_out import LeftOut
    from offsets_log.repairing.unloadable import Unloadable
    from offsets_log.replay.releases import Release
    from offsets_log.rows.tables import Row
    from offsets_log.session.session import Session

WHOLE = "cleaning.whole.whole"
NAMES_SHOWN = 5


def repair_all(
    session: Session, completing: Completing, to: str | None, topic_id: str | None, release: Release | None
) -> list[Row]:
    """Repair all partitions of a session; return a row of `REPAIR_COLUMNS` for each, once the directory is there.

    Args:
        completing: chose the session's logs among copies.
        to: the new directory; None to write nothing.
        topic_id: the topic's id in the cluster that gets the folders; None for the one in the files.
        release: by whose rules records that end a load are left out too; None to leave them.

    Raises:
        OffsetsLogError: something cannot be written.
    """
    with ExitStack() as stack:
        session.account.tells_brokers = session.account.leaves_out_below_start = True
        if words := completing.in_words():
            session.account.say(words)
        folders = PartitionFolders(None if to is None else place_here(session, to, stack), topic_id)
        repairing = _Repairing(session, release, folders, completing)
        rows = [repairing.repair(folders.of_topic(log, session)) for log in session.inputs.logs]
        folders.write_beside(session.account)
    return rows


def finish(session: Session, rows: list[Row]) -> None:
    """Report what came of it; what was left out counts as wrong."""
    session.account.is_wrong |= any(row["left_out"] for row in rows)
    session.account.finish(_in_words(rows))


class _Repairing:
    """The partitions of a run."""

    def __init__(
        self, session: Session, drop_unloadable: Release | None, folders: PartitionFolders, completing: Completing
    ) -> None:
        self._session, self._release, self._folders = session, drop_unloadable, folders
        self._completing = completing
        self._in_bulk = session.engine.is_large_for(WHOLE)
        if self._in_bulk:
            session.engine.compile_first(WHOLE)

    def repair(self, log: PartitionLog) -> Row:
        """Repair one partition, and make its folder in the directory."""
        partition = partition_of(log)
        in_bulk, others = self._in_bulk, self._completing.of(partition)
        if others is not None:
            self._tell_of_taken(partition, others)
        with ExitStack() as stack:
            made = None if self._release is None else WrittenSegments(self._folders, partition, stack)
            done = repair(
                log,
                self._folders.begin(partition) if made is None else made.write,
                unloadable=self._find_unloadable(log, in_bulk=in_bulk),
                tell=partial(self._leave_out, others),
                miss=self._session.account.tell,
                advance=self._session.account.advance,
                in_bulk=in_bulk,
            )
            self._folders.end(partition, done.checkpoints(), has_metadata=PARTITION_METADATA in log.beside)
            self._tell_of_undecodable(partition, done.undecodable)
            compared = None
            if self._release is not None and made is not None:
                compared = self._compare(log, made.log, self._release, in_bulk=in_bulk)
        return repair_row(done, compared, None if others is None else others.taken)

    def _find_unloadable(self, log: PartitionLog, *, in_bulk: bool) -> Unloadable:
        """Return what is left out because it ends a load, if that is asked for."""
        if self._release is None:
            return NOTHING
        with ExitStack() as scratch:
            return find_unloadable(log, self._release, in_bulk=in_bulk, join=partial(mapped, scratch))

    def _leave_out(self, others: FromOthers | None, left_out: LeftOut) -> None:
        if others is not None:
            others.locate(left_out.damage.error)
        if left_out.is_told_as_damage:
            self._session.account.on_damage(left_out.damage)
            return
        self._session.account.keep(left_out.damage)
        self._session.account.say(f"left out, {left_out.reason}: {left_out.damage.error}")

    def _tell_of_taken(self, partition: int, others: FromOthers) -> None:
        """Name the first few batches that are of other copies."""
        taken = others.taken
        shown = len(taken) if self._session.inputs.scope.verbose else DAMAGE_SHOWN
        for _, one in taken[:shown]:
            self._session.account.say(f"offsets partition {partition}: {one.in_words()}")
        if len(taken) > shown:
            self._session.account.say(
                f"offsets partition {partition}: {len(taken) - shown} more are taken of other copies; -v names them all"
            )

    def _tell_of_undecodable(self, partition: int, found: Sequence[str]) -> None:
        """Name the first few records that stay though no coordinator understands them."""
        shown = len(found) if self._session.inputs.scope.verbose else DAMAGE_SHOWN
        for problem in found[:shown]:
            self._session.account.say(f"stays, though it cannot be read: {folder_name(partition)}/{problem}")
        if found:
            self._session.account.is_wrong = True
            self._session.account.say(
                f"offsets partition {partition}: {counted(len(found), 'record')} with a key or value that "
                "cannot be read stay; clean --drop-record leaves out single ones, --drop-unloadable those that end a "
                "load"
            )

    def _compare(self, log: PartitionLog, made: PartitionLog, release: Release, *, in_bulk: bool) -> Compared:
        """Replay what was read and what was written by the release's rules."""
        compared = compare(log, made, release.profile, in_bulk=in_bulk)
        where = f"offsets partition {log.offsets_partition}"
        if compared.problem is not None:
            self._session.account.is_wrong |= not compared.problem.is_served
            self._session.account.say(compared.problem.in_words(release.profile.name, str(log.offsets_partition)))
        if compared.is_same:
            self._session.account.say(f"{where}: replayed as {release.name} does it, all answers are as before")
            return compared
        self._session.account.say(
            f"{where}: replayed as {release.name} does it, {counted(len(compared.offsets), 'offset')} and "
            f"{counted(len(compared.groups), 'group')} differ from before, because records were left out: "
            + _named(sorted({*compared.groups, *(group for group, *_ in compared.offsets)}))
        )
        return compared


def _named(groups: Sequence[str]) -> str:
    more = len(groups) - NAMES_SHOWN
    return ", ".join(groups[:NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _left_out_in_words(left_out: Row) -> str:
    return f"{left_out['reason']} {left_out['pieces']} ({counted(left_out['bytes'], 'byte')})"


def _taken_in_words(taken: Row) -> str:
    last = "" if taken["first_offset"] == taken["last_offset"] else f" to {taken['last_offset']}"
    return f"{taken['first_offset']}{last} of {taken['copy']}"


SHOWN_AS = {"left_out": _left_out_in_words, "taken": _taken_in_words}


def _in_words(rows: list[Row]) -> str:
    batches, size_bytes = (sum(row[name] for row in rows) for name in ("batches", "bytes"))
    taken = sum(one["batches"] for row in rows for one in row["taken"] or ())
    pieces, lost = (sum(one[name] for row in rows for one in row["left_out"]) for name in ("pieces", "bytes"))
    return (
        f"{counted(len(rows), 'partition')}: {counted(batches, 'batch', 'batches')} of {counted(size_bytes, 'byte')} "
        f"{'stays' if batches == 1 else 'stay'}, {counted(pieces, 'piece')} of {counted(lost, 'byte')} "
        f"{'is' if pieces == 1 else 'are'} left out"
        + (f", {counted(taken, 'batch is', 'batches are')} of other copies" if taken else "")
    )
