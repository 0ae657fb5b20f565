"""The vote on the protocol of a classic group's next generation (``G-1`` … ``G-3``).

A candidate is a protocol that all members support. Each member votes for the first candidate in its own order of
preference; the one with most votes is selected. A tie is decided by the order of the coordinator's hash tables, not by
any name.

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
from offsets_log.rows.tables import Row

Order = Callable[[Iterable[str]], list[str]]


@dataclass(frozen=True, slots=True)
class HashOrders:
    """The orders in which a coordinator's hash tables iterate members and votes."""

    member_order: Order
    vote_order: Order


JAVA = HashOrders(java_hash_order, java_hash_order)
SCALA = HashOrders(scala_mutable_order, scala_immutable_order)
"""Scala 2.13, with which 3.0 and later are built; tables of earlier builds have other orders (``V-6``)."""
ORDERS = {"modern": JAVA, "modern-3.7": JAVA, "classic": SCALA}
"""Profile → the orders of its coordinator."""


@dataclass(frozen=True, slots=True)
class Vote:
    """The outcome of a vote.

    Attributes:
        candidates: protocols that all members support, in Java's order of strings.
        votes: candidate → how many members chose it, in the coordinator's order; only those with a vote.
        selected: the protocol with most votes; None without members or candidates.
    """

    candidates: tuple[str, ...]
    votes: Mapping[str, int]
    selected: str | None

    @property
    def is_tie(self) -> bool:
        """Whether another protocol got as many votes."""
        return sum(count == max(self.votes.values()) for count in self.votes.values()) > 1 if self.votes else False


def candidate_protocols(members: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """Return the protocols that all members list (``G-1``); one listed twice by a member counts twice, as in Kafka."""
    lists = list(members)
    counts = Counter(name for names in lists for name in names)
    return tuple(sorted((name for name, count in counts.items() if count == len(lists)), key=java_string_order))


def select_protocol(members: Mapping[str, Sequence[str]], orders: HashOrders = JAVA) -> Vote:
    """Hold the vote of a group.

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


def vote_rows(protocols: Mapping[str, Sequence[str]], orders: HashOrders = JAVA) -> list[Row]:
    """Return one row of `VOTE_COLUMNS` for each protocol; arguments as of `select_protocol`."""
    vote = select_protocol(protocols, orders)
    return [
        {
            "protocol": name,
            "candidate": name in vote.candidates,
            "votes": vote.votes.get(name, 0),
            "selected": name == vote.selected,
        }
        for name in dict.fromkeys(name for names in protocols.values() for name in names)
    ]
