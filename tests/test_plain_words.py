"""Messages, help and pages have none of the words that `docs/words.md` lists."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "words.md"


def texts() -> Iterator[tuple[str, str]]:
    """Where a text stands, and the text: lines of pages, strings of code, docstrings of commands, which are help."""
    for page in [
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")),
    ]:
        if page != PAGE:
            for number, line in enumerate(page.read_text(encoding="utf-8").split("\n"), 1):
                yield f"{page.relative_to(ROOT)}:{number}", line
    for folder in ("offsets_log", "cli", "spark_jobs"):
        for module in (ROOT / folder).rglob("*.py"):
            tree = ast.parse(module.read_text(encoding="utf-8"))
            documenting = (
                {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)} if folder != "cli" else set()
            )
            for node in ast.walk(tree):
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documenting:
                    yield f"{module.relative_to(ROOT)}:{node.lineno}", node.value
    register = ROOT / "offsets_log" / "rules" / "register.toml"
    yield str(register.relative_to(ROOT)), register.read_text(encoding="utf-8")


def test_no_text_has_a_word_that_we_do_not_use() -> None:
    (listed,) = re.findall(r"^- These are not used: (.+)\.$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    words = re.findall(r"`([^`]+)`", listed)
    assert len(words) > 5
    unused = re.compile(rf"\b({'|'.join(map(re.escape, words))})\b", re.IGNORECASE)
    assert [(place, found[0]) for place, text in texts() if (found := unused.search(text))] == []
