"""Writing what the share coordinator's log in the copy holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cli.options import Output
    from offsets_log.rows.tables import Column, Row
    from offsets_log.session.session import Session


def write_columns(session: Session, output: Output, rows: list[Row], columns: Sequence[Column]) -> None:
    """Write rows in the format that is asked for."""
    from cli.output import chosen_format, destination, write_rows

    if chosen_format(output) == "parquet":
        from cli.parquet import write_table_of

        write_table_of(session, output, rows, columns)
        return
    with destination(output, session.inputs.files) as stream:
        write_rows(stream, rows, [column.name for column in columns], chosen_format(output))
