"""Remember what stands in a line for embedded bytes, in a table that kernels search (`embedded.find_known`)."""

from __future__ import annotations

import secrets
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from offsets_log.columnar.sinks import embedded as em

LEAST_KNOWN, MOST_KNOWN = 1 << 6, 1 << 16
LEAST_KNOWN_BYTES, MOST_KNOWN_BYTES = 1 << 12, 1 << 24
"""Embedded fields that are remembered; beyond the maximum, all are forgotten after a chunk."""


class Known:
    """Remembers the texts for embedded bytes.

    Args:
        made: a function from what bytes are, as kernels say it, and the bytes to their text.
        prefix: bytes that are kept at the beginning of the memory.
        progress: numbers of the kernel, see `embedded.PROGRESS_SIZE`.

    Attributes:
        slots: int64[n], a hash table of rows of ``known``.
        known: int64[n, `embedded.KNOWN_COLUMNS`].
        memory: the bytes and their texts.
    """

    def __init__(
        self, made: Callable[[int, bytes], bytes], prefix: bytes, progress: npt.NDArray[np.int64]
    ) -> None:  # fmt: skip
        self._made = made
        self._prefix = prefix
        self._progress = progress
        progress[em.SEED] = secrets.randbits(61)
        progress[em.PREFIX] = len(self._prefix)
        self._forget()

    @property
    def embedded(self) -> em.Embedded:
        """What is known, as kernels take it."""
        return em.Embedded(self.slots, self.known, self.memory)

    def _forget(self) -> None:
        self.slots = np.zeros(2 * LEAST_KNOWN, np.int64)
        self.known = np.zeros((LEAST_KNOWN, em.KNOWN_COLUMNS), np.int64)
        self.memory = np.zeros(LEAST_KNOWN_BYTES, np.uint8)
        self._progress[em.KNOWN] = 0
        self._used = len(self._prefix)
        self.memory[: self._used] = list(self._prefix)

    def trim(self) -> None:
        """Forget everything if it is too much."""
        if self._progress[em.KNOWN] > MOST_KNOWN or self._used > MOST_KNOWN_BYTES:
            self._forget()

    def _grow(self) -> None:
        count = len(self.known)
        self.known = np.concatenate([self.known, np.zeros_like(self.known)])
        self.slots = np.zeros(2 * len(self.slots), np.int64)
        self._progress[em.KNOWN] = 0
        for _ in range(count):
            em.remember(self._progress, self.embedded)

    def what(self, number: int) -> int:
        """Return what the bytes of a row are."""
        return int(self.known[number, em.KNOWN_WHICH])

    def text(self, number: int) -> str:
        """Return the bytes of a row, which are a text."""
        at, size = self.known[number, : em.KNOWN_WHICH].tolist()
        return self.memory[at : at + size].tobytes().decode()

    def add(self, which: int, data: bytes) -> None:
        """Add the text for embedded bytes."""
        text = self._made(which, data)
        size = len(data) + len(text)
        if self._progress[em.KNOWN] == len(self.known):
            self._grow()
        while self._used + size > len(self.memory):
            self.memory = np.concatenate([self.memory, np.zeros_like(self.memory)])
        at, text_at = self._used, self._used + len(data)
        self.memory[at : at + size] = np.frombuffer(data + text, np.uint8)
        self.known[self._progress[em.KNOWN]] = at, len(data), which, text_at, len(text)
        self._used += size
        em.remember(self._progress, self.embedded)
