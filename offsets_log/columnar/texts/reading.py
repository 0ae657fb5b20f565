"""Read runs of plain batches in kafka-dump-log's text, as segment bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.scan.layout import read_only
from offsets_log.columnar.sinks import embedded as em
from offsets_log.columnar.sinks.known import Known
from offsets_log.columnar.texts import kernels as tk
from offsets_log.columnar.texts.marks import FORM
from offsets_log.columnar.texts.programs import dump_log_programs
from offsets_log.log_format.segment import Buffer
from offsets_log.rows import dump_log

OUT_BYTES = 1 << 22
MOST_OUT_BYTES = 1 << 28
"""Bytes of batches returned at once; a single batch that needs more than the second number takes the slow path."""
PAIR_ROWS = 1 << 16
EMBEDDED = (*dump_log.EXPANDED, "topic_id")
"""Fields whose bytes Python finds from their text, in the order of their numbers."""

Collapse = Callable[[bytes], bytes]
"""Returns the bytes of a field's text in a record; nothing for a text that the slow path must read."""


@dataclass(frozen=True, slots=True)
class Batches:
    """Some batches.

    Attributes:
        data: their bytes.
        lines: pairs of int64, record offset and line; a negative line is that of a batch, for its base offset.
        is_resized: whether one of them had another size where it was printed.
        is_expanded: whether members were expanded.
        next_position: where the last of them ends in the file that was printed.
    """

    data: bytes
    lines: bytes
    is_resized: bool
    is_expanded: bool
    next_position: int


class BatchText:
    """A text, read from any batch on up to one that is not plain.

    Args:
        collapse: one function for each field in `EMBEDDED`.

    Attributes:
        at, line: where the next batch begins.
    """

    def __init__(self, buffer: Buffer, collapse: Sequence[Collapse]) -> None:
        self._text = read_only(np.frombuffer(buffer, np.uint8))
        self._out = np.zeros(OUT_BYTES, np.uint8)
        self._pairs = np.zeros((PAIR_ROWS, 2), np.int64)
        self._facts = np.zeros((2, tk.FACTS), np.int64)
        self._progress = np.zeros(tk.PROGRESS_SIZE, np.int64)
        self._known_progress = np.zeros(em.PROGRESS_SIZE, np.int64)
        self._known = Known(lambda which, data: collapse[which](data), FORM.expanded_in, self._known_progress)
        self.at, self.line = 0, 1

    def batches(self, at: int, line: int, next_position: int) -> Iterator[Batches]:
        """Yield plain batches from the one at a position on, as long as they follow each other.

        Args:
            next_position: where the first is in the file that was printed.
        """
        self.at, self.line = at, line
        self._progress[tk.NEXT_POSITION] = next_position
        while True:
            self._known.trim()
            outcome = self._read()
            if used := int(self._progress[tk.USED]):
                lines = self._pairs[: self._progress[tk.PAIRS]].tobytes()
                is_resized, is_expanded = map(bool, self._progress[[tk.IS_RESIZED, tk.IS_EXPANDED]])
                next_position = int(self._progress[tk.NEXT_POSITION])
                yield Batches(self._out[:used].tobytes(), lines, is_resized, is_expanded, next_position)
            if outcome != oc.FULL or (not used and not self._more_room()):
                return

    def _read(self) -> int:
        """Fill the available room; return why it ended."""
        progress, programs, known = self._progress, dump_log_programs(), self._known
        progress[[tk.AT, tk.LINE, tk.USED, tk.PAIRS, tk.IS_RESIZED, tk.IS_EXPANDED]] = self.at, self.line, 0, 0, 0, 0
        while True:
            parsing = tk.Parsing(
                progress, self._text, programs.ops, programs.literals, programs.of_batches, programs.of_records,
                self._facts, self._out, self._pairs, self._known_progress, known.embedded,
            )  # fmt: skip
            outcome: int = tk.read_batches(parsing)
            self.at, self.line = int(progress[tk.AT]), int(progress[tk.LINE])
            if outcome != oc.NEEDS_EMBEDDED:
                return outcome
            which, at, size = self._known_progress[[em.WHICH, em.EMBEDDED_AT, em.EMBEDDED_SIZE]].tolist()
            known.add(which, self._text[at : at + size].tobytes())

    def _more_room(self) -> bool:
        if len(self._out) >= MOST_OUT_BYTES:
            return False
        self._out = np.zeros(2 * len(self._out), np.uint8)
        self._pairs = np.zeros((2 * len(self._pairs), 2), np.int64)
        return True
