"""The check of one partition: its events pass by once, and everything that looks for something sees them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from offsets_log.broker.shutdowns import outcomes_by_shutdown
from offsets_log.checking.findings import SEVERITIES, Finding
from offsets_log.checking.layout import Layout
from offsets_log.checking.loads import DryRun, Load, dry_run, judged
from offsets_log.checking.names import Names
from offsets_log.checking.offsets import BuriedOffsets, OpenTransactions
from offsets_log.checking.places import Place, place_of
from offsets_log.errors import Damage, UnknownRecordTypeError
from offsets_log.log_format.completeness import Missing
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.pipeline import (
    EVERYTHING,
    BatchEnd,
    BatchStart,
    Event,
    LogEvent,
    OnDamage,
    TailFound,
    Until,
    pieces,
)
from offsets_log.replay.partition_count import PartitionCount
from offsets_log.replay.releases import Release


class PartitionCheck:
    """One partition on several releases. `read` it, then ask for `loads` and `findings`.

    Attributes:
        newest_ms: the latest timestamp of a record; -1 without one.
    """

    def __init__(self, log: PartitionLog, releases: Sequence[Release]) -> None:
        self.log = log
        self.releases = tuple(releases)
        self.newest_ms = -1
        self._run = DryRun((), {}, {}, ())
        self._layout = Layout()
        self._names = Names()
        self._transactions = OpenTransactions()
        self._buried = BuriedOffsets()

    def read(
        self,
        events: Iterable[LogEvent],
        on_damage: OnDamage,
        *,
        until: Until = EVERYTHING,
        release: tuple[int, int] | None = None,
        shutdown: str | None = None,
    ) -> None:
        """Replay all events by the rules of every release; where something is damaged, as its broker would.

        Args:
            on_damage: called once for every piece that could not be read.
            until, release: what the events were read with.
            shutdown: how the broker was stopped, ``clean`` or ``unclean``; None for what the data directory tells.
        """
        self._run = dry_run(self.log, self._watched(pieces(events), on_damage), self.releases)
        outcomes = outcomes_by_shutdown(
            self.log,
            {release.profile for release in self.releases},
            is_damaged=bool(self._layout.damaged_files or self._layout.tails),
            shutdown=shutdown,
            until=until,
            release=release,
        )
        if outcomes:
            self._run = judged(self._run, outcomes, self.log)

    @property
    def loads(self) -> tuple[Load, ...]:
        """What each release makes of it."""
        return self._run.loads

    @property
    def groups(self) -> Collection[str]:
        """All groups that a record names."""
        return self._names.groups.keys()

    def findings(self, partitions: PartitionCount, now_ms: int) -> list[Finding]:
        """Everything but the verdicts, by severity, and by kind within each.

        Args:
            partitions: how many `__consumer_offsets` has.
            now_ms: up to when open transactions are old.
        """
        found = (
            *self._run.failures(),
            *self._names.skipped_types(self.loads),
            *self._layout.damages,
            *self._names.unknown_types(),
            *self._layout.missing,
            *self._layout.overlaps(self.log),
            *self._names.misplaced_groups(self.log.offsets_partition, partitions),
            *self._run.orphans(),
            *self._buried.findings(),
            *self._names.colliding_names(),
            *self._run.beyond_buffer(),
            *self._transactions.findings(now_ms, self._run),
            *self._layout.tails,
            self._layout.size(),
        )
        return sorted(found, key=lambda finding: SEVERITIES.index(finding.severity))

    # ------------------------------------------------------------------------------ as events pass by

    def _watched(self, unseen: Iterable[list[LogEvent]], on_damage: OnDamage) -> Iterator[list[LogEvent]]:
        for piece in unseen:
            for event in piece:
                self._saw(event, on_damage)
            yield piece

    def _saw(self, event: LogEvent, on_damage: OnDamage) -> None:
        match event:
            case Damage():
                on_damage(event)
                self._layout.saw_damage(event)
            case BatchStart():
                self._layout.saw_batch(event)
            case BatchEnd():
                self._layout.saw_batch_end(event)
            case TailFound():
                self._layout.saw_tail(event)
            case Missing():
                self._layout.saw_missing(event)
            case Event():
                if event.damage is not None:
                    on_damage(event.damage)
                self._saw_record(event, place_of(event))

    def _saw_record(self, event: Event, place: Place) -> None:
        self._layout.records += 1
        self.newest_ms = max(self.newest_ms, event.record.timestamp_ms)
        if event.damage is not None and not isinstance(event.damage.error, UnknownRecordTypeError):
            rule = "records:C2" if event.batch.is_control else "J-3"
            self._layout.saw_damaged_record(event.damage, rule, place.group)
        if event.batch.is_control:
            if event.control is not None and event.control.ends_transaction:
                self._transactions.saw_marker(event.batch.producer_id)
            return
        self._names.saw_record(event, place)
        self._transactions.saw_record(event, place)
        if event.decoded is not None and event.decoded.is_offset_commit:
            self._buried.saw_offset(event.decoded, place)
