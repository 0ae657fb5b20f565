"""Java's properties files."""

from __future__ import annotations

import io
import re

from offsets_log.errors import InputError

AS_IS = ("sasl.jaas.config",)
"""Properties whose values keep blanks at their end."""

_HAS_SEPARATOR = re.compile(r"\S[ \t\f]*[=:]|\S[ \t\f]")
LINE_END = re.compile(r"\r\n|\r|\n")


def parse_properties(text: str, file: str) -> dict[str, str]:
    """Parse properties as ``java.util.Properties.load`` does, but without blanks at the end of values.

    Raises:
        InputError: a line is a name or a value alone, or an escape is cut off.
    """
    from javaproperties import InvalidUEscapeError, KeyValue, parse

    found: dict[str, str] = {}
    number = 1
    try:
        for item in parse(io.StringIO(text, newline="")):
            if isinstance(item, KeyValue):
                if not item.key or (not item.value and not _HAS_SEPARATOR.search(item.source)):
                    raise InputError(f"line {number} is not name=value", file=file)
                found[item.key] = item.value.rstrip() if item.key not in AS_IS else item.value
            number += len(LINE_END.findall(item.source))
    except InvalidUEscapeError as error:
        raise InputError(f"line {number}: {error}", file=file) from None
    return found
