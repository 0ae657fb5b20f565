"""``offsets-log history``: every commit of a group in order, and what was answered after each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import click

from offsets_log.actions.follow_asked import FollowAsked
from offsets_log_cli.follow_options import follow_options, is_followed
from offsets_log_cli.help_page import CHOOSE, SHOW, Command, option
from offsets_log_cli.options import (
    FORMATS,
    PARTITIONS,
    TABLES,
    TOPIC_IDS,
    Output,
    ReadOptions,
    Time,
    gather,
    output_option,
    reading_options,
    release_options,
)

SELDOM = frozenset(
    {"leader_epoch", "metadata_decoded", "commit_timestamp_ms", "producer_id", "effective_record_offset", "member_id",
     "group_instance_id", "member_epoch", "offsets_partition"}
)  # fmt: skip
"""Columns that a table for people leaves out."""


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Options that choose rows.

    Attributes:
        table: one of `TABLES`.
    """

    table: str
    from_time: int | None
    rewinds: bool


@click.command(
    "history",
    cls=Command,
    epilog="Examples: offsets-log history /var/lib/kafka/data -g billing -t orders --topic-partition 3 · "
    "offsets-log history backup.tar.gz --rewinds --from-time 2026-11-21T02:00Z --until-time 2026-11-21T03:00Z",
)
@reading_options
@release_options
@PARTITIONS
@TOPIC_IDS
@option(
    "--topic-partition",
    under=CHOOSE,
    metavar="N",
    type=click.IntRange(min=0),
    multiple=True,
    help="Only this partition of topics; repeatable.",
)
@click.option("--partition", metavar="N", type=click.IntRange(min=0), multiple=True, hidden=True)
@gather(
    "rows",
    Rows,
    (
        option(
            "--table",
            under=SHOW,
            type=click.Choice(TABLES),
            metavar="TABLE",
            default=TABLES[0],
            show_default=True,
            help="offsets, or share-offsets, those of share groups. These are in __share_group_state in the copy.",
        ),
        option(
            "--from-time",
            under=CHOOSE,
            type=Time(),
            help="Only rows of that time and later. The first row is compared with the offset from before.",
        ),
        option(
            "--rewinds",
            under=CHOOSE,
            is_flag=True,
            help="Only where a served offset went back. At once, or after it was deleted or had expired. Of all "
            "groups, unless -g chooses some.",
        ),
    ),
)
@follow_options("rewound", excludes=("table", "from_time"))
@output_option(*FORMATS)
def command(
    reading: ReadOptions,
    output: Output,
    profile: str | None,
    topic_ids: str | None,
    topic_partition: tuple[int, ...],
    partition: tuple[int, ...],
    rows: Rows,
    follow: FollowAsked,
) -> None:
    """Show every commit of a group in order, which offset was served after each, and who held the partition then.

    Needs -g, but with --rewinds. One row for each commit, tombstone and end of a transaction. `effective_offset` is
    what OffsetFetch answers after it, and `change` how this answer changed: new, advanced, rewound, same (the same
    offset again), deleted; null if the answer is not affected, such as by a commit in an open transaction. `group_gone`
    and `group_back` say that the group was deleted and came back, while its offsets stayed in the log. In between no
    client gets them. `rewound_by` is how far a served offset went back.

    A commit does not say who sent it: the row names the member to which the latest group metadata before it had
    assigned the partition. Superseded commits that the cleaner removed are missing.

    `offsets-log watch history` prints rows as they come.
    """
    from offsets_log.questions.history import NEEDS, HistoryAsked, OffsetHistory, shows_key
    from offsets_log_cli.answers import write_answer
    from offsets_log_cli.session import open_session

    _check_usage(reading, rows)
    partitions = frozenset((*topic_partition, *partition))
    if is_followed(output, follow):
        from offsets_log_cli.follow_runs import follow_history

        shows = partial(shows_key, partitions=partitions)
        follow_history(
            reading, output, follow, profile, shows, topic_ids=topic_ids, only_rewinds=rows.rewinds
        )  # fmt: skip
        return
    if rows.table == "share-offsets":
        _write_share_history(reading, output, partitions, rewinds=rows.rewinds)
        return
    asked = HistoryAsked(
        profile=profile,
        topic_ids=topic_ids,
        topic_partition=partitions,
        from_time=rows.from_time,
        rewinds=rows.rewinds,
    )
    with open_session(reading, output, needs=NEEDS) as session:
        write_answer(session, output, OffsetHistory(session, asked), SELDOM)


def _check_usage(reading: ReadOptions, rows: Rows) -> None:
    if not reading.group and not rows.rewinds:
        raise click.UsageError("give the group: -g GROUP; -g '*' gives all, and --rewinds asks all")
    if rows.from_time is not None and rows.table == "share-offsets":
        raise click.UsageError("--table share-offsets knows no bounds: leave out --from-time")
    if rows.from_time is not None and reading.until_time is not None and rows.from_time > reading.until_time:
        raise click.UsageError("--from-time is later than --until-time")


def _write_share_history(reading: ReadOptions, output: Output, partitions: frozenset[int], *, rewinds: bool) -> None:
    """Write the rows of ``--table share-offsets``."""
    from offsets_log.questions.share_history import ShareHistory
    from offsets_log_cli.answers import write_answer
    from offsets_log_cli.session import open_session

    if reading.is_bounded:
        raise click.UsageError("--table share-offsets knows no bounds: leave out --until-offset and --until-time")
    with open_session(reading, output) as session:
        write_answer(session, output, ShareHistory(session, partitions, rewinds=rewinds))
