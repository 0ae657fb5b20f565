"""What holds of all modules of the product, and no linter says. How long parameter lists may be: `pyproject.toml`."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PRODUCT = ("offsets_log", "cli", "spark_jobs", "benchmarks", "tools")
MOST_LINES = 400
REASON = f"Over {MOST_LINES} lines: "
"""Begins the sentence of a module's docstring that says why it is one."""


def modules() -> list[str]:
    return sorted(path.relative_to(ROOT).as_posix() for folder in PRODUCT for path in (ROOT / folder).rglob("*.py"))


@pytest.mark.parametrize("name", modules())
def test_a_long_module_says_why_it_is_one(name: str) -> None:
    """And one that is not long any more does not."""
    text = (ROOT / name).read_text(encoding="utf-8")
    said = REASON in (ast.get_docstring(ast.parse(text)) or "")
    assert said == (len(text.splitlines()) > MOST_LINES)
