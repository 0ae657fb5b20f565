"""What holds of all modules, those of tests too, and no linter says. Lengths of parameter lists: `pyproject.toml`."""

from __future__ import annotations

import ast
import fnmatch
import re
import subprocess
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import TypeGuard

ROOT = Path(__file__).parent.parent
ALL = ("offsets_log", "cli", "spark_jobs", "pyspark_offsets_log", "benchmarks", "tools", "tests")
MOST_LINES = 400
REASON = f"Over {MOST_LINES} lines: "
"""Begins the sentence of a module's docstring that says why it is one."""


@cache
def modules() -> dict[str, str]:
    """Path from the root → text."""
    paths = sorted(path for folder in ALL for path in (ROOT / folder).rglob("*.py"))
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def test_a_long_module_says_why_it_is_one() -> None:
    """And one that is not long any more does not."""
    texts = {name: text for name, text in modules().items() if REASON in text}
    said = {name for name, text in texts.items() if REASON in (ast.get_docstring(ast.parse(text)) or "")}
    assert said == {name for name, text in modules().items() if len(text.splitlines()) > MOST_LINES}


def _module(path: str) -> str:
    return path.removeprefix("cli/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def test_no_module_imports_in_a_circle() -> None:
    """Within functions neither; names of types may."""
    texts = {_module(name): name for name in modules()}
    needs = {
        module: {one if (one := f"{origin}.{item}") in texts else origin for origin, item in _imports(modules()[name])}
        for module, name in texts.items()
    }
    TopologicalSorter({module: found & texts.keys() - {module} for module, found in needs.items()}).prepare()


def _imports(text: str) -> set[tuple[str, str]]:
    """Modules, and the names that are imported from them, but for types."""
    tree = ast.parse(text)
    for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    return {
        (node.module, item.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and id(node) not in for_types
        for item in node.names
    }


def test_docstrings_name_no_document_that_is_not_there() -> None:
    """Neither a ``.md`` file nor a section of one: both are for whoever has the repository only."""
    for name, text in modules().items():
        tree = ast.parse(text if ".md" in text or "§" in text else "")
        texts = [node.value.value for node in ast.walk(tree) if isinstance(node, ast.Expr) and is_text(node.value)]
        named = {path for text in texts for path in re.findall(r"[\w./-]*\w\.md\b", text)}
        assert {path for path in named if not fnmatch.filter(documents(), f"*/{path}")} == set(), name
        assert [text for text in texts if "§" in text] == [], name


def is_text(node: ast.expr) -> TypeGuard[ast.Constant]:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


@cache
def documents() -> list[str]:
    """All ``.md`` files that are tracked, as paths from the root that begin with a slash."""
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [f"/{path}" for path in listed.stdout.split()]
