"""Answers as Parquet files."""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cli.compact_output import Shown, count_alone, say_of_alone, say_of_unstable
from cli.output import destination
from offsets_log.columnar.materialize.arrow import SORTED_BY, table_of_rows
from offsets_log.data_directory.lag_columns import lag_table
from offsets_log.rows.tables import COMPACT_COLUMNS, Column, Row, committed_rows, partition_name
from offsets_log.session.decide import say_of_decided, say_of_hanging
from offsets_log.session.homes import Places
from offsets_log.session.lag import say_of_lag
from offsets_log.words import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from cli.options import Output
    from offsets_log.columnar.folds.replay import Replayed
    from offsets_log.data_directory.copied_logs import CopiedLogs
    from offsets_log.events import LogEvent
    from offsets_log.log_format.partition_log import PartitionLog
    from offsets_log.replay.partial import OffsetAndMetadata
    from offsets_log.session.session import Session

COMPRESSION = "zstd"
EVENT_COMPRESSION_LEVEL = 1
EVENT_PAGE_BYTES = 1 << 22
"""Pages so large that a column of a row group has one or a few: readers skip row groups."""
EVENT_TEXTS = ("metadata", "key", "value", "error")
"""Columns whose texts are seldom equal, and are written without a dictionary."""


def write_compact(
    session: Session,
    output: Output,
    replays: Iterator[Replayed],
    shown: Shown,
    *,
    orphans: bool,
) -> None:
    """Write the answer of `compact` as one file, from replays of the partitions in bulk."""
    places = Places(session, shown.rules.profile)
    tables, alone = zip(*_compact_tables(session, replays, shown, places, orphans=orphans), strict=True)
    table = _settled(pa.concat_tables(tables, promote_options="default"), places)
    table = table.take(pc.sort_indices(table, SORTED_BY))
    write_table(session, output, table, shown, sum(alone))


def _settled(table: pa.Table, places: Places) -> pa.Table:
    """Return the rows that count, as `Places.settled` does."""
    if not places.has_something:
        return table
    groups = pa.array({group for _, group in places.homes.strays} | places.homes.doubled, pa.string())
    is_asked = pc.is_in(table["group"].cast(pa.string()), groups)
    asked = table.filter(is_asked)
    rows = asked.to_pylist()
    kept = {id(row) for row in places.settled(rows)}
    counts = pa.array([id(row) in kept for row in rows], pa.bool_())
    return pa.concat_tables([table.filter(pc.invert(is_asked)), asked.filter(counts)])


def write_table_of(session: Session, output: Output, rows: list[Row], columns: Sequence[Column]) -> None:
    """Write the rows of a small table as one file."""
    with destination(output, session.inputs.files) as stream:
        pq.write_table(table_of_rows(rows, columns), stream, compression=COMPRESSION)


WITH_UNSTABLE = (*COMPACT_COLUMNS, Column("unstable", "boolean", "under an open transaction"))


def write_offsets(session: Session, output: Output, rows: list[Row], shown: Shown, alone: int) -> None:
    """Write rows of `compact` with their column ``unstable``, as `write_table` does."""
    write_table(session, output, table_of_rows(rows, WITH_UNSTABLE), shown, alone)


def write_table(session: Session, output: Output, table: pa.Table, shown: Shown, alone: int = 0) -> None:
    """Write rows of `compact` as one file, and report the result.

    Args:
        alone: what `count_alone` counts.
    """
    columns = table if shown.unstable else table.drop_columns(["unstable"])
    if shown.lag is not None:
        columns = _with_lag(columns, shown.lag, shown.now_ms)
    with destination(output, session.inputs.files) as stream:
        pq.write_table(columns, stream, compression=COMPRESSION)
    say_of_lag(session, shown.lag)
    say_of_decided(session)
    if not shown.unstable:
        say_of_unstable(session, pc.sum(table["unstable"]).as_py() or 0)
    say_of_alone(session, alone)
    say_of_hanging(session, shown.opened)
    session.account.tell_loads(shown.rules.name, set(pc.unique(table["offsets_partition"]).to_pylist()))
    groups = pc.count_distinct(table["group"]).as_py()
    session.account.finish(
        f"{counted(len(table), 'offset')} of {counted(groups, 'group')}, {session.inputs.partitions_read}"
        f"{shown.rules.in_words()}",
        found=len(table) + alone,
    )


def _with_lag(table: pa.Table, logs: CopiedLogs, now_ms: int | None) -> pa.Table:
    """Append `LAG_COLUMNS` to the columns."""
    lags = lag_table(logs, table, now_ms)
    for field in lags.schema:
        table = table.append_column(field, lags[field.name])
    return table


def _compact_tables(
    session: Session, replays: Iterator[Replayed], shown: Shown, places: Places, *, orphans: bool
) -> Iterator[tuple[pa.Table, int]]:
    """Yield a partition's rows, and `count_alone`; add what is pending."""
    yield table_of_rows([], WITH_UNSTABLE), 0
    from offsets_log.columnar.materialize.arrow import served_table
    from offsets_log.columnar.materialize.values import finish
    from offsets_log.columnar.scan.layout import Scanner

    inputs, is_unsure = session.inputs, not shown.rules.told.is_sure
    for replayed in replays:
        with Scanner() as scanner:
            table = served_table(
                replayed.layout,
                replayed.state,
                scanner,
                shows_group=session.inputs.shows_group,
                shows_topic=session.inputs.shows_topic,
                orphans=orphans or is_unsure,
                unstable=True,
            )
            with_offsets = table is None  # something was read on the slow path
            held = finish(replayed.layout, replayed.state, scanner, whole_groups=False, with_offsets=with_offsets)
            if table is None:
                state = held.showing(session.inputs.shows_group, session.inputs.shows_topic)
                rows = list(committed_rows(state, replayed.log.offsets_partition, orphans=orphans, unstable=True))
                table = table_of_rows(rows, COMPACT_COLUMNS)
            elif is_unsure:
                table = _of_groups(session, replayed.log, table, held.groups, orphans=orphans)
            places.add(replayed.log, held.groups)
            session.account.note_load(replayed.log, held.failure)
            shown.opened.append((replayed.log, held.pending))
            asked = [one for one in held.pending if inputs.shows_group(one.group) and inputs.shows_topic(one.topic)]
            yield table, count_alone_in(table, asked)


