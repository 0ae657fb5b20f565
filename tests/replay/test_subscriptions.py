"""Subscriptions of consumers whose lengths end a load, or do not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from offsets_log.columnar.wire.primitives import takes_subscription
from offsets_log.errors import ReplayError
from offsets_log.messages.consumer_protocol import refusal_of_subscription
from offsets_log.replay.groups import classic_group
from offsets_log.replay.profile import CLASSIC, MODERN, RELEASES
from tests.builders import member
from tests.replay.test_rules import log, rule_of

SUBSCRIPTIONS = {
    # what Kafka's ConsumerProtocol of 3.9.1 and 4.3.0 made of it, version 0 behind a version
    "0003 ffffffff": "its topics are null",
    "0003 00000009 000141": "9 topics in 3 bytes",
    "0003 01000000 000141": "16777216 topics in 3 bytes",
    "0003 00000001 ffff 00000000": "a topic is null",
    "0003 00000001 0009 4100000000": "a topic takes 9 bytes, 5 are left",
    "0003 00000001 000141 00000009 01": "the user data takes 9 bytes, 1 are left",
    "": None,
    "00": None,
    "0003 0000": None,
    "0003 00000000": None,
    "0003 00000003 000141 00": None,
    "0003 00000002 000141": None,
    "0003 00000001 0000": None,
    "0003 00000001 000141 0000": None,
    "0003 00000001 0001ff ffffffff": None,
    "0003 00000001 000141 00000000 010203": None,
    "0003 00000001 000141 00000003 010203": None,
    "0003 00000001 000141 00000004 010203": "the user data takes 4 bytes, 3 are left",
    "0003 00000001 000141 01000000 010203": "the user data takes 16777216 bytes, 3 are left",
    "0003 00000001 0004 41000000": None,
    "0003 00000001 0005 41000000": "a topic takes 5 bytes, 4 are left",
    "0003 00000002 000141 0001": "a topic takes 1 bytes, 0 are left",
    "0003 00000004 00014100": None,
    "0003 00000005 00014100": "5 topics in 4 bytes",
    "ffff 00000000 ffffffff": None,
}

BEFORE_4_4 = RELEASES["4.3"]


@pytest.mark.parametrize(("subscription", "problem"), SUBSCRIPTIONS.items())
def test_a_subscription_with_a_length_that_cannot_be_ends_the_load(subscription: str, problem: str | None) -> None:
    """Of a consumer group that has a protocol; one that is cut off does not (``B-18``, ``E-12``). Kernels know it."""
    data = bytes.fromhex(subscription)
    assert refusal_of_subscription(data) == problem
    around = np.frombuffer(b"\xff" + data + b"\0" * 9, np.uint8)
    assert bool(takes_subscription(around, np.int64(1), np.int64(1 + len(data)))) == (problem is None)
    rows = member("a"), member("b", subscription=data)
    expected = None if problem is None else "B-18"
    for profile in (BEFORE_4_4, CLASSIC, RELEASES["3.0"]):
        assert rule_of(log().group(*rows), profile) == expected
        assert rule_of(log().group(*rows[:1]).group(*rows), profile) == expected
        assert rule_of(log().group(*rows).group(*rows, protocol_type="connect"), profile) == expected
        assert rule_of(log().group(*rows, protocol_type="connect").group(*rows), profile) == expected
        assert rule_of(log().group(*rows, protocol_type="connect").group(*rows, protocol=None), profile) is None
    assert rule_of(log().group(*rows), MODERN) is None, "4.4 loads it"
    assert rule_of(log().group(*rows), RELEASES["2.3"]) is None


def test_the_same_rows_are_asked_once_for_their_members_and_once_for_their_topics() -> None:
    """They are the same objects where a log repeats them; only those of consumers have topics (``B-18``)."""
    rows = [member("m", subscription=bytes.fromhex("0003 ffffffff"))]
    value = {"protocol_type": "connect", "protocol": "range", "leader": None, "generation": 1, "members": rows}
    first = classic_group("g", value, BEFORE_4_4)
    again = classic_group("g", value | {"generation": 2}, BEFORE_4_4, first)
    assert (again.generation, again.rows, again.members) == (2, rows, first.members)
    assert again.members is first.members
    consumers = value | {"protocol_type": "consumer"}
    for before in (None, first, again):
        with pytest.raises(ReplayError, match="its topics are null"):
            classic_group("g", consumers, BEFORE_4_4, before)
    assert classic_group("g", consumers, BEFORE_4_4, replace(first, protocol_type="consumer")).members is first.members
