"""When groups wrote.

A group's *activity* is a record with a value that it wrote: a commit, even a transactional one, or a record of the
group itself. Tombstones do not count: expiry and administrators write them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from offsets_log.events import Event, LogEvent
from offsets_log.log_format.batch import NO_TIMESTAMP, time_of


def written_ms(event: Event) -> int:
    """Return when a record was written: its own time, or of a commit without one the commit's; else NO_TIMESTAMP."""
    time_ms, decoded = event.record.timestamp_ms, event.decoded
    if time_of(time_ms) is not None or decoded is None or decoded.value is None:
        return time_ms
    commit_ms: int = decoded.value.get("commit_timestamp", NO_TIMESTAMP)
    return commit_ms


def activity_of(event: Event) -> tuple[str, int] | None:
    """Return the group that wrote a record and the time, in epoch milliseconds; None if it is no activity."""
    if event.decoded is None or event.decoded.value is None:
        return None
    return event.decoded.group, written_ms(event)


class Activity:
    """When each group of an offsets partition last wrote.

    Attributes:
        last_ms: group → epoch ms.
    """

    def __init__(self) -> None:
        self.last_ms: dict[str, int] = {}

    def watch(self, events: Iterable[LogEvent]) -> Iterator[LogEvent]:
        """Note the times of records while passing events on to a replay."""
        for event in events:
            if isinstance(event, Event) and (found := activity_of(event)) is not None:
                self.saw(*found)
            yield event

    def saw(self, group: str, time_ms: int) -> None:
        """Note that a group wrote at a time."""
        if time_ms > self.last_ms.get(group, NO_TIMESTAMP):
            self.last_ms[group] = time_ms
