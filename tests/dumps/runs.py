"""What the tests of dumps share: rows of the command line over stdin, and by what they are of."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.cli.runs import run
from tests.conftest import json_lines

DATA = Path(__file__).parent / "data"

Row = dict[str, Any]


def rows(*arguments: str | Path, stdin: bytes | None = None, status: int = 0) -> list[Row]:
    result = run(*arguments, "-o", "jsonl", stdin=stdin)
    assert result.exit_code == status, result.stderr
    return list(json_lines(result.stdout))


def captured(name: str) -> bytes:
    return gzip.decompress((DATA / f"{name}.txt.gz").read_bytes())


def without(found: Iterable[Row], *columns: str) -> list[Row]:
    return [{name: value for name, value in row.items() if name not in columns} for row in found]
