"""Records of both sides aligned: no record is missed, and where copies are unique the first unread one is found."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from offsets_log.translation import alignment
from offsets_log.translation.alignment import align
from offsets_log.translation.answers import AT_LEAST, BY_COUNT, BY_TIME, EXACT, Answer
from tests.translation.logs import Said, log_of, pair_of

PHASES = (Phase.explicit, Phase.reuse, Phase.generate)


Items = list[tuple[int, Said | None]]


@dataclass(frozen=True)
class Case:
    """A source and its copy.

    Attributes:
        source: offset → what the record says, None for a marker; as it is on disk now.
        target: the same of the copy.
        copied: offset in the target → offset in the source, of all records that are there.
        is_plain: whether no two records are the same, and none is cleaned.
    """

    source: Items
    target: Items
    copied: dict[int, int]
    is_plain: bool


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
    offset = draw(st.integers(0, 5))
    for number in range(size):
        if draw(st.integers(0, 9)) == 0:
            source.append((offset, None))
        elif kind == "same":
            source.append((offset, Said(1000 + draw(st.integers(0, 3)), None, draw(st.sampled_from([b"a", b"b"])))))
        else:
            key, time_ms = str(draw(st.integers(0, 7))).encode(), 1000 + draw(st.integers(-50, 50))
            source.append((offset, Said(time_ms, key, str(number).encode())))
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
    return Case(source, target, {place: offset for place, offset in copied.items() if place in there}, is_plain)


def missed(case: Case, committed: int, target_offset: int) -> set[int]:
    """Return the offsets of unread records of the source all copies of which lie before an answer."""
    unread = {offset for offset in case.copied.values() if offset >= committed}
    return unread - {offset for place, offset in case.copied.items() if place >= target_offset}


def read_again(case: Case, committed: int, target_offset: int) -> tuple[int, int]:
    """Return how many read records lie behind an answer: before the first unread one, and at all."""
    behind = [offset < committed for place, offset in sorted(case.copied.items()) if place >= target_offset]
    return (behind.index(False) if False in behind else len(behind)), sum(behind)


def _check(case: Case, codecs: tuple[str, str] = ("none", "none")) -> None:
    wanted = range(70)
    end = max((offset for offset, _ in case.target), default=-1) + 1
    with ExitStack() as stack:
        pair = pair_of(stack, log_of(case.source, codec=codecs[0]), log_of(case.target, batch=2, codec=codecs[1]), end)
        told = align(pair, wanted)
    present = {offset for offset, said in case.source if said is not None}
    for committed in wanted:
        one = told[committed]
        if not isinstance(one, Answer):
            assert not present & set(case.copied.values())
            continue
        assert not missed(case, committed, one.target_offset), (committed, one)
        directly, at_all = read_again(case, committed, one.target_offset)
        if one.reread_at_most is None:  # more may follow at the end of the target
            behind = max(offset for offset, said in case.target if said is not None) + 1
            assert (one.how, one.target_offset) == (AT_LEAST, behind)
            continue
        assert one.reread_at_most >= at_all or one.how == BY_TIME, (committed, one, at_all)
        if case.is_plain or one.how in (EXACT, BY_COUNT):
            assert not directly, (committed, one)


@settings(deadline=None, phases=PHASES, max_examples=150)
@given(cases(is_plain=True))
def test_unique_records_are_found_exactly(case: Case) -> None:
    _check(case)


@settings(deadline=None, phases=PHASES, max_examples=300)
@given(cases(is_plain=False))
def test_no_record_is_missed(case: Case) -> None:
    _check(case)


@settings(deadline=None, phases=PHASES, max_examples=60)
@given(cases(is_plain=False))
def test_a_source_of_several_tables_is_answered_alike(case: Case) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alignment, "MOST_IN_TABLE", 5)
        patch.setattr("offsets_log.columnar.aligning.reading.ROWS", 4)
        _check(case)


@settings(deadline=None, phases=PHASES, max_examples=20)
@given(cases(is_plain=False), st.sampled_from(["gzip", "snappy", "lz4", "zstd"]))
def test_compression_may_differ(case: Case, codec: str) -> None:
    _check(case, ("none", codec))
