"""Logs replayed with a ledger: rows by the kernel that replays, and by Python of what is read on the slow path.

A log is read by one thread, so that a key's records follow each other; logs are read side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.folds.replay import Piece, Replay
from offsets_log.columnar.folds.state import ColumnarState, canonical_key
from offsets_log.columnar.jit.kinds import LongRows
from offsets_log.columnar.ledger.columns import BYTES, LedgerArrays
from offsets_log.columnar.ledger.kernels import NAMES, name_keys
from offsets_log.columnar.ledger.ledger import Batch, Ledger, Question
from offsets_log.events import Event, LogEvent
from offsets_log.log_format.java_text import plain
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.messages.registry import CoordinatorRecord
from offsets_log.replay.groups import GROUP_METADATA
from offsets_log.replay.profile import Profile
from offsets_log.rows.batch_bytes import counted


class LedgerState(ColumnarState):
    """The effects of the records of a log, and rows of them for a question.

    Attributes:
        question: who takes the rows.
        rows: those that it has not taken.
    """

    def __init__(self, profile: Profile, question: Question, **how: Any) -> None:
        super().__init__(profile, **how)
        self.question = question
        self.rows = Ledger(question.columns, self._take, self.newer)
        self._keys = KernelKeys(self, with_topics=question.names_topics)
        self._empty_bytes = 0
        self.fit()

    @property
    def ledger(self) -> LedgerArrays:
        """Where kernels write rows."""
        return self.rows.arrays

    def grow(self) -> None:
        """Make room for what has none: in the ledger for all that is staged."""
        count = int(self.arrays.scan_state.staged) or 1
        if self.rows.has_room(count):
            super().grow()
            self.fit()
        else:
            self.rows.make_room(count)

    def fit(self) -> None:
        """Make room for all keys that the arrays have room for."""
        self.rows.fit(len(self.arrays.rows))

    def _take(self, batch: Batch) -> None:
        self.question.take(batch, self._keys)

    def finish(self) -> None:
        """Have the last rows taken."""
        self.rows.hand_over()
        kernel_bytes = int(self.arrays.scan_state.read_bytes - self.ledger.counts[BYTES])
        self.question.end(self._keys, self._empty_bytes + kernel_bytes)

    # ---------------------------------------------------------------------- records read on the slow path

    def count(self, event: Event | None, size_bytes: int) -> None:
        """Add the row of a record that was read on the slow path; None for a batch without records."""
        if event is None:
            self._empty_bytes += size_bytes
        else:
            key = a.NOTHING if event.decoded is None else self.row_of(event, event.decoded)
            topic_id = 0 if event.decoded is None else self.topic_id_of(event.decoded)
            self.rows.add(key, event, size_bytes, topic_id)

    def row_of(self, event: Event, record: CoordinatorRecord) -> int:
        """Return the row of the raw key of a record."""
        raw_key, number = event.record.key, record.record_type
        assert raw_key is not None
        fields = tuple(map(plain, record.key.values()))
        if number < a.KEY_TYPES:
            return self.raw_row(raw_key, canonical_key(max(number, 1), fields))
        if number in self.newer and raw_key == canonical_key(number, fields):
            return self.newer_row(raw_key)
        return self.raw_row(raw_key, canonical_key(GROUP_METADATA, (plain(record.group),)))  # no kernel meets it

    def topic_id_of(self, record: CoordinatorRecord) -> int:
        """Return `Columns.topic_id` of a record that was read on the slow path."""
        return 0


class KernelKeys:
    """The keys of a state, as `ledger.Keys`."""

    def __init__(self, state: ColumnarState, *, with_topics: bool) -> None:
        self._state, self._with_topics = state, with_topics
        self._known, self._named = 0, np.full((a.LEAST_KEYS, NAMES), a.NOTHING, np.int64)

    def named(self) -> LongRows:
        """Implement `Keys.named`."""
        state = self._state
        if len(self._named) < state.arrays.scan_state.row_count:
            larger = np.full((2 * int(state.arrays.scan_state.row_count), NAMES), a.NOTHING, np.int64)
            larger[: self._known] = self._named[: self._known]
            self._named = larger
        while name_keys(state.arrays.all, self._named, self._known, self._with_topics) == oc.NEEDS_ROOM:
            state.grow()
        self._known = int(state.arrays.scan_state.row_count)
        return self._named[: self._known]

    def name(self, number: int) -> str:
        """Implement `Keys.name`."""
        return self._text(number).decode()

    def topic_id(self, number: int) -> bytes:
        """Implement `Keys.topic_id`."""
        return self._text(number - 1)

    def _text(self, number: int) -> bytes:
        return self._state.arrays.text_at(int(self._state.arrays.groups[number].name_at))


class LedgerPiece(Piece):
    """A log on its way into a ledger."""

    state: LedgerState

    def counted(self, events: Iterator[LogEvent]) -> Iterator[LogEvent]:
        return counted(super().counted(events), self.state.count)


class LedgerReplay(Replay):
    """One log, replayed with a ledger.

    Args:
        question: makes the question that takes the rows.
        state: makes the state, of a profile, a question, and how the log is read; None for `kind`.
    """

    piece = LedgerPiece
    kind: type[LedgerState] = LedgerState

    def __init__(
        self,
        log: PartitionLog,
        profile: Profile,
        *,
        question: Callable[[], Question],
        state: Callable[..., LedgerState] | None = None,
        pieces: int = 1,
        **how: Any,
    ) -> None:
        super().__init__(log, profile, pieces=1, **how)
        self._question, self._state = question, state or self.kind

    def new_state(self, *, with_newer: bool = True) -> ColumnarState:
        state = self._state(self.profile, self._question(), **self.how, with_newer=with_newer)
        state.arrays.scan_state.notes_activity |= self.notes_activity
        return state

    def replay_piece(self, *args: Any) -> Any:
        part = super().replay_piece(*args)
        assert isinstance(part.state, LedgerState)
        part.state.finish()
        return part
