"""``offsets-log report``: one page to look at."""

from __future__ import annotations

import click

from offsets_log_cli.help_page import OUTPUT, Command, option
from offsets_log_cli.lag import LAG
from offsets_log_cli.options import PARTITIONS, Output, ReadOptions, reading_options, release_options


@click.command(
    "report",
    cls=Command,
    epilog="Examples: offsets-log report /var/lib/kafka/data --to report.html · "
    "offsets-log report backup.tar.gz -g 'billing-*' --until-time 2026-12-01T14:05:00Z --to billing.html",
)
@reading_options
@release_options
@PARTITIONS
@LAG
@option(
    "--to",
    under=OUTPUT,
    metavar="FILE",
    type=click.Path(),
    required=True,
    help="The HTML file. It appears whole or not at all.",
)
def command(reading: ReadOptions, profile: str | None, lag: bool | None, to: str) -> None:
    """Write one HTML page: whether all was read, groups with their offsets and lag, open transactions, problems.

    It begins with the time of the records, their age, their broker, and what is wrong. Each table can be sorted,
    searched and saved as CSV; a click on a group shows all its offsets, and how they moved.

    The file needs no network and no other file: any browser opens it, and it can be sent to others. Names from the log
    are shown as text, whatever they contain.

    Curves of offsets and generations are samples, finer for the groups with the most commits; the last point of each
    curve is what a broker serves after a load. `history` has every commit of a group. Bytes and commits of a group
    count all its topics, also with -t.
    """
    from offsets_log.actions.report import Report
    from offsets_log_cli.output import destination
    from offsets_log_cli.session import open_session

    output = Output(output=None, to=to)
    with open_session(reading, output) as session:
        report = Report(session, profile, lag=lag)
        page = report.html
        with destination(output, session.inputs.files) as stream:
            stream.write(page)
        report.finish(to)
