"""What of a target's log could not be read: answers that lie behind it move back to where it begins.

A record that no group has read may lie in a damaged batch, or in a segment that the copy lacks. Where a record that is
known to be read lies behind such a stretch nothing of it matters, for copying goes on in the source's order. In a topic
that is compacted, offsets that lack between two segments are the cleaner's work: by its configuration, or where that is
not known, by offsets that lack within segments.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.data_directory.segment_batches import OFFSETS_END
from offsets_log.errors import Damage, MissingLogError
from offsets_log.log_format.batch import NEWEST_MAGIC, RecordBatch
from offsets_log.log_format.partition_log import LogWalk, PartitionLog
from offsets_log.log_format.record import iter_records
from offsets_log.translation.answers import AT_LEAST, BY_TIME, Answer, Told


@dataclass(frozen=True, slots=True)
class Stretch:
    """Offsets of which nothing could be read, from ``begin`` up to but without ``end``.

    Attributes:
        is_damaged: whether bytes are there that could not be read, and not only offsets that lack.
    """

    begin: int
    end: int
    is_damaged: bool

    def in_words(self) -> str:
        """Return what is said of it."""
        until = "on" if self.end == OFFSETS_END else f"to {self.end - 1}"
        lacks = "could not be read" if self.is_damaged else "are in no segment: the copy may lack a part of the log"
        return f"offsets from {self.begin} {until} {lacks}"

    def error(self, file: str) -> Damage:
        """Return it as damage, where the copy lacks it."""
        return Damage(MissingLogError(self.in_words(), file=file, record_offset=self.begin), b"")


@dataclass(slots=True)
class Gaps:
    """Offsets that a log does not have.

    Attributes:
        bases: the base offsets of its segments.
        between: what is in no segment.
        lacks_within: whether others lack within segments, as the cleaner leaves them.
    """

    bases: Sequence[int] = ()
    between: list[Stretch] = field(default_factory=list)
    lacks_within: bool = False
    _last: int | None = None

    @classmethod
    def of(cls, log: PartitionLog, first: int | None = 0) -> Gaps:
        """Return those of a log, before its offsets are noted.

        Args:
            first: offsets from there on are; None where that is not known.
        """
        bases = [one.base_offset for one in log.segments if one.base_offset is not None]
        return cls(bases, _last=max(first, bases[0]) - 1 if bases and first is not None else None)

    def note(self, offsets: a.Int64s) -> tuple[a.Int64s, a.Int64s]:
        """Go on with offsets of the log, which rise; return the gaps: the first offset of each, and the one behind."""
        before = np.append(offsets[:1] - 1 if self._last is None else self._last, offsets[:-1])[: len(offsets)]
        is_gap = offsets > before + 1
        first, behind = before[is_gap] + 1, offsets[is_gap]
        is_between = np.isin(behind, self.bases)
        self.lacks_within |= not is_between.all()
        ranges = zip(first[is_between].tolist(), behind[is_between].tolist(), strict=True)
        self.between += [Stretch(*one, is_damaged=False) for one in ranges]
        self._last = int(offsets[-1]) if len(offsets) else self._last
        return first, behind


def move_back(
    told: Mapping[int, Told],
    log: PartitionLog,
    start: int,
    policies: Collection[str] = (),
    *,
    is_copied_again: bool = False,
) -> tuple[dict[int, Told], list[Stretch]]:
    """Return the answers, none of which lies behind what could not be read, and the stretches that moved some.

    Args:
        start: no earlier record of the log can be read.
        policies: what happens to old records of the topic, ``compact`` or ``delete``; none where that is not known.
        is_copied_again: whether copying has begun again: then a record that was read may come before unread ones.
    """
    begin = max(start, log.segments[0].base_offset or 0) if log.segments else start
    spans = {
        offset: (first, one.target_offset if one.later is None else one.later.target_offset)
        for offset, one in told.items()
        if isinstance(one, Answer) and (first := begin if is_copied_again else _first_open(one, begin)) is not None
    }
    stretches = unread(log, list(spans.values()), policies) if spans else []
    moved: dict[int, Told] = dict(told)
    met: dict[Stretch, None] = {}
    for offset, (first, last) in spans.items():
        before = [one for one in stretches if one.end > first and one.begin <= last]
        if before:
            met |= dict.fromkeys(before)
            moved[offset] = _moved(told[offset], max(first, before[0].begin))
    return moved, sorted(met, key=lambda one: one.begin)


def doubts_of(partition: str, told: Mapping[int, Told], stretches: Sequence[Stretch], start: int) -> Iterator[str]:
    """Yield what is doubtful of a partition of the target, a sentence each."""
    for one in stretches:
        go_on = f"groups that may not have read them go on at {one.begin}"
        yield f"the target's copy of {partition}: {one.in_words()}; {go_on}"
    is_before = any(isinstance(one, Answer) and one.before is None and not one.is_own for one in told.values())
    if start and is_before:
        yield (
            f"the target's copy of {partition} begins at offset {start}: it has nothing that some groups have read, "
            "and may lack records that they have not read"
        )


def _first_open(one: Answer, begin: int) -> int | None:
    """Return the first offset behind the last record that is known to be read; None if nothing can lack there."""
    first = begin if one.before is None else one.before + 1
    return first if one.target_offset > first or one.later is not None or not one.is_record else None


def _moved(one: Told, offset: int) -> Answer:
    assert isinstance(one, Answer)
    if offset > one.target_offset:
        return replace(one, later=None)
    how = BY_TIME if one.how == BY_TIME else AT_LEAST
    return replace(one, target_offset=offset, how=how, reread_at_most=None, later=None)


def uncounted(told: Mapping[int, Told]) -> dict[int, Told]:
    """Return answers behind which something could not be read: it may be what their groups have read."""
    return {
        offset: replace(
            one, how=AT_LEAST, reread_at_most=None, later=one.later and replace(one.later, reread_at_most=None)
        )
        if isinstance(one, Answer) and (one.how == AT_LEAST or one.reread_at_most)
        else one
        for offset, one in told.items()
    }


def unread(log: PartitionLog, spans: Sequence[tuple[int, int]], policies: Collection[str] = ()) -> list[Stretch]:
    """Return what cannot be read of a log from the first of some spans of offsets on, whose batches are read whole."""
    walk = _Walk(log.since(min(first for first, _ in spans)), spans)
    found = list(walk.stretches())
    if all(one.is_damaged for one in found):
        return found
    lacks_within = not policies and (walk.lacks_within or _lacks_within(log))
    return [one for one in found if one.is_damaged or not is_cleaned(policies, lacks_within=lacks_within)]


def is_cleaned(policies: Collection[str], *, lacks_within: bool) -> bool:
    """Whether offsets between segments lack by the cleaner's work: by the topic's policies, or where none are known."""
    return "compact" in policies or (not policies and lacks_within)


def lost_of(log: PartitionLog) -> list[Stretch]:
    """Return the batches of a log that are damaged, and the offsets that no segment holds."""
    return list(_Walk(log, ()).stretches())


def _lacks_within(log: PartitionLog) -> bool:
    walk = _Walk(log, ())
    list(walk.stretches())
    return walk.lacks_within


@dataclass(slots=True)
class _Walk:
    """Goes along a log.

    Attributes:
        lacks_within: whether offsets lack within segments, as the cleaner leaves them.
    """

    log: PartitionLog
    spans: Sequence[tuple[int, int]]
    lacks_within: bool = False

    def stretches(self) -> Iterator[Stretch]:
        segments = self.log.segments
        walk, last = LogWalk(self.log), (segments[0].base_offset or 0) - 1 if segments else -1
        is_damaged = False
        for index, segment in enumerate(segments):
            begins = segment.base_offset or 0
            if begins > last + 1:
                yield Stretch(last + 1, begins, is_damaged)
                last = begins - 1
            is_damaged = False
            for item, read_until in walk.items(index, 0, last):
                if isinstance(item, Damage):
                    is_damaged = True
                elif isinstance(item, RecordBatch):
                    if item.base_offset > last + 1 and is_damaged:
                        yield Stretch(last + 1, item.base_offset, is_damaged=True)
                    elif item.magic == NEWEST_MAGIC:
                        self.lacks_within |= item.last_offset - last > item.records_count
                    yield from self._within(item)
                    is_damaged = False
                last = max(last, read_until)
        if is_damaged:
            yield Stretch(last + 1, OFFSETS_END, is_damaged=True)

    def _within(self, batch: RecordBatch) -> Iterator[Stretch]:
        if not any(first <= batch.last_offset and batch.base_offset <= last for first, last in self.spans):
            return
        items = list(iter_records(batch))
        if any(isinstance(item, Damage) for item in items):
            read = [item.offset for item in items if not isinstance(item, Damage)]
            ends = [batch.base_offset - 1, *read, batch.last_offset + 1]
            for one, other in pairwise(ends):
                if other > one + 1:
                    yield Stretch(one + 1, other, is_damaged=True)
