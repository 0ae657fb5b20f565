"""Follow the groups of a partition: which rows of `groups` are new, other ones, or gone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain

from offsets_log.columnar.scan.reading import Note
from offsets_log.following import alerts, metrics
from offsets_log.following.alerts import Identity
from offsets_log.following.growth import GrownPiece
from offsets_log.following.keeping import KeptPartition
from offsets_log.following.lags import KnownEnds, Lags
from offsets_log.following.metrics import Sample
from offsets_log.following.pieces import PieceReader, Written
from offsets_log.investigate.groups import GROUPS_COLUMNS, can_be_deleted, groups_rows, is_stale
from offsets_log.log_format.java_text import MalformedString
from offsets_log.replay.profile import Profile
from offsets_log.rows.tables import Row, to_base64
from offsets_log.words import shown_time

AGE = "commit_age_ms"
"""The column that time alone changes: that is no change of a group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupsAsked:
    """What of a partition is followed."""

    profile: Profile
    shows_group: Callable[[str], bool]
    shows_topic: Callable[[str], bool]
    rules: alerts.Rules


class FollowedGroups:
    """The groups of one partition.

    Attributes:
        rows: group → its row as it was last told, but for its age.
    """

    tells_records = False

    def __init__(self, asked: GroupsAsked, offsets_partition: int | None) -> None:
        self.asked = asked
        self.kept = KeptPartition(asked.profile, offsets_partition)
        self.rows: dict[str, Row] = {}
        self._written = Written()
        self._active: set[str] = set()
        self._lags = Lags(asked.rules, asked.shows_group, asked.shows_topic)
        self._lasting = alerts.Lasting()

    def take(self, piece: GrownPiece, reader: PieceReader, note: Note) -> None:
        """Take what is new in the log."""
        self._written.last_ms, last_ms = {}, self._written.last_ms
        self.kept.add(reader.effect(piece, self.asked.profile, note, self._written))
        self._active |= self._written.last_ms.keys()
        for group_id, time_ms in self._written.last_ms.items():
            last_ms[group_id] = max(time_ms, last_ms.get(group_id, time_ms))
        self._written.last_ms = last_ms

    def begin_again(self) -> None:
        """Forget the state, because the log is another one; the next changes say what differs."""
        self.kept = KeptPartition(self.asked.profile, self.kept.offsets_partition)
        self._written.last_ms = {}
        self._active |= self.rows.keys()

    def changes(self, now_ms: int) -> list[Row]:
        """Return the rows that changed since the last call, by group; their ages are those of a time."""
        touched = self.kept.touched.groups | self._active
        shown = set(filter(self.asked.shows_group, touched))
        held = self.kept.state(shown)
        state = held.showing(self.asked.shows_group, self.asked.shows_topic)
        rows = groups_rows(state, self.kept.offsets_partition, self._written.last_ms, now_ms)
        now = {row["group"]: row for row in rows}
        changed = []
        for group_id in sorted(shown):
            row, before = now.get(group_id), self.rows.get(group_id)
            if row is None:
                changed += [self._gone(group_id)] if self.rows.pop(group_id, None) is not None else []
            elif before is None or row | {AGE: None} != before:
                self.rows[group_id] = row | {AGE: None}
                changed.append(row)
        self._written.forget(touched - held.groups.keys() - {value.group for value in (*held.committed, *held.pending)})
        self.kept.settle()
        self._active = set()
        return changed

    @property
    def groups(self) -> set[str]:
        """Of the rows."""
        return set(self.rows)

    def aged_rows(self, now_ms: int) -> Iterator[Row]:
        """Yield all rows with their ages at a time."""
        for row in self.rows.values():
            last_commit_ms = row["last_commit_timestamp_ms"]
            yield row if last_commit_ms is None else row | {AGE: now_ms - last_commit_ms}

    def _gone(self, group_id: str) -> Row:
        """Return the row of a group that does not exist: nothing but its name."""
        row: Row = dict.fromkeys(column.name for column in GROUPS_COLUMNS)
        row |= {"group": group_id, "offsets_partition": self.kept.offsets_partition}
        return row | ({"group_base64": to_base64(group_id.raw)} if isinstance(group_id, MalformedString) else {})

    def alerts(self, now_ms: int) -> Iterator[Row]:
        """Yield what is to be said at a time."""
        lasting = alerts.of_partition(self.kept, self.asked.rules, self.asked.shows_group, now_ms)
        yield from self._lasting.new(chain(lasting, self._empty(now_ms), self._lags.found))

    def saw_ends(self, known: KnownEnds, now_ms: int) -> None:
        """Take what is known of the ends of users' partitions by now."""
        self._lags.saw(known, self.kept, now_ms)

    def samples(self) -> Iterator[Sample]:
        """Yield what is worth measuring."""
        asked, partition = self.asked, self.kept.offsets_partition
        yield from metrics.state_samples(self.kept, asked.shows_group, asked.shows_topic, self._lags.known)
        for row in self.rows.values():
            yield from metrics.group_samples(row, self.kept.group(row["group"]))
        for metric, counts in (
            (metrics.GROUP_BYTES, self._written.bytes),
            (metrics.GROUP_RECORDS, self._written.records),
        ):
            yield from metrics.counted_samples(metric, counts, asked.shows_group, partition)

    def _empty(self, now_ms: int) -> Iterator[tuple[Identity, Row]]:
        if alerts.GROUP_EMPTY not in self.asked.rules:
            return
        before_ms = now_ms - self.asked.rules[alerts.GROUP_EMPTY]
        pending = Counter(value.group for value in self.kept.iter_pending())  # a row counts those of shown topics
        for group_id, row in self.rows.items():
            if can_be_deleted(row | {"pending": pending[group_id]}) and is_stale(row, before_ms):
                since = shown_time(row["last_activity_timestamp_ms"])
                what = f"the group is Empty and has written nothing since {since}"
                yield (
                    (alerts.GROUP_EMPTY, group_id),
                    alerts.alert_row(
                        alerts.GROUP_EMPTY, what, group=group_id, offsets_partition=self.kept.offsets_partition
                    ),
                )
