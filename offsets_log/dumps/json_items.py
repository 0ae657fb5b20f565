"""Read JSON objects from a text: one a line, one after the other, in an array, or printed by jq."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from offsets_log.dumps.json_text import DECODER
from offsets_log.dumps.source import damaged_line
from offsets_log.errors import Damage

BETWEEN = re.compile(r"[\s,\[\]\x1e]*")
"""What stands between objects, also the record separator of ``jq --seq``."""
NEXT = re.compile(r"^[\s,\[]*\{|\n", re.MULTILINE)


def iter_items(text: str) -> Iterator[tuple[int, dict[str, Any] | Damage]]:
    """Yield objects, and what is none, each with its line number."""
    at, line, counted = 0, 1, 0
    while True:
        between = BETWEEN.match(text, at)
        at = between.end() if between else at
        if at >= len(text):
            return
        line, counted = line + text.count("\n", counted, at), at
        try:
            item, end = DECODER.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            found = NEXT.search(text, at + 1)
            end = found.start() if found else len(text)
            yield line, damaged_line(line, text[at:end].encode(errors="replace"), f"it is no JSON: {error}")
        else:
            raw = text[at:end].encode(errors="replace")
            yield line, item if isinstance(item, dict) else damaged_line(line, raw, "it is no JSON object")
        at = end
