"""What a log needs to be answered from as before, beyond the first choice: it grows where that is too little.

See `survivors`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from offsets_log.cleaner.answers import Answers, Differences
from offsets_log.cleaner.failures import CleaningError
from offsets_log.replay.partial import GroupTopicPartition

VALUES, TOMBSTONES, LAST_OFFSET, ALL = range(4)
"""How much is kept of a group: last values; last tombstones too; the last offset too, and what ends it; everything."""


@dataclass(slots=True)
class Needs:
    """The records to keep besides the first choice.

    Attributes:
        keys: all records of these.
        offsets: these records.
        levels: group → how much of it.
    """

    keys: set[GroupTopicPartition] = field(default_factory=set)
    offsets: set[int] = field(default_factory=set)
    levels: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, answers: Answers) -> Needs:
        """Return the first needs: what is answered from, and what ends a load."""
        needs = cls(offsets=answers.standing_offsets())
        for problem in (problem for state in answers.of_groups for problem in state.problems):
            if problem.group is None:
                needs.offsets.add(problem.record_offset)
            else:
                needs.levels[problem.group] = ALL
        return needs

    def grow(self, found: Differences, answers: Answers) -> None:
        """Take in what was too little.

        Raises:
            CleaningError: all of it was there already.
        """
        before = len(self.keys), len(self.offsets), sum(self.levels.values())
        self.keys |= found.keys
        self.offsets |= found.offsets
        groups = set(found.groups)
        naming = answers.naming() if found.names else {}
        for offset, group in (naming[topic_id] for topic_id in found.names if topic_id in naming):
            if offset in self.offsets:
                groups.add(group)
            self.offsets.add(offset)
        for group in groups:
            self.levels[group] = min(self.levels.get(group, VALUES) + 1, ALL)
        if before == (len(self.keys), len(self.offsets), sum(self.levels.values())):
            raise CleaningError("what is left of the log would be answered from otherwise; it stays as it is")
