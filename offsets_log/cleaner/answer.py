"""The answers that one coordinator gives from a log."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass

from offsets_log.replay.group import Group
from offsets_log.replay.partial import OffsetAndMetadata
from offsets_log.replay.problem import Problem


@dataclass(frozen=True, slots=True)
class Standing:
    """The offsets that a profile answers from, or holds for open transactions.

    Attributes:
        record_offsets: where they stand in the log.
        digest: equal only where all of them are.
        values: reads them.
    """

    record_offsets: Collection[int]
    digest: object
    values: Callable[[], Set[OffsetAndMetadata]]


@dataclass(frozen=True, slots=True)
class Answer:
    """The memory of a profile after a load; see `CoordinatorState`."""

    standing: Standing
    groups: Mapping[str, Group]
    problems: Sequence[Problem]
    topic_names: Mapping[bytes, str]
