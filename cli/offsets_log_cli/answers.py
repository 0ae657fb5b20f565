"""Writing the answer of a question, in any format."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from offsets_log.questions.question import Lines
from offsets_log.rows.tables import raw_names
from offsets_log_cli.output import TEXT_FORMATS, chosen_format, destination, text_around, write_rows

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
    not_in_tables: Collection[str] = frozenset(),
    *,
    below: Callable[[], Iterable[str]] = lambda: (),
) -> None:
    """Write the answer, and remark on it.

    Args:
        not_in_tables: columns that a table for people leaves out.
        below: makes the lines that follow it.
    """
    format_name = chosen_format(output)
    if format_name in ("parquet", "arrow"):
        from offsets_log_cli.parquet import write_tables

        tables = question.tables()
        if format_name == "arrow":
            from offsets_log.table import with_moments

            tables = map(with_moments, tables)
        first = next(tables)
        with destination(output, session.inputs.files) as stream:
            write_tables(stream, first.schema, chain([first], tables), format_name)
    elif isinstance(question, Lines):
        names = [column.name for column in question.columns]
        shown = [name for name in names if format_name != "table" or name not in not_in_tables]
        write_many(session, output, question, shown, format_name)
    else:
        rows = list(question.rows())
        names = [column.name for column in question.columns]
        names += sorted(raw_names(rows) - set(names))
        if format_name == "table":
            names = [name for name in names if name not in not_in_tables]
        with destination(output, session.inputs.files) as stream:
            write_rows(stream, rows, names, format_name)
            if format_name == "table":
                stream.writelines(line.encode() + b"\n" for line in below())
    question.tell()


def write_many(session: Session, output: Output, question: Lines, names: list[str], format_name: str) -> None:
    """Write rows that may be many, as text or as a table for people; nothing is written before the first is there."""
    files = session.inputs.files
    if format_name in TEXT_FORMATS:
        form = TEXT_FORMATS[format_name](names)
        pieces = question.lines(form.line)
        first = next(pieces, b"")
        with destination(output, files) as stream, text_around(stream, form) as write:
            write(first)
            for piece in pieces:
                write(piece)
    elif question.is_bulk:
        from offsets_log_cli.text_table import TextTable

        with TextTable(names) as text:
            for table in question.tables():
                text.add_columns([values_of(table[name]) for name in names])
            with destination(output, files) as stream:
                text.write(stream)
    else:
        rows = iter(question.rows())
        begun = [*islice(rows, 1)]
        with destination(output, files) as stream:
            write_rows(stream, chain(begun, rows), names, format_name)


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

        with destination(output) as stream:
            write_tables(stream, reader.schema, (pa.Table.from_batches([batch]) for batch in reader), format_name)
        return
    rows = ({name: _plain(value) for name, value in row.items()} for batch in reader for row in batch.to_pylist())
    with destination(output) as stream:
        write_rows(stream, rows, reader.schema.names, format_name)


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
