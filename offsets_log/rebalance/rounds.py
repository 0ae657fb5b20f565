"""Both sides of a group's rebalances: consumers with Kafka's assignors, and the coordinator that they talk to.

    play = GroupPlay(Metadata({"invoices": 12}), clock)
    play.join(Consumer("m1", ("invoices",), ("cooperative-sticky",)))
    play.settle()
    play.log      # what the coordinator wrote: `Timelines` reads it

A consumer joins again when its heartbeat says so, and the leader assigns. With a cooperative assignor, a consumer that
had to give something back joins once more (``A-19``).

Reference: ``clients/consumer/internals/ConsumerCoordinator.java``, ``ConsumerProtocol.java``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from offsets_log.coordinator.cache import GroupCoordinatorCache
from offsets_log.coordinator.config import OffsetConfig
from offsets_log.coordinator.errors import Errors
from offsets_log.coordinator.log import MemoryLog
from offsets_log.coordinator.validation import MemberIdentity
from offsets_log.kafka_releases import NEWEST as NEWEST_RELEASE
from offsets_log.messages.consumer_protocol import (
    CONSUMER_PROTOCOL_ASSIGNMENT,
    CONSUMER_PROTOCOL_SUBSCRIPTION,
    Embedded,
    decode_assignment,
    encode_embedded,
)
from offsets_log.messages.sticky_user_data import COOPERATIVE_STICKY_USER_DATA
from offsets_log.rebalance.assignors import ASSIGNORS
from offsets_log.rebalance.assignors.assignor import NEWEST, Metadata, Rules, TopicPartition
from offsets_log.rebalance.assignors.sticky import COOPERATIVE
from offsets_log.rebalance.classic_group import Joined, Joining, Pending, Synced
from offsets_log.rebalance.consumer_bytes import by_topic, sticky_user_data, subscription_of, topic_rows
from offsets_log.rebalance.java_order import java_string_order
from offsets_log.rebalance.membership import GroupMembership

PROTOCOL_VERSION = 3
MAX_TURNS = 1000
"""A group that has not settled after so many turns never will."""


class Clock:
    """A clock that is set by hand."""

    def __init__(self, now_ms: int = 0) -> None:
        self.now_ms = now_ms

    def __call__(self) -> int:
        """Return the time in milliseconds."""
        return self.now_ms


@dataclass(eq=False)
class Consumer:
    """A consumer with Kafka's assignors.

    Attributes:
        protocols: its assignors, in order of preference.
        owned: the partitions that it has now.
        given: protocol → its last assignment by that protocol, and the generation of that: an assignor knows only its
            own assignments.
    """

    client_id: str
    topics: tuple[str, ...]
    protocols: tuple[str, ...]
    group_instance_id: str | None = None
    rack_id: str | None = None
    member_id: str = ""
    generation: int = -1
    owned: list[TopicPartition] = field(default_factory=list)
    given: dict[str, tuple[list[TopicPartition], int]] = field(default_factory=dict)
    must_join: bool = True
    joining: Pending[Joined] | None = None
    syncing: Pending[Synced] | None = None

    @property
    def is_cooperative(self) -> bool:
        """Whether all its assignors are cooperative."""
        return set(self.protocols) == {COOPERATIVE}

    @property
    def identity(self) -> MemberIdentity:
        """Who it is, as it tells the coordinator."""
        return MemberIdentity(self.member_id, self.group_instance_id, self.generation)

    def request(self) -> Joining:
        """Return its join request; an eager consumer has given back everything before."""
        if not self.is_cooperative:
            self.owned = []
        return Joining(
            protocols=tuple((name, self._subscription(name)) for name in self.protocols),
            client_id=self.client_id,
            group_instance_id=self.group_instance_id,
        )

    def _subscription(self, protocol: str) -> bytes:
        fields: dict[str, Any] = {
            "topics": sorted(self.topics, key=java_string_order),
            "user_data": self._user_data(protocol),
            "owned_partitions": topic_rows(sorted(self.owned)),
            "generation_id": self.generation,
            "rack_id": self.rack_id,
        }
        return encode_embedded(Embedded(CONSUMER_PROTOCOL_SUBSCRIPTION, PROTOCOL_VERSION, fields))

    def _user_data(self, protocol: str) -> bytes | None:
        """Return the assignor's user data (``StickyAssignor``, ``CooperativeStickyAssignor``)."""
        given, generation = self.given.get(protocol, ([], -1))
        if protocol == COOPERATIVE:
            return encode_embedded(Embedded(COOPERATIVE_STICKY_USER_DATA, 0, {"generation": generation}))
        return sticky_user_data(given, generation) if protocol == "sticky" and protocol in self.given else None

    def take(self, protocol: str, assignment: bytes) -> None:
        """Take an assignment; a cooperative consumer that loses something gives it back and joins again."""
        rows = decode_assignment(assignment).fields["assigned_partitions"] if assignment else []
        given = [(row["topic"], number) for row in rows for number in row["partitions"]]
        self.must_join = self.is_cooperative and not set(self.owned) <= set(given)
        self.owned = given
        self.given[protocol] = (given, self.generation)


