"""What an assignment must keep whoever computed it: each partition once, to a subscriber, in balance (``A-10``)."""

from __future__ import annotations

from collections.abc import Mapping

from offsets_log.rebalance.assignor import Subscriptions
from offsets_log.rebalance.generation import Generation
from offsets_log.rebalance.sticky_claims import all_equal
from offsets_log.replay.group import SHARE

BALANCED = ("roundrobin", "sticky")
"""Assignors whose counts differ by at most one where all subscribe to the same."""


def broken_guarantees(entry: Generation, subscriptions: Subscriptions, counts: Mapping[str, int]) -> list[str]:
    """What this assignment does not keep, in words.

    Args:
        subscriptions: empty where they are not told: then only what needs none is checked.
        counts: topic → partitions, as far as known.
    """
    found = []
    if entry.kind != SHARE:
        twice = sorted(unit for unit, owners in entry.owners.items() if len(owners) > 1)
        found += [f"{_name(unit)} is assigned to {len(entry.owners[unit])} members" for unit in twice]
    for member_id, subscription in subscriptions.items():
        found += [
            f"{_name(unit)} is assigned to {member_id}, which does not subscribe to it"
            for unit in entry.assignment.get(member_id, [])
            if unit[0] not in subscription.topics
        ]
    asked = {topic for each in subscriptions.values() for topic in each.topics}
    everything = {(topic, number) for topic in asked for number in range(counts.get(topic, 0))}
    missing = sorted(everything - entry.owners.keys())
    if entry.protocol == "cooperative-sticky":  # what another member has not given back yet waits
        missing = [
            unit for unit in missing if not any(unit in each.owned_partitions for each in subscriptions.values())
        ]
    found += [f"{_name(unit)} is assigned to nobody" for unit in missing]
    sizes = [len(entry.assignment.get(member_id, [])) for member_id in subscriptions]
    if entry.protocol in BALANCED and sizes and all_equal(subscriptions) and max(sizes) - min(sizes) > 1:
        found.append(f"members have from {min(sizes)} to {max(sizes)} partitions")
    return found


def _name(unit: tuple[object, int]) -> str:
    return f"{unit[0]}-{unit[1]}"
