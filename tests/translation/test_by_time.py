"""Translating by times that a live cluster is asked for: which time, and what its answers prove."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from offsets_log.columnar.aligning.reading import RowReader
from offsets_log.columnar.scan.layout import Scanner
from offsets_log.translation.answers import Answer, Untold
from offsets_log.translation.by_time import Found, by_times, times_to_ask
from tests.translation.logs import MARKER, Said, log_of


def asked(items: dict[int, int | None], committed: list[int], end: int, start: int = 0) -> dict[int, int | str]:
    """Ask of a log with records of these times; None is a transaction's marker."""
    log = log_of((offset, MARKER if time is None else Said(time, b"k", b"v")) for offset, time in items.items())
    with ExitStack() as stack:
        found = times_to_ask(RowReader(stack.enter_context(Scanner()), 1), log, committed, start, end)
    return {offset: "untold" if isinstance(one, Untold) else one for offset, one in found.items()}


def test_the_least_time_of_all_that_is_unread_counts() -> None:
    times = {0: 10, 1: 50, 2: 30, 3: 40, 4: 35, 5: 60}
    assert asked(times, [0, 1, 3, 5, 1], 6) == {0: 10, 1: 30, 3: 35, 5: 60}


def test_where_all_is_read_the_last_record_counts() -> None:
    assert asked({0: 10, 1: 9}, [2], 2) == {2: 9}
    assert asked({0: 10, 1: 9, 2: None}, [2, 3], 3) == {2: 9, 3: 9}


@pytest.mark.parametrize(
    ("times", "committed", "end", "start"),
    [
        ({0: 1, 1: 2}, 3, 2, 0),  # beyond the end
        ({5: 1, 6: 2}, 4, 7, 5),  # before the start
        ({0: 1, 2: 2}, 0, 3, 0),  # one was cleaned away
        ({0: 1, 1: 2}, 0, 3, 0),  # the end is missing
        ({0: 1, 1: -1}, 0, 2, 0),  # no time
        ({}, 0, 0, 0),
    ],
)
def test_where_no_time_is_sure(times: dict[int, int | None], committed: int, end: int, start: int) -> None:
    assert asked(times, [committed], end, start) == {committed: "untold"}


def test_what_was_cleaned_away_before_the_offset_does_not_matter() -> None:
    assert asked({0: 1, 3: 2, 4: 3}, [3], 5) == {3: 2}


def test_what_an_answer_proves() -> None:
    answers = {1: Found(70, 1, True), 2: Found(71, 3, True), 3: Found(-1, -1, None), 4: Found(72, 4, False)}
    told = by_times({10: 1, 11: 2, 12: 3, 13: 4}, answers)
    assert told.pop(10) == Answer(70, "by time", None)
    assert all(isinstance(one, Untold) for one in told.values())
    assert len(told) == 3
