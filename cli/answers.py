"""Writing the answer of a question, in any format."""

from __future__ import annotations

from collections.abc import Collection
from itertools import chain
from typing import TYPE_CHECKING

from cli.output import chosen_format, destination, write_rows

if TYPE_CHECKING:
    from cli.options import Output
    from offsets_log.questions.question import Question
    from offsets_log.session.session import Session


def write_answer(
    session: Session, output: Output, question: Question, not_in_tables: Collection[str] = frozenset()
) -> None:
    """Write the answer, and remark on it.

    Args:
        not_in_tables: columns that a table for people leaves out.
    """
    format_name = chosen_format(output)
    if format_name in ("parquet", "arrow"):
        from cli.parquet import write_tables

        tables = question.tables()
        first = next(tables)
        with destination(output, session.inputs.files) as stream:
            write_tables(stream, first.schema, chain([first], tables), format_name)
    else:
        rows = list(question.rows())
        names = [column.name for column in question.columns]
        names += sorted({name for row in rows for name in row} - set(names))  # raw bytes of malformed names
        if format_name == "table":
            names = [name for name in names if name not in not_in_tables]
        with destination(output, session.inputs.files) as stream:
            write_rows(stream, rows, names, format_name)
    question.tell()
