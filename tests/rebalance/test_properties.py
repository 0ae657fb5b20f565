"""What holds for every assignment, whatever members ask for and say they had."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from offsets_log.errors import AssignorError
from offsets_log.rebalance.assignors import ASSIGNORS
from offsets_log.rebalance.assignors.assignor import RULES, Assignment, Metadata, Rules, Subscription
from tests.rebalance.cases import as_sets, vectors

UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

TOPICS = ("a", "b", "größe", "😀")
RACKS = ("r0", "r1", "r2")

member_ids = st.lists(st.text("abcAB-01é😀\uffff", min_size=1, max_size=6), min_size=1, max_size=8, unique=True)
counts = st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 9), min_size=1)
rules = st.sampled_from(RULES)
numbers = st.integers(0, 2**32 - 1)


def some_of(several: Sequence[Any], pattern: int) -> list[Any]:
    """Those whose bit is set: cheaper to draw than lists."""
    return [each for at, each in enumerate(several) if pattern >> at % 32 & 1]


@st.composite
def groups(draw: st.DrawFn, *, same_topics: bool = False) -> tuple[Metadata, dict[str, Subscription]]:
    """Members with subscriptions, racks, instance ids and claims of an earlier generation, right or wrong.

    Nobody claims a topic that it does not ask for any more: Kafka may give such a partition back to its old owner.
    """
    partitions = draw(counts)
    names = sorted(partitions)
    common = tuple(some_of(names, draw(numbers)) or names[:1])
    racks = {
        topic: [some_of(RACKS, pattern >> number) or RACKS[:1] for number in range(count)]
        for topic, count in partitions.items()
        if (pattern := draw(numbers)) % 2
    }
    members = {}
    for at, member_id in enumerate(draw(member_ids)):
        topics = common if same_topics else tuple(some_of(names, draw(numbers)) or names[:1])
        claims = [(topic, number) for topic in topics for number in range(partitions[topic] + 1)]
        members[member_id] = Subscription(
            topics=topics,
            owned_partitions=tuple(some_of(claims, draw(numbers))),
            generation=draw(st.none() | st.integers(0, 3)),
            group_instance_id=draw(st.none() | st.just(f"i{at}")),
            rack_id=draw(st.none() | st.sampled_from(RACKS)),
        )
    return Metadata(partitions, racks), members


def assigned(name: str, rules: Rules, metadata: Metadata, subscriptions: dict[str, Subscription]) -> Assignment:
    """What an assignor assigns; 3.5 to 3.7.0 fail with some racks, which is no example then."""
    try:
        return ASSIGNORS[name](rules).assign(metadata, subscriptions)
    except AssignorError:
        assert rules.uses_racks
        assert not rules.revokes_in_order
        reject()


def assert_each_once_to_a_subscriber(
    result: Assignment, metadata: Metadata, subscriptions: dict[str, Subscription], *, may_wait: bool
) -> None:
    given_out = [unit for units in result.values() for unit in units]
    assert len(given_out) == len(set(given_out))
    asked = {topic for subscription in subscriptions.values() for topic in subscription.topics}
    everything = {(topic, number) for topic in asked for number in range(metadata.partition_counts[topic])}
    waiting = {unit for each in subscriptions.values() for unit in each.owned_partitions} if may_wait else set()
    assert everything - waiting <= set(given_out) <= everything
    for member_id, units in result.items():
        assert {topic for topic, _ in units} <= set(subscriptions[member_id].topics)


@pytest.mark.parametrize("name", ASSIGNORS)
@UNHURRIED
@given(groups(), rules)
def test_every_partition_is_assigned_once_to_a_subscribed_member(
    name: str, group: tuple[Metadata, dict[str, Subscription]], rules: Rules
) -> None:
    """``A-10``; a cooperative generation may leave to the next what another member has to give back (``A-19``)."""
    metadata, subscriptions = group
    result = assigned(name, rules, metadata, subscriptions)
    assert result.keys() == subscriptions.keys()
    assert_each_once_to_a_subscriber(result, metadata, subscriptions, may_wait=name == "cooperative-sticky")


@pytest.mark.parametrize("name", ["roundrobin", "sticky"])
@UNHURRIED
@given(groups(same_topics=True), rules)
def test_counts_differ_by_at_most_one_with_equal_subscriptions(
    name: str, group: tuple[Metadata, dict[str, Subscription]], rules: Rules
) -> None:
    """``A-8``, ``A-10``."""
    sizes = list(map(len, assigned(name, rules, *group).values()))
    assert max(sizes) - min(sizes) <= 1


@UNHURRIED
@given(groups(), rules)
def test_a_cooperative_generation_never_moves_a_partition_in_one_step(
    group: tuple[Metadata, dict[str, Subscription]], rules: Rules
) -> None:
    """``A-19``: as long as no partition is claimed twice, none is given to a member while another says it has it.

    3.5 to 3.7.0 do so all the same where racks matter (KAFKA-15170), which their rules reproduce: no racks for those.
    """
    metadata, subscriptions = group
    owners: dict[Any, str] = {}
    for member_id, subscription in subscriptions.items():
        mine = tuple(
            unit
            for unit in subscription.owned_partitions
            if owners.setdefault(unit, member_id) == member_id and unit[1] < metadata.partition_counts[unit[0]]
        )
        subscriptions[member_id] = Subscription(
            topics=subscription.topics,
            owned_partitions=mine,
            generation=2,
            rack_id=subscription.rack_id if rules.revokes_in_order else None,
        )
    owners = {unit: member_id for member_id, each in subscriptions.items() for unit in each.owned_partitions}
    result = assigned("cooperative-sticky", rules, metadata, subscriptions)
    for member_id, units in result.items():
        for unit in units:
            assert owners.get(unit, member_id) == member_id


@pytest.mark.parametrize("name", ["assignors-2.8.2", "assignors-4.3.0", "assignors-claims"])
def test_sticky_keeps_at_least_what_kafkas_keeps(name: str) -> None:
    """Over all runs of Kafka's sticky assignors (``A-10``)."""
    from offsets_log.rebalance.cases import assignment_answer

    for case in vectors(name):
        if "sticky" not in case["assignor"]:
            continue
        ours = as_sets(assignment_answer({key: value for key, value in case.items() if key != "result"})["result"])
        theirs = as_sets(case["result"])
        for member in case["members"]:
            had = member["owned"]
            mine, expected = ours[member["member_id"]], theirs[member["member_id"]]
            assert sum(unit in had for unit in mine) >= sum(unit in had for unit in expected)


@UNHURRIED
@given(st.integers(2, 12), st.integers(1, 40), rules)
def test_a_stable_sticky_group_stays_as_it_is(members: int, partitions: int, rules: Rules) -> None:
    """The same members and topics again: nothing moves."""
    metadata = Metadata({"t": partitions})
    subscriptions = {f"m{at}": Subscription(topics=("t",)) for at in range(members)}
    assignor = ASSIGNORS["cooperative-sticky"](rules)
    first = assignor.assign(metadata, subscriptions)
    again = {
        member_id: Subscription(topics=("t",), owned_partitions=tuple(units), generation=1)
        for member_id, units in first.items()
    }
    assert as_sets(assignor.assign(metadata, again)) == as_sets(first)
