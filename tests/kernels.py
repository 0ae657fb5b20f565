"""All kernels compiled once, by one process beside a run of tests, however many processes run tests."""

from __future__ import annotations

import fcntl
import hashlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from offsets_log.columnar.jit import making
from offsets_log.columnar.jit.keeping import cache_base
from offsets_log.columnar.jit.making import Wanted

ROOT = Path(__file__).parents[1]
WAIT_S = 0.02
_STARTED: list[subprocess.Popen[bytes]] = []


class Compiling:
    """A process that compiles, as `subprocess.Popen` for those who did not start it: it holds a lock while it lives."""

    def __init__(self, lock: Path) -> None:
        self.lock = lock

    def poll(self) -> int | None:
        """None while it lives."""
        with self.lock.open("ab") as file:
            return 0 if _is_ours(file.fileno(), fcntl.LOCK_SH) else None


def compile_all() -> Compiling:
    """Start the process that compiles all kernels, unless another that tests these sources has."""
    name = hashlib.sha256(bytes(ROOT)).hexdigest()[:16]
    base = cache_base()
    lock = base / "offsets-log" / "kernels" / f".tests-{name}.lock"
    with lock.open("ab") as file:
        if _is_ours(file.fileno(), fcntl.LOCK_EX):  # and that of a process that is given the file, as long as it lives
            _STARTED.append(
                subprocess.Popen(
                    (sys.executable, "-m", making.REST), cwd=ROOT, env=making.environment(),
                    stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.DEVNULL,
                )
            )  # fmt: skip
    return Compiling(lock)


def _is_ours(file: int, kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def waiting(other: Compiling, make: Callable[..., None]) -> Callable[..., None]:
    """Return what has kernels compiled that another process has not when it ends, and waits for the others."""

    def wait_and_make(wanted: Iterable[Wanted], *how: Any) -> None:
        todo = [*wanted]
        while other.poll() is None and not all(one.file.exists() for one in todo):
            time.sleep(WAIT_S)
        make([one for one in todo if not one.file.exists()], *how)

    return wait_and_make


def stop() -> None:
    """End what was started here: what no test has needed is not compiled."""
    for process in _STARTED:
        process.kill()
        process.wait()
