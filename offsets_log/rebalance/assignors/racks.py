"""Racks as the sticky assignors of 3.5 and later use them (``A-14``, ``A-20``).

Reference: ``AbstractStickyAssignor.RackInfo``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from offsets_log.rebalance.assignors.assignor import Metadata, Subscriptions, TopicPartition, is_rack_aware

NOWHERE: frozenset[str] = frozenset()


class Racks:
    """The racks of members and partitions; empty if they do not matter.

    Attributes:
        of_members: member id → rack.
    """

    def __init__(self, of_members: dict[str, str], of_partitions: dict[TopicPartition, frozenset[str]]) -> None:
        self.of_members = of_members
        self._of_partitions = of_partitions

    @classmethod
    def of(cls, metadata: Metadata, subscriptions: Subscriptions, partitions: Sequence[TopicPartition]) -> Racks:
        """Return the racks of the members and of all partitions."""
        members = {member_id: each.rack for member_id, each in subscriptions.items() if each.rack is not None}
        racks = {partition: metadata.racks(*partition) for partition in partitions} if members else {}
        return cls(members, racks) if is_rack_aware(set(members.values()), racks.values()) else NO_RACKS

    def mismatch(self, member_id: str, partition: TopicPartition) -> bool:
        """Return whether the member is on a rack that has no replica of the partition."""
        rack = self.of_members.get(member_id)
        return rack is not None and rack not in self._of_partitions.get(partition, NOWHERE)

    def fewest_members_first(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Return the partitions ordered by how many members are on their racks, the fewest first."""
        members = Counter(self.of_members.values())
        return sorted(
            partitions, key=lambda each: sum(members[rack] for rack in self._of_partitions.get(each, NOWHERE))
        )

    def next_member(self, partition: TopicPartition, member_ids: Sequence[str], start: int) -> int | None:
        """Return the index of the next member, from ``start`` round, that is on a rack of the partition."""
        racks = self._of_partitions.get(partition, NOWHERE)
        for step in range(len(member_ids)):
            at = (start + step) % len(member_ids)
            if self.of_members.get(member_ids[at]) in racks:
                return at
        return None


NO_RACKS = Racks({}, {})
