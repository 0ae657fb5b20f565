"""``offsets-log compact``: the latest committed offset of every group, topic and partition."""

from __future__ import annotations

import click

from cli.options import PROFILE, Output, Reading, output_option, reading_options


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
@output_option("table", "jsonl", "json", "csv", "parquet")
def command(reading: Reading, output: Output, profile: str, orphans: bool, unstable: bool) -> None:
    """The latest served offset of every group, topic and partition.

    One row each, as OffsetFetch would answer after a broker has loaded these files: transactions resolved, deleted
    offsets and groups gone. Sorted by group, topic and partition.
    """
    from cli.output import chosen_format, destination, write_rows
    from cli.session import open_session
    from offsets_log.replay.profile import PROFILES
    from offsets_log.tables import COMPACT_COLUMNS, Row, committed_rows, offset_row_order

    format_name = chosen_format(output)
    with open_session(reading, output, needs={"committed_offset"}) as session:
        if format_name == "parquet":
            replays = session.replay_in_bulk(PROFILES[profile]) if session.is_bulk else None
            from cli.parquet import write_compact  # loads Arrow while the threads work

            write_compact(session, output, PROFILES[profile], replays, orphans=orphans, unstable=unstable)
            return
        rows: list[Row] = []
        for log, state, _ in session.load_all(PROFILES[profile], whole_groups=False):
            rows += committed_rows(state, log.offsets_partition, orphans=orphans, unstable=unstable)
        rows.sort(key=offset_row_order)
        names = [column.name for column in COMPACT_COLUMNS] + ["unstable"] * unstable
        names += sorted({name for row in rows for name in row} - set(names))  # raw bytes of malformed names
        if format_name == "table":
            names.remove("topic_id")
        with destination(output, session.files) as stream:
            write_rows(stream, rows, names, format_name)
        groups = len({row["group"] for row in rows})
        session.finish(f"{len(rows)} offsets of {groups} groups, {len(session.logs)} partitions; profile {profile}")
