"""``offsets-log decode``: every record."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import IO, TYPE_CHECKING

import click

from cli.options import Output, ReadOptions, output_option, reading_options
from offsets_log.kafka_releases import NEWEST
from offsets_log.words import counted

if TYPE_CHECKING:
    from offsets_log.columnar.sinks.marks import Form
    from offsets_log.events import Event, LogEvent
    from offsets_log.log_format.partition_log import PartitionLog
    from offsets_log.rows.tables import Row
    from offsets_log.session.session import Session

    Write = Callable[[bytes | memoryview], object]

TABLE_COLUMNS = (
    "offsets_partition", "record_offset", "timestamp_ms", "producer_id", "name", "key", "value", "control", "error",
)  # fmt: skip
"""Columns that fit a terminal; the other formats have all."""
NEEDED_IN_PARQUET = frozenset({"record_offset", "timestamp_ms", "producer_id", "value_version"})
"""Columns that are never null there, or that the raw bytes beside them depend on."""


class _Command(click.Command):
    """It takes no paths where a key or a value is given instead."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        is_one = any(arg.startswith(("--key-hex", "--value-hex")) for arg in args)
        for param in self.params:
            if param.name == "paths":
                param.required = not is_one
        return super().parse_args(ctx, args)


@click.command(
    "decode",
    cls=_Command,
    epilog="Examples: offsets-log decode /var/lib/kafka/data/__consumer_offsets-3 -g billing · "
    "offsets-log decode 00000000000000000000.log --as dump-log",
)
@reading_options
@click.option(
    "--expand", is_flag=True, help="Decode subscriptions, assignments, user data and known commit metadata too."
)
@click.option(
    "--internal-topic",
    metavar="TOPIC",
    help="Decode this topic of a data directory instead, such as __transaction_state or "
    "mm2-offset-syncs.b.internal. Not needed if you give the topic's own directories.",
)
@click.option("--key-hex", metavar="HEX", help="Decode this key instead of files: hexadecimal digits.")
@click.option("--value-hex", metavar="HEX", help="Decode this value, of the key that --key-hex gives or alone.")
@click.option("--as", "as_", type=click.Choice(["dump-log"]), help="Print the lines of kafka-dump-log instead.")
@output_option("table", "jsonl", "json", "csv", "parquet")
def command(
    reading: ReadOptions,
    output: Output,
    expand: bool,
    internal_topic: str | None,
    as_: str | None,
    key_hex: str | None,
    value_hex: str | None,
) -> None:
    """Show every record, in log order: keys and values in Kafka's own JSON.

    A record that cannot be decoded is shown with its raw bytes and an error. With -g or -t only records of those groups
    and topics are shown; transaction markers belong to no group. -o parquet writes flat columns into the new directory
    that --to names.

    It also decodes __transaction_state, __share_group_state and MirrorMaker 2's topics (offset syncs, checkpoints,
    heartbeats): give their directories, or a data directory and --internal-topic.
    """
    from cli.output import TEXT_FORMATS, chosen_format, destination, text_around, write_rows
    from cli.session import open_session
    from offsets_log.disk.state_topics import topic_of
    from offsets_log.rows.dump_log import iter_lines
    from offsets_log.rows.tables import DECODE_COLUMNS

    _check_usage(output, expand, as_)
    if _has_written_one(reading, output, key_hex, value_hex):
        return
    topic = internal_topic or topic_of(reading.paths)
    _check_usage_of_topic(reading, output, topic, as_)
    needs = NEEDED_IN_PARQUET if output.output == "parquet" else set[str]()
    with open_session(reading, output, needs=needs, internal_topic=topic) as session:
        account = _Account(session, is_dump_log=as_ is not None)
        if output.output == "parquet" and output.to is not None:
            from cli.parquet import write_events

            write_events(session, output.to, account.watch)
            return
        with destination(output, session.inputs.files) as stream:
            is_bulk = session.engine.is_bulk_for("events.kernels.fill") and not reading.strict
            if as_ is not None and is_bulk:
                from offsets_log.columnar.sinks.forms import dump_log_form

                account.records = _write_in_bulk(
                    session, stream.write, dump_log_form(session.inputs.locate, account.saw)
                )
            elif as_ is not None:
                for log in session.inputs.logs:
                    for line in iter_lines(account.watch(log)):
                        stream.write(line.encode() + b"\n")
            else:
                format_name = chosen_format(output)
                names = TABLE_COLUMNS if format_name == "table" else [column.name for column in DECODE_COLUMNS]
                if not is_bulk:
                    write_rows(stream, account.rows(expand), names, format_name)
                elif format_name in TEXT_FORMATS:
                    form = TEXT_FORMATS[format_name](names)
                    with text_around(stream, form) as write:
                        account.records = _write_rows_in_bulk(session, write, form.line, expand=expand)
                else:
                    account.records = _write_table_in_bulk(session, stream, expand=expand)
        for words in account.untold():
            session.account.say(words)
        told = f"{counted(account.records, 'record')}, {session.inputs.partitions_read}"
        session.account.finish(told, found=account.records)


