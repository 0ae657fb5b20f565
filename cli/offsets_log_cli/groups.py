"""``offsets-log groups``: kinds and states, when they last did something, and which can go."""

from __future__ import annotations

import click

from offsets_log.actions.follow_asked import FollowAsked
from offsets_log_cli.follow_options import follow_options, is_followed
from offsets_log_cli.help_page import CHOOSE, RARE, SHOW, Command, option
from offsets_log_cli.lag import LAG
from offsets_log_cli.options import (
    A_TIME,
    FORMATS,
    HARDLY_MS,
    PARTITIONS,
    Duration,
    Output,
    ReadOptions,
    Time,
    output_option,
    reading_options,
    release_options,
)


@click.command(
    "groups",
    cls=Command,
    epilog="Examples: offsets-log groups /var/lib/kafka/data -g 'billing-*' · "
    "offsets-log groups backup.tar.gz --stale 30d --bootstrap-server broker:9092",
)
@reading_options
@release_options
@PARTITIONS
@option(
    "--now",
    under=RARE,
    type=Time(),
    help=f"Until when ages are counted: {A_TIME}; by default the time of the newest record.",
)
@option(
    "--stale",
    under=CHOOSE,
    type=Duration(HARDLY_MS, needs_unit=True),
    help="Only groups unused for so long, such as 30d. They are Empty, have no open transaction and have "
    "written nothing for that time; with the command line that deletes them.",
)
@LAG
@option(
    "--bootstrap-server",
    under=SHOW,
    metavar="HOST:PORT",
    default="localhost:9092",
    help="Brokers for the command lines of --stale.",
)
@follow_options(
    "beyond-end",
    "group-empty:DURATION",
    "lag:RECORDS",
    "load-fails",
    "transaction-open:DURATION",
    excludes=("stale", "now", "lag"),
)
@output_option(*FORMATS)
def command(
    reading: ReadOptions,
    output: Output,
    profile: str | None,
    now: int | None,
    stale: int | None,
    lag: bool | None,
    bootstrap_server: str,
    follow: FollowAsked,
) -> None:
    """List all groups: kind and state, members, number of offsets, lag, age of the last commit, last activity.

    Ages are counted to the end of the copy, the time of its newest record, unless --now says otherwise. -t chooses
    which offsets are counted, not which groups are listed. Activity is any record with a value that the group wrote, a
    commit or its own metadata; tombstones do not count. All groups that can be read are listed; if the coordinator of
    that release would not load a partition, and so list none of its groups, standard error says so, and `check` tells
    more.

    --stale lists what can be deleted: groups that are Empty in the log, have no open transaction, which a delete would
    cancel, and have written nothing for that long. A table is followed by the command lines that delete them, as few as
    possible; other formats have a command line for each group in the column `command`, quoted for bash.

    `offsets-log watch groups` keeps the table current on a terminal.
    """
    _check_usage(reading, stale)
    if is_followed(Output(output=None, to=output.to) if output.output == "table" else output, follow):
        from offsets_log_cli.follow_runs import follow_groups

        follow_groups(reading, output, follow, profile)
        return
    from offsets_log.questions.groups import COMMAND, Groups, GroupsAsked
    from offsets_log_cli.answers import write_answer
    from offsets_log_cli.session import open_session

    asked = GroupsAsked(
        profile=profile,
        now_ms=now,
        stale_ms=stale,
        lag=lag,
        bootstrap_server=bootstrap_server,
        doubtful=output.output == "arrow",
    )
    with open_session(reading, output, needs=asked.needs) as session:
        question = Groups(session, asked)
        write_answer(session, output, question, {COMMAND.name}, below=question.commands)


def _check_usage(reading: ReadOptions, stale: int | None) -> None:
    if stale is not None and reading.topic:
        raise click.UsageError("--stale is about whole groups, which -t does not choose: leave out -t")
