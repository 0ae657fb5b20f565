"""The progress of a long run: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

BAR_FROM_BYTES = 8 << 20
LINE_EVERY_S = 10.0

Advance = Callable[[int], None]
"""Called with a number of bytes read since the last call, from any thread."""
Say = Callable[[str], None]


@contextmanager
def progress(total_bytes: int, say: Say, *, is_wanted: bool | None, is_quiet: bool) -> Iterator[Advance]:
    """Show on standard error how much of the input has been read.

    Args:
        say: writes a line.
        is_wanted: None for the default: on a terminal a bar for long work, else lines for work that takes long.
    """
    if is_wanted is False or (is_wanted is None and is_quiet):
        yield lambda size_bytes: None
    elif not sys.stderr.isatty():
        yield Lines(total_bytes, say).advance
    elif is_wanted or total_bytes >= BAR_FROM_BYTES:
        yield from _bar(total_bytes)
    else:
        yield lambda size_bytes: None


class Lines:
    """Prints a line every `LINE_EVERY_S` seconds, if anything was read meanwhile."""

    def __init__(self, total_bytes: int, say: Say, clock: Callable[[], float] = time.monotonic) -> None:
        self._total = total_bytes
        self._say = say
        self._clock = clock
        self._read = 0
        self._next_s = clock() + LINE_EVERY_S
        self._lock = threading.Lock()

    def advance(self, size_bytes: int) -> None:
        """Count bytes; those that are read a second time count for nothing."""
        with self._lock:
            self._read = min(self._read + size_bytes, self._total)
            now_s = self._clock()
            if now_s >= self._next_s:
                self._next_s = now_s + LINE_EVERY_S
                share = self._read * 100 // max(self._total, 1)
                self._say(f"read {self._read / 1e6:.1f} of {self._total / 1e6:.1f} MB, {share} %")


def _bar(total_bytes: int) -> Iterator[Advance]:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=total_bytes)
        yield lambda size_bytes: bar.advance(task, size_bytes)
