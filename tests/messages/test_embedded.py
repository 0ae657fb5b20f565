"""Subscriptions, assignments and their user data: Kafka's own vectors, and what the reference says beside them."""

from __future__ import annotations

import base64
import json
import lzma
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from offsets_log.errors import CorruptRecordError
from offsets_log.messages import connect_protocol as connect
from offsets_log.messages import consumer_protocol as consumer
from offsets_log.messages import sticky_user_data as sticky
from offsets_log.messages import streams_protocol as streams
from offsets_log.messages.consumer_protocol import Embedded, encode_embedded
from offsets_log.messages.embedded import expand_assignment, expand_subscription

VECTORS = Path(__file__).parents[1] / "vectors"


def in_consumer_subscription(raw: bytes) -> bytes:
    fields = {"topics": ["t"], "user_data": raw, "owned_partitions": [], "generation_id": 7, "rack_id": None}
    return encode_embedded(Embedded(consumer.CONSUMER_PROTOCOL_SUBSCRIPTION, 3, fields))


def in_consumer_assignment(raw: bytes) -> bytes:
    fields = {"assigned_partitions": [], "user_data": raw}
    return encode_embedded(Embedded(consumer.CONSUMER_PROTOCOL_ASSIGNMENT, 3, fields))


def subscription_user_data(protocol: str) -> Callable[[bytes], Any]:
    def expand(raw: bytes) -> Any:
        expanded = expand_subscription("consumer", protocol, in_consumer_subscription(raw))
        assert expanded is not None
        assert expanded["userData"] == base64.b64encode(raw).decode()
        return expanded["userDataDecoded"]

    return expand


def streams_assignment(raw: bytes) -> Any:
    expanded = expand_assignment("consumer", "stream", in_consumer_assignment(raw))
    assert expanded is not None
    return expanded["userDataDecoded"]


class Form(NamedTuple):
    """How a format of the vectors is decoded, and how it is expanded inside a record."""

    decode: Callable[[bytes], Embedded]
    expand: Callable[[bytes], Any]
    counts: dict[int, int]


FORMS = {
    "ConsumerProtocolSubscription": Form(
        consumer.decode_subscription,
        lambda raw: expand_subscription("consumer", "range", raw),
        dict.fromkeys(range(4), 40),
    ),
    "ConsumerProtocolAssignment": Form(
        consumer.decode_assignment, lambda raw: expand_assignment("consumer", "range", raw), dict.fromkeys(range(4), 40)
    ),
    "StickyUserData": Form(sticky.decode_sticky, subscription_user_data("sticky"), {0: 40, 1: 60}),
    "CooperativeStickyUserData": Form(
        sticky.decode_cooperative_sticky, subscription_user_data("cooperative-sticky"), {0: 21}
    ),
    "ConnectMetadata": Form(
        connect.decode_metadata,
        lambda raw: expand_subscription("connect", "sessioned", raw),
        dict.fromkeys(range(3), 40),
    ),
    "ConnectAssignment": Form(
        connect.decode_assignment,
        lambda raw: expand_assignment("connect", "sessioned", raw),
        dict.fromkeys(range(3), 40),
    ),
    "StreamsSubscriptionInfo": Form(
        streams.decode_subscription_info, subscription_user_data("stream"), dict.fromkeys(range(7, 12), 20)
    ),
    "StreamsAssignmentInfo": Form(streams.decode_assignment_info, streams_assignment, dict.fromkeys(range(5, 12), 20)),
}


@cache
def vectors() -> dict[tuple[str, int], list[dict[str, Any]]]:
    by_form: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for name in ("consumer-protocol-4.3.0", "embedded-4.3.0"):
        with lzma.open(VECTORS / f"{name}.jsonl.xz", "rt", encoding="utf-8", newline="\n") as file:
            for line in map(json.loads, file):
                by_form.setdefault((line["format"], line["version"]), []).append(line)
    return by_form


PAIRS = [(name, version) for name, form in FORMS.items() for version in form.counts]


def test_vectors_hold_every_format_and_version() -> None:
    assert {pair: len(lines) for pair, lines in vectors().items()} == {
        (name, version): count for name, form in FORMS.items() for version, count in form.counts.items()
    }
    assert sum(map(len, vectors().values())) == 921


def comparable(value: Any, *, sort_partitions: bool) -> Any:
    """Kafka's sets in one order: the assignor's previous assignment comes as a set in some vectors."""
    if sort_partitions and "previous_assignment" in value:
        previous = {topic: sorted(numbers) for topic, numbers in value["previous_assignment"].items()}
        return {**value, "previous_assignment": previous}
    return value


@pytest.mark.parametrize(("name", "version"), PAIRS)
def test_vector(name: str, version: int) -> None:
    form = FORMS[name]
    checked = Counter[str]()
    for line in vectors()[name, version]:
        if line["hex"] is None:
            assert line["json"]["previous_assignment"] == {}
            checked["no bytes"] += 1
            continue
        raw = bytes.fromhex(line["hex"])
        message = form.decode(raw)
        assert message.version == version
        assert message.trailing == b""
        assert encode_embedded(message) == raw
        expanded = form.expand(raw)
        if name.startswith("Consumer"):
            assert message.to_json() == line["json"]
            assert expanded.pop("version") == version
        is_set = name == "StickyUserData"
        assert comparable(expanded, sort_partitions=is_set) == comparable(line["json"], sort_partitions=is_set)
        checked["equal"] += 1
    assert checked.total() == form.counts[version]
    assert checked["equal"] > checked["no bytes"]


