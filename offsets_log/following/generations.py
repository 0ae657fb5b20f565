"""Follow the generations of groups in a partition: rows of `rebalances`, again when more is known of one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from offsets_log.columnar.scan.reading import Note
from offsets_log.following import alerts, metrics
from offsets_log.following.growth import GrownPiece
from offsets_log.following.lags import KnownEnds
from offsets_log.following.metrics import Sample
from offsets_log.following.pieces import PieceReader
from offsets_log.rebalance.generation import Generation
from offsets_log.rebalance.rows import rebalance_row
from offsets_log.rebalance.storms import Limits, StormWatch
from offsets_log.rebalance.timeline import Named, Timelines, with_names
from offsets_log.replay.topic_names import TopicNames
from offsets_log.rows.tables import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationsAsked:
    """What of a partition is followed.

    Attributes:
        topic_ids: names of topics from elsewhere, those to be believed first.
    """

    shows_group: Callable[[str], bool]
    limits: Limits
    topic_ids: tuple[Mapping[bytes, str], ...] = ()
    rules: alerts.Rules


class FollowedGenerations:
    """The generations in one partition.

    Of a group only the entries are kept of which more may become known: the last one, and those within the window of
    a storm.

    Attributes:
        generations, in_storms: group → how many were told, and how many of these are in storms.
        flapping: how many have members that flap.
    """

    tells_records = True

    def __init__(self, asked: GenerationsAsked, offsets_partition: int | None) -> None:
        self.asked = asked
        self.offsets_partition = offsets_partition
        self.generations: Counter[str] = Counter()
        self.in_storms: Counter[str] = Counter()
        self.flapping = 0
        self._alerts: list[Row] = []
        self.begin_again()

    def begin_again(self) -> None:
        """Begin with nothing, because the log is another one."""
        self._timelines = Timelines(self.asked.shows_group)
        self._reader = self._timelines.reader()
        self._watches: dict[str, StormWatch] = {}
        self._told: dict[str, dict[int, Row]] = {}  # by id of the entry

    def take(self, piece: GrownPiece, reader: PieceReader, note: Note) -> None:
        """Take what is new in the log."""
        self._timelines.read(reader.events(piece, self._timelines.wants), note, self._reader)

    def changes(self, now_ms: int) -> list[Row]:
        """Return the rows that are new or changed since the last call, by group."""
        names = TopicNames(*self.asked.topic_ids, self._timelines.topic_names)
        rows = [row for group_id in sorted(self._reader.changed) for row in self._of_group(group_id, names)]
        self._reader.changed.clear()
        return rows

    def _of_group(self, group_id: str, names: TopicNames) -> Iterator[Row]:
        entries = self._timelines.generations.get(group_id)
        if not entries:
            return
        watch = self._watches.setdefault(group_id, StormWatch(self.asked.limits))
        told = self._told.setdefault(group_id, {})
        for entry in entries:
            if id(entry) not in told:
                watch.saw(entry)
        for entry in entries:
            row, before = rebalance_row(_named(entry, names)), told.get(id(entry))
            if row != before:
                self._count(row, before)
                told[id(entry)] = row
                yield row
        self._forget(entries, watch, told)

    def _count(self, row: Row, before: Row | None) -> None:
        was_storm = before is not None and before["is_storm"]
        self.generations[row["group"]] += before is None
        self.flapping += before is None and bool(row["flapping"])
        if row["is_storm"] and not was_storm:
            self.in_storms[row["group"]] += 1
            if alerts.REBALANCE_STORM in self.asked.rules:
                limits = self.asked.limits
                self._alerts.append(
                    alerts.alert_row(
                        alerts.REBALANCE_STORM,
                        f"generation {row['generation']} is one of {limits.generations} or more within "
                        f"{limits.window_ms} ms",
                        group=row["group"], offsets_partition=self.offsets_partition,
                        record_offset=row["record_offset"],
                    )
                )  # fmt: skip

    def _forget(self, entries: list[Generation], watch: StormWatch, told: dict[int, Row]) -> None:
        """Leave out the entries that nothing can change any more."""
        may_change = {id(entry) for entry in (entries[-1], *watch.recent)}
        for number in told.keys() - may_change:
            del told[number]
        entries[:] = [entry for entry in entries if id(entry) in may_change]
        for entry in entries:
            if entry.previous is not None and id(entry.previous) not in may_change:
                entry.previous = replace(entry.previous, previous=None)

    def alerts(self, now_ms: int) -> Iterator[Row]:
        """Yield what is to be said."""
        raised, self._alerts = self._alerts, []
        yield from raised

    def saw_ends(self, known: KnownEnds, now_ms: int) -> None:
        """Do nothing: generations have no lag."""

    def samples(self) -> Iterator[Sample]:
        """Yield what is worth measuring."""
        shows = self.asked.shows_group
        yield from metrics.counted_samples(metrics.REBALANCES, self.generations, shows, self.offsets_partition)
        yield from metrics.counted_samples(metrics.STORMS, self.in_storms, shows, self.offsets_partition)


def _named(entry: Generation, names: TopicNames) -> Generation:
    """Return an entry with names for topics that records call by id, and nothing of it found before."""
    before, known = entry.previous, Named()
    if before is not None:
        before = replace(before, held=with_names(before, names, known), previous=None)
    return replace(entry, held=with_names(entry, names, known), previous=before)
