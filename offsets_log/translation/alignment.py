"""Where committed offsets of a partition are in its copy, by the records that both sides have.

A record's print is made of its time and of what it says. Each record of the target is looked up among those of the
source, from a little before the least committed offset on; `placing` goes along the target and finds, for each
committed offset, the first record that was not read, and `settling` looks closer where equal or lost records leave
that open. Nothing is asked of how far apart copies of records lie: prints are in a table, and a source larger than one
table is looked up part by part.

Over 400 lines: what is told depends on all that going along both sides left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar.aligning import placing as pl
from offsets_log.columnar.aligning import records as r
from offsets_log.columnar.aligning import table as tb
from offsets_log.columnar.aligning.reading import BEGINNING, RowReader, no_times
from offsets_log.log_format.batch import NO_TIMESTAMP
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.translation.answers import AT_LEAST, BY_TIME, EXACT, Answer, Told, Untold
from offsets_log.translation.settling import Side, last_run, settle

MARGIN = 1 << 16
"""So many offsets below the least committed one are read too: records that were read are found by them."""
MOST_IN_TABLE = 3_000_000
MOST_LOOKED_AT = 1 << 16
"""Records between two that are looked at one by one."""
MOST_LACKING = 20
"""Records of one side that may lack on the other before more than a tenth is doubtful."""
REACHES = (1 << 10, 1 << 14)
"""So many offsets before and behind a committed one are looked at one by one, the second if the first settles nothing.
"""

MIXED = Untold("the target's partition has other records among its own: records were assigned to partitions anew")


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
        ahead: passes on what an iterator yields, which another thread may have made already.
    """

    source: PartitionLog
    target: PartitionLog
    reader: RowReader
    source_reader: RowReader
    make_store: Callable[[], Store]
    target_start: int = 0
    target_end: int = 0
    ahead: Callable[[Iterator[a.Int64s]], Iterator[a.Int64s]] = field(default=lambda chunks: chunks)
    is_same_count: bool = True


