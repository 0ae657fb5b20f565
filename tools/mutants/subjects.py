"""The table of modules and of the tests that are to notice a fault in them."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
TABLE = Path(__file__).with_name("subjects.toml")


@dataclass(frozen=True, slots=True)
class Subject:
    """Modules, and the tests that are to notice what becomes of them.

    Attributes:
        tests: arguments of pytest.
        plain_python: whether kernels run as the Python that they are written in; random tests then have a fifth of
            their examples.
    """

    name: str
    modules: tuple[Path, ...]
    tests: tuple[str, ...]
    plain_python: bool = False


def subjects() -> list[Subject]:
    """The rows of the table, each with the modules that its patterns match."""
    rows = tomllib.loads(TABLE.read_text())["subject"]
    return [
        Subject(
            row["name"],
            tuple(sorted(path.relative_to(ROOT) for glob in row["modules"] for path in ROOT.glob(glob))),
            tuple(row["tests"]),
            row.get("plain_python", False),
        )
        for row in rows
    ]
