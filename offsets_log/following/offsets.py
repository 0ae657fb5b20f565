"""Follow the latest committed offsets of a partition: which rows of `compact` are new, other ones, or gone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain

from offsets_log.columnar.scan.reading import Note
from offsets_log.following import alerts
from offsets_log.following.growth import GrownPiece
from offsets_log.following.keeping import KeptPartition
from offsets_log.following.lags import KnownEnds, Lags
from offsets_log.following.metrics import Sample, state_samples
from offsets_log.following.pieces import PieceReader
from offsets_log.investigate.history import change_of
from offsets_log.replay.partial import GroupTopicPartition, OffsetAndMetadata
from offsets_log.replay.profile import Profile
from offsets_log.rows.tables import COMPACT_COLUMNS, Row, offset_row, with_raw_texts


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetsAsked:
    """What of a partition is followed.

    Attributes:
        orphans: also offsets of groups that do not exist.
        unstable: whether rows tell offsets under an open transaction.
    """

    profile: Profile
    shows_group: Callable[[str], bool]
    shows_topic: Callable[[str], bool]
    orphans: bool = False
    unstable: bool = False
    rules: alerts.Rules


class FollowedOffsets:
    """The offsets of one partition."""

    tells_records = False

    def __init__(self, asked: OffsetsAsked, offsets_partition: int | None) -> None:
        self.asked = asked
        self.kept = KeptPartition(asked.profile, offsets_partition)
        self._told: dict[GroupTopicPartition, tuple[OffsetAndMetadata, bool]] = {}
        self._lasting = alerts.Lasting()
        self._alerts: list[Row] = []
        self._lags = Lags(asked.rules, asked.shows_group, asked.shows_topic)

    def take(self, piece: GrownPiece, reader: PieceReader, note: Note) -> None:
        """Take what is new in the log."""
        self.kept.add(reader.effect(piece, self.asked.profile, note))

    def begin_again(self) -> None:
        """Forget the state, because the log is another one; the next changes say what differs."""
        self.kept = KeptPartition(self.asked.profile, self.kept.offsets_partition)
        self.kept.touched.keys.update(self._told)

    def changes(self, now_ms: int) -> list[Row]:
        """Return the rows that changed since the last call, by group, topic and partition."""
        asked, touched = self.asked, sorted(self.kept.touched.keys)
        shown = (key for key in touched if asked.shows_group(key[0]) and asked.shows_topic(key[1]))
        rows = [row for row in map(self._changed, shown) if row is not None]
        self.kept.settle()
        return rows

    def _changed(self, key: GroupTopicPartition) -> Row | None:
        value = self.kept.answered(key, orphans=self.asked.orphans)
        before = self._told.get(key)
        if value is None:
            return None if self._told.pop(key, None) is None else self._gone(key)
        is_unstable = self.asked.unstable and self.kept.is_pending(key)
        if before == (value, is_unstable):
            return None
        self._told[key] = (value, is_unstable)
        if before is not None and alerts.REWOUND in self.asked.rules and change_of(before[0], value) == "rewound":
            self._alerts.append(self._rewound(before[0], value))
        row = offset_row(value, self.kept.offsets_partition)
        return row | {"unstable": is_unstable} if self.asked.unstable else row

    def _gone(self, key: GroupTopicPartition) -> Row:
        """Return the row of a key without an answer: nothing but its name."""
        row: Row = dict.fromkeys(column.name for column in COMPACT_COLUMNS)
        row |= dict(zip(("group", "topic", "partition"), key, strict=True))
        row["offsets_partition"] = self.kept.offsets_partition
        if self.asked.unstable:
            row["unstable"] = None
        return with_raw_texts(row, ("group", "topic"))

    def _rewound(self, before: OffsetAndMetadata, value: OffsetAndMetadata) -> Row:
        step = f"from {before.committed_offset} to {value.committed_offset}"
        return alerts.alert_row(
            alerts.REWOUND, f"the committed offset went back {step}",
            group=value.group, topic=value.topic, partition=value.partition,
            offsets_partition=self.kept.offsets_partition, record_offset=value.record_offset,
        )  # fmt: skip

    def alerts(self, now_ms: int) -> Iterator[Row]:
        """Yield what is to be said at a time."""
        raised, self._alerts = self._alerts, []
        yield from raised
        lasting = alerts.of_partition(self.kept, self.asked.rules, self.asked.shows_group, now_ms)
        yield from self._lasting.new(chain(lasting, self._lags.found))

    def saw_ends(self, known: KnownEnds, now_ms: int) -> None:
        """Take what is known of the ends of users' partitions by now."""
        self._lags.saw(known, self.kept, now_ms)

    def samples(self) -> Iterator[Sample]:
        """Yield what is worth measuring."""
        return state_samples(self.kept, self.asked.shows_group, self.asked.shows_topic, self._lags.known)

    @property
    def count(self) -> int:
        """How many rows there are."""
        return len(self._told)

    @property
    def groups(self) -> set[str]:
        """Of the rows."""
        return {key[0] for key in self._told}
