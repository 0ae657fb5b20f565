"""Where a group goes on among few records of both sides, said for each way in which they can differ."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from offsets_log.columnar.aligning import placing as pl
from offsets_log.columnar.aligning import table as tb
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.translation.answers import AT_LEAST, EXACT, Answer, Later
from offsets_log.translation.settling import Side, settle
from offsets_log.translation.sight import Pair, Sight
from offsets_log.translation.unread import Gaps, Stretch

FIRST = 100


def source(*prints: int | None) -> Side:
    """Records at 0, 1, 2, …; None where the source has none any more."""
    there = [(at, one) for at, one in enumerate(prints) if one is not None]
    return Side([at for at, _ in there], [one for _, one in there])


def target(*prints: int) -> Side:
    """Records at 100, 101, 102, …"""
    return Side(range(FIRST, FIRST + len(prints)), prints)


def again(at: int, count: int, surely: int) -> Answer:
    """From there on so many are read again at most; what is surely unread begins later."""
    return Answer(at, AT_LEAST, count, later=Later(surely, 0, surely - at))


@pytest.mark.parametrize(
    ("here", "there", "committed", "expected"),
    [
        pytest.param(source(1, 2, 3, 4), target(1, 2, 3, 4), 2, Answer(102, EXACT, 0), id="all alike"),
        pytest.param(
            source(1, 9, 9, 9, 2), target(1, 9, 9, 9, 2), 2, again(101, 3, 104), id="a run, of which any may be lost"
        ),
        pytest.param(source(1, 9, 9, 9, 2), target(1, 9, 9, 2), 2, again(101, 2, 103), id="a shorter run"),
        pytest.param(source(1, 2, 3), target(77, 1, 2, 3), 1, Answer(102, EXACT, 0), id="one the source lacks"),
        pytest.param(source(1, None, 3, 4), target(1, 2, 3, 4), 2, again(101, 1, 102), id="a hole it may fill"),
        pytest.param(source(1, 2, 3, 4), target(1, 2, 77, 4), 2, Answer(102, EXACT, 0), id="an unread one was changed"),
        pytest.param(source(1, 2, 3, 4), target(1, 77, 3, 4), 2, again(101, 1, 102), id="a read one may be changed"),
        pytest.param(
            source(9, 9), target(77, 9), 1, Answer(100, AT_LEAST, 2, later=Later(102, 0, 2)), id="an equal one may be"
        ),
        pytest.param(
            source(9, 9, 2), target(9, 77, 2), 2, again(101, 1, 102), id="one of several equal ones may be changed"
        ),
        pytest.param(source(1, None, None, 4), target(1, 2, 4), 2, again(101, 1, 102), id="half a hole"),
        pytest.param(source(9, 9, 9), target(9, 9, 9), 1, again(100, 3, 103), id="nothing but equal ones"),
        pytest.param(source(1, 9, 2), target(1, 9, 9, 2), 2, Answer(103, EXACT, 0), id="copied again"),
        pytest.param(source(1, 2, 3), target(1, 2, 3, 1), 1, None, id="an order that the source cannot have"),
    ],
)
def test_where_a_group_goes_on(here: Side, there: Side, committed: int, expected: Answer | None) -> None:
    found = settle(here, [-1, *here.offsets], there, committed, (-1, here.offsets[-1] + 1), FIRST + len(there.offsets))
    assert found == expected


# --------------------------------------------------------------------------------------- what is seen of both sides


def sight(*committed: int, made_of: int = tb.WHOLE, **facts: Any) -> Sight:
    state, asked, counts = pl.begin(np.array(committed))
    around, lacking = (np.full((len(committed), 2), pl.NONE, np.int64) for _ in range(2))
    facts = {"is_whole": True, "has_no_times": False} | facts
    return Sight(
        made_of, state, asked, counts, facts.pop("is_whole"), facts.pop("has_no_times"), around, lacking, **facts
    )


@pytest.mark.parametrize("chunks", [1, 2, 3, 6])
def test_what_the_source_has_and_lacks_around_offsets_is_noted_however_it_comes(chunks: int) -> None:
    """The source has 3, 4, 7, 8, 9 and 12, and its log ended at 15."""
    there = np.array([3, 4, 7, 8, 9, 12])
    asked = (0, 3, 4, 5, 7, 8, 10, 12, 13, 15, 20)
    seen = sight(*asked)
    for part in np.array_split(there, chunks):
        seen.note_around(part)
    seen.note_around(there[:0])
    seen.note_end(15)
    assert (seen.first_source, seen.last_source) == (3, 12)
    lacks = {*range(3), 5, 6, 10, 11, 13, 14}
    gaps = [(0, 2), (5, 6), (10, 11), (13, 14)]
    for i, one in enumerate(asked):
        assert seen.around[i].tolist() == [
            max((at for at in there.tolist() if at < one), default=-1),
            min((at for at in there.tolist() if at >= one), default=-1),
        ]
        assert seen.lacking[i].tolist() == [
            max((at for at in lacks if at < one), default=-1),
            next((first for first, last in gaps if last >= one), -1),
        ], one


@pytest.mark.parametrize(("end", "lacking"), [(0, -1), (3, -1), (4, -1), (5, 4), (9, 4)])
def test_a_log_that_ended_behind_its_last_record_lacks_the_rest(end: int, lacking: int) -> None:
    seen = sight(2)
    seen.note_around(np.arange(4))
    seen.note_end(end)
    assert seen.lacking[0].tolist() == [-1, lacking]


@pytest.mark.parametrize(
    ("lost", "behind"),
    [
        ((), 9),
        ((Stretch(4, 6, is_damaged=True),), 4),
        ((Stretch(0, 4, is_damaged=True),), 9),
        ((Stretch(7, 9, is_damaged=True),), 9),
    ],
)
def test_of_a_compacted_source_only_what_was_lost_lacks(lost: tuple[Stretch, ...], behind: int) -> None:
    """Its cleaner leaves gaps; what lies behind its last record is lost in any case."""
    seen = sight(2, is_compacted=True, lost=lost)
    seen.note_around(np.array([0, 1, 2, 3, 6, 7, 8]))
    seen.note_end(11)
    assert seen.lacking[0].tolist() == [-1, behind]


def test_gaps_between_segments_are_told_from_those_within() -> None:
    seen = Gaps([0, 7])
    seen.note(np.array([2, 3, 7]))
    assert (seen.between, seen.lacks_within) == ([Stretch(4, 7, is_damaged=False)], False)
    seen.note(np.array([8, 10]))
    assert ([(one.begin, one.end) for one in seen.between], seen.lacks_within) == ([(4, 7)], True)


@pytest.mark.parametrize(
    ("prints", "first", "last", "apart", "shows"),
    [
        (256, 0, 41, 10, True),
        (255, 0, 41, 10, False),
        (256, 0, 40, 10, False),
        (256, 5, 46, 10, True),
        (300, 0, 1, 0, True),
    ],
)
def test_how_far_equal_records_lie_apart_is_known_of_enough_that_go_on_far_enough(
    prints: int, first: int, last: int, apart: int, shows: bool
) -> None:
    seen = sight(2000, first_source=first, last_source=last, prints=prints, apart=apart)
    for gap, is_far in ((-1, True), (2000, False), (3024, False), (3025, shows)):
        seen.lacking[0, 1] = gap
        assert seen.is_complete(0) is is_far
    seen.lacking[0, 1] = 1500
    assert seen.before_lacking(0) == (475 if shows else 0)
    seen.lacking[0, 1] = 1000
    assert seen.before_lacking(0) == 0
    for gap, is_far in ((-1, True), (1999, False), (976, False), (975, shows)):
        seen.lacking[0, 0] = gap
        assert seen.is_sure(0) is is_far


@pytest.mark.parametrize(("made_of", "is_sure"), [(tb.WHOLE, True), (tb.WITHOUT_TIME, False)])
def test_a_compacted_source_does_not_show_how_far_cleaned_records_were_from_equal_ones(
    made_of: int, is_sure: bool
) -> None:
    facts = {"first_source": 0, "last_source": 9000, "prints": 300, "apart": 10, "is_compacted": True}
    seen = sight(2000, made_of=made_of, **facts)
    for gap, is_far in ((1990, False), (976, False), (975, is_sure)):
        seen.lacking[0, 0] = gap
        assert seen.is_sure(0) is is_far


@pytest.mark.parametrize(
    ("there", "found", "between", "placed", "is_mixed"),
    [
        (100, 79, 100, 79, True),
        (100, 80, 100, 79, False),
        (100, 79, 100, 80, False),
        (100, 100, 100, 0, False),
        (1000, 899, 1000, 899, True),
        (1000, 900, 1000, 899, False),
        (20, 0, 20, 0, False),
        (21, 0, 21, 0, True),
    ],
)
def test_partitions_are_mixed_where_more_than_20_and_a_tenth_of_both_sides_lack(
    there: int, found: int, between: int, placed: int, is_mixed: bool
) -> None:
    seen = sight(0, of_source=(found, there))
    seen.state.records, seen.state.records_before = between + 7, 3
    seen.state.records_front, seen.state.placed = between + 3, placed
    pair = Pair(*[PartitionLog(0, ())] * 2, *[None] * 3)  # type: ignore[arg-type]
    assert seen.is_mixed(pair) is is_mixed
    assert seen.is_mixed(replace(pair, is_same_count=False)) is (found < there or placed < between)


@pytest.mark.parametrize(("is_whole", "before", "lacks"), [(True, -1, False), (False, -1, True), (False, 0, False)])
def test_a_beginning_lacks_where_not_all_was_read_and_nothing_is_known_before(
    is_whole: bool, before: int, lacks: bool
) -> None:
    seen = sight(3, is_whole=is_whole)
    seen.asked.rows["before"] = before
    assert seen.lacks_a_beginning() is lacks


@pytest.mark.parametrize("made_of", [tb.WHOLE, tb.TIME_ALONE, tb.WITHOUT_TIME])
def test_without_times_only_what_needs_none_is_not_in_vain(made_of: int) -> None:
    assert not sight(0, made_of=made_of).is_vain
    assert sight(0, made_of=made_of, has_no_times=True).is_vain is (made_of != tb.WITHOUT_TIME)
