"""The rows of ``rebalances`` in its formats: short ones for people, complete ones for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import IO

from cli.alike import AlikeLines
from cli.options import Output
from cli.output import TEXT_FORMATS, TextFormat, destination, text_around, write_rows
from offsets_log.rebalance.generation import Generation
from offsets_log.rebalance.rows import (
    REBALANCE_COLUMNS,
    TABLE_COLUMNS,
    VERIFIED_COLUMNS,
    kind_of_row,
    numbers_of_row,
    raw_names,
    rebalance_row,
    short_row,
    verified_row,
)
from offsets_log.rebalance.verify import Verification
from offsets_log.rows.tables import Row, to_json
from offsets_log.session.session import Session


def write_timelines(
    session: Session,
    output: Output,
    entries: Sequence[Generation],
    verified: Mapping[int, Verification] | None,
    format_name: str,
) -> None:
    """Write one row for each generation.

    Args:
        verified: ``id`` of each entry → its verification; None if that was not asked for.
    """

    def with_verdict(entry: Generation, row: Row) -> Row:
        return row if verified is None else row | verified_row(verified.get(id(entry)))

    columns = (*REBALANCE_COLUMNS, *VERIFIED_COLUMNS) if verified is not None else REBALANCE_COLUMNS
    with destination(output, session.inputs.files) as stream:
        if format_name == "table":
            short = (*TABLE_COLUMNS, *(column.name for column in VERIFIED_COLUMNS))
            write_rows(stream, (_without_empty(with_verdict(it, short_row(it))) for it in entries), short, format_name)
            return
        names = [column.name for column in columns]
        names += sorted({name for entry in {it.group_id: it for it in entries}.values() for name in raw_names(entry)})
        rows = (with_verdict(entry, rebalance_row(entry)) for entry in entries)
        if format_name == "parquet":
            import pyarrow.parquet as pq

            from offsets_log.columnar.materialize.arrow import table_of_rows

            texts = {column.name for column in columns if column.sql_type == "json"}
            flat = [{name: to_json(value) if name in texts else value for name, value in row.items()} for row in rows]
            pq.write_table(table_of_rows(flat, columns), stream, compression="zstd")
        elif verified is not None:
            write_rows(stream, rows, names, format_name)
        else:
            _write_alike(stream, entries, TEXT_FORMATS[format_name](names))


def _write_alike(stream: IO[bytes], entries: Sequence[Generation], form: TextFormat) -> None:
    lines = AlikeLines(form.line)
    with text_around(stream, form) as write:
        for entry in entries:
            write(lines.of(kind_of_row(entry), partial(rebalance_row, entry), numbers_of_row(entry)))


def _without_empty(row: Row) -> Row:
    return {name: None if value == [] else value for name, value in row.items()}
