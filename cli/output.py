"""Rows as a table for people, or JSON Lines, JSON and CSV for programs; to standard output or whole into a file."""

from __future__ import annotations

import csv
import io
import os
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import IO, Any

import click

from cli.options import Output
from offsets_log.disk.writer import atomic_output
from offsets_log.errors import OutputError
from offsets_log.tables import Row, to_json

CHUNK = 1 << 16
TIME_SUFFIXES = ("timestamp_ms", "_at_ms")
"""Columns that hold a moment and not a duration."""
MAX_TABLE_JSON = 120
MAX_TABLE_TEXT = 240
"""Structures and texts are cut there in a table, which is for eyes; the other formats have them whole."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def chosen_format(output: Output) -> str:
    """What -o says; else a table on a terminal and JSON Lines elsewhere."""
    if output.output == "parquet" and output.to in (None, "-"):
        raise click.UsageError("-o parquet is nothing to read on the way: give --to FILE")
    if output.output is not None:
        return output.output
    return "table" if output.to is None and sys.stdout.isatty() else "jsonl"


@contextmanager
def destination(output: Output, inputs: Sequence[str] = ()) -> Iterator[IO[bytes]]:
    """Standard output, or the file of --to, which appears whole or not at all."""
    if output.to is not None and output.to != "-":
        with atomic_output(output.to, inputs=inputs) as file:
            yield file
        return
    with quiet_pipe():
        stream = io.BufferedWriter(_Unclosed(sys.stdout.buffer), CHUNK)
        yield stream
        stream.flush()
        sys.stdout.buffer.flush()


class _Unclosed(io.RawIOBase):
    """Standard output behind a buffer of its own, left open when that buffer goes."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.stream = stream

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return self.stream.write(data)


@contextmanager
def quiet_pipe() -> Iterator[None]:
    """End in silence when the reader of a pipe has gone, as `head` does; a full disk is one error.

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


def _forget_what_is_buffered() -> None:
    """What could not be written must not be tried again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def write_rows(stream: IO[bytes], rows: Iterable[Row], columns: Sequence[str], format_name: str) -> None:
    """Write rows in one of the formats; columns matter for tables and CSV, where a row may lack some."""
    if format_name in TEXT_FORMATS:
        _write_text(stream, rows, TEXT_FORMATS[format_name](columns))
    else:
        _write_table(stream, rows, columns)


@dataclass(frozen=True, slots=True)
class TextFormat:
    """Rows as text: each is a piece of its own.

    Attributes:
        line: what a row becomes.
        begin: what stands before all rows.
        passed_over: so many bytes of the first row are left out.
        end: what stands behind all rows.
        end_of_none: the same where there are none.
    """

    line: Callable[[Row], bytes]
    begin: bytes = b""
    passed_over: int = 0
    end: bytes = b""
    end_of_none: bytes = b""


def _jsonl(columns: Sequence[str]) -> TextFormat:
    return TextFormat(lambda row: to_json(row).encode() + b"\n")


def _json(columns: Sequence[str]) -> TextFormat:
    return TextFormat(
        lambda row: b",\n" + to_json(row).encode(), begin=b"[", passed_over=1, end=b"\n]\n", end_of_none=b"]\n"
    )


def _csv(columns: Sequence[str]) -> TextFormat:
    """RFC 4180 quoting, `\\n` line ends, one header line; null is an empty field, structures are JSON."""

    def record(cells: Iterable[Any]) -> bytes:
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator="\n").writerow(cells)
        return text.getvalue().encode()

    return TextFormat(lambda row: record(_csv_cell(row.get(column)) for column in columns), begin=record(columns))


TEXT_FORMATS: dict[str, Callable[[Sequence[str]], TextFormat]] = {"jsonl": _jsonl, "json": _json, "csv": _csv}
"""Formats that write row after row; by the columns of CSV."""


@contextmanager
def text_around(stream: IO[bytes], form: TextFormat) -> Iterator[Callable[[bytes | memoryview], None]]:
    """What to do with the text of rows, one or many at a time, to write all of the format."""
    left_out, is_empty = form.passed_over, True

    def write(text: bytes | memoryview) -> None:
        nonlocal left_out, is_empty
        if len(text):
            stream.write(text[left_out:])
            left_out, is_empty = 0, False

    stream.write(form.begin)
    yield write
    stream.write(form.end_of_none if is_empty else form.end)


def _write_text(stream: IO[bytes], rows: Iterable[Row], form: TextFormat) -> None:
    line = form.line
    with text_around(stream, form) as write:
        for row in rows:
            write(line(row))


def _csv_cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return to_json(value) if isinstance(value, dict | list) else value


# ---------------------------------------------------------------------------------------------- tables


def visible(text: str) -> str:
    """Text on one line that cannot disturb a terminal: control and format characters as escapes."""
    return "".join(
        character.encode("unicode_escape").decode("ascii") if _is_disturbing(character) else character
        for character in text
    )


def _is_disturbing(character: str) -> bool:
    return character == "\\" or unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")


def shown_time(epoch_ms: int) -> str:
    """Epoch milliseconds as a UTC time; as the number it is where no calendar has it."""
    try:
        return (EPOCH + timedelta(milliseconds=epoch_ms)).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3] + "Z"
    except OverflowError:
        return str(epoch_ms)


def _table_cell(column: str, value: Any) -> str:
    if value is None:
        return "-"
    if column.endswith(TIME_SUFFIXES) and isinstance(value, int) and value >= 0:
        return shown_time(value)
    if isinstance(value, dict | list):
        return _clipped(to_json(value), MAX_TABLE_JSON)
    return _clipped(to_json(value) if isinstance(value, bool) else str(value), MAX_TABLE_TEXT)


def _clipped(text: str, width: int) -> str:
    """`visible`, and short enough that one cell does not make every line of the table too long to be read."""
    shown = visible(text[: width + 1])
    return shown if len(shown) <= width else shown[:width] + "…"


def _write_table(stream: IO[bytes], rows: Iterable[Row], columns: Sequence[str]) -> None:
    """Columns that are null in every row are left out."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    rows = list(rows)
    shown = [column for column in columns if any(row.get(column) is not None for row in rows)]
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for column in shown:
        is_time = column.endswith(TIME_SUFFIXES)
        is_number = all(isinstance(row.get(column), int | None) for row in rows) and not is_time
        name = (column.removesuffix("_ms") if is_time else column).replace("_", "\n")
        table.add_column(name, justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(_table_cell(column, row.get(column))) for column in shown))
    text = io.StringIO()
    width = None if sys.stdout.isatty() else 10_000
    Console(file=text, width=width, force_terminal=False, color_system=None).print(table)
    stream.write("".join(line.rstrip() + "\n" for line in text.getvalue().split("\n") if line.strip()).encode())
