"""Subscriptions and assignments are anybody's bytes: they parse or are refused, quickly and in little memory."""

from __future__ import annotations

import json
import lzma
import struct
import tracemalloc
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from offsets_log.errors import CorruptRecordError
from offsets_log.messages import connect_protocol as connect
from offsets_log.messages import consumer_protocol as consumer
from offsets_log.messages import sticky_user_data as sticky
from offsets_log.messages import streams_protocol as streams
from offsets_log.messages.consumer_protocol import Embedded, encode_embedded
from offsets_log.messages.embedded import expand_assignment, expand_subscription

VECTORS = Path(__file__).parents[1] / "vectors"

DECODERS: dict[str, Callable[[bytes], Embedded]] = {
    "ConsumerProtocolSubscription": consumer.decode_subscription,
    "ConsumerProtocolAssignment": consumer.decode_assignment,
    "StickyUserData": sticky.decode_sticky,
    "CooperativeStickyUserData": sticky.decode_cooperative_sticky,
    "ConnectMetadata": connect.decode_metadata,
    "ConnectAssignment": connect.decode_assignment,
    "StreamsSubscriptionInfo": streams.decode_subscription_info,
    "StreamsAssignmentInfo": streams.decode_assignment_info,
}

PROTOCOLS = [("consumer", name) for name in ("range", "sticky", "cooperative-sticky", "stream")]
PROTOCOLS += [("connect", "sessioned"), ("sr", "v0"), ("mine", "x")]


@cache
def samples() -> tuple[tuple[str, bytes], ...]:
    """Up to four vectors of every format and version, long and short ones."""
    by_form: dict[tuple[str, int], list[bytes]] = {}
    for name in ("consumer-protocol-4.3.0", "embedded-4.3.0"):
        with lzma.open(VECTORS / f"{name}.jsonl.xz", "rt", encoding="utf-8", newline="\n") as file:
            for line in map(json.loads, file):
                if line["hex"] is not None:
                    by_form.setdefault((line["format"], line["version"]), []).append(bytes.fromhex(line["hex"]))
    picked = {form: sorted(raws, key=len)[:: max(1, len(raws) // 3)] for form, raws in by_form.items()}
    return tuple((form, raw) for (form, _), raws in picked.items() for raw in raws)


def wrapped(raw: bytes) -> list[bytes]:
    """The bytes as they are, and as user data of a consumer's subscription and assignment."""
    size = struct.pack(">i", len(raw))
    return [raw, bytes(6) + size + raw, struct.pack(">hii", 1, 0, len(raw)) + raw + bytes(4)]


def check(raw: bytes) -> None:
    """Every decoder parses and builds the same bytes, or refuses; every expansion is JSON in UTF-8."""
    for decode in DECODERS.values():
        try:
            message = decode(raw)
        except CorruptRecordError as error:
            assert error.field  # noqa: PT017
        else:
            assert encode_embedded(message) == raw
    for protocol_type, protocol in PROTOCOLS:
        for data in wrapped(raw):
            for expand in (expand_subscription, expand_assignment):
                expanded = expand(protocol_type, protocol, data)
                assert expanded is None or isinstance(expanded, dict)
                json.dumps(expanded, ensure_ascii=False, allow_nan=False).encode()


@given(st.binary(max_size=400))
@example(b"")
@example(b"\x7f\xff\xff\xff" * 8)
@example(b"\0\0\0\x0b" * 40)
def test_random_bytes(raw: bytes) -> None:
    check(raw)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    raw = bytearray(draw(st.sampled_from(samples()))[1])
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(0, len(raw) - 1)))
        piece = draw(
            st.sampled_from([b"", b"\0", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\xc0\x80"]) | st.binary(max_size=6)
        )
        raw[at : at + draw(st.integers(0, 6))] = piece
    return bytes(raw)


@given(mutated())
def test_mutated_vectors(raw: bytes) -> None:
    check(raw)


@pytest.mark.parametrize("name", DECODERS)
def test_forged_counts_and_cut_bytes_cost_nothing(name: str) -> None:
    decode = DECODERS[name]
    raws = [raw for form, raw in samples() if form == name]
    assert raws
    decode(raws[0])
    tracemalloc.start()
    try:
        for raw in (min(raws, key=len), sorted(raws, key=len)[len(raws) // 2]):
            for at in range(min(len(raw), 400)):
                for forged in (raw[:at] + b"\x7f\xff\xff\xff" + raw[at + 4 :], raw[:at] + b"\x7f\xff", raw[:at]):
                    try:
                        decode(forged)
                    except CorruptRecordError:
                        continue
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000
