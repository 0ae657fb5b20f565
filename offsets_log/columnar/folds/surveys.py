"""Logs replayed and surveyed at once, in bulk: batches and damage as `rows.survey` counts them, records by a ledger."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from offsets_log.columnar import arrays as a
from offsets_log.columnar.folds.ledgers import LedgerPiece, LedgerReplay, LedgerState
from offsets_log.columnar.ledger.ledger import Question
from offsets_log.columnar.wire.batches import NEWEST_MAGIC
from offsets_log.errors import Damage
from offsets_log.events import LogEvent
from offsets_log.log_format.compression import codec_name
from offsets_log.replay.profile import Profile
from offsets_log.rows.survey import Kinds, Survey, watched


class SurveyedState(LedgerState):
    """The effects of the records of a log, and counts of its batches.

    Attributes:
        kinds: what was counted, but for what the kernel has counted since something was read on the slow path.
    """

    def __init__(self, profile: Profile, question: Question, **how: Any) -> None:
        super().__init__(profile, question, **how)
        self.kinds = Kinds()

    def tell(self, found: Survey) -> None:
        """Pass on all that was counted of batches, and damage."""
        super().tell(found)
        self.name_formats()
        found.kinds.add(self.kinds)

    def name_formats(self) -> None:
        """Count in `kinds` what the kernel has counted, in log order: counts that are equal are told in the order of
        their firsts."""
        counts = self.arrays.scan_state.formats
        firsts, found = self.arrays.scan_state.formats_first.tolist(), counts.tolist()
        counts[:] = 0
        for kind in sorted((kind for kind, count in enumerate(found) if count), key=lambda kind: firsts[kind]):
            older, codec = divmod(kind, a.CODEC_IDS)
            self.kinds.add_batches(NEWEST_MAGIC - older, codec_name(codec), found[kind])


class _SurveyedPiece(LedgerPiece):
    """A log on its way, surveyed."""

    state: SurveyedState

    def counted(self, events: Iterator[LogEvent]) -> Iterator[LogEvent]:
        self.state.name_formats()
        return watched(super().counted(events), self.state.kinds)

    def lose(self, damage: Damage) -> None:
        self.state.kinds.add_damage(damage)
        super().lose(damage)


class SurveyingReplay(LedgerReplay):
    """One log, replayed and surveyed."""

    piece = _SurveyedPiece
    kind = SurveyedState
