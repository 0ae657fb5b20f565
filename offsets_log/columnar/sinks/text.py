"""Write rows as text by their templates, with lines between them that were made on the slow path."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.events import columns as k
from offsets_log.columnar.sinks import embedded as em
from offsets_log.columnar.sinks import kernels as sk
from offsets_log.columnar.sinks.json_kernels import Json
from offsets_log.columnar.sinks.json_programs import Programs
from offsets_log.columnar.sinks.known import Known
from offsets_log.columnar.sinks.letters import Letters
from offsets_log.columnar.sinks.templates import Templates
from offsets_log.columnar.sinks.writers import Output

TEXT_BYTES = 1 << 20


class Names:
    """Names as they stand in lines, one after the other.

    Args:
        kinds: names by number, of each kind; more may be added to the ends.

    Attributes:
        data: bytes.
        places: int64[kinds, n, 2], where each begins and ends.
    """

    def __init__(self, kinds: Sequence[Sequence[str]], letters: Letters) -> None:
        self._kinds, self._letters = kinds, letters
        self.data = np.zeros(1 << 12, np.uint8)
        self.places = np.zeros((len(kinds), 1 << 8, 2), np.int64)
        self._counts = [0] * len(kinds)
        self._used = 0
        self.update()

    def update(self) -> None:
        """Add the names that are new."""
        for kind, texts in enumerate(self._kinds):
            if (before := self._counts[kind]) < len(texts):
                self._add(kind, before, [self._letters.of(text) for text in texts[before:]])
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


class Text:
    """Text that one thread makes.

    Args:
        letters: of the format.
        json: programs of keys and values.
        embedded: as of `Known`; None where nothing is embedded.
        prefix: as of `Known`.
        size: of pieces in bytes, more or less.
    """

    def __init__(
        self,
        letters: Letters,
        json: Programs | None = None,
        embedded: Callable[[int, bytes], bytes] = lambda which, data: b"",
        prefix: bytes = b"",
        size: int = TEXT_BYTES,
    ) -> None:
        self._escapes, self._json = letters.escapes, json or Programs(None)
        self._out = np.empty(size, np.uint8)
        self._progress = np.zeros(sk.PROGRESS_SIZE, np.int64)
        self.known = Known(embedded, prefix, self._progress)

    def rows(
        self, columns: sk.Columns, places: range, templates: Templates, line: Callable[[int], bytes]
    ) -> Iterator[memoryview]:
        """Write the lines of some rows.

        Args:
            line: makes the line of a row on the slow path.
        """
        progress, known, json = self._progress, self.known, self._json
        progress[sk.ROW], progress[sk.END_ROW] = places.start, places.stop
        while True:
            made = sk.Programs(
                templates.begins, templates.ops, templates.literals,
                Json(json.steps, json.literals, self._escapes, known.embedded),
            )  # fmt: skip
            outcome = sk.write_lines(Output(progress, self._out), made, columns)
            if outcome == oc.FINISHED:
                return
            if outcome == oc.NOT_PLAIN:
                yield from self.put(line(int(progress[sk.ROW])))
                progress[sk.ROW] += 1
            elif outcome == oc.NEEDS_TEMPLATE:
                templates.make(int(progress[sk.KIND]))
            elif outcome == oc.NEEDS_EMBEDDED:
                at, size = progress[[em.EMBEDDED_AT, em.EMBEDDED_SIZE]].tolist()
                known.add(int(progress[em.WHICH]), columns.texts[k.RAW_VALUE, at : at + size].tobytes())
            elif progress[sk.USED]:
                yield self.flushed()
            else:
                self._out = np.empty(2 * len(self._out), np.uint8)

    def put(self, line: bytes) -> Iterator[memoryview]:
        """Write a line that was made on the slow path."""
        used = int(self._progress[sk.USED])
        if used + len(line) > len(self._out):
            yield self.flushed()
            used = 0
        if len(line) > len(self._out):
            yield memoryview(line)
            return
        self._out[used : used + len(line)] = np.frombuffer(line, np.uint8)
        self._progress[sk.USED] = used + len(line)

    def flushed(self) -> memoryview:
        """Return what is written, to be kept; most of it is not copied, and writing continues in new memory."""
        used = int(self._progress[sk.USED])
        self._progress[sk.USED] = 0
        if 2 * used < len(self._out):
            return memoryview(self._out[:used].tobytes())
        made, self._out = self._out, np.empty(len(self._out), np.uint8)
        return made[:used].data
