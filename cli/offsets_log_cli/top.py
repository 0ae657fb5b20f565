"""``offsets-log top``: who writes to the topic, and how much of it the next record makes useless."""

from __future__ import annotations

import click

from offsets_log_cli.help_page import SHOW, Command, option
from offsets_log_cli.options import FORMATS, TOPIC_IDS, Output, ReadOptions, output_option, reading_options

ORDERS = ("records", "bytes", "garbage", "noop", "rate")
PER = ("group", "topic", "partition", "offsets_partition", "client", "member", "hour")
TABLE_ROWS = 20


@click.command(
    "top",
    cls=Command,
    epilog="Examples: offsets-log top /var/lib/kafka/data · "
    "offsets-log top /var/lib/kafka/data -p 3 --by garbage --per client · "
    "offsets-log top backup.tar.gz --by rate --per hour -g 'billing-*'",
)
@reading_options
@TOPIC_IDS
@option(
    "--by",
    under=SHOW,
    type=click.Choice(ORDERS),
    metavar="ORDER",
    help="Sort by records, bytes, garbage, noop or rate. The largest comes first; by default bytes, and records where "
    "a dump does not tell sizes.",
)
@option(
    "--per",
    under=SHOW,
    type=click.Choice(PER),
    metavar="KEY",
    default="group",
    show_default=True,
    help="group, topic, partition, offsets_partition, client, member or hour.",
)
@option(
    "--limit",
    under=SHOW,
    metavar="N",
    type=click.IntRange(min=1),
    help=f"Only the first N rows. By default a table shows {TABLE_ROWS}.",
)
@output_option(*FORMATS)
def command(
    reading: ReadOptions, output: Output, topic_ids: str | None, by: str | None, per: str, limit: int | None
) -> None:
    """Show who writes to __consumer_offsets: records, bytes, garbage, no-op commits, commits per second.

    Bytes are a record's share of its batch in the file. Garbage is the bytes of records that a later record of the same
    key supersedes: what cleaning would free. A no-op commit commits the offset that was committed before. The peak is
    the rate of the busiest minute. Partitions are those of the consumed topics, and offsets partitions those of
    __consumer_offsets.

    Clients and members are those that held the partition when the commit was written, by the latest group metadata
    before it; records of unknown writers, and transaction markers, are in the row without a name.

    Records that the cleaner removed are not counted; standard error says how many offsets no longer have a record.
    """
    from offsets_log.questions.top import Top, TopAsked
    from offsets_log_cli.answers import write_answer
    from offsets_log_cli.output import chosen_format
    from offsets_log_cli.session import open_session

    limit = limit or (TABLE_ROWS if chosen_format(output) == "table" else None)
    asked = TopAsked(by=by, per=per, limit=limit, topic_ids=topic_ids)
    with open_session(reading, output, needs=asked.needs) as session:
        write_answer(session, output, Top(session, asked))
