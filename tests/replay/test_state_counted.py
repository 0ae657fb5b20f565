"""What is counted of a state."""

from __future__ import annotations

from itertools import product

from offsets_log.pipeline import iter_events, replay
from offsets_log.replay.coordinator_state import settle_groups
from offsets_log.replay.problem import Problem
from offsets_log.replay.profile import CLASSIC, MODERN
from tests.builders import LogBuilder


def test_a_state_counts_what_is_served_and_orphaned_and_what_is_pending() -> None:
    """Offsets of a group that was removed are not served; pending ones are in record order, shown or not."""
    built = LogBuilder().commit(2).commit(3, partition=1)
    built.commit(4, group="later", producer=7).commit(5, partition=2, producer=8)
    state = built.load(MODERN)
    shown = state.showing(lambda group: group == "g", lambda topic: True)
    for seen in (state, shown):
        held = seen.holdings()
        assert (held.offsets, held.orphans) == (2, 0)
        assert [value.committed_offset for value in held.pending] == [4, 5]
    assert [group.group_id for group in shown.holdings().groups] == ["g"]
    assert len(state.showing(lambda group: False, lambda topic: True).holdings().groups) == 0


def test_offsets_of_a_group_that_was_removed_are_orphans() -> None:
    """They are in memory, and nobody gets them (``J-15``)."""
    state = LogBuilder().commit(2).group(gone=True).commit(3, group="other").load(MODERN)
    assert [value.committed_offset for value in state.iter_served()] == [3]
    assert [value.committed_offset for value in state.iter_orphans()] == [2]
    assert (state.holdings().offsets, state.holdings().orphans) == (1, 1)


def test_of_a_state_that_is_shown_in_part_the_rest_is_hidden_and_what_was_hidden_stays_so() -> None:
    """A value is shown if both its group and its topic are; groups are hidden by their names alone."""
    built = LogBuilder()
    for at, (group, topic) in enumerate(product("gh", "tu")):
        built.commit(at, group=group, topic=topic).commit(10 + at, group=group, topic=topic, producer=7)
    shown = built.load(MODERN).showing(lambda group: group == "g", lambda topic: topic == "u")
    assert ([*shown.groups], shown.hidden_groups) == (["g"], {"h"})
    assert [value.committed_offset for value in shown.committed] == [1]
    assert [value.committed_offset for value in shown.pending] == [11]
    assert [value.committed_offset for value in shown.hidden_pending] == [10, 12, 13]
    nothing = shown.showing(lambda group: False, lambda topic: True)
    assert (nothing.groups, nothing.committed, nothing.pending) == ({}, (), ())
    assert nothing.hidden_groups == {"g", "h"}
    assert [value.committed_offset for value in nothing.hidden_pending] == [10, 12, 13, 11]


def test_a_broker_keeps_nothing_of_a_load_that_ends_early_and_everything_of_another() -> None:
    """The names of the groups are known all the same (``L-42``, ``J-3``)."""
    built = LogBuilder().commit(2).commit(3, group="h", producer=7)
    loaded = built.load(MODERN)
    assert loaded.failure is None
    assert loaded.as_broker() is loaded
    hidden = built.add((None, b"x")).load(MODERN).showing(lambda group: group == "g", lambda topic: True)
    kept = hidden.as_broker()
    assert (kept.groups, kept.committed, kept.pending) == ({}, (), ())
    assert kept.hidden_groups == {"g", "h"}
    assert kept.problems == hidden.problems != ()


def test_a_timeline_with_what_a_release_skips_is_as_without_it() -> None:
    """``L-21``, ``L-39``: nothing of it reaches the group, nor is it what removed it."""
    log = LogBuilder().commit(2, producer=7).newer(3, None).group().group(gone=True).newer(5, None, member_id="m").log
    found = [
        settle_groups(CLASSIC, replay(iter_events(log), profile, on_damage=lambda damage: None).timelines,
                      committed=set(), pending={"g"}, end_offset=5)
        for profile in (CLASSIC, MODERN)
    ]  # fmt: skip
    assert found[0] == found[1]
    assert [problem.rule for problem in found[0][1]] == ["L-39"]


def test_a_problem_is_told_with_its_place_and_its_rule() -> None:
    words = Problem(7, "J-17", "the order is wrong", "g").in_words("modern", "3")
    assert words == (
        "offsets partition 3: a coordinator of Kafka 4 would not load it: record offset 7, J-17: the order is wrong"
    )
