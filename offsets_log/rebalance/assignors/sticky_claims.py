"""Members' claims to partitions of earlier generations, and how conflicts between them end (``A-12``, ``A-13``)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from offsets_log.errors import CorruptRecordError
from offsets_log.messages.sticky_user_data import decode_cooperative_sticky, decode_sticky
from offsets_log.rebalance.assignors.assignor import Rules, Subscription, Subscriptions, TopicPartition
from offsets_log.rebalance.java_order import java_hash_order

NO_GENERATION = -1


@dataclass(frozen=True, slots=True)
class Claim:
    """The partitions that a member says it had, and in which generation; None if it does not say."""

    partitions: tuple[TopicPartition, ...] = ()
    generation: int | None = None

    @property
    def known_generation(self) -> int:
        """The generation; −1 if there is none."""
        return NO_GENERATION if self.generation is None else self.generation


ReadClaim = Callable[[Subscription, Rules], Claim]


def sticky_claim(subscription: Subscription, rules: Rules) -> Claim:
    """Return the claim by ``StickyAssignor.memberData``: from user data, as the member has given everything back."""
    if not subscription.user_data:
        return Claim()
    try:
        user_data = decode_sticky(subscription.user_data)
    except CorruptRecordError:
        return Claim(generation=NO_GENERATION)
    partitions = tuple(
        (row["topic"], number) for row in user_data.fields["previous_assignment"] for number in row["partitions"]
    )
    return Claim(partitions, user_data.fields["generation"] if user_data.version else None)


def cooperative_claim(subscription: Subscription, rules: Rules) -> Claim:
    """Return the claim by ``CooperativeStickyAssignor.memberData``: owned partitions and their generation."""
    if rules.has_generation_field and subscription.generation is not None:
        return Claim(subscription.owned_partitions, subscription.generation)
    if subscription.user_data is None:
        return Claim(subscription.owned_partitions)
    try:
        generation = decode_cooperative_sticky(subscription.user_data[:4]).fields["generation"]
    except CorruptRecordError:
        generation = NO_GENERATION
    return Claim(subscription.owned_partitions, generation)


# ------------------------------------------------------------------------------------------- ownership


@dataclass(slots=True)
class Ownership:
    """The outcome of all claims.

    Attributes:
        owned: member id → the claimed partitions that it may keep, in the order of the leader's map.
        contested: partitions that several members claim of one generation; nobody keeps them.
        newest_generation: the newest one of all claims; −1 if none is known.
    """

    owned: dict[str, dict[TopicPartition, None]] = field(default_factory=dict)
    contested: dict[TopicPartition, None] = field(default_factory=dict)
    newest_generation: int = NO_GENERATION


def all_equal(subscriptions: Subscriptions) -> bool:
    """Return whether all members list the same topics; one listed twice makes lists unequal, as in Kafka."""
    return first_unequal(list(subscriptions.values())) is None


def first_unequal(subscriptions: list[Subscription]) -> int | None:
    """Return the index of the first subscription that differs from those before it."""
    topics: frozenset[str] = frozenset()
    for at, subscription in enumerate(subscriptions):
        if not topics:
            topics = frozenset(subscription.topics)
        elif len(subscription.topics) != len(topics) or not topics.issuperset(subscription.topics):
            return at
    return None


def compare_claims(claims: dict[str, Claim], subscriptions: Subscriptions, counts: dict[str, int]) -> Ownership:
    """Give each partition to the claim of the newer generation; to nobody if two have it (3.4 and later, ``A-13``).

    The generation of the *other* claimant is that in its subscription's field, whatever its user data say.
    """
    found = Ownership(newest_generation=max(claim.known_generation for claim in claims.values()))
    owner: dict[TopicPartition, str] = {}
    for member_id, claim in claims.items():
        owned = found.owned[member_id] = {}
        for partition in existing(claim, counts):
            other = owner.get(partition)
            if other is None:
                owned[partition] = None
                owner[partition] = member_id
                continue
            field_generation = subscriptions[other].generation
            other_generation = NO_GENERATION if field_generation is None else field_generation
            if claim.known_generation < other_generation:
                continue
            found.owned[other].pop(partition, None)
            owner[partition] = member_id
            if claim.known_generation == other_generation:
                found.contested[partition] = None
            else:
                owned[partition] = None
    return found


def newest_claims(claims: dict[str, Claim], counts: dict[str, int]) -> Ownership:
    """Accept the claims of the newest generation only; nobody keeps what two of them claim (before 3.4)."""
    found = Ownership()
    owner: dict[TopicPartition, str] = {}
    for member_id, claim in claims.items():
        owned = found.owned[member_id] = {}
        if claim.known_generation < found.newest_generation:
            continue
        if claim.known_generation > found.newest_generation:
            found.newest_generation = claim.known_generation
            for earlier in found.owned.values():
                earlier.clear()
            found.contested.clear()
            owner.clear()
        for partition in existing(claim, counts):
            if partition in owner:
                found.owned[owner[partition]].pop(partition, None)
                found.contested[partition] = None
            else:
                owner[partition] = member_id
                owned[partition] = None
    return found


def existing(claim: Claim, counts: dict[str, int]) -> Collection[TopicPartition]:
    """Return the claimed partitions that still exist (``A-12``)."""
    return [partition for partition in claim.partitions if 0 <= partition[1] < counts.get(partition[0], 0)]


def ordered(subscriptions: Subscriptions) -> dict[str, Subscription]:
    """Return the members in the order of the leader's hash map."""
    return {member_id: subscriptions[member_id] for member_id in java_hash_order(subscriptions)}
