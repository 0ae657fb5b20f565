"""``offsets-log explain``: a rule of Kafka by its id, a record type's layout by its number or name."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Sequence
from shutil import get_terminal_size
from typing import IO, TYPE_CHECKING

import click

from offsets_log_cli.help_page import OUTPUT, Command, option
from offsets_log_cli.options import Output, output_option

if TYPE_CHECKING:
    from offsets_log.questions.explained import RecordSubject, RuleSubject
    from offsets_log.rows.tables import Row

RULE_COLUMNS = ("id", "holds_for", "says")
TYPE_COLUMNS = ("record_type", "record", "key", "value_versions")
FIELD_COLUMNS = ("field", "type", "nullable", "tag", "default", "versions", "since")
MOST_WIDTH, LEAST_WIDTH, MARGIN = 110, 40, 17
"""How wide paragraphs are: as wide as a terminal within these bounds."""


@click.command(
    "explain",
    cls=Command,
    epilog="Examples: offsets-log explain B-9 J-15 -o table · offsets-log explain offset-commit -o table · "
    "offsets-log explain -o jsonl",
)
@click.argument("names", metavar="[RULE|RECORD...]", nargs=-1)
@option(
    "-v",
    "--verbose",
    under=OUTPUT,
    is_flag=True,
    help="Say where a rule stands in Kafka's source. And here, with its test; the other formats always do.",
)
@output_option("table", "jsonl", "json", "csv")
def command(output: Output, names: tuple[str, ...], verbose: bool) -> None:
    """Explain a rule that rows name, such as "rule":"B-9": what it says, what it means and what to do; or a record's
    layout.

    RECORD is the number of a record type or Kafka's name for it (2, group-metadata); its fields are shown version by
    version. Without arguments all rules and record types are listed.
    """
    from offsets_log.errors import AskedError, OffsetsLogError
    from offsets_log.questions.explained import COLUMNS, everything, subject
    from offsets_log_cli.output import chosen_format, destination, write_rows
    from offsets_log_cli.terminal import fail

    try:
        subjects = [subject(name) for name in names] if names else list(everything())
    except AskedError as error:
        raise click.BadParameter(error.problem, param_hint="RULE|RECORD") from None
    format_name = chosen_format(output)
    try:
        with destination(output) as stream:
            if format_name != "table" or output.columns:
                write_rows(stream, (row for subject in subjects for row in subject.rows()), COLUMNS, output)
            elif names:
                stream.write("\n".join(_page(subject, output, verbose=verbose) for subject in subjects).encode())
            else:
                _write_list(stream, subjects, output)
    except OffsetsLogError as error:
        fail(error)


def _page(subject: RuleSubject | RecordSubject, output: Output, *, verbose: bool) -> str:
    """Return what there is to be said for a reader."""
    from io import BytesIO

    from offsets_log.questions.explained import RuleSubject
    from offsets_log_cli.output import write_rows

    if isinstance(subject, RuleSubject):
        return "".join(_paragraph(title, text) for title, text in subject.paragraphs(with_sources=verbose).items())
    text = BytesIO()
    text.write(f"{subject.title}\n".encode())
    for title, rows in subject.sections():
        text.write(f"\n{title}\n".encode())
        write_rows(text, rows, FIELD_COLUMNS, output)
    return text.getvalue().decode()


def _paragraph(title: str, text: str) -> str:
    width = min(MOST_WIDTH, max(LEAST_WIDTH, get_terminal_size().columns)) if sys.stdout.isatty() else MOST_WIDTH
    first, others = title.ljust(MARGIN), " " * MARGIN
    return textwrap.fill(text, width, initial_indent=first, subsequent_indent=others, break_long_words=False) + "\n"


def _write_list(stream: IO[bytes], subjects: Sequence[RuleSubject | RecordSubject], output: Output) -> None:
    from offsets_log.questions.explained import RecordSubject, RuleSubject
    from offsets_log_cli.output import write_rows

    rules: Iterable[Row] = (row for subject in subjects if isinstance(subject, RuleSubject) for row in subject.rows())
    write_rows(stream, rules, RULE_COLUMNS, output)
    stream.write(b"\n")
    types = (subject.summary() for subject in subjects if isinstance(subject, RecordSubject))
    write_rows(stream, types, TYPE_COLUMNS, output)
