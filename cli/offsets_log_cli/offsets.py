"""``offsets-log offsets``: the latest committed offset of every group, topic and partition."""

from __future__ import annotations

from dataclasses import dataclass

import click

from offsets_log.actions.follow_asked import FollowAsked
from offsets_log.session.scope import BrokerOptions
from offsets_log_cli.decide import DECIDE, check_usage
from offsets_log_cli.follow_options import follow_options, is_followed
from offsets_log_cli.help_page import SHOW, Command, option
from offsets_log_cli.lag import LagOptions, lag_options
from offsets_log_cli.options import (
    FORMATS,
    PARTITIONS,
    TABLES,
    Output,
    ReadOptions,
    broker_options,
    gather,
    output_option,
    reading_options,
    release_options,
)

SELDOM = frozenset({"topic_id", "log_start_offset", "lag_from"})
"""Columns that a table for people leaves out."""


@dataclass(frozen=True, slots=True)
class CompactOptions:
    """Options that choose rows.

    Attributes:
        table: one of `TABLES`.
    """

    orphans: bool
    unstable: bool
    decide: bool
    table: str


@click.command(
    "offsets",
    cls=Command,
    epilog="Examples: offsets-log offsets /var/lib/kafka/data -g 'billing-*' · "
    "offsets-log offsets backup.tar.gz -o csv --to offsets.csv",
)
@reading_options
@release_options
@PARTITIONS
@broker_options
@gather(
    "asked",
    CompactOptions,
    (
        option(
            "--orphans",
            under=SHOW,
            is_flag=True,
            help="Also offsets whose group does not exist. A broker serves them to nobody.",
        ),
        option(
            "--unstable",
            under=SHOW,
            is_flag=True,
            help="Mark offsets that an open transaction changes. It has a newer value for them.",
        ),
        DECIDE,
        option(
            "--table",
            under=SHOW,
            type=click.Choice(TABLES),
            default=TABLES[0],
            show_default=True,
            metavar="TABLE",
            help="offsets, or share-offsets, those of share groups. These are in __share_group_state in the copy.",
        ),
    ),
)
@lag_options
@follow_options(
    "beyond-end",
    "lag:RECORDS",
    "load-fails",
    "rewound",
    "transaction-open:DURATION",
    excludes=("as_broker", "shutdown", "decide", "table", "lag", "now"),
)
@output_option(*FORMATS)
def command(
    reading: ReadOptions,
    output: Output,
    profile: str | None,
    broker: BrokerOptions,
    asked: CompactOptions,
    lag: LagOptions,
    follow: FollowAsked,
) -> None:
    """Show the latest committed offset of every group, topic and partition, as a coordinator has it after it has loaded
    these files. `compact` is the same command.

    One row for each, as a coordinator has it after reading everything that can be read here: with transactions
    resolved, and without deleted offsets and groups. Rows are sorted by group, topic and partition. A broker that
    starts with damaged files may read less, or load nothing at all: --as-broker answers what OffsetFetch would answer
    then. If the coordinator of that release would not load a partition as it is here, standard error says so;
    `check` finds all such partitions, for every release.

    `offsets-log watch offsets` prints these rows and then each row that changes.
    """
    if is_followed(output, follow):
        from offsets_log_cli.follow_runs import follow_compact

        follow_compact(reading, output, follow, profile, orphans=asked.orphans, unstable=asked.unstable)
        return
    if broker.shutdown is not None and not broker.as_broker:
        raise click.UsageError(
            "--shutdown decides what a broker recovers: give --as-broker too; without it all that can be read is "
            "answered, whatever the stop"
        )
    check_usage(reading, asked.decide, as_broker=broker.as_broker)
    if asked.table == "share-offsets":
        _write_share_offsets(reading, output, lag)
        return
    from offsets_log.questions.offsets import Offsets
    from offsets_log.questions.offsets_asked import NEEDS, OffsetsAsked
    from offsets_log.rows.tables import COMPACT_COLUMNS
    from offsets_log_cli.answers import write_answer
    from offsets_log_cli.session import open_session

    question = OffsetsAsked(
        profile=profile,
        orphans=asked.orphans,
        unstable=asked.unstable,
        lag=lag.lag,
        now_ms=lag.now_ms,
        decide=asked.decide,
        doubtful=output.output == "arrow",
        broker=broker,
    )
    columns = {column.name for column in COMPACT_COLUMNS}
    with open_session(reading, output, needs=NEEDS, columns=columns) as session:
        write_answer(session, output, Offsets(session, question), SELDOM)


def _write_share_offsets(reading: ReadOptions, output: Output, lag: LagOptions) -> None:
    """Write the rows of ``--table share-offsets``."""
    from offsets_log.questions.share_offsets import ShareOffsets
    from offsets_log_cli.answers import write_answer
    from offsets_log_cli.session import open_session

    if reading.is_bounded:
        raise click.UsageError(
            "--table share-offsets shows the state at the copy's end: leave out --until-offset and --until-time"
        )
    with open_session(reading, output) as session:
        write_answer(session, output, ShareOffsets(session, lag.lag))
