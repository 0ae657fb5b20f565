"""The table of faults that change nothing that can be seen, each with its reason."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tools.mutants.sample import Mutant

TABLE = Path(__file__).with_name("equivalent.toml")


@dataclass(frozen=True, slots=True)
class Equivalent:
    """Changes of a line after which all is as before.

    Attributes:
        was: the line, without its indentation.
        became: what the changes make of it, each to be listed: another change of the same line may well be seen.
    """

    module: Path
    was: str
    became: tuple[str, ...]
    why: str

    def holds(self, mutant: Mutant) -> bool:
        """Whether a mutant is one of them."""
        return (mutant.module, mutant.was) == (self.module, self.was) and mutant.became in self.became


def equivalents() -> list[Equivalent]:
    """The rows of the table."""
    rows = tomllib.loads(TABLE.read_text())["fault"]
    return [Equivalent(Path(row["module"]), row["was"], tuple(row["became"]), row["why"]) for row in rows]
