"""Check one partition: what was seen of it, what each release makes of it, and the findings that follow."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from offsets_log.broker.loading import ReplayInBulk
from offsets_log.broker.shutdowns import outcomes_by_shutdown
from offsets_log.checking.findings import SEVERITIES, Finding
from offsets_log.checking.layout import deleted_finding
from offsets_log.checking.loads import DryRun, Load, dry_run, judged
from offsets_log.checking.offsets import BuriedOffsets, OpenTransactions, below_zero
from offsets_log.checking.watched import Watched
from offsets_log.data_directory.decisions import Outcomes
from offsets_log.events import EVERYTHING, LogEvent, Until, pieces
from offsets_log.log_format.completeness import below_start
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.replay.fold import OnDamage
from offsets_log.replay.partial import OffsetAndMetadata
from offsets_log.replay.partition_count import PartitionCount
from offsets_log.replay.releases import Release


class PartitionCheck:
    """One partition on several releases. `read` it, then ask for `loads` and `findings`.

    Args:
        in_bulk: replays what brokers load, see `broker.outcome.on_brokers`.

    Attributes:
        seen: what was seen of it.
    """

    def __init__(self, log: PartitionLog, releases: Sequence[Release], *, in_bulk: ReplayInBulk | None = None) -> None:
        self.log = log
        self._in_bulk = in_bulk
        self.releases = tuple(releases)
        self._transactions, self._buried = OpenTransactions(), BuriedOffsets()
        self.seen = Watched(self._transactions, self._buried)
        self._run = DryRun((), {}, {}, ())

    def read(
        self,
        events: Iterable[LogEvent],
        on_damage: OnDamage,
        *,
        until: Until = EVERYTHING,
        release: tuple[int, int] | None = None,
        shutdown: str | None = None,
    ) -> None:
        """Replay all events by the rules of every release; if something is damaged, as its broker would.

        Args:
            on_damage: called once for every piece that could not be read.
            until, release: the arguments the events were read with.
            shutdown: how the broker was stopped, ``clean`` or ``unclean``; None for what the data directory shows.
        """
        run = dry_run(self.log, self._watched(pieces(events), on_damage), self.releases)
        self._judge(run, until=until, release=release, shutdown=shutdown)

    def conclude(
        self,
        run: DryRun,
        seen: Watched,
        transactions: OpenTransactions,
        buried: BuriedOffsets,
        *,
        is_sound: bool = False,
        until: Until = EVERYTHING,
        release: tuple[int, int] | None = None,
        shutdown: str | None = None,
    ) -> None:
        """Set the results of a log that was read in bulk.

        Args:
            is_sound: whether its files hold nothing that recovery would change.
        """
        self.seen, self._transactions, self._buried = seen, transactions, buried
        self._judge(run, is_sound=is_sound, until=until, release=release, shutdown=shutdown)

    def _judge(
        self,
        run: DryRun,
        *,
        is_sound: bool = False,
        until: Until,
        release: tuple[int, int] | None,
        shutdown: str | None,
    ) -> None:
        self._run = run
        outcomes = outcomes_by_shutdown(
            self.log,
            {release.profile for release in self.releases},
            is_damaged=bool(self.seen.layout.damaged_files or self.seen.layout.tails),
            is_sound=is_sound,
            shutdown=shutdown,
            until=until,
            release=release,
            in_bulk=self._in_bulk,
        )
        if outcomes:
            self._run = judged(run, outcomes, self.log)

    @property
    def loads(self) -> tuple[Load, ...]:
        """What each release makes of it."""
        return self._run.loads

    def served(self, release: Release) -> Iterator[OffsetAndMetadata] | None:
        """Yield the offsets that a release serves of what was read; None if the replay did not go to the end."""
        values = self._run.held[release.profile].values
        return None if values is None else values()

    @property
    def groups(self) -> Collection[str]:
        """All groups that a record names."""
        return self.seen.names.groups.keys()

    @property
    def has_open_transactions(self) -> bool:
        """Whether a transaction has no marker."""
        return bool(self._transactions.by_producer)

    @property
    def newest_ms(self) -> int:
        """The latest timestamp of a record, in epoch milliseconds; -1 without one."""
        return self.seen.newest_ms

    def findings(self, partitions: PartitionCount, now_ms: int, outcomes: Outcomes | None = None) -> list[Finding]:
        """Return everything but the verdicts, by severity, and by kind within each.

        Args:
            partitions: how many partitions `__consumer_offsets` has.
            now_ms: the time at which ages of open transactions are taken, in epoch milliseconds.
            outcomes: tells what becomes of open transactions; None if nothing does.
        """
        opened = self._run.opened() if outcomes is not None and self.has_open_transactions else ()
        told = {} if outcomes is None else outcomes.cells(self.log, opened)
        layout, names, below = self.seen.layout, self.seen.names, below_start(self.log)
        found = (
            *self._run.failures(),
            *names.skipped_types(self.loads),
            *layout.damages,
            *names.unknown_types(),
            *layout.missing,
            *layout.overlaps(self.log),
            *names.misplaced_groups(self.log.offsets_partition, partitions),
            *self._run.orphans(),
            *self._buried.findings(),
            *names.colliding_names(),
            *self._run.beyond_buffer(),
            *self._transactions.findings(now_ms, self._run, told),
            *below_zero(self._run.held[self.releases[-1].profile].negative() if self._run.held else ()),
            *layout.tails,
            *([] if below is None else [deleted_finding(below)]),
            layout.size(below),
        )
        return sorted(found, key=lambda finding: SEVERITIES.index(finding.severity))

    def _watched(self, unseen: Iterable[list[LogEvent]], on_damage: OnDamage) -> Iterator[list[LogEvent]]:
        for piece in unseen:
            for event in piece:
                self.seen.saw(event, on_damage)
            yield piece
