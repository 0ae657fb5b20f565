"""Who answers for a group whose records are in another offsets partition than its own."""

from __future__ import annotations

import pytest

from offsets_log.broker.home import at_home
from offsets_log.log_format.java_text import MalformedString
from offsets_log.pipeline import iter_events, replay
from offsets_log.replay.coordinator_state import CoordinatorState, finish
from offsets_log.replay.partition_count import PartitionCount
from offsets_log.replay.partition_for import partition_for
from offsets_log.replay.profile import PROFILES
from tests.builders import LogBuilder

TOLD = PartitionCount(4, "option")
GROUP = "g"
HOME = partition_for(GROUP, 4)
AWAY = (HOME + 1) % 4


def state(profile: str, **offsets: int) -> CoordinatorState:
    log = LogBuilder()
    for group, offset in offsets.items():
        log.commit(offset, group=group)
    return finish(replay(iter_events(log.log), PROFILES[profile], on_damage=lambda damage: None))


def offsets(found: CoordinatorState) -> dict[str, int]:
    return {value.group: value.committed_offset for value in found.iter_served()}


@pytest.mark.parametrize("profile", ["modern", "classic"])
def test_a_group_whose_own_partition_is_not_there_is_answered_by_nobody(profile: str) -> None:
    found = at_home({AWAY: state(profile, **{GROUP: 5})}, TOLD)
    assert {partition: offsets(each) for partition, each in found.items()} == {AWAY: {}}


@pytest.mark.parametrize(("profile", "at"), [("modern", {}), ("classic", {GROUP: 5})])
def test_one_cache_of_all_partitions_answers_where_the_name_leads(profile: str, at: dict[str, int]) -> None:
    found = at_home({AWAY: state(profile, **{GROUP: 5}), HOME: state(profile)}, TOLD)
    assert {partition: offsets(each) for partition, each in found.items()} == {AWAY: {}, HOME: at}


@pytest.mark.parametrize("profile", ["modern", "classic"])
def test_what_its_own_partition_has_of_a_group_counts(profile: str) -> None:
    found = at_home({AWAY: state(profile, **{GROUP: 5}), HOME: state(profile, **{GROUP: 6})}, TOLD)
    assert {partition: offsets(each) for partition, each in found.items()} == {AWAY: {}, HOME: {GROUP: 6}}


def test_a_name_that_is_not_utf_8_is_asked_for_as_it_is_read() -> None:
    """``records:P5``."""
    name = MalformedString(b"z\xffq")
    home = partition_for("z\ufffdq", 4)
    states = {number: state("modern", **{name: 5}) for number in (home, (home + 1) % 4)}
    found = at_home(states, TOLD)
    assert {number: offsets(each) for number, each in found.items()} == {home: {name: 5}, (home + 1) % 4: {}}


def test_where_the_number_of_partitions_is_a_guess_all_stays() -> None:
    states = {AWAY: state("modern", **{GROUP: 5}), None: state("modern", **{GROUP: 7})}
    assert at_home(states, PartitionCount(4, "guess")) == states
    assert at_home(states, TOLD)[None] is states[None], "a partition that nobody tells has no strays"
