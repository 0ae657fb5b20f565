"""Logs replayed and surveyed at once, in bulk: what the kernel has counted (`census`) gets its names of `rows.survey`.

Whose own functions count what is read on the slow path, as they do record by record.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar.folds import census, transactions
from offsets_log.columnar.folds.replay import Piece, Replay
from offsets_log.columnar.folds.state import ColumnarState
from offsets_log.columnar.overflow import Producer, Unended
from offsets_log.columnar.wire.batches import NEWEST_MAGIC
from offsets_log.errors import Damage
from offsets_log.events import LogEvent
from offsets_log.log_format.compression import codec_name
from offsets_log.messages.registry import RECORD_TYPES
from offsets_log.messages.schema import Message
from offsets_log.replay.profile import Profile
from offsets_log.rows.survey import Kinds, Survey, watched

MARKERS = ("COMMIT", "ABORT")


class SurveyedState(ColumnarState):
    """The effects of a run of records, and counts of their kinds.

    Attributes:
        kinds: what was counted, but for what the kernel has counted since something was read on the slow path.
    """

    def __init__(self, profile: Profile, **how: Any) -> None:
        super().__init__(profile, **how)
        self.kinds = Kinds()
        census.begin(self.arrays.all)

    def add_commit(self, producer_id: int, record_offset: int, timestamp_ms: int) -> None:
        """Implement `survey.Transactions.add_commit`."""
        s = self.arrays
        while not transactions.add_one(s.all, producer_id, record_offset, timestamp_ms, a.SLOW_PATH):
            self.grow()

    def end(self, producer_id: int) -> None:
        """Implement `survey.Transactions.end`."""
        while not transactions.end_one(self.arrays.all, producer_id):
            self.grow()

    def merge(self, right: ColumnarState) -> ColumnarState:
        """Implement `ColumnarState.merge`."""
        assert isinstance(right, SurveyedState)
        self.name_kinds()
        right.name_kinds()
        super().merge(right)
        transactions.join(self.arrays.all, right.arrays.all)
        self.kinds.add(right.kinds)
        return self

    def tell(self, found: Survey) -> None:
        """Pass on all that was counted of batches and records."""
        super().tell(found)
        self.name_kinds()
        found.kinds.add(self.kinds)
        unended = self.arrays.region(Unended)
        for number in np.flatnonzero(unended.column(Unended.count)).tolist():
            seen = unended[number]
            producer_id = int(self.arrays.region(Producer)[number].producer_id)
            found.open_transactions[producer_id] = (int(seen.offset), int(seen.time), int(seen.count))

    def name_kinds(self) -> None:
        """Count in `kinds` what the kernel has counted, in log order: counts that are equal are told in the order of
        their firsts."""
        scan_state, kinds = self.arrays.scan_state, self.kinds
        for kind, count in _taken(scan_state.formats, scan_state.formats_first):
            older, codec = divmod(kind, a.CODEC_IDS)
            kinds.add_batches(NEWEST_MAGIC - older, codec_name(codec), count)
        for kind, count in _taken(scan_state.kinds, scan_state.kinds_first):
            if kind == a.NOT_DECODED:
                kinds.add_not_decoded(count)
            elif kind >= a.MARKERS:
                kinds.add_control_records(MARKERS[kind - a.MARKERS], count)
            else:
                number, version = divmod(kind, a.VERSIONS + 1)
                kinds.add_records(number, *self._version_and_layout(number, version), count)
        if scan_state.timed:
            kinds.add_time(int(scan_state.first_ms))
            kinds.add_time(int(scan_state.last_ms))

    def _version_and_layout(self, number: int, version: int) -> tuple[int | None, Message | None]:
        if version == a.NO_VERSION:
            return None, None
        return version, self.newer.get(number) or next(RECORD_TYPES[number].layouts(version))


def _taken(counts: a.Int64s, firsts: a.Int64s) -> list[tuple[int, int]]:
    """Take what was counted of each kind; the counts go on from 0."""
    found = counts.tolist()
    counts[:] = 0
    return sorted(((i, count) for i, count in enumerate(found) if count), key=lambda item: int(firsts[item[0]]))


class _SurveyedPiece(Piece):
    """One run of batches on its way, surveyed."""

    state: SurveyedState

    def counted(self, events: Iterator[LogEvent]) -> Iterator[LogEvent]:
        self.state.name_kinds()
        return watched(super().counted(events), self.state.kinds, self.state)

    def lose(self, damage: Damage) -> None:
        self.state.kinds.add_damage(damage)
        super().lose(damage)


class SurveyingReplay(Replay):
    """One log, cut into pieces that threads replay and survey."""

    piece = _SurveyedPiece

    def new_state(self, *, with_newer: bool = True) -> ColumnarState:
        return SurveyedState(self.profile, **self.how, with_newer=with_newer)
