"""What all text files of a data directory have in common: lines as Java reads them, and errors that name a line."""

from __future__ import annotations

import json
import re
from typing import Any

from offsets_log.errors import CorruptFileError
from offsets_log.java_properties import LINE_END
from offsets_log.log_format.segment import Buffer

_NUMBER = re.compile(r"[+-]?[0-9]+")
MOST_DIGITS = 20


def refused(problem: str, file: str, line: int | None = None) -> CorruptFileError:
    """Return the error to raise.

    Args:
        line: from 1; None where the file as a whole is meant.
    """
    return CorruptFileError(problem if line is None else f"line {line}: {problem}", file=file)


SHOWN_LETTERS = 24


def shown(line: str) -> str:
    """Return a line for a message, cut where it is long."""
    return f"{line!r}" if len(line) <= SHOWN_LETTERS else f"{line[:SHOWN_LETTERS]!r}… ({len(line)} letters)"


def text_of(data: Buffer, file: str) -> str:
    """Return the file as text. Raises CorruptFileError."""
    try:
        return bytes(data).decode()
    except UnicodeDecodeError as error:
        raise refused(f"byte {error.start} is no UTF-8", file) from None


def lines_of(data: Buffer, file: str) -> list[str]:
    """Return the lines, as ``BufferedReader`` gives them. Raises CorruptFileError."""
    lines = LINE_END.split(text_of(data, file))
    return lines[:-1] if lines[-1] == "" else lines


def number_in(text: str, bits: int) -> int | None:
    """Return a number as Java parses one of so many bits; None for anything else."""
    if len(text) > MOST_DIGITS or not _NUMBER.fullmatch(text):
        return None
    number = int(text)
    return number if -(1 << bits - 1) <= number < 1 << bits - 1 else None


def json_object(data: Buffer, file: str) -> dict[str, Any]:
    """Return the file's JSON object. Raises CorruptFileError."""
    try:
        found = json.loads(text_of(data, file))
    except json.JSONDecodeError as error:
        raise refused(f"it is no JSON: {error.msg}", file, error.lineno) from None
    except (ValueError, RecursionError):
        raise refused("it is no JSON that can be read", file) from None
    if not isinstance(found, dict):
        raise refused("it is no JSON object", file)
    return found
