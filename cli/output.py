"""Rows as a table for people, or JSON Lines, JSON and CSV for programs; to standard output or whole into a file."""

from __future__ import annotations

import csv
import io
import os
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
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
    WRITERS[format_name](stream, rows, columns)


def _write_jsonl(stream: IO[bytes], rows: Iterable[Row], columns: Sequence[str]) -> None:
    for row in rows:
        stream.write(to_json(row).encode() + b"\n")


def _write_json(stream: IO[bytes], rows: Iterable[Row], columns: Sequence[str]) -> None:
    separator = b"[\n"
    for row in rows:
        stream.write(separator + to_json(row).encode())
        separator = b",\n"
    stream.write(b"[]\n" if separator == b"[\n" else b"\n]\n")


def _write_csv(stream: IO[bytes], rows: Iterable[Row], columns: Sequence[str]) -> None:
    """RFC 4180 quoting, `\\n` line ends, one header line; null is an empty field, structures are JSON."""
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_csv_cell(row.get(column)) for column in columns])
    text.detach()


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


WRITERS: dict[str, Callable[[IO[bytes], Iterable[Row], Sequence[str]], None]] = {
    "table": _write_table,
    "jsonl": _write_jsonl,
    "json": _write_json,
    "csv": _write_csv,
}
