"""The interface of an assignor: members' subscriptions and the cluster's topics in, partitions for each member out.

An assignor runs in the client that leads a group. Its input has no order; what depends on the order of Java's hash
tables is reproduced from the order in which members are given (``A-3``). `assignors` has them by name.

References: ``clients/consumer/ConsumerPartitionAssignor.java``, ``internals/AbstractPartitionAssignor.java``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from offsets_log.kafka_releases import ROWS, TABLE, row_of, version_of
from offsets_log.rebalance.java_order import UINT32, java_string_order
from offsets_log.replay.partition_for import java_hash

TopicPartition = tuple[str, int]
Assignment = dict[str, list[TopicPartition]]
"""Member id → its partitions, in the assignor's order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """A member's request: the consumer protocol's subscription and the member's instance id.

    Attributes:
        owned_partitions: the partitions that the member says it owns.
        generation: the generation in which it got ``owned_partitions``; None if it does not say.
        user_data: an assignor's own bytes.
    """

    topics: tuple[str, ...]
    owned_partitions: tuple[TopicPartition, ...] = ()
    generation: int | None = None
    user_data: bytes | None = None
    group_instance_id: str | None = None
    rack_id: str | None = None

    @property
    def rack(self) -> str | None:
        """The member's rack; an empty one counts as none (``records:D2``)."""
        return self.rack_id or None


Subscriptions = Mapping[str, Subscription]
"""Member id → its subscription, in the order in which the leader put them into its map."""


@dataclass(frozen=True, slots=True)
class Metadata:
    """The cluster's topics and racks.

    Attributes:
        partition_counts: topic → its number of partitions; 0 for a topic that does not exist.
        replica_racks: topic → for each partition the racks of its replicas; the racks of other topics are unknown.
    """

    partition_counts: Mapping[str, int]
    replica_racks: Mapping[str, Sequence[Collection[str]]] = field(default_factory=dict)

    def subscribed(self, subscriptions: Subscriptions) -> dict[str, int]:
        """Return the topics with partitions that members subscribe to (``A-2``), in Java's order of strings."""
        asked = {topic for subscription in subscriptions.values() for topic in subscription.topics}
        return {
            topic: count
            for topic in sorted(asked, key=java_string_order)
            if (count := self.partition_counts.get(topic, 0)) > 0
        }

    def racks(self, topic: str, partition: int) -> frozenset[str]:
        """Return the racks of the partition's replicas, as far as known."""
        rows = self.replica_racks.get(topic, ())
        return frozenset(rows[partition]) if partition < len(rows) else frozenset()


class Assignor(Protocol):
    """A partition assignor by one release's rules; it keeps nothing between two assignments."""

    @property
    def name(self) -> str:
        """The protocol name that members vote for."""

    def assign(self, metadata: Metadata, subscriptions: Subscriptions) -> Assignment:
        """Return the partitions of every member; members that get none have an empty list."""


def member_order(subscriptions: Subscriptions) -> list[str]:
    """Return members with an instance id first, ordered by it, then the others by member id (``A-1``)."""

    def order(member_id: str) -> tuple[bool, bytes]:
        instance_id = subscriptions[member_id].group_instance_id
        return instance_id is None, java_string_order(member_id if instance_id is None else instance_id)

    return sorted(subscriptions, key=order)


def is_rack_aware(consumer_racks: Collection[str], partition_racks: Iterable[frozenset[str]]) -> bool:
    """Return whether racks matter: some are shared, and not every partition is on all of them (``A-7``)."""
    rows = list(partition_racks)
    known = frozenset().union(*rows)
    return not known.isdisjoint(consumer_racks) and any(row != known for row in rows)


def topic_partition_hash(partition: TopicPartition) -> int:
    """Return ``TopicPartition.hashCode``."""
    topic, number = partition
    return (31 * (31 + number) + java_hash(topic)) & UINT32


# ------------------------------------------------------------------------------------------ releases


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The differences between releases of Kafka's clients.

    Attributes:
        since: the first release of these rules.
        revokes_in_order: what a member keeps is chosen by partition, then topic, not in the order of its claims. A
            partition that goes back to the member that gave it up does not change hands; one taken from a member on
            another rack does (3.7.1, ``A-14``, KAFKA-15170).
        uses_racks: range and sticky assignors look at racks (3.5, ``A-7``, ``A-20``).
        tolerates_one_more: the general algorithm takes a difference of one for balanced (3.5).
        compares_claims: claims are compared partition by partition (3.4, ``A-13``); before, only members of the newest
            generation counted.
        has_generation_field: the generation field of a subscription outranks that in its user data (3.4).
        counts_members_above_quota: the constrained algorithm of 3.0 (``A-14``); before, members steal (``A-16``).
        keeps_claims: the general algorithm begins with the partitions that the comparison of claims left (3.0).
    """

    since: str
    revokes_in_order: bool
    uses_racks: bool
    tolerates_one_more: bool
    compares_claims: bool
    has_generation_field: bool
    counts_members_above_quota: bool
    keeps_claims: bool

    @property
    def name(self) -> str:
        """The rules' name, such as ``3.4+``."""
        return f"{self.since}+"


RULES = tuple(
    Rules(since=whole.name, **(whole.assignors or {}))
    for row, whole in zip(reversed(ROWS), reversed(TABLE), strict=True)
    if row.assignors
)
"""All rules, the newest first."""
NEWEST = RULES[0]


def rules_of(release: Sequence[int]) -> Rules:
    """Return the rules of a release; before 2.5 the oldest ones, though it has no such sticky assignor."""
    row = row_of(tuple(release))
    return next((rules for rules in RULES if version_of(rules.since) <= row.version), RULES[-1])