class GroupPlay:
    """One group with its consumers.

    Attributes:
        consumers: its members in the order in which they joined.
        metadata: the topics; may be replaced between two rounds.
    """

    def __init__(
        self,
        metadata: Metadata,
        clock: Clock,
        *,
        group_id: str = "group",
        release: str = NEWEST_RELEASE.name,
        rules: Rules = NEWEST,
        new_member_id: Callable[[Joining], str] = lambda joining: joining.client_id,
    ) -> None:
        self.metadata = metadata
        self.consumers: list[Consumer] = []
        self.log = MemoryLog()
        self._clock = clock
        self._group_id = group_id
        self._rules = rules
        one = OffsetConfig(offsets_topic_num_partitions=1)
        cache = GroupCoordinatorCache(self.log, clock, release=release, offset_config=one)
        cache.startup()
        cache.on_election(0, leader_epoch=0)
        self.membership = GroupMembership(cache, clock, release=release, new_member_id=new_member_id)

    def join(self, consumer: Consumer) -> None:
        """Let a consumer join."""
        self.consumers.append(consumer)

    def leave(self, consumer: Consumer) -> None:
        """Let a consumer leave, and say so."""
        self.consumers.remove(consumer)
        self.membership.leave(self._group_id, consumer.identity)

    def vanish(self, consumer: Consumer) -> None:
        """Let a consumer disappear without leaving."""
        self.consumers.remove(consumer)

    def settle(self) -> None:
        """Let all consumers act until nothing is left to do.

        Raises:
            RuntimeError: the group does not settle.
        """
        for _ in range(MAX_TURNS):
            if not self._turn():
                return
        raise RuntimeError(f"the group has not settled after {MAX_TURNS} turns")

    def _turn(self) -> bool:
        """Let each consumer take its next step; return whether any did."""
        for consumer in self.consumers:
            if consumer.joining is None and consumer.syncing is None and not consumer.must_join:
                said = self.membership.heartbeat(self._group_id, consumer.identity)
                consumer.must_join = said is not Errors.NONE
        waiting = [each for each in self.consumers if each.must_join]
        waiting.sort(key=lambda each: each.member_id != "")  # who comes new is there before a join phase ends
        for consumer in waiting:
            consumer.must_join = False
            consumer.joining = self.membership.join(self._group_id, consumer.request(), consumer.member_id)
        if not waiting and not self._answered() and any(each.joining is not None for each in self.consumers):
            self._let_time_pass()
        answered = self._answered()
        for consumer in answered:
            self._after_join(consumer)
        for consumer in self.consumers:
            if consumer.syncing is not None and consumer.syncing.answer is not None:
                self._after_sync(consumer, consumer.syncing.answer)
        return bool(waiting or answered) or any(each.must_join or each.joining for each in self.consumers)

    def _let_time_pass(self) -> None:
        """Move the clock on, because all wait for the end of the join phase."""
        group = self.membership.group(self._group_id)
        if group is not None and group.join_due_ms is not None:
            self._clock.now_ms = max(self._clock.now_ms, group.join_due_ms)
        self.membership.tick()

    def _answered(self) -> list[Consumer]:
        return [each for each in self.consumers if each.joining is not None and each.joining.answer is not None]

    def _after_join(self, consumer: Consumer) -> None:
        assert consumer.joining is not None
        answer, consumer.joining = consumer.joining.answer, None
        assert answer is not None
        if answer.error is not Errors.NONE:
            consumer.member_id, consumer.generation, consumer.must_join = "", -1, True
            return
        consumer.member_id, consumer.generation = answer.member_id, answer.generation
        assignments = self._assign(answer) if answer.members and not answer.skip_assignment else None
        consumer.syncing = self.membership.sync(self._group_id, consumer.identity, assignments)

    def _after_sync(self, consumer: Consumer, answer: Synced) -> None:
        consumer.syncing = None
        if answer.error is Errors.NONE:
            consumer.take(answer.protocol or "", answer.assignment)
        else:
            consumer.must_join = True

    def _assign(self, answer: Joined) -> dict[str, bytes]:
        """Compute the assignment, as the leader."""
        subscriptions = {
            member_id: subscription_of(metadata, instance_id)
            for member_id, (instance_id, metadata) in answer.members.items()
        }
        result = ASSIGNORS[answer.protocol or ""](self._rules).assign(self.metadata, subscriptions)
        return {member_id: _assignment_bytes(partitions) for member_id, partitions in result.items()}


def _assignment_bytes(partitions: Iterable[TopicPartition]) -> bytes:
    fields = {"assigned_partitions": topic_rows(by_topic(list(partitions))), "user_data": None}
    return encode_embedded(Embedded(CONSUMER_PROTOCOL_ASSIGNMENT, PROTOCOL_VERSION, fields))
