"""``offsets-log top``: who writes to the topic, and how much of it is in vain."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

import click

from cli.options import TOPIC_IDS, Output, ReadOptions, output_option, reading_options
from offsets_log.words import counted

if TYPE_CHECKING:
    from offsets_log.investigate.writers import Remains, Writers
    from offsets_log.session.session import Session

ORDERS = ("records", "bytes", "garbage", "noop", "rate")
PER = ("group", "topic", "partition", "offsets_partition", "client", "member", "hour")
TABLE_ROWS = 20


@click.command(
    "top",
    epilog="Examples: offsets-log top /var/lib/kafka/data · "
    "offsets-log top /var/lib/kafka/data -p 3 --by garbage --per client · "
    "offsets-log top backup.tar.gz --by rate --per hour -g 'billing-*'",
)
@reading_options
@TOPIC_IDS
@click.option(
    "--by",
    type=click.Choice(ORDERS),
    help="Sort by this, the largest first.  [default: bytes; records where a dump does not tell sizes]",
)
@click.option("--per", type=click.Choice(PER), default="group", show_default=True, help="What to count records by.")
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(min=1),
    help=f"Show only the first N rows; by default a table shows {TABLE_ROWS}.",
)
@output_option("table", "jsonl", "json", "csv")
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
    from cli.output import chosen_format, destination, write_rows
    from cli.session import open_session
    from offsets_log.investigate import writers as w
    from offsets_log.log_format.partition_log import BYTES, POSITION
    from offsets_log.session.inputs import read_topic_ids

    needs = w.NEEDS.get(by or "", set()) | w.NEEDS.get(per, set())
    with open_session(reading, output, needs=needs) as session:
        names = session.inputs.topic_ids | read_topic_ids(topic_ids)
        tells_bytes = "bytes" not in session.inputs.missing_columns
        remains = w.Remains()
        if session.engine.is_bulk_for("folds.tally.scan"):
            writers = _in_bulk(session, per, names, remains)
        else:
            writers = _one_by_one(session, per, names, remains)
        rows = w.top_rows(writers, by or ("bytes" if tells_bytes else "records"), session.inputs.missing_columns)
        total: Counter[str] = Counter()
        for row in rows:
            total.update({name: row[name] or 0 for name in ("records", "bytes", "garbage_bytes", "noop_commits")})
        format_name = chosen_format(output)
        shown = rows[: limit or (TABLE_ROWS if format_name == "table" else None)]
        columns = [column.name for column in (*w.WRITER_COLUMNS[per], *w.COUNT_COLUMNS)]
        with destination(output, session.inputs.files) as stream:
            write_rows(stream, shown, columns, format_name)
        if remains.gone and not session.inputs.missing_columns - {POSITION, BYTES}:
            session.account.say(
                f"{remains.gone} of the {counted(remains.offsets, 'offset')} that these logs span hold no record any "
                "more: cleaned away, missing or unreadable, whose is not known. All shares are of what is left"
            )
        in_bytes = f"{counted(total['bytes'], 'byte')}, of which {total['garbage_bytes']} are garbage"
        if not tells_bytes:
            in_bytes = "bytes not known, since the source does not tell the sizes of batches"
        session.account.finish(
            f"{len(shown)} of {counted(len(rows), 'row')}; in all {counted(total['records'], 'record')}, {in_bytes}, "
            f"{counted(total['noop_commits'], 'no-op commit')}; {session.inputs.partitions_read}",
            found=total["records"],
        )


def _is_held(per: str) -> bool:
    """Return whether writers are known from groups, for which kernels need the whole log here."""
    from offsets_log.columnar.folds.writers import HELD

    return per in HELD


def _in_bulk(session: Session, per: str, names: dict[bytes, str], remains: Remains) -> Writers:
    from offsets_log.investigate.bulk_clients import HeldWriters
    from offsets_log.investigate.bulk_writers import BulkWriters

    how = {"kind": partial(HeldWriters, topic_ids=names)} if _is_held(per) else {}
    shown = session.inputs.shown
    bulk = BulkWriters(per, shown)
    for log in session.inputs.logs:
        state = session.engine.count_in_bulk(log, per, shown=shown, **how)
        remains.add(log, state.first_offset, state.end_offset, state.records)
        bulk.add(state, log.offsets_partition)
    return bulk.finish()


def _one_by_one(session: Session, per: str, names: dict[bytes, str], remains: Remains) -> Writers:
    from offsets_log.investigate.writers import Writers, count_writers

    writers = Writers(per)
    for log in session.inputs.logs:
        events = remains.watch(log, session.engine.events(log))
        session.account.drain(count_writers(events, writers, log.offsets_partition, names, shown=session.inputs.shown))
    writers.finish()
    return writers
