"""A committed offset among few records of both sides: between the last one known to be read and the first unread one.

Equal records, and those that the source lacks, leave open which record of the target is a copy of which. What is sure
is the order of last copies: copying goes on in the source's order, and where it begins again, all that was copied
behind comes again. The last of equal records in the target is a last copy. So each of those is put at the earliest
place of the source that it can have, and at the latest, and the others between them. A record that the source does not
have may be one that it lost, or that was changed on its way, or none of the source's: it is unread, unless one that
was read lacks in the target. The first record that may be unread is the answer, and it is sure if it must be unread.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import dropwhile, takewhile

from offsets_log.translation.answers import AT_LEAST, EXACT, Answer, Later


@dataclass(frozen=True, slots=True)
class Side:
    """Records in a row: their offsets and prints."""

    offsets: Sequence[int]
    prints: Sequence[int]


@dataclass(slots=True)
class _Places:
    """Where records can have been in the source: the offsets of each print."""

    of_print: dict[int, list[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, source: Side) -> _Places:
        """Return those of records."""
        places = cls()
        for offset, one in zip(source.offsets, source.prints, strict=True):
            places.of_print.setdefault(one, []).append(offset)
        return places

    def highest(self, one: int, below: int) -> int | None:
        """Return the last place of a print below an offset."""
        offsets = self.of_print[one]
        at = bisect_left(offsets, below)
        return offsets[at - 1] if at else None

    def lowest(self, one: int, above: int) -> int | None:
        """Return the first place of a print above an offset."""
        offsets = self.of_print[one]
        at = bisect_right(offsets, above)
        return offsets[at] if at < len(offsets) else None


def last_run(target: Side, source: Side) -> tuple[Sequence[int], int]:
    """Return the offsets of the target's equal records at its end, and how many equal ones the source has in a row."""
    one = target.prints[-1]
    count = len(list(takewhile(lambda other: other == one, reversed(target.prints))))
    rest = dropwhile(lambda other: other != one, reversed(source.prints))
    return target.offsets[-count:], len(list(takewhile(lambda other: other == one, rest)))


def settle(
    source: Side, there: Sequence[int], target: Side, committed: int, between: tuple[int, int], end: int
) -> Answer | None:
    """Return where a group goes on; None if the records of the target are not in an order that the source can have.

    Args:
        there: all offsets that the source has between two, the one before the first place among them.
        target: the records between the last one known to be read and the first unread one.
        between: all places are behind the one offset and before the other.
        end: the offset of the first unread record of the target, or behind the last one.
    """
    places = _Places.of(source)
    last = {one: i for i, one in enumerate(target.prints) if one in places.of_print}
    latest = _latest(places, last, between[1])
    earliest = _earliest(places, target.prints, last, between[0])
    if latest is None or earliest is None:
        return None
    is_read_lacking = _lacks(there, committed) or any(
        between[0] < offset < committed and (one not in last or len(places.of_print[one]) > 1)
        for offset, one in zip(source.offsets, source.prints, strict=True)
    )
    must_be_unread = [
        offset >= committed if one in last else not is_read_lacking
        for offset, one in zip(earliest, target.prints, strict=True)
    ]
    sure = safe = next((i for i, one in enumerate(target.prints) if one in last and must_be_unread[i]), len(earliest))
    for i in range(sure - 1, -1, -1):
        if latest.get(target.prints[i], committed) < committed:
            break
        safe = i
        sure = i if must_be_unread[i] else sure
    again = sum(not one for one in must_be_unread[safe:])
    places_of = (*target.offsets, end)
    if sure == safe:
        return Answer(places_of[safe], EXACT, again)
    later = Later(places_of[sure], sum(not one for one in must_be_unread[sure:]), sure - safe)
    return Answer(places_of[safe], AT_LEAST, again, later=later)


def _lacks(there: Sequence[int], committed: int) -> bool:
    """Return whether the source lacks an offset below a committed one."""
    return committed - 1 - there[0] > sum(there[0] < offset < committed for offset in there)


def _latest(places: _Places, last: dict[int, int], behind: int) -> dict[int, int] | None:
    """Return the latest place of each print's last record; None if there is no order."""
    found: dict[int, int] = {}
    for one in sorted(last, key=last.__getitem__, reverse=True):
        place = places.highest(one, behind)
        if place is None:
            return None
        found[one] = behind = place
    return found


def _earliest(places: _Places, prints: Sequence[int], last: dict[int, int], before: int) -> list[int] | None:
    """Return the earliest place of each record, −1 for none of the source; None if there is no order."""
    found: list[int] = []
    for i, one in enumerate(prints):
        place = places.lowest(one, before) if one in last else -1
        if place is None:
            return None
        if one in last and last[one] == i:
            before = place
        found.append(place)
    return found
