"""``offsets-log repair``: all of a log that can be read, as segments that a broker loads, in a new folder."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from cli.options import TOPIC_ID, VERBOSE
from cli.partition_folders import FolderOptions, folder_options, tell
from cli.signals import ended_by_signals
from offsets_log.actions.partition_folders import PartitionFolders, folder_name, partition_of, place_here
from offsets_log.words import counted

if TYPE_CHECKING:
    from offsets_log.cleaner.folder import FolderFile
    from offsets_log.disk.complete import Completing, FromOthers
    from offsets_log.log_format.partition_log import PartitionLog, Segment
    from offsets_log.repairing.comparing import Compared
    from offsets_log.repairing.left_out import LeftOut
    from offsets_log.repairing.unloadable import Unloadable
    from offsets_log.replay.releases import Release
    from offsets_log.rows.tables import Row
    from offsets_log.session.session import Session


class OneRelease(click.ParamType):  # type: ignore[type-arg]
    """``4.3.0``, ``3.7.2-java`` → the release."""

    name = "RELEASE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Release:
        """Return the value; fail for a release whose rules are not known."""
        from offsets_log.replay.releases import release_named

        try:
            return release_named(str(value).strip())
        except ValueError as error:
            self.fail(str(error), param, ctx)


@click.command(
    "repair",
    epilog="Examples: offsets-log repair /var/lib/kafka/data --to repaired --quarantine broken.jsonl · "
    "offsets-log repair backup.tar.gz -p 3 --to repaired --drop-unloadable 4.3.0 · "
    "offsets-log repair disk-1 disk-2 -p 3 --to repaired",
)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path())
@click.option("--to", metavar="DIR", help="New directory, which appears whole or not at all.")
@click.option(
    "--dry-run", is_flag=True, help="Write nothing: only report what would stay, and why the rest is left out."
)
@click.option(
    "--drop-unloadable",
    type=OneRelease(),
    help="Also leave out the records at which a load fails on this release, such as 4.3.0 or 3.7.2-java.",
)
@TOPIC_ID
@click.option(
    "--quarantine", metavar="FILE", type=click.Path(),
    help="Write what is left out to this new file, as JSON Lines with raw bytes.",
)  # fmt: skip
@folder_options
@VERBOSE
def command(
    asked: FolderOptions,
    drop_unloadable: Release | None,
    quarantine: str | None,
    verbose: bool,
) -> None:
    """Write everything that can be read of a log, as segments that a broker loads.

    DIR gets a folder __consumer_offsets-N for each partition, with new indexes, producer snapshots and leader epochs.
    Beside them are the checkpoints of a data directory, and README.txt, which says how to give the folders to a broker.

    Intact batches stay byte for byte, at their offsets. It leaves out broken batches, torn tails, batches at offsets
    that were read already or that cannot be there, and what a broker refuses at its start. A record that cannot be
    read, or at which a load fails, is removed from its batch as Kafka's own cleaner removes records. Markers of
    transactions stay. A transaction whose marker is broken stays open, as last_stable_offset shows. Once a record is
    left out, an older one of the same key counts again: with --drop-unloadable the new log is replayed, and the row
    says how many offsets and groups differ from before. An undamaged record whose key or value cannot be decoded stays,
    and counts as undecodable; offsets that are in no segment count as missing.

    Copies of one partition, such as those of several replicas, complete each other: where the copy that reaches
    farthest is damaged or lacks batches, intact ones of the others are taken, told batch by batch. Copies are mixed
    only if they are of one log: they hold the same batches wherever both are whole, but for what a cleaner took, and no
    leader epochs that contradict each other. Of others nothing is taken, and a sentence names both places of the first
    difference.

    Exit status 3 if something was left out, is undecodable or is missing, or if copies are not of one log; 1 if they
    have no batch in common.
    """
    from cli.session import open_session
    from cli.terminal import say_of_release
    from offsets_log.disk.complete import Completing
    from offsets_log.repairing.result import REPAIR_COLUMNS

    asked.check_target()
    _check_quarantine(quarantine, asked)
    reading = asked.reading(quarantine=quarantine, verbose=verbose)
    with (
        ended_by_signals(),
        ExitStack() as scratch,
        open_session(reading, choosing=(completing := Completing(scratch)).log) as session,
        ExitStack() as stack,
    ):
        session.account.tells_brokers = True
        folders = PartitionFolders(None if asked.to is None else place_here(session, asked.to, stack), asked.topic_id)
        say_of_release(drop_unloadable.asked if drop_unloadable else None)
        repairing = _Repairing(session, drop_unloadable, folders, completing)
        rows = [repairing.repair(folders.of_topic(log, session)) for log in session.inputs.logs]
        folders.write_beside(session.account)
        stack.close()
        tell(rows, [column.name for column in REPAIR_COLUMNS], asked.output, SHOWN_AS)
        session.account.is_wrong |= any(row["left_out"] for row in rows)
        session.account.finish(_in_words(rows))


def _check_quarantine(quarantine: str | None, asked: FolderOptions) -> None:
    """Fail unless the quarantine is a new file, outside of the inputs and the output."""
    if quarantine is None:
        return
    from pathlib import Path

    from cli.terminal import fail
    from offsets_log.disk.folders import refuse_inside_inputs
    from offsets_log.errors import OffsetsLogError, OutputError

    if asked.dry_run:
        raise click.UsageError("--quarantine writes a file, and --dry-run writes nothing")
    file = Path(quarantine).resolve()
    if asked.to is not None and file.is_relative_to(Path(asked.to).resolve()):
        raise click.UsageError("--quarantine names a file inside of --to")
    try:
        if file.exists():
            raise OutputError("it exists, and is not overwritten", file=quarantine)
        refuse_inside_inputs(quarantine, asked.paths, asked.paths)
    except OffsetsLogError as error:
        fail(error)


WHOLE = "cleaning.whole.whole"


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
        from functools import partial

        from offsets_log.repairing.result import repair_row
        from offsets_log.repairing.writing import repair

        partition = partition_of(log)
        in_bulk, others = self._in_bulk, self._completing.of(partition)
        if others is not None:
            self._tell_of_taken(partition, others)
        with ExitStack() as stack:
            made = None if self._release is None else _Made(self._folders, partition, stack)
            done = repair(
                log,
                self._folders.begin(partition) if made is None else made.write,
                unloadable=self._find_unloadable(log, in_bulk=in_bulk),
                tell=partial(self._leave_out, others),
                miss=self._session.account.tell,
                advance=self._session.account.advance,
                in_bulk=in_bulk,
            )
            self._folders.end(partition, done.checkpoints(), log)
            self._tell_of_undecodable(partition, done.undecodable)
            compared = None
            if self._release is not None and made is not None:
                compared = self._compare(log, made.log, self._release, in_bulk=in_bulk)
        return repair_row(done, compared, None if others is None else others.taken)

    def _find_unloadable(self, log: PartitionLog, *, in_bulk: bool) -> Unloadable:
        """Return what is left out because it ends a load, if that is asked for."""
        from functools import partial

        from offsets_log.disk.scratch import mapped
        from offsets_log.repairing.refusals import find_unloadable
        from offsets_log.repairing.unloadable import NOTHING

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
        from offsets_log.session.account import DAMAGE_SHOWN

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
        from offsets_log.session.account import DAMAGE_SHOWN

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
        from offsets_log.repairing.comparing import compare

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


class _Made:
    """The segments of a partition as they were written, opened again."""

    def __init__(self, folders: PartitionFolders, partition: int, stack: ExitStack) -> None:
        self._partition, self._stack = partition, stack
        self._write, self._folder = folders.begin(partition), folders.folder(partition)
        self._segments: list[Segment] = []

    @property
    def log(self) -> PartitionLog:
        """The log of all segments that were written."""
        from offsets_log.log_format.partition_log import PartitionLog

        return PartitionLog(self._partition, tuple(self._segments), selection="as it was written")

    def write(self, file: FolderFile) -> None:
        """Write one file of the folder."""
        from offsets_log.disk.local import map_file
        from offsets_log.disk.scratch import mapped
        from offsets_log.log_format.partition_log import Segment

        self._write(file)
        if not file.name.endswith(".log"):
            return
        if self._folder is None:
            buffer = mapped(self._stack, file.pieces)
        else:
            buffer = map_file(self._folder / file.name, self._stack)
        name = f"{folder_name(self._partition)}/{file.name}"
        self._segments.append(Segment(name, int(file.name[:20]), buffer))


NAMES_SHOWN = 5


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
