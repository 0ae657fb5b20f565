"""Rows as a table for people, or JSON Lines, JSON and CSV for programs; to standard output or whole into a file."""

from __future__ import annotations

import csv
import errno
import io
import os
import select
import shutil
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import IO, TYPE_CHECKING, Any

import click

from offsets_log.disk.writer import atomic_output
from offsets_log.errors import OutputError
from offsets_log.rows.needed import Needed
from offsets_log.rows.tables import Row, json_bytes, to_json
from offsets_log_cli import colours
from offsets_log_cli.options import Output, ReadOptions
from offsets_log_cli.pager import Pager, pager_command
from offsets_log_cli.terminal import hide_bars

if TYPE_CHECKING:
    from offsets_log_cli.text_table import View

CHUNK = 1 << 16
RAW_SUFFIX = "_base64"
"""How columns end that only some rows have, of raw bytes of texts that are not UTF-8."""


def chosen_format(output: Output) -> str:
    """Return the format of -o; by default a table on a terminal, and JSON Lines elsewhere."""
    if output.output == "parquet" and output.to in (None, "-"):
        raise click.UsageError("-o parquet needs a file to write: give --to FILE")
    if output.output == "arrow" and output.to in (None, "-") and sys.stdout.isatty():
        raise click.UsageError("-o arrow is for programs: give --to FILE, or a pipe")
    if output.output is not None:
        return output.output
    return "table" if output.to is None and sys.stdout.isatty() else "jsonl"


def is_on_terminal(output: Output) -> bool:
    """Return whether the answer is a table, or a page of them, that goes to a terminal."""
    return output.to in (None, "-") and sys.stdout.isatty() and chosen_format(output) == "table"


def is_brief(reading: ReadOptions, output: Output) -> bool:
    """Return whether people get a summary first: on a terminal, unless they ask for more."""
    return is_on_terminal(output) and not (reading.verbose or output.wide or output.columns)


def view_of(output: Output, needed: Needed | None = None, seldom: Collection[str] = ()) -> View:
    """Return what of tables is shown; on a terminal lines are not longer than it is wide, unless --wide says so.

    Args:
        needed: in a pipe and in a file, columns stand as they are declared all the same.
        seldom: columns that are left out of tables, unless --wide or --columns says otherwise.
    """
    from offsets_log_cli.text_table import View

    hidden = () if output.wide or output.columns else seldom
    if not is_on_terminal(output):
        return View(seldom=hidden, is_whole=output.wide)
    width = None if output.wide else shutil.get_terminal_size().columns
    order = None if output.columns else needed
    return View(
        width,
        order or Needed(),
        hidden,
        has_all=output.columns is not None,
        is_whole=output.wide,
        is_coloured=colours.are_shown(sys.stdout),
    )


def asked_columns(output: Output, columns: Sequence[str]) -> list[str]:
    """Return the names of --columns, which may be given as headings of tables have them; without it all.

    Raises:
        UsageError: one of them is no column.
    """
    if not output.columns:
        return [*columns]
    named = ("_".join(name.split()) for name in output.columns.split(","))
    asked = [f"{name}_ms" if name not in columns and f"{name}_ms" in columns else name for name in named]
    for name in asked:
        if name.removesuffix(RAW_SUFFIX) not in columns and name not in columns:
            near = get_close_matches(name, columns)
            hint = f"Did you mean {' or '.join(near)}?" if near else f"There are {', '.join(columns)}."
            raise click.UsageError(f"--columns: there is no column {name!r}. {hint}")
    return asked


@contextmanager
def destination(output: Output, inputs: Sequence[str] = ()) -> Iterator[IO[bytes]]:
    """Open standard output, on a terminal a pager, or the file of --to, which appears whole or not at all."""
    if output.to is not None and output.to != "-":
        with atomic_output(output.to, inputs=inputs) as file:
            yield file
        return
    if is_on_terminal(output) and not output.no_pager and (command := pager_command()):
        with closing(io.BufferedWriter(Pager(command, is_wide=output.wide), CHUNK)) as paged:
            yield paged
        return
    with quiet_pipe():
        stream = io.BufferedWriter(_Unclosed(sys.stdout.buffer), CHUNK)
        yield stream
        stream.flush()
        sys.stdout.buffer.flush()


