"""The events of records that are asked for, log by log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from offsets_log.errors import Damage
from offsets_log.events import Event, LogEvent

if TYPE_CHECKING:
    from offsets_log.log_format.partition_log import PartitionLog
    from offsets_log.session.session import Session


class ShownEvents:
    """The events of all partitions; reports damage and counts records on the way.

    Args:
        with_batches: whether events of batches are needed that hold no record that is asked for.

    Attributes:
        records: how many were shown.
        has_unknown_tags: whether one of them, which Python saw, has tagged fields that no release has.
    """

    def __init__(self, session: Session, *, with_batches: bool = False) -> None:
        self.records = 0
        self.has_unknown_tags = False
        self._session, self._with_batches = session, with_batches

    def watch(self, log: PartitionLog) -> Iterator[LogEvent]:
        """Pass on the events that filters let through."""
        on_damage = self._session.account.on_damage
        for event in self._events(log):
            match event:
                case Damage():
                    on_damage(event)
                case Event():
                    if event.damage is not None:
                        on_damage(event.damage)
                    if not self._is_kept(event):
                        continue
                    self.records += 1
                    self.saw(event)
            yield event

    def records_of(self, log: PartitionLog) -> Iterator[Event]:
        """Yield the records that filters let through."""
        return (event for event in self.watch(log) if isinstance(event, Event))

    def saw(self, event: Event) -> None:
        """Note a record that is shown, but by kernels."""
        if event.decoded is not None and event.decoded.unknown_tags():
            self.has_unknown_tags = True

    def _events(self, log: PartitionLog) -> Iterator[LogEvent]:
        session, scope = self._session, self._session.inputs.scope
        if not scope.group and not scope.topic:
            return session.engine.events(log)
        from offsets_log.columnar.choose.selection import Selection

        topic = session.inputs.shows_topic if scope.topic else None
        selection = Selection(session.inputs.shows_group, topic, with_batches=self._with_batches)
        return session.engine.selected(log, selection)

    def _is_kept(self, event: Event) -> bool:
        inputs, scope, decoded = self._session.inputs, self._session.inputs.scope, event.decoded
        if not scope.group and not scope.topic:
            return True
        if decoded is None or not inputs.shows_group(decoded.group):
            return False
        return not scope.topic or (decoded.is_offset_commit and inputs.shows_topic(decoded.key["topic"]))
