"""Who hears of a run: remarks about the data, and how far it is."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

BYTES = "bytes"
LONG_BYTES = 8 << 20
"""Reading more than this takes so long that a person wants to see how far it is."""

Advance = Callable[[int], None]
"""Called with a number of what was done since the last call, from any thread."""


class Listener(Protocol):
    """Hears of a run; the command line prints it, the library keeps it."""

    def say(self, words: str) -> None:
        """Hear a remark: one or more sentences about the data, without a line end."""

    def progress(
        self, total: int, *, unit: str = BYTES, long: int = LONG_BYTES, done: str = "read"
    ) -> AbstractContextManager[Advance]:
        """Hear how far something is.

        Args:
            total: how much there is.
            unit: what is counted.
            long: the least total that takes long.
            done: what is done with it, in a word.
        """
        ...


class Remarks(list[str]):
    """Keeps remarks in their order."""

    def say(self, words: str) -> None:
        """Keep a remark."""
        self.append(words)

    def progress(
        self, total: int, *, unit: str = BYTES, long: int = LONG_BYTES, done: str = "read"
    ) -> AbstractContextManager[Advance]:
        """Keep nothing of it."""
        return nullcontext(lambda count: None)
