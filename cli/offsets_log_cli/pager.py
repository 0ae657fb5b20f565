"""A pager for tables on a terminal: ``$OFFSETS_LOG_PAGER``, ``$PAGER`` or less, which shows short ones at once."""

from __future__ import annotations

import io
import os
import shlex
import shutil
import signal
import subprocess
from contextlib import suppress
from typing import Any

from offsets_log_cli.terminal import hide_bars

VARIABLES = ("OFFSETS_LOG_PAGER", "PAGER")
"""The first that is set counts; if it is empty, there is no pager."""
LESS = "FRXK"
"""Options of less: it ends at once if all fits, shows colours, leaves the answer there, and ends at Ctrl-C."""
CHOPPED = "S"
"""One more, if lines are longer than the terminal: they are not wrapped, and the arrow keys move them."""


def pager_command() -> list[str]:
    """Return the pager's command line; nothing if there is none."""
    asked = next((os.environ[name] for name in VARIABLES if name in os.environ), "less")
    with suppress(ValueError):
        words = shlex.split(asked)
        if words and words != ["cat"] and os.environ.get("TERM") != "dumb" and shutil.which(words[0]):
            return words
    return []


class Pager(io.RawIOBase):
    """A stream to a pager, which is started when the first bytes come.

    Args:
        is_wide: whether lines may be longer than the terminal.
    """

    def __init__(self, command: list[str], *, is_wide: bool) -> None:
        self._command, self._options = command, LESS + CHOPPED * is_wide
        self._process: subprocess.Popen[bytes] | None = None
        self._is_left = False

    def writable(self) -> bool:
        """Return that it can be written."""
        return True

    def write(self, data: Any) -> int:
        """Write, unless the reader has left."""
        if self._process is None:
            hide_bars()
            environment = {"LESS": self._options, **os.environ}
            self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, env=environment)
        if not self._is_left:
            try:
                assert self._process.stdin is not None
                self._process.stdin.write(data)
            except BrokenPipeError:
                self._is_left = True
        return len(data)

    def close(self) -> None:
        """Wait until the reader has left; an interrupt is the pager's, which ends by it."""
        super().close()
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(BrokenPipeError):
            if process.stdin is not None:
                process.stdin.close()
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            process.wait()
        finally:
            signal.signal(signal.SIGINT, before)
