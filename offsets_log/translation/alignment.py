"""Where committed offsets of a partition are in its copy, by the records that both sides have.

Each record of the target is looked up among those of the source, from a little before the least committed offset on
(`sight`); `placing` goes along the target and finds, for each committed offset, the first record that was not read,
and `settling` looks closer where equal or lost records leave that open.

What is told holds whatever was copied again, filtered, cleaned, or cut off, on either side. Records that one side lost
may say the same as others: how far apart equal ones lie in the source tells how far from such a loss a record may be
another than it seems. There the answer is that for an earlier offset.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar.aligning import placing as pl
from offsets_log.columnar.aligning import records as r
from offsets_log.columnar.aligning import table as tb
from offsets_log.columnar.aligning.reading import RowReader
from offsets_log.columnar.jit.records import Rows
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.translation.answers import AT_LEAST, BY_TIME, EXACT, Answer, Later, Told, Untold, Witness
from offsets_log.translation.moving import Lacking
from offsets_log.translation.settling import Side, last_run, settle
from offsets_log.translation.sight import END, Pair, Sight, data_of, look_along, prints_of
from offsets_log.translation.unread import Gaps

MARGIN = 1 << 16
"""So many offsets below the least committed one are read too: records that were read are found by them."""
MOST_LOOKED_AT = 1 << 16
"""Records between two that are looked at one by one."""

REACH = 1 << 14
"""So many offsets before the end are looked at for equal records there."""

MIXED = Untold("the target's partition has other records among its own: records were assigned to partitions again")


@dataclass(frozen=True, slots=True)
class Alignment:
    """What the records of a partition and its copy tell.

    Attributes:
        told: where each committed offset is in the target.
        only_here: which records of one side the other does not have, by each kind of prints that was looked for.
        source_gaps, target_gaps: offsets that the sides do not have.
        is_copied_again: whether copying has begun again somewhere.
    """

    told: dict[int, Told]
    only_here: tuple[Lacking, ...]
    source_gaps: Gaps
    target_gaps: Gaps
    is_copied_again: bool

    @property
    def is_nothing(self) -> bool:
        """Whether no record of one side was found on the other."""
        return all(isinstance(one, Untold) and one is not MIXED for one in self.told.values())


def align(pair: Pair, committed: Sequence[int]) -> Alignment:
    """Find where committed offsets are in the target."""
    asked = sorted(set(committed))
    end = pair.source_end if pair.is_end_told else max(asked[-1], pair.source_end)
    first = _look(pair, asked, tb.WHOLE, end)
    if first is not None and not first.is_nothing and pair.target_end > pair.target_start:
        return first
    found = _look(pair, asked, tb.WITHOUT_TIME, end if first is None else END)
    assert found is not None  # it needs no times
    if first is not None and not first.is_nothing:
        return replace(first, only_here=first.only_here + found.only_here)
    if not found.is_nothing:
        return found
    by_time = _look(pair, asked, tb.TIME_ALONE, end)
    told = dict(found.told)
    for offset, one in () if by_time is None else by_time.told.items():
        if isinstance(one, Answer):
            told[offset] = replace(one, how=BY_TIME, later=None)
    return replace(found, told=told, only_here=(*(() if first is None else first.only_here), *found.only_here))


def all_of(chunks: Iterable[Rows], *, is_source: bool) -> tuple[Lacking, ...]:
    """Return the records of a partition, as its rows, that the other side does not have at all."""
    found = Lacking(tb.WHOLE), Lacking(tb.WITHOUT_TIME)
    for rows in chunks:
        for one in found:
            prints = prints_of(data_of(rows), one.made_of)
            (one.of_source if is_source else one.of_target).add(prints)
    return found


def _look(pair: Pair, committed: Sequence[int], made_of: int, end: int, *, is_again: bool = False) -> Alignment | None:
    """Look with prints of one kind; return None if they need times that there are not.

    Args:
        end: where the source's log ended, as far as is known; END if the target may have records from behind.
        is_again: whether these are offsets before others, at which records may not be what they seem.
    """
    sight = _sight(pair, np.array(committed, np.int64), made_of, end)
    if sight.is_vain:
        return None
    told: dict[int, Told] = {}
    before: dict[int, tuple[int, int]] = {}
    for i, offset in enumerate(committed):
        told[offset] = placed(_told(pair, sight, i, made_of), sight.state, sight.asked[i])
        if isinstance(told[offset], Answer) and sight.around[i, 0] != pl.NONE and not sight.is_complete(i):
            before[offset] = 0 if is_again else sight.before_lacking(i), int(sight.asked[i].after)
    if before:
        others = _look(pair, sorted({one for one, _ in before.values()}), made_of, end, is_again=True)
        told |= {offset: _at_least(others.told[one], after) for offset, (one, after) in before.items() if others}
    is_copied_again = bool(sight.state.copied_again)
    return Alignment(told, (sight.only_here,), sight.source_gaps, sight.target_gaps, is_copied_again)


def _sight(pair: Pair, committed: a.Int64s, made_of: int, end: int) -> Sight:
    least = int(committed[0]) - MARGIN
    begins = pair.source.segments[0].base_offset if pair.source.segments else None
    sight = look_along(pair, committed, made_of, least if least > (begins or 0) else None, end)
    if sight.is_vain or not sight.lacks_a_beginning():
        return sight
    return look_along(pair, committed, made_of, None, end)


def placed(one: Told, state: pl.Placing, row: pl.Asked) -> Told:
    """Return the same with what is known to be read before it."""
    if isinstance(one, Untold):
        return one
    before = None if row.before == pl.NONE else int(row.before)
    is_record = bool(state.placed and one.target_offset <= state.last)
    is_own = row.after == one.target_offset and _is_committed(row)
    return replace(one, before=before, is_record=is_record, is_own=is_own, witnesses=_witnesses(row))


def _is_committed(row: pl.Asked) -> bool:
    """Whether the record of the target that is known to be unread is the one at the committed offset."""
    return bool(row.after_lowest == row.after_highest == row.committed)


def _witnesses(row: pl.Asked) -> tuple[Witness, ...]:
    return tuple(
        Witness(int(lowest), int(target), is_first)
        for target, lowest, highest, is_first in (
            (row.before, row.before_lowest, row.before_highest, False),
            (row.after, row.after_lowest, row.after_highest, True),
        )
        if target != pl.NONE and lowest == highest
    )


def _at_least(one: Told, after: int) -> Told:
    """Return the answer for an offset, as that for one behind it.

    Args:
        after: what seems to be the target's first record that is not read; NONE if none does.
    """
    if isinstance(one, Untold):
        return one
    later = None if after <= one.target_offset else Later(after, None, after - one.target_offset)
    return replace(one, how=AT_LEAST, reread_at_most=None, is_own=False, later=later)


# ---------------------------------------------------------------------------------------------------- what is told


def _told(pair: Pair, sight: Sight, i: int, made_of: int) -> Told:
    row, state = sight.asked[i], sight.state
    if not state.placed:
        if pair.target_end > pair.target_start:
            return Untold("no record of the target is one of the source's")
        is_all = sight.lacking[i, 0] == pl.NONE and not _reads_on(pair, row)
        return Answer(pair.target_end, *((EXACT, 0) if is_all else (AT_LEAST, None)))
    if made_of == tb.TIME_ALONE and 2 * state.placed < state.records:
        return Untold("few records of the target have times of the source's")
    if sight.is_mixed(pair):
        return MIXED
    if sight.around[i, 0] == pl.NONE and not sight.is_complete(i):
        first = row.after if row.unsure == pl.NONE else row.unsure  # nothing is known of what was read
        return Answer(int(first), AT_LEAST, None)
    one = _behind_all(pair, sight, row, made_of) if row.after == pl.NONE else _among(pair, sight, i, made_of)
    is_sure = sight.is_sure(i) or (one.reread_at_most == 0 and sight.is_in_order(i))
    return one if is_sure else replace(one, how=AT_LEAST, reread_at_most=None, later=None)


def _among(pair: Pair, sight: Sight, i: int, made_of: int) -> Answer:
    """Return the answer where a record of the target is known to be unread."""
    row = sight.asked[i]
    again = int(sight.counts[: i + 1].sum() - row.read_before)
    if not row.unsure_count:
        return Answer(int(row.after), EXACT, again)
    found = _settled(pair, sight, row, made_of)
    if found is None:
        count = int(row.unsure_count)
        found = Answer(int(row.unsure), AT_LEAST, count, later=Later(int(row.after), 0, count))
    later = found.later and replace(found.later, reread_at_most=(found.later.reread_at_most or 0) + again)
    return replace(found, reread_at_most=(found.reread_at_most or 0) + again, later=later)


def _behind_all(pair: Pair, sight: Sight, row: pl.Asked, made_of: int) -> Answer:
    """Return the answer where no record of the target is known to be unread."""
    state = sight.state
    if row.unsure == pl.NONE:
        if (found := _behind_the_last(pair, sight, made_of)) is not None:
            return found
        end = int(state.last) + 1
        is_beyond = row.committed > sight.last_source + 1  # records that were read may lack in the source's copy
        return Answer(end, AT_LEAST, None) if is_beyond or _reads_on(pair, row) else Answer(end, EXACT, 0)
    behind = int(state.records - state.records_front)
    found = _settled(pair, sight, row, made_of) or Answer(int(row.unsure), AT_LEAST, behind)
    if state.below > state.front:
        found = replace(found, how=AT_LEAST, reread_at_most=behind)
    if _reads_on(pair, row):
        found = replace(found, how=AT_LEAST, reread_at_most=None)
    return replace(found, later=None)  # nothing that is unread is known, and all would be missed


def _reads_on(pair: Pair, row: pl.Asked) -> bool:
    """Whether the source has read records behind the last that the target has.

    They may follow there, and be read again: the copy may have lost its end, or the target may not have got them yet.
    """
    high, committed = int(row.before_highest), int(row.committed)
    if committed <= high + 1:
        return False
    rows = _rows(pair.source_reader, pair.source, high + 1, committed - 1)
    return rows is None or len(data_of(rows)) > 0


def _behind_the_last(pair: Pair, sight: Sight, made_of: int) -> Answer | None:
    """Return where to go on if the target ends with another number of equal records than the source has in a row.

    Of more some may be unread; of fewer some that were read may follow there.
    """
    target = _rows(pair.reader, pair.target, int(sight.state.last) - REACH, int(sight.state.last))
    source = _rows(pair.source_reader, pair.source, sight.last_source - REACH, sight.last_source)
    if target is None or source is None:
        return None
    run, count = last_run(_side(target, made_of), _side(source, made_of))
    if len(run) == count:
        return None
    return Answer(run[count] if len(run) > count else int(sight.state.last) + 1, AT_LEAST, None)


def _settled(pair: Pair, sight: Sight, row: pl.Asked, made_of: int) -> Answer | None:
    """Look at the records between the last one known to be read and the first unread one; None for too many."""
    has_before, has_after = row.before != pl.NONE, row.after != pl.NONE
    low = int(row.before_lowest) if has_before else sight.first_source
    high = int(row.after_highest) if has_after else sight.last_source
    end = int(row.after) if has_after else int(sight.state.last) + 1
    first = int(row.before) + 1 if has_before else pair.target_start
    source = _rows(pair.source_reader, pair.source, low, high)
    target = _rows(pair.reader, pair.target, first, end - 1)
    if source is None or target is None:
        return None
    found = _side(target, made_of)
    if has_after and _is_committed(row) and set(found.prints) <= set(_side(source, made_of).prints):
        return Answer(end, EXACT, 0)
    there = ([] if has_before else [-1]) + source["offset"].tolist()
    between = low if has_before else -1, high if has_after else END
    return settle(_side(source, made_of), there, found, int(row.committed), between, end)


def _rows(reader: RowReader, log: PartitionLog, first: int, last: int) -> Rows | None:
    """Return the rows of a log from an offset to another, both included; None for too many."""
    found: list[Rows] = []
    count = 0
    for rows in reader.chunks(log, least=max(0, first)):
        within = rows[(rows["offset"] >= first) & (rows["offset"] <= last)]
        found.append(within)
        count += len(within)
        if count > MOST_LOOKED_AT:
            return None
        if rows["offset"][-1] >= last:
            break
    return np.concatenate([np.zeros(0, r.Noted.dtype), *found])


def _side(rows: Rows, made_of: int) -> Side:
    data = data_of(rows)
    return Side(data["offset"].tolist(), prints_of(data, made_of).tolist())
