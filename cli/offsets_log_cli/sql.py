"""``offsets-log sql``: questions of one's own, in SQL."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Any

import click

from offsets_log_cli.help_page import CHOOSE, Command, option
from offsets_log_cli.options import FORMATS, Output, ReadOptions, output_option, reading_options

if TYPE_CHECKING:
    from offsets_log.copy import Copy

PROMPT = "offsets-log> "
MORE = "        ...> "
END = ";"


def _with_query(function: Callable[..., None]) -> Callable[..., None]:
    """Return a command to which the last argument comes as the query, before anything looks at paths."""

    @functools.wraps(function)
    def with_query(*, paths: tuple[str, ...], file: IO[str] | None, **values: Any) -> None:
        query = None if file is None else file.read()
        if query is None and len(paths) > 1:
            *others, query = paths
            paths = tuple(others)
        function(paths=paths, query=query, **values)

    return with_query


@click.command(
    "sql",
    cls=Command,
    epilog="Examples: offsets-log sql /var/lib/kafka/data 'select topic, count(*) from offsets group by 1' · "
    "offsets-log sql backup.tar.gz 'from offsets where doubtful is not null' -o csv",
)
@_with_query
@reading_options
@option(
    "-f",
    "--file",
    under=CHOOSE,
    metavar="FILE",
    type=click.File(),
    help="The query is in this file; - for standard input.",
)
@output_option(*FORMATS)
def command(reading: ReadOptions, output: Output, query: str | None) -> None:
    """Answer a query in SQL, the last argument; without one it is asked for on a terminal.

    DuckDB answers it (pip install 'offsets-log[sql]'). Each table is a command's answer, with its columns; only the
    tables that the query names are read. A column X_ms holds milliseconds, and X beside it is a timestamp.
    """
    from offsets_log.copy import Copy
    from offsets_log.errors import OffsetsLogError
    from offsets_log_cli.terminal import fail

    is_complete = True
    try:
        with Copy(reading) as copy:
            if query is not None:
                is_complete = _answer(copy, query, output, is_quiet=reading.quiet)
            elif not sys.stdin.isatty():
                is_complete = _answer(copy, sys.stdin.read(), output, is_quiet=reading.quiet)
            else:
                _ask(copy, output, is_quiet=reading.quiet)
    except OffsetsLogError as error:
        fail(error)
    sys.exit(0 if is_complete else 3)


def _answer(copy: Copy, query: str, output: Output, *, is_quiet: bool) -> bool:
    """Write the answer, and what is to be known of it; return whether all that it needs could be read."""
    from offsets_log_cli.answers import write_table
    from offsets_log_cli.terminal import say

    table = copy.sql(query)
    write_table(output, table)
    for words in () if is_quiet else table.notes:
        say(words)
    return table.is_complete


def _ask(copy: Copy, output: Output, *, is_quiet: bool) -> None:
    """Answer queries as they are typed, each of which ends with a semicolon."""
    from contextlib import suppress

    from offsets_log.errors import OffsetsLogError
    from offsets_log_cli.terminal import say

    with suppress(ImportError):
        import readline  # noqa: F401  (lines can be edited)
    typed = ""
    with suppress(EOFError):
        while True:
            typed += input(MORE if typed else PROMPT) + "\n"
            if typed.strip() and typed.rstrip().endswith(END):
                try:
                    _answer(copy, typed, output, is_quiet=is_quiet)
                except OffsetsLogError as error:
                    say(str(error))
                typed = ""
