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
    _mark_storms(entries, limits)
    returns: dict[str, deque[int]] = {}
    gone: set[str] = set()
    for entry in entries:
        gone |= {_who(member) for member in entry.left}
        flapping = []
        for member in entry.joined:
            if _who(member) not in gone or entry.timestamp_ms is None:
                continue
            times = returns.setdefault(_who(member), deque())
            times.append(entry.timestamp_ms)
            while times[0] < entry.timestamp_ms - limits.window_ms:
                times.popleft()
            if len(times) >= limits.returns:
                flapping.append(member)
        entry.flapping = tuple(flapping)


def _mark_storms(entries: list[Generation], limits: Limits) -> None:
    recent: deque[Generation] = deque()
    for entry in entries:
        if entry.timestamp_ms is None or entry.changes_members_only:
            continue
        recent.append(entry)
        while (recent[0].timestamp_ms or 0) < entry.timestamp_ms - limits.window_ms:
            recent.popleft()
        if len(recent) >= limits.generations:
            for each in recent:
                each.is_storm = True


def _who(member: GenerationMember) -> str:
    """Return what tells a member that comes back with a new id: its instance id, or client id and host."""
    return member.identity if member.group_instance_id is not None else f"{member.client_id} {member.host}"
