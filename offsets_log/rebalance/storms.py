"""Signs of a troubled group: storms of generations, and members that come and go."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from offsets_log.rebalance.generation import Generation, GenerationMember

DEFAULT_STORM = 5
DEFAULT_WINDOW_MS = 300_000


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits above which generations are a storm, and members flap.

    Attributes:
        generations: this many within the window are a storm.
        returns: a member that comes back this many times within the window flaps.
    """

    generations: int = DEFAULT_STORM
    returns: int = 2
    window_ms: int = DEFAULT_WINDOW_MS


def mark_storms(entries: list[Generation], limits: Limits) -> None:
    """Mark the entries of one group that belong to a storm, or at which members flap."""
    watch = StormWatch(limits)
    for entry in entries:
        watch.saw(entry)


class StormWatch:
    """What must be remembered of a group's earlier generations to mark the next one.

    Attributes:
        recent: the generations within the window, which may yet turn out to belong to a storm.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.recent: deque[Generation] = deque()
        self._returns: dict[str, deque[int]] = {}
        self._gone: set[str] = set()

    def saw(self, entry: Generation) -> None:
        """Mark the next entry of the group, and the earlier ones that belong to a storm because of it."""
        if entry.timestamp_ms is not None and not entry.changes_members_only:
            self.recent.append(entry)
            while (self.recent[0].timestamp_ms or 0) < entry.timestamp_ms - self.limits.window_ms:
                self.recent.popleft()
            if len(self.recent) >= self.limits.generations:
                for each in reversed(self.recent):
                    if each.is_storm:
                        break  # as all before it
                    each.is_storm = True
        if entry.held is entry.held_before:
            return
        change = entry.change
        self._gone.update(map(_who, change.left))
        entry.flapping = tuple([member for member in change.joined if self._flaps(member, entry.timestamp_ms)])

    def _flaps(self, member: GenerationMember, timestamp_ms: int | None) -> bool:
        """Return whether a member that joins has come back too often."""
        if _who(member) not in self._gone or timestamp_ms is None:
            return False
        times = self._returns.setdefault(_who(member), deque())
        times.append(timestamp_ms)
        while times[0] < timestamp_ms - self.limits.window_ms:
            times.popleft()
        return len(times) >= self.limits.returns


def _who(member: GenerationMember) -> str:
    """Return what tells a member that comes back with a new id: its instance id, or client id and host."""
    return member.identity if member.group_instance_id is not None else f"{member.client_id} {member.host}"