@dataclass(slots=True)
class _Sight:
    """What one way of looking found.

    Attributes:
        is_whole: whether both sides were read from their beginning.
        has_no_times: whether records were met that do not have the time of their producer.
        around: of each committed offset, the last offset below it that the source has, and the first at or behind it.
        of_source: how many prints of the source the target has, and how many the source has between the first of them
            and the last.
        last_source: the last offset that the source has.
    """

    state: a.Int64s
    asked: a.Int64s
    counts: a.Int64s
    is_whole: bool
    has_no_times: bool
    around: a.Int64s
    of_source: tuple[int, int] = (0, 0)
    last_source: int = -1

    def note_around(self, offsets: a.Int64s) -> None:
        """Go on with offsets of the source, which rise."""
        if len(offsets):
            self.last_source = int(offsets[-1])
            at = np.searchsorted(offsets, self.asked[:, pl.COMMITTED])
            self.around[at > 0, 0] = offsets[at[at > 0] - 1]
            is_first = (at < len(offsets)) & (self.around[:, 1] == pl.NONE)
            self.around[is_first, 1] = offsets[at[is_first]]

    def count(self, part: _Part) -> None:
        """Count what was found of a part, and what there is between."""
        found, there = tb.share_found(part.slots)
        self.of_source = self.of_source[0] + found, self.of_source[1] + there

    def is_mixed(self, pair: Pair) -> bool:
        """Whether partitions were assigned anew: too much of one side is not on the other.

        What is filtered or cleaned lacks on one side only, if both have the same partitions.
        """
        found, there = self.of_source
        behind = int(self.state[pl.RECORDS] - self.state[pl.RECORDS_FRONT])
        between = int(self.state[pl.RECORDS] - self.state[pl.RECORDS_BEFORE]) - behind
        lacking = [(there - found, there), (between - int(self.state[pl.PLACED]), between)]
        if not pair.is_same_count:
            return any(count > 0 for count, _ in lacking)
        return all(count > max(MOST_LACKING, total // 10) for count, total in lacking)

    def lacks_a_beginning(self) -> bool:
        """Whether something is behind no record that is known to be read, and one could be where it was not looked."""
        return not self.is_whole and bool((self.asked[:, pl.BEFORE] == pl.NONE).any())


def align(pair: Pair, committed: Sequence[int]) -> dict[int, Told]:
    """Return where each committed offset is in the target."""
    asked = np.array(sorted(set(committed)), np.int64)
    told = _look(pair, asked, tb.WHOLE)
    if told is None or _is_nothing(told):
        told = _look(pair, asked, tb.WITHOUT_TIME) or {}
    if _is_nothing(told):
        by_time = _look(pair, asked, tb.TIME_ALONE) or {}
        told |= {offset: _by_time(one) for offset, one in by_time.items() if isinstance(one, Answer)}
    return told


def _is_nothing(told: dict[int, Told]) -> bool:
    """Whether no record of one side was found on the other."""
    return all(isinstance(one, Untold) and one is not MIXED for one in told.values())


def _by_time(one: Answer) -> Answer:
    return replace(one, how=BY_TIME)


def _look(pair: Pair, committed: a.Int64s, made_of: int) -> dict[int, Told] | None:
    """Look with prints of one kind; return None if they need times that there are not."""
    least = int(committed[0]) - MARGIN
    begins = pair.source.segments[0].base_offset if pair.source.segments else None
    sight = _sight(pair, committed, made_of, least if least > (begins or 0) else None)
    if sight.lacks_a_beginning():
        sight = _sight(pair, committed, made_of, None)
    if sight.has_no_times and made_of != tb.WITHOUT_TIME:
        return None
    return {
        int(row[pl.COMMITTED]): placed(_told(pair, sight, i, made_of), sight.state, row)
        for i, row in enumerate(sight.asked)
    }


def placed(one: Told, state: a.Int64s, row: a.Int64s) -> Told:
    """Return the same with what is known to be read before it."""
    if isinstance(one, Untold):
        return one
    before = None if row[pl.BEFORE] == pl.NONE else int(row[pl.BEFORE])
    is_record = bool(state[pl.PLACED] and one.target_offset <= state[pl.LAST])
    is_own = row[pl.AFTER] == one.target_offset and row[pl.AFTER_LOWEST] == row[pl.AFTER_HIGHEST] == row[pl.COMMITTED]
    return replace(one, before=before, is_record=is_record, is_own=bool(is_own))


# ------------------------------------------------------------------------------------------ both sides, chunk by chunk


def _prints(rows: a.Int64s, made_of: int) -> a.Int64s:
    found = np.empty(len(rows), np.int64)
    tb.prints(rows, made_of, found)
    return found


@dataclass(slots=True)
class _Part:
    """A table of a part of the source, and the least and the latest time there."""

    slots: a.Int64s
    since: int
    until: int


def _sight(pair: Pair, committed: a.Int64s, made_of: int, least: int | None) -> _Sight:
    """Go along both sides.

    Args:
        least: the source is read from this offset on, and the target from the first time there; None for all of both.
    """
    state, asked, counts = pl.begin(committed)
    sight = _Sight(state, asked, counts, least is None, False, np.full((len(asked), 2), pl.NONE, np.int64))
    parts = _parts(pair, made_of, max(0, least or 0), sight)
    part = next(parts)
    following = next(parts, None)
    is_timed = least is not None and following is None and made_of != tb.WITHOUT_TIME
    since = part.since if is_timed else BEGINNING
    looked_up = _looked_up(pair, part, made_of, since, sight)
    if following is not None:
        looked_up = _in_all(pair.make_store(), looked_up, following, parts, made_of, sight)
    for found in looked_up:
        pl.place(state, asked, counts, np.ascontiguousarray(found[:, 0]), np.ascontiguousarray(found[:, 2:4]))
    sight.count(part)
    pl.end(state, asked, counts)
    return sight


def _data(rows: a.Int64s) -> a.Int64s:
    """Return the rows of data records."""
    controls = rows[:, r.FLAGS] & r.IS_CONTROL != 0
    return np.ascontiguousarray(rows[~controls]) if controls.any() else rows


@dataclass(slots=True)
class _Held:
    """Records of the source on their way into a table: offsets and prints, how many, and their times."""

    chunks: list[tuple[a.Int64s, a.Int64s]] = field(default_factory=list)
    count: int = 0
    since: int = int(np.iinfo(np.int64).max)
    until: int = BEGINNING

    def add(self, data: a.Int64s, found: a.Int64s) -> None:
        if len(data):
            self.chunks.append((np.ascontiguousarray(data[:, : r.OFFSET + 1]), found))
            self.count += len(data)
            self.since = min(self.since, int(data[:, r.TIME].min()))
            self.until = max(self.until, int(data[:, r.TIME].max()))

    def part(self) -> _Part:
        slots = tb.slots_for(self.count)
        for rows, found in self.chunks:
            tb.put(slots, found, rows)
        return _Part(slots, self.since if self.count else BEGINNING, self.until)


def _parts(pair: Pair, made_of: int, least: int, sight: _Sight) -> Iterator[_Part]:
    """Yield the tables of the source from an offset on, at least one."""
    held, is_first = _Held(), True
    for rows in pair.ahead(pair.source_reader.chunks(pair.source, least=least)):
        data = _data(rows)
        sight.note_around(rows[:, r.OFFSET])
        sight.has_no_times |= bool((data[:, r.TIME] == NO_TIMESTAMP).any())
        held.add(data, _prints(data, made_of))
        if held.count > MOST_IN_TABLE:
            part, held, is_first = held.part(), _Held(), False
            yield part
    if held.count or is_first:
        yield held.part()


def _looked_up(pair: Pair, part: _Part, made_of: int, since: int, sight: _Sight) -> Iterator[a.Int64s]:
    """Yield the target's data records: offset, print, lowest and highest offset in the source, time."""
    for rows in pair.ahead(pair.reader.chunks(pair.target, least=pair.target_start, since=since)):
        data = _data(rows)
        if pair.target_start and len(data) and data[0, r.OFFSET] < pair.target_start:
            data = np.ascontiguousarray(data[data[:, r.OFFSET] >= pair.target_start])
        sight.has_no_times |= no_times(data)
        found = _prints(data, made_of)
        places = tb.nowhere(len(data))
        tb.look_up(part.slots, found, places)
        yield np.column_stack([data[:, r.OFFSET], found, places, data[:, r.TIME]])


def _in_all(
    store: Store, looked_up: Iterator[a.Int64s], following: _Part, parts: Iterator[_Part], made_of: int, sight: _Sight
) -> Iterator[a.Int64s]:
    """Look up in the other parts too what was looked up in the first one; parts of other times are passed over."""
    times: list[tuple[int, int]] = []
    for found in looked_up:
        store.append(found)
        times.append((int(found[:, 4].min()), int(found[:, 4].max())) if len(found) else (1, 0))
    part: _Part | None = following
    while part is not None:
        for number, (since, until) in enumerate(times):
            if made_of != tb.WITHOUT_TIME and (until < part.since or since > part.until):
                continue
            found = store.read(number)
            places = np.ascontiguousarray(found[:, 2:4])
            if tb.look_up(part.slots, np.ascontiguousarray(found[:, 1]), places):
                found[:, 2:4] = places
                store.write(number, found)
        sight.count(part)
        part = None  # its table, before the next one is made
        part = next(parts, None)
    yield from (store.read(number) for number in range(len(store)))


# ---------------------------------------------------------------------------------------------------- what is told


def _told(pair: Pair, sight: _Sight, i: int, made_of: int) -> Told:
    row, state = sight.asked[i], sight.state
    if not state[pl.PLACED]:
        if pair.target_end > pair.target_start:
            return Untold("no record of the target is one of the source's")
        return Answer(pair.target_end, EXACT, 0)
    if made_of == tb.TIME_ALONE and 2 * state[pl.PLACED] < state[pl.RECORDS]:
        return Untold("few records of the target have times of the source's")
    if sight.is_mixed(pair):
        return MIXED
    low, high = (int(offset) for offset in sight.around[i])
    if low == pl.NONE and high != row[pl.COMMITTED]:
        first = row[pl.AFTER] if row[pl.UNSURE] == pl.NONE else row[pl.UNSURE]  # nothing is known of what is unread
        return Answer(int(first), AT_LEAST, None)
    again = 0 if row[pl.AFTER] == pl.NONE else int(sight.counts[: i + 1].sum() - row[pl.READ_BEFORE])
    is_next = row[pl.AFTER_LOWEST] == row[pl.AFTER_HIGHEST] == row[pl.COMMITTED]
    if high != pl.NONE and not _is_plain(pair, sight, row, low, high):
        settled = _settled(pair, sight, row, made_of)
        if settled is not None:
            return _bounded(settled, again, is_first=low == pl.NONE, is_last=row[pl.AFTER] in (pl.NONE, state[pl.LAST]))
        is_next = is_next and low == row[pl.COMMITTED] - 1
    if row[pl.AFTER] == pl.NONE:
        return _behind_all(pair, sight, i, made_of)
    if not row[pl.UNSURE_COUNT] or is_next:
        return Answer(int(row[pl.AFTER]), EXACT, again)
    return Answer(int(row[pl.UNSURE]), AT_LEAST, int(row[pl.UNSURE_COUNT]) + again)


def _bounded(settled: Answer, again: int, *, is_first: bool, is_last: bool) -> Answer:
    """Add what comes again behind an answer.

    Args:
        is_first: whether nothing is known of the source before the committed offset: what is before it may be equal.
        is_last: whether no other record of the target is known to be unread.
    """
    if is_first and (is_last or settled.how == AT_LEAST):
        return Answer(settled.target_offset, AT_LEAST, None)
    bound = settled.reread_at_most
    return replace(settled, reread_at_most=None if bound is None else bound + again)


def _is_plain(pair: Pair, sight: _Sight, row: a.Int64s, low: int, high: int) -> bool:
    """Whether the source lacks nothing from before a committed offset up to the first unread record of the target."""
    committed, is_last = int(row[pl.COMMITTED]), row[pl.AFTER] == pl.NONE
    after = sight.last_source if is_last else int(row[pl.AFTER_HIGHEST])
    if low + 1 != committed or high != committed:
        return False
    if row[pl.AFTER_LOWEST] == after == committed:
        return True
    if after - committed >= MOST_LOOKED_AT:
        return False
    rows = _rows(pair.source_reader, pair.source, committed, after)
    is_sure = not row[pl.UNSURE_COUNT] or (is_last and rows is not None and not len(_data(rows)))
    return bool(is_sure) and rows is not None and len(rows) == after - committed + 1


def _behind_all(pair: Pair, sight: _Sight, i: int, made_of: int) -> Answer:
    """Return the answer where no record of the target is known to be unread."""
    row, state = sight.asked[i], sight.state
    if row[pl.UNSURE] == pl.NONE:
        if (found := _behind_the_last(pair, sight, made_of)) is not None:
            return found
        end = int(state[pl.LAST]) + 1
        return Answer(end, AT_LEAST, None) if _reads_on(pair, row) else Answer(end, EXACT, 0)
    low, committed = int(row[pl.BEFORE_HIGHEST]), int(row[pl.COMMITTED])
    behind = int(state[pl.RECORDS] - state[pl.RECORDS_FRONT])
    if row[pl.BEFORE_LOWEST] == low and committed - low <= MOST_LOOKED_AT:
        rows = _rows(pair.source_reader, pair.source, low, committed - 1)
        controls = 0 if rows is None else int((rows[:, r.FLAGS] & r.IS_CONTROL != 0).sum())
        if rows is not None and committed - low - 1 == controls:  # nothing that was read is behind it
            return Answer(int(row[pl.UNSURE]), EXACT, behind - int(row[pl.UNSURE_COUNT]))
    return Answer(int(row[pl.UNSURE]), AT_LEAST, behind)


def _reads_on(pair: Pair, row: a.Int64s) -> bool:
    """Whether the source has read records behind the last that the target has.

    They may follow there, and be read again: the copy may have lost its end, or the target may not have got them yet.
    """
    high, committed = int(row[pl.BEFORE_HIGHEST]), int(row[pl.COMMITTED])
    if committed <= high + 1:
        return False
    rows = _rows(pair.source_reader, pair.source, high + 1, committed - 1)
    return rows is None or len(_data(rows)) > 0


def _behind_the_last(pair: Pair, sight: _Sight, made_of: int) -> Answer | None:
    """Return where unread records may be among equal ones at the end, of which the target has more than the source."""
    reach = REACHES[-1]
    target = _rows(pair.reader, pair.target, int(sight.state[pl.LAST]) - reach, int(sight.state[pl.LAST]))
    source = _rows(pair.source_reader, pair.source, sight.last_source - reach, sight.last_source)
    if target is None or source is None:
        return None
    run, count = last_run(_side(target, made_of), _side(source, made_of))
    return Answer(run[count], AT_LEAST, None) if len(run) > count else None


def _settled(pair: Pair, sight: _Sight, row: a.Int64s, made_of: int) -> Answer | None:
    """Look at the records around a committed offset and around where it may be."""
    committed, last = int(row[pl.COMMITTED]), int(sight.state[pl.LAST])
    has_before, has_after = row[pl.BEFORE] != pl.NONE, row[pl.AFTER] != pl.NONE
    after = int(row[pl.AFTER]) if has_after else last + 1
    first = max(pair.target_start, pair.target.segments[0].base_offset or 0)
    for reach in REACHES:
        low, high = committed - reach, committed + reach
        since, until = after - reach, after + reach
        if has_before:
            low, since = min(low, int(row[pl.BEFORE_LOWEST])), min(since, int(row[pl.BEFORE]))
        if has_after:
            high = max(high, int(row[pl.AFTER_HIGHEST]))
        source = _rows(pair.source_reader, pair.source, low, high)
        target = _rows(pair.reader, pair.target, max(first, since), until)
        if source is None or target is None:
            return None
        ends = since <= first, until > last and high > sight.last_source
        settled = settle(_side(source, made_of), _side(target, made_of), committed, after, ends)
        if settled is not None:
            return settled
    return None


def _rows(reader: RowReader, log: PartitionLog, first: int, last: int) -> a.Int64s | None:
    """Return the rows of a log from an offset to another, both included; None for too many."""
    found: list[a.Int64s] = []
    count = 0
    for rows in reader.chunks(log, least=max(0, first)):
        within = rows[(rows[:, r.OFFSET] >= first) & (rows[:, r.OFFSET] <= last)]
        found.append(within)
        count += len(within)
        if count > MOST_LOOKED_AT:
            return None
        if rows[-1, r.OFFSET] >= last:
            break
    return np.concatenate([np.zeros((0, r.COLUMNS), np.int64), *found])


def _side(rows: a.Int64s, made_of: int) -> Side:
    data = _data(rows)
    controls = rows[rows[:, r.FLAGS] & r.IS_CONTROL != 0]
    has_transactions = bool((rows[:, r.FLAGS] & r.IS_TRANSACTIONAL != 0).any())
    prints = _prints(data, made_of).tolist()
    return Side(data[:, r.OFFSET].tolist(), prints, controls[:, r.OFFSET].tolist(), has_transactions)
