"""All records as lines of text: what the row functions of `tables` and a format's writer make of each, in bulk.

The kernel writes the lines of what it has read; what was read by hand, and what has no template, is made by hand and
takes its place among them.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from offsets_log.columnar.events import kernels as k
from offsets_log.columnar.events.rows import Shown
from offsets_log.columnar.events.tables import Chunk, Entries, Mask
from offsets_log.columnar.sinks import kernels as sk
from offsets_log.columnar.sinks.templates import Line, Maker, Templates, escapes_of, event_of
from offsets_log.log_format.partition_log import Segment
from offsets_log.messages.registry import decode_coordinator_record
from offsets_log.pipeline import Event
from offsets_log.tables import decode_row

TEXT_BYTES = 1 << 20
"""Of lines that are handed over at once, more or less."""
MOST_TEMPLATES = 64
"""Segments whose templates are remembered."""


class Press:
    """What all threads share that make lines of one format.

    Args:
        line: the format.
    """

    def __init__(self, line: Line) -> None:
        self.line = line
        self.escapes = escapes_of(line)
        self.escaped = {number: _text(row) for number, row in enumerate(self.escapes[:128])}
        self._templates: dict[tuple[int | None, str], Templates] = {}
        self._lock = threading.Lock()

    def templates(self, segment: Segment, offsets_partition: int | None) -> Templates:
        """Those of a segment, with what was already made of them."""
        key = offsets_partition, segment.file
        with self._lock:
            if key not in self._templates:
                if len(self._templates) >= MOST_TEMPLATES:
                    del self._templates[next(iter(self._templates))]
                self._templates[key] = Templates(Maker(segment, offsets_partition, self.line))
            return self._templates[key]

    def chunk(self) -> LineChunk:
        """For one thread."""
        return LineChunk(self)


def _text(escape: Any) -> str:
    return bytes(escape[: escape[sk.MOST_ESCAPED]]).decode()


class Names:
    """The names of entries as they stand in lines, behind each other.

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
        """The texts of each kind, by its number in `events.kernels`."""
        return self.entries.groups.texts, self.entries.topics.texts, self.entries.topic_ids.texts

    def update(self) -> None:
        """Add those that are new."""
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


class LineChunk(Chunk):
    """Rows of a run of lines."""

    def __init__(self, press: Press) -> None:
        super().__init__()
        self.press = press
        self._names = Names(self.entries, press.escaped)
        self._out = np.zeros(TEXT_BYTES, np.uint8)
        self._desk = np.zeros(sk.DESK, np.int64)

    def row(self, event: Event, shown: Shown) -> bytes | None:
        """The line of a record that was read by hand."""
        decoded = event.decoded
        names = {} if decoded is None else {"group": decoded.group, "topic": decoded.key.get("topic")}
        return self.press.line(decode_row(event)) if shown.shows(names) else None

    def made(self, offsets_partition: int | None, shown: Shown) -> Lines:
        """The lines."""
        self.entries.understand(int(self.counts[k.ENTRIES]))
        if self._names.entries is not self.entries:
            self._names = Names(self.entries, self.press.escaped)
        self._names.update()
        is_shown = None if shown.is_all else self._shown(shown)
        count = len(self._by_hand) + (self.rows if is_shown is None else int(np.count_nonzero(is_shown)))
        return Lines(count, self._pieces(offsets_partition, is_shown))

    def _pieces(self, offsets_partition: int | None, is_shown: Mask | None) -> Iterator[memoryview]:
        begins = [begin for begin, _ in self._segments]
        places = np.array(self._places, np.int64)
        cuts = sorted({*begins, *self._places, self.rows})
        self._desk[sk.USED] = 0
        for at, end in pairwise([*cuts, self.rows]):
            first, last = np.searchsorted(places, [at, at + 1]).tolist()
            for line in self._by_hand[first:last]:
                yield from self._put(line)
            if at < end:
                segment = self._segments[bisect_right(begins, at) - 1][1]
                yield from self._rows(segment, offsets_partition, at, end, is_shown)
        yield self._flushed()

    def _rows(
        self, segment: Segment, offsets_partition: int | None, begin: int, end: int, is_shown: Mask | None
    ) -> Iterator[memoryview]:
        """Lines of rows that the kernel has read."""
        templates, names, desk = self.press.templates(segment, offsets_partition), self._names, self._desk
        programs = templates.programs(self.ints[:, begin:end])
        if is_shown is not None:
            programs[~is_shown[begin:end]] = sk.SKIPPED
        desk[sk.BEGIN], desk[sk.ROW], desk[sk.END_ROW] = begin, begin, end
        while True:
            outcome = sk.write_lines(
                desk, self._out, programs, templates.ops, templates.literals, self.longs, self.ints, self.texts,
                names.data, names.places, self.press.escapes,
            )  # fmt: skip
            if outcome == sk.FINISHED:
                return
            if outcome == sk.NEEDS_HAND:
                yield from self._put(self._line(segment, offsets_partition, int(desk[sk.ROW])))
                desk[sk.ROW] += 1
            elif desk[sk.USED]:
                yield self._flushed()
            else:
                self._out = np.zeros(2 * len(self._out), np.uint8)

    def _line(self, segment: Segment, offsets_partition: int | None, row: int) -> bytes:
        """The line of a row of the kernel that keeps the raw record, made by hand."""
        key, value = (self._raw(which, row) for which in (k.RAW_KEY, k.RAW_VALUE))
        columns: dict[int, Any] = {sk.LONG: self.longs, sk.INT: self.ints}
        event = event_of(
            segment,
            offsets_partition,
            int(self.ints[k.ATTRIBUTES, row]),
            lambda op, number: int(columns[op][number, row]),
            decoded=decode_coordinator_record(key, value),  # of types whose layout no release changed
        )
        return self.press.line(decode_row(event))

    def _raw(self, which: int, row: int) -> bytes:
        ends = self.ints[k.ENDS_AT + which]
        return self.texts[which, ends[row - 1] if row else 0 : ends[row]].tobytes()

    def _put(self, line: bytes) -> Iterator[memoryview]:
        """A line that was made by hand."""
        used = int(self._desk[sk.USED])
        if used + len(line) > len(self._out):
            yield self._flushed()
            used = 0
        if len(line) > len(self._out):
            yield memoryview(line)
            return
        self._out[used : used + len(line)] = np.frombuffer(line, np.uint8)
        self._desk[sk.USED] = used + len(line)

    def _flushed(self) -> memoryview:
        used = int(self._desk[sk.USED])
        self._desk[sk.USED] = 0
        return self._out[:used].data


class Lines:
    """Lines of some rows; ``len`` says how many. Iterated over once: pieces of text, each good until the next."""

    def __init__(self, count: int, pieces: Iterator[memoryview]) -> None:
        self._count = count
        self._pieces = pieces

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[memoryview]:
        return self._pieces
