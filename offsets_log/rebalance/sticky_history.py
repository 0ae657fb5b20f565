"""What members had, as the general algorithm wants it: now, and before that (``A-17``)."""

from __future__ import annotations

from dataclasses import replace

from offsets_log.rebalance.assignor import Rules, Subscriptions, TopicPartition, topic_partition_hash
from offsets_log.rebalance.java_order import hash_order
from offsets_log.rebalance.sticky_claims import NO_GENERATION, Claim, Ownership, ReadClaim, existing, first_unequal
from offsets_log.rebalance.sticky_general import History


def history_of_ownership(ownership: Ownership, claims: dict[str, Claim]) -> History:
    """3.4 and later: what the comparison of claims left; the others' claims are what was before."""
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
    """Before 3.0: of each partition the newest claim, and the one before it.

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
