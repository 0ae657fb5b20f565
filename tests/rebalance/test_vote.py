"""Protocol votes against both coordinators (``G-1`` … ``G-4``), and the hash orders they depend on (``A-3``)."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from offsets_log.rebalance.java_order import JavaHashSet, hash_order, java_hash_order, java_string_order
from offsets_log.rebalance.vote import JAVA, SCALA, HashOrders, select_protocol
from offsets_log_cli.main import main
from tests.rebalance.cases import vectors


@pytest.mark.parametrize(("name", "orders"), [("java", JAVA), ("scala", SCALA)])
def test_votes_equal_the_coordinators_ties_included(name: str, orders: HashOrders) -> None:
    """``G-3``: ``ClassicGroup`` of 4.3.0, ``GroupMetadata`` of 3.9.1 with Scala 2.13."""
    ties = 0
    for case in vectors(f"protocol-vote-{name}"):
        vote = select_protocol({member["member_id"]: member["protocols"] for member in case["members"]}, orders)
        assert list(vote.candidates) == case["candidates"]
        assert dict(vote.votes) == case["votes"]
        assert vote.is_tie == case["tie"]
        assert vote.selected == case["selected"]
        ties += vote.is_tie
    assert ties == 91


def test_the_two_coordinators_differ_in_a_tie() -> None:
    """As the recordings of 4.3 and 3.9 have it: each protocol has one vote."""
    members = {"m1": ["range", "roundrobin", "sticky"], "m2": ["roundrobin", "range"]}
    assert select_protocol(members, JAVA).selected == "range"
    assert select_protocol(members, SCALA).selected == "roundrobin"


def test_without_a_candidate_nothing_is_selected() -> None:
    """``G-2``: Kafka raises, but lets no such member join (``G-4``)."""
    vote = select_protocol({"m1": ["range"], "m2": ["sticky"]})
    assert (vote.candidates, dict(vote.votes), vote.selected, vote.is_tie) == ((), {}, None, False)
    assert select_protocol({}).selected is None


def test_a_name_listed_twice_counts_twice() -> None:
    """``G-1``: the counter then over-counts."""
    assert select_protocol({"m1": ["range", "range"], "m2": ["range"]}).candidates == ()
    assert select_protocol({"m1": ["range", "range"], "m2": ["sticky"]}).candidates == ("range",)


def test_strings_go_by_utf16_units() -> None:
    """``A-1``: beyond U+FFFF that is another order than that of code points; half a pair can be sorted too."""
    assert sorted(["\uffff", "😀", "\ud800"], key=java_string_order) == ["\ud800", "😀", "\uffff"]


def test_a_bucket_keeps_its_order_of_insertion() -> None:
    """``A-3``: "Aa" and "BB" have one hash; ``computeIfAbsent`` adds at the head of a bucket."""
    assert java_hash_order(["BB", "Aa", "C"]) == ["BB", "Aa", "C"]
    assert java_hash_order(["BB", "Aa", "C"], newest_first=True) == ["Aa", "BB", "C"]


def test_a_set_that_has_grown_does_not_shrink() -> None:
    """``A-3``: the order of its elements is that of the larger table."""
    grown: JavaHashSet[int] = JavaHashSet(lambda key: key)
    for key in range(13):  # more than three quarters of 16
        grown.add(key)
    for key in range(13):
        grown.remove(key)
    small: JavaHashSet[int] = JavaHashSet(lambda key: key)
    for key in (17, 2):
        grown.add(key)
        small.add(key)
    assert (grown.first(), small.first()) == (2, 17)
    assert hash_order([17, 2], lambda key: key) == [17, 2]


def test_members_are_given_with_their_protocols() -> None:
    result = CliRunner().invoke(main, ["vote", "--members", "m1"])
    assert result.exit_code == 2
    assert "'m1' is not MEMBER:NAME+NAME, such as m1:range+sticky" in result.stderr
