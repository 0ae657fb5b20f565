"""The producers' partitioners: key hashes against Kafka's own, the others by their rules."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise

import pytest

from offsets_log.rebalance.partitioners import (
    PARTITIONERS,
    DefaultPartitioner,
    GeoPartitioner,
    RoundRobinPartitioner,
    UniformStickyPartitioner,
    murmur2,
    partition_for_key,
    place,
)
from offsets_log.replay.partition_for import java_hash, partition_for
from tests.rebalance.cases import vectors

ALL = tuple(range(6))


def test_murmur2_and_partitions_of_keys_equal_kafkas() -> None:
    for case in vectors("murmur2"):
        key = bytes.fromhex(case["key_hex"])
        assert murmur2(key) == case["murmur2"]
        assert partition_for_key(key, case["partitions"]) == case["partition"]


def test_partitions_of_groups_equal_kafkas() -> None:
    """``records:H1``."""
    for case in vectors("partition-for"):
        assert java_hash(case["group"]) == case["hash"]
        assert partition_for(case["group"], case["partitions"]) == case["partition"]


def test_keys_go_by_all_partitions_available_or_not() -> None:
    partitioner = PARTITIONERS["murmur2"](random.Random(1))
    for number in range(50):
        key = b"key %d" % number
        assert partitioner.partition("t", key, None, 6, (0,)) == partition_for_key(key, 6)


def test_round_robin_counts_by_topic_over_what_is_available() -> None:
    partitioner = RoundRobinPartitioner()
    assert [partitioner.partition("t", b"k", None, 6, (1, 4, 5)) for _ in range(4)] == [1, 4, 5, 1]
    assert [partitioner.partition("u", None, None, 3, ()) for _ in range(4)] == [0, 1, 2, 0]


def test_round_robin_skips_where_every_message_begins_a_batch() -> None:
    """KAFKA-9965: the producer asks again for a new batch, and half of the partitions get nothing."""
    partitioner = RoundRobinPartitioner()
    placed = [place(partitioner, "t", None, None, 6, ALL, lambda partition: True) for _ in range(6)]
    assert placed == [1, 3, 5, 1, 3, 5]
    assert [place(partitioner, "t", None, None, 6, ALL, lambda partition: False) for _ in range(3)] == [0, 1, 2]


def test_sticky_stays_until_a_batch_is_full_and_then_goes_elsewhere() -> None:
    partitioner = UniformStickyPartitioner(random.Random(7))
    first = partitioner.partition("t", b"one", None, 6, ALL)
    assert {partitioner.partition("t", b"key %d" % number, None, 6, ALL) for number in range(20)} == {first}
    partitioner.on_new_batch("t", 6, ALL, (first + 1) % 6)  # somebody else's batch
    assert partitioner.partition("t", None, None, 6, ALL) == first
    seen = Counter(place(partitioner, "t", None, None, 6, ALL, lambda partition: True) for _ in range(300))
    assert set(seen) == set(ALL)
    partitioner.on_new_batch("u", 6, (3,), 0)
    assert partitioner.partition("u", None, None, 6, (3,)) == 3
    partitioner.on_new_batch("u", 6, (3,), 3)  # nowhere else to go
    assert partitioner.partition("u", None, None, 6, (3,)) == 3


@pytest.mark.parametrize("name", PARTITIONERS)
def test_without_any_leader_some_partition_is_given_all_the_same(name: str) -> None:
    partitioner = PARTITIONERS[name](random.Random(3))
    assert 0 <= partitioner.partition("t", None, b"value", 3, ()) < 3


def test_random_reaches_every_available_partition() -> None:
    partitioner = PARTITIONERS["random"](random.Random(3))
    assert {partitioner.partition("t", b"same", None, 6, (1, 2, 5)) for _ in range(100)} == {1, 2, 5}


REGIONS = {0: "eu", 1: "us", 2: "eu", 3: "us", 4: "eu"}


def geo(without_key: UniformStickyPartitioner | RoundRobinPartitioner) -> GeoPartitioner:
    return GeoPartitioner(
        region_of=lambda topic, key, value: value.decode() if value else None,
        leader_region=lambda topic, partition: REGIONS.get(partition),
        within=DefaultPartitioner(without_key),
    )


def test_geo_takes_a_partition_that_is_led_in_the_messages_region() -> None:
    partitioner = geo(RoundRobinPartitioner())
    for number in range(40):
        chosen = partitioner.partition("t", b"key %d" % number, b"eu", 6, ALL)
        assert REGIONS[chosen] == "eu"
        assert partitioner.partition("t", b"key %d" % number, b"eu", 6, ALL) == chosen
    assert [partitioner.partition("t", None, b"us", 6, ALL) for _ in range(3)] == [1, 3, 1]


def test_geo_falls_back_where_nobody_is_near() -> None:
    """No region of the message, no leader there, or no leader at all."""
    partitioner = geo(RoundRobinPartitioner())
    for value in (None, b"asia"):
        assert partitioner.partition("t", b"key", value, 6, ALL) == partition_for_key(b"key", 6)
    assert partitioner.partition("t", b"key", b"eu", 6, ()) == partition_for_key(b"key", 6)


def test_geo_moves_its_sticky_choice_within_the_region() -> None:
    partitioner = geo(UniformStickyPartitioner(random.Random(5)))
    placed = [place(partitioner, "t", None, b"eu", 6, ALL, lambda partition: True) for _ in range(60)]
    assert set(placed) == {0, 2, 4}
    assert all(one != other for one, other in pairwise(placed))
