"""The ledger of one log: rows in batches, which are taken when they are full, in memory that is used again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar.jit.kinds import LongRows
from offsets_log.columnar.jit.records import Table
from offsets_log.columnar.ledger.columns import (
    CONTROL_NAMES,
    CONTROLS,
    COUNTS,
    FIRST,
    NOT_DECODED,
    USED,
    Columns,
    Latest,
    LedgerArrays,
    Said,
    columns_with,
    kind_of,
    kinds_of_values,
)
from offsets_log.columnar.ledger.kernels import add_row
from offsets_log.events import Event
from offsets_log.log_format.primitives import ZERO_UUID
from offsets_log.log_format.record import INT64_MAX, INT64_MIN
from offsets_log.messages.registry import CoordinatorRecord
from offsets_log.messages.schema import Message

ROWS = 1 << 16


class Keys(Protocol):
    """What stands in the keys of a log."""

    def named(self) -> LongRows:
        """Return for each key the numbers of its group and topic, and its partition (`kernels.NAMES`)."""

    def name(self, number: int) -> str:
        """Return the name of a number."""

    def topic_id(self, number: int) -> bytes:
        """Return the topic id of a number in `Columns`."""


class Batch(NamedTuple):
    """Rows that follow each other.

    Attributes:
        first: number of the first.
        columns: valid until the next batch is taken.
        records: with the numbers of their rows those that say who holds what, where they are asked for: all of groups,
            and of commits that name a topic id at least the first that does.
    """

    first: int
    columns: Columns
    records: Sequence[tuple[int, CoordinatorRecord]] = ()


class Question(Protocol):
    """Who takes the rows of a log."""

    @property
    def columns(self) -> frozenset[str]:
        """Names of the `Columns` that are asked for."""

    @property
    def takes_records(self) -> bool:
        """Whether `Batch.records` are asked for."""

    @property
    def names_topics(self) -> bool:
        """Whether keys must say their topics and partitions."""

    def take(self, batch: Batch, keys: Keys) -> None:
        """Take the rows that follow."""

    def end(self, keys: Keys, empty_bytes: int) -> None:
        """Take the end of the log.

        Args:
            empty_bytes: of batches without records.
        """


class Ledger:
    """Rows on their way to a question.

    Attributes:
        arrays: what is written to; exchanged for larger ones when they are full.

    Args:
        names: of the columns that are asked for.
        take: called with each batch.
        layouts: record type → the layout of its values that kernels read, where there are several.
    """

    def __init__(
        self, names: frozenset[str], take: Callable[[Batch], None], layouts: Mapping[int, Message] | None = None
    ) -> None:
        self._names, self._take = names | {"key", "kind"}, take
        self.arrays = LedgerArrays(
            np.zeros(COUNTS, np.int64),
            kinds_of_values(layouts or {}),
            columns_with(self._names, ROWS),
            Table(Latest, a.LEAST_KEYS),
        )

    def has_room(self, count: int) -> bool:
        """Return whether there is room for so many further rows."""
        return bool(self.arrays.counts[USED] + count <= len(self.arrays.columns.key))

    def make_room(self, count: int) -> None:
        """Have all rows taken, and make room for so many."""
        self.hand_over()
        if not self.has_room(count):
            self.arrays = self.arrays._replace(columns=columns_with(self._names, 2 * count))

    def hand_over(self) -> None:
        """Have the rows taken that are not."""
        counts = self.arrays.counts
        first, used = int(counts[FIRST]), int(counts[USED])
        counts[FIRST] += used
        counts[USED] = 0
        if used:
            self._take(Batch(first, Columns(*(column[:used] for column in self.arrays.columns))))

    def fit(self, keys: int) -> None:
        """Make room for so many keys."""
        if keys > len(self.arrays.latest):
            self.arrays = self.arrays._replace(latest=self.arrays.latest.grown(2 * keys))

    def make_ready(self) -> int:
        """Make room for a row; return its number."""
        if not self.has_room(1):
            self.make_room(1)
        return int(self.arrays.counts[FIRST] + self.arrays.counts[USED])

    def add(self, key: int, event: Event, size_bytes: int, topic_id: int = 0) -> None:
        """Add the row of a record that was read on the slow path.

        Args:
            key: NOTHING without one.
            size_bytes: share of the bytes of its batch.
            topic_id: as in `Columns`.
        """
        self.make_ready()
        record, batch, committed = event.record, event.batch, 0
        if event.control is not None:
            kind = CONTROLS + CONTROL_NAMES.index(event.control.type)
        elif event.decoded is None:
            kind = NOT_DECODED
        else:
            decoded = event.decoded
            kind = kind_of(decoded.record_type, decoded.value_version, decoded.layout)
            if decoded.is_offset_commit and decoded.value is not None:
                committed = decoded.value["offset"]
        record_offset = min(max(record.offset, INT64_MIN), INT64_MAX)
        of_batch = batch.producer_id, int(batch.is_transactional)
        said = Said(record_offset, record.timestamp_ms, committed, *of_batch, topic_id)
        add_row(self.arrays, key, kind, size_bytes, said)


def own_topic_id(record: CoordinatorRecord) -> bytes:
    """Return the topic id that an offset commit names; zeros if it names none."""
    value = record.value if record.is_offset_commit else None
    return bytes((value or {}).get("topic_id") or ZERO_UUID)


def says_who_holds(record: CoordinatorRecord) -> bool:
    """Whether a record may say who holds what: of a group, or what a topic id is called."""
    return not record.is_offset_commit or own_topic_id(record) != ZERO_UUID
