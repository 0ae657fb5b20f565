"""``offsets-log restore``: applies a rescue's plan to a live cluster, or undoes that."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import click

from offsets_log_cli.command_config import BOOTSTRAP_SERVER, COMMAND_CONFIG
from offsets_log_cli.help_page import CHANGE, CHOOSE, OUTPUT, Command, option
from offsets_log_cli.options import GROUP, QUIET, TOPIC, Output, output_option

LEADER_EPOCHS = ("drop", "keep", "if-valid")
INTERRUPTED = "interrupted"
OUT_OF_RANGE = ("refuse", "earliest", "latest", "keep")


def _plan_file(ctx: click.Context, param: click.Parameter, path: str | None) -> str | None:
    """Return the path of a plan; fail for a directory, which may be one that `rescue` made."""
    if path is not None and Path(path).is_dir():
        plan = Path(path, "plan.json")
        found = f"give {plan}" if plan.is_file() else "offsets-log rescue makes it from a log"
        raise click.BadParameter(f"{path!r} is a directory; the plan is a file, plan.json: {found}", ctx, param)
    return path


@click.command(
    "restore",
    cls=Command,
    epilog="Examples: offsets-log restore rescued/plan.json --bootstrap-server localhost:9092 · "
    "offsets-log restore rescued/plan.json --bootstrap-server localhost:9092 -g 'billing-*' --execute · "
    "offsets-log restore --undo rescued/restore-journal.jsonl --bootstrap-server localhost:9092 --execute",
)
@click.argument("plan", required=False, type=click.Path(exists=True), callback=_plan_file)
@BOOTSTRAP_SERVER
@COMMAND_CONFIG
@GROUP
@TOPIC
@option(
    "--rename-group",
    under=CHANGE,
    metavar="OLD=NEW",
    multiple=True,
    help="Commit offsets of OLD for NEW; repeatable.",
)
@option(
    "--rename-topic",
    under=CHANGE,
    metavar="OLD=NEW",
    multiple=True,
    help="Commit offsets of OLD for NEW; repeatable.",
)
@option(
    "--leader-epochs",
    under=CHANGE,
    type=click.Choice(LEADER_EPOCHS),
    metavar="EPOCHS",
    default=LEADER_EPOCHS[0],
    show_default=True,
    help="drop, keep or if-valid. Which of the plan's leader epochs to commit: none, all, or those that the cluster's "
    "own log has. A consumer that gets an epoch the cluster never had waits forever.",
)
@option(
    "--out-of-range",
    under=CHANGE,
    type=click.Choice(OUT_OF_RANGE),
    metavar="HOW",
    default=OUT_OF_RANGE[0],
    show_default=True,
    help="refuse, earliest, latest or keep. What to do with an offset outside the cluster's log: refuse it, commit "
    "the log's start or end instead, or commit it as it is, such as on a new cluster whose topics are filled "
    "later.",
)
@option(
    "--only-behind",
    under=CHOOSE,
    is_flag=True,
    help="Only groups that are behind, or have no offset. Behind the plan.",
)
@option("--only-ahead", under=CHOOSE, is_flag=True, help="Only groups that are ahead of the plan.")
@option(
    "--journal",
    under=OUTPUT,
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Where the previous offsets are kept, for --undo. By default restore-journal.jsonl beside PLAN.",
)
@option(
    "--undo",
    under=CHANGE,
    metavar="JOURNAL",
    type=click.Path(exists=True, dir_okay=False),
    help="Put the previous offsets back, instead of PLAN. From the journal of earlier runs.",
)
@option("--execute", under=CHANGE, is_flag=True, help="Commit, instead of only showing what would change.")
@output_option("table", "jsonl", "json", "csv")
@QUIET
def command(output: Output, **options: Any) -> None:
    """Commit the offsets of PLAN, with their metadata, to a cluster; without --execute only show them.

    One row for each offset: what the cluster has now (`current_offset`), what it is to get (`committed_offset`), and
    whether the partition's log reaches there. A group with members is refused, because a broker refuses other commits
    while a group has members. Each commit is read back, and counts as applied only if it comes back the same. The
    starts of share groups are set too, on brokers since 4.1.

    The old values are written to the journal before a commit is sent. However the command is interrupted, the same
    command continues it, and --undo puts the old values back, except where somebody else has moved the group since.

    Exit status: 0 everything is, or would be, as the plan says; 1 stopped by an error; 2 wrong usage; 3 something was,
    or would be, refused, or is not done.
    """
    if (options["plan"] is None) == (options["undo"] is None):
        raise click.UsageError("give PLAN, or --undo JOURNAL")
    if options["only_behind"] and options["only_ahead"]:
        raise click.UsageError("--only-behind and --only-ahead exclude each other")
    for name in ("rename_group", "rename_topic", "journal", "only_behind", "only_ahead"):
        if options["undo"] is not None and options[name]:
            raise click.UsageError(f"--{name.replace('_', '-')} has no meaning with --undo")
    from offsets_log.actions.restore import Restore, RestoreAsked
    from offsets_log.errors import OffsetsLogError
    from offsets_log.restore.changes import RESTORE_COLUMNS
    from offsets_log_cli.output import destination, write_rows
    from offsets_log_cli.terminal import Terminal, fail, say

    listener = Terminal(is_quiet=options.pop("quiet"))
    asked = RestoreAsked(**options)
    run = Restore(asked, listener.say)

    def tell() -> None:
        run.tell(run.lost)
        if run.lost:
            say(run.in_words(run.lost))

    def give_up() -> NoReturn:
        run.lost = INTERRUPTED
        tell()
        os._exit(run.exit_status)

    try:
        inputs = [file for file in (asked.plan, str(asked.journal_path)) if file is not None]
        with destination(output, inputs) as stream, _stopping(give_up):
            run.run()
            names = [column.name for column in RESTORE_COLUMNS]
            write_rows(stream, (change.row() for change in run.changes), names, output)
    except OffsetsLogError as error:
        fail(error)
    except KeyboardInterrupt:
        run.lost = INTERRUPTED
    tell()
    sys.exit(run.exit_status)


PATIENCE_S = 5.0
"""How long a run may take to end: an interrupt can leave a lock of the client's that it then waits for."""


@contextmanager
def _stopping(give_up: Callable[[], NoReturn]) -> Iterator[None]:
    """Turn a request to end to an exception, which reports how far the run came.

    Args:
        give_up: reports it and ends the process, where the exception does not lead there in time.
    """

    def stop(*_: object) -> NoReturn:
        late = threading.Timer(PATIENCE_S, give_up)
        late.daemon = True
        late.start()
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = [(number, signal.signal(number, stop)) for number in (signal.SIGTERM, signal.SIGINT)]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)
