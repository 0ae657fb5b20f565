"""The assignors against Kafka's own classes: ``A-1`` … ``A-20``.

``assignors-V`` are runs of 2.8.2 and 4.3.0, several rounds each, some with racks; ``assignors-claims`` runs of six
releases in which members miss generations and claim the same partitions. With ``-v`` the counts are shown.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

import pytest

from benchmarks.assignors import BOUNDS, large_group
from offsets_log.errors import AssignorError
from offsets_log.rebalance.assignors import ASSIGNORS
from offsets_log.rebalance.assignors.assignor import NEWEST, RULES, Metadata, Subscription, rules_of
from offsets_log.rebalance.verify import broken_guarantees
from tests.rebalance.cases import answered, as_sets, generation_of, is_constrained, vectors

FILES = ("assignors-2.8.2", "assignors-4.3.0", "assignors-claims")


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("assignor", ["range", "roundrobin"])
def test_range_and_round_robin_equal_kafkas_byte_for_byte(assignor: str, name: str) -> None:
    """Lists in the assignor's own order: ``A-4`` … ``A-8``, racks included."""
    cases = [case for case in vectors(name) if case["assignor"] == assignor]
    assert cases or name == "assignors-claims"
    for case in cases:
        assert answered(case) == case["result"]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("assignor", ["sticky", "cooperative-sticky"])
def test_constrained_sticky_equals_kafkas(assignor: str, name: str) -> None:
    """``A-11``, ``A-13`` … ``A-16``, ``A-19``, ``A-20``."""
    cases = [case for case in vectors(name) if case["assignor"] == assignor and is_constrained(case)]
    assert len(cases) > 50
    for case in cases:
        assert answered(case) == case["result"]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("assignor", ["sticky", "cooperative-sticky"])
def test_general_sticky_equals_kafkas_or_keeps_its_guarantees(
    assignor: str, name: str, record_property: Callable[[str, object], None]
) -> None:
    """``A-17``, ``A-18``: what depends on hash order beyond what is reproduced must be as balanced and as sticky."""
    cases = [case for case in vectors(name) if case["assignor"] == assignor and not is_constrained(case)]
    assert cases
    counts: Counter[str] = Counter()
    for case in cases:
        found, expected = as_sets(answered(case)), as_sets(case["result"])
        if found == expected:
            counts["equal"] += 1
            continue
        counts["guarantees hold"] += 1
        owned = {member["member_id"]: member["owned"] for member in case["members"]}
        assert sorted(map(len, found.values())) == sorted(map(len, expected.values()))
        assert kept(found, owned) >= kept(expected, owned)
    for what, count in counts.items():
        record_property(what, count)
    assert counts["equal"] == len(cases)  # hash order is reproduced; a first exception would be a finding


def kept(result: dict[str, list[list[object]]], owned: dict[str, list[list[object]]]) -> int:
    """How many partitions stay with who had them."""
    return sum(unit in owned[member] for member, units in result.items() for unit in units)


def test_rules_are_chosen_by_release() -> None:
    assert rules_of((4, 3)) is NEWEST
    assert [rules_of(release).name for release in ((3, 7, 0), (3, 4, 1), (3, 3, 2), (2, 8, 2), (0, 10))] == [
        "3.5+",
        "3.4+",
        "3.0+",
        "2.5+",
        "2.5+",
    ]


@pytest.mark.parametrize("rules", RULES, ids=lambda rules: rules.name)
@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_nobody_and_nothing_to_assign(assignor: str, rules: object) -> None:
    """``A-2``, ``A-9``; also members without topics, topics without partitions."""
    made = ASSIGNORS[assignor](rules)  # type: ignore[arg-type]
    assert made.assign(Metadata({"t": 3}), {}) == {}
    assert made.assign(Metadata({}), {"m": Subscription(topics=("t",))}) == {"m": []}
    assert made.assign(Metadata({"t": 0}), {"m": Subscription(topics=("t",)), "n": Subscription(topics=())}) == {
        "m": [],
        "n": [],
    }


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_large_groups_are_assigned_in_time(assignor: str) -> None:
    """The rows of ``make bench``, by processor time: 1,000 members and 10,000 partitions."""
    for what, assign in large_group(assignor).items():
        started = time.process_time()
        result = assign()
        assert time.process_time() - started < BOUNDS[assignor], what
        assert len(result) == 1000


@pytest.mark.parametrize("assignor", ["sticky", "cooperative-sticky"])
def test_claims_of_what_is_not_there_any_more_are_ignored(assignor: str) -> None:
    """``A-12``: a topic that is gone, a partition beyond the topic's end, user data that does not parse."""
    owned = (("t", 0), ("t", 7), ("gone", 0))
    subscription = Subscription(topics=("t",), owned_partitions=owned, generation=3, user_data=b"\x01")
    result = ASSIGNORS[assignor](NEWEST).assign(
        Metadata({"t": 2}), {"m": subscription, "n": Subscription(topics=("t",))}
    )
    assert sorted(unit for units in result.values() for unit in units) == [("t", 0), ("t", 1)]


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_an_empty_rack_is_none(assignor: str) -> None:
    """``records:D2``: it changes no assignment, as the rack that another member names does."""
    metadata = Metadata({"t": 4}, {"t": [["r"], [""], ["r"], [""]]})
    named = {"a": Subscription(topics=("t",), rack_id=""), "b": Subscription(topics=("t",), rack_id="r")}
    unnamed = {"a": Subscription(topics=("t",)), "b": Subscription(topics=("t",), rack_id="r")}
    made = ASSIGNORS[assignor](NEWEST)
    assert named["a"].rack is None
    assert made.assign(metadata, named) == made.assign(metadata, unnamed)


def test_guarantees_name_what_is_broken() -> None:
    entry = generation_of({"m": [("t", 0), ("t", 1), ("t", 2), ("u", 0)], "n": [("t", 0)]}, protocol="roundrobin")
    subscriptions = {member: Subscription(topics=("t",)) for member in ("m", "n")}
    assert broken_guarantees(entry, subscriptions, {"t": 4}) == [
        "t-0 is assigned to 2 members",
        "u-0 is assigned to m, which does not subscribe to it",
        "t-3 is assigned to nobody",
        "members have from 1 to 4 partitions",
    ]


def test_where_kafkas_assignor_fails_ours_says_so() -> None:
    """3.5.2 and 3.7.0 were run on this group: IllegalStateException of verifyUnfilledMembers; 3.9.1 assigns all."""
    metadata = Metadata({"a": 9}, {"a": [["r0", "r1"], *[["r0"]] * 8]})
    subscriptions = {
        member_id: Subscription(topics=("a",), rack_id="r0" if len(member_id) > 2 else None)
        for member_id in ("0", "1", "A", "B", "a", "00", "000", "0000")
    }
    for name in ("sticky", "cooperative-sticky"):
        with pytest.raises(AssignorError, match="IllegalStateException"):
            ASSIGNORS[name](rules_of((3, 7, 0))).assign(metadata, subscriptions)
        assert ASSIGNORS[name](rules_of((3, 9, 1))).assign(metadata, subscriptions) == {
            "0": [("a", 3)], "1": [("a", 5)], "A": [("a", 6)], "B": [("a", 7)], "a": [("a", 8)], "00": [("a", 4)],
            "000": [("a", 0), ("a", 2)], "0000": [("a", 1)],
        }  # fmt: skip
