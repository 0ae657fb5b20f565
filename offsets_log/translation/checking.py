"""Whether what a tool wrote down of offsets is of this source and this target: it is held against what was found.

A map, offset syncs and headers may be of another pair of clusters, or of a topic that was there before. Records that
both sides have show that: where a tool has one of them elsewhere, nothing of the tool is used for the partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from offsets_log.translation.answers import BY_COUNT, EXACT, Answer, Told, Witness

_PLACED = (EXACT, BY_COUNT)


def witnesses_of(told: Mapping[int, Told]) -> list[Witness]:
    """Return the records that were met where answers were found by records, in the source's order."""
    found = {witness: None for one in told.values() if isinstance(one, Answer) for witness in one.witnesses}
    return sorted(found, key=lambda one: (one.source_offset, one.target_offset))


def contradiction(told: Mapping[int, Told], witnesses: Iterable[Witness], end: int | None) -> str | None:
    """Return, in words behind "it has", what cannot be; None if nothing contradicts.

    Args:
        told: a way's answers, those for the source offsets of the witnesses too.
        end: where the target's log ends; None where that is not known.
    """
    for offset, one in sorted(told.items()):
        if end is not None and isinstance(one, Answer) and one.target_offset > end:
            return f"offset {offset} at {one.target_offset}, and the target's log ends at {end}"
    for witness in witnesses:
        one = told[witness.source_offset]
        if isinstance(one, Answer) and _is_elsewhere(one, witness):
            place = f"at {one.target_offset}, and it was found at {witness.target_offset}"
            return f"the record of offset {witness.source_offset} {place}"
    return None


def is_held(told: Mapping[int, Told], witnesses: Iterable[Witness]) -> bool:
    """Whether a way has a record where it was found."""
    return any(
        isinstance(one := told[witness.source_offset], Answer)
        and one.how in _PLACED
        and one.target_offset == witness.target_offset
        for witness in witnesses
    )


def _is_elsewhere(one: Answer, witness: Witness) -> bool:
    """Whether going on at an answer would skip the record, or the record is not where it is said to be."""
    is_other = witness.is_first and one.is_own and one.how in _PLACED and one.target_offset != witness.target_offset
    return is_other or one.target_offset > witness.target_offset
