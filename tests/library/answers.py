"""What a command answers, and what a table of the library holds, in one form."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

import offsets_log as ol
from tests.cli.runs import run
from tests.conftest import DISTINCT, NEVER

Row = dict[str, Any]

BULK_FIRST, PLAIN_FIRST = ([(name, (0, NEVER)[(turn + n) % 2]) for n, name in enumerate(DISTINCT)] for turn in (0, 1))
"""Each recording with the size from which kernels read it: all or none, in turn, of one table the other way than of the
next. That both engines say the same of all recordings is asked in `tests/columnar`."""


def told(command: str, path: Path, *options: str) -> list[Row]:
    """The rows of a command."""
    return [json.loads(line) for line in run(command, path, "-o", "jsonl", *options).stdout.split("\n") if line]


def as_told(table: ol.Table, **shapes: Callable[[Any], Any]) -> list[Row]:
    """A table's rows as the command writes them.

    Moments are milliseconds there, raw names only where there are any, maps are objects, and nothing is doubtful.

    Args:
        shapes: column → makes the command's cell of the table's.
    """
    found = table.to_arrow()
    fields = [one for one in found.schema if not pa.types.is_timestamp(one.type) and one.name != "doubtful"]
    shapes |= {field.name: dict for field in fields if pa.types.is_map(field.type)}
    names = [field.name for field in fields]
    return [
        {
            name: shapes[name](value) if value is not None and name in shapes else value
            for name, value in row.items()
            if value is not None or not is_raw_name(name)
        }
        for row in found.select(names).to_pylist()
    ]


def is_raw_name(name: str) -> bool:
    """Whether a column has the bytes of a name that is not UTF-8, which few rows have."""
    return name in ("group_base64", "topic_base64", "metadata_base64")
