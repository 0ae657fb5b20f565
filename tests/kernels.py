"""All kernels compiled once, by one process beside a run of tests, however many processes run tests."""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from offsets_log.columnar.jit import making, modes
from offsets_log.columnar.jit.keeping import cache_base
from offsets_log.columnar.jit.making import Wanted
from offsets_log.columnar.jit.sources import place_of

ROOT = Path(__file__).parents[1]
WAIT_S = 0.02
CHECKED = "NUMBA_BOUNDSCHECK"
IN_THE_BACKGROUND = 10
"""How much such a process gives way to tests, whose turn for its code comes late."""

NOT_IN_MODES = (
    "aligning.", "choose.choice.follow", "cleaning.", "events.entries.", "folds.census.", "folds.merge.compact_open",
    "folds.transactions.end_one", "history.kernels.mark_one", "materialize.arrow.", "scan.batch_rows.",
    "scan.interner.fill_slots", "shuffle.", "texts.",
)  # fmt: skip
"""How the places of the kernels begin that no test of modes runs."""

_STARTED: list[subprocess.Popen[bytes]] = []


class Compiling:
    """A process that compiles, as `subprocess.Popen` for those who did not start it: it holds a lock while it lives."""

    def __init__(self, lock: Path) -> None:
        self.lock = lock

    def poll(self) -> int | None:
        """None while it lives."""
        with self.lock.open("ab") as file:
            return 0 if _is_ours(file.fileno(), fcntl.LOCK_SH) else None


def compile_all(*, checked: bool = modes.IS_CHECKED, niceness: int = 0) -> Compiling:
    """Start the process that compiles all kernels, unless another that tests these sources has."""
    name = hashlib.sha256(bytes(ROOT)).hexdigest()[:16]
    base = cache_base()
    lock = base / "offsets-log" / "kernels" / f".tests-{name}{'-checked' * checked}.lock"
    with lock.open("ab") as file:
        if _is_ours(file.fileno(), fcntl.LOCK_EX):  # and that of a process that is given the file, as long as it lives
            command = (sys.executable, "-m", "tests.kernels", str(niceness))
            mode = {CHECKED: str(int(checked)), "OFFSETS_LOG_CACHE": str(base)}
            _STARTED.append(
                subprocess.Popen(
                    command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.DEVNULL,
                    env={**os.environ, **mode},
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


def link_checked() -> None:
    """Have the kernels compiled that `tests/columnar/test_modes.py` runs with every index checked."""
    from offsets_log.columnar import warm

    for of in warm.kernels():
        if not place_of(of.function).startswith(NOT_IN_MODES):
            of.link()


if __name__ == "__main__":
    os.nice(int(sys.argv[1]))
    command = ("-c", "from tests.kernels import link_checked; link_checked()")
    command = command if modes.IS_CHECKED else ("-m", making.REST)
    os.execve(sys.executable, (sys.executable, *command), making.environment())