@pytest.mark.parametrize("version", range(4))
def test_consumer_json_reads_back(version: int) -> None:
    for name, table in (
        ("ConsumerProtocolSubscription", consumer.CONSUMER_PROTOCOL_SUBSCRIPTION),
        ("ConsumerProtocolAssignment", consumer.CONSUMER_PROTOCOL_ASSIGNMENT),
    ):
        for line in vectors()[name, version]:
            fields = table.from_json(line["json"], version)
            assert encode_embedded(Embedded(table, version, fields)).hex() == line["hex"]


def test_constructed_sticky_data_keeps_the_wire_order() -> None:
    for line in vectors()["StickyUserData", 0]:
        assert sticky.sticky_json(sticky.decode_sticky(bytes.fromhex(line["hex"]))) == line["json"]


# ------------------------------------------------------------------------------------------- versions

SUBSCRIPTION_V3 = bytes.fromhex("0003 00000001 0001 74 ffffffff 00000000 00000005 ffff")


@pytest.mark.parametrize("number", ["0004", "0007", "7fff"])
def test_later_version_is_read_as_the_newest_and_its_rest_kept(number: str) -> None:
    """``records:D1``."""
    raw = bytes.fromhex(number) + SUBSCRIPTION_V3[2:] + b"new field"
    message = consumer.decode_subscription(raw)
    assert (message.version, message.trailing) == (int(number, 16), b"new field")
    assert message.to_json() == consumer.decode_subscription(SUBSCRIPTION_V3).to_json()
    assert encode_embedded(message) == raw
    assert expand_subscription("consumer", "range", raw) == {
        "version": int(number, 16),
        "topics": ["t"],
        "userData": None,
        "ownedPartitions": [],
        "generationId": 5,
        "rackId": None,
        "trailing_hex": b"new field".hex(),
    }


@pytest.mark.parametrize(
    ("decode", "raw"),
    [
        (consumer.decode_subscription, b"\xff\xff" + SUBSCRIPTION_V3[2:]),
        (consumer.decode_assignment, b"\x80\x00" + bytes(8)),
        (connect.decode_metadata, b"\xff\xff" + bytes(20)),
        (streams.decode_subscription_info, bytes(60)),
        (streams.decode_subscription_info, b"\0\0\0\x0c" + bytes(60)),
        (streams.decode_assignment_info, b"\0\0\0\x0c" + bytes(60)),
        (streams.decode_assignment_info, b"\xff\xff\xff\xff" + bytes(60)),
    ],
)
def test_unknown_version_is_refused(decode: Callable[[bytes, str], Embedded], raw: bytes) -> None:
    with pytest.raises(CorruptRecordError, match="has no version") as caught:
        decode(raw, "here")
    assert caught.value.field == "here.version"


def test_error_names_the_field() -> None:
    with pytest.raises(CorruptRecordError, match="9 elements are declared") as caught:
        consumer.decode_assignment(bytes.fromhex("0000 00000001 0001 74 00000009 00000000"))
    assert caught.value.field == "assignment.assigned_partitions[0].partitions"


@pytest.mark.parametrize("expand", [expand_subscription, expand_assignment])
@pytest.mark.parametrize("protocol_type", ["consumer", "connect", "sr"])
def test_no_bytes_are_nothing_and_failures_are_told(expand: Callable[..., Any], protocol_type: str) -> None:
    """``records:E1``: no bytes are an answer."""
    assert expand(protocol_type, "range", b"") is None
    assert list(expand(protocol_type, None, b"\x01")) == ["error"]


@pytest.mark.parametrize("protocol_type", ["", None, "mine", "CONSUMER"])
def test_other_protocol_types_are_opaque(protocol_type: str | None) -> None:
    assert expand_subscription(protocol_type, "range", SUBSCRIPTION_V3) is None
    assert expand_assignment(protocol_type, "range", bytes(10)) is None


@pytest.mark.parametrize("protocol", ["sticky", "cooperative-sticky", "stream"])
def test_user_data_that_fails_leaves_the_rest(protocol: str) -> None:
    """``records:E2``."""
    expanded = expand_subscription("consumer", protocol, in_consumer_subscription(b"\xff\0\xff"))
    assert expanded is not None
    assert expanded["topics"] == ["t"]
    assert expanded["userData"] == "/wD/"
    assert expanded["userDataDecoded"]["error"].startswith("field subscription.user_data")


def test_user_data_nobody_knows_is_left_as_bytes() -> None:
    for protocol, raw in (("range", b"\0\0\0\1"), (None, b"x"), ("sticky", b"")):
        expanded = expand_subscription("consumer", protocol, in_consumer_subscription(raw))
        assert expanded is not None
        assert "userDataDecoded" not in expanded
    expanded = expand_assignment("consumer", "sticky", in_consumer_assignment(b"x"))
    assert expanded == {"version": 3, "assignedPartitions": [], "userData": "eA=="}


def test_cooperative_sticky_is_four_bytes() -> None:
    for size in (0, 3, 5, 8):
        with pytest.raises(CorruptRecordError):
            sticky.decode_cooperative_sticky(bytes(size))


def test_sticky_joins_what_names_a_topic_twice() -> None:
    row = bytes.fromhex("0001 74 00000001 00000002")
    message = sticky.decode_sticky(b"\0\0\0\2" + row * 2)
    assert message.version == 0
    assert sticky.sticky_json(message) == {"previous_assignment": {"t": [2, 2]}}
