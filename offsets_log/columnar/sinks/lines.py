"""Write all records as lines of text in a format, in bulk.

The kernel writes the lines of records it has read. Lines of records read on the slow path, or without a template, are
made on the slow path and inserted in their places.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.events import columns as k
from offsets_log.columnar.events.chunk import ROOM, Chunk, Entries, Mask, Room
from offsets_log.columnar.events.layouts import Release
from offsets_log.columnar.sinks import kernels as sk
from offsets_log.columnar.sinks.json_kernels import Json
from offsets_log.columnar.sinks.json_programs import Programs
from offsets_log.columnar.sinks.kinds import kind_number, kind_of
from offsets_log.columnar.sinks.known import Known
from offsets_log.columnar.sinks.marks import Form, Told, escapes_of, event_of, quote_of
from offsets_log.columnar.sinks.templates import WITHOUT_VALUE, Maker, Templates
from offsets_log.columnar.sinks.writers import MOST_ESCAPED, Output
from offsets_log.events import BatchStart, Event, LogEvent
from offsets_log.log_format.partition_log import Segment
from offsets_log.messages.registry import decode_coordinator_record
from offsets_log.rows.shown import Shown

TEXT_BYTES, MOST_TEMPLATES = 1 << 20, 64


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
        self.escapes = escapes_of(form)
        self.json = Programs(quote_of(form), form.beyond)
        self.escaped = {number: _text(row) for number, row in enumerate(self.escapes[:128])}
        self._templates: dict[tuple[int | None, str, Release | None], Templates] = {}
        self._lock = threading.Lock()

    def templates(self, segment: Segment, offsets_partition: int | None, release: Release | None) -> Templates:
        """Return the templates of a segment, including those made before."""
        key = offsets_partition, segment.file, release
        with self._lock:
            if key not in self._templates:
                if len(self._templates) >= self.most_templates:
                    del self._templates[next(iter(self._templates))]
                self._templates[key] = Templates(Maker(segment, offsets_partition, self.form, self.json, release))
            return self._templates[key]

    def chunk(self, release: Release | None) -> LineChunk:
        """Return a chunk for one thread."""
        return LineChunk(self, release)


def _text(escape: Any) -> str:
    return bytes(escape[: escape[MOST_ESCAPED]]).decode()


class Names:
    """The names of entries as they appear in lines, one after the other.

    Attributes:
        data: bytes.
        places: int64[kinds, n, 2], where each begins and ends.
    """

    def __init__(self, entries: Entries, escaped: dict[int, str]) -> None:
        self.entries = entries
        self.escaped = escaped
        self.data = np.zeros(1 << 12, np.uint8)
        self.places = np.zeros((len(self._kinds()), 1 << 8, 2), np.int64)
        self._counts = [0] * len(self._kinds())
        self._used = 0

    def _kinds(self) -> Sequence[Sequence[str]]:
        """Return the texts of each kind, by its number in `events.columns`."""
        return self.entries.groups, self.entries.topics, self.entries.topic_ids

    def update(self) -> None:
        """Add the names that are new."""
        for kind, texts in enumerate(self._kinds()):
            if (before := self._counts[kind]) < len(texts):
                self._add(kind, before, [text.translate(self.escaped).encode() for text in texts[before:]])
                self._counts[kind] = len(texts)

    def _add(self, kind: int, before: int, texts: list[bytes]) -> None:
        data = np.frombuffer(b"".join(texts), np.uint8)
        ends = self._used + np.cumsum([*map(len, texts)])
        while before + len(texts) > self.places.shape[1]:
            self.places = np.concatenate([self.places, np.zeros_like(self.places)], axis=1)
        while self._used + len(data) > len(self.data):
            self.data = np.concatenate([self.data, np.zeros_like(self.data)])
        self.data[self._used : self._used + len(data)] = data
        self.places[kind, before : before + len(texts), 0] = [self._used, *ends[:-1]]
        self.places[kind, before : before + len(texts), 1] = ends
        self._used += len(data)


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
        self._names = Names(self.entries, press.escaped)
        self._out = np.empty(press.text_bytes, np.uint8)
        self._progress = np.zeros(sk.PROGRESS_SIZE, np.int64)
        self._expanded = [*press.form.expanded.values()]
        self.known = Known(self._embedded, press.form.expanded_in, self._progress)
        self._slow_path_records = 0
        self._headings = Headings()
        self.counts[k.HAS_BATCHES] = press.form.batch_line is not None

    def begin(self) -> None:
        super().begin()
        self._headings = Headings()

    def clear(self) -> None:
        super().clear()
        self._slow_path_records = 0
        self.known.trim()

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
        if self._names.entries is not self.entries:
            self._names = Names(self.entries, self.press.escaped)
        self._names.update()
        is_shown = None if shown.is_all else self._shown(shown)
        is_record = self.ints[k.KIND, : self.rows] != k.BATCH
        if is_shown is not None:
            is_record &= is_shown
            is_shown |= self.ints[k.KIND, : self.rows] == k.BATCH
        count = self._slow_path_records + int(np.count_nonzero(is_record))
        return Lines(len(self), count, self._headings, self._pieces(offsets_partition, is_shown))

    def _pieces(self, offsets_partition: int | None, is_shown: Mask | None) -> Iterator[memoryview]:
        begins = [begin for begin, _ in self._segments]
        places = np.array(self._places, np.int64)
        cuts = sorted({*begins, *self._places, self.rows})
        self._progress[sk.USED] = 0
        for at, end in pairwise([*cuts, self.rows]):
            first, last = np.searchsorted(places, [at, at + 1]).tolist()
            for made in self._slow_path[first:last]:
                if made.begun is not None:
                    yield from self._heading(made.begun)
                yield from self._put(made.line)
            if at < end:
                segment = self._segments[bisect_right(begins, at) - 1][1]
                yield from self._heading(segment)
                yield from self._rows(segment, offsets_partition, at, end, is_shown)
        yield self._flushed()

    def _heading(self, segment: Segment) -> Iterator[memoryview]:
        """Write the heading before the first batch of a file; that of the part's first file is kept separately."""
        heading, headings = self.press.form.heading(segment), self._headings
        if not heading or heading == headings.last:
            return
        if headings.first is None:
            yield self._flushed()
            headings.first = heading
        else:
            yield from self._put(heading)
        headings.last = heading

    def _rows(
        self, segment: Segment, offsets_partition: int | None, begin: int, end: int, is_shown: Mask | None
    ) -> Iterator[memoryview]:
        """Write the lines of rows that the kernel has read."""
        templates = self.press.templates(segment, offsets_partition, self.release)
        progress, known, json, escapes = self._progress, self.known, self.press.json, self.press.escapes
        columns = sk.Columns(self.longs, self.ints, self.texts, self._names.data, self._names.places)
        shown = np.zeros(0, np.uint8) if is_shown is None else is_shown.view(np.uint8)
        progress[sk.ROW], progress[sk.END_ROW] = begin, end
        while True:
            made = sk.Programs(
                templates.begins, templates.ops, templates.literals, Json(json.steps, json.literals, escapes),
                known.embedded,
            )  # fmt: skip
            outcome = sk.write_lines(Output(progress, self._out), shown, made, columns)
            if outcome == oc.FINISHED:
                return
            if outcome == oc.NOT_PLAIN:
                yield from self._put(self._line(segment, offsets_partition, int(progress[sk.ROW])))
                progress[sk.ROW] += 1
            elif outcome == oc.NEEDS_TEMPLATE:
                templates.make(int(progress[sk.KIND]))
            elif outcome == oc.NEEDS_EMBEDDED:
                at, size = progress[[sk.EMBEDDED_AT, sk.EMBEDDED_SIZE]].tolist()
                known.add(int(progress[sk.WHICH]), self.texts[k.RAW_VALUE, at : at + size].tobytes())
            elif progress[sk.USED]:
                yield self._flushed()
            else:
                self._out = np.empty(2 * len(self._out), np.uint8)

    def _line(self, segment: Segment, offsets_partition: int | None, row: int) -> bytes:
        """Return the line of a kernel's row, made on the slow path."""
        form, column = self.press.form, partial(self._column, row)
        if self.ints[k.KIND, row] == k.COMMITTED:  # whose raw record was not kept
            maker = self.press.templates(segment, offsets_partition, self.release).maker
            return maker.line(kind_of(int(kind_number(self.ints, row))), Told(form, column))
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
            kinds = (k.GROUP, self.entries.groups), (k.TOPIC, self.entries.topics), (k.TOPIC_ID, self.entries.topic_ids)
            number, texts = kinds[argument]
            return texts[self.ints[number, row]]
        return int((self.longs if op == sk.LONG else self.ints)[argument, row])

    def _embedded(self, which: int, data: bytes) -> bytes:
        """Return the text for a member's field; a protocol type or a protocol needs none."""
        scope, number = divmod(which, sk.FIELDS)
        if scope < 1:
            return b""
        protocol = scope - 1
        protocol_type = -2 - self.known.what(protocol)
        return self._expanded[number](self.known.text(protocol_type), self.known.text(protocol), data)

    def _raw(self, which: int, row: int) -> bytes:
        ends = self.ints[k.ENDS_AT + which]
        return self.texts[which, ends[row - 1] if row else 0 : ends[row]].tobytes()

    def _put(self, line: bytes) -> Iterator[memoryview]:
        """Write a line that was made on the slow path."""
        used = int(self._progress[sk.USED])
        if used + len(line) > len(self._out):
            yield self._flushed()
            used = 0
        if len(line) > len(self._out):
            yield memoryview(line)
            return
        self._out[used : used + len(line)] = np.frombuffer(line, np.uint8)
        self._progress[sk.USED] = used + len(line)

    def _flushed(self) -> memoryview:
        """Return what is written, to be kept; most of it is not copied, and writing continues in new memory."""
        used = int(self._progress[sk.USED])
        self._progress[sk.USED] = 0
        if 2 * used < len(self._out):
            return memoryview(self._out[:used].tobytes())
        made, self._out = self._out, np.empty(len(self._out), np.uint8)
        return made[:used].data


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
