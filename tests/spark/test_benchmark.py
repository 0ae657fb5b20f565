"""A row of `benchmarks.spark` is made, and the answer is right."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from benchmarks.spark import HEAD, iter_lines


def test_a_row_of_clean(spark: Any, tmp_path: Path) -> None:
    lines = [*iter_lines(re.compile("^spark clean$"), tmp_path, 300_000, 1)]
    assert lines[: len(HEAD)] == [*HEAD]
    assert [line.split("|")[1].strip() for line in lines[len(HEAD) :]] == ["spark clean"]
