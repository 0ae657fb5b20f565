"""The assignors that ignore what members had before: ``range`` and ``roundrobin``.

References: ``clients/consumer/RangeAssignor.java``, ``RoundRobinAssignor.java``.
"""

from __future__ import annotations

from offsets_log.rebalance.assignors.assignor import (
    NEWEST,
    Assignment,
    Metadata,
    Rules,
    Subscriptions,
    is_rack_aware,
    member_order,
)
from offsets_log.rebalance.java_order import java_hash_order, java_string_order


class RangeAssignor:
    """``range``: consecutive partitions of each topic for each member (``A-4`` … ``A-7``)."""

    name = "range"

    def __init__(self, rules: Rules = NEWEST) -> None:
        self.rules = rules

    def assign(self, metadata: Metadata, subscriptions: Subscriptions) -> Assignment:
        """Assign as `assignor.Assignor` says."""
        assignment: Assignment = {member_id: [] for member_id in subscriptions}
        topics = self._topics(metadata, subscriptions)
        if self.rules.uses_racks and any(topic.needs_racks for topic in topics):
            _assign_by_rack(topics, assignment)
            for topic in topics:
                topic.assign_ranges(assignment)
            for partitions in assignment.values():
                partitions.sort(key=lambda each: (java_string_order(each[0]), each[1]))
        else:
            for topic in topics:
                topic.assign_ranges(assignment)
        return assignment

    def _topics(self, metadata: Metadata, subscriptions: Subscriptions) -> list[_Topic]:
        """Return the topics in the order that they have in every member's list (``A-5``)."""
        counts = metadata.subscribed(subscriptions)
        subscribed: dict[str, dict[str, str | None]] = {topic: {} for topic in counts}
        for member_id in member_order(subscriptions):
            for topic in subscriptions[member_id].topics:
                if topic in subscribed:
                    subscribed[topic][member_id] = subscriptions[member_id].rack
        topics = [topic for member_id in java_hash_order(subscriptions) for topic in subscriptions[member_id].topics]
        if self.rules.uses_racks:  # since then in the order of the topics with partitions, before of the members' lists
            asked = java_hash_order(topic for topic in java_hash_order(topics) if topic in counts)
        else:
            asked = java_hash_order(topics, newest_first=True)
        return [_Topic(topic, counts[topic], subscribed[topic], metadata) for topic in asked if topic in counts]


class _Topic:
    """A topic that is being assigned.

    Attributes:
        members: member id → rack, in the order of ``A-1``.
        needs_racks: whether racks matter (``A-7``).
    """

    def __init__(self, topic: str, count: int, members: dict[str, str | None], metadata: Metadata) -> None:
        self.topic = topic
        self.members = members
        self.unassigned = dict.fromkeys(range(count))
        self._assigned = dict.fromkeys(members, 0)
        self._quota, self._extra = divmod(count, len(members))
        racks = {rack for rack in members.values() if rack is not None}
        self.racks = [metadata.racks(topic, number) for number in range(count)] if racks else []
        self.needs_racks = is_rack_aware(racks, self.racks)

    def matches(self, member_id: str, number: int) -> bool:
        """Return whether a replica is on the member's rack; a member without a rack is on all of them."""
        rack = self.members[member_id]
        return rack is None or (number < len(self.racks) and rack in self.racks[number])

    def room(self, member_id: str) -> int:
        """Return how many more partitions the member may get."""
        return max(0, self._quota + (self._extra > 0) - self._assigned[member_id])

    def give(self, member_id: str, numbers: list[int], assignment: Assignment) -> None:
        """Assign partitions to a member."""
        assignment[member_id] += [(self.topic, number) for number in numbers]
        self._assigned[member_id] += len(numbers)
        self._extra -= self._assigned[member_id] > self._quota
        for number in numbers:
            del self.unassigned[number]

    def assign_ranges(self, assignment: Assignment, *, only_matching: bool = False) -> None:
        """Give each member in turn the lowest remaining partitions, as many as it has room for."""
        for member_id in self.members:
            room = self.room(member_id)
            free = [n for n in self.unassigned if self.matches(member_id, n)] if only_matching else self.unassigned
            if room and free:
                self.give(member_id, [number for number, _ in zip(free, range(room), strict=False)], assignment)

    def consumed_by(self) -> tuple[list[tuple[str, str | None]], int]:
        """Return a key of topics that are assigned together: equal members, racks, and numbers of partitions."""
        return list(self.members.items()), len(self.racks)


def _assign_by_rack(topics: list[_Topic], assignment: Assignment) -> None:
    groups: list[list[_Topic]] = []
    for topic in topics:
        for group in groups:
            if group[0].consumed_by() == topic.consumed_by():
                group.append(topic)
                break
        else:
            groups.append([topic])
    for group in groups:
        if len(group) > 1:
            _assign_together(group, assignment)
        elif group[0].needs_racks:
            group[0].assign_ranges(assignment, only_matching=True)


def _assign_together(topics: list[_Topic], assignment: Assignment) -> None:
    """Assign all topics at once, partition by partition, to the first member that all match and have room for."""
    waiting = dict.fromkeys(topics[0].members)
    for number in range(len(topics[0].racks)):
        found = next(
            (
                member_id
                for member_id in waiting
                if all(topic.matches(member_id, number) and topic.room(member_id) for topic in topics)
            ),
            None,
        )
        if found is None:
            continue
        for topic in topics:
            topic.give(found, [number], assignment)
        if not any(topic.room(found) for topic in topics):
            del waiting[found]


class RoundRobinAssignor:
    """``roundrobin``: all partitions in order, one for each subscribed member in turn (``A-8``).

    The same in every release but 0.9, which fails for a topic that is not there (``A-9``).
    """

    name = "roundrobin"

    def __init__(self, rules: Rules = NEWEST) -> None:
        self.rules = rules

    def assign(self, metadata: Metadata, subscriptions: Subscriptions) -> Assignment:
        """Assign as `assignor.Assignor` says; a topic goes on with the member after the previous topic's last."""
        assignment: Assignment = {member_id: [] for member_id in subscriptions}
        ring = member_order(subscriptions)
        wanted = {member_id: frozenset(subscription.topics) for member_id, subscription in subscriptions.items()}
        at = 0
        for topic, count in metadata.subscribed(subscriptions).items():
            for number in range(count):
                while topic not in wanted[ring[at % len(ring)]]:
                    at += 1
                assignment[ring[at % len(ring)]].append((topic, number))
                at += 1
        return assignment
