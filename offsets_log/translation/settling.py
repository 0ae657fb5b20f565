"""A committed offset among few records: those between the last that is known to be read and the first that is not.

On both sides stands the same record first, and another same one last. Between them some records of the target are at
several places in the source, or at none: equal records, and those that one side lost, changed, or never had.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from offsets_log.translation.answers import AT_LEAST, BY_COUNT, EXACT, Answer


@dataclass(frozen=True, slots=True)
class Side:
    """Records in a row, the first and the last of which are on both sides.

    Attributes:
        offsets, prints: of data records.
        controls: offsets of transactions' markers.
        has_transactions: whether there are markers, or were.
    """

    offsets: Sequence[int]
    prints: Sequence[int]
    controls: Sequence[int] = ()
    has_transactions: bool = False

    def count_below(self, offset: int) -> int:
        """Return how many offsets there are of records, be they still there or not, from the first up to an offset."""
        return offset - self.offsets[0] - sum(control < offset for control in self.controls)


def settle(source: Side, target: Side, committed: int, *, is_between: bool) -> Answer | None:
    """Return where a group goes on, if it can be told better than "behind the first record".

    Args:
        is_between: whether the first and the last record are each at one place only.
    """
    if source.count_below(committed) == 1:  # only the first record is read
        return Answer(target.offsets[1], EXACT, 0)
    found = _in_order(source, target, committed)
    if found is not None and found.how == EXACT:
        return found
    return (_by_count(source, target, committed) if is_between else None) or found


def _in_order(source: Side, target: Side, committed: int) -> Answer | None:
    """Find each record of the target in the source, in the same order: as early as can be, and as late as can be.

    Where both lead to the same record that is the one. Else the earlier answer misses nothing.
    """
    earliest = _found(source.prints, target.prints)
    if earliest is None:
        return None
    last = len(source.prints) - 1
    reverse = _found(source.prints[::-1], target.prints[::-1])
    assert reverse is not None
    latest = [last - at for at in reverse[::-1]]
    sure = _first(source.offsets, earliest, committed)
    safe = _first(source.offsets, latest, committed)
    if sure == safe:
        return Answer(target.offsets[safe], EXACT, 0)
    return Answer(target.offsets[safe], AT_LEAST, len(target.offsets) - 1 - safe)


def _found(prints: Sequence[int], sought: Sequence[int]) -> list[int] | None:
    """Return the first place of each in its turn; None unless all are there in this order."""
    places: list[int] = []
    at = 0
    for one in sought:
        while at < len(prints) and prints[at] != one:
            at += 1
        if at == len(prints):
            return None
        places.append(at)
        at += 1
    return places


def _first(offsets: Sequence[int], places: Sequence[int], committed: int) -> int:
    """Return which record is the first whose place is at or behind an offset; the last one is."""
    return next((i for i, place in enumerate(places) if offsets[place] >= committed), len(places) - 1)


def _by_count(source: Side, target: Side, committed: int) -> Answer | None:
    """Count, where both sides have used equally many offsets for records."""
    if target.has_transactions or source.count_below(source.offsets[-1]) != target.count_below(target.offsets[-1]):
        return None
    counted = target.offsets[0] + source.count_below(committed)
    return Answer(next(offset for offset in target.offsets if offset >= counted), BY_COUNT, 0)
