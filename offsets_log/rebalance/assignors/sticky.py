"""``sticky`` and ``cooperative-sticky``: balanced assignments with as few moves as possible (``A-10`` … ``A-20``).

First the members' claims are compared (`sticky_claims`), then one of two algorithms assigns (`sticky_constrained`,
`sticky_general`). The cooperative assignor then leaves out what another member has not given back yet (``A-19``).

References: ``clients/consumer/StickyAssignor.java``, ``CooperativeStickyAssignor.java``,
``internals/AbstractStickyAssignor.java``.
"""

from __future__ import annotations

from offsets_log.rebalance.assignors.assignor import NEWEST, Assignment, Metadata, Rules, Subscriptions, TopicPartition
from offsets_log.rebalance.assignors.racks import NO_RACKS, Racks
from offsets_log.rebalance.assignors.sticky_claims import (
    ReadClaim,
    all_equal,
    compare_claims,
    cooperative_claim,
    newest_claims,
    ordered,
    sticky_claim,
)
from offsets_log.rebalance.assignors.sticky_constrained import Sticky, fill_quotas, steal
from offsets_log.rebalance.assignors.sticky_general import assign_general, history_of_claims, history_of_ownership

COOPERATIVE = "cooperative-sticky"


class StickyAssignor:
    """``sticky``, by the rules of a release."""

    name = "sticky"
    read_claim: ReadClaim = staticmethod(sticky_claim)

    def __init__(self, rules: Rules = NEWEST) -> None:
        self.rules = rules

    def assign(self, metadata: Metadata, subscriptions: Subscriptions) -> Assignment:
        """Assign as `assignor.Assignor` says."""
        return self.assign_tracking(metadata, subscriptions).assignment

    def assign_tracking(self, metadata: Metadata, subscriptions: Subscriptions) -> Sticky:
        """Return the assignment, and which partitions change hands in it."""
        if not subscriptions:
            return Sticky({})
        rules, subscriptions = self.rules, ordered(subscriptions)
        counts = metadata.subscribed(subscriptions)
        partitions = [(topic, number) for topic, count in counts.items() for number in range(count)]
        racks = Racks.of(metadata, subscriptions, partitions) if rules.uses_racks else NO_RACKS
        claims = {member_id: self.read_claim(each, rules) for member_id, each in subscriptions.items()}
        if rules.compares_claims:
            ownership = compare_claims(claims, subscriptions, counts)
        else:
            ownership = newest_claims(claims, counts)
        if all_equal(subscriptions):
            if rules.counts_members_above_quota:
                return fill_quotas(partitions, ownership, racks, rules)
            return steal(partitions, ownership)
        if rules.keeps_claims:
            history = history_of_ownership(ownership, claims)
        else:
            history = history_of_claims(subscriptions, self.read_claim, rules, counts)
        assignment = assign_general(counts, subscriptions, history, racks, rules)
        return Sticky(assignment, _changing_hands(assignment, subscriptions))


class CooperativeStickyAssignor(StickyAssignor):
    """``cooperative-sticky``: what another member owns must be given back before it is assigned (``A-19``)."""

    name = COOPERATIVE
    read_claim: ReadClaim = staticmethod(cooperative_claim)

    def assign(self, metadata: Metadata, subscriptions: Subscriptions) -> Assignment:
        """Assign as `assignor.Assignor` says; some partitions may wait for the next rebalance."""
        result = self.assign_tracking(metadata, subscriptions)
        for partition, member_id in result.transferring.items():
            result.assignment[member_id].remove(partition)
        return result.assignment


def _changing_hands(assignment: Assignment, subscriptions: Subscriptions) -> dict[TopicPartition, str]:
    """Return the partitions that are added to a member while another one says that it owns them."""
    added: dict[TopicPartition, str] = {}
    revoked: set[TopicPartition] = set()
    for member_id, partitions in assignment.items():
        owned = frozenset(subscriptions[member_id].owned_partitions)
        added |= {partition: member_id for partition in partitions if partition not in owned}
        revoked |= owned.difference(partitions)
    return {partition: member_id for partition, member_id in added.items() if partition in revoked}
