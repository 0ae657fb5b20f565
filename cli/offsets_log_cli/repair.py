"""``offsets-log repair``: all of a log that can be read, as segments that a broker loads, in a new folder."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from offsets_log_cli.help_page import CHANGE, OUTPUT, Command, option
from offsets_log_cli.options import NEW_DIRECTORY_IF_ANY, PATHS, TOPIC_ID, VERBOSE
from offsets_log_cli.partition_folders import FolderOptions, folder_options, tell
from offsets_log_cli.signals import ended_by_signals

if TYPE_CHECKING:
    from offsets_log.replay.releases import Release


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
    cls=Command,
    epilog="Examples: offsets-log repair /var/lib/kafka/data --to repaired --quarantine broken.jsonl · "
    "offsets-log repair backup.tar.gz -p 3 --to repaired --drop-unloadable 4.3.0 · "
    "offsets-log repair disk-1 disk-2 -p 3 --to repaired",
)
@PATHS
@NEW_DIRECTORY_IF_ANY
@option(
    "--dry-run",
    under=OUTPUT,
    is_flag=True,
    help="Write nothing, report what would stay. And why the rest is left out.",
)
@option(
    "--drop-unloadable",
    under=CHANGE,
    type=OneRelease(),
    help="Leave out records at which its load fails. Such as those of 4.3.0 or 3.7.2-java.",
)
@TOPIC_ID
@option(
    "--quarantine",  under=OUTPUT,metavar="FILE", type=click.Path(),
    help="Write what is left out to this new file. As JSON Lines with raw bytes.",
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
    from offsets_log.actions import repair
    from offsets_log.disk.complete import Completing
    from offsets_log.repairing.result import REPAIR_COLUMNS
    from offsets_log_cli.session import open_session
    from offsets_log_cli.terminal import say_of_release

    asked.check_target()
    _check_quarantine(quarantine, asked)
    reading = asked.reading(quarantine=quarantine, verbose=verbose)
    with (
        ended_by_signals(),
        ExitStack() as scratch,
        open_session(reading, choosing=(completing := Completing(scratch)).log) as session,
    ):
        say_of_release(drop_unloadable.asked if drop_unloadable else None)
        rows = repair.repair_all(session, completing, asked.to, asked.topic_id, drop_unloadable)
        tell(rows, [column.name for column in REPAIR_COLUMNS], asked, repair.SHOWN_AS)
        repair.finish(session, rows)


def _check_quarantine(quarantine: str | None, asked: FolderOptions) -> None:
    """Fail unless the quarantine is a new file, outside of the inputs and the output."""
    if quarantine is None:
        return
    from pathlib import Path

    from offsets_log.disk.folders import refuse_inside_inputs
    from offsets_log.errors import OffsetsLogError, OutputError
    from offsets_log_cli.terminal import fail

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
