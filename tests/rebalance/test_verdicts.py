"""Each verdict on a generation made by hand: why it is no other, and which guarantees are broken (``A-10``)."""

from __future__ import annotations

from typing import Any

import pytest

from offsets_log.messages.consumer_protocol import CONSUMER_PROTOCOL_SUBSCRIPTION, Embedded, encode_embedded
from offsets_log.rebalance import verify as verifying
from offsets_log.rebalance.assignors.assignor import Assignment
from offsets_log.rebalance.consumer_bytes import sticky_user_data, topic_rows
from offsets_log.rebalance.generation import NOTHING_HELD, Generation
from offsets_log.rebalance.verify import RULES_OF, Verdict, counts_in, verify, verify_all
from tests.rebalance.cases import generation_of

SAME, AS_SETS, DIFFERS, UNKNOWN = Verdict.SAME, Verdict.SAME_AS_SETS, Verdict.DIFFERS, Verdict.NOT_REPRODUCIBLE


def asks(*topics: str, version: int = 3, owned: str = "", rack: str | None = None, data: bytes | None = None) -> bytes:
    """A subscription; partitions that are owned as digits of topic t."""
    rows = topic_rows([("t", int(number)) for number in owned])
    fields = {"topics": topics or ("t",), "user_data": data, "owned_partitions": rows, "generation_id": 1}
    return encode_embedded(Embedded(CONSUMER_PROTOCOL_SUBSCRIPTION, version, fields | {"rack_id": rack}))


def given(a: str, b: str, *, protocol: str = "range", rows: dict[str, Any] | None = None, **facts: Any) -> Generation:
    """A generation of members a and b with these partitions of topic t."""
    assignment: Assignment = {
        member: [("t", int(number)) for number in numbers] for member, numbers in {"a": a, "b": b}.items()
    }
    subscriptions = {"a": asks(), "b": asks()} | (rows or {})
    rows = {member: {"subscription": data, "client_id": f"c-{member}"} for member, data in subscriptions.items()}
    entry = generation_of(assignment, protocol=protocol, rows=rows)
    for name, value in facts.items():
        setattr(entry, name, value)
    return entry


def told(entry: Generation, count: int = 4) -> tuple[Verdict, str | None, tuple[str, ...]]:
    found = verify(entry, [{"t": count}])
    assert (found.rules is None) == (found.verdict in (DIFFERS, UNKNOWN) or found.reason == CAME_BACK)
    return found.verdict, found.reason, found.broken


CAME_BACK = "nothing was assigned: a static member came back"
ELSEWHERE = "2 partitions are elsewhere: t-1 with c-b and not c-a, t-2 with c-a and not c-b"
AS_MANY = "; each member has as many as it should: the leader orders members or partitions in a way of its own"
SEVEN = "8 partitions are elsewhere: t-0 with c-b and not c-a, t-1 with c-b and not c-a, t-2 with c-b and not c-a"


@pytest.mark.parametrize(
    ("entry", "count", "expected"),
    [
        (given("01", "23"), 4, (SAME, None, ())),
        (given("10", "23"), 4, (AS_SETS, "the order within a member's list is another", ())),
        (
            given("02", "13"),
            4,
            (DIFFERS, f"{ELSEWHERE}; roundrobin would give this: the leader is no Java client", ()),
        ),
        (given("03", "12"), 4, (DIFFERS, ELSEWHERE.replace("t-2", "t-3") + AS_MANY, ())),
        (given("0", "123"), 4, (DIFFERS, "1 partition is elsewhere: t-1 with c-b and not c-a", ())),
        (given("4567", "0123"), 8, (DIFFERS, f"{SEVEN} and 5 more{AS_MANY}", ())),
        (
            given("01", "2"),
            4,
            (DIFFERS, "1 partition is elsewhere: t-3 with nobody and not c-b", ("t-3 is assigned to nobody",)),
        ),
        (
            given("01", "234"),
            4,
            (DIFFERS, "1 partition is elsewhere: t-4 with c-b and not nobody", ()),
        ),
        (given("01", "123"), 4, (DIFFERS, "1 partition is elsewhere: t-1 with c-b and not c-a",
                                 ("t-1 is assigned to 2 members",))),
        (given("02", "13", protocol="roundrobin"), 4, (SAME, None, ())),
        (
            given("0", "123", protocol="roundrobin"),
            4,
            (DIFFERS, "1 partition is elsewhere: t-2 with c-b and not c-a", ("members have from 1 to 3 partitions",)),
        ),
        (given("02", "13", protocol="custom"), 4, (UNKNOWN, "the assignor 'custom' is none of Kafka's", ())),
        (
            given("02", "1", protocol="custom"),
            4,
            (UNKNOWN, "the assignor 'custom' is none of Kafka's", ("t-3 is assigned to nobody",)),
        ),
    ],
)  # fmt: skip
def test_an_assignment_is_its_assignors_or_it_is_said_how_not(
    entry: Generation, count: int, expected: tuple[Verdict, str | None, tuple[str, ...]]
) -> None:
    assert told(entry, count) == expected


def test_the_newest_rules_that_give_an_assignment_are_named() -> None:
    assert verify(given("01", "23"), [{"t": 4}]).rules == RULES_OF["range"][0].name


