"""``offsets-log repair``: all of a log that can be read, as segments that a broker loads, in a new folder."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from cli.options import TOPIC_ID, Output, ReadOptions
from cli.partition_folders import PartitionFolders, check_target, folder_options, partition_of

if TYPE_CHECKING:
    from cli.session import Session
    from offsets_log.log_format.partition_log import PartitionLog
    from offsets_log.repairing.left_out import LeftOut
    from offsets_log.replay.releases import Release
    from offsets_log.rows.tables import Row


class OneRelease(click.ParamType):  # type: ignore[type-arg]
    """``4.3.0``, ``3.7.2-java`` → the release."""

    name = "RELEASE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Release:
        """Fails for a release whose rules are not known."""
        from offsets_log.replay.releases import release_named

        try:
            return release_named(str(value).strip())
        except ValueError as error:
            self.fail(str(error), param, ctx)


@click.command(
    "repair",
    epilog="Examples: offsets-log repair /var/lib/kafka/data --to repaired --quarantine broken.jsonl · "
    "offsets-log repair backup.tar.gz -p 3 --to repaired --drop-unloadable 4.3.0",
)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path())
@click.option("--to", metavar="DIR", help="A new directory, which appears whole or not at all.")
@click.option("--dry-run", is_flag=True, help="Write nothing: only tell what would stay, and what is left out why.")
@click.option(
    "--drop-unloadable",
    type=OneRelease(),
    help="Also leave out the records that end a load on this release, such as 4.3.0 or 3.7.2-java.",
)
@TOPIC_ID
@click.option(
    "--quarantine", metavar="FILE", type=click.Path(),
    help="Write what is left out there, JSON Lines with raw bytes.",
)  # fmt: skip
@folder_options
@click.option("-v", "--verbose", is_flag=True, help="Name every damaged piece, not the first few.")
def command(
    paths: tuple[str, ...],
    to: str | None,
    dry_run: bool,
    drop_unloadable: Release | None,
    topic_id: str | None,
    quarantine: str | None,
    offsets_partition: tuple[int, ...],
    as_partition: int | None,
    output: str | None,
    progress: bool | None,
    quiet: bool,
    verbose: bool,
) -> None:
    """All of a log that can be read, as segments that a broker loads.

    DIR gets a folder __consumer_offsets-N for each partition, with indexes, producer snapshots and leader epochs made
    anew, beside them the checkpoints of a data directory, and README.txt: how to put the folders under a broker.

    Intact batches stay byte for byte, at their offsets. Left out are broken batches, torn tails, batches at offsets
    that were read already or that cannot be there, and what a broker refuses at its start; a record that cannot be
    read, or that ends a load, goes out of its batch as Kafka's own cleaner takes records out. Markers of transactions
    stay. A transaction whose marker is broken is left open: last_stable_offset tells. Where a record is left out, an
    older one of the same key counts again.

    Exit status 3 if something was left out.
    """
    from cli.session import open_session
    from offsets_log.broker.hand_over import of_topic

    check_target(to, dry_run=dry_run)
    reading = ReadOptions(
        paths=paths,
        as_partition=as_partition,
        offsets_partition=offsets_partition,
        input_format="segments",
        quarantine=quarantine,
        progress=progress,
        quiet=quiet,
        verbose=verbose,
    )
    with open_session(reading) as session, ExitStack() as stack:
        session.tells_brokers = True
        folders = PartitionFolders(session, to, topic_id, stack)
        repairing = _Repairing(session, drop_unloadable, folders)
        rows = [repairing.repair(of_topic(log, topic_id)) for log in session.logs]
        folders.write_beside()
        stack.close()
        _tell(rows, Output(output=output, to=None))
        session.is_wrong = any(row["left_out"] for row in rows)
        session.finish(_in_words(rows))


class _Repairing:
    """The partitions of a run."""

    def __init__(self, session: Session, drop_unloadable: Release | None, folders: PartitionFolders) -> None:
        self._session, self._release, self._folders = session, drop_unloadable, folders

    def repair(self, log: PartitionLog) -> Row:
        """One partition; its folder is made in the directory."""
        from cli.session import BULK_FROM_BYTES
        from offsets_log.repairing.refusals import find_unloadable
        from offsets_log.repairing.result import repair_row
        from offsets_log.repairing.unloadable import NOTHING
        from offsets_log.repairing.writing import repair

        partition = partition_of(log)
        done = repair(
            log,
            self._folders.begin(partition),
            unloadable=NOTHING if self._release is None else find_unloadable(log, self._release),
            tell=self._leave_out,
            advance=self._session.advance,
            in_bulk=log.bytes_to_read >= BULK_FROM_BYTES,
        )
        self._folders.end(partition, done.checkpoints())
        return repair_row(done)

    def _leave_out(self, left_out: LeftOut) -> None:
        if left_out.is_told_as_damage:
            self._session.on_damage(left_out.damage)
            return
        self._session.keep(left_out.damage)
        self._session.say(f"left out, {left_out.reason}: {left_out.damage.error}")


def _tell(rows: list[Row], output: Output) -> None:
    from cli.output import chosen_format, destination, write_rows
    from offsets_log.repairing.result import REPAIR_COLUMNS

    format_name = chosen_format(output)
    shown = rows
    if format_name == "table":
        shown = [row | {"left_out": "; ".join(map(_left_out_in_words, row["left_out"]))} for row in rows]
    with destination(output) as stream:
        write_rows(stream, shown, REPAIR_COLUMNS, format_name)


def _left_out_in_words(left_out: Row) -> str:
    return f"{left_out['reason']} {left_out['pieces']:,} ({left_out['bytes']:,} bytes)"


def _in_words(rows: list[Row]) -> str:
    batches, size_bytes = (sum(row[name] for row in rows) for name in ("batches", "bytes"))
    pieces, lost = (sum(one[name] for row in rows for one in row["left_out"]) for name in ("pieces", "bytes"))
    return (
        f"{len(rows)} partitions: {batches:,} batches of {size_bytes:,} bytes stay, "
        f"{pieces:,} pieces of {lost:,} bytes are left out"
    )
