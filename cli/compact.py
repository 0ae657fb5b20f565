"""``offsets-log compact``: the latest committed offset of every group, topic and partition."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cli.options import PROFILE, Output, Reading, output_option, reading_options

if TYPE_CHECKING:
    from cli.session import Session
    from offsets_log.tables import Row


@click.command(
    "compact",
    epilog="Examples: offsets-log compact /var/lib/kafka/data -g 'billing-*' · "
    "offsets-log compact backup.tar.gz -o csv --to offsets.csv",
)
@reading_options
@PROFILE
@click.option(
    "--orphans", is_flag=True, help="Also offsets whose group does not exist; a broker serves them to nobody."
)
@click.option("--unstable", is_flag=True, help="A column that tells offsets under an open transaction.")
@click.option(
    "--engine",
    type=click.Choice(("local", "spark")),
    default="local",
    show_default=True,
    help="Where the work runs; Spark is for what outgrows a machine and needs the extra of that name, and Java.",
)
@click.option("--master", metavar="URL", help="Of Spark: local[*] if not given, spark://HOST:PORT, yarn …")
@output_option("table", "jsonl", "json", "csv", "parquet")
def command(
    reading: Reading,
    output: Output,
    profile: str,
    orphans: bool,
    unstable: bool,
    engine: str,
    master: str | None,
) -> None:
    """The latest served offset of every group, topic and partition.

    One row each, as OffsetFetch would answer after a broker has loaded these files: transactions resolved, deleted
    offsets and groups gone. Sorted by group, topic and partition.
    """
    from cli.output import chosen_format
    from cli.session import open_session
    from offsets_log.replay.profile import PROFILES
    from offsets_log.tables import COMPACT_COLUMNS, committed_rows, offset_row_order

    format_name = chosen_format(output)
    if master is not None and engine != "spark":
        raise click.UsageError("--master is Spark's: say --engine spark too")
    with open_session(reading, output, needs={"committed_offset"}, is_local=engine == "local") as session:
        if engine == "spark":
            from cli.spark import compact_table

            table = compact_table(session, reading, master, profile, orphans=orphans)
            if format_name == "parquet":
                from cli.parquet import write_table

                write_table(session, output, table, profile, unstable=unstable)
                return
            _write_rows(session, output, format_name, table.to_pylist(), table.column_names, profile, unstable=unstable)
            return
        if format_name == "parquet":
            replays = session.replay_in_bulk(PROFILES[profile]) if session.is_bulk else None
            from cli.parquet import write_compact  # loads Arrow while the threads work

            write_compact(session, output, PROFILES[profile], replays, orphans=orphans, unstable=unstable)
            return
        rows: list[Row] = []
        for log, state, _ in session.load_all(PROFILES[profile], whole_groups=False):
            rows += committed_rows(state, log.offsets_partition, orphans=orphans, unstable=True)
        rows.sort(key=offset_row_order)
        names = [*(column.name for column in COMPACT_COLUMNS), "unstable"]
        names += sorted({name for row in rows for name in row} - set(names))  # raw bytes of malformed names
        _write_rows(session, output, format_name, rows, names, profile, unstable=unstable)


def _write_rows(
    session: Session,
    output: Output,
    format_name: str,
    rows: list[Row],
    names: list[str],
    profile: str,
    *,
    unstable: bool,
) -> None:
    from cli.output import destination, write_rows

    if not unstable:
        say_of_unstable(session, sum(row.pop("unstable") or 0 for row in rows))
        names = [name for name in names if name != "unstable"]
    shown = [name for name in names if format_name != "table" or name != "topic_id"]
    with destination(output, session.files) as stream:
        write_rows(stream, rows, shown, format_name)
    groups = len({row["group"] for row in rows})
    session.finish(f"{len(rows)} offsets of {groups} groups, {session.partitions} partitions; profile {profile}")


def say_of_unstable(session: Session, count: int) -> None:
    """Tell of offsets beside which an open transaction holds others."""
    if count:
        session.say(f"of these offsets {count} are under an open transaction (pending); --unstable marks them")