def _has_written_one(reading: ReadOptions, output: Output, key_hex: str | None, value_hex: str | None) -> bool:
    """Write what a key and a value say that are given as hexadecimal digits; return whether any was."""
    if key_hex is None and value_hex is None:
        return False
    from cli.output import chosen_format, destination, write_rows
    from cli.terminal import fail, say
    from offsets_log.errors import OffsetsLogError
    from offsets_log.rows.one_record import COLUMNS, bytes_of_hex, rows_of

    if reading.paths or output.output == "parquet":
        raise click.UsageError("--key-hex and --value-hex exclude paths and -o parquet")
    try:
        rows = rows_of(*(None if text is None else bytes_of_hex(text) for text in (key_hex, value_hex)))
    except OffsetsLogError as error:
        fail(error)
    with destination(output) as stream:
        write_rows(stream, rows, COLUMNS, chosen_format(output))
    if key_hex is None:
        say(f"a value alone does not tell its type: {counted(len(rows), 'type fits', 'types fit')} these bytes")
    return True


def _check_usage(output: Output, expand: bool, as_: str | None) -> None:
    if as_ is not None and output.output is not None:
        raise click.UsageError("--as and --output exclude each other")
    if output.output == "parquet" and output.to in (None, "-"):
        raise click.UsageError("-o parquet makes several files: give --to DIRECTORY")
    if output.output == "parquet" and expand:
        raise click.UsageError("-o parquet has no place for what --expand shows")


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
    if output.output == "parquet":
        raise click.UsageError(f"-o parquet has no columns for {topic}")
    if reading.group or reading.topic:
        raise click.UsageError(f"-g and -t are for __consumer_offsets, not for {topic}: leave them out")
    if reading.input_format not in (None, "segments") or reading.as_partition is not None:
        raise click.UsageError(f"{topic} is read from segment files and their directories only")


PART_BYTES = 1 << 22
"""Bytes of log in a part; its text is about four times as long, and waits for the parts before it."""


def _write_rows_in_bulk(
    session: Session, write: Callable[[bytes | memoryview], object], line: Callable[[Row], bytes], *, expand: bool
) -> int:
    """Write the lines of all records that are shown as rows; return how many there are."""
    from offsets_log.columnar.sinks.forms import form_of_rows

    return _write_in_bulk(session, write, form_of_rows(line, expand=expand))


def _write_table_in_bulk(session: Session, stream: IO[bytes], *, expand: bool) -> int:
    """Write all records that are shown as a table; return how many there are."""
    from cli.text_table import FieldReader, TextTable, fields_of
    from offsets_log.rows.tables import DECODE_COLUMNS

    sql_types = {column.name: column.sql_type for column in DECODE_COLUMNS}
    with TextTable(TABLE_COLUMNS) as table:
        reader = FieldReader(table, [sql_types[name] for name in TABLE_COLUMNS])
        count = _write_rows_in_bulk(session, reader.add, fields_of(TABLE_COLUMNS), expand=expand)
        table.write(stream)
    return count


def _write_in_bulk(session: Session, write: Write, form: Form) -> int:
    """Write the text of all records that are shown; return how many there are."""
    from cli.text_parts import Parts
    from offsets_log.columnar.events.export import Destination
    from offsets_log.columnar.sinks.lines import Press

    with Parts(write) as parts:
        to = Destination(parts.keep, parts.release, PART_BYTES)
        return session.engine.export_in_bulk(
            to, is_filtered=True, chunk=Press(form).chunk, also=("sinks.kernels.write_lines",)
        )


class _Account:
    """The events of all partitions; reports damage and counts records on the way."""

    def __init__(self, session: Session, *, is_dump_log: bool) -> None:
        self.session = session
        self.is_dump_log = is_dump_log
        self.records = 0
        self.has_unknown_tags = False

    def watch(self, log: PartitionLog) -> Iterator[LogEvent]:
        """Pass on the events that filters let through."""
        from offsets_log.errors import Damage
        from offsets_log.events import Event

        for event in self._events(log):
            match event:
                case Damage():
                    self.session.account.on_damage(event)
                case Event():
                    if event.damage is not None:
                        self.session.account.on_damage(event.damage)
                    if not self._is_kept(event):
                        continue
                    self.records += 1
                    self.saw(event)
            yield event

    def saw(self, event: Event) -> None:
        """Note a record that is shown, but by kernels."""
        if event.decoded is not None and event.decoded.unknown_tags():
            self.has_unknown_tags = True

    def untold(self) -> Iterator[str]:
        """Yield a sentence if the form has no place for something that records hold."""
        if self.is_dump_log and self.has_unknown_tags:
            yield (
                f"some records have tagged fields that no release up to {NEWEST.name} has: these lines leave them out, "
                "decode -o jsonl shows them"
            )

    def _events(self, log: PartitionLog) -> Iterator[LogEvent]:
        session, reading = self.session, self.session.inputs.scope
        if not reading.group and not reading.topic:
            return session.engine.events(log)
        from offsets_log.columnar.choose.selection import Selection

        topic = session.inputs.shows_topic if reading.topic else None
        return session.engine.selected(log, Selection(session.inputs.shows_group, topic, with_batches=self.is_dump_log))

    def _is_kept(self, event: Event) -> bool:
        session, reading, decoded = self.session, self.session.inputs.scope, event.decoded
        if not reading.group and not reading.topic:
            return True
        if decoded is None or not session.inputs.shows_group(decoded.group):
            return False
        return not reading.topic or (decoded.is_offset_commit and session.inputs.shows_topic(decoded.key["topic"]))

    def rows(self, expand: bool) -> Iterator[Row]:
        """Yield one row for each record."""
        from offsets_log.events import Event
        from offsets_log.rows.tables import decoded_row

        for log in self.session.inputs.logs:
            for event in self.watch(log):
                if isinstance(event, Event):
                    yield decoded_row(event, expand=expand)
