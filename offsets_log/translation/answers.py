"""What is said of a committed offset: where its group goes on in the target, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

EXACT, BY_COUNT, AT_LEAST, BY_TIME, AT_MOST = "exact", "by count", "at least", "by time", "at most"
WAYS = (EXACT, BY_COUNT, AT_LEAST, BY_TIME, AT_MOST)
"""How an answer was found, surest first.

exact     the target's first record that the group has not read was found; or that it has none
by count  between two records that are on both sides there are equally many, and it was counted there
at least  no record that the group has not read is before it; it may read some again
by time   as `at least`, by the times of records alone
at most   no record that the group has read is the first from there on; it may miss some before, where that is allowed
"""


@dataclass(frozen=True, slots=True)
class Later:
    """Where a group goes on if it may miss records: at the first that it surely has not read.

    Attributes:
        reread_at_most: how many records it may read again; None where that is not known.
        skipped: how many it may miss at most.
    """

    target_offset: int
    reread_at_most: int | None
    skipped: int


@dataclass(frozen=True, slots=True)
class Witness:
    """A record that both sides have once, as far as is known.

    Attributes:
        is_first: whether no record at or behind it in the source is before it in the target.
    """

    source_offset: int
    target_offset: int
    is_first: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """Where a group goes on.

    Attributes:
        reread_at_most: how many records it may read again; None where that is not known.
        before: the offset of the target's last record that is known to be read, before the answer; None for none.
        is_record: whether a record of the target is there, and not the end of what is known of it.
        is_own: whether that record is the one at the committed offset.
        later: the answer if records may be missed, where another one is known then.
        skipped: how many records may be missed.
        witnesses: records beside the committed offset, by which other ways are checked.
    """

    target_offset: int
    how: str
    reread_at_most: int | None
    before: int | None = field(default=None, compare=False)
    is_record: bool = field(default=True, compare=False)
    is_own: bool = field(default=True, compare=False)
    later: Later | None = field(default=None, compare=False)
    skipped: int = 0
    witnesses: tuple[Witness, ...] = field(default=(), compare=False)

    def skipping(self) -> Answer:
        """Return the answer if records may be missed."""
        later = self.later
        if later is None:
            return self
        again, skipped = later.reread_at_most, later.skipped
        return Answer(later.target_offset, AT_MOST, again, self.before, skipped=skipped)


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
