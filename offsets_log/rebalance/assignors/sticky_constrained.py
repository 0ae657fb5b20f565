"""The sticky assignment if all members subscribe to the same topics (``A-14`` … ``A-16``).

Releases from 3.0 on do as `fill_quotas`, 2.5 to 2.8 as `steal`. Both first let members keep their own partitions up to
a quota, then assign the rest round robin, and say which partitions change hands.

Reference: ``AbstractStickyAssignor.ConstrainedAssignmentBuilder``, ``constrainedAssign`` of 2.8.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field

from offsets_log.errors import AssignorError
from offsets_log.rebalance.assignors.assignor import Assignment, Rules, TopicPartition
from offsets_log.rebalance.assignors.racks import Racks
from offsets_log.rebalance.assignors.sticky_claims import Ownership
from offsets_log.rebalance.java_order import java_string_order


@dataclass(slots=True)
class Sticky:
    """An assignment, and the partitions that another member had before → their new owners."""

    assignment: Assignment
    transferring: dict[TopicPartition, str] = field(default_factory=dict)


def fill_quotas(partitions: list[TopicPartition], ownership: Ownership, racks: Racks, rules: Rules) -> Sticky:
    """Assign as 3.0 and later do.

    Args:
        partitions: all there are, by topic, then number.

    Raises:
        AssignorError: 3.5 to 3.7.0 with racks give some members too much, and fail.
    """
    filling = _Filling(partitions, ownership, racks, rules)
    filling.keep_owned()
    filling.assign_rest()
    return filling.result


class _Filling:
    """An assignment of `fill_quotas` in progress.

    Attributes:
        below: members with fewer than ``low`` partitions; while the rest is assigned, in order of member ids.
        at_low: members with ``low`` partitions that may get one more.
        above: how many have more than ``low``; ``expected_above`` is how many will.
    """

    def __init__(self, partitions: list[TopicPartition], ownership: Ownership, racks: Racks, rules: Rules) -> None:
        self._partitions = partitions
        self._ownership = ownership
        self._racks = racks
        self._rules = rules
        self._low, self._expected_above = divmod(len(partitions), len(ownership.owned))
        self._high = self._low + (self._expected_above > 0)
        self._above = 0
        self._below: list[str] = []
        self._at_low: deque[str] = deque()
        self._given_up: dict[TopicPartition, str] = {}
        self.result = Sticky({member_id: [] for member_id in ownership.owned})

    def keep_owned(self) -> None:
        """Let all members keep their own up to a quota; their order decides who gets the high one (``A-15``)."""
        for member_id, owned in self._ownership.owned.items():
            near = [partition for partition in owned if not self._racks.mismatch(member_id, partition)]
            kept = [partition for partition in near if partition not in self._ownership.contested]
            if self._rules.revokes_in_order:
                self._given_up.update(dict.fromkeys(owned.keys() - near, member_id))
                kept.sort(key=lambda each: (each[1], java_string_order(each[0])))
            quota = self._quota_of(member_id, len(kept))
            self.result.assignment[member_id] += kept[:quota]
            self._given_up.update(dict.fromkeys(kept[quota:], member_id))

    def _quota_of(self, member_id: str, owned: int) -> int:
        if owned < self._low:
            self._below.append(member_id)
            return self._low
        if self._above == self._expected_above:
            return self._low
        if owned < self._high:
            self._at_low.append(member_id)
            return self._low
        self._count_above()
        return self._high

    def _count_above(self) -> None:
        self._above += 1
        if self._above == self._expected_above:
            self._at_low.clear()

    def assign_rest(self) -> None:
        """Assign what nobody kept."""
        kept = {partition for partitions in self.result.assignment.values() for partition in partitions}
        rest = [partition for partition in self._partitions if partition not in kept]
        self._below.sort(key=java_string_order)
        self._at_low = deque(sorted(self._at_low, key=java_string_order))
        self._round_robin(self._assign_by_rack(self._racks.fewest_members_first(rest)))
        if any(len(self.result.assignment[member_id]) < self._low for member_id in self._below):
            raise AssignorError(
                "members on a rack took so many partitions that none were left for others; these releases of Kafka "
                "end here with an IllegalStateException, and the group does not get past this rebalance"
            )

    def _round_robin(self, rest: list[TopicPartition]) -> None:
        at = 0
        for partition in rest:
            if not self._below:
                self._give(partition, self._at_low.popleft())
                continue
            at %= len(self._below)
            if self._give(partition, self._below[at]) == self._low:
                self._at_low.append(self._below.pop(at))
            else:
                at += 1

    def _assign_by_rack(self, rest: list[TopicPartition]) -> list[TopicPartition]:
        """Assign to members on a rack of the partition; return what none of them has room for."""
        if not self._racks.of_members:
            return rest
        left = []
        at = 0
        for partition in rest:
            found = self._racks.next_member(partition, self._below, at)
            if found is not None:
                at = self._give_below(partition, found)
            elif (found := self._racks.next_member(partition, self._at_low, 0)) is not None:
                member_id = self._at_low[found]
                if self._give(partition, member_id) == self._high:
                    del self._at_low[found]
                    if self._rules.revokes_in_order:
                        self._count_above()
            else:
                left.append(partition)
        return left

    def _give_below(self, partition: TopicPartition, found: int) -> int:
        """Assign to a member of ``below``; return where to look first for the next partition."""
        member_id = self._below[found]
        size = self._give(partition, member_id)
        if size < self._low:
            return (found + 1) % len(self._below)
        del self._below[found]
        if size < self._high and (self._above < self._expected_above or not self._rules.revokes_in_order):
            self._at_low.append(member_id)
        return found % len(self._below) if self._below else 0

    def _give(self, partition: TopicPartition, member_id: str) -> int:
        assigned = self.result.assignment[member_id]
        assigned.append(partition)
        if self._rules.revokes_in_order:
            changes_hands = self._given_up.get(partition, member_id) != member_id
        else:
            changes_hands = partition in self._given_up
        if changes_hands or partition in self._ownership.contested:
            self.result.transferring[partition] = member_id
        return len(assigned)


# --------------------------------------------------------------------------------------- 2.5 to 2.8


def steal(partitions: Collection[TopicPartition], ownership: Ownership) -> Sticky:
    """Assign as 2.5 to 2.8 do: members keep up to the high quota; those below the low one take from them (``A-16``).

    Args:
        partitions: all there are, by topic, then number.
    """
    stealing = _Stealing(partitions, ownership)
    stealing.keep_owned()
    stealing.fill()
    stealing.steal()
    stealing.assign_rest()
    return stealing.result


class _Stealing:
    """An assignment of `steal` in progress.

    Attributes:
        below, at_low, at_high: members with fewer than ``low`` partitions, with ``low``, and with ``high``.
    """

    def __init__(self, partitions: Collection[TopicPartition], ownership: Ownership) -> None:
        self._low, extra = divmod(len(partitions), len(ownership.owned))
        self._high = self._low + (extra > 0)
        self._ownership = ownership
        self._rest = deque(partitions)
        self._given_up = set(ownership.contested)
        self._below: list[str] = []
        self._at_low: deque[str] = deque()
        self._at_high: deque[str] = deque()
        self.result = Sticky({member_id: [] for member_id in ownership.owned})

    def keep_owned(self) -> None:
        """Let all members keep what they claim, up to the high quota."""
        for member_id, owned in self._ownership.owned.items():
            kept = [partition for partition in owned if partition not in self._ownership.contested]
            self.result.assignment[member_id] += kept[: self._high]
            self._given_up.update(kept[self._high :])
            size = len(self.result.assignment[member_id])
            if size < self._low:
                self._below.append(member_id)
            if size == self._low:
                self._at_low.append(member_id)
            if size == self._high:
                self._at_high.append(member_id)
        kept_by_any = {partition for partitions in self.result.assignment.values() for partition in partitions}
        self._rest = deque(partition for partition in self._rest if partition not in kept_by_any)
        self._below.sort(key=java_string_order)

    def fill(self) -> None:
        """Give members below the low quota one partition each, in turn."""
        while self._below and self._rest:
            for member_id in list(self._below):
                if not self._rest:
                    break
                self._give(self._rest.popleft(), member_id)
                if len(self.result.assignment[member_id]) == self._low:
                    self._at_low.append(member_id)
                    self._below.remove(member_id)

    def steal(self) -> None:
        """Let members that are still below take the first partition of those with most."""
        for member_id in self._below:
            while len(self.result.assignment[member_id]) < self._low:
                stolen = self.result.assignment[self._at_high.popleft()].pop(0)
                self.result.assignment[member_id].append(stolen)
                self.result.transferring[stolen] = member_id
            self._at_low.append(member_id)

    def assign_rest(self) -> None:
        """Give one more to some members."""
        for partition in self._rest:
            self._give(partition, self._at_low.popleft())

    def _give(self, partition: TopicPartition, member_id: str) -> None:
        self.result.assignment[member_id].append(partition)
        if partition in self._given_up:
            self.result.transferring[partition] = member_id
