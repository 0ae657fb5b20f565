"""Follow the commits of groups in a partition: the rows of `history` as they come."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from offsets_log.columnar.choose.selection import Selection
from offsets_log.columnar.scan.reading import Note
from offsets_log.following import alerts, metrics
from offsets_log.following.growth import Piece
from offsets_log.following.lags import KnownEnds
from offsets_log.following.metrics import Sample
from offsets_log.following.pieces import PieceReader
from offsets_log.investigate.history import Entry, History, ShowsKey, history_row
from offsets_log.investigate.holders import TopicIds
from offsets_log.replay.profile import Profile
from offsets_log.rows.tables import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitsAsked:
    """What of a partition is followed.

    Attributes:
        topic_ids: names of topics from elsewhere, those to be believed first.
    """

    profile: Profile
    shows_group: Callable[[str], bool]
    shows_key: ShowsKey
    topic_ids: tuple[Mapping[bytes, str], ...] = ()
    only_rewinds: bool = False
    rules: alerts.Rules


class FollowedCommits:
    """The commits in one partition, in log order.

    Attributes:
        commits, rewinds, keys: how many were told, and of which keys.
    """

    tells_records = True

    def __init__(self, asked: CommitsAsked, offsets_partition: int | None) -> None:
        self.asked = asked
        self.offsets_partition = offsets_partition
        self.commits = self.rewinds = 0
        self.keys: set[tuple[str, str, int]] = set()
        self._selection = Selection(asked.shows_group, with_names=True, with_markers=True)
        self._alerts: list[Row] = []
        self.begin_again()

    def begin_again(self) -> None:
        """Begin with nothing, because the log is another one."""
        self._history = History(self.asked.profile, self.asked.shows_group, self.asked.shows_key)

    def take(self, piece: Piece, reader: PieceReader, note: Note) -> None:
        """Take what is new in the log."""
        self._history.read(reader.chosen(piece, self._selection), on_damage=note)

    def changes(self, now_ms: int) -> list[Row]:
        """Return the rows since the last call."""
        entries = self._history.hand_over()
        self.commits += sum(entry.value is not None for entry in entries)
        self.keys.update(entry.key for entry in entries)
        rewound = [entry for entry in entries if entry.change == "rewound"]
        self.rewinds += len(rewound)
        if alerts.REWOUND in self.asked.rules:
            self._alerts += map(self._rewound, rewound)
        shown = rewound if self.asked.only_rewinds else entries
        if not shown:
            return []
        ids = TopicIds(*self.asked.topic_ids, self._history.state.topic_names)
        return [history_row(entry, self.offsets_partition, ids) for entry in shown]

    def _rewound(self, entry: Entry) -> Row:
        assert entry.before is not None
        assert entry.effective is not None
        group, topic, partition = entry.key
        step = f"from {entry.before.committed_offset} to {entry.effective.committed_offset}"
        return alerts.alert_row(
            alerts.REWOUND, f"the committed offset went back {step}", group=group, topic=topic, partition=partition,
            offsets_partition=self.offsets_partition, record_offset=entry.record_offset,
        )  # fmt: skip

    def alerts(self, now_ms: int) -> Iterator[Row]:
        """Yield what is to be said."""
        raised, self._alerts = self._alerts, []
        yield from raised

    def saw_ends(self, known: KnownEnds, now_ms: int) -> None:
        """Nothing: rows are of moments that are over."""

    def samples(self) -> Iterator[Sample]:
        """Yield what is worth measuring."""
        yield metrics.COMMITS, (self.offsets_partition,), self.commits
        yield metrics.REWINDS, (self.offsets_partition,), self.rewinds
