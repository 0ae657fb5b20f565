"""Writing the answer of a question, in any format."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from offsets_log.questions.question import Lines
from offsets_log.rows.tables import raw_names
from offsets_log_cli.output import (
    asked_columns,
    chosen_format,
    destination,
    text_around,
    text_format,
    view_of,
    write_rows,
)

if TYPE_CHECKING:
    from pyarrow import ChunkedArray

    from offsets_log.questions.question import Question
    from offsets_log.session.session import Session
    from offsets_log.table import Table
    from offsets_log_cli.options import Output


def write_answer(
    session: Session,
    output: Output,
    question: Question,
    seldom: Collection[str] = frozenset(),
    *,
    below: Callable[[], Iterable[str]] = lambda: (),
) -> None:
    """Write the answer, and remark on it.

    Args:
        seldom: columns that a table for people leaves out.
        below: makes the lines that follow it.
    """
    names = [column.name for column in question.columns]
    needed, files = question.needed, session.inputs.files
    asked_columns(output, names)
    if (format_name := chosen_format(output)) in ("parquet", "arrow"):
        from offsets_log_cli.parquet import write_tables

        tables = question.tables()
        if format_name == "arrow":
            from offsets_log.table import with_moments

            tables = map(with_moments, tables)
        if output.columns:
            tables = (table.select(asked_columns(output, table.column_names)) for table in tables)
        begun = next(tables)
        with destination(output, files) as stream:
            write_tables(stream, begun.schema, chain([begun], tables), format_name)
    elif isinstance(question, Lines):
        write_many(session, output, question, names, seldom)
    else:
        rows = list(question.rows())
        names += sorted(raw_names(rows) - set(names))
        with destination(output, files) as stream:
            write_rows(stream, rows, names, output, needed=needed, seldom=seldom)
            if format_name == "table":
                stream.writelines(line.encode() + b"\n" for line in below())
    question.tell()


def write_many(
    session: Session,
    output: Output,
    question: Lines,
    names: list[str],
    seldom: Collection[str] = frozenset(),
) -> None:
    """Write rows that may be many, as text or as a table for people; nothing is written before the first is there.

    Args:
        seldom: columns that a table for people leaves out.
    """
    needed, files = question.needed, session.inputs.files
    if (form := text_format(output, names)) is not None:
        pieces = question.lines(form.line)
        begin = next(pieces, b"")
        with destination(output, files) as stream, text_around(stream, form) as write:
            write(begin)
            for piece in pieces:
                write(piece)
    elif question.is_bulk:
        from offsets_log_cli.text_table import TextTable

        shown = asked_columns(output, names)
        with TextTable(shown, view_of(output, needed, seldom)) as text:
            for table in question.tables():
                text.add_columns([values_of(table[name]) for name in shown])
            with destination(output, files) as stream:
                text.write(stream)
    else:
        rows = iter(question.rows())
        begun = [*islice(rows, 1)]
        with destination(output, files) as stream:
            write_rows(stream, chain(begun, rows), names, output, needed=needed, seldom=seldom)


def values_of(column: ChunkedArray) -> list[object]:
    """Return the values of a column; those of a dictionary are looked up at once, not one by one."""
    import pyarrow as pa

    values: list[object] = (column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column).to_pylist()
    return values


def write_table(output: Output, table: Table) -> None:
    """Write a table of the library."""
    format_name = chosen_format(output)
    reader = table.reader()
    if format_name in ("parquet", "arrow"):
        import pyarrow as pa

        from offsets_log_cli.parquet import write_tables

        schema, tables = reader.schema, (pa.Table.from_batches([batch]) for batch in reader)
        if output.columns:
            names = asked_columns(output, schema.names)
            schema, tables = pa.schema([schema.field(name) for name in names]), (one.select(names) for one in tables)
        with destination(output) as stream:
            write_tables(stream, schema, tables, format_name)
        return
    rows = ({name: _plain(value) for name, value in row.items()} for batch in reader for row in batch.to_pylist())
    with destination(output) as stream:
        write_rows(stream, rows, reader.schema.names, output)


def _plain(value: Any) -> Any:
    """Return a value as texts hold it: moments in ISO 8601, bytes in hex, whole numbers of any size."""
    match value:
        case datetime():
            return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        case Decimal() if value == value.to_integral_value():
            return int(value) if abs(value) < 1 << 63 else str(value)
        case Decimal() | date() | time() | timedelta():
            return str(value)
        case bytes():
            return value.hex()
        case dict():
            return {name: _plain(inner) for name, inner in value.items()}
        case list():
            return [_plain(inner) for inner in value]
    return value
