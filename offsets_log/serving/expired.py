"""A coordinator's state without what expiry would have removed by a stated time."""

from __future__ import annotations

from dataclasses import replace

from offsets_log.replay.coordinator_state import CoordinatorState
from offsets_log.replay.expiry import Retention, cycle_of


def unexpired(state: CoordinatorState, now_ms: int, retention: Retention) -> CoordinatorState:
    """Return what one cycle of expiry leaves of a state with all of its topics."""
    cycle = list(cycle_of(state, now_ms, retention))
    offsets = {each.value.key for expiry in cycle for each in expiry.offsets if each.expired}
    removed = {expiry.group.group_id for expiry in cycle if expiry.removed}
    return replace(
        state,
        groups={group_id: group for group_id, group in state.groups.items() if group_id not in removed},
        committed=tuple(value for value in state.committed if value.key not in offsets),
    )
