"""How times are taken, and what a row of the table knows."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).parent.parent
PATIENCE_SECONDS = 60.0


class NotMeasuredError(Exception):
    """Why there is no figure, in a few words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Times of one reader over one log.

    Attributes:
        seconds: of each run that counts.
        agrees: whether the answer is the one the log was written with; None where there is no answer.
        start_seconds: of a start that does not grow with the log, for rates of slow starters over small logs.
    """

    seconds: list[float]
    agrees: bool | None = None
    start_seconds: float = 0.0

    @property
    def median(self) -> float:
        """Of the runs."""
        return statistics.median(self.seconds)

    @property
    def work_seconds(self) -> float:
        """What rates are made of."""
        return max(self.median - self.start_seconds, 1e-9)


def seconds_of(work: Callable[[], Any]) -> float:
    """Wall time."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def repeated(run: Callable[[], float], repeat: int) -> list[float]:
    """So many runs after one that is not counted; only that one if it takes more than `PATIENCE_SECONDS`."""
    first = run()
    return [first] if first > PATIENCE_SECONDS else [run() for _ in range(repeat)]


def run_process(command: Sequence[str], stdout: int | IO[bytes] = subprocess.DEVNULL, *, status: int = 0) -> None:
    """A process from start to exit, with this interpreter's scripts first.

    Args:
        status: with which it exits if all goes well.

    Raises:
        NotMeasuredError: with the last line of its standard error, if it fails.
    """
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command, env={**os.environ, "PATH": path}, cwd=ROOT, stdout=stdout, stderr=subprocess.PIPE, check=False
    )
    if done.returncode != status:
        words = done.stderr.decode(errors="replace").strip().splitlines() or [f"exit status {done.returncode}"]
        raise NotMeasuredError(f"{command[0]} failed: {words[-1]}")
