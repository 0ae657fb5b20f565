"""``offsets-log pull``: a byte-exact copy of ``__consumer_offsets`` from a live cluster, over the network."""

from __future__ import annotations

import sys
from dataclasses import fields
from typing import Any, NoReturn

import click

from offsets_log_cli.command_config import BOOTSTRAP_SERVER, COMMAND_CONFIG
from offsets_log_cli.follow_options import METRICS_PORT
from offsets_log_cli.help_page import CHOOSE, OUTPUT, RARE, Command, option
from offsets_log_cli.options import OFFSETS_PARTITION, QUIET, SHOW_PROGRESS, Output, report_option
from offsets_log_cli.signals import ended_by_signals, stopping


@click.command(
    "pull",
    cls=Command,
    epilog="Examples: offsets-log pull --bootstrap-server localhost:9092 --to copy · "
    "offsets-log pull --bootstrap-server broker:9093 --command-config client.properties --to copy -p 3 · "
    "offsets-log pull --bootstrap-server localhost:9092 --to copy --max-bytes-per-second 5000000 "
    "--with-transaction-state",
)
@BOOTSTRAP_SERVER
@option(
    "--to",  under=OUTPUT,metavar="DIR", required=True, type=click.Path(file_okay=False),
    help="New directory, or that of an earlier run. That is continued.",
)  # fmt: skip
@OFFSETS_PARTITION
@COMMAND_CONFIG
@option(
    "--max-bytes-per-second",  under=RARE,metavar="N", type=click.IntRange(min=1),
    help="Limit of the total rate, from all brokers together; by default none, with one request at a time to each "
         "broker.",
)  # fmt: skip
@option(
    "--rack",
    under=RARE,
    metavar="R",
    default="",
    help="This machine's rack (client.rack): a replica in the same rack is read if there is one.",
)
@option(
    "--with-transaction-state",
    under=CHOOSE,
    is_flag=True,
    help="Copy __transaction_state too. It tells who has open transactions.",
)
@option(
    "--with-share-state",
    under=CHOOSE,
    is_flag=True,
    help="Copy __share_group_state too. It tells where share groups are.",
)
@option(
    "--from-admin",  under=CHOOSE,is_flag=True,
    help="Ask for groups, where the topic is not readable. Their offsets become a rescue plan in DIR.",
)  # fmt: skip
@option("--follow", under=OUTPUT, is_flag=True, help="Keep the copy current, until a signal.")
@METRICS_PORT
@report_option("table", "jsonl", "json", "csv")
@SHOW_PROGRESS
@QUIET
def command(**options: Any) -> None:
    """Copy __consumer_offsets from a live cluster, batch by batch as the brokers have it on their disks.

    DIR becomes a data directory that every other command reads: folders __consumer_offsets-N with segments and indexes,
    pull.json (the cluster, and for each partition start and end, high watermark, last stable offset, leader epoch,
    times), and log-ends.json (where the partitions of all other topics began and ended, for --lag). Each partition is
    copied up to where its log ended when the run began, with open and aborted transactions and all markers.

    The right to READ the topic is enough. Nothing is written to the cluster, and no group is joined.

    However the run is interrupted, the same command continues it; run again later, it adds what came since. It waits
    for brokers that go away and leaders that change, up to default.api.timeout.ms (60 s) without progress. It reports a
    log that was truncated or created again, and adds nothing to its copy.

    --follow keeps the copy current until SIGINT or SIGTERM, or until no broker has answered for that long; the copy is
    then complete up to where it got, and the same command continues it. Other commands with --follow may read the
    directory meanwhile.

    --from-admin is for services that hide the topic from all users. It needs the right to DESCRIBE groups and topics.
    DIR is new, and gets what `rescue` writes: plan.json for `restore`, files for other tools, and README.txt, which
    says what such a snapshot lacks: any history, times of commits, offsets in open transactions.

    Exit status: 0 everything was copied; 1 stopped by an error; 2 wrong usage; 3 some partition is not complete, as its
    row says, or has a batch whose checksum is wrong on the broker, too; with --from-admin groups were refused, or no
    group is shown.
    """
    from offsets_log.actions.pull import Pull, PullAsked
    from offsets_log.errors import OffsetsLogError
    from offsets_log.pulling.facts import PULL_COLUMNS
    from offsets_log.session.account import EXIT_DAMAGED
    from offsets_log_cli.output import destination, write_rows
    from offsets_log_cli.terminal import Terminal, fail

    if options["metrics_port"] is not None and not options["follow"]:
        raise click.UsageError("--metrics-port is of --follow")
    if options["from_admin"]:
        _snapshot(options)
    output = Output(output=options["output"], to=None)
    listener = Terminal(is_quiet=options["quiet"], shows_progress=options["progress"])
    asked = {field.name: options[field.name] for field in fields(PullAsked) if field.name in options}
    pull = Pull(PullAsked(**asked, stopping=stopping if options["follow"] else None), listener)
    try:
        with ended_by_signals():
            copy = pull.run()
        with destination(output) as stream:
            write_rows(stream, copy.rows(), [column.name for column in PULL_COLUMNS], output)
    except OffsetsLogError as error:
        fail(error)
    sys.exit(0 if pull.finish(copy) else EXIT_DAMAGED)


def _snapshot(options: dict[str, Any]) -> NoReturn:
    """Run ``pull --from-admin``."""
    from offsets_log.actions.pull_from_admin import snapshot
    from offsets_log.errors import OffsetsLogError
    from offsets_log_cli.terminal import Terminal, fail

    taken = ("bootstrap_server", "to", "command_config", "quiet", "from_admin", "progress")
    for name, value in options.items():
        if name not in taken and value not in (None, False, "", ()):
            raise click.UsageError(f"--{name.replace('_', '-')} does not go with --from-admin, which pulls no log")
    try:
        with ended_by_signals():
            say = Terminal(is_quiet=options["quiet"]).say
            status = snapshot(options["bootstrap_server"], options["to"], options["command_config"], say)
    except OffsetsLogError as error:
        fail(error)
    sys.exit(status)
