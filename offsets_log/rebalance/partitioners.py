"""Kafka's partitioners, by which a producer chooses the partition of a message, behind one interface.

A producer asks `Partitioner.partition` for every message. If the message would begin a new batch it calls
`Partitioner.on_new_batch` and asks once more, so that a sticky partitioner can move on; `place` does what a producer
does. That second question is why round robin skips every other partition where each message begins a batch
(KAFKA-9965, in every release so far).

References: ``clients/producer/Partitioner.java``, ``RoundRobinPartitioner.java``, ``UniformStickyPartitioner.java``,
``internals/DefaultPartitioner.java``, ``internals/StickyPartitionCache.java``, ``Utils.murmur2``.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Protocol

from offsets_log.rebalance.java_order import UINT32

INT32_MAX = 0x7FFFFFFF
SEED = 0x9747B28C
MULTIPLIER = 0x5BD1E995

Key = bytes | None
Value = bytes | None


class Partitioner(Protocol):
    """A rule that chooses a partition for each message; it may remember its choices."""

    def partition(self, topic: str, key: Key, value: Value, partitions: int, available: Sequence[int]) -> int:
        """Return the partition for a message.

        Args:
            partitions: how many the topic has, at least one.
            available: partitions that have a leader now, in the order of the client's metadata.
        """

    def on_new_batch(self, topic: str, partitions: int, available: Sequence[int], previous: int) -> None:
        """Take note that the message for ``previous`` would begin a new batch there."""


def place(
    partitioner: Partitioner,
    topic: str,
    key: Key,
    value: Value,
    partitions: int,
    available: Sequence[int],
    begins_batch: Callable[[int], bool],
) -> int:
    """Return the partition to which a producer of 2.4 or later really sends a message.

    Args:
        begins_batch: tells whether a message for a partition begins a batch there.
    """
    chosen = partitioner.partition(topic, key, value, partitions, available)
    if begins_batch(chosen):
        partitioner.on_new_batch(topic, partitions, available, chosen)
        chosen = partitioner.partition(topic, key, value, partitions, available)
    return chosen


# ------------------------------------------------------------------------------------------------ by key


def murmur2(data: bytes) -> int:
    """Compute Kafka's 32 bit murmur2, signed as in Java."""
    found = SEED ^ len(data)
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        part = int.from_bytes(data[at : at + 4], "little") * MULTIPLIER & UINT32
        part = (part ^ part >> 24) * MULTIPLIER & UINT32
        found = (found * MULTIPLIER & UINT32) ^ part
    if rest := data[whole:]:
        found = (found ^ int.from_bytes(rest, "little")) * MULTIPLIER & UINT32
    found = (found ^ found >> 13) * MULTIPLIER & UINT32
    found ^= found >> 15
    return found - (1 << 32) if found >> 31 else found


def partition_for_key(key: bytes, partitions: int) -> int:
    """Return the partition of a message with this key: `murmur2` without its sign bit, modulo the partitions."""
    return (murmur2(key) & INT32_MAX) % partitions


class _WithoutBatches:
    """A partitioner for which batches do not matter."""

    def on_new_batch(self, topic: str, partitions: int, available: Sequence[int], previous: int) -> None:
        """Do nothing."""


class RoundRobinPartitioner(_WithoutBatches):
    """Takes partitions in turn, whatever the key, with a counter for each topic; see the module on what it skips."""

    def __init__(self) -> None:
        self._next: dict[str, int] = {}

    def partition(self, topic: str, key: Key, value: Value, partitions: int, available: Sequence[int]) -> int:
        """Return the next partition: of the available ones, if there are any."""
        number = self._next.get(topic, 0)
        self._next[topic] = (number + 1) & UINT32
        number &= INT32_MAX
        return available[number % len(available)] if available else number % partitions


class RandomPartitioner(_WithoutBatches):
    """Takes any available partition, whatever the key."""

    def __init__(self, source: random.Random) -> None:
        self._source = source

    def partition(self, topic: str, key: Key, value: Value, partitions: int, available: Sequence[int]) -> int:
        """Return any partition: one of the available ones, if there are any."""
        return self._source.choice(available) if available else self._source.randrange(partitions)


