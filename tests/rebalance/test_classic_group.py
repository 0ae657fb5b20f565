"""A classic group by itself: who is in it and as whom, who leads it, what it stands for in the log."""

from __future__ import annotations

from typing import Any

import pytest

from offsets_log.coordinator.errors import Errors
from offsets_log.coordinator.validation import MemberIdentity
from offsets_log.rebalance.classic_group import (
    ClassicGroup,
    Joining,
    LiveMember,
    Pending,
    State,
    error_of_generation,
    error_of_member,
)
from offsets_log.rebalance.vote import JAVA
from offsets_log.replay.groups import classic_group
from offsets_log.replay.profile import MODERN


def joining(*protocols: str, **facts: Any) -> Joining:
    return Joining(protocols=tuple((name, name.encode()) for name in protocols or ("range",)), **facts)


def group(**instances: str | None) -> ClassicGroup:
    """A stable group in generation 4 of these members with their instance ids."""
    made = ClassicGroup("g", JAVA, 0)
    for member_id, instance_id in instances.items():
        made.add(LiveMember(member_id, joining(group_instance_id=instance_id)))
    made.generation, made.state = 4, State.STABLE
    return made


@pytest.mark.parametrize(
    ("who", "of_member", "of_generation"),
    [
        (MemberIdentity("a", None, 4), Errors.NONE, Errors.NONE),
        (MemberIdentity("a", None, 3), Errors.NONE, Errors.ILLEGAL_GENERATION),
        (MemberIdentity("a", None, 5), Errors.NONE, Errors.ILLEGAL_GENERATION),
        (MemberIdentity("s", None, 4), Errors.NONE, Errors.NONE),
        (MemberIdentity("s", "one", 4), Errors.NONE, Errors.NONE),
        (MemberIdentity("t", "one", 4), Errors.FENCED_INSTANCE_ID, Errors.FENCED_INSTANCE_ID),
        (MemberIdentity("old", "one", 4), Errors.FENCED_INSTANCE_ID, Errors.FENCED_INSTANCE_ID),
        (MemberIdentity("s", "three", 4), Errors.UNKNOWN_MEMBER_ID, Errors.UNKNOWN_MEMBER_ID),
        (MemberIdentity("old", None, 4), Errors.UNKNOWN_MEMBER_ID, Errors.UNKNOWN_MEMBER_ID),
        (MemberIdentity("", None, 4), Errors.UNKNOWN_MEMBER_ID, Errors.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_member_is_known_by_its_id_and_an_instance_by_the_id_that_it_has_now(
    who: MemberIdentity, of_member: Errors, of_generation: Errors
) -> None:
    """``G-8``: whoever had the instance before is fenced."""
    found = group(a=None, s="one", t="two")
    assert error_of_member(found, who) is of_member
    assert error_of_generation(found, who) is of_generation
    assert error_of_generation(None, who) is Errors.UNKNOWN_MEMBER_ID


def test_a_static_member_is_found_by_its_instance_and_a_dynamic_one_has_none() -> None:
    found = group(a=None, s="one", t="two")
    members = [found.static_member(instance_id) for instance_id in (None, "one", "two", "three")]
    assert [member and member.member_id for member in members] == [None, "s", "t", None]
    assert [member.is_static for member in found.members.values()] == [False, True, True]


def test_the_first_member_leads_until_it_goes() -> None:
    """``G-6``: the next one is the first of the hash table."""
    found = group(b=None, a=None, c=None)
    found.pending_syncs |= {"a", "b"}
    assert (found.leader, found.protocol_type) == ("b", "consumer")
    found.remove("a")
    assert (found.leader, found.pending_syncs, set(found.members)) == ("b", {"b"}, {"b", "c"})
    found.remove("b")
    assert (found.leader, found.pending_syncs) == ("c", set())
    found.remove("c")
    assert (found.leader, found.members) == (None, {})


def test_a_leader_that_did_not_come_back_is_followed_by_one_that_did() -> None:
    """``G-6``."""
    found = group(a=None, b=None)
    assert not found.elect_joined_leader()
    assert found.leader == "a"
    found.members["b"].awaiting_join = Pending()
    assert found.elect_joined_leader()
    assert found.leader == "b"
    found.members["a"].awaiting_join = Pending()
    assert found.elect_joined_leader()
    assert (found.leader, found.all_have_joined()) == ("b", True)
    found.pending_joins["c"] = 9
    assert not found.all_have_joined()
    assert not ClassicGroup("g", JAVA, 0).elect_joined_leader()


@pytest.mark.parametrize(
    ("protocols", "protocol_type", "of_empty", "of_others"),
    [
        (("range",), "consumer", True, True),
        (("sticky", "range"), "consumer", True, True),
        (("sticky",), "consumer", True, False),
        (("range",), "connect", True, False),
        (("range",), "", False, False),
        ((), "consumer", False, False),
    ],
)
def test_who_joins_shares_a_protocol_with_all_others(
    protocols: tuple[str, ...], protocol_type: str, of_empty: bool, of_others: bool
) -> None:
    """``G-4``: an empty group takes whoever says a type and a protocol."""
    one = Joining(protocols=tuple((name, b"") for name in protocols), protocol_type=protocol_type)
    others = group(a=None)
    others.add(LiveMember("b", joining("range", "roundrobin")))
    assert others.supports(one) is of_others
    assert ClassicGroup("g", JAVA, 0).supports(one) is of_empty


def test_a_group_is_loaded_as_it_was_written() -> None:
    """``W-13``, ``L-24``, ``L-28``: with one protocol, and zero bytes for a member without an assignment."""
    made = group(a=None, s="one")
    made.members["s"].joining = joining(
        "sticky", "range", group_instance_id="one", session_timeout_ms=7, rebalance_timeout_ms=9, client_id="c"
    )
    made.begin_generation(5)
    assert (made.generation, made.protocol, made.state) == (5, "range", State.COMPLETING_REBALANCE)
    value = made.value({"a": b"to a"})
    assert [(row["member_id"], row["assignment"]) for row in value["members"]] == [("a", b"to a"), ("s", b"")]
    loaded = ClassicGroup.loaded(classic_group("g", value, MODERN), JAVA, 100)
    assert loaded.state is State.STABLE
    assert (loaded.generation, loaded.protocol, loaded.protocol_type) == (5, "range", "consumer")
    assert (loaded.leader, loaded.state_timestamp_ms, loaded.rebalance_timeout_ms) == ("a", 5, 300_000)
    member = loaded.members["s"]
    assert (member.session_due_ms, member.joining.rebalance_timeout_ms, member.joining.client_id) == (107, 9, "c")
    assert (member.joining.group_instance_id, member.protocols, member.metadata("range")) == (
        "one",
        ["range"],
        b"range",
    )
    assert (member.metadata("sticky"), member.metadata(None)) == (b"", b"")
    row = {name: cell for name, cell in value["members"][1].items() if name != "rebalance_timeout"}
    old = ClassicGroup.loaded(classic_group("g", value | {"members": [row]}, MODERN), JAVA, 100)
    assert old.rebalance_timeout_ms == 7, "version 0 has no rebalance timeout"
    empty = ClassicGroup.loaded(classic_group("g", value | {"members": []}, MODERN), JAVA, 100)
    assert (empty.state, empty.rebalance_timeout_ms) == (State.EMPTY, 0)


def test_only_the_leader_is_told_of_the_members() -> None:
    found = group(a=None, s="one")
    found.begin_generation(5)
    assert found.joined("a").members == {"a": (None, b"range"), "s": ("one", b"range")}
    assert found.joined("s").members == found.joined("a", with_members=False).members == {}
    assert (found.joined("s").leader, found.joined("s").generation) == ("a", 5)
    nobody = ClassicGroup("g", JAVA, 0)
    nobody.begin_generation(5)
    assert (nobody.state, nobody.protocol, nobody.generation) == (State.EMPTY, None, 1)
