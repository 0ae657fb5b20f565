"""The sticky assignment if members subscribe to different topics (``A-17``).

Partitions that nobody keeps go one by one to the member with the fewest that may have them. Then partitions move, those
with the fewest possible owners first, as long as that makes the group more balanced: back to an earlier owner, else to
the member with the fewest. If a move would go against an earlier move of the same topic, a partition of that earlier
move goes back instead, so that no two members swap partitions of a topic; hash order decides which one.

Reference: ``AbstractStickyAssignor.GeneralAssignmentBuilder``, ``generalAssign`` of 2.8.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from offsets_log.rebalance.assignors.assignor import (
    Assignment,
    Rules,
    Subscriptions,
    TopicPartition,
    topic_partition_hash,
)
from offsets_log.rebalance.assignors.racks import NO_RACKS, Racks
from offsets_log.rebalance.assignors.sticky_claims import (
    NO_GENERATION,
    Claim,
    Ownership,
    ReadClaim,
    existing,
    first_unequal,
)
from offsets_log.rebalance.java_order import JavaHashSet, hash_order, java_string_order

Move = tuple[str, str]
"""The member that loses a partition, and the one that gets it."""


@dataclass(slots=True)
class History:
    """The partitions that members had before.

    Attributes:
        current: member id → its last partitions, for every member.
        previous: partition → who had it in an older generation, and in which one.
    """

    current: dict[str, dict[TopicPartition, None]]
    previous: dict[TopicPartition, tuple[str, int]] = field(default_factory=dict)


def assign_general(
    counts: dict[str, int], subscriptions: Subscriptions, history: History, racks: Racks, rules: Rules
) -> Assignment:
    """Assign partitions to all members.

    Args:
        counts: topic → number of partitions, of all topics that members subscribe to.
    """
    return _Balancing(counts, subscriptions, history, racks, rules).assign()


class _Balancing:
    """An assignment of `assign_general` in progress.

    Attributes:
        assigned: member id → its partitions, in the order in which it got them.
    """

    def __init__(
        self, counts: dict[str, int], subscriptions: Subscriptions, history: History, racks: Racks, rules: Rules
    ) -> None:
        self._counts = counts
        self._racks = racks
        self._rules = rules
        self._previous = history.previous
        self.assigned = history.current
        self._topics = {
            member_id: frozenset(topic for topic in each.topics if topic in counts)
            for member_id, each in subscriptions.items()
        }
        self._most = {member_id: sum(counts[topic] for topic in topics) for member_id, topics in self._topics.items()}
        self._consumers: dict[str, list[str]] = {topic: [] for topic in counts}
        for member_id, topics in self._topics.items():
            for topic in topics:
                self._consumers[topic].append(member_id)
        self._rank = {member_id: at for at, member_id in enumerate(sorted(subscriptions, key=java_string_order))}
        self._owner = {each: member_id for member_id, owned in self.assigned.items() for each in owned}
        self._by_load: list[tuple[int, int, str]] = []
        self._is_balanced: bool | None = None
        self._fixed: set[str] = set()
        self._moves = _Moves()

    def assign(self) -> Assignment:
        """Assign all partitions, then balance."""
        by_topic = sorted(self._counts, key=lambda topic: (len(self._consumers[topic]), java_string_order(topic)))
        everything = [(topic, number) for topic in by_topic for number in range(self._counts[topic])]
        revokes = self._drop_what_cannot_stay()
        kept = {partition for owned in self.assigned.values() for partition in owned}
        rest = [partition for partition in everything if partition not in kept]
        for member_id in self.assigned:
            self._place(member_id)
        is_fresh = not kept
        self._assign_rest(rest)
        self._balance(everything, rest, is_fresh=is_fresh, revokes=revokes)
        return {member_id: list(owned) for member_id, owned in self.assigned.items()}

    # ------------------------------------------------------------------------------------- before moving

    def _drop_what_cannot_stay(self) -> bool:
        """Drop partitions of topics that their owners no longer subscribe to; return whether there were any."""
        found = False
        for member_id, owned in self.assigned.items():
            for partition in list(owned):
                if partition[0] not in self._topics[member_id] or self._racks.mismatch(member_id, partition):
                    del owned[partition]
                    found = True
        return found

    def _assign_rest(self, rest: list[TopicPartition]) -> None:
        """Assign the rest: if racks matter, first to members on a rack of the partition."""
        for racks in (self._racks, NO_RACKS) if self._racks.of_members else (NO_RACKS,):
            left = []
            for partition in rest:
                member_id = self._lightest(partition, racks)
                if member_id is None:
                    left.append(partition)
                else:
                    self._give(partition, member_id)
            rest = left

    def _lightest(self, partition: TopicPartition, racks: Racks) -> str | None:
        return next(
            (
                member_id
                for _, _, member_id in self._by_load
                if partition[0] in self._topics[member_id] and not racks.mismatch(member_id, partition)
            ),
            None,
        )

    # ------------------------------------------------------------------------------------------- moving

    def _balance(
        self, everything: list[TopicPartition], rest: list[TopicPartition], *, is_fresh: bool, revokes: bool
    ) -> None:
        self._fixed = {member_id for member_id in self.assigned if not self._can_take_part(member_id)}
        for member_id in self._fixed:
            self._unplace(member_id)
        before = {member_id: dict(self.assigned[member_id]) for _, _, member_id in self._by_load}
        if not revokes:
            self._move(each for each in rest if self._is_shared(each[0]))
        has_moved = self._move(each for each in everything if self._is_shared(each[0]))
        if (
            has_moved
            and not is_fresh
            and _unevenness(map(self._load, before)) >= _unevenness(map(len, before.values()))
        ):
            self.assigned |= before

    def _is_shared(self, topic: str) -> bool:
        return len(self._consumers[topic]) > 1

    def _can_take_part(self, member_id: str) -> bool:
        """Return whether a member may change: not if it has all it can have, and shares none of it with others."""
        return self._load(member_id) < self._most[member_id] or any(
            self._is_shared(topic) for topic, _ in self.assigned[member_id]
        )

    def _move(self, partitions: Iterable[TopicPartition]) -> bool:
        """Go over the partitions until none of them moves, or all is balanced; return whether any moved."""
        partitions = list(partitions)
        has_moved = False
        moves_on = True
        while moves_on:
            moves_on = False
            for partition in partitions:
                if self._balanced():
                    break
                target = self._better_owner(partition)
                if target is not None:
                    self._move_one(partition, target)
                    moves_on = has_moved = True
        return has_moved

    def _balanced(self) -> bool:
        if self._is_balanced is None:
            self._is_balanced = self._find_balanced()
        return self._is_balanced

    def _find_balanced(self) -> bool:
        """Return whether no member could take a partition from one with more; 3.0 and later tolerate one more."""
        if self._by_load[0][0] >= self._by_load[-1][0] - 1:
            return True
        tolerated = 1 if self._rules.tolerates_one_more else 0
        owners: dict[str, set[str]] = {}
        for (topic, _), member_id in self._owner.items():
            owners.setdefault(topic, set()).add(member_id)
        for topic in filter(self._is_shared, self._consumers):
            heaviest = max(map(self._load, owners[topic]))
            for member_id in self._consumers[topic]:
                if self._load(member_id) + tolerated < heaviest and self._load(member_id) != self._most[member_id]:
                    return False
        return True

    def _better_owner(self, partition: TopicPartition) -> str | None:
        """Return an owner before the last one, even if it no longer subscribes to the topic, as Kafka does.

        If that member cannot take part, Kafka fails with a NullPointerException; here it is passed over.
        """
        load = self._load(self._owner[partition])
        previous, _ = self._previous.get(partition, (None, None))
        if previous is not None and previous not in self._fixed and load > self._load(previous) + 1:
            return previous
        lightest = self._lightest(partition, NO_RACKS)
        return lightest if lightest is not None and load > self._load(lightest) + 1 else None

    def _move_one(self, partition: TopicPartition, target: str) -> None:
        partition = self._moves.instead_of(partition, self._owner[partition], target)
        source = self._owner[partition]
        self._unplace(source)
        self._unplace(target)
        self._moves.add(partition, source, target)
        del self.assigned[source][partition]
        self.assigned[target][partition] = None
        self._owner[partition] = target
        self._place(target)
        self._place(source)
        self._is_balanced = None

    # --------------------------------------------------------------------------- members by their loads

    def _load(self, member_id: str) -> int:
        return len(self.assigned[member_id])

    def _give(self, partition: TopicPartition, member_id: str) -> None:
        self._unplace(member_id)
        self.assigned[member_id][partition] = None
        self._owner[partition] = member_id
        self._place(member_id)

    def _entry(self, member_id: str) -> tuple[int, int, str]:
        return self._load(member_id), self._rank[member_id], member_id

    def _place(self, member_id: str) -> None:
        insort(self._by_load, self._entry(member_id))

    def _unplace(self, member_id: str) -> None:
        entry = self._entry(member_id)
        at = bisect_left(self._by_load, entry)
        if self._by_load[at : at + 1] == [entry]:
            del self._by_load[at]


def _unevenness(loads: Iterable[int]) -> int:
    """Return the sum of the differences of all pairs."""
    ascending = sorted(loads)
    return sum(load * (2 * at - len(ascending) + 1) for at, load in enumerate(ascending))


class _Moves:
    """The moves of partitions between members in this assignment.

    Reference: ``AbstractStickyAssignor.PartitionMovements``.
    """

    def __init__(self) -> None:
        self._of_partition: dict[TopicPartition, Move] = {}
        self._of_topic: dict[tuple[str, Move], JavaHashSet[TopicPartition]] = {}

    def add(self, partition: TopicPartition, source: str, target: str) -> None:
        """Add a move; a partition that had moved before counts as moved from where it was at first."""
        earlier = self._of_partition.pop(partition, None)
        if earlier is not None:
            self._of_topic[partition[0], earlier].remove(partition)
            if not self._of_topic[partition[0], earlier]:
                del self._of_topic[partition[0], earlier]
            source = earlier[0]
        if source != target:
            self._of_partition[partition] = (source, target)
            moved = self._of_topic.setdefault((partition[0], (source, target)), JavaHashSet(topic_partition_hash))
            moved.add(partition)

    def instead_of(self, partition: TopicPartition, source: str, target: str) -> TopicPartition:
        """Return the partition to move: one of this topic that went the other way, if there is one."""
        source = self._of_partition.get(partition, (source, target))[0]
        opposite = self._of_topic.get((partition[0], (target, source)))
        return partition if opposite is None else opposite.first()


# ------------------------------------------------------------------------------ what members had


def history_of_ownership(ownership: Ownership, claims: dict[str, Claim]) -> History:
    """Return the history as 3.4 and later see it: the comparison's result, and the other claims as earlier ones."""
    history = History(ownership.owned)
    for member_id, claim in claims.items():
        generation = claim.known_generation
        if generation >= ownership.newest_generation:
            continue
        for partition in claim.partitions:
            if partition not in history.previous or generation > history.previous[partition][1]:
                history.previous[partition] = (member_id, generation)
    return history


