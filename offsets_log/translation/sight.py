"""Going along a partition and its copy: which records of the target are where in the source, as far as prints tell.

A record's print is made of its time and of what it says. Prints of the source are in a table, with the lowest and the
highest offset of each; a source larger than one table is looked up part by part. What the source lacks around
committed offsets is noted, too, and how far apart equal records lie there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar.aligning import placing as pl
from offsets_log.columnar.aligning import records as r
from offsets_log.columnar.aligning import table as tb
from offsets_log.columnar.aligning.reading import BEGINNING, RowReader, no_times
from offsets_log.columnar.jit.records import Rows, Table
from offsets_log.log_format.batch import NO_TIMESTAMP
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.translation.moving import Lacking
from offsets_log.translation.unread import Gaps, Stretch, lost_of

END = 1 << 62
"""Behind all offsets."""
MOST_IN_TABLE = 3_000_000
MOST_LACKING = 20
"""Records of one side that may lack on the other before more than a tenth is doubtful."""
FEW = 256
"""Fewer prints do not show how far apart equal records lie."""
LOCAL = 4
"""Equal records lie near each other where the source goes on for so many times as far as they are apart."""
LEAST_APART = 1024
"""Lost records may be equal to others within so many offsets, though what is left shows none that are.

A producer that sends batches again makes equal records some batches apart, and all of them may be at the loss.
"""


class Store(Protocol):
    """Keeps arrays that together may be larger than the memory."""

    def append(self, array: a.Int64s) -> None:
        """Take another. Raises OutputError."""

    def __len__(self) -> int: ...

    def read(self, number: int) -> a.Int64s:
        """Return one. Raises OutputError."""

    def write(self, number: int, array: a.Int64s) -> None:
        """Replace one by another of its size. Raises OutputError."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A partition and its copy.

    Attributes:
        target_start: no earlier record of the target can be read.
        target_end: where its log ends.
        is_same_count: whether the topic has as many partitions on both sides, as far as that is known.
        source_end: where the source's log is known to have ended, if its copy ends before.
        is_end_told: whether its broker said so when it stopped: then committed offsets from behind prove no records.
        is_compacted: whether the source's cleaner removed what lacks within segments without damage: of each key
            records before another one.
        ahead: passes on what an iterator yields, which another thread may have made already.
    """

    source: PartitionLog
    target: PartitionLog
    reader: RowReader
    source_reader: RowReader
    make_store: Callable[[], Store]
    target_start: int = 0
    target_end: int = 0
    ahead: Callable[[Iterator[Rows]], Iterator[Rows]] = field(default=lambda chunks: chunks)
    is_same_count: bool = True
    source_end: int = 0
    is_end_told: bool = False
    is_compacted: bool = False


@dataclass(slots=True)
class Sight:
    """What one way of looking found.

    Attributes:
        made_of: what the prints are made of.
        is_whole: whether both sides were read from their beginning.
        has_no_times: whether records were met that do not have the time of their producer.
        around: of each committed offset, the last offset below it that the source has, and the first at or behind it.
        lacking: the last offset below it that the source does not have, those that were not read among them; and the
            first one of the gap at or behind it.
        of_source: how many prints of the source the target has, and how many the source has between the first of them
            and the last.
        first_source, last_source: the first offset that was read of the source, and the last that it has.
        prints: how many different ones the source has.
        apart: how far apart equal records of the source lie at most.
        is_compacted: as of the pair. The cleaner leaves no record before a later one of its key that it removes.
        lost: what a compacted source lacks by other than the cleaner's work.
        only_here: which records of one side the other does not have.
        source_gaps, target_gaps: offsets that the sides do not have.
    """

    made_of: int
    state: pl.Placing
    asked: Table[pl.Asked]
    counts: a.Int64s
    is_whole: bool
    has_no_times: bool
    around: a.Int64s
    lacking: a.Int64s
    of_source: tuple[int, int] = (0, 0)
    first_source: int = -1
    last_source: int = -1
    prints: int = 0
    apart: int = 0
    is_compacted: bool = False
    lost: Sequence[Stretch] = ()
    source_gaps: Gaps = field(default_factory=Gaps)
    target_gaps: Gaps = field(default_factory=Gaps)
    only_here: Lacking = field(init=False)

    def __post_init__(self) -> None:
        self.only_here = Lacking(self.made_of)

    @property
    def is_vain(self) -> bool:
        """Whether it needs times that there are not."""
        return self.has_no_times and self.made_of != tb.WITHOUT_TIME

    @property
    def may_have_more(self) -> bool:
        """Whether records of the target that seem to be copied again may be from behind the source's end."""
        is_again = bool(self.state.below > self.state.front)
        has_equals = self.apart > 0
        return is_again or has_equals if self.made_of == tb.WITHOUT_TIME else is_again and has_equals

    def note_around(self, offsets: a.Int64s) -> None:
        """Go on with offsets of the source, which rise."""
        if not len(offsets):
            return
        committed = self.asked.rows["committed"]
        at = np.searchsorted(offsets, committed)
        self.around[at > 0, 0] = offsets[at[at > 0] - 1]
        is_first = (at < len(offsets)) & (self.around[:, 1] == pl.NONE)
        self.around[is_first, 1] = offsets[at[is_first]]
        first, behind = self.source_gaps.note(offsets)
        if self.first_source < 0:
            self.first_source = int(offsets[0])
            if self.first_source > 0:  # what it had before is lost
                first, behind = np.append(0, first), np.append(self.first_source, behind)
        if len(first):
            self._note_lacking(first, behind - 1)
        self.last_source = int(offsets[-1])

    def note_end(self, end: int) -> None:
        """End with the source's last offset, where its log ended at another."""
        if end > self.last_source + 1:
            self._note_lacking(np.array([self.last_source + 1]), np.array([end - 1]), is_lost=True)

    def _note_lacking(self, first: a.Int64s, last: a.Int64s, *, is_lost: bool = False) -> None:
        """Go on with ranges of offsets that the source does not have.

        Args:
            is_lost: whether they lack by other than the cleaner's work, whatever the topic's policy is.
        """
        committed = self.asked.rows["committed"]
        below = np.searchsorted(first, committed) - 1
        is_below = below >= 0
        self.lacking[is_below, 0] = np.minimum(last[below[is_below]], committed[is_below] - 1)
        if self.is_compacted and not is_lost:
            of_lost = [
                any(one.begin <= until and one.end > since for one in self.lost)
                for since, until in zip(first.tolist(), last.tolist(), strict=True)
            ]
            first, last = first[of_lost], last[of_lost]
        behind = np.searchsorted(last, committed)
        is_first = (behind < len(last)) & (self.lacking[:, 1] == pl.NONE)
        self.lacking[is_first, 1] = first[behind[is_first]]

    def count(self, slots: Table[tb.Slot]) -> None:
        """Count what was found of a part, and what there is between; note what was not."""
        found, there = tb.share_found(slots)
        self.of_source = self.of_source[0] + found, self.of_source[1] + there
        prints, apart = tb.spread(slots)
        self.prints, self.apart = self.prints + prints, max(self.apart, apart)
        left, is_before = tb.not_found(slots)
        self.only_here.add_of_source(left, is_before & (self.of_source[0] == found))

    @property
    def _shows_equals(self) -> bool:
        """Whether it is known how far apart equal records lie, and that is not far."""
        return self.prints >= FEW and self.last_source - self.first_source > LOCAL * self.apart

    @property
    def _reach(self) -> int:
        """How far from a loss a record may be another than it seems."""
        return max(self.apart, LEAST_APART)

    def is_complete(self, i: int) -> bool:
        """Whether no record that the source lacks from a committed offset on may be one that seems to be another."""
        behind = int(self.lacking[i, 1])
        is_far = behind - int(self.asked[i].committed) > self._reach
        return behind == pl.NONE or (self._shows_equals and is_far)

    def before_lacking(self, i: int) -> int:
        """Return an offset before a committed one that is not complete: it may be."""
        return max(0, int(self.lacking[i, 1]) - self._reach - 1) if self._shows_equals else 0

    def is_sure(self, i: int) -> bool:
        """Whether no record that the source lacks before a committed offset may be one that seems to be another.

        A cleaned one may be equal to a later one of its key, and what the cleaner left does not show how far apart such
        lie; without times that may be anywhere.
        """
        before, committed = int(self.lacking[i, 0]), int(self.asked[i].committed)
        shows_equals = self._shows_equals and not (self.is_compacted and self.made_of == tb.WITHOUT_TIME)
        return before == pl.NONE or (shows_equals and committed - before > self._reach)

    def is_in_order(self, i: int) -> bool:
        """Whether the target has the source's last record before a committed offset right before the first unread one.

        Then no record that is lost from before that one is taken for an unread one: it would come before it.
        """
        row, around = self.asked[i], self.around[i, 0]
        if row.after == pl.NONE:
            return bool(row.unsure == pl.NONE)
        is_last = around != pl.NONE and around > self.lacking[i, 0]
        is_next = is_last and row.before_lowest == row.before_highest == around
        return bool(is_next and row.after < self.state.last)

    def is_mixed(self, pair: Pair) -> bool:
        """Whether partitions were assigned again: too much of one side is not on the other.

        What is filtered or cleaned lacks on one side only, if both have the same partitions.
        """
        found, there = self.of_source
        behind = int(self.state.records - self.state.records_front)
        between = int(self.state.records - self.state.records_before) - behind
        lacking = [(there - found, there), (between - int(self.state.placed), between)]
        if not pair.is_same_count:
            return any(count > 0 for count, _ in lacking)
        return all(count > max(MOST_LACKING, total // 10) for count, total in lacking)

    def lacks_a_beginning(self) -> bool:
        """Whether something is behind no record that is known to be read, and one could be where it was not looked."""
        return not self.is_whole and bool((self.asked.rows["before"] == pl.NONE).any())


def prints_of(rows: Rows, made_of: int) -> a.Int64s:
    """Return the prints of data records."""
    found = np.empty(len(rows), np.int64)
    tb.prints(Table(r.Noted, rows), made_of, found)
    return found


def look_along(pair: Pair, committed: a.Int64s, made_of: int, least: int | None, end: int) -> Sight:
    """Go along both sides, until it turns out to be vain.

    Args:
        least: the source is read from this offset on, and the target from the first time there; None for all of both.
        end: where the source's log ended, be its last records lost or not.
    """
    state, asked, counts = pl.begin(committed)
    around, lacking = (np.full((len(asked), 2), pl.NONE, np.int64) for _ in range(2))
    sight = Sight(
        made_of,
        state,
        asked,
        counts,
        is_whole=least is None,
        has_no_times=False,
        around=around,
        lacking=lacking,
        is_compacted=pair.is_compacted,
        lost=lost_of(pair.source.since(max(0, least or 0))) if pair.is_compacted else (),
        source_gaps=Gaps.of(pair.source, max(0, least or 0)),
    )
    parts = _parts(pair, made_of, max(0, least or 0), sight)
    part = next(parts)
    following = next(parts, None)
    is_timed = least is not None and following is None and made_of != tb.WITHOUT_TIME and part.count > 0
    since = part.since if is_timed else BEGINNING
    sight.target_gaps = Gaps.of(pair.target, pair.target_start if since == BEGINNING else None)
    looked_up = _looked_up(pair, part, made_of, since, sight)
    if following is not None:
        looked_up = _in_all(pair.make_store(), looked_up, following, parts, made_of, sight)
    for found in looked_up:
        is_nowhere = found[:, 3] == tb.NOWHERE_HIGHEST
        is_old = np.logical_and.accumulate(is_nowhere) & (state.placed == 0)
        sight.only_here.add_of_target(found[is_nowhere, 1], is_old[is_nowhere])
        pl.place(state, asked, counts, np.ascontiguousarray(found[:, 0]), np.ascontiguousarray(found[:, 2:4]))
    if not state.placed:
        sight.only_here.nothing_in_both()
    sight.note_end(END if sight.may_have_more else end)
    pl.end(state, asked, counts)
    return sight


def data_of(rows: Rows) -> Rows:
    """Return the rows of data records."""
    controls = rows["flags"] & r.IS_CONTROL != 0
    return np.ascontiguousarray(rows[~controls]) if controls.any() else rows


@dataclass(slots=True)
class _Part:
    """Records of the source on their way into a table: offsets and prints, how many, and their times."""

    chunks: list[tuple[a.Int64s, a.Int64s]] = field(default_factory=list)
    count: int = 0
    since: int = int(np.iinfo(np.int64).max)
    until: int = BEGINNING

    def add(self, data: Rows, found: a.Int64s) -> None:
        if len(data):
            self.chunks.append((np.ascontiguousarray(data["offset"]), found))
            self.count += len(data)
            self.since = min(self.since, int(data["time"].min()))
            self.until = max(self.until, int(data["time"].max()))

    def table(self) -> Table[tb.Slot]:
        """Move the records into a table: of several parts only one is one at a time."""
        slots = tb.slots_for(self.count)
        while self.chunks:
            offsets, found = self.chunks.pop()
            tb.put(slots, found, offsets)
        return slots


def _parts(pair: Pair, made_of: int, least: int, sight: Sight) -> Iterator[_Part]:
    """Yield the parts of the source from an offset on, at least one."""
    part, is_first = _Part(), True
    for rows in pair.ahead(pair.source_reader.chunks(pair.source, least=least)):
        data = data_of(rows)
        sight.note_around(rows["offset"])
        sight.has_no_times |= bool((data["time"] == NO_TIMESTAMP).any())
        part.add(data, prints_of(data, made_of))
        if part.count > MOST_IN_TABLE:
            yield part
            part, is_first = _Part(), False
    if part.count or is_first:
        yield part


def _looked_up(pair: Pair, part: _Part, made_of: int, since: int, sight: Sight) -> Iterator[a.Int64s]:
    """Yield the target's data records: offset, print, lowest and highest offset in the source, time."""
    slots = part.table()
    for rows in pair.ahead(pair.reader.chunks(pair.target, least=pair.target_start, since=since)):
        sight.target_gaps.note(rows["offset"])
        data = data_of(rows)
        if len(data) and data["offset"][0] < pair.target_start:
            data = np.ascontiguousarray(data[data["offset"] >= pair.target_start])
        sight.has_no_times |= no_times(data)
        if sight.is_vain:
            return
        found = prints_of(data, made_of)
        places = tb.nowhere(len(data))
        tb.look_up(slots, found, places)
        yield np.column_stack([data["offset"], found, places, data["time"]])
    sight.count(slots)


def _in_all(
    store: Store, looked_up: Iterator[a.Int64s], following: _Part, parts: Iterator[_Part], made_of: int, sight: Sight
) -> Iterator[a.Int64s]:
    """Look up in the other parts too what was looked up in the first one; parts of other times are passed over."""
    times: list[tuple[int, int]] = []
    for found in looked_up:
        store.append(found)
        times.append((int(found[:, 4].min()), int(found[:, 4].max())) if len(found) else (1, 0))
    part: _Part | None = following
    while part is not None and not sight.is_vain:
        slots = part.table()
        for number, (since, until) in enumerate(times):
            if made_of != tb.WITHOUT_TIME and (until < part.since or since > part.until):
                continue
            found = store.read(number)
            places = np.ascontiguousarray(found[:, 2:4])
            if tb.look_up(slots, np.ascontiguousarray(found[:, 1]), places):
                found[:, 2:4] = places
                store.write(number, found)
        sight.count(slots)
        del slots
        part = next(parts, None)
    yield from (store.read(number) for number in range(len(store)))
