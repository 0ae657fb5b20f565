"""Partitions of which all copies agree: a sentence each, or one for many."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from offsets_log.words import counted

TOLD = 5
"""How many things of one kind are told one by one."""


class Agreement(Enum):
    """How copies agree of which nothing is doubtful, the least to tell first; in words, of several partitions."""

    SAME = "with the same batches"
    SHORTER = "that end earlier than others and have the same batches up to there"
    CLEANED = "that differ only by what a cleaner takes"


class Alike:
    """Partitions whose copies agree: where they are many, nothing is said of each, but of all together.

    Attributes:
        are_in_doubt: whether copies of any partition disagree, or one has what the chosen copy should have.
    """

    def __init__(self) -> None:
        self.are_in_doubt = False
        self._sentences: dict[tuple[Agreement, tuple[str, ...]], list[str]] = {}
        self._different = 0

    def take(self, agreements: Sequence[Agreement | None], homes: Sequence[str], sentence: str) -> bool:
        """Take a partition, and return whether it is told here; else it is only counted.

        Args:
            agreements: how its copies agree with the one that is read; None where there is something to tell.
            homes: data directories or folders: of the chosen copy, and of the others.
            sentence: what is said of it alone.
        """
        known = [agreement for agreement in agreements if agreement is not None]
        if len(known) < len(agreements):
            self._different += 1
            return False
        worst = max(known, key=[*Agreement].index)
        self._sentences.setdefault((worst, tuple(homes)), []).append(sentence)
        return True

    @property
    def notes(self) -> list[str]:
        """Which copies are read, a sentence for each set of data directories; of a few partitions one for each."""
        notes: list[str] = []
        for (agreement, (read, *others)), sentences in self._sentences.items():
            if agreement is not Agreement.SAME and len(sentences) <= TOLD:
                notes += sentences
                continue
            notes.append(
                f"{counted(len(sentences), 'partition has', 'partitions have')} copies {agreement.value}: read in "
                f"{read}, left out in {', '.join(others)}"
            )
        if self._different > TOLD:
            notes.append(f"{self._different} partitions have copies that differ, of each one line tells how")
        return notes
