"""What is said of a committed offset: where its group goes on in the target, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

EXACT, BY_COUNT, AT_LEAST, BY_TIME = "exact", "by count", "at least", "by time"
WAYS = (EXACT, BY_COUNT, AT_LEAST, BY_TIME)
"""How an answer was found, surest first.

exact     the target's first record that the group has not read was found; or that it has none
by count  between two records that are on both sides there are equally many, and it was counted there
at least  no record that the group has not read is before it; it may read some again
by time   as `at least`, by the times of records alone
"""


@dataclass(frozen=True, slots=True)
class Answer:
    """Where a group goes on.

    Attributes:
        reread_at_most: how many records it may read again; None where that is not known.
        before: the offset of the target's last record that is known to be read, before the answer; None for none.
        is_record: whether a record of the target is there, and not the end of what is known of it.
        is_own: whether that record is the one at the committed offset.
    """

    target_offset: int
    how: str
    reread_at_most: int | None
    before: int | None = field(default=None, compare=False)
    is_record: bool = field(default=True, compare=False)
    is_own: bool = field(default=True, compare=False)


@dataclass(frozen=True, slots=True)
class Untold:
    """Why nothing is said of an offset."""

    reason: str


Told = Answer | Untold


def _rank(one: Told) -> int:
    return WAYS.index(one.how) if isinstance(one, Answer) else len(WAYS)


def is_exact(told: Mapping[int, Told]) -> bool:
    """Whether all answers are exact."""
    return all(_rank(one) == 0 for one in told.values())


def better(one: Mapping[int, Told], other: Mapping[int, Told]) -> Mapping[int, Told]:
    """Return what of two ways is surer, for each offset; where neither tells anything, the reason of the second."""
    return {offset: _surer(one[offset], other.get(offset, one[offset])) for offset in one}


def _surer(one: Told, other: Told) -> Told:
    is_other = _rank(other) < _rank(one) or (isinstance(one, Untold) and isinstance(other, Untold))
    return other if is_other else one
