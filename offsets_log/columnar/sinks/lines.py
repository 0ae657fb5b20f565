"""Write all records as lines of text in a format, in bulk.

The kernel writes the lines of records it has read. Lines of records read on the slow path, or without a template, are
made on the slow path and inserted in their places.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from offsets_log.columnar.events import columns as k
from offsets_log.columnar.events.chunk import ROOM, Chunk, Room
from offsets_log.columnar.events.layouts import Release
from offsets_log.columnar.jit.kinds import Ints
from offsets_log.columnar.sinks import embedded as em
from offsets_log.columnar.sinks import kernels as sk
from offsets_log.columnar.sinks.json_programs import Programs
from offsets_log.columnar.sinks.kinds import KINDS, kind_numbers, kind_of
from offsets_log.columnar.sinks.marks import Form, Told, event_of, letters_of, quote_of
from offsets_log.columnar.sinks.templates import WITHOUT_VALUE, Maker, Templates
from offsets_log.columnar.sinks.text import TEXT_BYTES, Names, Text
from offsets_log.events import BatchStart, Event, LogEvent
from offsets_log.log_format.partition_log import Segment
from offsets_log.messages.registry import decode_coordinator_record
from offsets_log.rows.shown import Shown

MOST_TEMPLATES = 64


class Press:
    """What all threads share that make lines of one format.

    Args:
        form: the format.
        room: of its chunks.
        text_bytes: of lines that are handed over at once, more or less.
        most_templates: segments whose templates are remembered.
    """

    def __init__(
        self, form: Form, *, room: Room = ROOM, text_bytes: int = TEXT_BYTES, most_templates: int = MOST_TEMPLATES
    ) -> None:
        self.form = form
        self.room, self.text_bytes, self.most_templates = room, text_bytes, most_templates
        self.letters = letters_of(form)
        self.json = Programs(quote_of(form), form.beyond, [*form.expanded])
        self._templates: dict[tuple[int | None, str, Release | None], Templates] = {}
        self._lock = threading.Lock()

    def templates(self, segment: Segment, offsets_partition: int | None, release: Release | None) -> Templates:
        """Return the templates of a segment, including those made before."""
        key = offsets_partition, segment.file, release
        with self._lock:
            if key not in self._templates:
                if len(self._templates) >= self.most_templates:
                    del self._templates[next(iter(self._templates))]
                self._templates[key] = Templates(self.maker(segment, offsets_partition, release).program, KINDS)
            return self._templates[key]

    def maker(self, segment: Segment, offsets_partition: int | None, release: Release | None) -> Maker:
        """Return what makes the lines that templates are cut from."""
        return Maker(segment, offsets_partition, self.form, self.json, release)

    def chunk(self, release: Release | None) -> LineChunk:
        """Return a chunk for one thread."""
        return LineChunk(self, release)


@dataclass(frozen=True, slots=True)
class ByHand:
    """A line that was made on the slow path, and the segment of the batch that begins with it."""

    line: bytes
    begun: Segment | None = None


@dataclass(slots=True)
class Headings:
    """Headings of a part: of its first file and of its last one.

    The first heading is not in the text before the place where it becomes known.
    """

    first: bytes | None = None
    last: bytes | None = None


class LineChunk(Chunk):
    """Rows of a run of lines."""

    def __init__(self, press: Press, release: Release | None) -> None:
        super().__init__(release, press.room)
        self.press = press
        self._expanded = [*press.form.expanded.values()]
        self._text = Text(press.letters, press.json, self._embedded, press.form.expanded_in, press.text_bytes)
        self._names = self._new_names()
        self._slow_path_records = 0
        self._headings = Headings()
        self.counts[k.HAS_BATCHES] = press.form.batch_line is not None

    def _new_names(self) -> Names:
        entries = self._named = self.entries
        return Names([entries.groups, entries.topics, entries.topic_ids], self.press.letters)

    def begin(self) -> None:
        super().begin()
        self._headings = Headings()

    def clear(self) -> None:
        super().clear()
        self._slow_path_records = 0
        self._text.known.trim()

    def row(self, event: LogEvent, shown: Shown) -> ByHand | None:
        """Return the line of an event read on the slow path."""
        if not isinstance(event, Event):
            line = self.press.form.aside(event)
            segment = event.segment if isinstance(event, BatchStart) else None
            return None if line is None else ByHand(line, segment)
        decoded = event.decoded
        names = {} if decoded is None else {"group": decoded.group, "topic": decoded.key.get("topic")}
        if not shown.shows(names):
            return None
        self._slow_path_records += 1
        return ByHand(self.press.form.line(event))

    def made(self, offsets_partition: int | None, shown: Shown) -> Lines:
        """Return the lines."""
        self.entries.understand(int(self.counts[k.ENTRIES]))
        if self._named is not self.entries:
            self._names = self._new_names()
        self._names.update()
        ints = self.ints[:, : self.rows]
        is_record, kinds = ints[k.KIND] != k.BATCH, kind_numbers(ints)
        if not shown.is_all:
            is_hidden = is_record & ~self._shown(shown)
            kinds[is_hidden] = sk.HIDDEN
            is_record &= ~is_hidden
        count = self._slow_path_records + int(np.count_nonzero(is_record))
        return Lines(len(self), count, self._headings, self._pieces(offsets_partition, kinds))

    def _pieces(self, offsets_partition: int | None, kinds: Ints) -> Iterator[memoryview]:
        columns = sk.Columns(
            kinds, self.longs, self.ints, self.texts, self.ints[k.ENDS_AT :], np.zeros(0, np.uint8), self._names.data,
            self._names.places,
        )  # fmt: skip
        begins = [begin for begin, _ in self._segments]
        places = np.array(self._places, np.int64)
        cuts = sorted({*begins, *self._places, self.rows})
        for at, end in pairwise([*cuts, self.rows]):
            first, last = np.searchsorted(places, [at, at + 1]).tolist()
            for made in self._slow_path[first:last]:
                if made.begun is not None:
                    yield from self._heading(made.begun)
                yield from self._text.put(made.line)
            if at < end:
                segment = self._segments[bisect_right(begins, at) - 1][1]
                yield from self._heading(segment)
                templates = self.press.templates(segment, offsets_partition, self.release)
                line = partial(self._line, segment, offsets_partition)
                yield from self._text.rows(columns, range(at, end), templates, line)
        yield self._text.flushed()

    def _heading(self, segment: Segment) -> Iterator[memoryview]:
        """Write the heading before the first batch of a file; that of the part's first file is kept separately."""
        heading, headings = self.press.form.heading(segment), self._headings
        if not heading or heading == headings.last:
            return
        if headings.first is None:
            yield self._text.flushed()
            headings.first = heading
        else:
            yield from self._text.put(heading)
        headings.last = heading

    def _line(self, segment: Segment, offsets_partition: int | None, row: int) -> bytes:
        """Return the line of a kernel's row, made on the slow path."""
        form, column = self.press.form, partial(self._column, row)
        if self.ints[k.KIND, row] == k.COMMITTED:  # whose raw record was not kept
            kind = kind_of(int(kind_numbers(self.ints[:, [row]])[0]))
            return self.press.maker(segment, offsets_partition, self.release).line(kind, Told(form, column))
        key = self._raw(k.RAW_KEY, row)
        value = None if self.ints[k.KIND, row] in WITHOUT_VALUE else self._raw(k.RAW_VALUE, row)
        event = event_of(
            segment,
            offsets_partition,
            int(self.ints[k.ATTRIBUTES, row]),
            column,
            key=key,
            value=value,
            decoded=decode_coordinator_record(key, value, self.release),
        )
        return form.line(event)

    def _column(self, row: int, op: int, argument: int) -> Any:
        """Return what an operation writes from the columns of a row."""
        if op == sk.METADATA:
            return self._raw(k.METADATA, row).decode()
        if op == sk.NAME:
            kinds = self.entries.groups, self.entries.topics, self.entries.topic_ids
            return kinds[argument][self.ints[argument, row]]
        return int((self.longs if op == sk.LONG else self.ints)[argument, row])

    def _embedded(self, which: int, data: bytes) -> bytes:
        """Return the text for a member's field; a protocol type or a protocol needs none."""
        scope, number = divmod(which, em.FIELDS)
        if scope < 1:
            return b""
        protocol = scope - 1
        protocol_type = -2 - self._text.known.what(protocol)
        return self._expanded[number](self._text.known.text(protocol_type), self._text.known.text(protocol), data)

    def _raw(self, which: int, row: int) -> bytes:
        ends = self.ints[k.ENDS_AT + which]
        return self.texts[which, ends[row - 1] if row else 0 : ends[row]].tobytes()


class Lines:
    """Lines of some rows; ``len`` is their number. Can be iterated over once: pieces of text.

    Attributes:
        records: how many of the lines are of records.
        headings: headings of the part, as far as it was iterated over.
    """

    def __init__(
        self, count: int, records: int, headings: Headings, pieces: Iterable[memoryview | bytes]
    ) -> None:  # fmt: skip
        self.records = records
        self.headings = headings
        self._count = count
        self._pieces = pieces

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[memoryview | bytes]:
        return iter(self._pieces)
