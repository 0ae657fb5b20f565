"""The progress of a long run: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

BAR_FROM_BYTES = 8 << 20
LINE_EVERY_S = 10.0
BYTES = "bytes"

Advance = Callable[[int], None]
"""Called with a number of bytes read since the last call, from any thread."""
Say = Callable[[str], None]

BARS: list[Bar] = []
"""Those that are shown."""


@contextmanager
def progress(
    total: int,
    say: Say,
    *,
    is_wanted: bool | None,
    is_quiet: bool,
    unit: str = BYTES,
    long: int = BAR_FROM_BYTES,
    done: str = "read",
) -> Iterator[Advance]:
    """Show on standard error how much of the input has been read.

    Args:
        total: how much there is.
        say: writes a line.
        is_wanted: None for the default: on a terminal a bar for long work, else lines for work that takes long.
        unit: what is counted.
        long: the least total for which a bar is shown.
        done: what was done with it, in a word.
    """
    if not total or is_wanted is False or (is_wanted is None and is_quiet):
        yield lambda size_bytes: None
    elif not sys.stderr.isatty():
        yield Lines(total, say, unit=unit, done=done).advance
    elif is_wanted or total >= long:
        with Bar(total, unit, done) as advance:
            yield advance
    else:
        yield lambda size_bytes: None


class Lines:
    """Prints a line every `LINE_EVERY_S` seconds, if anything was read meanwhile."""

    def __init__(
        self,
        total: int,
        say: Say,
        clock: Callable[[], float] = time.monotonic,
        *,
        unit: str = BYTES,
        done: str = "read",
    ) -> None:
        self._total, self._done = total, done
        self._unit = unit
        self._say = say
        self._clock = clock
        self._read = 0
        self._next_s = clock() + LINE_EVERY_S
        self._lock = threading.Lock()

    def advance(self, count: int) -> None:
        """Count what was read; what is read a second time counts for nothing."""
        with self._lock:
            self._read = min(self._read + count, self._total)
            now_s = self._clock()
            if now_s >= self._next_s:
                self._next_s = now_s + LINE_EVERY_S
                share = self._read * 100 // max(self._total, 1)
                of = f"{self._shown(self._read)} of {self._shown(self._total)} {self._unit_shown}"
                self._say(f"{self._done} {of}, {share} %")

    def _shown(self, count: int) -> str:
        return f"{count / 1e6:.1f}" if self._unit == BYTES else f"{count:,}"

    @property
    def _unit_shown(self) -> str:
        return "MB" if self._unit == BYTES else self._unit


class Bar:
    """A bar on a terminal, a context manager; it appears when something is done, and ends where the answer begins."""

    def __init__(self, total: int, unit: str, done: str) -> None:
        from rich import progress as p
        from rich.console import Console

        counts: tuple[p.ProgressColumn, ...] = (p.DownloadColumn(), p.TransferSpeedColumn())
        if unit != BYTES:
            counts = p.MofNCompleteColumn(), p.TextColumn(unit), p.SpinnerColumn()
        columns = (p.TextColumn(done), p.BarColumn(), *counts, p.TimeRemainingColumn())
        self._bar = p.Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task("reading", total=total)
        self._is_over = False
        self._begins_at_once = unit != BYTES

    def __enter__(self) -> Advance:
        BARS.append(self)
        if self._begins_at_once:
            self._bar.start()
        return self._advance

    def __exit__(self, *_: object) -> None:
        BARS.remove(self)
        self._bar.stop()

    def _advance(self, count: int) -> None:
        if not self._is_over:
            self._bar.start()  # not before anything is done: until then other bars may be shown
            self._bar.advance(self._task, count)

    def hide(self) -> None:
        """End it."""
        self._is_over = True
        self._bar.stop()

    def say(self, words: str) -> None:
        """Print a line above it."""
        from rich.text import Text

        self._bar.console.print(Text.from_ansi(words), soft_wrap=True)
