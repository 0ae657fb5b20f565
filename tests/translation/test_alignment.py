"""Records of both sides aligned: no record is missed, and where copies are unique the first unread one is found.

The same examples are drawn each time; OFFSETS_LOG_MORE=N draws N times as many, others each time.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from offsets_log.translation import alignment, sight
from offsets_log.translation.alignment import align
from offsets_log.translation.answers import AT_LEAST, AT_MOST, BY_COUNT, BY_TIME, EXACT, Answer
from tests.sizes import so_many
from tests.translation.logs import MARKER, Said, log_of, pair_of

PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
MORE = int(os.environ.get("OFFSETS_LOG_MORE", "0"))


Items = list[tuple[int, Said | None]]


def examples(count: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Draw so many examples, the same each time unless more are asked for."""
    return settings(
        deadline=None,
        phases=PHASES,
        max_examples=so_many(count) * max(1, MORE),
        derandomize=not MORE,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


@dataclass(frozen=True)
class Case:
    """A source and its copy.

    Attributes:
        source: offset → what the record says, None for a marker; as it is on disk now.
        target: the same of the copy.
        copied: offset in the target → offset in the source, of all records that are there.
        is_plain: whether no two records are the same, and none is cleaned.
        is_compacted: whether the source lacks what its cleaner took, and nothing else.
        end: where the source's log ended.
    """

    source: Items
    target: Items
    copied: dict[int, int]
    is_plain: bool
    end: int = 70
    is_compacted: bool = False


def _cleaned(draw: st.DrawFn, items: Items) -> Items:
    """Return what a cleaner leaves that came so far: of each key the last record there."""
    until = draw(st.integers(0, len(items)))
    last = {said.key: offset for offset, said in items[:until] if said is not None}
    kept = [(offset, said) for offset, said in items[:until] if said is None or last[said.key] == offset]
    return kept + items[until:]


@st.composite
def cases(draw: st.DrawFn, *, is_plain: bool) -> Case:
    """A source, mirrored with restarts and without what a filter drops; then both are cleaned or cut at the front."""
    size, kind = draw(st.integers(1, 60)), "plain" if is_plain else draw(st.sampled_from(["same", "compact", "cut"]))
    source: Items = []
    offset, equal = draw(st.integers(0, 5)), 1 if is_plain else draw(st.sampled_from([1, 1, 20]))
    for number in range(size):
        if draw(st.integers(0, 9)) == 0:
            source.append((offset, None))
        elif kind == "same":
            source.append((offset, Said(1000 + draw(st.integers(0, 3)), None, draw(st.sampled_from([b"a", b"b"])))))
        else:
            key, time_ms = str(draw(st.integers(0, 7))).encode(), 1000 + draw(st.integers(-50, 50))
            source.append((offset, Said(time_ms, key, str(number // equal).encode())))
        offset += 1
    drops = {draw(st.sampled_from(source))[1]} if not is_plain and draw(st.booleans()) else set()
    target: Items = []
    copied: dict[int, int] = {}
    place, at = draw(st.integers(0, 9)), draw(st.integers(0, size // 2))
    while at < size:
        now, said = source[at]
        if said is not None and said not in drops:
            target.append((place, said))
            copied[place] = now
            place += 1
        at += 1
        if draw(st.integers(0, 19)) == 0:
            at = max(0, at - draw(st.integers(0, 10)))
        if draw(st.integers(0, 19)) == 0:
            target.append((place, None))
            place += 1
    if kind == "compact":
        source, target = _cleaned(draw, source), _cleaned(draw, target)
    if kind == "cut":
        source, target = source[draw(st.integers(0, size)) :], target[draw(st.integers(0, 9)) :]
    there = {offset for offset, _ in target}
    copied = {place: at for place, at in copied.items() if place in there}
    return Case(source, target, copied, is_plain, offset, kind == "compact")


@st.composite
def runs(draw: st.DrawFn) -> Case:
    """Runs of equal records: both sides are cut at the front, and one of them loses any."""
    lengths = draw(st.lists(st.integers(1, 25), min_size=1, max_size=4))
    base, first = draw(st.integers(0, 3)), draw(st.integers(0, 9))
    said = [Said(1000 + i, b"k", b"v") for i, length in enumerate(lengths) for _ in range(length)]
    source: Items = [(base + i, one) for i, one in enumerate(said)]
    copies = source[draw(st.integers(0, len(source) - 1)) : draw(st.integers(0, len(source)))]
    lost = draw(st.sets(st.integers(base, base + len(said)), max_size=12))
    if draw(st.booleans()):
        source = [item for item in source if item[0] not in lost] or source
    else:
        copies = [item for item in copies if item[0] not in lost]
    source = source[draw(st.sampled_from([0, draw(st.integers(0, len(source) - 1))])) :]
    target: Items = [(first + i, one) for i, (_, one) in enumerate(copies)]
    return Case(source, target, {first + i: at for i, (at, _) in enumerate(copies)}, False, base + len(said))


def missed(case: Case, committed: int, target_offset: int) -> set[int]:
    """Return the offsets of unread records of the source all copies of which lie before an answer."""
    unread = {offset for offset in case.copied.values() if offset >= committed}
    return unread - {offset for place, offset in case.copied.items() if place >= target_offset}


def read_again(case: Case, committed: int, target_offset: int) -> tuple[int, int]:
    """Return how many read records lie behind an answer: before the first unread one, and at all."""
    behind = [offset < committed for place, offset in sorted(case.copied.items()) if place >= target_offset]
    return (behind.index(False) if False in behind else len(behind)), sum(behind)


def _check(case: Case, codecs: tuple[str, str] = ("none", "none")) -> None:
    """Check the answers for all offsets of the source, and with those behind its end, which it then has lost."""
    _check_answers(case, codecs, range(case.end + 1), is_plain=case.is_plain)
    if case.end < 70:
        _check_answers(case, codecs, range(70), is_plain=False)


def _check_answers(case: Case, codecs: tuple[str, str], wanted: range, *, is_plain: bool) -> None:
    end = max((offset for offset, _ in case.target), default=-1) + 1
    with ExitStack() as stack:
        pair = pair_of(stack, log_of(case.source, codec=codecs[0]), log_of(case.target, batch=2, codec=codecs[1]), end)
        told = align(replace(pair, is_compacted=case.is_compacted), wanted).told
    present = {offset for offset, said in case.source if said is not None}
    copies = [offset for _, offset in sorted(case.copied.items())]
    is_doubled = any(one == other for one, other in pairwise(copies))  # may be two records that are equal
    for committed in wanted:
        one = told[committed]
        if not isinstance(one, Answer):
            assert not present & set(case.copied.values())
            continue
        assert not missed(case, committed, one.target_offset), (committed, one)
        directly, at_all = read_again(case, committed, one.target_offset)
        if one.reread_at_most is None:
            assert one.how == AT_LEAST
        else:
            assert one.reread_at_most >= at_all or one.how == BY_TIME, (committed, one, at_all)
        if one.later is not None:
            assert len(missed(case, committed, one.later.target_offset)) <= one.later.skipped
            again = one.later.reread_at_most
            assert again is None or read_again(case, committed, one.later.target_offset)[1] <= again
        if is_plain:
            assert all(case.copied[seen.target_offset] == seen.source_offset for seen in one.witnesses)
        if (is_plain and not is_doubled) or one.how in (EXACT, BY_COUNT):
            assert not directly, (committed, one)


@examples(150)
@given(cases(is_plain=True))
def test_unique_records_are_found_exactly(case: Case) -> None:
    _check(case)


@examples(300)
@given(cases(is_plain=False))
def test_no_record_is_missed(case: Case) -> None:
    _check(case)


@examples(200)
@given(runs())
def test_runs_of_equal_records_miss_none_wherever_some_are_lost(case: Case) -> None:
    _check(case)


@examples(60)
@given(cases(is_plain=False))
def test_a_source_of_several_tables_is_answered_alike(case: Case) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sight, "MOST_IN_TABLE", 5)
        patch.setattr("offsets_log.columnar.aligning.reading.ROWS", 4)
        _check(case)


@examples(25)
@given(cases(is_plain=False), st.integers(0, 9), st.integers(1, 3))
def test_little_that_is_looked_at_tells_nothing_wrong(case: Case, margin: int, most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alignment, "MARGIN", margin)
        patch.setattr(alignment, "MOST_LOOKED_AT", most)
        patch.setattr(alignment, "REACH", margin)
        for committed in (case.source[0][0] + 20, case.end - 1):
            _check_answers(case, ("none", "none"), range(committed, 70), is_plain=False)


@examples(20)
@given(cases(is_plain=False), st.sampled_from(["gzip", "snappy", "lz4", "zstd"]))
def test_compression_may_differ(case: Case, codec: str) -> None:
    _check(case, ("none", codec))


LOST = (
    "a1 - a3 b0 b0 a0 a1 a0 b0 a2 - b0 b1 b3 a2 b3 b0 b1 - a0 - b0 b1 - a2 b0 a2 b3 a0 a0 a3 b3 a2 a0 b3 b1 b1 a3 a3 "
    "b3 a2 b0 a2 b1 b3 b2 a2 a1 b2 b0"
)


@pytest.mark.parametrize(
    ("said", "base", "copies"),
    [
        ("p1 a1 a2 b3 c4 d5 q6 a1 b3 c4 d5 e0", 0, [7, 8, 9, 10, 9, 10, 11]),
        (LOST, 3, [*range(18, 21), 22, 24, 25, 28, 28, *range(30, 35), *range(36, 43), 44, *range(46, 49), 50, 51, 52]),
    ],
    ids=["begun again", "begun again and filtered"],
)
def test_copies_that_begin_again_are_not_taken_for_equal_records_before(
    said: str, base: int, copies: list[int]
) -> None:
    records = [None if one == "-" else Said(1000 + int(one[1]), None, one[0].encode()) for one in said.split()]
    source: Items = [(base + i, one) for i, one in enumerate(records)]
    target: Items = [(7 + i, records[at - base]) for i, at in enumerate(copies)]
    _check(Case(source, target, {7 + i: at for i, at in enumerate(copies)}, False, base + len(source)))


def told_of(source: Items, target: Items, committed: list[int], **facts: bool) -> list[tuple[int, str, int | None]]:
    with ExitStack() as stack:
        pair = pair_of(stack, log_of(source), log_of(target), target[-1][0] + 1)
        told = align(replace(pair, **facts), committed).told
    return [(one.target_offset, one.how, one.reread_at_most) for one in told.values() if isinstance(one, Answer)]


def unlike(first: int, behind: int, said: Callable[[int], bytes] = b"%d".__mod__) -> Items:
    return [(at, Said(1000 + at, b"k", said(at))) for at in range(first, behind)]


def test_a_source_that_begins_among_equal_records_tells_no_bound() -> None:
    """Records before it may be equal to those behind a committed offset, and copies of either."""
    run: Items = [(at, Said(1000, b"k", b"v")) for at in range(11, 22)]
    target: Items = [(at, Said(1000, b"k", b"v")) for at in range(7)]
    assert told_of(run, target, [13, 22]) == [(0, AT_LEAST, None), (7, AT_LEAST, None)]


def test_few_records_around_lost_ones_are_not_what_they_seem() -> None:
    lost = [item for item in unlike(0, 12) if item[0] != 7]
    target = [(at + 100, said) for at, said in unlike(0, 12)]
    assert told_of(lost, target, [3, 6, 9]) == [(100, AT_LEAST, None), (100, AT_LEAST, None), (109, EXACT, 0)]
    assert told_of(lost, target, [3, 6], is_compacted=True) == [(103, EXACT, 0), (106, EXACT, 0)]
    many = [item for item in unlike(0, 600) if item[0] != 307]
    copies = [(at + 100, said) for at, said in unlike(0, 600)]
    assert told_of(many, copies, [303, 306, 309]) == [
        (100, AT_LEAST, None),
        (100, AT_LEAST, None),
        (409, EXACT, 0),
    ]


@pytest.mark.parametrize("first", [0, 1, 2, 7])
def test_a_source_may_begin_anywhere(first: int) -> None:
    """Retention removed its first records; copies in their order show that none of them is taken for another."""
    target = [(at + 100, said) for at, said in unlike(0, 14)]
    assert told_of(unlike(first, 14), target, [8, 14]) == [(108, EXACT, 0), (114, EXACT, 0)]


def test_records_missing_at_the_beginning_of_a_source_may_be_what_others_seem() -> None:
    """The record of 0 says what that of 9 says."""
    target = [(at + 100, unlike(9, 10)[0][1] if at == 0 else said) for at, said in unlike(0, 14)]
    assert told_of(unlike(1, 14), target, [8]) == [(100, AT_LEAST, None)]


def test_changed_records_are_not_passed() -> None:
    """A value that was masked on its way makes another record of it, unread or read."""
    target = [(at + 100, Said(said.time_ms, said.key, b"*") if 40 <= at < 45 else said) for at, said in unlike(0, 60)]
    assert told_of(unlike(0, 60), target, [40, 42, 45]) == [(140, EXACT, 0), (140, AT_LEAST, 5), (140, AT_LEAST, 5)]
    assert told_of(unlike(0, 45), target[:45], [40, 45]) == [(140, EXACT, 0), (140, AT_LEAST, None)]


def test_of_many_records_that_no_other_tells_apart_the_first_may_be_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are looked at one by one if they are not too many."""
    target = [(at + 100, Said(said.time_ms, said.key, b"*") if 40 <= at < 45 else said) for at, said in unlike(0, 60)]
    for most, expected in ((7, 0), (6, 5)):
        monkeypatch.setattr(alignment, "MOST_LOOKED_AT", most)
        assert told_of(unlike(0, 60), target, [40]) == [(140, AT_LEAST if expected else EXACT, expected)]


def test_records_of_the_target_before_its_start_are_not_there() -> None:
    """In the batch that the start is in, others may lie before it."""
    source, target = unlike(0, 12), [(at + 100, said) for at, said in unlike(0, 12)]
    with ExitStack() as stack:
        pair = pair_of(stack, log_of(source), log_of(target), 112)
        told = [align(replace(pair, target_start=start), [3]).told[3] for start in (103, 104, 105)]
    assert [one.target_offset for one in told if isinstance(one, Answer)] == [103, 104, 105]


def test_where_nothing_near_a_committed_offset_was_copied_the_source_is_read_from_its_beginning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(alignment, "MARGIN", 10)
    source = unlike(0, 600)
    target = [(at + 100, said) for at, said in source if not 50 <= at < 300]
    with ExitStack() as stack:
        told = align(pair_of(stack, log_of(source), log_of(target), 700), [200]).told[200]
    assert isinstance(told, Answer)
    assert (told.target_offset, told.how, told.before) == (400, EXACT, 149)


def test_a_target_cleaned_as_the_source_begins_at_the_answer() -> None:
    """What was committed lies before all that the cleaner left: the first record may be the copy of a cleaned one."""
    source, target = unlike(2030, 2400), [(at - 1660, said) for at, said in unlike(2030, 2400)]
    assert told_of(source, target, [1623], is_compacted=True) == [(370, AT_LEAST, None)]


def test_a_cleaned_record_before_an_offset_may_be_equal_to_one_behind_it() -> None:
    said = [Said(1000, b"k%d" % (at % 3), b"v") if at in (3, 6) else one for at, one in unlike(0, 40)]
    source = [(at, one) for at, one in enumerate(said) if at != 3]
    target = [(at + 100, one) for at, one in enumerate(said)]
    told = told_of(source, target, [3, 4, 7], is_compacted=True)
    assert told == [(103, EXACT, 0), (103, AT_LEAST, None), (107, EXACT, 0)]


def test_what_follows_the_copy_of_a_record_that_may_be_a_lost_one_may_be_read() -> None:
    """The target ends with copies of two lost records, of which the first is equal to the source's last one."""
    last, lost = Said(1000, b"k", b"same"), Said(1000, b"k", None)
    assert told_of([(6, last)], [(103, last), (104, lost)], [7]) == [(104, AT_LEAST, None)]


def test_nothing_beside_lost_records_is_skipped() -> None:
    source = [item for item in unlike(0, 600) if item[0] not in (300, 301, 302)]
    target = [(at + 100, said) for at, said in unlike(0, 600)]
    with ExitStack() as stack:
        told = align(pair_of(stack, log_of(source), log_of(target), 700), [301]).told[301]
    assert isinstance(told, Answer)
    assert told == Answer(100, AT_LEAST, None)
    assert told.skipping() == Answer(403, AT_MOST, None, skipped=303)


@pytest.mark.parametrize(
    ("copied", "committed", "expected"),
    [
        (10, 10, (110, EXACT, 0)),
        (10, 12, (110, EXACT, 0)),
        (9, 9, (109, EXACT, 0)),
        (9, 10, (109, AT_LEAST, None)),
        (8, 9, (108, AT_LEAST, None)),
        (9, 12, (109, AT_LEAST, None)),
        (10, 13, (110, AT_LEAST, None)),
    ],
)
def test_the_end_of_a_target_is_exact_where_the_source_has_no_read_record_that_is_not_there(
    copied: int, committed: int, expected: tuple[int, str, int | None]
) -> None:
    """Markers are no records; what was committed beyond the source's copy may be of records that it lacks."""
    source: Items = [*unlike(0, 10), (10, MARKER), (11, MARKER)]
    assert told_of(source, [(at + 100, said) for at, said in unlike(0, copied)], [committed]) == [expected]
