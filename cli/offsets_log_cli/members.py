"""``offsets-log members``: who was in each group."""

from __future__ import annotations

import click

from offsets_log.session.scope import BrokerOptions
from offsets_log_cli.help_page import SHOW, Command, option
from offsets_log_cli.options import (
    FORMATS,
    PARTITIONS,
    TOPIC_IDS,
    Output,
    ReadOptions,
    broker_options,
    output_option,
    reading_options,
    release_options,
)


@click.command(
    "members",
    cls=Command,
    hides=("topic",),
    epilog="Examples: offsets-log members /var/lib/kafka/data -g billing · "
    "offsets-log members backup.tar.gz --until-time 2026-01-31T14:05:00Z -o csv",
)
@reading_options
@release_options
@PARTITIONS
@TOPIC_IDS
@broker_options
@option("--expand", under=SHOW, is_flag=True, help="Decode subscriptions of classic members too.")
@output_option(*FORMATS)
def command(
    reading: ReadOptions,
    output: Output,
    profile: str | None,
    topic_ids: str | None,
    broker: BrokerOptions,
    expand: bool,
) -> None:
    """Show who was in each group after the last record, and which partitions each member had.

    One row for each member of every group that a coordinator has after it has loaded these files: client, host,
    subscription, assignment. A group that is Empty has none. `state --table members` gives the same rows.
    """
    from offsets_log.questions.state import State, StateAsked
    from offsets_log.rows.groups import MEMBER_KIND_COLUMNS
    from offsets_log_cli.answers import write_answer
    from offsets_log_cli.session import open_session

    asked = StateAsked(profile=profile, expand=expand, topic_ids=topic_ids, lag=False, broker=broker)
    with open_session(reading, output) as session:
        write_answer(session, output, State(session, asked, "members"), {column.name for column in MEMBER_KIND_COLUMNS})
