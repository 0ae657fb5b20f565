"""Records, groups, what has expired and what came later are taken out of a log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offsets_log.cleaner.drops import Drops
from offsets_log.cleaner.failures import CleaningError
from offsets_log.cleaner.opening import as_opened
from offsets_log.events import Event, Until
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.pipeline import iter_events
from offsets_log.replay.expiry import CLASSIC_ERA, DAY_MS, cycle_of
from offsets_log.replay.expiry import MODERN as MODERN_ERA
from offsets_log.replay.profile import CLASSIC, MODERN
from tests.builders import TIME, LogBuilder
from tests.cleaner.deep import SETTINGS, answers, contents, deep, in_segments, load, opened, random_log, without
from tests.conftest import DISTINCT, log_directories, read_partitions
from tests.sizes import examples


def logs(folder: Path) -> list[PartitionLog]:
    """All partitions as a broker opens them, in several segments."""
    found = (log for directory in log_directories(folder) for log in read_partitions(directory).values())
    return [as_opened(log, opened(log)) for log in found]


def offsets(log: PartitionLog) -> list[int]:
    return [event.record.offset for event in iter_events(log) if isinstance(event, Event)]


@pytest.mark.parametrize("name", DISTINCT)
def test_a_log_as_it_was(name: str, recording: Callable[[str], Path]) -> None:
    for log in logs(recording(name))[:4]:
        found = offsets(log)
        for at in found[len(found) // 3 :: max(1, len(found) // 2)]:
            made = without(log, Drops(until=Until(at)))
            for profile in (MODERN, CLASSIC):
                expected = load(log, profile, Until(at))
                assert answers(load(made, profile)) | {"problems": 0, "end_offset": 0} == answers(expected) | {
                    "problems": 0, "end_offset": 0,
                }  # fmt: skip
            assert opened(made).end_offset == at


@given(st.integers(0, 1 << 30), st.integers(0, 70))
@examples(12)
def test_a_random_log_as_it_was(seed: int, batch: int) -> None:
    log = in_segments(random_log(seed), 7)
    for until in (Until(batch), Until(time_ms=TIME + batch)):
        made = without(log, Drops(until=until))
        for profile in (MODERN, CLASSIC):
            one, other = answers(load(made, profile)), answers(load(log, profile, until))
            assert [one[name] for name in ("committed", "pending", "groups")] == [
                other[name] for name in ("committed", "pending", "groups")
            ]


@pytest.mark.parametrize("name", ["kafka-4.3-mixed", "kafka-3.9-classic", "kafka-4.3-modern-groups"])
def test_groups_go_with_all_of_theirs(name: str, recording: Callable[[str], Path]) -> None:
    def keeps(group: str) -> bool:
        return not fnmatchcase(group, "*e*")

    for log in logs(recording(name)):
        for made in (without(log, Drops(keeps_group=keeps)), deep(without(log, Drops(keeps_group=keeps))).log):
            for profile in (MODERN, CLASSIC):
                state = load(log, profile)
                shown = state.showing(keeps, lambda topic: True)
                left = [problem for problem in state.problems if problem.group is None or keeps(problem.group)]
                assert answers(load(made, profile)) == answers(replace(shown, problems=tuple(left)))
            assert opened(made).end_offset == opened(log).end_offset


@pytest.mark.parametrize("name", ["kafka-4.3-expired", "random-java"])
@pytest.mark.parametrize("era", [MODERN_ERA, CLASSIC_ERA], ids=lambda era: era.name)
def test_what_has_expired_goes(name: str, era: object, recording: Callable[[str], Path]) -> None:
    """As `expire` tells it: ``E-4``–``E-16``."""
    retention = era.retention(DAY_MS)  # type: ignore[attr-defined]
    profile = MODERN if era is MODERN_ERA else CLASSIC
    for log in logs(recording(name))[:12]:
        state = load(log, profile)
        now_ms = SETTINGS.now_ms
        cycle = cycle_of(state, now_ms, retention)
        gone = {offset.value.key for group in cycle for offset in group.offsets if offset.expired}
        removed = {group.group.group_id for group in cycle if group.removed}
        made = without(log, Drops(retention=retention))
        left = load(made, profile)
        orphans = {value.key for value in state.iter_orphans()}
        assert {value.key for value in left.committed} - orphans == {value.key for value in state.iter_served()} - gone
        assert set(left.pending) == set(state.pending)
        assert left.groups.keys() <= state.groups.keys() - removed


def test_a_record_goes_and_its_marker_stays() -> None:
    """``CL-35``."""
    log = LogBuilder().commit(1).commit(2, producer=5).end(5).commit(3, partition=1).log
    assert offsets(without(log, Drops(records=frozenset({1})))) == [0, 2, 3]
    assert offsets(deep(without(log, Drops(records=frozenset({1})))).log) == [0, 3]


def test_the_last_record_goes_and_the_log_ends_where_it_did() -> None:
    """``CL-21``, ``CL-32``."""
    made = without(LogBuilder().commit(1).commit(2).log, Drops(records=frozenset({1})))
    assert offsets(made) == [0]
    assert [len(segment.buffer) for segment in made.segments] == [LogBuilder().commit(1).log.size_bytes + 61]
    assert opened(made).end_offset == 2


@pytest.mark.parametrize("offset", [1, 7])
def test_only_a_record_of_data_can_be_dropped(offset: int) -> None:
    log = LogBuilder().commit(1, producer=5).end(5).log
    with pytest.raises(CleaningError, match=f"offset {offset} is there"):
        without(log, Drops(records=frozenset({offset})))


def test_segments_that_lose_nothing_are_not_copied() -> None:
    log = in_segments(LogBuilder().commit(1).commit(2).commit(3).commit(4).log, 2)
    made = without(log, Drops(records=frozenset({3})))
    assert contents(made)[0] == contents(log)[0]
    assert made.segments[0].buffer.obj is memoryview(log.segments[0].buffer).obj  # type: ignore[union-attr]


def test_a_coordinator_loads_again(recording: Callable[[str], Path]) -> None:
    """Every record that ends a load goes; then none does."""
    checked = 0
    for log in logs(recording("load-fails")):
        state = load(log, MODERN)
        ending = {problem.record_offset for problem in state.problems if problem.rule != "records:C2"}
        while ending:
            log = without(log, Drops(records=frozenset(ending)))
            ending = {problem.record_offset for problem in load(log, MODERN).problems if problem.rule != "records:C2"}
            checked += 1
    assert checked > 5