class UniformStickyPartitioner:
    """Takes one partition until a batch is full, then another at random, whatever the key (2.4)."""

    def __init__(self, source: random.Random) -> None:
        self._source = source
        self._current: dict[str, int] = {}

    def partition(self, topic: str, key: Key, value: Value, partitions: int, available: Sequence[int]) -> int:
        """Return the current partition."""
        if topic not in self._current:
            self._current[topic] = self._another(None, partitions, available)
        return self._current[topic]

    def on_new_batch(self, topic: str, partitions: int, available: Sequence[int], previous: int) -> None:
        """Move on, unless that has happened since."""
        current = self._current.get(topic)
        if current is None or current == previous:
            self._current[topic] = self._another(current, partitions, available)

    def _another(self, current: int | None, partitions: int, available: Sequence[int]) -> int:
        if not available:
            return self._source.randrange(partitions)
        return self._source.choice([each for each in available if each != current] or available)


class DefaultPartitioner:
    """Takes the partition by `murmur2` of the key; without a key, sticky from 2.4 on and round robin before."""

    def __init__(self, without_key: Partitioner) -> None:
        self._without_key = without_key

    def partition(self, topic: str, key: Key, value: Value, partitions: int, available: Sequence[int]) -> int:
        """Return the key's partition: of all, because that does not depend on which have a leader."""
        if key is not None:
            return partition_for_key(key, partitions)
        return self._without_key.partition(topic, key, value, partitions, available)

    def on_new_batch(self, topic: str, partitions: int, available: Sequence[int], previous: int) -> None:
        """Tell the partitioner for messages without a key."""
        self._without_key.on_new_batch(topic, partitions, available, previous)


class GeoPartitioner:
    """Takes a partition whose leader is in the message's region; without any, as another partitioner chooses.

    Within the region the other partitioner chooses, over the partitions there numbered from 0: the same key goes to
    the same partition as long as the leaders of the region stay.

    Args:
        region_of: (topic, key, value) → the message's region; None if it has none.
        leader_region: (topic, partition) → the region of the broker that leads it, None if nobody does.
        within: the partitioner that chooses among several.
    """

    def __init__(
        self,
        region_of: Callable[[str, Key, Value], str | None],
        leader_region: Callable[[str, int], str | None],
        within: Partitioner,
    ) -> None:
        self._region_of = region_of
        self._leader_region = leader_region
        self._within = within

    def partition(self, topic: str, key: Key, value: Value, partitions: int, available: Sequence[int]) -> int:
        """Return a partition of the message's region, if the region leads any."""
        region = self._region_of(topic, key, value)
        near = self._near(topic, region, available)
        if not near:
            return self._within.partition(topic, key, value, partitions, available)
        return near[self._within.partition(f"{topic}@{region}", key, value, len(near), range(len(near)))]

    def on_new_batch(self, topic: str, partitions: int, available: Sequence[int], previous: int) -> None:
        """Tell the other partitioner, in the numbers it was asked with: those of the region, and of the whole topic."""
        region = self._leader_region(topic, previous)
        near = self._near(topic, region, available)
        if previous in near:
            self._within.on_new_batch(f"{topic}@{region}", len(near), range(len(near)), near.index(previous))
        self._within.on_new_batch(topic, partitions, available, previous)

    def _near(self, topic: str, region: str | None, available: Sequence[int]) -> list[int]:
        return [each for each in sorted(available) if region is not None and self._leader_region(topic, each) == region]


PARTITIONERS: dict[str, Callable[[random.Random], Partitioner]] = {
    "murmur2": lambda source: DefaultPartitioner(UniformStickyPartitioner(source)),
    "roundrobin": lambda source: RoundRobinPartitioner(),
    "random": RandomPartitioner,
    "uniform-sticky": UniformStickyPartitioner,
}
"""Name → a function that makes a new one; the numbers of ``source`` decide where chance does."""
