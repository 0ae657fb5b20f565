"""The events of a log that a question about few of its records needs: `pipeline.iter_events` for bulk.

A kernel chooses the batches (`choice`), the construct path gives their events. Whatever else there is of damage, tails
and missing log, and all batches that are not plain, comes in its place as it would; only batches that hold nothing that
was asked for are passed by.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar.choose import choice as ch
from offsets_log.columnar.choose.selection import Selection
from offsets_log.columnar.folds.state import ColumnarState
from offsets_log.columnar.scan import staging as sc
from offsets_log.columnar.scan.layout import Scanner
from offsets_log.columnar.scan.reading import Advance, Order, Place, Reading
from offsets_log.log_format.batch import RecordBatch, decode_batch_header
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.log_format.primitives import decode_string
from offsets_log.log_format.record import Record, iter_records
from offsets_log.messages.registry import CoordinatorRecord, decode_coordinator_record
from offsets_log.pipeline import EVERYTHING, BareBatch, BatchStart, LogEvent, Passed, Until, batch_events
from offsets_log.replay.profile import MODERN
from offsets_log.replay.topic_names import may_name

ROOM = 1 << 12
"""Batches that are chosen at a time, and records of these."""
BYTES_TOLD = 1 << 22
"""Bytes of their keys and values."""


def _counts(selection: Selection) -> a.Int64s:
    """A selection as the kernel is told."""
    types = range(a.KEY_TYPES) if selection.record_types is None else selection.record_types
    counts = np.zeros(ch.COUNTS, np.int64)
    counts[ch.TYPES] = sum(1 << number for number in types)
    counts[ch.BY_TOPIC] = selection.topic is not None
    counts[ch.WITH_NAMES] = selection.with_names
    counts[ch.WITH_MARKERS] = selection.with_markers
    counts[ch.WITH_BATCHES] = selection.with_batches
    counts[ch.IS_BARE] = selection.is_bare
    counts[[ch.CHOSEN_AT, ch.FIRST]] = a.NOTHING
    return counts


def _verdicts(selection: Selection, name: str) -> tuple[int, int]:
    """On a name as a group and as a topic."""
    topic = selection.topic is None or selection.topic(name)
    return ch.WANTED if selection.group(name) else ch.UNWANTED, ch.WANTED if topic else ch.UNWANTED


def selected_events(
    log: PartitionLog,
    selection: Selection,
    *,
    start: int = 0,
    until: Until = EVERYTHING,
    release: tuple[int, int] | None = None,
    wants: Callable[[Record], bool] | None = None,
    advance: Advance = lambda size_bytes: None,
) -> Iterator[LogEvent]:
    """The events of one offsets partition as `iter_events` gives them, without most batches that were not asked for.

    Args:
        start: only from the segment on that holds this record offset.
        wants: as of `iter_events`, of the batches that are read.
        advance: called with the number of bytes read since.
    """
    with Scanner() as scanner:
        order = Order(log.since(start) if start else log, until, release)
        reading = _SelectedReading(order, scanner, selection, wants)
        if not start:
            order.note_begin(reading.note)
        yield from reading.run(advance)


class _SelectedReading(Reading):
    """Batches on their way, most of them passed by.

    Attributes:
        state: names and producers as numbers; nothing is replayed into it.
        names: what is known of the names (`choice`).
        ready: what was read and not yet handed over. It is decoded on its way out: ``wants`` may depend on what was
            handed over before.
    """

    def __init__(
        self, order: Order, scanner: Scanner, selection: Selection, wants: Callable[[Record], bool] | None
    ) -> None:
        begin = order.begin(Place(0, 0))
        assert begin is not None
        self.ready: list[Iterable[LogEvent]] = []
        super().__init__(order, begin, scanner, lambda seen: self.ready.append((seen,)))
        self.selection = selection
        self.wants = wants
        self.state = ColumnarState(MODERN)
        self.counts = _counts(selection)
        self.names = np.zeros((len(self.state.arrays.groups), ch.NAME_SIZE), np.int64)
        self.chosen = np.zeros((ROOM, ch.CHOSEN_SIZE), np.int64)
        self.told = np.zeros((ROOM if selection.is_bare else 0, ch.TOLD_SIZE), np.int64)
        self.copied = np.zeros(BYTES_TOLD if selection.is_bare else 0, np.uint8)
        self._decided = 0
        for producer_id in selection.producers:
            self._follow(producer_id)

    @property
    def desk(self) -> a.Int64s:
        return self.state.arrays.desk

    def run(self, advance: Advance) -> Iterator[LogEvent]:
        """All events that are asked for."""
        for _ in self.steps(self.order.end, advance):
            yield from self._handed_over()
        self.ready.append(list(self.order.note_end(self.cursor, self.note)))
        yield from self._handed_over()

    def _handed_over(self) -> Iterator[LogEvent]:
        ready, self.ready = self.ready, []
        return chain.from_iterable(ready)

    def scan(self, index: int, data: a.Bytes) -> int:
        while True:
            s, scanner = self.state.arrays, self.scanner
            outcome: int = ch.choose(
                self.counts, s.desk, s.slots, s.rows, s.groups, s.arena, s.cold, self.names, scanner.staged, data,
                scanner.window, scanner.table, self.chosen, self.told, self.copied,
            )  # fmt: skip
            self._take_chosen(index, data)
            match outcome:
                case sc.NEEDS_ROOM:
                    self._grow()
                case ch.NEEDS_VERDICT:
                    self._decide()
                case ch.NEEDS_COPY if not self.counts[ch.TOLD]:
                    self.told = np.zeros((2 * len(self.told), ch.TOLD_SIZE), np.int64)
                    self.copied = np.zeros(2 * len(self.copied), np.uint8)
                case ch.NEEDS_COPY:
                    pass  # what was copied was taken
                case _:
                    return outcome

    def _take_chosen(self, index: int, data: a.Bytes) -> None:
        told = self.told[: self.counts[ch.TOLD]].tolist()
        copied = self.copied[: self.counts[ch.USED]].tobytes()
        begin = 0
        for at, size, is_chosen, first, following, has_holes, end in self.chosen[: self.counts[ch.CHOSEN]].tolist():
            if first != a.NOTHING:
                self.ready.append((Passed(first, following, bool(has_holes)),))
            if at != a.NOTHING and is_chosen and self.selection.is_bare:
                self.ready.append((BareBatch(self.order.log.offsets_partition, self._bare(told[begin:end], copied)),))
                begin = end
            elif at != a.NOTHING:
                raw = data[at : at + size].tobytes()
                self.ready.append(self._read(index, raw, at) if is_chosen else self._begun(index, raw, at))

    def _bare(self, told: Iterable[list[int]], copied: bytes) -> Iterator[tuple[Record, CoordinatorRecord | None]]:
        for offset, time_ms, time_delta, at, key_size, value_size in told:
            value_at = at + key_size
            value = copied[value_at : value_at + value_size] if value_size >= 0 else None
            record = Record(offset=offset, timestamp_ms=time_ms + time_delta, key=copied[at:value_at], value=value)
            is_wanted = self.wants is None or self.wants(record)
            yield record, decode_coordinator_record(record.key, value, self.order.release) if is_wanted else None

    def _read(self, index: int, raw: bytes, at: int) -> Iterator[LogEvent]:
        yield from self.events(index, decode_batch_header(raw, at))

    def _begun(self, index: int, raw: bytes, at: int) -> Iterator[LogEvent]:
        batch = decode_batch_header(raw, at)
        yield BatchStart(self.order.log.segments[index], batch, batch.base_offset)

    def events(self, index: int, batch: RecordBatch) -> Iterator[LogEvent]:
        order = self.order
        return batch_events(order.log, order.log.segments[index], batch, order.until, order.release, self.wants)

    def take(self, index: int, batch: RecordBatch) -> None:
        self.ready.append(self.events(index, batch))
        if self.selection.with_names and any(isinstance(it, Record) and may_name(it) for it in iter_records(batch)):
            self.names[:, ch.TOPIC_OF_ID] = 0
        if self.selection.with_markers and not batch.is_control:
            self._follow(batch.producer_id)

    def _follow(self, producer_id: int) -> None:
        while not ch.follow(self.desk, self.state.arrays.cold, np.int64(producer_id)):
            self._grow()

    def _grow(self) -> None:
        """Make room for more names and producers."""
        self.state.grow()
        names = np.zeros((len(self.state.arrays.groups), ch.NAME_SIZE), np.int64)
        names[: len(self.names)] = self.names
        self.names = names

    def _decide(self) -> None:
        """Find a verdict on each name that is new."""
        s = self.state.arrays
        new = slice(self._decided, int(s.desk[a.GROUPS]))
        texts = [decode_string(s.text_at(at)) for at in s.groups[new, a.NAME_AT].tolist()]
        self.names[new, : ch.TOPIC_OF_ID] = [_verdicts(self.selection, text) for text in texts]
        self._decided = new.stop
