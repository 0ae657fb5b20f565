"""Kafka's assignors by name; `assignor` says what an assignor is, `stateless` and `sticky` implement them."""

from __future__ import annotations

from collections.abc import Callable

from offsets_log.rebalance.assignors.assignor import RULES, Assignor, Rules
from offsets_log.rebalance.assignors.stateless import RangeAssignor, RoundRobinAssignor
from offsets_log.rebalance.assignors.sticky import CooperativeStickyAssignor, StickyAssignor

ASSIGNORS: dict[str, Callable[[Rules], Assignor]] = {
    kind.name: kind for kind in (RangeAssignor, RoundRobinAssignor, StickyAssignor, CooperativeStickyAssignor)
}
"""Protocol name → makes the assignor from a release's rules."""

USED = {RangeAssignor.name: ("uses_racks",), RoundRobinAssignor.name: ()}
"""Protocol name → the rules that its assignor looks at, where these are few."""


def rules_that_differ(name: str) -> tuple[Rules, ...]:
    """Return the rules, the newest first, of which no two are the same for an assignor."""
    if name not in USED:
        return RULES
    found: dict[tuple[bool, ...], Rules] = {}
    for rules in RULES:
        found.setdefault(tuple(getattr(rules, each) for each in USED[name]), rules)
    return tuple(found.values())