def history_of_claims(
    subscriptions: Subscriptions, read_claim: ReadClaim, rules: Rules, counts: dict[str, int]
) -> History:
    """Return the history as releases before 3.0 see it: of each partition the newest claim, and the one before.

    Bytes that the comparison of subscriptions had read before it met an unequal one are not read again (KAFKA-13406):
    those members have lost their claims, or the generation of them.
    """
    read = first_unequal(list(subscriptions.values())) or 0
    claimants: dict[TopicPartition, dict[int, str]] = {}
    for at, (member_id, subscription) in enumerate(subscriptions.items()):
        if at < read and subscription.user_data is not None:
            subscription = replace(subscription, user_data=b"")
        claim = read_claim(subscription, rules)
        for partition in existing(claim, counts):
            by_generation = claimants.setdefault(partition, {})
            if claim.generation is None:
                by_generation[NO_GENERATION] = member_id
            else:
                by_generation.setdefault(claim.generation, member_id)
    history = History({member_id: {} for member_id in subscriptions})
    for partition in hash_order(claimants, topic_partition_hash):
        newest, *before = sorted(claimants[partition].items(), reverse=True)
        history.current[newest[1]][partition] = None
        if before:
            generation, member_id = before[0]
            history.previous[partition] = (member_id, generation)
    return history
