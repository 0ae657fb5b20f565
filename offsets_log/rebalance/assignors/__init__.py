"""Kafka's assignors by name; `assignor` says what an assignor is, `stateless` and `sticky` implement them."""

from __future__ import annotations

from collections.abc import Callable

from offsets_log.rebalance.assignors.assignor import Assignor, Rules
from offsets_log.rebalance.assignors.stateless import RangeAssignor, RoundRobinAssignor
from offsets_log.rebalance.assignors.sticky import CooperativeStickyAssignor, StickyAssignor

ASSIGNORS: dict[str, Callable[[Rules], Assignor]] = {
    kind.name: kind for kind in (RangeAssignor, RoundRobinAssignor, StickyAssignor, CooperativeStickyAssignor)
}
"""Protocol name → makes the assignor from a release's rules."""
