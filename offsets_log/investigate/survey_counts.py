"""Count the records of a log for its survey (`info`): sums over its ledger, whichever way the log was read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar

import numpy as np

from offsets_log.columnar.ledger.by_events import with_ledger
from offsets_log.columnar.ledger.columns import (
    CONTROL_NAMES,
    CONTROLS,
    ENDS_TRANSACTION,
    IS_CONTROL,
    IS_OF_OFFSET,
    KINDS,
    NOT_DECODED,
    Columns,
    told_by,
)
from offsets_log.columnar.ledger.ledger import Batch, Keys
from offsets_log.events import LogEvent
from offsets_log.log_format.batch import NO_TIMESTAMP
from offsets_log.rows.survey import Survey


class SurveyCounts:
    """Kinds and times of records, and transactions without a marker yet, as `ledger.Question`."""

    columns: ClassVar[frozenset[str]] = frozenset({"record_offset", "timestamp_ms", "producer_id", "is_transactional"})
    names_topics = takes_records = False

    def __init__(self) -> None:
        self._counts = np.zeros(KINDS, np.int64)
        self._in_order: list[int] = []
        self._times: list[int] = []
        self._open: dict[int, tuple[int, int, int]] = {}

    def take(self, batch: Batch, keys: Keys) -> None:
        """Implement `Question.take`."""
        columns = batch.columns
        found = np.bincount(columns.kind, minlength=KINDS)
        new = np.flatnonzero((found > 0) & (self._counts == 0)).tolist()
        self._in_order += sorted(new, key=lambda kind: int(np.argmax(columns.kind == kind)))
        self._counts += found
        times = columns.timestamp_ms[~IS_CONTROL[columns.kind] & (columns.timestamp_ms != NO_TIMESTAMP)]
        if len(times):
            found_ms = [*self._times, int(times.min()), int(times.max())]
            self._times = [min(found_ms), max(found_ms)]
        self._follow(columns)

    def _follow(self, columns: Columns) -> None:
        """Open and end transactions."""
        is_marker = ENDS_TRANSACTION[columns.kind]
        rows = np.flatnonzero(is_marker | (columns.is_transactional != 0) & IS_OF_OFFSET[columns.kind])
        if not len(rows):
            return
        rows = rows[np.argsort(columns.producer_id[rows], kind="stable")]
        producers = columns.producer_id[rows]
        begins = np.flatnonzero(np.append(True, producers[1:] != producers[:-1]))
        markers = np.maximum.reduceat(np.where(is_marker[rows], np.arange(len(rows)), -1), begins)
        ends = np.append(begins[1:], len(rows))
        for producer_id, begin, end, marker in zip(
            producers[begins].tolist(), begins.tolist(), ends.tolist(), markers.tolist(), strict=True
        ):
            if marker >= 0:
                self._open.pop(producer_id, None)
            first = max(begin, marker + 1)
            if first < end:
                row = rows[first]
                begun = int(columns.record_offset[row]), int(columns.timestamp_ms[row]), 0
                offset, time_ms, count = self._open.get(producer_id, begun)
                self._open[producer_id] = offset, time_ms, count + end - first

    def end(self, keys: Keys, empty_bytes: int) -> None:
        """Implement `Question.end`."""

    def tell(self, found: Survey) -> None:
        """Pass on what was counted: counts that are equal are told in the order of their firsts."""
        kinds = found.kinds
        for kind in self._in_order:
            count = int(self._counts[kind])
            if kind == NOT_DECODED:
                kinds.add_not_decoded(count)
            elif kind >= CONTROLS:
                kinds.add_control_records(CONTROL_NAMES[kind - CONTROLS], count)
            else:
                kinds.add_records(*told_by(kind), count)
        for time_ms in self._times:
            kinds.add_time(time_ms)
        found.open_transactions.update(self._open)


class Surveying:
    """A survey with all counts, of a log that is read record by record."""

    def __init__(self, found: Survey) -> None:
        self._found = found

    def watch(self, events: Iterable[LogEvent]) -> Iterator[LogEvent]:
        """Count events while passing them on."""
        counts = SurveyCounts()
        yield from with_ledger(self._found.watch(events), counts)
        counts.tell(self._found)
