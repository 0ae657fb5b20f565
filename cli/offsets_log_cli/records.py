"""``offsets-log records``: every record."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

import click

from offsets_log.words import counted
from offsets_log_cli.help_page import CHOOSE, OUTPUT, SHOW, Command, option
from offsets_log_cli.options import FORMATS, Output, ReadOptions, output_option, reading_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from offsets_log.questions.decoded import Decoded
    from offsets_log.session.session import Session

TABLE_COLUMNS = (
    "offsets_partition", "record_offset", "timestamp_ms", "producer_id", "name", "key", "value", "control", "error",
)  # fmt: skip
"""Columns of tables; the other formats have all."""
FLAT = ("parquet", "arrow")
"""Formats with the flat columns of `questions.records`."""


class _Command(Command):
    """It takes no paths where a key or a value is given instead."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        is_one = any(arg.startswith(("--key-hex", "--value-hex")) for arg in args)
        for param in self.params:
            if param.name == "paths":
                param.required = not is_one
        return super().parse_args(ctx, args)


@click.command(
    "records",
    cls=_Command,
    epilog="Examples: offsets-log records /var/lib/kafka/data/__consumer_offsets-3 -g billing · "
    "offsets-log records 00000000000000000000.log --as dump-log",
)
@reading_options
@option(
    "--expand",
    under=SHOW,
    is_flag=True,
    help="Decode what clients have put in, too. Subscriptions, assignments, user data and known commit metadata.",
)
@option(
    "--internal-topic",
    under=CHOOSE,
    metavar="TOPIC",
    help="Decode this topic of a data directory. Such as __transaction_state or "
    "mm2-offset-syncs.b.internal. Not needed if you give the topic's own directories.",
)
@option("--key-hex", under=CHOOSE, metavar="HEX", help="Decode this key. Hexadecimal digits, instead of files.")
@option(
    "--value-hex", under=CHOOSE, metavar="HEX", help="Decode this value. Of the key that --key-hex gives, or alone."
)
@option("--as", "as_", under=OUTPUT, type=click.Choice(["dump-log"]), help="Print the lines of kafka-dump-log instead.")
@output_option(*FORMATS)
def command(
    reading: ReadOptions,
    output: Output,
    expand: bool,
    internal_topic: str | None,
    as_: str | None,
    key_hex: str | None,
    value_hex: str | None,
) -> None:
    """Show every record, in log order: keys and values in Kafka's own JSON. `decode` is the same command.

    A record that cannot be decoded is shown with its raw bytes and an error. With -g or -t only records of those groups
    and topics are shown; transaction markers belong to no group. -o parquet writes flat columns into the new directory
    that --to names, -o arrow the same as a stream.

    It also decodes __transaction_state, __share_group_state and MirrorMaker 2's topics (offset syncs, checkpoints,
    heartbeats): give their directories, or a data directory and --internal-topic.
    """
    from offsets_log.disk.state_topics import topic_of
    from offsets_log.questions.records import NEEDS, Records
    from offsets_log_cli.session import open_session

    _check_usage(output, expand, as_)
    if _has_written_one(reading, output, key_hex, value_hex):
        return
    topic = internal_topic or topic_of(reading.paths)
    _check_usage_of_topic(reading, output, topic, as_)
    is_flat = output.output in FLAT
    with open_session(reading, output, needs=NEEDS if is_flat else set[str](), internal_topic=topic) as session:
        if output.output == "parquet" and output.to is not None:
            from offsets_log_cli.parquet import write_events

            write_events(session, output.to)
        elif is_flat:
            from offsets_log_cli.answers import write_answer

            write_answer(session, output, Records(session))
        else:
            _write_decoded(session, output, expand=expand, is_dump_log=as_ is not None)


