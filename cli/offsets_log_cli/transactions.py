"""``offsets-log transactions``: what is open, of whom, since when, what it holds up, and what ends it."""

from __future__ import annotations

import click

from offsets_log_cli.help_page import RARE, Command, option
from offsets_log_cli.options import (
    A_TIME,
    FORMATS,
    Output,
    ReadOptions,
    Time,
    output_option,
    reading_options,
    release_options,
)

SELDOM = frozenset(
    {"records", "first_record_offset", "transaction_started_ms", "transaction_timeout_ms", "abort_command"}
)
"""Columns that a table for people leaves out."""


@click.command(
    "transactions",
    cls=Command,
    epilog="Examples: offsets-log transactions /var/lib/kafka/data · "
    "offsets-log transactions backup.tar.gz -g billing -o jsonl",
)
@reading_options
@release_options
@option(
    "--now",
    under=RARE,
    type=Time(),
    help=f"Until when ages are counted, and by when transactions would have timed out: {A_TIME}; by default the time "
    "of the newest record.",
)
@output_option(*FORMATS)
def command(reading: ReadOptions, output: Output, profile: str | None, now: int | None) -> None:
    """List open transactions: of whom, since when, how many bytes they keep from being cleaned, what ends them.

    One row for each transaction and offsets partition, the oldest of a partition first: it alone holds up the cleaner
    and those who read committed records, and when it ends the next one does. Its age counts to the end of the copy,
    the time of its newest record, unless --now says otherwise.

    Where __transaction_state lies beside the logs, the outcome is told: committed or aborted, by what its coordinator
    has written; hanging, if nobody will ever end it; timed out, if the coordinator would have aborted it by --now; else
    undecided. A table is followed by the command lines that end hanging ones; other formats have them in the column
    `abort_command`.

    -g and -t choose transactions that have such offsets; a row tells of the whole transaction.
    """
    from offsets_log.questions.transactions import NEEDS, Transactions
    from offsets_log_cli.answers import write_answer
    from offsets_log_cli.session import open_session

    with open_session(reading, output, needs=NEEDS) as session:
        question = Transactions(session, profile, now)
        write_answer(session, output, question, SELDOM, below=question.commands)