@pytest.mark.parametrize(
    ("entry", "reason", "broken"),
    [
        (
            given("01", "13", kind="consumer"),
            "the broker assigns, by what it knows of topics and racks",
            ("t-1 is assigned to 2 members",),
        ),
        (given("01", "13", kind="share"), "the broker assigns, by what it knows of topics and racks", ()),
        (
            given("01", "23", protocol_type="connect"),
            "members of type 'connect' assign by rules of their own",
            (),
        ),
        (
            given("01", "23", rows={"b": b"\0"}),
            "field subscription of b.version: it is cut off (byte 1 of 1)",
            (),
        ),
        (
            given("02", "13", rows={"a": asks(rack="r")}),
            f"racks of replicas are not in the log; without them {ELSEWHERE}",
            (),
        ),
        (
            given("03", "12", protocol="sticky", rows={"a": asks("t", "u")}),
            "it may depend on the order of hash tables; "
            "2 partitions are elsewhere: t-2 with c-b and not c-a, t-3 with c-a and not c-b",
            (),
        ),
        (
            given("03", "12", protocol="sticky", rows={"b": asks(version=0)}),
            "clients before 2.4 have another algorithm",
            (),
        ),
    ],
)
def test_what_cannot_be_computed_says_why(entry: Generation, reason: str, broken: tuple[str, ...]) -> None:
    assert told(entry) == (UNKNOWN, reason, broken)


def test_racks_and_old_clients_matter_only_where_the_assignment_is_another() -> None:
    """Roundrobin looks at no racks."""
    racks = {"a": asks(rack="r")}
    assert told(given("01", "23", rows=racks))[0] is SAME
    assert told(given("03", "12", protocol="roundrobin", rows=racks))[0] is DIFFERS
    assert told(given("02", "13", protocol="sticky", rows={"b": asks(version=0)}))[0] is SAME


def test_a_topic_that_a_member_does_not_ask_for_is_not_for_it() -> None:
    entry = given("01", "23", protocol="custom", rows={"b": asks("u")})
    assert verify(entry, [{"t": 4, "u": 1}]).broken == (
        "t-2 is assigned to b, which does not subscribe to it",
        "t-3 is assigned to b, which does not subscribe to it",
        "u-0 is assigned to nobody",
    )


@pytest.mark.parametrize("bound", [4, 3])
def test_no_more_partitions_are_computed_than_so_many(bound: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifying, "MAX_PARTITIONS", bound)
    expected = (SAME, None, ()) if bound == 4 else (UNKNOWN, "there would be more than 3 partitions", ())
    assert told(given("01", "23")) == expected


@pytest.mark.parametrize(("b", "is_same"), [("23", True), ("2", False)])
def test_a_static_member_that_came_back_has_what_it_had(b: str, is_same: bool) -> None:
    """``G-8``."""
    entry = given("01", b, previous=given("01", "23"))
    expected = (SAME, CAME_BACK) if is_same else (DIFFERS, "the same generation has another assignment")
    assert told(entry)[:2] == expected


def test_a_group_that_was_converted_keeps_what_its_broker_assigned() -> None:
    """``J-21``."""
    entry = given("02", "13", previous=given("02", "13", kind="consumer"))
    assert told(entry) == (UNKNOWN, "the broker made it of a consumer group", ())


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [("01", "", (SAME, ())), ("0", "", (DIFFERS, ())), ("0", "4", (DIFFERS, ("t-5 is assigned to nobody",)))],
)
def test_a_cooperative_member_gives_back_first_what_another_gets(
    a: str, b: str, expected: tuple[Verdict, tuple[str, ...]]
) -> None:
    """What somebody still owns waits for the next generation (``A-19``)."""
    count = 6 if b else 4
    entry = given(a, b, protocol="cooperative-sticky", rows={"a": asks(owned="0123"), "b": asks(owned="")})
    found = verify(entry, [{"t": count}])
    assert (found.verdict, found.broken) == expected


# ---------------------------------------------------------------------------------------- how many partitions there are


def test_counts_are_of_what_is_assigned_owned_and_claimed() -> None:
    """Of consumers; sticky members claim in their user data (``A-21``)."""
    owned = {"a": asks(owned="6"), "b": asks(data=sticky_user_data([("u", 8)], 1))}
    assert counts_in(given("01", "2")) == {"t": 3}
    assert counts_in(given("01", "2", rows=owned)) == {"t": 7}
    assert counts_in(given("01", "2", rows=owned, protocol="sticky")) == {"t": 7, "u": 9}
    assert counts_in(given("01", "2", rows=owned, kind="consumer")) == {"t": 3}
    assert counts_in(given("01", "2", rows={"a": b"\0", "b": asks(owned="6")})) == {"t": 3}
    assert counts_in(given("01", "2", protocol_type="connect")) == {}


def test_a_generation_is_computed_with_what_the_log_shows_by_then_or_ever_or_itself() -> None:
    """``A-21``: given counts outrank all of that, and only topics that are asked for count."""
    first, second, third = given("01", "23"), given("012", "345"), given("01", "23")
    for at, entry in enumerate((first, second, third)):
        entry.record_offset = entry.timestamp_ms = at
        entry.number = at
    idle = given("", "", held=NOTHING_HELD)
    verdicts = [(entry, found.verdict) for entry, found in verify_all([third, idle, first, second], {})]
    assert verdicts == [(third, SAME), (first, SAME), (second, SAME)]
    assert [found.verdict for _, found in verify_all([first], {"t": 5, "u": 9})] == [DIFFERS]
    assert [found.verdict for _, found in verify_all([first], {"t": 4, "u": 1 << 30})] == [SAME]
    late = given("03", "12", timestamp_ms=5)
    (_, found), *_ = verify_all([late, second], {})
    assert found.broken == ("t-4 is assigned to nobody", "t-5 is assigned to nobody")
