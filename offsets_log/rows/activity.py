"""When groups wrote.

A group's *activity* is a record with a value that it wrote: a commit, even a transactional one, or a record of the
group itself. Tombstones do not count: expiry and administrators write them. The time is the record's own; a record of
magic 0 has none, and the commit's is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from offsets_log.events import Event, LogEvent
from offsets_log.log_format.batch import NO_TIMESTAMP


def activity_of(event: Event) -> tuple[str, int] | None:
    """Return the group that wrote a record and the time, in epoch milliseconds; None if it is no activity."""
    if event.decoded is None or event.decoded.value is None:
        return None
    time_ms = event.record.timestamp_ms
    if time_ms == NO_TIMESTAMP:
        time_ms = event.decoded.value.get("commit_timestamp", NO_TIMESTAMP)
    return event.decoded.group, time_ms


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
