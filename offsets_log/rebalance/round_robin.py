"""``roundrobin``: all partitions in order, one to each subscribed member in a ring (``A-8``).

Reference: ``clients/consumer/RoundRobinAssignor.java``.
"""

from __future__ import annotations

from offsets_log.rebalance.assignor import NEWEST, Assignment, Metadata, Rules, Subscriptions, member_order


class RoundRobinAssignor:
    """The same in every release but 0.9, which fails for a topic that is not there (``A-9``)."""

    name = "roundrobin"

    def __init__(self, rules: Rules = NEWEST) -> None:
        self.rules = rules

    def assign(self, metadata: Metadata, subscriptions: Subscriptions) -> Assignment:
        """As `assignor.Assignor` has it. The ring goes on from one topic to the next."""
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