class _Unclosed(io.RawIOBase):
    """Standard output behind a buffer of its own, which stays open when that buffer is closed."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.stream = stream

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        hide_bars()
        return self.stream.write(data)


@contextmanager
def quiet_pipe() -> Iterator[None]:
    """End silently when the reader of a pipe is gone, as with `head`; a full disk is one error.

    Raises:
        OutputError: standard output cannot be written.
    """
    try:
        yield
    except BrokenPipeError:
        _forget_what_is_buffered()
        raise SystemExit(0) from None
    except OSError as error:
        _forget_what_is_buffered()
        raise OutputError(f"standard output cannot be written: {error.strerror}") from None


def ensure_read() -> None:
    """Raise BrokenPipeError if standard output is a pipe whose reader is gone, which a write would notice."""
    if not hasattr(select, "poll"):
        return
    poll = select.poll()
    try:
        poll.register(sys.stdout.fileno(), 0)
    except (OSError, ValueError):  # no file, as in tests
        return
    if any(event & select.POLLERR for _, event in poll.poll(0)):
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def _forget_what_is_buffered() -> None:
    """Drop what could not be written, so that it is not tried again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def write_rows(
    stream: IO[bytes],
    rows: Iterable[Row],
    columns: Sequence[str],
    output: Output,
    *,
    needed: Needed | None = None,
    seldom: Collection[str] = (),
) -> None:
    """Write rows in one of the formats; columns matter for tables and CSV, where a row may lack some.

    Args:
        needed, seldom: as of `view_of`.
    """
    if (form := text_format(output, columns)) is not None:
        with text_around(stream, form) as write:
            for row in rows:
                write(form.line(row))
    else:
        from offsets_log_cli.text_table import TextTable

        with TextTable(asked_columns(output, columns), view_of(output, needed, seldom)) as table:
            table.add(rows)
            table.write(stream)


@dataclass(frozen=True, slots=True)
class TextFormat:
    """A format that writes each row as a text of its own.

    Attributes:
        line: makes the text of a row.
        begin: the text before all rows.
        passed_over: how many bytes of the first row are left out.
        end: the text after all rows.
        end_of_none: the text after no rows at all.
    """

    line: Callable[[Row], bytes]
    begin: bytes = b""
    passed_over: int = 0
    end: bytes = b""
    end_of_none: bytes = b""

    def with_only(self, names: Sequence[str]) -> TextFormat:
        """Return the format for rows of which these columns alone are written."""
        return replace(self, line=lambda row: self.line({name: row.get(name) for name in names}))


def _jsonl(columns: Sequence[str]) -> TextFormat:
    return TextFormat(lambda row: json_bytes(row) + b"\n")


def _json(columns: Sequence[str]) -> TextFormat:
    return TextFormat(lambda row: b",\n" + json_bytes(row), begin=b"[", passed_over=1, end=b"\n]\n", end_of_none=b"]\n")


def _csv(columns: Sequence[str]) -> TextFormat:
    """Write CSV with RFC 4180 quoting, `\n` line ends and a header line; null is empty, structures are JSON."""

    def record(cells: Iterable[Any]) -> bytes:
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator="\n").writerow(cells)
        return text.getvalue().encode()

    return TextFormat(lambda row: record(_csv_cell(row.get(column)) for column in columns), begin=record(columns))


TEXT_FORMATS: dict[str, Callable[[Sequence[str]], TextFormat]] = {"jsonl": _jsonl, "json": _json, "csv": _csv}
"""Formats that write row after row → makes them for the columns of CSV."""


def text_format(output: Output, columns: Sequence[str]) -> TextFormat | None:
    """Return the format of -o, with the columns of --columns; None if it does not write row after row."""
    make, names = TEXT_FORMATS.get(chosen_format(output)), asked_columns(output, columns)
    if make is None:
        return None
    return make(names).with_only(names) if output.columns else make(names)


@contextmanager
def text_around(stream: IO[bytes], form: TextFormat) -> Iterator[Callable[[bytes | memoryview], None]]:
    """Yield a function that writes the text of rows, one or many at a time; write what the format has around them."""
    left_out, is_empty = form.passed_over, True

    def write(text: bytes | memoryview) -> None:
        nonlocal left_out, is_empty
        if len(text):
            stream.write(text[left_out:])
            left_out, is_empty = 0, False

    stream.write(form.begin)
    yield write
    stream.write(form.end_of_none if is_empty else form.end)


def _csv_cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return to_json(value) if isinstance(value, dict | list) else value
