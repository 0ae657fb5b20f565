"""A committed offset among few records of both sides: those around it, and those around where it may be.

Equal records, and those that one side lost, changed, or never had, leave open which record of the target is a copy of
which. What is sure is the order, unless copying began again. So each record of the target, between two that are on
both sides once, is put at the earliest place of the source that it can have, and at the latest. A place is that of an
equal record, or an offset that the source lacks, where any record may have been. A committed offset is exact if both
ways lead to the same first unread record; else the one by the latest places misses nothing. In a run of n equal
records, g offsets lacking, of which the target has m, that is the record n + g − m before the one counted from the
run's begin, or the run's begin.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import dropwhile, takewhile

from offsets_log.translation.answers import AT_LEAST, BY_COUNT, EXACT, Answer


@dataclass(frozen=True, slots=True)
class Side:
    """Records in a row.

    Attributes:
        offsets, prints: of data records.
        controls: offsets of transactions' markers.
        has_transactions: whether there are markers, or were.
    """

    offsets: Sequence[int]
    prints: Sequence[int]
    controls: Sequence[int] = ()
    has_transactions: bool = False

    def cut(self, first: int, behind: int) -> Side:
        """Return the records from one to before another, by their numbers."""
        offsets = self.offsets[first:behind]
        controls = [at for at in self.controls if offsets and offsets[0] < at < offsets[-1]]
        return Side(offsets, self.prints[first:behind], controls, self.has_transactions)

    def count_below(self, offset: int) -> int:
        """Return how many offsets there are of records, be they still there or not, from the first up to an offset."""
        return offset - self.offsets[0] - sum(control < offset for control in self.controls)

    def once(self) -> dict[int, int]:
        """Return the number of each record that is there once, by its print."""
        counts = Counter(self.prints)
        return {one: number for number, one in enumerate(self.prints) if counts[one] == 1}


@dataclass(frozen=True, slots=True)
class _Place:
    """Offsets of the source: of one record, or of those that it lacks where `is_lacking`."""

    first: int
    last: int
    print: int
    is_lacking: bool = False


def last_run(target: Side, source: Side) -> tuple[Sequence[int], int]:
    """Return the offsets of the target's equal records at its end, and how many equal ones the source has in a row."""
    one = target.prints[-1]
    count = len(list(takewhile(lambda other: other == one, reversed(target.prints))))
    rest = dropwhile(lambda other: other != one, reversed(source.prints))
    return target.offsets[-count:], len(list(takewhile(lambda other: other == one, rest)))


def settle(source: Side, target: Side, committed: int, after: int, ends: tuple[bool, bool]) -> Answer | None:
    """Return where a group goes on; None if nothing is sure before or behind.

    Args:
        after: offset of the target's first record that is known to be unread, or behind its last one.
        ends: whether the target's first record is its log's first, and whether the last ones of both sides are.
    """
    before, behind = _between(source, target, committed, after)
    if (before is None and not ends[0]) or (behind is None and not ends[1]):
        return None
    known_source = source.cut(before[0] if before else 0, behind[0] + 1 if behind else len(source.offsets))
    known = target.cut(before[1] if before else 0, behind[1] + 1 if behind else len(target.offsets))
    end = target.offsets[-1] + 1
    places = _places(known_source, since=None if before else 0)
    found = _in_order(places, known, committed, end)
    if before and behind and (found is None or found.how != EXACT):
        found = _by_count(known_source, known, committed) or found
    if found is None or _has_more(known_source, known):
        return Answer((*known.offsets, end)[1 if before else 0], AT_LEAST, None)
    if before is None and found.how == AT_LEAST:  # some may be copied again, and the target may be cut at the front
        return Answer(known.offsets[0], AT_LEAST, None)
    return found


def _has_more(source: Side, target: Side) -> bool:
    """Whether records of the target may have been copied again, or may be some that the source lacks."""
    there = Counter(source.prints)
    return any(count > max(1, there[one]) for one, count in Counter(target.prints).items())


def _between(
    source: Side, target: Side, committed: int, after: int
) -> tuple[tuple[int, int] | None, tuple[int, int] | None]:
    """Return the last read and the first unread record that are on both sides once, as numbers there."""
    of_source = source.once()
    before = behind = None
    for one, number in target.once().items():
        if one not in of_source:
            continue
        pair, is_read = (of_source[one], number), source.offsets[of_source[one]] < committed
        if target.offsets[number] < after and is_read:
            before = pair
        elif behind is None and target.offsets[number] >= after and not is_read:
            behind = pair
    return before, behind


def _places(source: Side, since: int | None) -> list[_Place]:
    """Return the places of the source in order; those that it lacks before its first record too from an offset on."""
    there = sorted([*zip(source.offsets, source.prints, strict=True), *((at, None) for at in source.controls)])
    places: list[_Place] = []
    following = since
    for offset, one in there:
        if following is not None and following < offset:
            places.append(_Place(following, offset - 1, 0, is_lacking=True))
        if one is not None:
            places.append(_Place(offset, offset, one))
        following = offset + 1
    return places


def _in_order(places: Sequence[_Place], target: Side, committed: int, end: int) -> Answer | None:
    """Put the target's records at their earliest and at their latest places; None if they have none in this order."""
    earliest = _put(places, target.prints, 1)
    latest = _put(places[::-1], target.prints[::-1], -1)
    if earliest is None or latest is None:
        return None
    sure, safe = _first(earliest, committed), _first(latest[::-1], committed)
    answer = (*target.offsets, end)[safe]
    if sure > safe:
        return Answer(answer, AT_LEAST, sure - safe)
    present = {place.first for place in places if not place.is_lacking}
    is_seen = not earliest or earliest[min(safe, len(earliest) - 1)] in present
    return Answer(answer, EXACT if is_seen else BY_COUNT, 0)


def _put(places: Iterable[_Place], sought: Sequence[int], step: int) -> list[int] | None:
    """Return the offsets of the first places, in the order given, that records can have one after the other."""
    put: list[int] = []
    for place in places:
        if len(put) == len(sought):
            break
        if place.is_lacking:
            first = place.first if step > 0 else place.last
            count = min(place.last - place.first + 1, len(sought) - len(put))
            put += range(first, first + step * count, step)
        elif sought[len(put)] == place.print:
            put.append(place.first)
    return put if len(put) == len(sought) else None


def _first(offsets: Sequence[int], committed: int) -> int:
    """Return which record is the first that is at or behind an offset; their number if none is."""
    return next((i for i, offset in enumerate(offsets) if offset >= committed), len(offsets))


def _by_count(source: Side, target: Side, committed: int) -> Answer | None:
    """Count, where both sides have used equally many offsets for records and no two are equal."""
    if any(len(set(side.prints)) != len(side.prints) for side in (source, target)) or target.has_transactions:
        return None
    if source.count_below(source.offsets[-1]) != target.count_below(target.offsets[-1]):
        return None
    counted = target.offsets[0] + source.count_below(committed)
    return Answer(next(offset for offset in target.offsets if offset >= counted), BY_COUNT, 0)
