"""Answers as Parquet files."""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager
from typing import IO, TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from offsets_log.columnar.materialize.arrow import table_of_rows
from offsets_log.questions.records import Records
from offsets_log.rows.tables import Column, Row, partition_name
from offsets_log_cli.output import asked_columns, destination

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from offsets_log.log_format.partition_log import PartitionLog
    from offsets_log.session.session import Session
    from offsets_log_cli.options import Output

COMPRESSION = "zstd"
EVENT_COMPRESSION_LEVEL = 1
EVENT_PAGE_BYTES = 1 << 22
"""Pages so large that a column of a row group has one or a few: readers skip row groups."""
EVENT_TEXTS = ("metadata", "key", "value", "error")
"""Columns whose texts are seldom equal, and are written without a dictionary."""


def write_tables(stream: IO[bytes], schema: pa.Schema, tables: Iterable[pa.Table], format_name: str) -> None:
    """Write tables one after another, as a Parquet file or a stream of Arrow's IPC format."""
    with _table_writer(stream, schema) if format_name == "parquet" else pa.ipc.new_stream(stream, schema) as writer:
        for table in tables:
            writer.write_table(table)


def _table_writer(stream: IO[bytes], schema: pa.Schema) -> pq.ParquetWriter:
    """Open a writer with a row group for each table: large numbers are stored as differences, most else once."""
    rising = [field.name for field in schema if field.type == pa.int64()]
    return pq.ParquetWriter(
        stream,
        schema,
        compression=COMPRESSION,
        compression_level=EVENT_COMPRESSION_LEVEL,
        use_dictionary=[field.name for field in schema if field.name not in (*rising, *EVENT_TEXTS)],
        column_encoding=dict.fromkeys(rising, "DELTA_BINARY_PACKED"),
        data_page_size=EVENT_PAGE_BYTES,
    )


def write_table_of(session: Session, output: Output, rows: list[Row], columns: Sequence[Column]) -> None:
    """Write the rows of a small table as one file."""
    names = asked_columns(output, [column.name for column in columns])
    with destination(output, session.inputs.files) as stream:
        pq.write_table(table_of_rows(rows, columns).select(names), stream, compression=COMPRESSION)


# ------------------------------------------------------------------------------------------------ events


def write_events(session: Session, to: str) -> None:
    """Write the answer of `questions.records` in a new directory of files, made side by side.

    Each file holds records of one offsets partition in log order; the files' names are in that order too.
    """
    with session.new_directory(to) as directory:
        files = _EventFiles(directory)
        question = Records(session)
        question.write_parts(files.write)
        files.finish()
    question.tell()


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
