"""``offsets-log info``: one page about what is there."""

from __future__ import annotations

import click

from cli.options import PROFILE, Output, ReadOptions, output_option, reading_options
from offsets_log.words import counted


@click.command("info", epilog="Example: offsets-log info /var/lib/kafka/data")
@reading_options
@PROFILE
@output_option("table", "jsonl", "json", "csv")
def command(reading: ReadOptions, output: Output, profile: str) -> None:
    """One page: partitions and segments found, spans of offsets and time, gaps, damage, kinds of records and groups.

    As JSON Lines: one object for each offsets partition.
    """
    from cli.info_page import info_row, write_page
    from cli.output import chosen_format, destination, write_rows
    from cli.session import open_session
    from offsets_log.replay.profile import PROFILES

    with open_session(reading, output) as session:
        rows = [info_row(log, found, held) for log, found, held in session.engine.survey_all(PROFILES[profile])]
        with destination(output, session.inputs.files) as stream:
            format_name = chosen_format(output)
            if format_name == "table":
                write_page(stream, rows, session.inputs.absent)
            else:
                write_rows(stream, rows, list(rows[0]) if rows else [], format_name)
        session.account.finish(
            f"{session.inputs.partitions_read}, {counted(sum(row['records'] for row in rows), 'record')}"
        )
