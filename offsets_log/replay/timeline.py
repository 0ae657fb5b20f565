"""Keep the records of one group in log order, with offsets reduced to the moments a coordinator can notice.

What a group record does depends on the group's state at that moment, and any offset value of a group that does not
exist creates it (``J-6``). So group records are kept in order; of the offset values between two of them only the first
is kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from offsets_log.messages.registry import CoordinatorRecord


@dataclass(frozen=True, slots=True)
class GroupEvent:
    """A group record, or (if ``record`` is None) the first of a run of offset values."""

    record_offset: int
    record: CoordinatorRecord | None


@dataclass(slots=True)
class Timeline:
    """Events of one group, in the order of record offsets."""

    events: list[GroupEvent] = field(default_factory=list)

    def add_offset(self, record_offset: int) -> None:
        """Note that an offset value of the group was replayed, plain or transactional."""
        if not self.events or self.events[-1].record is not None:
            self.events.append(GroupEvent(record_offset, None))

    def add_record(self, record: CoordinatorRecord, record_offset: int) -> None:
        """Note that a group record was replayed."""
        self.events.append(GroupEvent(record_offset, record))

    def extend(self, later: Timeline) -> None:
        """Append the events of the run that follows."""
        for event in later.events:
            if event.record is None:
                self.add_offset(event.record_offset)
            else:
                self.events.append(event)
