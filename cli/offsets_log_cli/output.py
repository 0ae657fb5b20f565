"""Rows as a table for people, or JSON Lines, JSON and CSV for programs; to standard output or whole into a file."""

from __future__ import annotations

import csv
import errno
import io
import os
import select
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

import click

from offsets_log.disk.writer import atomic_output
from offsets_log.errors import OutputError
from offsets_log.rows.tables import Row, json_bytes, to_json
from offsets_log_cli.options import Output

CHUNK = 1 << 16


def chosen_format(output: Output) -> str:
    """Return the format of -o; by default a table on a terminal, and JSON Lines elsewhere."""
    if output.output == "parquet" and output.to in (None, "-"):
        raise click.UsageError("-o parquet needs a file to write: give --to FILE")
    if output.output == "arrow" and output.to in (None, "-") and sys.stdout.isatty():
        raise click.UsageError("-o arrow is for programs: give --to FILE, or a pipe")
    if output.output is not None:
        return output.output
    return "table" if output.to is None and sys.stdout.isatty() else "jsonl"


@contextmanager
def destination(output: Output, inputs: Sequence[str] = ()) -> Iterator[IO[bytes]]:
    """Open standard output, or the file of --to, which appears whole or not at all."""
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
    """Standard output behind a buffer of its own, which stays open when that buffer is closed."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.stream = stream

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
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


def write_rows(stream: IO[bytes], rows: Iterable[Row], columns: Sequence[str], format_name: str) -> None:
    """Write rows in one of the formats; columns matter for tables and CSV, where a row may lack some."""
    if format_name in TEXT_FORMATS:
        _write_text(stream, rows, TEXT_FORMATS[format_name](columns))
    else:
        from offsets_log_cli.text_table import TextTable

        with TextTable(columns) as table:
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


def _write_text(stream: IO[bytes], rows: Iterable[Row], form: TextFormat) -> None:
    line = form.line
    with text_around(stream, form) as write:
        for row in rows:
            write(line(row))


def _csv_cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return to_json(value) if isinstance(value, dict | list) else value
