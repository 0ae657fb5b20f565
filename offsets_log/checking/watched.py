"""Watch the events of a partition once, and pass them to everything that looks for something."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from offsets_log.checking.layout import SeenFiles
from offsets_log.checking.names import Names
from offsets_log.checking.places import FindingPlace, place_of
from offsets_log.errors import Damage, UnknownRecordTypeError
from offsets_log.events import BatchEnd, BatchStart, Event, LogEvent, TailFound
from offsets_log.log_format.completeness import Missing
from offsets_log.messages.registry import CoordinatorRecord
from offsets_log.replay.fold import OnDamage


class SeesTransactions(Protocol):
    """Looks for transactions without a marker."""

    def saw_record(self, event: Event, place: FindingPlace) -> None:
        """Note a data record."""

    def saw_marker(self, producer_id: int) -> None:
        """Note a marker, which ends the producer's transaction."""


class SeesOffsets(Protocol):
    """Looks at offset commits."""

    def saw_offset(self, record: CoordinatorRecord, place: FindingPlace) -> None:
        """Note an offset commit or its tombstone."""


@dataclass(slots=True)
class Watched:
    """What was seen.

    Attributes:
        newest_ms: the latest timestamp of a record, in epoch milliseconds; -1 without one.
    """

    transactions: SeesTransactions
    offsets: SeesOffsets
    layout: SeenFiles = field(default_factory=SeenFiles)
    names: Names = field(default_factory=Names)
    newest_ms: int = -1

    def saw(self, event: LogEvent, on_damage: OnDamage) -> None:
        """Note the next event."""
        match event:
            case Damage():
                on_damage(event)
                self.layout.saw_damage(event)
            case BatchStart():
                self.layout.saw_batch(event)
            case BatchEnd():
                self.layout.saw_batch_end(event)
            case TailFound():
                self.layout.saw_tail(event)
            case Missing():
                self.layout.saw_missing(event)
            case Event():
                if event.damage is not None:
                    on_damage(event.damage)
                self._saw_record(event, place_of(event))

    def _saw_record(self, event: Event, place: FindingPlace) -> None:
        self.layout.records += 1
        self.newest_ms = max(self.newest_ms, event.record.timestamp_ms)
        if event.damage is not None and not isinstance(event.damage.error, UnknownRecordTypeError):
            rule = "records:C2" if event.batch.is_control else "J-3"
            self.layout.saw_damaged_record(event.damage, rule, place.group)
        if event.batch.is_control:
            if event.control is not None and event.control.ends_transaction:
                self.transactions.saw_marker(event.batch.producer_id)
            return
        self.names.saw_record(event, place)
        self.transactions.saw_record(event, place)
        if event.decoded is not None and event.decoded.is_offset_commit:
            self.offsets.saw_offset(event.decoded, place)
