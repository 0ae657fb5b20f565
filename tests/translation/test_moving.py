"""Records that were assigned to partitions again are known by one that lacks where it was, and is elsewhere."""

from __future__ import annotations

import random
from contextlib import ExitStack

import numpy as np
import pytest

from offsets_log.translation import moving
from offsets_log.translation.alignment import Alignment, align
from offsets_log.translation.moving import Lacking, are_moved
from tests.translation.logs import Said, log_of, pair_of

RECORDS = [[Said(1000 + at, b"%d" % number, b"%d" % at) for at in range(30)] for number in range(3)]


def align_all(source: list[list[Said]], target: list[list[Said]]) -> list[Alignment]:
    with ExitStack() as stack:
        logs = [[log_of(enumerate(records)) for records in side] for side in (source, target)]
        return [align(pair_of(stack, *pair, len(pair[1].segments[0].buffer)), [7]) for pair in zip(*logs, strict=True)]


def only_here(aligned: list[Alignment]) -> list[Lacking]:
    return [one for alignment in aligned for one in alignment.only_here]


@pytest.mark.parametrize("at", [0, 12, 29])
@pytest.mark.parametrize("to", [0, 25, 30])
def test_one_record_elsewhere_is_enough(at: int, to: int) -> None:
    first, second, third = ([*records] for records in RECORDS)
    second.insert(to, first.pop(at))
    is_old = at == to == 0  # as where retention cut both logs
    assert are_moved(only_here(align_all(RECORDS, [first, second, third]))) is not is_old


def test_all_records_elsewhere() -> None:
    first, second, third = RECORDS
    assert are_moved(only_here(align_all(RECORDS, [[], [*first, *second], third])))
    assert are_moved(only_here(align_all(RECORDS, [second, third, first])))


def test_records_without_their_times() -> None:
    first, second, third = ([Said(5, said.key, said.value) for said in records] for records in RECORDS)
    assert not are_moved(only_here(align_all(RECORDS, [first, second, third])))
    second.append(first.pop(3))
    assert are_moved(only_here(align_all(RECORDS, [first, second, third])))


def test_what_is_lost_filtered_or_copied_again_is_not_moved() -> None:
    first, second, third = RECORDS
    for target in ([first[5:], second[:-5], third[::2]], [first + first, second[3:9] + second, third[:0]]):
        assert not are_moved(only_here(align_all(RECORDS, target)))
        assert not are_moved(only_here(align_all(target, RECORDS)))


def test_equal_records_of_several_partitions_are_not_moved() -> None:
    marks = [Said(2000 + at, b"mark", None) for at in range(5)]
    source = [[*records, *marks] for records in RECORDS]
    assert not are_moved(only_here(align_all(source, [source[0], RECORDS[1], source[2]])))


def test_what_several_partitions_say_may_be_cut_off_anywhere() -> None:
    """Retention ends the logs of a source and of its copy at different places."""
    source = [[Said(1000, b"beat", None), *records[:9], Said(2000, b"beat", None), *records[9:]] for records in RECORDS]
    first, second, third = source
    for sides in ([first, second[1:], third[11:]], [first[5:], second, third[1:]]):
        assert not are_moved(only_here(align_all(sides, source)))
        assert not are_moved(only_here(align_all(source, sides)))
        assert not are_moved(only_here(align_all(sides, [first[12:], second, third])))


def test_of_many_prints_the_lowest_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moving, "MOST", 50)
    chosen = random.Random(5).sample(range(-5000, 5000), 2000)
    lacking = Lacking(0)
    for first in range(0, 2000, 100):
        lacking.of_source.add(np.array(chosen[first : first + 100], np.int64))
    lacking.of_target.add(np.array([max(chosen)], np.int64))
    assert lacking.of_source.prints.tolist() == sorted(chosen)[:50]
    assert not are_moved([lacking])
    lacking.of_target.add(np.array([sorted(chosen)[49]], np.int64))
    assert are_moved([lacking])
    assert not are_moved([lacking, Lacking(1)][1:])


def test_prints_of_different_kinds_are_not_compared() -> None:
    one, other = Lacking(0), Lacking(1)
    one.of_source.add(np.array([3], np.int64))
    other.of_target.add(np.array([3], np.int64))
    assert not are_moved([one, other])
