"""Questions on standard input, one JSON object on each line, and their answers in the same order."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import click

from offsets_log.errors import InputError, OffsetsLogError
from offsets_log.words import counted
from offsets_log_cli.options import Output

Json = dict[str, Any]


def answer_lines(answer: Callable[[Json], Json], output: Output) -> None:
    """Answer every line; report lines that cannot be answered on standard error and by the exit status."""
    from offsets_log.session.account import EXIT_DAMAGED
    from offsets_log_cli.output import destination
    from offsets_log_cli.terminal import fail, say

    if output.columns:
        raise click.UsageError("--columns does not go with questions on standard input, whose answers are documents")
    wrong = 0
    try:
        with destination(output) as stream:
            for number, line in enumerate(sys.stdin.buffer, 1):
                if not line.strip():
                    continue
                try:
                    stream.write(_encoded(answer(_decoded(line))))
                except OffsetsLogError as error:
                    wrong += 1
                    say(f"line {number}: {error}")
    except OffsetsLogError as error:
        fail(error)
    if wrong:
        say(f"{counted(wrong, 'line')} could not be answered")
        sys.exit(EXIT_DAMAGED)


def _decoded(line: bytes) -> Json:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"it is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise InputError("it is not a JSON object")
    return value


def _encoded(value: Json) -> bytes:
    from offsets_log.rows.tables import json_bytes

    try:
        return json_bytes(value) + b"\n"
    except UnicodeEncodeError:  # half a surrogate pair, which only an escape can hold
        return json.dumps(value, separators=(",", ":")).encode() + b"\n"
