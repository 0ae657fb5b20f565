"""Whether records were assigned to partitions again: one that a partition's copy lacks is in the copy of another.

Where a source was read again by something that chose partitions itself, a group's offset in one partition says nothing
of the others. What lacks on one side alone says nothing either: it may be filtered, cleaned, lost or not copied yet.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar.aligning.table import Bools

MOST = 1 << 14
"""Of more prints the lowest are kept: those of all partitions are then of the same records."""


@dataclass(slots=True)
class Lowest:
    """The lowest of prints, rising."""

    prints: a.Int64s = field(default_factory=lambda: np.zeros(0, np.int64))

    def add(self, prints: a.Int64s) -> None:
        """Note some."""
        if len(self.prints) == MOST:
            prints = prints[prints < self.prints[-1]]
        if len(prints):
            self.prints = np.unique(np.concatenate([self.prints, prints]))[:MOST]


@dataclass(slots=True)
class Lacking:
    """Prints of records that one side of a partition has and the other has not.

    Attributes:
        made_of: what the prints are made of.
        of_source: of records that the source's partition has once, and the target's not.
        of_target: of records that the target's partition has, and the source's not.
        old_of_source, old_of_target: likewise, of those before the first one that both have.
    """

    made_of: int
    of_source: Lowest = field(default_factory=Lowest)
    of_target: Lowest = field(default_factory=Lowest)
    old_of_source: Lowest = field(default_factory=Lowest)
    old_of_target: Lowest = field(default_factory=Lowest)

    def add_of_source(self, prints: a.Int64s, is_old: Bools) -> None:
        """Note some."""
        self.old_of_source.add(prints[is_old])
        self.of_source.add(prints[~is_old])

    def add_of_target(self, prints: a.Int64s, is_old: Bools) -> None:
        """Note some."""
        self.old_of_target.add(prints[is_old])
        self.of_target.add(prints[~is_old])

    def nothing_in_both(self) -> None:
        """Take what seemed old as any other: no record is on both sides."""
        self.of_source.add(self.old_of_source.prints)
        self.of_target.add(self.old_of_target.prints)
        self.old_of_source, self.old_of_target = Lowest(), Lowest()

    @property
    def has_of_source(self) -> bool:
        """Whether the source has any that the target has not."""
        return len(self.of_source.prints) + len(self.old_of_source.prints) > 0

    @property
    def has_of_target(self) -> bool:
        """Whether the target has any that the source has not."""
        return len(self.of_target.prints) + len(self.old_of_target.prints) > 0


def are_moved(partitions: Iterable[Lacking]) -> bool:
    """Whether a record that one partition of a topic lacks in the target is in another one there.

    Of old ones on both sides that is not said: what was written to several partitions looks so where retention cut
    their logs at different places.
    """
    there = list(partitions)
    for made_of in {one.made_of for one in there}:
        alike = [one for one in there if one.made_of == made_of]
        of_target = np.concatenate([one.of_target.prints for one in alike])
        in_target = np.concatenate([of_target, *(one.old_of_target.prints for one in alike)])
        if any(
            np.isin(one.of_source.prints, in_target).any() or np.isin(one.old_of_source.prints, of_target).any()
            for one in alike
        ):
            return True
    return False