def _of_groups(
    session: Session, log: PartitionLog, table: pa.Table, groups: Iterable[str], *, orphans: bool
) -> pa.Table:
    """Return rows of groups that exist, or all; whether there are others is noted, for other rules may serve them."""
    exist = pc.is_in(table["group"].cast(pa.string()), pa.array(groups, pa.string()))
    if pc.all(exist, min_count=0).as_py():
        return table
    session.engine.by_rules.add(id(log))
    return table if orphans else table.filter(exist)


def count_alone_in(table: pa.Table, pending: Sequence[OffsetAndMetadata]) -> int:
    """Return `count_alone` of a table's rows."""
    if not pending:
        return 0
    groups = pa.array({value.group for value in pending}, pa.string())
    rows = table.filter(pc.is_in(table["group"].cast(pa.string()), groups))
    return count_alone(pending, rows.select(["group", "topic", "partition"]).to_pylist())


def write_history(session: Session, output: Output, tables: Iterable[pa.Table], schema: pa.Schema) -> None:
    """Write tables of `investigate.history_tables` as one file, with a row group for each."""
    rising = [field.name for field in schema if field.type == pa.int64()]
    with (
        destination(output, session.inputs.files) as stream,
        pq.ParquetWriter(
            stream,
            schema,
            compression=COMPRESSION,
            compression_level=EVENT_COMPRESSION_LEVEL,
            use_dictionary=[field.name for field in schema if field.name not in (*rising, "metadata")],
            column_encoding=dict.fromkeys(rising, "DELTA_BINARY_PACKED"),
            data_page_size=EVENT_PAGE_BYTES,
        ) as writer,
    ):
        for table in tables:
            writer.write_table(table)


# ------------------------------------------------------------------------------------------------ events


def write_events(session: Session, to: str, watch: Callable[[PartitionLog], Iterator[LogEvent]]) -> None:
    """Write every record as a row of `columnar.events.rows.EVENT_COLUMNS`, in a new directory of files.

    Each file holds records of one offsets partition in log order; the files' names are in that order too.

    Args:
        watch: yields the events of a partition that are shown, and reports damage.
    """
    from offsets_log.columnar.events.export import Destination
    from offsets_log.columnar.events.tables import TableChunk

    with session.new_directory(to) as directory:
        files = _EventFiles(directory)
        records = (
            session.engine.export_in_bulk(Destination(files.write), is_filtered=True, chunk=TableChunk)
            if session.engine.is_bulk_for("events.kernels.fill")
            else _export(session, files, watch)
        )
        files.finish()
    session.account.finish(f"{counted(records, 'record')}, {session.inputs.partitions_read}", found=records)


class _EventFiles:
    """The files of a directory, one for each part of a log that has records."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def write(self, log: PartitionLog, number: int, tables: Iterable[pa.Table]) -> int:
        """Write one file, in place of an earlier one; return how many rows it has."""
        path = self.directory / f"part-{number:05}-partition-{partition_name(log.offsets_partition)}.parquet"
        path.unlink(missing_ok=True)
        rows = 0
        writer = None
        with ExitStack() as stack:
            for table in tables:
                writer = writer or stack.enter_context(self._writer(path))
                writer.write_table(table)
                rows += len(table)
        return rows

    def finish(self) -> None:
        """Write an empty file for the columns, if there are no records."""
        if next(self.directory.iterdir(), None) is None:
            with self._writer(self.directory / "part-00000.parquet"):
                pass

    @contextmanager
    def _writer(self, path: Path) -> Iterator[pq.ParquetWriter]:
        name = os.fsencode(path)  # Arrow takes names that are not UTF-8 as bytes only
        with pa.OSFile(name, "wb") as sink, _parquet_writer(sink) as writer:
            yield writer


def _parquet_writer(sink: pa.NativeFile) -> pq.ParquetWriter:
    """Open a writer of records: ascending numbers are stored as differences, all else by dictionaries."""
    from offsets_log.columnar.events.rows import BOUNDED, RISING
    from offsets_log.columnar.events.tables import SCHEMA

    return pq.ParquetWriter(
        sink,
        SCHEMA,
        compression=COMPRESSION,
        compression_level=EVENT_COMPRESSION_LEVEL,
        write_statistics=list(BOUNDED),
        use_dictionary=[name for name in SCHEMA.names if name not in (*RISING, *EVENT_TEXTS)],
        column_encoding=dict.fromkeys(RISING, "DELTA_BINARY_PACKED"),
        data_page_size=EVENT_PAGE_BYTES,
    )


def _export(session: Session, files: _EventFiles, watch: Callable[[PartitionLog], Iterator[LogEvent]]) -> int:
    from offsets_log.columnar.events.rows import event_row
    from offsets_log.columnar.events.tables import iter_event_tables
    from offsets_log.events import Event

    records = 0
    for number, log in enumerate(session.inputs.logs):
        rows = (event_row(event) for event in watch(log) if isinstance(event, Event))
        records += files.write(log, number, iter_event_tables(rows))
    return records
