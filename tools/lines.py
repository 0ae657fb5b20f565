"""Count the lines of the project, by folder: ``python -m tools.lines [ROOT]``; code lines alone, too."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
PRODUCT = ("offsets_log", "cli", "spark_jobs", "pyspark_offsets_log")
FOLDERS = (*PRODUCT, "offsets_log/columnar", "tests", "tools", "benchmarks")
KINDS = ("lines", "code", "docstring", "import", "comment", "blank")


def count(source: str) -> Counter[str]:
    """Return how many lines of a module are of each of `KINDS`; an attribute's docstring is one too."""
    kinds: dict[int, str] = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            kinds |= dict.fromkeys(_lines_of(node), "import")
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            kinds |= dict.fromkeys(_lines_of(node), "docstring")
    found: Counter[str] = Counter()
    for number, line in enumerate(source.splitlines(), 1):
        plain = "comment" if line.lstrip().startswith("#") else "code" if line.strip() else "blank"
        found[kinds.get(number, plain)] += 1
    return found + Counter(lines=found.total())


def _lines_of(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def table(root: Path) -> str:
    """Return a row for each folder, and one for the product."""
    rows = {
        folder: sum((count(path.read_text(encoding="utf-8")) for path in (root / folder).rglob("*.py")), Counter())
        for folder in FOLDERS
    }
    rows["product"] = sum((rows[folder] for folder in PRODUCT), Counter())
    head = f"{'':22}" + "".join(f"{kind:>11}" for kind in KINDS)
    return "\n".join(
        [head, *(f"{name:22}" + "".join(f"{found[kind]:>11,}" for kind in KINDS) for name, found in rows.items())]
    )


if __name__ == "__main__":
    sys.stdout.write(table(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT) + "\n")
