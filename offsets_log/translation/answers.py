"""What is said of a committed offset: where its group goes on in the target, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass

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
    """

    target_offset: int
    how: str
    reread_at_most: int | None


@dataclass(frozen=True, slots=True)
class Untold:
    """Why nothing is said of an offset."""

    reason: str


Told = Answer | Untold
