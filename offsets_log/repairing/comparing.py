"""Comparison of a repaired log's answers with those of the log that was read."""

from __future__ import annotations

from dataclasses import dataclass, replace

from offsets_log.cleaner.answers import Answers, differences
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.replay.partial import GroupTopicPartition
from offsets_log.replay.problem import Problem
from offsets_log.replay.profile import Profile


@dataclass(frozen=True, slots=True)
class Compared:
    """The differences that the records left out make.

    Attributes:
        offsets: keys of committed and pending offsets that changed or are gone.
        groups: groups that changed or are gone.
        problem: what still ends the load, or is an error behind it, if anything is.
    """

    offsets: tuple[GroupTopicPartition, ...]
    groups: tuple[str, ...]
    problem: Problem | None

    @property
    def is_same(self) -> bool:
        """Whether all answers are the same."""
        return not self.offsets and not self.groups


def compare(before: PartitionLog, after: PartitionLog, profile: Profile, *, in_bulk: bool = False) -> Compared:
    """Replay a log and its repaired form by the same rules.

    A record of the first that ends a load is skipped, as `compact` does.

    Args:
        in_bulk: whether to use kernels, which is worth their start for a large log.
    """
    read, made = (Answers.of(log, (profile,), passes_damage=True, in_bulk=in_bulk) for log in (before, after))
    problem = min(made.states[0].problems, key=lambda problem: problem.is_served, default=None)
    found = differences(_without_problems(read), _without_problems(made))
    return Compared(tuple(sorted(found.keys)), tuple(sorted(found.groups)), problem)


def _without_problems(answers: Answers) -> Answers:
    return Answers(tuple(replace(state, problems=()) for state in answers.states), answers.log)
