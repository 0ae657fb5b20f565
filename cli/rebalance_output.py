"""The rows of ``rebalances`` in its formats: short ones for people, complete ones for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cli.options import Output
from cli.output import destination, write_rows
from cli.session import Session
from offsets_log.rebalance.generation import Generation
from offsets_log.rebalance.rows import (
    REBALANCE_COLUMNS,
    TABLE_COLUMNS,
    VERIFIED_COLUMNS,
    rebalance_row,
    short_row,
    verified_row,
)
from offsets_log.rebalance.verify import Verification
from offsets_log.rows.tables import Row, to_json


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
    if format_name == "table":
        rows = [_without_empty(with_verdict(entry, short_row(entry))) for entry in entries]
        names = (*TABLE_COLUMNS, *(column.name for column in VERIFIED_COLUMNS))
    else:
        rows = [with_verdict(entry, rebalance_row(entry)) for entry in entries]
        names = tuple(column.name for column in columns)
    names += tuple(sorted(set().union(*rows) - set(names)))  # raw bytes of malformed names
    with destination(output, session.inputs.files) as stream:
        if format_name != "parquet":
            write_rows(stream, rows, names, format_name)
            return
        import pyarrow.parquet as pq

        from offsets_log.columnar.materialize.arrow import table_of_rows

        texts = {column.name for column in columns if column.sql_type == "json"}
        flat = [{name: to_json(value) if name in texts else value for name, value in row.items()} for row in rows]
        pq.write_table(table_of_rows(flat, columns), stream, compression="zstd")


def _without_empty(row: Row) -> Row:
    return {name: None if value == [] else value for name, value in row.items()}
