"""What an assignor is: members' subscriptions and the cluster's topics in, a list of partitions for each member out.

It runs in the client that leads a group; its input is unordered, and what depends on the order of Java's hash tables is
reproduced from the order in which members are given (``A-3``). `assignors` has them by name.

References: ``clients/consumer/ConsumerPartitionAssignor.java``, ``internals/AbstractPartitionAssignor.java``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from offsets_log.rebalance.java_order import UINT32, java_string_order
from offsets_log.replay.partition_for import java_hash

TopicPartition = tuple[str, int]
Assignment = dict[str, list[TopicPartition]]
"""Member id → its partitions, in the assignor's order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """What a member asks for: the consumer protocol's subscription and the member's instance id.

    Attributes:
        owned_partitions: what it says it has.
        generation: of ``owned_partitions``; None without one.
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
        """An empty rack is none (``records:D2``)."""
        return self.rack_id or None


Subscriptions = Mapping[str, Subscription]
"""By member id, in the order in which the leader put them into its map."""


@dataclass(frozen=True, slots=True)
class Metadata:
    """The cluster's topics.

    Attributes:
        partition_counts: topic → how many partitions; 0 is a topic that is not there.
        replica_racks: topic → for each partition the racks of its replicas; a topic without is on no known rack.
    """

    partition_counts: Mapping[str, int]
    replica_racks: Mapping[str, Sequence[Collection[str]]] = field(default_factory=dict)

    def subscribed(self, subscriptions: Subscriptions) -> dict[str, int]:
        """Topics that somebody subscribes to and that have partitions (``A-2``), in Java's order of strings."""
        asked = {topic for subscription in subscriptions.values() for topic in subscription.topics}
        return {
            topic: count
            for topic in sorted(asked, key=java_string_order)
            if (count := self.partition_counts.get(topic, 0)) > 0
        }

    def racks(self, topic: str, partition: int) -> frozenset[str]:
        """Where the partition's replicas are, as far as known."""
        rows = self.replica_racks.get(topic, ())
        return frozenset(rows[partition]) if partition < len(rows) else frozenset()


class Assignor(Protocol):
    """A partition assignor, by one release's rules. It keeps nothing between two assignments."""

    @property
    def name(self) -> str:
        """The protocol name that members vote for."""

    def assign(self, metadata: Metadata, subscriptions: Subscriptions) -> Assignment:
        """Partitions for every member, also for those that get none."""


def member_order(subscriptions: Subscriptions) -> list[str]:
    """Members with an instance id first, ordered by it, then the others by member id (``A-1``)."""

    def order(member_id: str) -> tuple[bool, bytes]:
        instance_id = subscriptions[member_id].group_instance_id
        return instance_id is None, java_string_order(member_id if instance_id is None else instance_id)

    return sorted(subscriptions, key=order)


def is_rack_aware(consumer_racks: Collection[str], partition_racks: Iterable[frozenset[str]]) -> bool:
    """Whether racks can matter: some are shared, and not every partition is on all of them (``A-7``)."""
    rows = list(partition_racks)
    known = frozenset().union(*rows)
    return not known.isdisjoint(consumer_racks) and any(row != known for row in rows)


def topic_partition_hash(partition: TopicPartition) -> int:
    """``TopicPartition.hashCode``."""
    topic, number = partition
    return (31 * (31 + number) + java_hash(topic)) & UINT32


# ------------------------------------------------------------------------------------------ releases


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What differs between releases of Kafka's clients.

    Attributes:
        since: the first release of these rules.
        revokes_in_order: what a member keeps goes by partition, then topic, and not as claimed; giving a partition back
            to who gave it up is no change of hands, but taking it from a member on another rack is (3.7.1, ``A-14``,
            KAFKA-15170).
        uses_racks: range and sticky assignors look at racks (3.5, ``A-7``, ``A-20``).
        tolerates_one_more: the general algorithm calls a difference of one balanced (3.5).
        compares_claims: claims are compared partition by partition (3.4, ``A-13``); before, only members of the newest
            generation counted.
        has_generation_field: the subscription's own generation outranks user data (3.4).
        counts_members_above_quota: the constrained algorithm of 3.0 (``A-14``); before, members steal (``A-16``).
        keeps_claims: the general algorithm begins with what the comparison of claims left (3.0).
    """

    since: tuple[int, ...]
    revokes_in_order: bool = False
    uses_racks: bool = False
    tolerates_one_more: bool = False
    compares_claims: bool = False
    has_generation_field: bool = False
    counts_members_above_quota: bool = False
    keeps_claims: bool = False

    @property
    def name(self) -> str:
        """As ``3.4+``."""
        return ".".join(map(str, self.since)) + "+"


_2_5 = Rules(since=(2, 5))
_3_0 = replace(_2_5, since=(3, 0), counts_members_above_quota=True, keeps_claims=True)
_3_4 = replace(_3_0, since=(3, 4), compares_claims=True, has_generation_field=True)
_3_5 = replace(_3_4, since=(3, 5), uses_racks=True, tolerates_one_more=True)
NEWEST = replace(_3_5, since=(3, 7, 1), revokes_in_order=True)
RULES = (NEWEST, _3_5, _3_4, _3_0, _2_5)
"""Newest first."""


def rules_of(release: Sequence[int]) -> Rules:
    """The rules of a release; of one before 2.5 the oldest there are, whose sticky assignor it does not have."""
    return next((rules for rules in RULES if tuple(release) >= rules.since), RULES[-1])
