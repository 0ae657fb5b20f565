"""Follow the commits of groups in a partition: rows of `history` as they come, those of one record by their keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby

from offsets_log.columnar.choose.selection import Selection
from offsets_log.columnar.history import entries as k
from offsets_log.columnar.history.kernels import scan
from offsets_log.columnar.history.slow_path import BeyondError
from offsets_log.columnar.scan.reading import Note
from offsets_log.columnar.sinks.kernels import write_lines
from offsets_log.following import alerts, metrics
from offsets_log.following.growth import GrownPiece, ReadAgainError
from offsets_log.following.lags import KnownEnds
from offsets_log.following.metrics import Sample
from offsets_log.following.pieces import PieceReader
from offsets_log.investigate.bulk_history import OrderedHistory
from offsets_log.investigate.growing_history import GrowingHistory
from offsets_log.investigate.history import Entry, History, ShowsKey
from offsets_log.investigate.history_lines import HistoryLines
from offsets_log.investigate.history_rows import history_row
from offsets_log.investigate.holders import TopicIds
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.replay.profile import Profile
from offsets_log.rows.tables import Row, json_bytes

FEW_ENTRIES = 256
"""So many become rows one by one; more become lines at once."""

Lines = Iterator[memoryview]
"""JSON Lines, many at a time; each piece is valid until the next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitsAsked:
    """What of a partition is followed.

    Attributes:
        shows_key: None for all keys of these groups.
        topic_ids: names of topics from elsewhere, those to be believed first.
    """

    profile: Profile
    shows_group: Callable[[str], bool]
    shows_key: ShowsKey | None = None
    topic_ids: tuple[Mapping[bytes, str], ...] = ()
    only_rewinds: bool = False
    rules: alerts.Rules


class FollowedCommits:
    """The commits in one partition, in log order.

    They are read by kernels where these are there; alerts about rewinds need what was answered before, which only the
    history of the construct path keeps.

    Attributes:
        commits, rewinds, begun_below, keys: how many were told, and of which keys.
    """

    tells_records = True

    def __init__(self, asked: CommitsAsked, offsets_partition: int | None) -> None:
        self.asked = asked
        self.offsets_partition = offsets_partition
        self.commits = self.rewinds = self.begun_below = 0
        self.keys: set[tuple[str, str, int]] = set()
        self._selection = Selection(asked.shows_group, with_names=True, with_markers=True)
        self._alerts: list[Row] = []
        self._is_beyond_kernels = alerts.REWOUND in asked.rules
        self._told_until = 0
        self.begin_again()

    def begin_again(self) -> None:
        """Begin with nothing, because the log is another one."""
        asked = self.asked
        self._history = History(asked.profile, asked.shows_group, asked.shows_key or (lambda key: True))
        self._growing: GrowingHistory | None = None
        self._is_begun = False
        self._told_until = 0

    def take(self, piece: GrownPiece, reader: PieceReader, note: Note) -> None:
        """Take what is new in the log.

        Raises:
            ReadAgainError: kernels cannot read it; what was told is not told again.
        """
        if not self._is_begun and not self._is_beyond_kernels and reader.has_kernels(piece, scan, write_lines):
            self._growing = GrowingHistory(self.asked.profile, self.asked.shows_group, self.asked.shows_key)
        self._is_begun = True
        if self._growing is None:
            self._history.read(reader.chosen(piece, self._selection), on_damage=note)
            return
        told_until = piece.cursor.next_offset
        try:
            reader.history(piece, self._growing, note)
        except BeyondError:
            self._is_beyond_kernels = True
            self.begin_again()
            self._told_until = told_until
            raise ReadAgainError from None

    def changes(self, now_ms: int) -> list[Row] | Lines:
        """Return the rows since the last call, or their lines."""
        return self._rows() if self._growing is None else self._by_kernels(self._growing)

    def _rows(self) -> list[Row]:
        entries = self._history.hand_over()
        if self._told_until:
            entries = [entry for entry in entries if entry.record_offset >= self._told_until]
        of_records = groupby(entries, key=lambda entry: entry.record_offset)
        entries = [entry for _, some in of_records for entry in sorted(some, key=lambda entry: entry.key)]
        self.commits += sum(entry.value is not None for entry in entries)
        self.keys.update(entry.key for entry in entries)
        rewound = [entry for entry in entries if entry.goes_back]
        below = sum(entry.begins_below for entry in rewound)
        self.rewinds += len(rewound) - below
        self.begun_below += below
        if alerts.REWOUND in self.asked.rules:
            self._alerts += map(self._rewound, rewound)
        shown = rewound if self.asked.only_rewinds else entries
        if not shown:
            return []
        ids = TopicIds(*self.asked.topic_ids, self._history.state.topic_names)
        return [history_row(entry, self.offsets_partition, ids) for entry in shown]

    def _by_kernels(self, growing: GrowingHistory) -> list[Row] | Lines:
        ordered = growing.new(PartitionLog(self.offsets_partition, ()), *self.asked.topic_ids)
        self.commits += ordered.count(k.EVENT, k.COMMIT)
        self.rewinds += ordered.count(k.CHANGE, k.REWOUND)
        self.begun_below += ordered.count(k.CHANGE, k.NEW_BELOW)
        self.keys |= growing.new_keys()
        if len(ordered.order) > FEW_ENTRIES:
            return self._at_once(growing, ordered)
        rows = list(ordered.rows(only_rewinds=self.asked.only_rewinds))
        growing.let_go()
        return rows

    def _at_once(self, growing: GrowingHistory, ordered: OrderedHistory) -> Lines:
        lines = HistoryLines(ordered, lambda row: json_bytes(row) + b"\n")
        yield from lines.pieces(only_rewinds=self.asked.only_rewinds)
        growing.let_go()

    def _rewound(self, entry: Entry) -> Row:
        assert entry.effective is not None
        assert entry.rewound_by is not None
        group, topic, partition = entry.key
        now = entry.effective.committed_offset
        step = f"from {now + entry.rewound_by} to {now}{', deleted in between' * entry.begins_below}"
        return alerts.alert_row(
            alerts.REWOUND, f"the committed offset went back {step}", group=group, topic=topic, partition=partition,
            offsets_partition=self.offsets_partition, record_offset=entry.record_offset,
        )  # fmt: skip

    def alerts(self, now_ms: int) -> Iterator[Row]:
        """Yield what is to be said."""
        raised, self._alerts = self._alerts, []
        yield from raised

    def saw_ends(self, known: KnownEnds, now_ms: int) -> None:
        """Do nothing: rows are of moments that are over."""

    def samples(self) -> Iterator[Sample]:
        """Yield what is worth measuring."""
        yield metrics.COMMITS, (self.offsets_partition,), self.commits
        yield metrics.REWINDS, (self.offsets_partition,), self.rewinds + self.begun_below
