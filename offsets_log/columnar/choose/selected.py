"""Yield the events of a log that a question about few of its records needs: `pipeline.iter_events` in bulk.

A kernel chooses the batches (`choice`), the construct path yields their events. Damage, tails, missing log and all
batches that are not plain appear in their places as usual; only batches that hold nothing that was asked for are
skipped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.choose import choice as ch
from offsets_log.columnar.choose.selection import Selection
from offsets_log.columnar.folds.state import ColumnarState
from offsets_log.columnar.scan.layout import Scanner
from offsets_log.columnar.scan.reading import Advance, Cursor, Reading, ScanOrder, ScanPlace, Seen
from offsets_log.events import (
    EVERYTHING,
    BareBatches,
    BareRecord,
    BatchStart,
    LogEvent,
    Passed,
    Until,
    Wants,
    batch_events,
)
from offsets_log.log_format.batch import RecordBatch, decode_batch_header
from offsets_log.log_format.java_text import decode_string
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.log_format.record import Record, iter_records
from offsets_log.replay.profile import MODERN
from offsets_log.replay.topic_names import may_name


@dataclass(frozen=True, slots=True)
class Room:
    """How much is chosen at a time: batches, as many of their records, and bytes of their keys and values."""

    batches: int = 1 << 12
    size_bytes: int = 1 << 22


ROOM = Room()


@dataclass(frozen=True, slots=True)
class Taken:
    """A batch that is returned.

    Attributes:
        segment_index: index of its segment in the log.
        is_whole: whether its records are asked for; otherwise only its beginning.
    """

    segment_index: int
    batch: RecordBatch
    is_whole: bool = True


class Bare(NamedTuple):
    """Records of batches of data, without the batches.

    Attributes:
        segment_index: index of their segment in the log.
        chosen: the batches, see `choice`.
        told: their records that are wanted, of which that of number ``first`` is the first; ``copied`` holds their keys
            and values.
    """

    segment_index: int
    chosen: a.Int64s
    told: a.Int64s
    first: int
    copied: bytes

    def event(self, order: ScanOrder) -> BareBatches:
        """Return them as an event."""
        data, segment = order.layout.data[self.segment_index], order.log.segments[self.segment_index]

        def read(record: BareRecord) -> RecordBatch:
            return decode_batch_header(data[record.batch_begin : record.batch_end].tobytes(), record.batch_begin)

        return BareBatches(order.log.offsets_partition, segment, self.seen(), order.decoder, read)

    def seen(self) -> Iterator[BareRecord | Passed]:
        """Yield the records, and what is passed by behind the last one of a batch."""
        records, ends = self._records(), self.chosen[:, ch.TOLD_END] - self.first
        begin = 0
        for number in np.flatnonzero(self.chosen[:, ch.RUN_FIRST] != a.NOTHING).tolist():
            yield from records[begin : ends[number]]
            yield from _passed(self.chosen[number])
            begin = int(ends[number])
        yield from records[begin:]

    def _records(self) -> list[BareRecord]:
        copied, ends = self.copied, self.chosen[:, ch.TOLD_END]
        first, following, has_holes, offset, time_ms, at, key_size, value_size = self.told.T
        is_behind = first != a.NOTHING
        begins, batch_sizes = self.chosen[:, ch.BATCH_AT], self.chosen[:, ch.BATCH_SIZE]
        counts = np.diff(ends, prepend=self.first)
        places = zip(at.tolist(), (at + key_size).tolist(), value_size.tolist(), strict=True)
        keys_and_values = [
            (copied[key:value], copied[value : value + size] if size >= 0 else None) for key, value, size in places
        ]
        columns = (
            offset.tolist(),
            time_ms.tolist(),
            *zip(*keys_and_values, strict=True),
            np.where(is_behind, first, offset).tolist(),
            (is_behind & ((has_holes != 0) | (following != offset))).tolist(),
            np.repeat(begins, counts).tolist(),
            np.repeat(begins + batch_sizes, counts).tolist(),
        )
        return list(map(BareRecord._make, zip(*columns, strict=True)))


def _passed(row: a.Int64s) -> Sequence[Passed]:
    """Return the run of records that a row of `choice` tells; nothing where it is empty."""
    first, following, has_holes = row[: ch.RUN_HAS_HOLES + 1].tolist()
    return () if first == a.NOTHING else (Passed(first, following, bool(has_holes)),)


Item = Taken | Bare | Passed | Seen
"""What a reading returns, in log order; `events_of` turns it to events."""


def events_of(order: ScanOrder, item: Item, wants: Wants | None = None) -> Iterator[LogEvent]:
    """Yield the events of an item; ``wants`` as in `iter_events`."""
    if isinstance(item, Bare):
        yield item.event(order)
        return
    if not isinstance(item, Taken):
        yield item
        return
    segment, batch = order.log.segments[item.segment_index], item.batch
    if item.is_whole:
        yield from batch_events(order.log, segment, batch, order.until, order.release, wants)
    else:
        yield BatchStart(segment, batch, batch.base_offset)


def _counts(selection: Selection) -> a.Int64s:
    """Return a selection in the form the kernel takes."""
    types = {*range(a.KEY_TYPES, a.RECORD_TYPES), *(selection.record_types or range(a.KEY_TYPES))}
    counts = np.zeros(ch.COUNTS, np.int64)
    counts[ch.TYPES] = sum(1 << number for number in types)
    counts[ch.BY_TOPIC] = selection.topic is not None
    counts[ch.WITH_NAMES] = selection.with_names
    counts[ch.WITH_MARKERS] = selection.with_markers
    counts[ch.WITH_BATCHES] = selection.with_batches
    counts[ch.IS_BARE] = selection.is_bare
    counts[[ch.CHOSEN_AT, ch.LOOKED_AT, ch.FIRST, ch.GROUP_BEFORE]] = a.NOTHING
    return counts


def _verdicts(selection: Selection, raw: bytes) -> tuple[int, int, int]:
    """Return the verdicts on a name as a group, as a topic and as a raw key."""
    name = decode_string(raw)
    group = ch.WANTED if selection.key is None else ch.BY_KEY
    topic = selection.topic is None or selection.topic(name)
    key = selection.key is None or selection.key(raw)
    return (
        group if selection.group(name) else ch.UNWANTED,
        ch.WANTED if topic else ch.UNWANTED,
        ch.WANTED if key else ch.UNWANTED,
    )


def selected_events(
    log: PartitionLog,
    selection: Selection,
    *,
    start: int = 0,
    until: Until = EVERYTHING,
    release: tuple[int, int] | None = None,
    wants: Wants | None = None,
    advance: Advance = lambda size_bytes: None,
    room: Room = ROOM,
) -> Iterator[LogEvent]:
    """Yield the events of one offsets partition like `iter_events`, without most batches that were not asked for.

    Args:
        start: begin at the segment that holds this record offset.
        wants: as in `iter_events`, for the batches that are read; it may depend on events yielded before.
        advance: called with the number of bytes read since the last call.
    """
    with Scanner() as scanner:
        order = ScanOrder(log.since(start) if start else log, until, release)
        cursor = order.begin(ScanPlace(0, 0))
        assert cursor is not None
        reading = _SelectedReading(order, cursor, scanner, selection, room)
        if not start:
            order.note_begin(reading.note)
        for items in _one_ahead(reading.steps_of_items(order.end, advance)):
            for item in items:
                if isinstance(item, Bare):
                    yield item.event(order)
                else:
                    yield from events_of(order, item, wants)
        ends = list(order.note_end(cursor, reading.note))
        for item in reading.handed_over():
            yield from events_of(order, item, wants)
        yield from ends


def _one_ahead(steps: Iterator[list[Item]]) -> Iterator[list[Item]]:
    """Yield the same items, each made by a thread while the one before is looked at."""
    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(next, steps, None)
        while (items := following.result()) is not None:
            following = pool.submit(next, steps, None)
            yield items


def items_of_piece(
    order: ScanOrder, cursor: Cursor, end: ScanPlace, scanner: Scanner, selection: Selection | None
) -> Iterator[Item]:
    """Yield what a piece of a log holds that was asked for, from a cursor on.

    Args:
        selection: None for everything. With markers, the first marker of each producer is always chosen, because its
            transaction may begin in an earlier piece. No batch is bare; keys are not asked for, because groups may be
            removed in an earlier piece.
    """
    reading: _ItemReading
    if selection is None:
        reading = _WholeReading(order, cursor, scanner)
    else:
        reading = _SelectedReading(order, cursor, scanner, replace(selection, is_bare=False, key=None))
        reading.counts[ch.FIRST_MARKERS] = selection.with_markers
    yield from reading.items(end, lambda size_bytes: None)


class _ItemReading(Reading):
    """A reading whose batches are returned as items.

    Attributes:
        ready: items that were read but not returned yet.
    """

    def __init__(self, order: ScanOrder, cursor: Cursor, scanner: Scanner) -> None:
        self.ready: list[Item] = []
        super().__init__(order, cursor, scanner, lambda seen: self.ready.append(seen))

    def items(self, end: ScanPlace, advance: Advance) -> Iterator[Item]:
        """Yield all items up to the first batch at or after ``end``."""
        for items in self.steps_of_items(end, advance):
            yield from items

    def steps_of_items(self, end: ScanPlace, advance: Advance) -> Iterator[list[Item]]:
        """Yield the same items, a list for each step."""
        for _ in self.steps(end, advance):
            yield self.handed_over()

    def handed_over(self) -> list[Item]:
        """Return the items that are ready, and forget them."""
        ready, self.ready = self.ready, []
        return ready

    def take(self, index: int, batch: RecordBatch) -> None:
        self.ready.append(Taken(index, batch))


class _WholeReading(_ItemReading):
    """A reading in which every batch is asked for."""

    def __init__(self, order: ScanOrder, cursor: Cursor, scanner: Scanner) -> None:
        super().__init__(order, cursor, scanner)
        self._scan_state = a.ScanState()

    @property
    def scan_state(self) -> a.ScanState:
        return self._scan_state

    def scan(self, index: int, data: a.Bytes) -> int:
        return oc.NOT_PLAIN


class _SelectedReading(_ItemReading):
    """A reading in which most batches are passed by.

    Attributes:
        state: numbers of names and producers; nothing is replayed into it.
        names: what is known of the names (`choice`).
    """

    def __init__(
        self, order: ScanOrder, cursor: Cursor, scanner: Scanner, selection: Selection, room: Room = ROOM
    ) -> None:
        super().__init__(order, cursor, scanner)
        self.selection = selection
        self.state = ColumnarState(MODERN, release=order.release, with_newer=True)
        self.counts = _counts(selection)
        self.names = np.zeros((len(self.state.arrays.groups), ch.NAME_SIZE), np.int64)
        self.chosen = np.zeros((room.batches, ch.CHOSEN_SIZE), np.int64)
        self.told = np.zeros((room.batches if selection.is_bare else 0, ch.TOLD_SIZE), np.int64)
        self.copied = np.zeros(room.size_bytes if selection.is_bare else 0, np.uint8)
        self._decided = 0
        for producer_id in selection.producers:
            self._follow(producer_id)

    @property
    def scan_state(self) -> a.ScanState:
        return self.state.arrays.scan_state

    def scan(self, index: int, data: a.Bytes) -> int:
        while True:
            s, scanner = self.state.arrays, self.scanner
            outcome: int = ch.choose(
                self.counts, s.all, self.names, scanner.buffers, data, self.chosen, self.told, self.copied
            )
            self._take_chosen(index, data)
            match outcome:
                case oc.NEEDS_ROOM:
                    self._grow()
                case oc.NEEDS_VERDICT:
                    self._decide()
                case oc.NEEDS_COPY if not self.counts[ch.TOLD]:
                    self.told = np.zeros((2 * len(self.told), ch.TOLD_SIZE), np.int64)
                    self.copied = np.zeros(2 * len(self.copied), np.uint8)
                case oc.NEEDS_COPY:
                    pass  # what was copied was taken
                case _:
                    return outcome

    def _take_chosen(self, index: int, data: a.Bytes) -> None:
        told = self.told[: self.counts[ch.TOLD]].copy()
        copied = self.copied[: self.counts[ch.USED]].tobytes()
        chosen = self.chosen[: self.counts[ch.CHOSEN]].copy()
        begins = np.concatenate([[0], chosen[:, ch.TOLD_END]])
        is_bare = (chosen[:, ch.IS_CHOSEN] != 0) & (np.diff(begins) > 0)
        cuts = np.flatnonzero(np.diff(is_bare)) + 1
        for first, behind in pairwise(sorted({0, *cuts.tolist(), len(chosen)})):
            if is_bare[first]:
                begin = int(begins[first])
                self.ready.append(Bare(index, chosen[first:behind], told[begin : begins[behind]], begin, copied))
                continue
            for row in chosen[first:behind]:
                self.ready += _passed(row)
                at, size, is_chosen = row[ch.BATCH_AT : ch.TOLD_END].tolist()
                if at != a.NOTHING:
                    batch = decode_batch_header(data[at : at + size].tobytes(), at)
                    self.ready.append(Taken(index, batch, bool(is_chosen)))

    def take(self, index: int, batch: RecordBatch) -> None:
        super().take(index, batch)
        if self.selection.with_names and any(isinstance(it, Record) and may_name(it) for it in iter_records(batch)):
            self.names[:, ch.TOPIC_OF_ID] = 0
        if self.selection.key is not None:  # its records may remove any group
            self.selection = replace(self.selection, key=None)
            groups = self.names[:, ch.AS_GROUP]
            groups[groups == ch.BY_KEY] = ch.WANTED
        if self.selection.with_markers and not batch.is_control:
            self._follow(batch.producer_id)

    def _follow(self, producer_id: int) -> None:
        while not ch.follow(self.state.arrays.all, np.int64(producer_id)):
            self._grow()

    def _grow(self) -> None:
        """Make room for more names and producers."""
        self.state.grow()
        names = np.zeros((len(self.state.arrays.groups), ch.NAME_SIZE), np.int64)
        names[: len(self.names)] = self.names
        self.names = names

    def _decide(self) -> None:
        """Decide on each name that is new."""
        s = self.state.arrays
        new = slice(self._decided, int(s.scan_state.group_count))
        texts = [s.text_at(at) for at in s.groups.column(a.Group.name_at)[new].tolist()]
        self.names[new, : ch.TOPIC_OF_ID] = [_verdicts(self.selection, text) for text in texts]
        self._decided = new.stop
