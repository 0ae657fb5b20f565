"""The assignors by name."""

from __future__ import annotations

from collections.abc import Callable

from offsets_log.rebalance.assignor import Assignor, Rules
from offsets_log.rebalance.range_assignor import RangeAssignor
from offsets_log.rebalance.round_robin import RoundRobinAssignor
from offsets_log.rebalance.sticky import CooperativeStickyAssignor, StickyAssignor

ASSIGNORS: dict[str, Callable[[Rules], Assignor]] = {
    kind.name: kind for kind in (RangeAssignor, RoundRobinAssignor, StickyAssignor, CooperativeStickyAssignor)
}
"""Protocol name → the assignor, made with a release's rules."""
