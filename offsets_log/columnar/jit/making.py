"""Have kernels compiled by other processes: what somebody waits for at once, the rest when nobody waits.

Only there are parts what numba makes of them. A process compiles one kernel after the other, so that numba is imported,
and parts that kernels share are made, once. It ends with the process that it works for, however that ends.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from tempfile import TemporaryFile
from typing import Any, NamedTuple

from offsets_log.columnar.jit.keeping import (
    Kept,
    cache_base,
    end_rest,
    keep,
    one_at_a_time,
    packed,
    read,
    tidy,
    unpacked,
)
from offsets_log.columnar.jit.modes import LEVEL
from offsets_log.columnar.jit.sources import PACKAGE, ChangedError, check_sources, processor, stamp_of
from offsets_log.columnar.processors import processors

MAKER = f"{PACKAGE}.jit.maker"
REST = f"{PACKAGE}.warm"
SIZE_BYTES = 8
"""Of the number before an answer: its length."""
MOST = 4
"""Processes: the longest kernel takes longer than all others on three."""
PATIENCE_S = 0.3
"""How long processes may take to end by themselves, all together."""
UNKEPT: dict[Path, Kept] = {}
"""What was made but could not be kept, by the file it would be in."""
_LINES: set[socket.socket] = set()
"""To processes that are at work."""
_ENDED = threading.Event()
"""Whether nothing is to be compiled any more: this process is about to end."""


class Wanted(NamedTuple):
    """A kernel, by its module and name, and the file that keeps it."""

    module: str
    name: str
    file: Path


def makers() -> int:
    """Return how many processes compile at once: one for each processor, for some kernels that take long."""
    return min(processors(), MOST)


def make(wanted: Iterable[Wanted], advance: Callable[[int], None] = lambda count: None) -> None:
    """Have kernels compiled and kept, the first ones first.

    Args:
        advance: called with the number of kernels made since the last call.

    Raises:
        RuntimeError: a kernel cannot be compiled, or `end_all` ended this.
    """
    if _ENDED.is_set():
        raise RuntimeError("it was interrupted before a kernel was compiled")
    end_rest()
    todo = deque(wanted)
    with _team() as team, DefaultSelector() as answers:
        for _ in range(min(makers(), len(todo))):
            team.append(maker := _Maker())
            maker.ask(todo.popleft())
            answers.register(maker.line, EVENT_READ, maker)
        while answers.get_map():
            for key, _ in answers.select():
                maker = key.data
                maker.take()
                advance(1)
                if todo:
                    maker.ask(todo.popleft())
                else:
                    answers.unregister(key.fileobj)


@contextmanager
def _team() -> Iterator[list[_Maker]]:
    """Yield a list for processes that compile, which end with the context."""
    team: list[_Maker] = []
    try:
        yield team
    finally:
        for maker in team:
            maker.hang_up()
        until_s = time.monotonic() + PATIENCE_S
        for maker in team:
            maker.end(until_s)
        tidy()


def end_all() -> None:
    """End the processes that compile for this one, so that threads which wait for them, now or later, get an error."""
    _ENDED.set()
    for line in [*_LINES]:
        with suppress(OSError):
            line.shutdown(socket.SHUT_WR)


def made_here(module: str, name: str, file: Path) -> Kept:
    """Compile a kernel in this process, unless another does or has: there parts are what numba makes of them.

    Code that cannot be kept, for example on a full disk, is returned all the same.

    Raises:
        ChangedError: the sources are not, or no longer, those that the file is named by.
    """
    if not file.name.endswith(stamp_of(module)):  # before it is imported
        raise ChangedError(f"{module} was edited meanwhile: start again")
    of: Any = getattr(import_module(module), name)
    with one_at_a_time(file):
        if (kept := read(file)) is not None:
            return kept
        from offsets_log.columnar.jit import numba_backend

        made = numba_backend.code_of(of.function, of.kinds)
        check_sources(module)
        with suppress(OSError):
            keep(file, packed(*made))
    return made


def environment() -> dict[str, str]:
    """Return the environment of a process that compiles.

    Levels above 2 take half as long again and gain nothing here. Code whose every index is checked is for tests, which
    compile it longer than they run it; below 1 it would need functions that count references.
    """
    path = os.pathsep.join(map(os.path.abspath, sys.path))
    name, features = processor()
    ours = {"OFFSETS_LOG_CACHE": str(cache_base()), "OFFSETS_LOG_COMPILES": "1", "NUMBA_OPT": str(LEVEL)}
    target = {"NUMBA_CPU_NAME": name, "NUMBA_CPU_FEATURES": features, "NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING": "1"}
    return {**os.environ, **ours, **target, "PYTHONPATH": path}


def start_rest() -> None:
    """Start the process that compiles all kernels when nothing else runs, and ends with the user's session."""
    nothing = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1, 2)]
    with suppress(OSError):
        os.posix_spawn(
            sys.executable, [sys.executable, "-m", REST, "rest"], environment(), file_actions=nothing, setpgroup=0
        )


class _Maker:
    """A process that compiles one kernel after the other.

    It is not of this process's group, whose interrupt would end it while it writes: it ends as its input does.
    """

    def __init__(self) -> None:
        self.line, theirs = socket.socketpair()
        self._words = TemporaryFile()  # noqa: SIM115 - it is closed by `end`
        self._process = subprocess.Popen(
            [sys.executable, "-m", MAKER],
            stdin=theirs.fileno(),
            stdout=theirs.fileno(),
            stderr=self._words,
            env=environment(),
            process_group=0,
        )
        theirs.close()
        _LINES.add(self.line)
        if _ENDED.is_set():
            end_all()

    def hang_up(self) -> None:
        """Have it end."""
        _LINES.discard(self.line)
        self.line.close()

    def end(self, until_s: float) -> None:
        """Wait until it has ended; from a time on it is killed."""
        try:
            self._process.wait(max(0.0, until_s - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._words.close()

    def ask(self, wanted: Wanted) -> None:
        self._asked = wanted
        with suppress(BrokenPipeError):  # then there is no answer
            self.line.sendall(json.dumps([wanted.module, wanted.name, str(wanted.file)]).encode() + b"\n")

    def take(self) -> None:
        """Read the answer: the code of the kernel, for where it cannot be kept."""
        with self.line.makefile("rb") as answer:
            size_bytes = int.from_bytes(answer.read(SIZE_BYTES))
            kept = unpacked(answer.read(size_bytes))
        if kept is None:
            self._words.seek(0)
            words = self._words.read().decode(errors="replace")[-2000:]
            raise RuntimeError(f"{self._asked.name}: a kernel cannot be compiled: {words}")
        if not self._asked.file.exists():
            UNKEPT[self._asked.file] = kept