def _write_decoded(session: Session, output: Output, *, expand: bool, is_dump_log: bool) -> None:
    """Write keys and values as Kafka's JSON, or the lines of kafka-dump-log."""
    from offsets_log.questions.decoded import Decoded
    from offsets_log_cli.output import asked_columns, destination, text_around, text_format, write_rows

    decoded = Decoded(session, expand=expand)
    names = [column.name for column in decoded.columns]
    form, shown = text_format(output, names), asked_columns(output, names) if output.columns else TABLE_COLUMNS
    with destination(output, session.inputs.files) as stream:
        if is_dump_log:
            for piece in decoded.dump_log():
                stream.write(piece)
        elif form is not None:
            with text_around(stream, form) as write:
                for piece in decoded.lines(form.line):
                    write(piece)
        elif decoded.is_bulk:
            _write_table(decoded, stream, output, shown)
        else:
            write_rows(stream, decoded.rows(), shown, output, needed=decoded.needed)
    decoded.tell()


def _write_table(decoded: Decoded, stream: IO[bytes], output: Output, shown: Sequence[str]) -> None:
    """Write all records as a table for people, of their lines."""
    from offsets_log_cli.output import view_of
    from offsets_log_cli.text_table import FieldReader, TextTable, fields_of

    sql_types = {column.name: column.sql_type for column in decoded.columns}
    view = view_of(output, decoded.needed)
    with TextTable(shown, view) as table:
        reader = FieldReader(table, [sql_types.get(name, "string") for name in shown])
        for piece in decoded.lines(fields_of(shown, view)):
            reader.add(piece)
        table.write(stream)


def _has_written_one(reading: ReadOptions, output: Output, key_hex: str | None, value_hex: str | None) -> bool:
    """Write what a key and a value say that are given as hexadecimal digits; return whether any was."""
    if key_hex is None and value_hex is None:
        return False
    from offsets_log.errors import OffsetsLogError
    from offsets_log.rows.one_record import COLUMNS, bytes_of_hex, rows_of
    from offsets_log_cli.output import destination, write_rows
    from offsets_log_cli.terminal import fail, say

    if reading.paths or output.output in FLAT:
        raise click.UsageError(f"--key-hex and --value-hex exclude paths and -o {' and -o '.join(FLAT)}")
    try:
        rows = rows_of(*(None if text is None else bytes_of_hex(text) for text in (key_hex, value_hex)))
    except OffsetsLogError as error:
        fail(error)
    with destination(output) as stream:
        write_rows(stream, rows, COLUMNS, output)
    if key_hex is None:
        say(f"a value alone does not tell its type: {counted(len(rows), 'type fits', 'types fit')} these bytes")
    return True


def _check_usage(output: Output, expand: bool, as_: str | None) -> None:
    if as_ is not None and output.output is not None:
        raise click.UsageError("--as and --output exclude each other")
    if output.output == "parquet" and output.to in (None, "-"):
        raise click.UsageError("-o parquet makes several files: give --to DIRECTORY")
    if output.output in FLAT and expand:
        raise click.UsageError(f"-o {output.output} has no place for what --expand shows")


def _check_usage_of_topic(reading: ReadOptions, output: Output, topic: str | None, as_: str | None) -> None:
    """Raise UsageError for a topic that cannot be decoded, and for what applies to ``__consumer_offsets`` only."""
    from offsets_log.messages.mirror_maker import mirror_maker_topic
    from offsets_log.messages.state_topics import is_decoded_topic

    if topic is None:
        return
    if not is_decoded_topic(topic):
        raise click.UsageError(
            f"{topic} is not among the topics that --internal-topic decodes: __transaction_state, "
            "__share_group_state, mm2-offset-syncs.*.internal, *.checkpoints.internal, heartbeats"
        )
    if as_ is not None and mirror_maker_topic(topic) is not None:
        raise click.UsageError(f"--as {as_} has no form for {topic}: kafka-dump-log does not decode it")
    if output.output in FLAT:
        raise click.UsageError(f"-o {output.output} has no columns for {topic}")
    if reading.group or reading.topic:
        raise click.UsageError(f"-g and -t are for __consumer_offsets, not for {topic}: leave them out")
    if reading.input_format not in (None, "segments") or reading.as_partition is not None:
        raise click.UsageError(f"{topic} is read from segment files and their directories only")
