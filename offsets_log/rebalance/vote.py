"""Which protocol a classic group's next generation uses (``G-1`` … ``G-3``).

A candidate is what all members support. Each member votes for the first candidate in its own order of preference; the
one with most votes is selected. A tie is decided by the order of the coordinator's hash tables, not by any name.

References: ``ClassicGroup.selectProtocol`` (Java), ``GroupMetadata.selectProtocol`` (Scala).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from offsets_log.rebalance.java_order import (
    java_hash_order,
    java_string_order,
    scala_immutable_order,
    scala_mutable_order,
)

Order = Callable[[Iterable[str]], list[str]]


@dataclass(frozen=True, slots=True)
class HashOrders:
    """How a coordinator's hash tables give members and votes back."""

    member_order: Order
    vote_order: Order


JAVA = HashOrders(java_hash_order, java_hash_order)
SCALA = HashOrders(scala_mutable_order, scala_immutable_order)
"""Scala 2.13, which is 3.0 and later; the tables of earlier builds have other orders (``V-6``)."""
ORDERS = {"modern": JAVA, "modern-3.7": JAVA, "classic": SCALA}
"""Profile → its coordinator's orders."""


@dataclass(frozen=True, slots=True)
class Vote:
    """The outcome.

    Attributes:
        candidates: in Java's order of strings.
        votes: candidate → how many members chose it; only those with a vote, first maximum first in the
            coordinator's order.
        selected: None without members or candidates.
    """

    candidates: tuple[str, ...]
    votes: Mapping[str, int]
    selected: str | None

    @property
    def is_tie(self) -> bool:
        """Whether another protocol had as many votes."""
        return sum(count == max(self.votes.values()) for count in self.votes.values()) > 1 if self.votes else False


def candidate_protocols(members: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """Protocols that every member lists (``G-1``); a name that a member lists twice counts twice, as in Kafka."""
    lists = list(members)
    counts = Counter(name for names in lists for name in names)
    return tuple(sorted((name for name, count in counts.items() if count == len(lists)), key=java_string_order))


def select_protocol(members: Mapping[str, Sequence[str]], orders: HashOrders = JAVA) -> Vote:
    """The vote of a group.

    Args:
        members: member id → protocols in its order of preference, in the order in which the members were added.
    """
    candidates = candidate_protocols(members.values())
    allowed = frozenset(candidates)
    chosen = [
        name
        for member_id in orders.member_order(members)
        if (name := next((each for each in members[member_id] if each in allowed), None)) is not None
    ]
    counts = Counter(chosen)
    votes = {name: counts[name] for name in orders.vote_order(chosen)}
    return Vote(candidates, votes, max(votes, key=lambda name: votes[name], default=None))
