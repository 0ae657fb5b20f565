"""Answers as Parquet files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from cli.output import destination
from offsets_log.columnar.arrow import SORTED_BY, table_of_rows
from offsets_log.tables import COMPACT_COLUMNS, Row, offset_row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cli.options import Output
    from cli.session import Session
    from offsets_log.log_format.partition_log import PartitionLog
    from offsets_log.replay.coordinator_state import CoordinatorState
    from offsets_log.replay.profile import Profile

COMPRESSION = "zstd"


def compact_rows(log: PartitionLog, state: CoordinatorState, *, orphans: bool, unstable: bool) -> Iterator[Row]:
    """One row for each committed offset of a partition."""
    pending = {value.key for value in state.pending}
    for value in state.committed if orphans else state.iter_served():
        row = offset_row(value, log.offsets_partition)
        yield row | {"unstable": value.key in pending} if unstable else row


def write_compact(session: Session, output: Output, profile: Profile, *, orphans: bool, unstable: bool) -> None:
    """The answer of `compact` as one file."""
    tables = list(_compact_tables(session, profile, orphans=orphans, unstable=unstable))
    table = pa.concat_tables(tables, promote_options="default").sort_by(SORTED_BY)
    with destination(output, session.files) as stream:
        pq.write_table(table, stream, compression=COMPRESSION)
    groups = len(table["group"].unique())
    session.finish(f"{len(table)} offsets of {groups} groups, {len(session.logs)} partitions; profile {profile.name}")


def _compact_tables(session: Session, profile: Profile, *, orphans: bool, unstable: bool) -> Iterator[pa.Table]:
    yield table_of_rows([], COMPACT_COLUMNS)
    if not session.is_bulk:
        for log, state, _ in session.load_all(profile):
            rows = list(compact_rows(log, state, orphans=orphans, unstable=unstable))
            yield table_of_rows(rows, COMPACT_COLUMNS)
        return
    from offsets_log.columnar.arrow import served_table
    from offsets_log.columnar.finish import finish
    from offsets_log.columnar.layout import Scanner

    for replayed in session.replay_in_bulk(profile):
        with Scanner() as scanner:
            table = served_table(
                replayed.layout,
                replayed.state,
                scanner,
                shows_group=session.shows_group,
                shows_topic=session.shows_topic,
                orphans=orphans,
                unstable=unstable,
            )
            if table is None:  # something was read by hand
                whole = finish(replayed.layout, replayed.state, scanner, whole_groups=False)
                shown = whole.showing(session.shows_group, session.shows_topic)
                rows = list(compact_rows(replayed.log, shown, orphans=orphans, unstable=unstable))
                table = table_of_rows(rows, COMPACT_COLUMNS)
            yield table
