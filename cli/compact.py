"""``offsets-log compact``: the latest committed offset of every group, topic and partition."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cli.options import AS_BROKER, PROFILE, SHUTDOWN, Output, ReadOptions, output_option, reading_options
from offsets_log.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cli.session import Session
    from offsets_log.log_format.partition_log import PartitionLog
    from offsets_log.replay.coordinator_state import CoordinatorState
    from offsets_log.replay.profile import Profile
    from offsets_log.rows.tables import Row


@click.command(
    "compact",
    epilog="Examples: offsets-log compact /var/lib/kafka/data -g 'billing-*' · "
    "offsets-log compact backup.tar.gz -o csv --to offsets.csv",
)
@reading_options
@PROFILE
@AS_BROKER
@SHUTDOWN
@click.option(
    "--orphans", is_flag=True, help="Also offsets whose group does not exist; a broker serves them to nobody."
)
@click.option("--unstable", is_flag=True, help="Add a column that marks offsets under an open transaction.")
@output_option("table", "jsonl", "json", "csv", "parquet")
def command(
    reading: ReadOptions,
    output: Output,
    profile: str,
    as_broker: bool,
    shutdown: str | None,
    orphans: bool,
    unstable: bool,
) -> None:
    """The latest committed offset of every group, topic and partition.

    One row each, as a coordinator has it that has read all that can be read here: transactions resolved, deleted
    offsets and groups gone. Sorted by group, topic and partition. A broker that starts over damaged files may read
    less, or load nothing at all: --as-broker answers what OffsetFetch would then.
    """
    from cli.output import chosen_format
    from cli.session import open_session
    from offsets_log.replay.profile import PROFILES
    from offsets_log.rows.tables import COMPACT_COLUMNS, committed_rows, offset_row_order

    format_name = chosen_format(output)
    with open_session(reading, output, needs={"committed_offset"}) as session:
        if reading.engine == "spark":
            from cli.spark import SparkEngine

            assert isinstance(session.engine, SparkEngine)
            table = session.engine.compact_table(profile, orphans=orphans)
            if format_name == "parquet":
                from cli.parquet import write_table

                write_table(session, output, table, profile, unstable=unstable)
                return
            _write_rows(session, output, format_name, table.to_pylist(), table.column_names, profile, unstable=unstable)
            return
        if format_name == "parquet" and not as_broker:
            replays = session.engine.replay_in_bulk(PROFILES[profile]) if session.engine.is_bulk else None
            from cli.parquet import write_compact  # loads Arrow while the threads work

            write_compact(session, output, PROFILES[profile], replays, orphans=orphans, unstable=unstable)
            return
        rows: list[Row] = []
        for log, state in _states(session, PROFILES[profile], as_broker=as_broker, shutdown=shutdown):
            rows += committed_rows(state, log.offsets_partition, orphans=orphans, unstable=True)
        rows.sort(key=offset_row_order)
        if format_name == "parquet":
            from cli.parquet import write_offsets

            write_offsets(session, output, rows, profile, unstable=unstable)
            return
        names = [*(column.name for column in COMPACT_COLUMNS), "unstable"]
        names += sorted({name for row in rows for name in row} - set(names))  # raw bytes of malformed names
        _write_rows(session, output, format_name, rows, names, profile, unstable=unstable)


def _states(
    session: Session, profile: Profile, *, as_broker: bool, shutdown: str | None
) -> Iterator[tuple[PartitionLog, CoordinatorState]]:
    if as_broker:
        from cli.brokers import Brokers

        brokers = Brokers(session, profile, as_broker, shutdown)
        for part in brokers.load(whole_groups=False):
            brokers.say(part)
            yield part[:2]
    else:
        for log, state, _ in session.engine.load_all(profile, whole_groups=False):
            yield log, state


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
    with destination(output, session.inputs.files) as stream:
        write_rows(stream, rows, shown, format_name)
    groups = len({row["group"] for row in rows})
    session.account.finish(
        f"{counted(len(rows), 'offset')} of {counted(groups, 'group')}, {session.inputs.partitions_read}; profile "
        f"{profile}"
    )


def say_of_unstable(session: Session, count: int) -> None:
    """Tell of offsets beside which an open transaction holds others."""
    if count:
        session.account.say(
            f"of these offsets {counted(count, 'is', 'are')} under an open transaction (pending); --unstable marks them"
        )
