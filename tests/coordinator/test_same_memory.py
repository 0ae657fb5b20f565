"""What the cache remembers is what its log says: by construction, and here by trial."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offsets_log.coordinator.cache import GroupCoordinatorCache
from offsets_log.coordinator.log import MemoryLog
from offsets_log.coordinator.partition import LoadState
from offsets_log.coordinator.records import OffsetCommit, Producer
from offsets_log.coordinator.validation import NOBODY, MemberIdentity
from offsets_log.pipeline import iter_events, replay
from offsets_log.replay.coordinator_state import finish
from offsets_log.replay.releases import release_named
from tests.conftest import RECORDINGS, log_directories, read_json, read_partitions
from tests.coordinator.caches import (
    SMALL,
    Clock,
    OneLog,
    classic_group,
    member_row,
    memories,
    memory,
    newer_group,
    put,
    started,
)
from tests.coordinator.operations import (
    Commit,
    DeleteGroup,
    DeleteOffsets,
    EndTransaction,
    Operation,
    TransactionalCommit,
    Wait,
    perform,
)
from tests.sizes import examples

ONE = replace(SMALL, offsets_topic_num_partitions=1)

groups = st.sampled_from(("g", "h", "busy", "joined", "emptied"))
keys = st.tuples(st.sampled_from(("t", "u")), st.integers(0, 1))
offsets = st.dictionaries(
    keys,
    st.builds(
        OffsetCommit,
        st.integers(-1, 9),
        st.sampled_from(("", None, "m", "x" * 4097)),
        st.sampled_from((None, 3)),
    ),
    min_size=1,
    max_size=3,
)
producers = st.builds(Producer, st.sampled_from((7, 8)), st.sampled_from((0, 0, 0, 1)))
members = st.sampled_from((NOBODY, NOBODY, MemberIdentity("m", None, 3), MemberIdentity("m", None, 5)))
operations = st.one_of(
    st.builds(Commit, groups, offsets, members, st.sampled_from((None, None, 3_600_000))),
    st.builds(TransactionalCommit, groups, producers, offsets),
    st.builds(EndTransaction, producers, st.booleans()),
    st.builds(DeleteOffsets, groups, st.lists(keys, min_size=1, max_size=3)),
    st.builds(DeleteGroup, groups),
    st.builds(Wait, st.sampled_from((1, 24, 7 * 24))),
)


def with_earlier_groups(release: str) -> MemoryLog:
    """A log with groups that this cache did not make."""
    log, named = MemoryLog(), release_named(release)
    version = 3 if named.version >= (2, 3) else 1
    put(
        log,
        0,
        classic_group("busy", [member_row("m", "t")], version=version),
        classic_group("emptied", version=version),
    )
    if not named.profile.offsets_make_groups and named.version >= (3, 8):
        put(log, 0, *newer_group("joined", member_id="m"))
    return log


@pytest.mark.parametrize("release", ["4.3", "4.1", "4.0", "3.9-java", "3.7-java", "3.9", "2.8.2", "2.0"])
@examples(120)
@given(work=st.lists(operations, max_size=25))
def test_memory_after_any_work_is_the_memory_after_a_load(release: str, work: list[Operation]) -> None:
    """``B-12``; for the Scala coordinator it is the loaded memory that is held, not the live one of ``B-11``."""
    log, clock = with_earlier_groups(release), Clock()
    cache = started(release, log, clock=clock, config=ONE)
    for operation in work:
        perform(cache, clock, operation)
    again = started(release, log, clock=clock, config=ONE)
    failure = again.partition(0).failure
    assert failure is None or failure.is_served
    assert memories(cache, 1) == memories(again, 1)
    for group in ("g", "h", "busy", "joined", "emptied"):
        assert cache.fetch_offsets(group) == again.fetch_offsets(group)
    assert cache.list_groups() == again.list_groups()


@examples(60)
@given(work=st.lists(operations, max_size=25), at=st.integers(0, 25))
def test_an_election_in_the_midst_of_it_changes_nothing(work: list[Operation], at: int) -> None:
    """``L-43``: the new leader goes on where the old one was, fenced producers included."""
    logs = [with_earlier_groups("4.3"), with_earlier_groups("4.3")]
    answers = []
    for log, moves in zip(logs, (False, True), strict=True):
        clock = Clock()
        cache = started(log=log, clock=clock, config=replace(ONE, offsets_retention_check_interval_ms=0))
        for number, operation in enumerate(work):
            if moves and number == at:
                cache.on_resignation(0, 1)
                cache.on_election(0, 1)
            perform(cache, clock, operation)
        answers.append(memories(cache, 1))
    assert answers[0] == answers[1]
    assert logs[0].written(0) == logs[1].written(0)


LOADED = [name for name in RECORDINGS if name not in ("load-fails", "random-java", "random-scala")]


@pytest.mark.parametrize("name", LOADED)
def test_a_recorded_log_is_loaded_as_the_replay_of_it(name: str, recording: Callable[[str], Path]) -> None:
    folder = recording(name)
    release = "4.3" if read_json(folder / "recording.json")["coordinator"] == "java" else "3.9"
    profile = release_named(release).profile
    for directory in log_directories(folder):
        logs = read_partitions(directory)
        cache = GroupCoordinatorCache(OneLog(logs), Clock(), release=release)
        cache.startup()
        for number, log in logs.items():
            expected = finish(replay(iter_events(log), profile, on_damage=lambda damage: None))
            cache.on_election(number, 0)
            found = cache.partition(number)
            assert found.failure == expected.failure
            if found.load_state is LoadState.LOADED:
                assert memory(cache.state(number)) == memory(expected)
            else:
                assert expected.as_broker().groups == {}
